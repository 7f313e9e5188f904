"""`pipeline:`, concurrent stages that pass on batches."""
