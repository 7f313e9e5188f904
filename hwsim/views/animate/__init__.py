"""Animations of a run, exact in time: each element is where the timeline has it at that instant."""
