"""`infer:` models that serve requests: their schema, what they are on a machine, and the requests that come."""
