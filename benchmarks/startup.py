"""CPU time of whole processes: what a user waits for before anything is simulated."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence


def cpu_seconds(arguments: Sequence[str], runs: int = 7) -> float:
    """Median user + system time of `python -m hwsim ARGUMENTS`."""
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "hwsim", *arguments], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times)
