"""Intervals of answers: in words, and as an entry of a JSON document."""
