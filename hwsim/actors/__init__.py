"""Programs that react while they run: servers that batch requests, devices simulated request by request."""
