"""Find waits between streams: a GPU op after a wait for an event starts when the ops before the event have ended.

Kineto's cuda_sync names the event of a wait. Without it, the usual pattern of libraries is assumed: the event was recorded on
the stream of the last launch before the record, and the next launch of the thread waits for it. If an op still starts late, and
an op of another stream ends just before, the op waited for that one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.importers.launches import GpuOps
from hwsim.importers.recording import Ints, Rank, Small, What
from hwsim.importers.slice_links import NONE, SliceLinks
from hwsim.importers.threads import US, ThreadDependencies, ThreadSegments
from hwsim.records import dataclass

WAIT_WORDS: Final = "Stream Wait Event"
_WAITS: Final = frozenset({"cudaStreamWaitEvent", "hipStreamWaitEvent", "cuStreamWaitEvent", "cudaStreamWaitEvent_ptsz"})
_RECORDS: Final = ("cudaEventRecord", "hipEventRecord", "cuEventRecord")
_LATE: Final = 20 * US  # an op that starts this long after all known dependencies waits for something else
_SOON: Final = 30 * US  # an op that starts within this time after the end of another op may have waited for it
_TOLERANCE: Final = US  # an op may start this much before the end of the op for which it waits


@dataclass(frozen=True, slots=True, eq=False)
class Waits(ThreadDependencies):
    """The waits between GPU ops: `then` starts after `before`.

    Args:
        named: calls whose event is in the file.
        guessed: number of other calls that wait for an event.
    """

    named: Small
    guessed: int


class StreamIndex:
    """An index of the GPU ops by stream and by launching thread, in order of launch."""

    def __init__(self, rank: Rank, ops: GpuOps) -> None:
        self.ops = ops
        self.launched = np.where(ops.call < 0, NONE, ops.at)
        lane_of = np.array([*ops.lane, NONE], np.int64)[ops.queue]
        self.by_lane: dict[int, tuple[Ints, Ints]] = {}
        for lane in dict.fromkeys(ops.lane):
            mine = np.flatnonzero(lane_of == lane)
            mine = mine[np.argsort(ops.start[mine], kind="stable")]
            self.by_lane[lane] = np.append(mine, NONE), np.maximum.accumulate(self.launched[mine])
        thread = np.where(ops.call < 0, NONE, rank.slices.lane[ops.call])
        self.by_thread: dict[int, tuple[Ints, Ints]] = {}
        for lane in np.unique(thread[thread >= 0]).tolist():
            mine = np.flatnonzero(thread == lane)
            mine = mine[np.argsort(ops.at[mine], kind="stable")]
            self.by_thread[lane] = np.append(mine, NONE), ops.at[mine]
        self.lane_of: Ints = lane_of
        every = np.flatnonzero(ops.call >= 0)
        every = every[np.argsort(ops.at[every], kind="stable")]
        self._every = np.append(every, NONE), ops.at[every]

    def last_on(self, lane: int, times: Ints) -> Ints:
        """Return the last op of a stream launched before each time; -1 for none."""
        return _before(self.by_lane[lane], times)

    def first_on(self, lane: int, times: Ints) -> Ints:
        """Return the first op of a stream launched at or after each time; -1 for none."""
        return _from(self.by_lane[lane], times)

    def first(self, times: Ints) -> Ints:
        """Return the first op of any thread launched at or after each time; -1 for none."""
        return _from(self._every, times)

    def last_by(self, thread: int, times: Ints) -> Ints:
        """Return the last op that a thread launched before each time; -1 for none."""
        return _before(self.by_thread.get(thread, _NOTHING), times)

    def first_by(self, thread: int, times: Ints) -> Ints:
        """Return the first op that a thread launched at or after each time; -1 for none."""
        return _from(self.by_thread.get(thread, _NOTHING), times)


_NOTHING: Final = np.array([NONE]), np.empty(0, np.int64)  # (ops in order of launch, then -1; times of their launches)


def _before(launched: tuple[Ints, Ints], times: Ints) -> Ints:
    ops, at = launched
    found: Ints = ops[np.searchsorted(at, times) - 1]
    return found


def _from(launched: tuple[Ints, Ints], times: Ints) -> Ints:
    ops, at = launched
    found: Ints = ops[np.searchsorted(at, times)]
    return found


def waits(rank: Rank, linked: SliceLinks, streams: StreamIndex, pieces: ThreadSegments) -> Waits:
    """Return the waits between the streams of a rank."""
    before, then, calls = _stated(rank, linked, streams)
    guess = _unnamed(rank, calls)
    pairs = [(before, then)]
    for lane in np.unique(rank.slices.lane[guess]).tolist() if len(streams.ops) else ():
        pairs += _guessed(rank, streams, pieces, lane, guess[rank.slices.lane[guess] == lane])
    first, second = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    ops = streams.ops
    is_possible = (first >= 0) & (second >= 0) & (first != second)
    is_possible[is_possible] = ops.end[first[is_possible]] <= ops.start[second[is_possible]] + _TOLERANCE
    kept = np.unique(np.column_stack([first, second])[is_possible], axis=0).reshape(-1, 2)
    return Waits(kept[:, 0], kept[:, 1], calls, len(guess))


def _unnamed(rank: Rank, named: Small) -> NDArray[np.intp]:
    """Return the calls that wait for an event that is not in the file."""
    is_wait = np.array([name in _WAITS for name in rank.names], bool)[rank.slices.name] & (rank.slices.what == What.CALL)
    is_wait[named] = False
    return np.flatnonzero(is_wait)


def with_ends(rank: Rank, streams: StreamIndex, stream_waits: Waits, ready: Ints) -> Waits:
    """Add waits of late ops for an op of another stream that ends just before they start.

    Only ops with an unnamed wait since the previous launch on their stream are changed.

    Args:
        ready: time at which the known dependencies allow each op to start (fs).
    """
    ops = streams.ops
    times = np.sort(rank.slices.start[_unnamed(rank, stream_waits.named)])
    before = np.where(ops.previous >= 0, ops.at[ops.previous], NONE)
    has_wait = np.searchsorted(times, ops.at) > np.searchsorted(times, before)
    late = np.flatnonzero((ops.call >= 0) & (ops.start - ready > _LATE) & has_wait)
    best, nearest = np.full(len(late), NONE, np.int64), np.full(len(late), _SOON + 1, np.int64)
    device = np.array([lane.device for lane in rank.lanes], np.int64)
    for lane, (mine, _) in streams.by_lane.items():
        mine = mine[:-1]
        order = mine[np.argsort(ops.end[mine], kind="stable")]
        place = np.searchsorted(ops.end[order], ops.start[late] + _TOLERANCE, side="right") - 1
        source = order[np.maximum(place, 0)]
        gap = np.abs(ops.start[late] - ops.end[source])
        lanes = streams.lane_of[late]
        is_nearer = (place >= 0) & (lanes != lane) & (device[lanes] == device[lane]) & (gap < nearest)
        is_nearer &= streams.launched[source] < ops.at[late]
        best[is_nearer], nearest[is_nearer] = source[is_nearer], gap[is_nearer]
    chosen = best >= 0
    return replace(
        stream_waits,
        before=np.concatenate([stream_waits.before, best[chosen]]),
        then=np.concatenate([stream_waits.then, late[chosen]]),
    )


def _stated(rank: Rank, linked: SliceLinks, streams: StreamIndex) -> tuple[Ints, Ints, Small]:
    """Return pairs of ops (before, then) and the waiting calls, for waits whose event is in the file."""
    slices = rank.slices
    is_stated = np.array([detail.kind == WAIT_WORDS for detail in rank.facts] + [False], bool)[slices.facts]
    stated = np.flatnonzero((slices.what == What.WAIT) & is_stated & (linked.call >= 0))
    facts = [rank.facts[number] for number in slices.facts[stated].tolist()]
    target = slices.lane[stated]
    source = np.array([fact.waits_on_stream for fact in facts], np.int64)
    calls = linked.call[stated]
    recorded = _starts_of_links(rank, np.array([wait.waits_on_link for wait in facts], np.int64), slices.start[calls])
    before, then = np.full(len(stated), NONE, np.int64), np.full(len(stated), NONE, np.int64)
    latest = np.full(len(stated), NONE, np.int64)
    for lane in streams.by_lane:
        on = np.flatnonzero((source == rank.lanes[lane].number) & (target != lane))
        last = streams.last_on(lane, recorded[on])
        launched = np.where(last >= 0, streams.launched[last], NONE)
        is_later = launched > latest[on]  # streams of several GPUs can share a number: use the one with the latest launch
        before[on[is_later]], latest[on[is_later]] = last[is_later], launched[is_later]
        on = np.flatnonzero(target == lane)
        then[on] = streams.first_on(lane, slices.start[calls[on]])
    return before, then, calls


def _starts_of_links(rank: Rank, links: Ints, otherwise: Ints) -> Ints:
    """Return the start of the call with each link number."""
    calls = np.flatnonzero((rank.slices.what == What.CALL) & (rank.slices.link >= 0))
    numbers, first = np.unique(rank.slices.link[calls], return_index=True)
    if not numbers.size:
        return otherwise
    place = np.minimum(np.searchsorted(numbers, links), len(numbers) - 1)
    return np.where(numbers[place] == links, rank.slices.start[calls[first[place]]], otherwise)


def _guessed(
    rank: Rank, streams: StreamIndex, pieces: ThreadSegments, thread: int, calls: NDArray[np.intp]
) -> list[tuple[Ints, Ints]]:
    """Return pairs of ops (before, then) for calls of a thread that wait for an event that is not in the file."""
    slices, ops = rank.slices, streams.ops
    is_record = np.array([name.startswith(_RECORDS) for name in rank.names], bool)[slices.name]
    records = slices.start[np.flatnonzero(is_record & (slices.what == What.CALL) & (slices.lane == thread))]
    times = slices.start[calls]
    then = streams.first_by(thread, times)
    other = streams.first(times)  # if the thread idles after its wait, as autograd's does, another thread launches next
    is_other = (other >= 0) & pieces.is_idle(thread, np.where(other >= 0, ops.at[other], 0))
    then = np.where(is_other, other, then)
    place = np.searchsorted(records, times) - 1
    recorded = np.where(place >= 0, records[np.maximum(place, 0)], times) if records.size else times
    last = streams.last_by(thread, recorded)
    has_both = (then >= 0) & (last >= 0)
    then, last, recorded = then[has_both], last[has_both], recorded[has_both]
    source, target = streams.lane_of[last], streams.lane_of[then]
    pairs = []
    for lane in streams.by_lane:
        # an event on the waiting stream has no effect: the wait is for other streams
        is_source = ((source == lane) & (target != lane)) | ((source == target) & (target != lane))
        same_gpu = np.array([rank.lanes[int(other)].device == rank.lanes[lane].device for other in target], bool)
        chosen = is_source & same_gpu
        pairs.append((streams.last_on(lane, recorded[chosen]), then[chosen]))
    return pairs
