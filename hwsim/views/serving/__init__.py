"""The requests of services over time as a figure."""
