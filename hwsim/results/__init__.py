"""The results of a run, as data."""
