"""Calls of CUDA's runtime behind a run: who launches each op of a GPU, and what streams and threads wait for.

An op of a GPU is launched at the end of the op of a host thread that it waits for; one that waits for none, when the op
before it on its stream is. What it waits for on other streams is an event, recorded behind that op's launch and waited for
before its own. A thread that waits for a GPU synchronises with an event, too. Waits that follow from others are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hwsim.records import dataclass
from hwsim.views.trace.slices import Slices

LAUNCH: Final = 4 * 10**9  # fs; of a launch, where the ops that issue them are long enough
RECORD: Final = "cudaEventRecord"
WAIT: Final = "cudaStreamWaitEvent"
SYNCHRONISE: Final = "cudaEventSynchronize"
LAST: Final = "cudaDeviceSynchronize"
_Clock = dict[int, int]  # track -> place on it of the last slice that has surely ended


class Call(NamedTuple):
    """A call on a host thread, fs; number: its correlation.

    slice: what it launches or waits for; by: the op around it; -1 for none.
    """

    name: str
    start: int
    end: int
    number: int
    slice: int
    by: int


class Sync(NamedTuple):
    """A wait of a stream (or of a thread: track -1) for slice `on`, recorded by call `record`; number: of the call."""

    track: int
    start: int
    end: int
    number: int
    on: int
    record: int


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Calls of each thread in order of time.

    Args:
        of: by track; the thread of a rank whose program costs no host time is -1 - its number.
        launched: number of the call that launched each slice, 0 for slices of the host. by: the op that issued it, -1.
        at: when it is launched.
        unsaid: waits between host threads, for which there is no call.
    """

    of: dict[int, tuple[Call, ...]]
    launched: tuple[int, ...]
    by: tuple[int, ...]
    at: tuple[int, ...]
    syncs: tuple[Sync, ...]
    unsaid: int


def ranks_of(slices: Slices) -> tuple[int, ...]:
    """The rank of each track: GPUs and threads that wait for one another outside of collectives are one process.

    Ranks count in the order of their first GPUs; threads that work for no GPU belong to the first.
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


def calls_of(slices: Slices, ranks: tuple[int, ...]) -> Calls:
    """The calls of a run."""
    return _Calling(slices, ranks).calls()


class _Calling:
    def __init__(self, slices: Slices, ranks: tuple[int, ...]) -> None:
        self.slices, self.ranks = slices, ranks
        self.place = [0] * len(slices.all)
        for numbers in slices.order:
            for place, number in enumerate(numbers):
                self.place[number] = place
        self.clocks: list[_Clock] = [{}] * len(slices.all)
        self.issuer = [-1] * len(slices.all)  # slice of the host, -1: nothing that takes time
        self.events: dict[int, tuple[int, ...]] = {}  # slice of a GPU -> slices of other streams
        self.blocks: dict[int, tuple[int, ...]] = {}  # slice of a thread -> slices of GPUs
        self.recorded: set[int] = set()
        self.unsaid = 0

    def calls(self) -> Calls:
        slices = self.slices.all
        if not any(track.on_gpu for track in self.slices.tracks):
            nothing = (0,) * len(slices)
            return Calls({}, nothing, (-1,) * len(slices), nothing, (), 0)
        for number in sorted(range(len(slices)), key=lambda at: (slices[at].start, slices[at].end, slices[at].op)):
            self._know(number)
        return _Placing(self).calls()

    def _know(self, number: int) -> None:
        """Find the waits of a slice that must be said, and all that has ended once it has."""
        slices, waits = self.slices.all, self.slices.waits[number]
        track = slices[number].track
        on_gpu, at_place = self.slices.tracks[track].on_gpu, self.place[number]
        previous = self.slices.order[track][at_place - 1] if at_place else -1
        clock = self.clocks[previous] if at_place else {}
        if on_gpu and at_place:  # no op of a stream is launched before the op in front of it
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
    """Times of the calls."""

    def __init__(self, calling: _Calling) -> None:
        self.calling, self.slices = calling, calling.slices
        self.of: dict[int, list[Call]] = {}
        self.launched = [0] * len(self.slices.all)
        self.at = [0] * len(self.slices.all)
        self.records: dict[int, int] = {}
        self.waiting: list[Sync] = []
        self.number = 0

    def calls(self) -> Calls:
        slices, tracks = self.slices.all, self.slices.tracks
        issued: dict[int, list[int]] = {}
        free: dict[int, list[int]] = {}  # by rank: launched by nothing that takes time
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
        """Slices of GPUs by number of their ops; in a stream in its order."""
        slices = self.slices.all
        keys = {}
        for track, order in zip(self.slices.tracks, self.slices.order, strict=True):
            key = -1
            for place, number in enumerate(order if track.on_gpu else ()):
                key = max(key, slices[number].op)
                keys[number] = (key, slices[number].track, place)
        return sorted(keys, key=keys.__getitem__)

    def _steps(self, number: int) -> list[tuple[str, int, int]]:
        """Calls behind an op of a GPU: name, the slice that it is about, the slice that waits."""
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
            first = next(at for at, step in enumerate(steps) if not step[0])
            begin, stop = part.end - launch, part.end - launch // 16  # behind them is room for what the next op waits for
            times = [begin - launch + launch * index // max(first, 1) for index in range(first)]
            times += [begin + (stop - begin) * at // (len(steps) - first) for at in range(len(steps) - first + 1)]
            self._place(part.track, issuer, steps, times, 1)

    def _place(self, thread: int, by: int, steps: list[tuple[str, int, int]], times: Iterable[int], lasting: int) -> None:
        """Calls one after another; whole: 1 if each lasts until the next, 0 if they take no time."""
        points = list(times)
        calls = self.of.setdefault(thread, [])
        for (name, about, waits), start, stop in zip(steps, points, points[1:], strict=False):
            self.number += 1
            end = stop if lasting else start
            calls.append(Call(name, start, end, self.number, about, by))
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
        """Write the waits of a thread before an op: as long as they take, or for a moment if they are over."""
        befores = self.calling.blocks.get(number)
        if befores is None:
            return
        slices = self.slices.all
        since = slices[previous].end if previous >= 0 else 0
        over = [before for before in befores if slices[before].end <= since]
        at = since - len(over)
        if previous >= 0 and slices[previous].start > at - 1:
            self.calling.unsaid += len(over)
            over = []
        calls = self.of.setdefault(slices[number].track, [])
        for before in befores:
            end = slices[before].end
            if end <= since and before not in over:
                continue
            start, end = (at, at + 1) if before in over else (since, end)
            at, since = at + (before in over), max(since, end)
            self.number += 1
            calls.append(Call(SYNCHRONISE, start, end, self.number, before, -1))
            self.waiting.append(Sync(-1, start, end, self.number, before, 0))
