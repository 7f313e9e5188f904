"""A run beside a recording of the real one: where time goes in both, by cause, by GPU and by op."""
