"""The sends of a run as an animation: each chunk is where the run's columns say it is at that instant."""
