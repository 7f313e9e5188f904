"""The critical path: for every femtosecond of a run, the op that the run waited for, and the cause.

The path is walked back from the op that ended last. Before an op started, the run waited for the predecessor that ended last,
or for the op that released the server of a pool. The segments cover the run from 0 to its end without gaps, so the causes add
up to the makespan exactly, in integer fs.

While a ready op on the path has no server, the cause is the pool, whatever the op on that server does.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.formats import family, natural
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.cause import Cause, Causes
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

AT_ONCE: Final = 1 << 17  # ops per block when searching predecessors


@dataclass(frozen=True, slots=True)
class PathSegment:
    """A time span in which the run waited for one op with one cause.

    Args:
        op: number of the op.
        start_fs, end_fs: start and end (fs).
        cause: cause.
    """

    op: int
    start_fs: int
    end_fs: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Share:
    """A cause with its time and its share of the run.

    Args:
        cause: cause.
        time_fs: time on the critical path (fs).
        share: share of the run (fraction).
    """

    cause: Cause
    time_fs: int
    share: float

    @property
    def time_s(self) -> float:
        """Time on the critical path (s)."""
        return self.time_fs / FEMTO


@dataclass(frozen=True)
class CriticalPath:
    """Segments of the critical path as columns, in order of time.

    Args:
        op: op numbers.
        start, end: starts and ends (fs).
        cause: indices into `causes`.
        causes: causes.
    """

    op: Ints
    start: Ints
    end: Ints
    cause: Ints
    causes: tuple[Cause, ...]

    def __len__(self) -> int:
        return len(self.op)

    def __iter__(self) -> Iterator[PathSegment]:
        columns = (self.op.tolist(), self.start.tolist(), self.end.tolist(), self.cause.tolist())
        for op, start, end, cause in zip(*columns, strict=True):
            yield PathSegment(op, start, end, self.causes[cause])

    @cached_property
    def limited_by(self) -> tuple[Share, ...]:
        """Causes, longest first, ties by name; their times add up to the makespan."""
        spent = ticks.totals(self.end - self.start, self.cause, len(self.causes))
        total = sum(spent)  # integers
        rows = [Share(cause, time, time / total) for cause, time in zip(self.causes, spent, strict=True) if time]
        return tuple(sorted(rows, key=lambda row: (-row.time_fs, row.cause)))


def critical_path(timeline: Timeline, *, pools: bool = True, last: int | None = None) -> CriticalPath:
    """Return the critical path in O(ops + edges); vectorised except for the walk.

    Args:
        timeline: timeline.
        last: op at the end of the path; default: the op that ends last.
        pools: whether waiting for a server has the pool as its cause; else the cause is that of the op on the server.
    """
    if not timeline.makespan_fs:
        none = np.empty(0, np.int64)
        return CriticalPath(none, timeline.start[:0], timeline.end[:0], none, ())
    if last is not None:
        return _pieces(timeline, walk(timeline, last), pools=pools)
    if "path" not in timeline.found:
        timeline.found["path"] = walk(timeline)
    path, paths = timeline.found["path"], timeline.found.setdefault("paths", {})
    waits = pools and bool((timeline.granted[path] >= 0).any())
    if waits not in paths:
        paths[waits] = _pieces(timeline, path, pools=waits)
    pieces: CriticalPath = paths[waits]
    return pieces


def op_segments(timeline: Timeline, ops: Ints) -> tuple[PathSegment, ...]:
    """Return the segments of these ops from start to end, whether or not they are on the critical path."""
    return tuple(piece for piece in _pieces(timeline, ops) if piece.start_fs >= timeline.start[piece.op])


def split_at_paces(timeline: Timeline, path: CriticalPath) -> CriticalPath:
    """Return the path with segments also split where the pace of their op changed but not the cause."""
    body = _starts(timeline, path.op)[1]
    of_class = np.where(np.isin(path.op, timeline.played), -1, timeline.flow_class[path.op])
    changes: dict[int, list[int]] = {-1: []}
    cuts = []
    rows = zip(of_class.tolist(), np.maximum(path.start, body).tolist(), path.end.tolist(), strict=True)
    for number, low, high in rows:
        if number not in changes:
            changes[number] = [pace.start for pace in timeline.paces[number]]
        course = changes[number]
        cuts.append(course[bisect_right(course, low) : bisect_left(course, high)])
    which = np.repeat(np.arange(len(path)), [len(cut) + 1 for cut in cuts])
    starts = [time for start, inside in zip(path.start.tolist(), cuts, strict=True) for time in (start, *inside)]
    ends = [time for end, inside in zip(path.end.tolist(), cuts, strict=True) for time in (*inside, end)]
    start, end = ticks.matching(starts, path.end), ticks.matching(ends, path.end)
    return CriticalPath(path.op[which], start, end, path.cause[which], path.causes)


def limited_by(timeline: Timeline) -> tuple[Share, ...]:
    """Return the causes on the critical path of a run; see `CriticalPath.limited_by`."""
    return critical_path(timeline).limited_by


def last_predecessors(timeline: Timeline) -> Ints:
    """Return for each op the op that it waited for, or -1.

    That is the op that released its server, else the predecessor that ended last; of several, the one with the lowest number.
    """
    end, last = timeline.end, np.full(len(timeline), -1, np.int64)
    latest = np.full(len(timeline), -1, end.dtype)
    parts = range(0, len(timeline), AT_ONCE)
    for begin in parts:
        source, target = timeline.flat.edges(begin, begin + AT_ONCE)
        np.maximum.at(latest, target, end[source])
    for begin in reversed(parts):
        source, target = timeline.flat.edges(begin, begin + AT_ONCE)
        best = np.flatnonzero((end[source] == latest[target]).astype(np.bool_))[::-1]
        last[target[best]] = source[best]  # in reverse order: of equals, the first is written last
    return np.where(timeline.granted >= 0, timeline.granted, last)


def ready_times(timeline: Timeline, ops: Ints) -> Ints:
    """Return the end of the last predecessor of each of these ops (fs); 0 without one."""
    place = np.full(len(timeline), -1, np.int64)
    place[ops] = np.arange(len(ops))
    source, target = timeline.flat.edges()
    among = place[target] >= 0
    times = np.zeros(len(ops), timeline.end.dtype)
    np.maximum.at(times, place[target[among]], timeline.end[source[among]])
    return times


def families(shares: Iterable[Share]) -> list[tuple[str, int, float]]:
    """Return (cause, fs, share of the run), longest first; causes of one family are joined, a single member keeps its name."""
    members: dict[str, list[Share]] = {}
    for share in shares:
        members.setdefault(family(str(share.cause)), []).append(share)
    rows = [
        (
            str(alike[0].cause) if len(alike) == 1 else name,
            sum(share.time_fs for share in alike),
            math.fsum(share.share for share in alike),
        )
        for name, alike in members.items()
    ]
    return sorted(rows, key=lambda row: (-row[1], natural(row[0])))


def walk(timeline: Timeline, last: int | None = None) -> Ints:
    """Return the op numbers on the path to an op, default the one that ends last, in order of time."""
    if last is None:
        last = int(np.flatnonzero((timeline.end == timeline.makespan_fs).astype(np.bool_))[0])
        return walk_back(last, last_predecessors(timeline).data)  # not a list: most ops are on no path
    before = timeline.found.get("before")
    if before is None:  # jobs have a path each
        before = timeline.found["before"] = last_predecessors(timeline).tolist()
    return walk_back(last, before)


def walk_back(op: int, before: Sequence[int]) -> Ints:
    """Return the op numbers on the path to an op, in order of time.

    Args:
        op: last op.
        before: for each op, the op that it waited for; -1 for none.

    Raises:
        ValueError: the ops wait for each other in a cycle.
    """
    path = []
    for _ in range(len(before)):
        if op < 0:
            break
        path.append(op)
        op = before[op]
    if op >= 0:
        raise ValueError("the ops of the timeline wait for each other in a cycle")
    return np.array(path[::-1], np.int64)


def _pieces(timeline: Timeline, path: Ints, *, pools: bool = True) -> CriticalPath:
    """Split each op of the path into waiting, own time, latency, and causes of its body."""
    flat = timeline.flat
    causes = Causes(flat.graph)
    start, end = timeline.start[path], timeline.end[path]
    reached = np.concatenate([np.zeros(1, end.dtype), end[:-1]])
    begin, body = _starts(timeline, path)
    pairs, pair_of = causes.pairs(flat.cost[path], flat.label[path])
    alone = causes.alone(pairs)
    numbers = [causes.of_labels("wait", pairs), causes.of_labels("time", pairs)]
    cuts = [np.minimum(reached, start), start, begin]
    for number, until in _latencies(causes.latencies(pairs), pair_of, begin, body):
        numbers.append(number)
        cuts.append(until)
    moments, table = np.stack([*cuts, end]), np.array([*numbers, alone], np.int64)
    taken = (moments[1:] > moments[:-1]).astype(np.bool_)
    flow_class = timeline.flow_class[path]
    if len(timeline.played):
        flow_class = np.where(np.isin(path, timeline.played), -1, flow_class)
    flows = flow_class >= 0
    flowing = flows.any()
    if flowing:
        taken[-1, flows] = False
    position, part = np.divmod(np.flatnonzero(taken.T), len(taken))  # op by op, in order of time
    place = part * len(path) + position
    low, high = moments.ravel()[place], moments.ravel()[place + len(path)]
    cause = table.ravel().take(part * len(pairs) + pair_of.take(position))
    if flowing:
        columns = [(position, low, high, cause)]
        for class_number in ticks.distinct(flow_class[flows]).tolist():
            members = np.flatnonzero(flow_class == class_number)
            columns.append(
                _flowing(timeline, class_number, members, body[members], end[members], table[-1].take(pair_of[members]))
            )
        position, low, high, cause = (np.concatenate(column) for column in zip(*columns, strict=True))
        kept = np.flatnonzero((high > low).astype(np.bool_))
        order = kept[np.argsort(low[kept], kind="stable")]
        position, low, high, cause = position[order], low[order], high[order], cause[order]
    if pools:
        position, low, high, cause = _lack_servers(timeline, path, position, low, high, cause, causes)
    return CriticalPath(path[position], low, high, cause, causes.table)


def _starts(timeline: Timeline, ops: Ints) -> tuple[Ints, Ints]:
    """Return (start of the latency, start of the body) of these ops (fs)."""
    begin = np.minimum(ticks.add(timeline.start[ops], timeline.flat.time[ops]), timeline.end[ops])
    return begin, timeline.drawing_since(ops)


def _latencies(
    latencies: Sequence[Sequence[tuple[int, int]]], pair_of: Ints, begin: Ints, body: Ints
) -> Iterator[tuple[list[int], Ints]]:
    """Yield the parts of the latencies of ops: (number of the cause by pair, end of the part by op in fs)."""
    steps = max(map(len, latencies), default=0)
    for step in range(steps):
        number = [parts[step][0] if step < len(parts) else 0 for parts in latencies]
        if step == steps - 1:
            yield number, body
            return
        last = np.array([step >= len(parts) - 1 for parts in latencies], np.bool_)[pair_of]
        ends = ticks.matching([parts[step][1] if step < len(parts) else 0 for parts in latencies], body)[pair_of]
        yield number, np.where(last, body, np.minimum(ticks.add(begin, ends), body))


def _flowing(timeline: Timeline, number: int, place: Ints, begin: Ints, end: Ints, alone: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Split the bodies of ops of one class where the limiting capacity changed.

    While no capacity limits the op, or only by rounding, the cause is that of an unloaded op.
    """
    held = timeline.held(number)
    if not held:
        return place, begin, end, alone
    bound = np.array([-1 if limit.is_nearly_free else limit.bound for limit in held], np.int64)
    differs = np.concatenate([[True], bound[1:] != bound[:-1]])
    changes, bound = ticks.matching([limit.start for limit in held], timeline.end)[differs], bound[differs]
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


def _lack_servers(
    timeline: Timeline, path: Ints, position: Ints, low: Ints, high: Ints, cause: Ints, causes: Causes
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the segments of a path in order of time, with the pool as the cause while an op waits for a server.

    If several ops wait, one behind the other, it is the pool of the op nearest to the running one.
    """
    pools = timeline.flat.graph.pools
    shown = np.array([not pool.backend for pool in pools], np.bool_)
    waiting = np.flatnonzero(timeline.granted[path] >= 0)
    waiting = waiting[shown[timeline.flat.take[path[waiting]]]]
    if not len(waiting):
        return position, low, high, cause
    ready = dict(zip(waiting.tolist(), ready_times(timeline, path[waiting]).tolist(), strict=True))
    rows: list[tuple[int, int, int, int]] = []
    since: list[tuple[int, int]] = []  # (ready, cause) of later ops on the path; the nearest op is the last entry
    behind = list(waiting.tolist())
    for op, begin, end, present in zip(
        position.tolist()[::-1], low.tolist()[::-1], high.tolist()[::-1], cause.tolist()[::-1], strict=True
    ):
        while behind and behind[-1] > op:
            number = behind.pop()
            pool = pools[int(timeline.flat.take[path[number]])]
            since.append((ready[number], causes.number(Cause("pool", pool.name))))
        until = end
        while until > begin:
            while since and since[-1][0] >= until:
                since.pop()
            why, start = (since[-1][1], max(begin, since[-1][0])) if since else (present, begin)
            rows.append((op, start, until, why))
            until = start
    ops_and_causes = np.array([(op, why) for op, _, _, why in rows[::-1]], np.int64).reshape(-1, 2)
    starts, ends = ([row[column] for row in rows[::-1]] for column in (1, 2))
    return ops_and_causes[:, 0], ticks.matching(starts, high), ticks.matching(ends, high), ops_and_causes[:, 1]
