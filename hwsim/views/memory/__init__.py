"""The memory of each device over time as a figure."""
