"""Estimates of training steps and serving from closed forms."""
