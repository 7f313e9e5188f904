"""`services:`, programs that handle arriving requests."""
