"""Predicted intervals beside measured values."""
