"""The run as simulated: start and end of every op, what held it back, and how much of a long loop was simulated."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from itertools import zip_longest
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.formats import format_quantity
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass

_start = attrgetter("start")


class PaceChange(NamedTuple):
    """From `start` on, a class of identical demands ran at `pace`; `bound` is the capacity that held it back (-1: nothing)."""

    start: int  # fs
    pace: int
    bound: int  # index into OpGraph.capacities


@dataclass(frozen=True)
class Timeline:
    """Start and end of every op of a flat graph, in integer fs.

    granted: for an op that waited for a pool, the op whose end freed the server, else -1.
    flow_class: class of demands the op belonged to while it flowed, -1 if it never competed.
    paces: per class, its history; one entry per change.
    alone: pace of each class when nothing holds it back.
    played: ops that ended when their requests had been served one by one, in order.
    """

    flat: FlatGraph
    start: Ints
    end: Ints
    granted: Ints
    flow_class: Ints
    paces: Sequence[Sequence[PaceChange]] = ()
    alone: tuple[int, ...] = ()
    solves: int = 0
    played: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        start, end = ticks.alike(self.start, self.end)  # columns that meet have one dtype
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    @cached_property
    def makespan_fs(self) -> int:
        return int(self.end.max(initial=0)) if self.end.dtype != object else max(self.end.tolist(), default=0)

    @cached_property
    def found(self) -> dict[str, Any]:
        """Results worked out of it, kept for later questions: the critical path, the usage."""
        return {}

    @property
    def makespan(self) -> float:
        """Seconds from 0 to the end of the last op."""
        return self.makespan_fs / ticks.FEMTO

    def __len__(self) -> int:
        return len(self.start)

    def unfinished(self) -> list[int]:
        """Ops that never ended."""
        return np.flatnonzero(self.end < 0).tolist()

    def service(self, number: int, begin: int, end: int) -> tuple[int, int]:
        """(pace x fs that a member of a class received from begin to end, its pace at the end)."""
        of_columns = getattr(self.paces, "service", None)  # of a history that compiled code has written
        if of_columns is not None:
            served: tuple[int, int] = of_columns(number, begin, end)
            return served
        history = self.paces[number]
        low, high = bisect_right(history, begin, key=_start), bisect_left(history, end, key=_start)
        course = history[max(0, low - 1) : high]
        total = last = 0
        for pace, after in zip_longest(course, course[1:]):
            since, until = max(begin, pace.start), end if after is None else after.start
            if until > since:
                total += pace.pace * (until - since)
                last = pace.pace
        return total, last


@dataclass(frozen=True, slots=True)
class Steady:
    """Iterations that were simulated of a loop of `times` iterations.

    Args:
        turns: iterations that repeat together: more than one if an op waits for one of several iterations ago.
        period: fs from these iterations to the next, 0 if they never repeated (`why` says what was in the way).
        identical: successive iterations that were the same but for that shift.
    """

    times: int
    simulated: int
    period: int = 0
    identical: int = 0
    why: str = ""
    turns: int = 1

    def __str__(self) -> str:
        if not self.period:
            return f"all {self.times:,} iterations simulated"
        many = "one" if self.turns == 1 else str(self.turns)
        return (
            f"{self.simulated:,} of {self.times:,} iterations simulated; {self.identical} in a row "
            f"were the same to the femtosecond, {many} every {format_quantity(self.period / ticks.FEMTO, 's')}"
        )
