"""CUDA runtime calls behind a run: launches of GPU ops, and waits of streams and threads.

A GPU op is launched at the end of the host op that it waits for; without one, together with the previous op on its stream. A
dependency on another stream becomes an event, recorded after the launch of the awaited op, and a wait before the op's own
launch. A thread that waits for a GPU synchronizes with an event as well. Waits that follow from other waits are omitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hwsim.records import dataclass
from hwsim.views.trace.slices import TraceSlices

LAUNCH: Final = 4 * 10**9  # duration of a launch (fs), shorter if the issuing ops are short
RECORD: Final = "cudaEventRecord"
WAIT: Final = "cudaStreamWaitEvent"
SYNCHRONISE: Final = "cudaEventSynchronize"
LAST: Final = "cudaDeviceSynchronize"
_Clock = dict[int, int]  # by track: position of the last slice that has certainly ended


class CudaCall(NamedTuple):
    """A call on a host thread.

    Args:
        name: name of the call.
        start, end: start and end (fs).
        number: correlation.
        slice: slice that it launches or waits for.
        by: host op around it; -1 for none.
    """

    name: str
    start: int
    end: int
    number: int
    slice: int
    by: int


class Sync(NamedTuple):
    """A wait of a stream or thread for a slice.

    Args:
        track: track of the stream; -1 for a thread.
        start, end: start and end (fs).
        number: correlation of the call.
        on: awaited slice.
        record: correlation of the call that recorded its event.
    """

    track: int
    start: int
    end: int
    number: int
    on: int
    record: int


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """The calls of each thread in order of time.

    Args:
        of: calls by track; the thread of rank r whose program takes no host time is -1 - r.
        launched: correlation of the call that launched each slice; 0 for host slices.
        by: host op that issued each slice; -1 for none.
        at: launch time of each slice (fs).
        syncs: waits.
        unsaid: number of waits between host threads, which have no call.
    """

    of: dict[int, tuple[CudaCall, ...]]
    launched: tuple[int, ...]
    by: tuple[int, ...]
    at: tuple[int, ...]
    syncs: tuple[Sync, ...]
    unsaid: int


def ranks_of(slices: TraceSlices) -> tuple[int, ...]:
    """Return the rank of each track: GPUs and threads that wait for each other outside of collectives are one process.

    Ranks are numbered in the order of their first GPUs; threads without a GPU belong to rank 0.
    """
    parent = list(range(len(slices.tracks)))

    def root(track: int) -> int:
        while parent[track] != track:
            parent[track] = parent[parent[track]]
            track = parent[track]
        return track

    devices: dict[str, int] = {}
    for number, track in enumerate(slices.tracks):
        if track.on_gpu:
            parent[root(number)] = root(devices.setdefault(track.device, number))
    pairs = {(part.track, track) for part, waits in zip(slices.all, slices.waits, strict=True) for track in waits}
    for first_of, second_of in pairs:
        parent[root(first_of)] = root(second_of)
    numbers: dict[int, int] = {}
    for number, track in enumerate(slices.tracks):
        if track.on_gpu:
            numbers.setdefault(root(number), len(numbers))
    return tuple(numbers.get(root(number), 0) for number in range(len(slices.tracks)))


def calls_of(slices: TraceSlices, ranks: tuple[int, ...]) -> Calls:
    """Return the calls of a run."""
    return _Calling(slices, ranks).calls()


class _Calling:
    def __init__(self, slices: TraceSlices, ranks: tuple[int, ...]) -> None:
        self.slices, self.ranks = slices, ranks
        self.place = [0] * len(slices.all)
        for numbers in slices.order:
            for place, number in enumerate(numbers):
                self.place[number] = place
        self.clocks: list[_Clock] = [{}] * len(slices.all)
        self.issuer = [-1] * len(slices.all)  # host slice; -1 for none with a duration
        self.events: dict[int, tuple[int, ...]] = {}  # slices of other streams by GPU slice
        self.blocks: dict[int, tuple[int, ...]] = {}  # GPU slices by thread slice
        self.recorded: set[int] = set()
        self.unsaid = 0

    def calls(self) -> Calls:
        slices = self.slices.all
        if not any(track.on_gpu for track in self.slices.tracks):
            nothing = (0,) * len(slices)
            return Calls({}, nothing, (-1,) * len(slices), nothing, (), 0)
        for number in sorted(range(len(slices)), key=lambda place: (slices[place].start, slices[place].end, slices[place].op)):
            self._know(number)
        return _Placing(self).calls()

    def _know(self, number: int) -> None:
        """Find the waits of a slice that need a call, and the slices known to have ended before it."""
        slices, waits = self.slices.all, self.slices.waits[number]
        track = slices[number].track
        on_gpu, at_place = self.slices.tracks[track].on_gpu, self.place[number]
        previous = self.slices.order[track][at_place - 1] if at_place else -1
        clock = self.clocks[previous] if at_place else {}
        if on_gpu and at_place:  # ops of a stream are launched in order
            self.issuer[number] = self.issuer[previous]
        if not waits:
            self.clocks[number] = clock
            return
        clock = dict(clock)
        threads = [before for track, before in waits.items() if not self.slices.tracks[track].on_gpu]
        streams = [before for track, before in waits.items() if self.slices.tracks[track].on_gpu]
        if on_gpu:
            issuers = (self.issuer[number], *threads, *(self.issuer[before] for before in streams))
            self.issuer[number] = issuer = max(issuers, key=self._end)
            if issuer >= 0:
                self._learn(clock, issuer)
        self.unsaid += sum(clock.get(slices[before].track, -1) < self.place[before] for before in threads)
        unknown = []
        for before in sorted(streams, key=self._end, reverse=True):
            if clock.get(slices[before].track, -1) < self.place[before]:
                unknown.append(before)
                self._learn(clock, before)
        if unknown:
            self.recorded.update(unknown)
            (self.events if on_gpu else self.blocks)[number] = tuple(reversed(unknown))
        self.clocks[number] = clock

    def _end(self, number: int) -> tuple[int, int]:
        return (self.slices.all[number].end, self.place[number]) if number >= 0 else (-1, -1)

    def _learn(self, clock: _Clock, number: int) -> None:
        for track, place in self.clocks[number].items():
            if clock.get(track, -1) < place:
                clock[track] = place
        track = self.slices.all[number].track
        clock[track] = max(clock.get(track, -1), self.place[number])


class _Placing:
    """Assigns times to the calls."""

    def __init__(self, calling: _Calling) -> None:
        self.calling, self.slices = calling, calling.slices
        self.of: dict[int, list[CudaCall]] = {}
        self.launched = [0] * len(self.slices.all)
        self.at = [0] * len(self.slices.all)
        self.records: dict[int, int] = {}
        self.waiting: list[Sync] = []
        self.number = 0

    def calls(self) -> Calls:
        slices, tracks = self.slices.all, self.slices.tracks
        issued: dict[int, list[int]] = {}
        free: dict[int, list[int]] = {}  # by rank: slices without an issuer
        for number in self._in_program_order():
            issuer = self.calling.issuer[number]
            if issuer >= 0:
                issued.setdefault(issuer, []).append(number)
            else:
                free.setdefault(self.calling.ranks[slices[number].track], []).append(number)
        for rank, numbers in sorted(free.items()):
            steps = [step for number in numbers for step in self._steps(number)]
            self._place(-1 - rank, -1, steps, range(len(steps) + 1), 0)
        shortest = min((length for issuer in issued if (length := slices[issuer].end - slices[issuer].start) > 0), default=0)
        launch = min(LAUNCH, shortest // 2)
        for track, order in zip(tracks, self.slices.order, strict=True):
            if not track.on_gpu:
                self._thread(order, issued, launch)
        syncs = tuple(sync._replace(record=self.records.get(sync.on, 0)) for sync in self.waiting)
        of = {
            track: tuple(sorted(calls, key=lambda call: (call.start, -call.end, call.number))) for track, calls in self.of.items()
        }
        return Calls(of, tuple(self.launched), tuple(self.calling.issuer), tuple(self.at), syncs, self.calling.unsaid)

    def _in_program_order(self) -> Iterable[int]:
        """Return the GPU slices by op number, each stream in its own order."""
        slices = self.slices.all
        keys = {}
        for track, order in zip(self.slices.tracks, self.slices.order, strict=True):
            key = -1
            for place, number in enumerate(order if track.on_gpu else ()):
                key = max(key, slices[number].op)
                keys[number] = (key, slices[number].track, place)
        return sorted(keys, key=keys.__getitem__)

    def _steps(self, number: int) -> list[tuple[str, int, int]]:
        """Return the calls behind a GPU op: (name, slice that it concerns, slice that waits)."""
        steps = [(WAIT, before, number) for before in self.calling.events.get(number, ())]
        steps.append(("", number, -1))
        if number in self.calling.recorded:
            steps.append((RECORD, number, -1))
        return steps

    def _thread(self, order: tuple[int, ...], issued: dict[int, list[int]], launch: int) -> None:
        slices = self.slices.all
        previous = -1
        for issuer in order:
            self._block(issuer, previous)
            previous = issuer
            if issuer not in issued:
                continue
            part = slices[issuer]
            steps = [step for number in issued[issuer] for step in self._steps(number)]
            if part.end == part.start or not launch:
                self._place(part.track, issuer, steps, range(part.end, part.end + len(steps) + 1), 0)
                continue
            first = next(index for index, step in enumerate(steps) if not step[0])
            begin, stop = part.end - launch, part.end - launch // 16  # leaves space for the waits of the next op
            times = [begin - launch + launch * index // max(first, 1) for index in range(first)]
            times += [begin + (stop - begin) * index // (len(steps) - first) for index in range(len(steps) - first + 1)]
            self._place(part.track, issuer, steps, times, 1)

    def _place(self, thread: int, by: int, steps: list[tuple[str, int, int]], times: Iterable[int], lasting: int) -> None:
        """Add consecutive calls; lasting: 1 if each lasts until the next, 0 if they take no time."""
        points = list(times)
        calls = self.of.setdefault(thread, [])
        for (name, about, waits), start, stop in zip(steps, points, points[1:], strict=False):
            self.number += 1
            end = stop if lasting else start
            calls.append(CudaCall(name, start, end, self.number, about, by))
            if not name:
                self.launched[about], self.at[about] = self.number, start
            elif name == RECORD:
                self.records[about] = self.number
            else:
                stream = self.slices.all[waits]
                order, place = self.slices.order[stream.track], self.calling.place[waits]
                free = self.slices.all[order[place - 1]].end if place else 0
                since = max(free, min(start, stream.start))
                self.waiting.append(Sync(stream.track, since, stream.start, self.number, about, 0))

    def _block(self, number: int, previous: int) -> None:
        """Add the waits of a thread before an op, with their duration, or for an instant if they are over."""
        befores = self.calling.blocks.get(number)
        if befores is None:
            return
        slices = self.slices.all
        since = slices[previous].end if previous >= 0 else 0
        over = [before for before in befores if slices[before].end <= since]
        time_fs = since - len(over)
        if previous >= 0 and slices[previous].start > time_fs - 1:
            self.calling.unsaid += len(over)
            over = []
        calls = self.of.setdefault(slices[number].track, [])
        for before in befores:
            end = slices[before].end
            if end <= since and before not in over:
                continue
            start, end = (time_fs, time_fs + 1) if before in over else (since, end)
            time_fs, since = time_fs + (before in over), max(since, end)
            self.number += 1
            calls.append(CudaCall(SYNCHRONISE, start, end, self.number, before, -1))
            self.waiting.append(Sync(-1, start, end, self.number, before, 0))
