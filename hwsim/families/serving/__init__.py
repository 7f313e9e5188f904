"""`infer:` models that serve requests."""
