"""Arms of hard disks as stations: one access at a time at each, any of those that wait next."""

from __future__ import annotations

from heapq import heappop

from hwsim.families.services.actors.stations import NEVER, Line, Member, Serves
from hwsim.families.services.workload.arms import scales, seen
from hwsim.families.services.workload.program import Station
from hwsim.workload.load.numbers import stream, uniform


class Arms(Line):
    """Arms and one line. An arm that has ended an access chooses a femtosecond later, when all of that instant have come."""

    __slots__ = ("_key", "_latest", "_scales", "_seen")

    def __init__(self, of: Station, seed: int, engine: Serves | None = None) -> None:
        Line.__init__(self, of.servers, engine)
        self._scales = [scales(accesses) for accesses in of.accesses]
        self._seen = seen(of.accesses)
        self._key = stream(seed, of.name)
        self._latest: Member = None  # whose access began last

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
        self._begin(member.flow, time, member, instant)
