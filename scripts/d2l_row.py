"""A row of docs/d2l.md: figures that the chapter prints or works out, and the run that gives the simulated one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from hwsim.api import Run

EXACT = 1e-4  # half of a range, as a logarithm, below which there is none
PAGE = Path(__file__).resolve().parent.parent / "docs" / "d2l.md"


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure of a run: the line of the output that shows it, and its value."""

    line: str
    value: Callable[[Run], float]


TIME: Final = Reading("`time`", lambda run: run.makespan_s)
ISSUED: Final = Reading("`front end`", lambda run: max(op.end_s for op in run.ops if op.kind == "dispatch"))
MEMORY: Final = Reading("`memory`", lambda run: next(row.peak for row in run.memory if row.device.startswith("cpu")))


def one_of(name: str, accesses: int = 1) -> Reading:
    """Seconds of an op, or of one of its accesses."""
    line = f"`{name}`, `each`" + (f" / {accesses:,}" if accesses > 1 else "")
    return Reading(line, lambda run: next(op.duration_s for op in run.ops if op.name == name) / accesses)


def per_second(name: str, accesses: int) -> Reading:
    """Accesses per second of an op."""
    return Reading(f"`{name}`, `accesses/s`", lambda run: accesses / next(op.duration_s for op in run.ops if op.name == name))


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment: the book's figures, the simulated one, and why they differ."""

    what: str
    book: float | tuple[float, ...] | None  # s, B or 1/s, several: one of each run; None: the book has no figure
    kind: str  # "fitted" to this very number, "predicted", or "closed form" of the text
    machine: str
    workload: str
    why: str
    changed: Mapping[str, object] = field(default_factory=dict)
    reading: Reading = TIME
    unit: Literal["s", "B", "1/s"] = "s"
    less: Mapping[str, object] | None = None  # settings of another run of the workload, whose figure is subtracted

    @property
    def printed(self) -> tuple[float, ...]:
        """All figures of the book."""
        return () if self.book is None else self.book if isinstance(self.book, tuple) else (self.book,)

    def ends(self, run: Run) -> tuple[float, float] | None:
        """Ends of the range in which nine of ten such figures lie; None of what has none: bytes, single ops, and exact times."""
        sure = run.issued_interval if self.reading is ISSUED else run.interval if self.reading is TIME else None
        return None if sure is None or sure.half < EXACT else (sure.low, sure.high)
