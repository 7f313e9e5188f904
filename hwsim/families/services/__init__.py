"""`services:` programs that answer requests."""
