"""Time and disturbances of a few consecutive calls.

Linux reports CPU time, involuntary context switches and page faults per thread, macOS per process. Windows counts CPU time in
steps of 16 ms, which is too coarse, so wall time is used instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

Call = Callable[[], object]
_COARSE: Final = 1e-5  # seconds: CPU clocks with longer steps cannot time the cases
_STAT: Final = Path("/proc/stat")


class Usage(NamedTuple):
    """Monotonic counters of this thread: involuntary context switches, and page faults."""

    switches: int
    faults: int


class Clocks(Protocol):
    """Monotonic clocks (ns) and counters."""

    def wall(self) -> int: ...

    def cpu(self) -> int: ...

    def usage(self) -> Usage: ...


@dataclass(frozen=True, slots=True)
class Sample:
    """A few calls that were timed together.

    Args:
        wall: wall time per call (s).
        cpu: CPU time per call (s).
        switches: involuntary context switches of all calls.
        faults: page faults per call.
        device: time per call on a GPU (s).
    """

    wall: float
    cpu: float
    switches: int = 0
    faults: float = 0.0
    device: float = 0.0

    def by(self, clock: str) -> float:
        """Return the time per call (s) on one of the clocks."""
        return {"cpu": self.cpu, "wall": self.wall, "device": self.device}[clock]


class SystemClocks:
    """The clocks of this thread."""

    def __init__(self) -> None:
        precise = time.get_clock_info("thread_time").resolution < _COARSE
        self.wall = time.perf_counter_ns
        self.cpu = time.thread_time_ns if precise else time.perf_counter_ns
        self.usage = usage_reader()


def take(clocks: Clocks, call: Call, loops: int) -> Sample:
    """Time `loops` consecutive calls."""
    before, cpu, wall = clocks.usage(), clocks.cpu(), clocks.wall()
    for _ in range(loops):
        call()
    wall, cpu, after = clocks.wall() - wall, clocks.cpu() - cpu, clocks.usage()
    faults = (after.faults - before.faults) / loops
    return Sample(wall / loops * 1e-9, cpu / loops * 1e-9, after.switches - before.switches, faults)


def stolen() -> tuple[int, int]:
    """Return (stolen ticks, all ticks) of all CPUs since boot; zeros if the system does not count them."""
    try:
        ticks = [int(field) for field in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return (ticks[7], sum(ticks)) if len(ticks) == 8 else (0, 0)


def usage_reader() -> Callable[[], Usage]:
    """Return a function that reads the counters of this thread; they are zero if the system has none."""
    if sys.platform == "win32":
        return lambda: Usage(0, 0)
    import resource

    scope = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)

    def read() -> Usage:
        counters = resource.getrusage(scope)
        return Usage(counters.ru_nivcsw, counters.ru_minflt)

    return read
