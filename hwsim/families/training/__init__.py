"""`train:`, the training of a model."""
