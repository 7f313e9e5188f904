"""A sweep as a figure."""
