"""A row of docs/d2l.md: a figure that the chapter prints or works out, and the run that gives the simulated one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hwsim.api import Run

EXACT = 1e-4  # half of a range, as a logarithm, below which there is none
PAGE = Path(__file__).resolve().parent.parent / "docs" / "d2l.md"


def total(run: Run) -> float:
    """Seconds from the start to the end of everything."""
    return run.makespan_s


def issued(run: Run) -> float:
    """Seconds until the program has issued its last op."""
    return max(op.end_s for op in run.ops if op.kind == "dispatch")


def memory(run: Run) -> float:
    """Bytes that the values of the program take of the CPU's memory at most."""
    return next(each.peak for each in run.memory if each.device.startswith("cpu"))


def one_of(name: str, times: float = 1) -> Callable[[Run], float]:
    """Seconds of one of the `times` accesses of the op of that name."""
    return lambda run: next(op.duration_s for op in run.ops if op.name == name) / times


@dataclass(frozen=True, slots=True)
class Row:
    """One timing: printed, simulated, and why they differ."""

    what: str
    printed: float | None  # s or B; None: the text works it out and prints no measurement
    kind: str  # "fitted" to this very number, "predicted", or "closed form" of the text
    machine: str
    workload: str
    why: str
    changed: Mapping[str, object] = field(default_factory=dict)
    figure: Callable[[Run], float] = total
    unit: Literal["s", "B"] = "s"

    def ends(self, run: Run) -> tuple[float, float] | None:
        """Ends of the range in which nine of ten such figures lie; None of what has none: bytes, single ops, and exact times."""
        sure = run.issued_interval if self.figure is issued else run.interval if self.figure is total else None
        return None if sure is None or sure.half < EXACT else (sure.low, sure.high)
