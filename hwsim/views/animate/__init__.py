"""Animations of a run: what moves is where the run's columns say it is at that instant."""
