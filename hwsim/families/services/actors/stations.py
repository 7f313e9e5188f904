"""Stations: where requests are served. Time is whole femtoseconds and is passed in; a station says when its next one ends.

A shared station gives each member what `hwsim.engine.fluid` gives it on one capacity, to the femtosecond.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from operator import attrgetter, itemgetter
from typing import Any, Final, Protocol, TypeAlias

from hwsim.demand import rates_of
from hwsim.engine.compile import flow_class
from hwsim.engine.fair import FULL
from hwsim.engine.fluid import FlowClass
from hwsim.families.services.workload.program import Station

NEVER: Final = 2**200  # fs

Member: TypeAlias = Any  # what is served: the player's strand


class Counts(Protocol):
    """A station as the results see it."""

    def count(self, now: int) -> int: ...

    def used(self, end: int) -> float: ...


class Serves(Protocol):
    """A station as the player sees it: `due` is when the next member ends."""

    due: int
    area: int  # members x fs
    busy: int  # fs x what was used of it, of FULL

    def join(self, flow: int, time: int, member: Member, now: int) -> None: ...

    def leave(self, now: int) -> list[Member]: ...

    def count(self, now: int) -> int: ...

    def used(self, end: int) -> float: ...


class Line:
    """A number of servers and one line, counted; who is next is the station's.

    engine: does the work of those whose turn it is; None: it takes its time.
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
        """Work begins at a free server."""
        self._begun += 1
        self._free -= 1
        if self._engine is None:
            heappush(self._ends, (now + time, self._begun, member))
        else:
            self.busy += time * FULL // self.servers
            self._engine.join(flow, time, (self._begun, member), now)
        self.due = self._ends[0][0] if self._ends else NEVER

    def over(self, began: tuple[int, Member], now: int) -> None:
        """The engine has done a work."""
        heappush(self._ends, (now, *began))

    def used(self, end: int) -> float:
        """Part of it that was used, from 0 to `end`."""
        return self.busy / FULL / end

    def count(self, instant: int) -> int:
        """Members there; time is counted up to now."""
        working = self.servers - self._free
        inside = working + len(self._line)
        passed = instant - self._last
        self.area += inside * passed
        if self._engine is None:
            self.busy += working * FULL // self.servers * passed
        self._last = instant
        return inside


class Fifo(Line):
    """First come first served."""

    __slots__ = ()

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:
        """A member comes that takes a server `time` fs."""
        self.count(instant)
        if self._free:
            self._begin(flow, time, member, instant)
        else:
            self._line.append((flow, time, member))

    def leave(self, instant: int) -> list[Member]:
        """Members that end now."""
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


class Shared:
    """One capacity that all members draw from at once: each at its pace alone, or at the level at which the capacity is full.

    At a device with a queue (see `hwsim.demand.Crowd`) pace and weight of a member depend on all that are there.
    """

    __slots__ = ("_crowded", "_depth", "_drawn", "_joined", "_last", "_there", "_used", "area", "busy", "classes", "due")

    def __init__(self, flows: Sequence[FlowClass]) -> None:
        self.classes = [_Class(flow) for flow in flows]
        self._crowded = [one for one in self.classes if one.depth]
        self._drawn = self._there = self._joined = self._last = self._used = self._depth = 0
        self.area = self.busy = 0
        self.due = NEVER

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:
        """A member comes that alone would take `time` fs."""
        first = self.classes[flow]
        passed = instant - self._last
        if passed:
            self.area += self._there * passed
            self.busy += self._used * passed
            self._last = instant
        if first.members:
            first.virtual += first.pace * (instant - first.since)
        else:
            first.virtual = 0
        first.since = instant
        self._joined += 1
        self._there += 1
        self._drawn += first.draws
        heappush(first.members, (first.virtual + first.full * time, self._joined, member))
        if first.depth:
            self._depth += first.depth
            self._swell()
        self._settle(instant, first)

    def leave(self, instant: int) -> list[Member]:
        """Members that end now."""
        self.count(instant)
        ended: list[tuple[int, Member]] = []
        for first in self.classes:
            if first.due != instant:
                continue
            members = first.members
            first.virtual += first.pace * (instant - first.since)
            first.since = instant
            reached = first.virtual
            while members and members[0][0] <= reached:
                _, number, member = heappop(members)
                ended.append((number, member))
                self._drawn -= first.draws
                self._there -= 1
                self._depth -= first.depth
        if self._crowded:
            self._swell()
        self._settle(instant, None)
        if len(ended) > 1:
            ended.sort(key=itemgetter(0))
        return [member for _, member in ended]

    def count(self, instant: int) -> int:
        """Members there; time is counted up to now."""
        passed = instant - self._last
        self.area += self._there * passed
        self.busy += self._used * passed
        self._last = instant
        return self._there

    def used(self, end: int) -> float:
        """Part of it that was used, from 0 to `end`."""
        return self.busy / FULL / end

    def _swell(self) -> None:
        """Bring all who are in the device's queue to its present length."""
        for one in self._crowded:
            if one.members:
                one.among(self._depth)
        self._drawn = sum(one.draws * len(one.members) for one in self.classes)  # integers

    def _settle(self, instant: int, touched: _Class | None) -> None:
        """Paces and ends, after members have come or gone."""
        drawn = self._drawn
        due = NEVER
        if drawn <= FULL:
            self._used = drawn
            for first in self.classes:
                if first.members:
                    if first is touched or first.pace != first.alone or first.due <= instant or first.due == NEVER:
                        first.turn(instant, first.alone)
                    if first.due < due:
                        due = first.due
                else:
                    first.due = NEVER
            self.due = due
            return
        self._used = left = FULL
        rising = []
        load = 0
        for first in self.classes:
            if first.members:
                rising.append(first)
                load += first.weight * len(first.members)
            else:
                first.due = NEVER
        if len(rising) > 1:
            rising.sort(key=attrgetter("alone"))
        for first in rising:
            level = left // load
            pace = level
            if first.alone <= level:
                pace = first.alone
                many = first.weight * len(first.members)
                left -= pace * many
                load -= many
            if pace != first.pace or first is touched or first.due <= instant or first.due == NEVER:
                first.turn(instant, pace)
            if first.due < due:
                due = first.due
        self.due = due


class _Class:
    """Members of a shared station that draw alike; virtual: what each has received since the first of them came."""

    __slots__ = ("alone", "depth", "draws", "due", "flow", "full", "members", "pace", "since", "virtual", "weight")

    def __init__(self, flow: FlowClass) -> None:
        self.flow, self.full = flow, flow.alone
        self.depth = 0 if flow.crowd is None else flow.crowd.depth
        self.members: list[tuple[int, int, Member]] = []
        self.virtual = self.since = self.pace = 0
        self.due = NEVER
        self._is(flow)

    def _is(self, flow: FlowClass) -> None:
        self.alone = flow.alone
        self.weight = flow.weights[0][1] if flow.weights else 0
        self.draws = self.alone * self.weight

    def among(self, under_way: int) -> None:
        """Take pace and weight at this number of accesses at its device."""
        self._is(self.flow.among(under_way) if under_way else self.flow)

    def turn(self, instant: int, pace: int) -> None:
        """Another pace, and when the first member then ends."""
        self.virtual += self.pace * (instant - self.since)
        self.since, self.pace = instant, pace
        self.due = max(
            instant, instant - (self.virtual - self.members[0][0]) // pace
        )  # not before now, though it may have received its all


Issue: TypeAlias = Callable[[Station, int], Serves]


def station(of: Station, number: int, seed: int = 0, issue: Issue | None = None) -> Serves:
    """The station of a program.

    Args:
        number: its place.  seed: of the program.  issue: makes one whose work is issued to the engine.
    """
    if of.issued:
        if issue is None:
            raise ValueError(f"the work of {of.name} needs someone to issue it")
        return issue(of, number)
    if of.kind == "fifo":
        return Fifo(of.servers)
    if of.kind == "arms":
        from hwsim.families.services.actors.arms import Arms

        return Arms(of, seed)
    numbers = {capacity.name: number for number, capacity in enumerate(of.capacities)}
    flows = [flow_class(demand, rates_of(of.capacities), numbers) for demand in of.demands]
    if of.kind == "shared":
        return Shared(flows)
    from hwsim.families.services.actors.networks import Network

    return Network(flows, len(of.capacities))
