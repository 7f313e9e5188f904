"""Lanes of several runs over one axis of time."""
