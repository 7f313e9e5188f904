"""Stations of several capacities, where a piece of work draws from one or more; shared as the engine shares them."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final

from hwsim.actors.services.stations import NEVER, Member
from hwsim.engine.fair import FULL, fill
from hwsim.engine.fluid import FlowClass, Fluid

MOST_PACES: Final = 1 << 14  # numbers of members whose paces are kept


class Tied:
    """Capacities without holds and without a device's queue: paces follow from how many members of each kind are there.

    To the femtosecond as `Network`.
    """

    __slots__ = ("_classes", "_counts", "_joined", "_last", "_paces", "_there", "area", "busy", "due")

    def __init__(self, flows: Sequence[FlowClass]) -> None:
        self._classes = [_Kind(flow) for flow in flows]
        self._counts = [0] * len(flows)
        self._paces: dict[tuple[int, ...], list[int]] = {}
        self._there = self._joined = self._last = 0
        self.area = self.busy = 0
        self.due = NEVER

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:
        """A member comes that alone would take `time` fs."""
        self.area += self._there * (instant - self._last)
        self._last = instant
        kind = self._classes[flow]
        kind.come_to(instant)
        if not kind.members:
            kind.virtual = 0
        self._joined += 1
        self._there += 1
        self._counts[flow] += 1
        heappush(kind.members, (kind.virtual + kind.flow.alone * time, self._joined, member))
        kind.is_touched = True
        self._settle(instant)

    def leave(self, instant: int) -> list[Member]:
        """Members that end now."""
        self.area += self._there * (instant - self._last)
        self._last = instant
        ended: list[tuple[int, Member]] = []
        for number, kind in enumerate(self._classes):
            if kind.due != instant:
                continue
            kind.come_to(instant)
            members, reached = kind.members, kind.virtual
            while members and members[0][0] <= reached:
                _, joined, member = heappop(members)
                ended.append((joined, member))
            self._counts[number] = len(members)
            kind.is_touched = True
        self._there -= len(ended)
        self._settle(instant)
        if len(ended) > 1:
            ended.sort(key=_joining)
        return [member for _, member in ended]

    def count(self, instant: int) -> int:
        """Members there; time is counted up to now."""
        self.area += self._there * (instant - self._last)
        self._last = instant
        return self._there

    def used(self, end: int) -> float:  # noqa: ARG002
        """Not known of several at once."""
        return 0.0

    def _settle(self, instant: int) -> None:
        counts = tuple(self._counts)
        paces = self._paces.get(counts)
        if paces is None:
            paces = self._paces_of(counts)
        due = NEVER
        for kind, pace in zip(self._classes, paces, strict=True):
            if kind.is_touched or pace != kind.pace:
                kind.turns(instant, pace)
            if kind.due < due:
                due = kind.due
        self.due = due

    def _paces_of(self, counts: tuple[int, ...]) -> list[int]:
        """Paces of one member of each kind, 0 where there is none."""
        kinds = [number for number, many in enumerate(counts) if many]
        flows = [self._classes[number].flow for number in kinds]
        room = {capacity: FULL for flow in flows for capacity, _ in flow.weights}
        filled, _ = fill(
            [flow.alone for flow in flows], [counts[number] for number in kinds], [flow.weights for flow in flows], room
        )
        paces = [0] * len(counts)
        for number, pace in zip(kinds, filled, strict=True):
            paces[number] = pace
        if len(self._paces) >= MOST_PACES:
            self._paces.clear()
        self._paces[counts] = paces
        return paces


class _Kind:
    """Members that draw alike; virtual: what each has received since the first of them came."""

    __slots__ = ("due", "flow", "is_touched", "members", "pace", "since", "virtual")

    def __init__(self, flow: FlowClass) -> None:
        self.flow = flow
        self.members: list[tuple[int, int, Member]] = []
        self.virtual = self.since = self.pace = 0
        self.due = NEVER
        self.is_touched = False

    def come_to(self, instant: int) -> None:
        """Count what members have received up to now."""
        self.virtual += self.pace * (instant - self.since)
        self.since = instant

    def turns(self, instant: int, pace: int) -> None:
        """Another pace, or other members: when the first of them then ends."""
        self.is_touched = False
        self.come_to(instant)
        self.pace = pace
        self.due = instant - (self.virtual - self.members[0][0]) // pace if pace and self.members else NEVER


def _joining(entry: tuple[int, Member]) -> int:
    return entry[0]


class Network:
    """Several capacities that one piece of work may draw from at once; shared as the engine shares them."""

    def __init__(self, flows: Sequence[FlowClass], capacities: int) -> None:
        self._fluid = Fluid(flows, capacities)
        self._members: dict[int, Member] = {}
        self._joined = self._last = 0
        self.area = self.busy = 0
        self.due = NEVER

    def join(self, flow: int, time: int, member: Member, instant: int) -> None:
        """A member comes that alone would take `time` fs."""
        self.count(instant)
        self._joined += 1
        self._members[self._joined] = member
        self._fluid.join(flow, self._joined, time, instant)
        self._settle(instant)

    def leave(self, now: int) -> list[Member]:
        """Members that end now."""
        self.count(now)
        ended = [op for number, due in enumerate(self._fluid.due) if due == now for op in self._fluid.leave(number, now)]
        self._settle(now)
        return [self._members.pop(op) for op in sorted(ended)]

    def count(self, now: int) -> int:
        """Members there; time is counted up to now."""
        self.area += len(self._members) * (now - self._last)
        self._last = now
        return len(self._members)

    def used(self, end: int) -> float:  # noqa: ARG002
        """Not known of several at once."""
        return 0.0

    def _settle(self, now: int) -> None:
        fluid = self._fluid
        fluid.settle(now)
        for history in fluid.history:
            history[:-1] = []  # nothing is kept of what is over
        self.due = min((due for due in fluid.due if due >= 0), default=NEVER)
