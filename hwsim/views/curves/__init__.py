"""Latency against load as a figure."""
