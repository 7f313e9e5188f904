"""Parts that are simulated request by request."""
