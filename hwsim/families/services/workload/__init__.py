"""`services:` programs that answer requests: their schema, their programs of steps, and where each of them is served."""
