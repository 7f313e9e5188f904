"""Services under load over time, and the ladder of their limits, as a figure."""
