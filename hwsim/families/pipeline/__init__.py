"""`pipeline:` stages that run at the same time, and hand batches on."""
