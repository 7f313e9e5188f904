"""Arms of hard disks as stations: each arm serves one access at a time, in random order."""

from __future__ import annotations

from heapq import heappop

from hwsim.families.services.actors.stations import NEVER, Member, ServerQueue, Serves
from hwsim.families.services.workload.arms import choice_window, positioning_factors
from hwsim.families.services.workload.program import Station
from hwsim.workload.load.numbers import stream, uniform


class Arms(ServerQueue):
    """A station of disk arms with one queue.

    An arm chooses its next access one femtosecond after the previous one, when all accesses of that instant have arrived.
    """

    __slots__ = ("_key", "_latest", "_scales", "_seen")

    def __init__(self, of: Station, seed: int, engine: Serves | None = None) -> None:
        ServerQueue.__init__(self, of.servers, engine)
        self._scales = [positioning_factors(accesses) for accesses in of.accesses]
        self._seen = choice_window(of.accesses)
        self._key = stream(seed, of.name)
        self._latest: Member = None  # member whose access began last

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:  # noqa: ARG002 (the member knows both)
        """Add an access."""
        self.count(instant)
        self._line.append(member)
        if self._free and len(self._line) == 1:
            self._choose(instant)

    def leave(self, instant: int) -> list[Member]:
        """Remove and return the accesses that end at an instant; if there are none, free arms choose."""
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
        """Begin a random queued access, but not the next one of the stream that the arm served last if others are queued."""
        line = self._line
        count = min(len(line), self._seen)
        index = int(uniform(self._key, self._begun) * count) if count > 1 else 0
        if count > 1 and line[index].follows >= 0 and line[index] is self._latest:
            index = (index + 1) % count
        member = line[index]
        sizes = self._scales[member.flow]
        depth = min(len(line) + self.servers - self._free, len(sizes) - 1)
        del line[index]
        if member.follows >= 0 and member is self._latest:
            time = member.follows
        else:
            time = member.base + round(member.reach * sizes[depth])
        self._latest = member
        self._begin(member.flow, time, member, instant)
