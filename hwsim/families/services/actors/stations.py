"""Stations of the Python simulator, which serve the work of requests. All times are whole femtoseconds, passed by the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final, Protocol, TypeAlias

from hwsim.demand import rates_of
from hwsim.engine.compile import flow_class
from hwsim.engine.fair import FULL
from hwsim.families.services.workload.program import Station

NEVER: Final = 2**200  # fs

Member: TypeAlias = Any  # a request or branch in service


class Serves(Protocol):
    """The interface of a station; `due`: time at which the next member ends (fs)."""

    due: int
    area: int  # members x fs
    busy: int  # fs x utilization, in units of FULL

    def join(self, flow: int, time: int, member: Member, now: int) -> None: ...

    def leave(self, now: int) -> list[Member]: ...

    def count(self, now: int) -> int: ...

    def used(self, end: int) -> float: ...


class ServerQueue:
    """A group of servers with one queue and statistics; subclasses choose the next member.

    Args:
        servers: number of servers.
        engine: station of the engine that serves members in service, if jobs use the capacity, too; None: fixed times.
    """

    __slots__ = ("_begun", "_ends", "_engine", "_free", "_last", "_line", "area", "busy", "due", "servers")

    def __init__(self, servers: int, engine: Serves | None = None) -> None:
        self.servers = self._free = servers
        self._engine, self._begun = engine, 0
        self._line: deque[Any] = deque()
        self._ends: list[tuple[int, int, Member]] = []
        self._last = self.area = self.busy = 0
        self.due = NEVER

    def _begin(self, flow: int, time: int, member: Member, now: int) -> None:
        """Begin work at a free server."""
        self._begun += 1
        self._free -= 1
        if self._engine is None:
            heappush(self._ends, (now + time, self._begun, member))
        else:
            self.busy += time * FULL // self.servers
            self._engine.join(flow, time, (self._begun, member), now)
        self.due = self._ends[0][0] if self._ends else NEVER

    def over(self, began: tuple[int, Member], now: int) -> None:
        """End work that the engine has completed."""
        heappush(self._ends, (now, *began))

    def used(self, end: int) -> float:
        """Return the utilization from 0 to `end`."""
        return self.busy / FULL / end

    def count(self, instant: int) -> int:
        """Update the statistics, and return the number of members."""
        working = self.servers - self._free
        inside = working + len(self._line)
        passed = instant - self._last
        self.area += inside * passed
        if self._engine is None:
            self.busy += working * FULL // self.servers * passed
        self._last = instant
        return inside


class Fifo(ServerQueue):
    """A station with first come, first served."""

    __slots__ = ()

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:
        """Add a member that occupies a server for `time` fs."""
        self.count(instant)
        if self._free:
            self._begin(flow, time, member, instant)
        else:
            self._line.append((flow, time, member))

    def leave(self, instant: int) -> list[Member]:
        """Remove and return the members that end at an instant."""
        self.count(instant)
        ended = []
        while self._ends and self._ends[0][0] <= instant:
            ended.append(heappop(self._ends)[2])
            self._free += 1
            if self._line:
                flow, time, member = self._line.popleft()
                self._begin(flow, time, member, instant)
        self.due = self._ends[0][0] if self._ends else NEVER
        return ended


Issue: TypeAlias = Callable[[Station, int], Serves]


def station(of: Station, number: int, seed: int = 0, issue: Issue | None = None) -> Serves:
    """Return the simulated station.

    Args:
        of: station of the program.
        number: its index.
        seed: seed of the program.
        issue: constructor of stations whose work the engine serves.
    """
    if of.issued:
        if issue is None:
            raise ValueError(f"{of.name} is shared with jobs, but `issue` is missing")
        return issue(of, number)
    if of.kind == "fifo":
        return Fifo(of.servers)
    if of.kind == "arms":
        from hwsim.families.services.actors.arms import Arms

        return Arms(of, seed)
    numbers = {capacity.name: number for number, capacity in enumerate(of.capacities)}
    flows = [flow_class(demand, rates_of(of.capacities), numbers) for demand in of.demands]
    from hwsim.families.services.actors.shared import Shared

    return Shared(flows, len(of.capacities))
