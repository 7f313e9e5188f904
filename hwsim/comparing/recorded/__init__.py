"""Runs against recordings of the real ones: places of the time in both, by cause, by GPU and by op."""
