"""What a whole process takes: user and system time, and its peak of memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

# A process begins with its parent's peak of memory, so that a small one starts it and measures it.
_STARTS: Final = """
import json, os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss, done.stdout]))
"""


class Taken(NamedTuple):
    """Seconds of CPU, peak of resident memory in bytes, and what it printed."""

    seconds: float
    memory: float
    said: str


def run(command: Sequence[str]) -> Taken:
    """One run.

    Raises:
        ChildProcessError: it failed.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}  # as an installed package
    starts = [sys.executable, "-S", "-c", _STARTS, *command]
    status, seconds, most, said = json.loads(subprocess.run(starts, capture_output=True, check=True, env=environment).stdout)
    if status:
        raise ChildProcessError(f"{' '.join(command)}: exit {status}\n{said}")
    return Taken(seconds, most * (1 if sys.platform == "darwin" else 1024), said)


def median(command: Sequence[str], runs: int = 3) -> Taken:
    """The run with the median of CPU times; one before them compiles what there is to compile."""
    if runs > 1:
        run(command)
    found = [run(command) for _ in range(runs)]
    middle = statistics.median_low([process.seconds for process in found])
    return min(found, key=lambda each: abs(each.seconds - middle))


def hwsim(*arguments: str, runs: int = 3) -> Taken:
    """`hwsim ARGUMENTS` of this Python."""
    return median([sys.executable, "-m", "hwsim", *arguments], runs)
