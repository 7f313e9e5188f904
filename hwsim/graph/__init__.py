"""Op graphs: ops, queues and pools as columns, folding of identical ranks, and graphs as files."""
