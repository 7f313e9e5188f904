"""CPU time of whole processes: what a user waits for before anything is simulated."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence


def cpu_seconds(arguments: Sequence[str], runs: int = 7) -> float:
    """Median user + system time of `python -m hwsim ARGUMENTS`."""
    times = []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}  # as an installed package
    for _ in range(runs + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "hwsim", *arguments], check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times[1:])  # the first run compiles
