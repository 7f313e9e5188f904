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
    return statistics.median(_times([sys.executable, "-m", "hwsim", *arguments], runs))


def ratio(arguments: Sequence[str], runs: int = 7) -> float:
    """Least time of `python -m hwsim ARGUMENTS` over that of importing numpy, each in turn."""
    ours, numpys = [sys.executable, "-m", "hwsim", *arguments], [sys.executable, "-c", "import numpy"]
    pairs = [(*_times(ours, 1), *_times(numpys, 1)) for _ in range(runs)]
    mine, its = map(min, zip(*pairs, strict=True))
    return mine / its


def _times(command: Sequence[str], runs: int) -> list[float]:
    """User + system time of each run; one before them compiles."""
    times = []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}  # as an installed package
    for _ in range(runs + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return times[1:]
