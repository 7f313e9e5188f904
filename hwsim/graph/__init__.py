"""Op graphs of a run: ops, queues and pools as columns."""
