"""The run as simulated: start and end of every op, what held it back, and how much of a long loop was simulated."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass

_start = attrgetter("start")
ALL: Final = slice(None)

NEARLY_EQUAL: Final = 30  # leading bits in which equal paces agree


class PaceChange(NamedTuple):
    """From `start` on, a class of identical demands ran at `pace`; `bound` is the capacity that held it back (-1: nothing)."""

    start: int  # fs
    pace: int
    bound: int  # index into OpGraph.capacities


class Held(NamedTuple):
    """From `start` on, a capacity held a class of identical demands back; `bound` is -1 if none did.

    is_nearly_free: it hardly did: the paces are equal but for rounding.
    """

    start: int  # fs
    bound: int  # index into OpGraph.capacities
    is_nearly_free: bool


class Received(NamedTuple):
    """When an op began to flow (fs), pace x fs that it received in all, and its pace at the end."""

    begun: int
    service: int
    pace: int


@dataclass(frozen=True)
class Timeline:
    """Start and end of every op of a flat graph, in integer fs.

    granted: for an op that waited for a pool, the op whose end freed the server, else -1.
    flow_class: class of demands the op belonged to while it flowed, -1 if it never competed.
    paces: per class, its history; one entry per change.
    alone: pace of each class when nothing holds it back.
    played: ops that ended when their requests had been served one by one, in order.
    received: by op, of some that flowed, as summed up while they did.
    drawing: when ops began to draw whose start went at a clock that changed, in fs.
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
    received: Mapping[int, Received] = field(default_factory=dict)
    drawing: Mapping[int, int] = field(default_factory=dict)

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
        ended = self.end >= 0
        return [] if ended.all() else np.flatnonzero(~ended).tolist()

    def drawing_since(self, ops: Ints | slice = ALL) -> Ints:
        """When ops start to draw, in fs: after their own time and their latency."""
        flat, end = self.flat, self.end[ops]
        latency = ticks.column([*(ticks.femtoseconds(cost.demand.latency) for cost in flat.graph.costs), 0])
        begin = ticks.add(self.start[ops], flat.time[ops])
        if latency.any():
            begin = ticks.add(begin, latency[flat.cost[ops]])
        if self.drawing:
            numbers = np.arange(len(self))[ops].tolist()
            begin = ticks.column([self.drawing.get(op, since) for op, since in zip(numbers, begin.tolist(), strict=True)])
        return ticks.matching(np.minimum(*ticks.alike(begin, end)), self.end)

    def service(self, number: int, begin: int, end: int) -> tuple[int, int]:
        """(pace x fs that a member of a class received from begin to end, its pace at the end)."""
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

    def held(self, number: int) -> tuple[Held, ...]:
        """The capacities that held a class back over time; one entry per change."""
        held_of = getattr(self.paces, "held", None)  # of notes by compiled code
        if held_of is not None:
            rows: tuple[Held, ...] = held_of(number)
            return rows
        alone = self.alone[number]
        free = alone - (alone >> NEARLY_EQUAL)
        paces = ((each, each.pace < alone and each.bound >= 0) for each in self.paces[number])
        return tuple(
            differing(Held(each.start, each.bound if is_held else -1, is_held and each.pace >= free) for each, is_held in paces)
        )


def differing(rows: Iterable[Held]) -> Iterator[Held]:
    """Those that say something else than the one before."""
    before: Held | None = None
    for row in rows:
        if before is None or row[1:] != before[1:]:
            yield row
        before = row
