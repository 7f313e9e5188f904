"""Explanation of the time of a run."""
