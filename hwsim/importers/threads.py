"""Split host threads into contiguous segments (runtime calls, ops and the time between them), and find waits between threads.

A thread is split at every runtime call, every outermost op and every step. Annotations of regions do not split it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.recording import HOST, Ints, Rank, Small, What
from hwsim.importers.slice_links import NONE, SliceLinks
from hwsim.records import dataclass

Indices = NDArray[np.intp]
US: Final = 10**9  # fs
IDLE: Final = 30 * US  # a longer gap between ops may be a wait for another thread
NEAR: Final = 1000 * US  # a waiting thread continues within this time, or within a tenth of its wait
STEP: Final = "ProfilerStep"


class SegmentKind(IntEnum):
    """Kinds of segments of a host thread."""

    START = 0  # before the first segment of the thread
    CALL = 1
    OP = 2
    BETWEEN = 3  # Python or idle


@dataclass(frozen=True, slots=True, eq=False)
class ThreadSegments:
    """The segments of the host threads of a rank, by thread and time. The first segment of a thread is its START.

    Args:
        lanes: lane of each thread.
        first: index of the first segment of each thread, then the number of segments.
        thread: thread of each segment.
        kind: `SegmentKind`.
        slice: outermost call of a CALL, outermost op of an OP; else -1.
        start: start (fs).
        end: end (fs).
    """

    lanes: tuple[int, ...]
    first: Ints
    thread: Small
    kind: NDArray[np.uint8]
    slice: Small
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.kind)

    def before(self, thread: NDArray[np.integer], time: Ints) -> Ints:
        """Return the last segment of each thread that has ended at a time; its START if none has."""
        numbers = np.zeros(len(time), np.int64)
        for number in np.unique(thread[thread >= 0]).tolist():
            begin, stop = int(self.first[number]), int(self.first[number + 1])
            is_here = thread == number
            place = np.searchsorted(self.end[begin:stop], time[is_here], side="right") - 1
            numbers[is_here] = begin + np.maximum(place, 0)
        return numbers

    def is_idle(self, lane: int, times: Ints) -> NDArray[np.bool_]:
        """Return whether the thread of a lane is idle at each time: in a gap longer than IDLE, or after its end."""
        if lane not in self.lanes:
            return np.ones(len(times), bool)
        thread = self.lanes.index(lane)
        begin, stop = int(self.first[thread]), int(self.first[thread + 1])
        place = begin + np.searchsorted(self.end[begin:stop], times, side="right")
        at = np.minimum(place, stop - 1)
        long = (self.kind[at] == SegmentKind.BETWEEN) & (self.end[at] - self.start[at] > IDLE)
        is_idle: NDArray[np.bool_] = (place >= stop) | long
        return is_idle

    def threads(self, lane: Small) -> Small:
        """Return the thread of each lane; -1 for a stream."""
        numbers = np.full(max((*self.lanes, int(lane.max(initial=0)))) + 1, NONE, np.int32)
        numbers[list(self.lanes)] = np.arange(len(self.lanes))
        return np.where(lane < 0, NONE, numbers[lane])


def outermost_calls(rank: Rank, linked: SliceLinks) -> Small:
    """Return the outermost call around each call, as runtime calls contain driver calls; -1 for other slices."""
    is_call = rank.slices.what == What.CALL
    top = np.where(is_call, np.arange(len(is_call), dtype=np.int32), NONE).astype(np.int32)
    while True:
        around = linked.parent[top]
        inner = (top >= 0) & (around >= 0) & is_call[around]
        if not inner.any():
            return top
        top[inner] = around[inner]


def cut(rank: Rank, linked: SliceLinks, outer_call: Small, also: Mapping[int, Ints]) -> ThreadSegments:
    """Split every host thread into segments.

    Args:
        also: additional times at which threads are split, by lane.
    """
    slices = rank.slices
    number = np.arange(len(slices))
    top_call = np.flatnonzero(outer_call == number)
    top_op = np.flatnonzero((slices.what == What.OP) & (linked.op < 0))
    is_step = np.array([name.startswith(STEP) for name in rank.names], bool)
    steps = np.flatnonzero((slices.what == What.MARK) & is_step[slices.name])
    lanes = [
        lane for lane in np.unique(slices.lane[np.concatenate([top_call, top_op])]).tolist() if rank.lanes[lane].device == HOST
    ]
    parts: list[tuple[Ints, Ints, NDArray[np.uint8], Small]] = []
    for lane in lanes:
        calls, ops, marks = (group[slices.lane[group] == lane] for group in (top_call, top_op, steps))
        both = np.concatenate([calls, ops])
        inside = (slices.start[both].min(), linked.ends[both].max())
        times = [
            slices.start[both],
            linked.ends[both],
            np.clip(slices.start[marks], *inside),
            np.clip(linked.ends[marks], *inside),
        ]
        points = np.sort(np.concatenate([*times, np.clip(also.get(lane, times[0][:1]), *inside)]))
        points = points[np.diff(points, prepend=-1) != 0]
        begin, end = points[:-1], points[1:]
        call, in_call = _around(begin, calls, slices.start, linked.ends)
        op, in_op = _around(begin, ops, slices.start, linked.ends)
        kind = np.where(in_call, SegmentKind.CALL, np.where(in_op, SegmentKind.OP, SegmentKind.BETWEEN)).astype(np.uint8)
        parts.append(
            (
                np.concatenate([[0], begin]),
                np.concatenate([inside[:1], end]),
                np.concatenate([[SegmentKind.START], kind]).astype(np.uint8),
                np.concatenate([[NONE], np.where(in_call, call, np.where(in_op, op, NONE))]).astype(np.int32),
            )
        )
    lengths = [len(part[0]) for part in parts]
    empty = np.empty(0, np.int64)
    return ThreadSegments(
        lanes=tuple(lanes),
        first=np.cumsum([0, *lengths]).astype(np.int64),
        thread=np.repeat(np.arange(len(lanes), dtype=np.int32), lengths),
        start=np.concatenate([empty, *(part[0] for part in parts)]),
        end=np.concatenate([empty, *(part[1] for part in parts)]),
        kind=np.concatenate([empty.astype(np.uint8), *(part[2] for part in parts)]),
        slice=np.concatenate([empty.astype(np.int32), *(part[3] for part in parts)]),
    )


def _around(times: Ints, among: Indices, start: Ints, ends: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the slice that contains each time, for slices without overlap, and whether there is one."""
    long = among[ends[among] > start[among]]  # a slice without duration contains no time
    if not long.size:
        return np.full(len(times), NONE, np.int64), np.zeros(len(times), bool)
    place = np.searchsorted(start[long], times, side="right") - 1
    inside = long[np.maximum(place, 0)]
    return inside, (place >= 0) & (ends[inside] > times)


@dataclass(frozen=True, slots=True, eq=False)
class ThreadDependencies:
    """Dependencies: row `then` starts or ends after row `before`."""

    before: Ints
    then: Ints

    def joined(self, pairs: Ints) -> Self:
        """Return the dependencies with additional rows (before, then)."""
        before, then = (np.concatenate([mine, pairs[:, side]]) for side, mine in enumerate((self.before, self.then)))
        return replace(self, before=before, then=then)


def crossings(pieces: ThreadSegments) -> ThreadDependencies:
    """Return the segments for which idle threads and new threads wait.

    An idle thread continues when a burst of another thread ends. The first segment of a thread follows the last ended segment of
    all other threads.
    """
    is_last = np.zeros(len(pieces), bool)
    is_last[pieces.first[1:] - 1] = True
    is_idle = (pieces.kind == SegmentKind.BETWEEN) & (pieces.end - pieces.start > IDLE)
    next_idle = np.concatenate([is_idle[1:], [False]])
    bursts = np.flatnonzero((pieces.kind != SegmentKind.BETWEEN) & (pieces.kind != SegmentKind.START) & (is_last | next_idle))
    idle = np.flatnonzero(is_idle)
    before = _latest_elsewhere(pieces, bursts, idle, pieces.end[idle])
    length = pieces.end[idle] - pieces.start[idle]
    since = pieces.end[idle] - pieces.end[before]
    is_close = (before >= 0) & (pieces.end[before] > pieces.start[idle]) & (since < np.maximum(NEAR, length // 10))
    starts = np.flatnonzero((pieces.kind == SegmentKind.START) & (pieces.end > 0))
    work = np.flatnonzero(pieces.kind != SegmentKind.START)
    earlier = _latest_elsewhere(pieces, work, starts, pieces.end[starts])
    return ThreadDependencies(
        np.concatenate([before[is_close], earlier[earlier >= 0]]), np.concatenate([idle[is_close], starts[earlier >= 0]])
    )


def _latest_elsewhere(pieces: ThreadSegments, among: Indices, asking: Indices, times: Ints) -> Ints:
    """Return, for each segment of `asking`, the segment of another thread that ends last by its time; -1 for none."""
    if not among.size or not asking.size:
        return np.full(len(asking), NONE, np.int64)
    order = among[np.argsort(pieces.end[among], kind="stable")]
    thread = pieces.thread[order]
    begins = np.maximum.accumulate(np.where(np.diff(thread, prepend=-1) != 0, np.arange(len(order)), 0))
    place = np.searchsorted(pieces.end[order], times, side="right") - 1
    at = np.maximum(place, 0)
    same = thread[at] == pieces.thread[asking]
    place = np.where(same, begins[at] - 1, place)  # skip the segments of its own thread
    return np.where(place >= 0, order[np.maximum(place, 0)], NONE)
