"""What a run found, as data."""
