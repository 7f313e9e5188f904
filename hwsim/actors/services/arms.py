"""Arms of hard disks as stations: one access at a time at each, any of those that wait next."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from hwsim.actors.services.stations import NEVER, Member
from hwsim.engine.fair import FULL
from hwsim.workload.load.numbers import stream, uniform
from hwsim.workload.services.arms import scales, seen
from hwsim.workload.services.program import Station


class Arms:
    """Arms and one line. An arm that has ended an access chooses a femtosecond later, when all of that instant have come."""

    __slots__ = (
        "_begun",
        "_ends",
        "_free",
        "_key",
        "_last",
        "_latest",
        "_line",
        "_scales",
        "_seen",
        "area",
        "busy",
        "due",
        "servers",
    )

    def __init__(self, of: Station, seed: int) -> None:
        self.servers = self._free = of.servers
        self._scales = [scales(accesses) for accesses in of.accesses]
        self._seen = seen(of.accesses)
        self._key = stream(seed, of.name)
        self._line: deque[Member] = deque()
        self._ends: list[tuple[int, int, Member]] = []
        self._latest: Member = None  # whose access began last
        self._begun = self._last = 0
        self.area = self.busy = 0
        self.due = NEVER

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:  # noqa: ARG002 (the member knows both)
        """An access comes."""
        self.count(instant)
        self._line.append(member)
        if self._free and len(self._line) == 1:
            self._choose(instant)

    def leave(self, instant: int) -> list[Member]:
        """Accesses that end now; if none does, free arms choose."""
        self.count(instant)
        ended = []
        while self._ends and self._ends[0][0] <= instant:
            ended.append(heappop(self._ends)[2])
            self._free += 1
        if ended and self._line:
            self.due = instant + 1
            return ended
        while self._free and self._line:
            self._choose(instant)
        self.due = self._ends[0][0] if self._ends else NEVER
        return ended

    def _choose(self, instant: int) -> None:
        """Begin any access of those that wait; one that goes on where it has ended is not there yet while others are."""
        line = self._line
        many = min(len(line), self._seen)
        at = int(uniform(self._key, self._begun) * many) if many > 1 else 0
        if many > 1 and line[at].follows >= 0 and line[at] is self._latest:
            at = (at + 1) % many
        member = line[at]
        sizes = self._scales[member.flow]
        under_way = min(len(line) + self.servers - self._free, len(sizes) - 1)
        del line[at]
        if member.follows >= 0 and member is self._latest:
            time = member.follows
        else:
            time = member.base + round(member.reach * sizes[under_way])
        self._latest = member
        self._begun += 1
        self._free -= 1
        heappush(self._ends, (instant + time, self._begun, member))
        self.due = self._ends[0][0]

    def used(self, end: int) -> float:
        """Part of them that was used, from 0 to `end`."""
        return self.busy / FULL / end

    def count(self, instant: int) -> int:
        """Accesses there; time is counted up to now."""
        working = self.servers - self._free
        inside = working + len(self._line)
        passed = instant - self._last
        self.area += inside * passed
        self.busy += working * FULL // self.servers * passed
        self._last = instant
        return inside
