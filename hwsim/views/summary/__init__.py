"""A run as text, JSON and HTML."""
