"""`infer:` models that answer requests."""
