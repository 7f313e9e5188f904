"""Benchmarks: medians of CPU time, as ratios to stock SimPy's timeouts a second in the same run."""
