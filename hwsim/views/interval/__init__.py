"""Intervals of answers, and sources of their uncertainty."""
