"""Summary of a run as text, JSON and HTML."""
