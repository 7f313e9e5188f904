"""Sensitivity: how far each unsure number moves an answer, where the order of two options changes, and what to measure first."""
