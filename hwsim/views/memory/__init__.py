"""Memory use of each device over time as a figure."""
