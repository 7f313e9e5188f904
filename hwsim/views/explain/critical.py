"""The critical path: which op, doing what, every femtosecond of a run waited for.

Walking back from the op that ended last: before an op started, the run waited for the predecessor
that ended last, or for the op that gave back the server of a pool.  The pieces tile the run from 0
to its end, so the causes add up to the makespan exactly, in integer fs.

While an op of the path was ready but had no server, the pool is the cause, whatever the op did that had it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.timeline import FEMTO, Timeline
from hwsim.views.explain.cause import Cause, Causes
from hwsim.views.explain.pools import lack_servers

ROUNDED: Final = 30  # paces that agree in so many bits are the same


@dataclass(frozen=True, slots=True)
class Segment:
    """From `start_fs` to `end_fs` the run waited for this op, and the op for this cause."""

    op: int
    start_fs: int
    end_fs: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Share:
    """A cause and how much of the run it accounts for."""

    cause: Cause
    time_fs: int
    share: float

    @property
    def time_s(self) -> float:
        """Seconds."""
        return self.time_fs / FEMTO


@dataclass(frozen=True)
class CriticalPath:
    """Columns of equal length, in order of time; `cause` indexes `causes`."""

    op: Ints
    start: Ints
    end: Ints
    cause: Ints
    causes: tuple[Cause, ...]

    def __len__(self) -> int:
        return len(self.op)

    def __iter__(self) -> Iterator[Segment]:
        columns = (self.op.tolist(), self.start.tolist(), self.end.tolist(), self.cause.tolist())
        for op, start, end, cause in zip(*columns, strict=True):
            yield Segment(op, start, end, self.causes[cause])

    @cached_property
    def limited_by(self) -> tuple[Share, ...]:
        """Causes by time, longest first, ties by name; the times add up to the makespan."""
        spent = [0] * len(self.causes)
        order = np.argsort(self.cause, kind="stable")
        took = (self.end - self.start)[order]
        numbers, firsts = np.unique(self.cause[order], return_index=True)
        for number, total in zip(numbers.tolist(), ticks.group_totals(took, firsts).tolist(), strict=True):
            spent[number] = total
        whole = sum(spent)  # whole
        rows = [Share(cause, time, time / whole) for cause, time in zip(self.causes, spent, strict=True) if time]
        return tuple(sorted(rows, key=lambda row: (-row.time_fs, row.cause)))


def critical_path(timeline: Timeline) -> CriticalPath:
    """The pieces of time that the run consisted of.  O(ops + edges), vectorised but for the walk itself."""
    if not timeline.makespan_fs:
        none = np.empty(0, np.int64)
        return CriticalPath(none, timeline.start[:0], timeline.end[:0], none, ())
    path = walk(timeline)
    return _pieces(timeline, path)


def pieces(timeline: Timeline, op: int) -> tuple[Segment, ...]:
    """What held one op from its start to its end, on the path or not."""
    found = _pieces(timeline, np.array([op], np.int64))
    start = int(timeline.start[op])
    return tuple(piece for piece in found if piece.start_fs >= start)


def limited_by(timeline: Timeline) -> tuple[Share, ...]:
    """What the run spent its time on along the critical path; see `CriticalPath.limited_by`."""
    return critical_path(timeline).limited_by


def last_predecessors(timeline: Timeline) -> Ints:
    """Per op the one it waited for: whose end freed its server, else the predecessor that ended last (-1: none).

    Of several that ended together, the one with the lowest number.
    """
    source, target = timeline.flat.edges()
    found = np.full(len(timeline), -1, np.int64)
    if len(source):
        order = np.lexsort((source, target))
        source, target = source[order], target[order]
        ended = timeline.end[source]
        heads = np.flatnonzero(np.concatenate([[True], target[1:] != target[:-1]]))
        latest = np.repeat(np.maximum.reduceat(ended, heads), np.diff([*heads.tolist(), len(target)]))
        best = np.flatnonzero((ended == latest).astype(np.bool_))[::-1]  # backwards: the first of equals is written last
        found[target[best]] = source[best]
    return np.where(timeline.granted >= 0, timeline.granted, found)


def walk(timeline: Timeline) -> Ints:
    """Op numbers of the path in order of time."""
    before = last_predecessors(timeline).tolist()
    op = int(np.flatnonzero((timeline.end == timeline.makespan_fs).astype(np.bool_))[0])
    path = []
    while op >= 0:
        path.append(op)
        if len(path) > len(before):
            raise ValueError("the timeline's ops wait for each other in a circle")
        op = before[op]
    return np.array(path[::-1], np.int64)


def _pieces(timeline: Timeline, path: Ints) -> CriticalPath:
    """Cut every op of the path into waiting, own time, latency and what held its body back."""
    flat = timeline.flat
    causes = Causes(flat.graph)
    label = flat.label[path]
    start, end = timeline.start[path], timeline.end[path]
    reached = np.concatenate([np.zeros(1, end.dtype), end[:-1]])
    latency = ticks.matching([*(ticks.femtoseconds(cost.demand.latency) for cost in flat.graph.costs), 0], end)
    begin = np.minimum(ticks.add(start, flat.time[path]), end)
    body = np.minimum(ticks.add(begin, latency[flat.cost[path]]), end)
    place = np.arange(len(path))
    alone = causes.alone(flat.cost[path], label)
    columns = [
        (place, np.minimum(reached, start), start, causes.of_label("wait", label)),
        (place, start, begin, causes.of_label("time", label)),
        *_latencies(causes, flat.cost[path], label, begin, body),
    ]
    flow_class = np.where(np.isin(path, timeline.played), -1, timeline.flow_class[path])
    calm = flow_class < 0
    columns.append((place[calm], body[calm], end[calm], alone[calm]))
    for number in np.unique(flow_class[~calm]).tolist():
        here = np.flatnonzero(flow_class == number)
        columns.append(_flowing(timeline, number, here, body[here], end[here], alone[here]))
    at, low, high, cause = (np.concatenate(column) for column in zip(*columns, strict=True))
    kept = np.flatnonzero((high > low).astype(np.bool_))
    order = kept[np.argsort(low[kept], kind="stable")]
    at, low, high, cause = lack_servers(timeline, path, at[order], low[order], high[order], cause[order], causes)
    return CriticalPath(path[at], low, high, cause, causes.table)


def _latencies(causes: Causes, cost: Ints, label: Ints, begin: Ints, body: Ints) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """The latencies of ops, cut where one part of the machine hands on to the next."""
    parts, which = causes.latencies(cost, label)
    low = begin
    for step in range(max(map(len, parts), default=0)):
        number = np.array([part[step][0] if step < len(part) else 0 for part in parts], np.int64)[which]
        last = np.array([step >= len(part) - 1 for part in parts], np.bool_)[which]
        ends = ticks.matching([part[step][1] if step < len(part) else 0 for part in parts], body)[which]
        high = np.where(last, body, np.minimum(ticks.add(begin, ends), body))
        yield np.arange(len(which)), low, high, number
        low = high


def _flowing(timeline: Timeline, number: int, place: Ints, begin: Ints, end: Ints, alone: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Pieces of bodies of one class, cut where its pace changed.

    Where nothing holds the op back, or so little that only the rounding shows, it has the cause of an op alone.
    """
    history = timeline.paces[number]
    if not history:
        return place, begin, end, alone
    changes = ticks.matching([pace.start for pace in history], timeline.end)
    free = timeline.alone[number] - (timeline.alone[number] >> ROUNDED)
    bound = np.array([pace.bound if pace.pace < free else -1 for pace in history], np.int64)
    first = np.maximum(np.searchsorted(changes, begin, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(changes, end, side="left"), first + 1)
    count = last - first
    which = np.repeat(np.arange(len(place)), count)
    step = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]
    after = step + 1
    opens, closes = step == first[which], after == last[which]
    low = np.where(opens, begin[which], changes[step])
    high = np.where(closes, end[which], changes[np.minimum(after, len(changes) - 1)])
    return place[which], low, high, np.where(bound[step] >= 0, bound[step], alone[which])
