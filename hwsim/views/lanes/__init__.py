"""Lanes of several runs over one time axis."""
