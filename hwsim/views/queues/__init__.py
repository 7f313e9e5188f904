"""The buffers of a pipeline over time as a figure."""
