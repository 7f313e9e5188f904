"""Rooflines: the ceilings of a device and where the ops of a workload lie below them."""
