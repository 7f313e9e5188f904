"""Predicted against measured times."""
