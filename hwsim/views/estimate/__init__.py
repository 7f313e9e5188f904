"""Closed-form estimates of training steps and serving."""
