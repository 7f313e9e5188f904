"""A hard disk, request by request: position of the arm, rotation of the platter, and scheduling of requests.

    time of a request = seek(distance) + rotational latency + bytes / rate of the zone

A drive with several queued requests (at most `queue`) schedules them by a policy:

    fcfs    first come, first served
    clook   the next cylinder inwards; from the innermost request back to the outermost (C-LOOK)
    sptf    the shortest positioning time, seek and rotation (NCQ)

Addresses run from the outermost track inwards, and the length of a track is proportional to its radius. The angle of a sector
continues that of the sector before it, so sequential access needs neither seek nor rotational latency. A read that continues the
last one is served by read-ahead. With a write cache, a write completes when it is in the cache, and is later scheduled like other
requests.

**Source.** Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994; Worthington, Ganger
and Patt, "Scheduling algorithms for modern disk drives", SIGMETRICS 1994.
**Error.** calibrate/published/twins_storage.py.
**Range.** No track skew (the rate is the sustained rate), no remapped sectors, no shingled tracks; reads are not cached.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Final, Literal

import numpy as np

from hwsim.devices.hdd import Hdd
from hwsim.families.requests.requests import IssueStream, NoRequestSimulation, RequestColumns, RequestDevice, requests_of
from hwsim.graph.opgraph import Ints

Policy = Literal["fcfs", "clook", "sptf"]

_ISSUE: Final = 0  # event: a stream may issue requests
_FINISH: Final = 1  # event: a request of a stream has completed
_IDLE: Final = 2  # event: the arm is idle; it chooses after all other events at that instant


# A queued request: (stream; None for a cached write, index, address, bytes, is a write, cylinder, angle).
_Waiting = tuple[IssueStream | None, int, int, int, bool, float, float]


def hdd_play(hdd: Hdd, name: str = "the hdd") -> RequestDevice:
    """Return the simulation of a drive, with the policy `fcfs` if its `gain` is 0, otherwise `sptf`.

    Raises:
        CannotPlay: The drive has no size, so addresses have no place.
    """
    if hdd.holds is None:
        raise NoRequestSimulation(f"{name} has no size", "add `size: 4 TB`")
    return RequestDevice(HddSimulation(hdd, policy="sptf" if hdd.gain > 0 else "fcfs"), hdd.holds, requests_of)


class HddSimulation:
    """The request-level simulation of a hard disk; implements `RequestSimulation`."""

    def __init__(self, hdd: Hdd, *, policy: Policy = "sptf") -> None:
        self._hdd, self._policy = hdd, policy
        self._size, self._turn, self._seek = hdd.holds or math.inf, hdd.turn, hdd.seek.curve()
        self._outer, self._inner = hdd.rate(0.0), hdd.rate(1.0)
        self._waiting: list[_Waiting] = []
        self._blocked: deque[tuple[IssueStream, int]] = deque()  # writes that wait for space in the cache
        self._dirty = 0.0  # bytes in the cache
        self._cylinder, self._next_address, self._ended, self._busy = 0.0, -1, 0.0, False
        self._heap: list[tuple[float, int, int, IssueStream | None]] = []
        self._order = count().__next__
        self.counters: dict[str, float] = {"requests": 0, "seeks": 0, "seek_s": 0.0, "rotation_s": 0.0, "transfer_s": 0.0}

    def units(self, address: Ints) -> tuple[Ints, str]:
        return np.zeros_like(address), "arm"

    def offer(self, served: RequestColumns) -> None:
        if len(served):
            heappush(self._heap, (served.at[0], _ISSUE, self._order(), IssueStream(served)))

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
        """Return (cylinder from the outermost, angle in turns) of an address.

        The rate at a share x of the bytes is sqrt(outer^2 - x (outer^2 - inner^2)); the angle follows from its integral.
        """
        part = min(1.0, address / self._size) if self._size < math.inf else 0.0
        rate, outer, inner = self._hdd.rate(part), self._outer, self._inner
        if outer - inner > 1e-9 * outer:
            cylinder, turns = (outer - rate) / (outer - inner), 2 * self._size * (outer - rate) / (outer**2 - inner**2)
        else:
            cylinder, turns = part, address / outer
        return cylinder * self._hdd.seek.cylinders, turns / self._turn % 1.0

    def _issue(self, time: float, stream: IssueStream) -> None:
        """Issue the requests of a stream that have arrived, up to its depth."""
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

    def _cache(self, time: float, stream: IssueStream, request: int) -> None:
        """Complete a write in the cache, and queue it for the platter."""
        hdd, served = self._hdd, stream.served
        served.start[request] = time
        self._answer(time + hdd.overhead + served.size[request] / (hdd.interface or self._outer), stream, request)
        self._dirty += served.size[request]
        self._wait(None, stream, request)

    def _wait(self, owner: IssueStream | None, stream: IssueStream, request: int) -> None:
        served = stream.served
        address = served.address[request]
        self._waiting.append((owner, request, address, served.size[request], served.write[request], *self.place(address)))

    def _answer(self, finish: float, stream: IssueStream, request: int) -> None:
        if stream.finish(request, finish):
            heappush(self._heap, (finish, _FINISH, self._order(), stream))

    def _serve(self, time: float) -> None:
        """Choose a request and serve it."""
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
        """Return (seek time, rotational latency) to a sector (s)."""
        distance = abs(cylinder - self._cylinder)
        seek = (self._seek(distance) if distance >= 1.0 else 0.0) + (self._hdd.settle if write else 0.0)
        return seek, (angle - (time + self._hdd.overhead + seek) / self._turn) % 1.0 * self._turn

    def _choose(self, time: float) -> int:
        """Return the index of the queued request that is served next."""
        seen = self._waiting[: self._hdd.queue]
        if len(seen) == 1 or self._policy == "fcfs":
            return 0
        for index, waiting in enumerate(seen):  # sequential access has no positioning time
            if waiting[2] == self._next_address:
                return index
        if self._policy == "clook":
            cylinder = self._cylinder
            return min(range(len(seen)), key=lambda index: (seen[index][5] < cylinder, seen[index][5]))
        best, soonest = 0, math.inf
        for index, waiting in enumerate(seen):
            seek, rotation = self._reach(time, waiting[5], waiting[6], waiting[4])
            if seek + rotation < soonest:
                best, soonest = index, seek + rotation
        return best
