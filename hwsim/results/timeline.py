"""The timeline of a simulated run: start and end of each op, the limiting capacities over time, and loops simulated in part."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from hwsim import ticks
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass

_start = attrgetter("start")
ALL: Final = slice(None)

NEARLY_EQUAL: Final = 30  # leading bits that must agree for equal paces


class PaceChange(NamedTuple):
    """A change of the pace of a class of identical demands.

    Args:
        start: time of the change (fs).
        pace: new pace.
        bound: index of the limiting capacity in `OpGraph.capacities`; -1 for none.
    """

    start: int  # fs
    pace: int
    bound: int  # index into OpGraph.capacities


class LimitChange(NamedTuple):
    """A change of the limiting capacity of a class of identical demands.

    Args:
        start: time of the change (fs).
        bound: index of the limiting capacity in `OpGraph.capacities`; -1 for none.
        is_nearly_free: whether the pace is that without a limit, except for rounding.
    """

    start: int  # fs
    bound: int  # index into OpGraph.capacities
    is_nearly_free: bool


Change = TypeVar("Change", PaceChange, LimitChange)


class ReceivedService(NamedTuple):
    """Service that an op received while it flowed.

    Args:
        begun: start of the flow (fs).
        service: sum of pace x time (fs).
        pace: pace at the end.
    """

    begun: int
    service: int
    pace: int


@dataclass(frozen=True)
class Timeline:
    """Start and end of each op of a flat graph, in integer fs.

    Args:
        flat: flat op graph.
        start, end: start and end of each op (fs).
        granted: for an op that waited for a pool, the op whose end released the server; else -1.
        flow_class: class of demands of each op while it flowed; -1 if it never competed.
        paces: pace changes by class.
        alone: pace of each class without a limit.
        solves: number of times the rates were solved.
        played: ops, in order, that ended when their last simulated request was served.
        received: by op, service summed up during the flow.
        drawing: by op, start of the flow (fs), for ops whose latency scales with a clock that changed.
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
    received: Mapping[int, ReceivedService] = field(default_factory=dict)
    drawing: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        start, end = ticks.alike(self.start, self.end)  # both columns need one dtype
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    @cached_property
    def makespan_fs(self) -> int:
        return int(self.end.max(initial=0)) if self.end.dtype != object else max(self.end.tolist(), default=0)

    @cached_property
    def found(self) -> dict[str, Any]:
        """Cache of derived results: the critical path, the usage."""
        return {}

    @property
    def makespan(self) -> float:
        """Time from 0 to the end of the last op (s)."""
        return self.makespan_fs / ticks.FEMTO

    def __len__(self) -> int:
        return len(self.start)

    def unfinished(self) -> list[int]:
        """Return the ops that never ended."""
        ended = self.end >= 0
        return [] if ended.all() else np.flatnonzero(~ended).tolist()

    def drawing_since(self, ops: Ints | slice = ALL) -> Ints:
        """Return the start of the flow of each op (fs): after its own time and its latency."""
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
        """Return (pace x fs received by a member of a class between two times, its pace at the end)."""
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

    def held(self, number: int) -> tuple[LimitChange, ...]:
        """Return the changes of the limiting capacity of a class over time."""
        held_of = getattr(self.paces, "held", None)  # recorded by compiled code
        if held_of is not None:
            return tuple(held_of(number))
        alone = self.alone[number]
        free = alone - (alone >> NEARLY_EQUAL)
        paces = ((pace, pace.pace < alone and pace.bound >= 0) for pace in self.paces[number])
        return tuple(
            drop_repeated(
                LimitChange(pace.start, pace.bound if is_held else -1, is_held and pace.pace >= free) for pace, is_held in paces
            )
        )


def drop_repeated(rows: Iterable[Change]) -> Iterator[Change]:
    """Yield the rows that differ from the previous row in more than the start."""
    before: Change | None = None
    for row in rows:
        if before is None or row[1:] != before[1:]:
            yield row
        before = row
