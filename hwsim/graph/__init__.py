"""Op graphs: ops, queues and server pools in columns, folding of identical ranks, and files of op graphs."""
