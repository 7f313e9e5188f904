"""`infer:` models that serve requests: the schema of their keys, their plan on a machine, and their requests."""
