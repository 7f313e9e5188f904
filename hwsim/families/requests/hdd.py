"""A hard disk, request by request: where the arm is, how far the platter has turned, and who is served next.

The arm takes seek(distance) to the cylinder; the platter, which never stops, brings the sector round; its bytes pass at the
rate of their zone. A drive that knows several requests (`queue` of them at most) may choose among them:

    fcfs    the one that came first
    clook   the nearest ahead of the arm on its way in; from the innermost back to the outermost
    sptf    the one whose first sector is under the head soonest, seek and rotation together (NCQ)

Addresses run from the outermost track in, each track as long as its radius allows, and a sector stands one track's worth
of angle behind the one before it, so that reading on costs neither seek nor turn. A read that goes on where the last
one ended finds the drive reading ahead. With a write cache a write is done when it is in there, and is one more request
to choose from.

**Source.** Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994; Worthington, Ganger
and Patt, "Scheduling algorithms for modern disk drives", SIGMETRICS 1994.
**Error.** calibrate/published/twins_storage.py.
**Range.** No skew (the rate is the sustained one), no remapped sectors, no bands of shingled tracks; reads are not cached.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Final, Literal

import numpy as np

from hwsim.devices.hdd import Hdd
from hwsim.families.requests.requests import CannotPlay, Play, Served, Stream, requests_of
from hwsim.graph.opgraph import Ints

Policy = Literal["fcfs", "clook", "sptf"]

_ISSUE: Final = 0  # a stream may issue requests
_FINISH: Final = 1  # one of its requests has been answered
_IDLE: Final = 2  # the arm has served a request: chooses after all that happens at that instant is known


# A request at the drive: its stream (None: a write that the cache has answered), which, address, bytes, write, cylinder, angle.
_Waiting = tuple[Stream | None, int, int, int, bool, float, float]


def hdd_play(hdd: Hdd, name: str = "the hdd") -> Play:
    """The simulation of a drive: in order of arrival where its `gain` is 0, else the request that is reached soonest.

    Raises:
        CannotPlay: it has no size, so that no address has a place.
    """
    if hdd.holds is None:
        raise CannotPlay(f"{name} has no size", "add `size: 4 TB`")
    return Play(HddSimulation(hdd, policy="sptf" if hdd.gain > 0 else "fcfs"), hdd.holds, requests_of)


class HddSimulation:
    """Implements `RequestSimulation`."""

    def __init__(self, hdd: Hdd, *, policy: Policy = "sptf") -> None:
        self._hdd, self._policy = hdd, policy
        self._size, self._turn, self._seek = hdd.holds or math.inf, hdd.turn, hdd.seek.curve()
        self._outer, self._inner = hdd.rate(0.0), hdd.rate(1.0)
        self._waiting: list[_Waiting] = []
        self._blocked: deque[tuple[Stream, int]] = deque()  # writes that the cache has no room for
        self._dirty = 0.0  # bytes in it
        self._cylinder, self._next_address, self._ended, self._busy = 0.0, -1, 0.0, False
        self._heap: list[tuple[float, int, int, Stream | None]] = []
        self._order = count().__next__
        self.counters: dict[str, float] = {"requests": 0, "seeks": 0, "seek_s": 0.0, "rotation_s": 0.0, "transfer_s": 0.0}

    def units(self, address: Ints) -> tuple[Ints, str]:
        return np.zeros_like(address), "arm"

    def offer(self, served: Served) -> None:
        if len(served):
            heappush(self._heap, (served.at[0], _ISSUE, self._order(), Stream(served)))

    def due(self) -> float:
        return self._heap[0][0] if self._heap else math.inf

    def advance(self, until: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= until:
            time, event, _, stream = heappop(heap)
            if stream is None:
                self._busy = False
                while self._blocked and self._dirty + self._blocked[0][0].served.size[self._blocked[0][1]] <= self._hdd.cache:
                    self._cache(time, *self._blocked.popleft())
            else:
                stream.flying -= event == _FINISH
                self._issue(time, stream)
            # All requests issued at this instant are known before the arm chooses.
            if not self._busy and self._waiting and not (heap and heap[0][0] <= time and heap[0][1] != _IDLE):
                self._serve(time)

    def place(self, address: float) -> tuple[float, float]:
        """Cylinder (from the outermost) and angle (in turns) of a byte.

        The rate at a part x of the bytes is sqrt(outer^2 - x (outer^2 - inner^2)); its integral counts the turns.
        """
        part = min(1.0, address / self._size) if self._size < math.inf else 0.0
        rate, outer, inner = self._hdd.rate(part), self._outer, self._inner
        if outer - inner > 1e-9 * outer:
            cylinder, turns = (outer - rate) / (outer - inner), 2 * self._size * (outer - rate) / (outer**2 - inner**2)
        else:
            cylinder, turns = part, address / outer
        return cylinder * self._hdd.seek.cylinders, turns / self._turn % 1.0

    def _issue(self, time: float, stream: Stream) -> None:
        """Hand over the requests that are there and may be under way."""
        served = stream.served
        for request in stream.issue(time):
            if not (served.write[request] and self._hdd.write_cache):
                self._wait(stream, stream, request)
            elif self._blocked or self._dirty + served.size[request] > self._hdd.cache:
                self._blocked.append((stream, request))
            else:
                self._cache(time, stream, request)
        if (later := stream.upcoming) is not None:
            heappush(self._heap, (later, _ISSUE, self._order(), stream))

    def _cache(self, time: float, stream: Stream, request: int) -> None:
        """A write is done when it is in the cache, and goes to the platter like any other."""
        hdd, served = self._hdd, stream.served
        served.start[request] = time
        self._answer(time + hdd.overhead + served.size[request] / (hdd.interface or self._outer), stream, request)
        self._dirty += served.size[request]
        self._wait(None, stream, request)

    def _wait(self, owner: Stream | None, stream: Stream, request: int) -> None:
        served = stream.served
        address = served.address[request]
        self._waiting.append((owner, request, address, served.size[request], served.write[request], *self.place(address)))

    def _answer(self, finish: float, stream: Stream, request: int) -> None:
        if stream.finish(request, finish):
            heappush(self._heap, (finish, _FINISH, self._order(), stream))

    def _serve(self, time: float) -> None:
        """Choose a request and serve it to the end."""
        hdd, counters = self._hdd, self.counters
        owner, request, address, size, write, cylinder, angle = self._waiting.pop(self._choose(time))
        rate = hdd.rate(min(1.0, address / self._size))
        transfer = size / (rate if hdd.interface is None else min(rate, hdd.interface))
        if address == self._next_address and (not write or owner is None or self._ended >= time):
            end = max(self._ended + transfer, time if owner is None else time + hdd.overhead)
        else:
            seek, rotation = self._reach(time, cylinder, angle, write)
            end = time + hdd.overhead + seek + rotation + transfer
            counters["seeks"] += seek > 0
            counters["seek_s"] += seek
            counters["rotation_s"] += rotation
        counters["requests"] += 1
        counters["transfer_s"] += transfer
        self._cylinder, self._next_address, self._ended, self._busy = self.place(address + size)[0], address + size, end, True
        heappush(self._heap, (end, _IDLE, self._order(), None))
        if owner is None:
            self._dirty -= size
        else:
            owner.served.start[request] = time
            self._answer(end, owner, request)

    def _reach(self, time: float, cylinder: float, angle: float, write: bool) -> tuple[float, float]:
        """Seconds of seek, and then of rotation, until the head is over a sector."""
        distance = abs(cylinder - self._cylinder)
        seek = (self._seek(distance) if distance >= 1.0 else 0.0) + (self._hdd.settle if write else 0.0)
        return seek, (angle - (time + self._hdd.overhead + seek) / self._turn) % 1.0 * self._turn

    def _choose(self, time: float) -> int:
        """Which of the requests it knows is next: its place among those that wait."""
        seen = self._waiting[: self._hdd.queue]
        if len(seen) == 1 or self._policy == "fcfs":
            return 0
        for at, waiting in enumerate(seen):  # reading on costs nothing
            if waiting[2] == self._next_address:
                return at
        if self._policy == "clook":
            cylinder = self._cylinder
            return min(range(len(seen)), key=lambda at: (seen[at][5] < cylinder, seen[at][5]))
        best, soonest = 0, math.inf
        for at, waiting in enumerate(seen):
            seek, rotation = self._reach(time, waiting[5], waiting[6], waiting[4])
            if seek + rotation < soonest:
                best, soonest = at, seek + rotation
        return best
