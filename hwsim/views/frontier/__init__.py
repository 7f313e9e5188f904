"""Options of a plan as a figure."""
