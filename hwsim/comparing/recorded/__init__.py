"""Comparison of simulated runs with recorded ones, or of two recorded runs: time by cause, by GPU and by op."""
