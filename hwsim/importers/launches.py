"""GPU ops of a rank: their launching calls, launch latency, and gaps between ops of a stream.

The launch latency counts from the start of the call, because a kernel may start before the call returns. It is the 10 % quantile
over launches on an idle stream, or the duration of a longer call. Other launches include waits that are not in the file.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.recording import Ints, Rank, Small, What
from hwsim.importers.slice_links import NONE, SliceLinks
from hwsim.importers.threads import US, ThreadSegments
from hwsim.records import dataclass

SLOW: Final = 200 * US  # a longer launch call loads a module or waits for space in the launch queue
_ALREADY: Final = 20 * US  # a stream that is busy for this long after a launch has the op queued
_USUAL: Final = (5 * US, 1 * US)  # launch latency and stream gap without suitable launches in the file
_LONGEST: Final = 50 * US  # longest plausible launch latency and stream gap
_LAUNCH, _GAP = 10, 25  # quantiles (per cent)


@dataclass(frozen=True, slots=True, eq=False)
class GpuOps:
    """The kernels, copies and memsets of a rank, by queue and start.

    Args:
        slice: slice of each op.
        queue: queue of each op; ops that overlap on one stream are in several queues.
        lane: lane of each queue.
        previous: previous op of the queue; -1 for none.
        start: recorded start, later by up to the resolution of the clock if two ops of a stream overlap that little (fs).
        end: end (fs).
        call: outermost call that launched the op; -1 if unknown.
        at: start of that call (fs); -1 if unknown.
        over: end of that call (fs); -1 if unknown.
        is_late: whether the launch loaded a module, so that the op starts when the call ends.
        overlapping: (before, then) for ops of one stream in several queues.
    """

    slice: Small
    queue: Small
    lane: tuple[int, ...]
    previous: Ints
    start: Ints
    end: Ints
    call: Small
    at: Ints
    over: Ints
    is_late: NDArray[np.bool_]
    overlapping: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.slice)


def resolution(rank: Rank) -> int:
    """Return the resolution of the clock (fs); old files have whole microseconds."""
    slices = rank.slices
    return US if not (slices.start % US).any() and not (slices.duration % US).any() else 0


def gpu_ops(rank: Rank, linked: SliceLinks, outer_call: Small) -> GpuOps:
    """Return the GPU ops of a rank."""
    slices = rank.slices
    on_device = np.isin(slices.what, (What.KERNEL, What.COPY, What.SET))
    chosen = np.flatnonzero(on_device)
    order = chosen[np.lexsort((slices.start[chosen], slices.lane[chosen]))]
    lanes: list[int] = []
    queues: list[Small] = []
    parts: list[NDArray[np.intp]] = []
    tolerance = resolution(rank)
    for lane in np.unique(slices.lane[order]).tolist():
        rest = order[slices.lane[order] == lane]
        while rest.size:  # each round extracts a sequence without overlap
            latest = np.maximum.accumulate(slices.end[rest])
            follows = np.concatenate([[True], slices.start[rest[1:]] >= latest[:-1] - tolerance])
            queues.append(np.full(int(follows.sum()), len(lanes), np.int32))
            lanes.append(lane)
            parts.append(rest[follows])
            rest = rest[~follows]
    ops = np.concatenate([np.empty(0, np.intp), *parts])
    queue = np.concatenate([np.empty(0, np.int32), *queues])
    previous = np.arange(len(ops)) - 1
    previous[np.diff(queue, prepend=-1) != 0] = NONE
    start, end = slices.start[ops], slices.end[ops]
    for part in np.split(np.arange(len(ops)), np.flatnonzero(np.diff(queue)) + 1) if len(ops) else ():
        end[part] = np.maximum.accumulate(end[part])
    follower = previous >= 0
    start[follower] = np.maximum(start[follower], end[previous[follower]])
    inner = linked.call[ops]
    call = np.where(inner < 0, NONE, outer_call[inner]).astype(np.int32)
    at = np.where(call < 0, NONE, slices.start[call])
    over = np.where(call < 0, NONE, linked.ends[call])
    is_kernel = slices.what[ops] == What.KERNEL
    is_late = (call >= 0) & is_kernel & (over - at > SLOW) & (start > over - _ALREADY)
    overlapping = _overlapping(queue, tuple(lanes), start, end)
    return GpuOps(ops.astype(np.int32), queue, tuple(lanes), previous, start, end, call, at, over, is_late, overlapping)


def _overlapping(queue: Small, lane: tuple[int, ...], start: Ints, end: Ints) -> NDArray[np.int64]:
    """Return, for streams with several queues, each op and the last ended op of each other queue at its start."""
    pairs: list[NDArray[np.int64]] = []
    bounds = np.searchsorted(queue, np.arange(len(lane) + 1))
    for first in range(len(lane)):
        for second in range(len(lane)):
            if first == second or lane[first] != lane[second]:
                continue
            then = np.arange(bounds[first], bounds[first + 1])
            place = np.searchsorted(end[bounds[second] : bounds[second + 1]], start[then], side="right") - 1
            is_after = place >= 0
            pairs.append(np.column_stack([bounds[second] + place[is_after], then[is_after]]))
    return np.concatenate([np.empty((0, 2), np.int64), *pairs])


@dataclass(frozen=True, slots=True, eq=False)
class LaunchLatencies:
    """The latencies of a rank.

    Args:
        of: launch latency of each op, from the start of its call (fs).
        gap: gap between two ops of a stream (fs).
    """

    of: Ints
    gap: int


def latencies(rank: Rank, ops: GpuOps, waited_for: Ints) -> LaunchLatencies:
    """Return the launch latencies and the stream gap of a rank.

    An op on an idle stream starts a little after its call returns, so the duration of the call is part of the latency. A copy of
    pageable memory is staged inside its call, so the duration of the call is not used; the smallest latency of such copies is.

    Args:
        waited_for: end of the ops of other streams for which each op waits (fs).
    """
    before = np.where(ops.previous >= 0, ops.end[ops.previous], NONE)
    is_launched = (ops.call >= 0) & ~ops.is_late & (ops.start >= ops.at)
    is_idle = is_launched & (np.maximum(before, waited_for) <= ops.at)
    is_queued = is_launched & (before > ops.at + _ALREADY)
    staged = np.array([is_staged(name) for name in rank.names], bool)[rank.slices.name[ops.slice]]
    is_copy = rank.slices.what[ops.slice] == What.COPY
    waits = (ops.start - ops.at)[is_idle & ~(is_copy & staged)]
    launch, gap = _USUAL
    is_typical = not waits.size or _quantile(waits, _LAUNCH) > _LONGEST
    if not is_typical:
        launch = _quantile(waits, _LAUNCH)
    gaps = (ops.start - before)[is_queued]
    if not is_launched.any():  # without host threads, ops of a stream follow without a gap
        gap = 0
    if gaps.size and _quantile(gaps, _GAP) <= _LONGEST:
        gap = max(0, _quantile(gaps, _GAP))
    late = (ops.start - ops.over)[is_idle & ~is_copy]
    after = min(_quantile(late, _GAP), launch) if late.size and not is_typical else 0
    usual = np.full(len(ops), launch, np.int64)
    call = ops.over - ops.at
    seen = np.clip(ops.start - ops.at, launch, np.maximum(launch, np.minimum(call + after, SLOW)))
    usual = np.where(is_idle, seen, usual)
    name = rank.slices.name[ops.slice]
    for kind in np.unique(name[is_copy & staged]).tolist():
        mine = is_copy & (name == kind)
        least = (ops.start - ops.at)[mine & is_idle]
        usual[mine] = min(launch, int(least.min())) if least.size else launch
    usual[ops.is_late] = 0
    return LaunchLatencies(usual, gap)


def is_staged(name: str) -> bool:
    """Return whether a copy may use pageable memory, by its name."""
    return "Pinned" not in name and "DtoD" not in name and "PtoP" not in name


def _quantile(values: Ints, percent: int) -> int:
    return int(np.partition(values, len(values) * percent // 100)[len(values) * percent // 100])


def cuts_of_late(rank: Rank, ops: GpuOps) -> dict[int, Ints]:
    """Return the times at which calls are split because a kernel starts, by lane of the thread."""
    chosen = ops.is_late & (ops.start < ops.over)
    lane = rank.slices.lane[ops.call[chosen]]
    return {number: ops.start[chosen][lane == number] for number in np.unique(lane).tolist()}


def launching_pieces(rank: Rank, pieces: ThreadSegments, ops: GpuOps) -> Ints:
    """Return the host segment after which each op is launched; -1 without a launch.

    If a kernel starts before its call, because the clocks differ, it follows the last segment that has ended by then.
    """
    piece = np.full(len(ops), NONE, np.int64)
    chosen = np.flatnonzero(ops.call >= 0)
    time = np.where(ops.is_late, np.minimum(ops.over, ops.start), ops.at)[chosen]
    time = np.minimum(time, ops.start[chosen])
    piece[chosen] = pieces.before(pieces.threads(rank.slices.lane[ops.call[chosen]]), time)
    return piece
