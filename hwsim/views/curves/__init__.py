"""Request latency against the load of a device as a figure."""
