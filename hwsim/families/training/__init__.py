"""`train:` steps of training a model."""
