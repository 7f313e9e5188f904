"""Demands in flight: classes of identical demands that share capacities while they run.

A class keeps the virtual service V one member has received since the class became active; a
member that joins at V with work W ends when V reaches V + W.  So a change of pace costs one
update per class, however many members it has.  V = sum of pace x time is an integer: cutting an
interval in two changes nothing.

Only capacities that could bind (what the active demands would draw alone exceeds what there is)
tie classes together; only the component that a change touches is solved again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from hwsim.engine.fair import FULL, UNBOUND, fill
from hwsim.results.timeline import Pace


@dataclass(frozen=True, slots=True)
class FlowClass:
    """Demands that draw alike: same weights, same pace alone, same holds."""

    alone: int
    weights: tuple[tuple[int, int], ...]  # (capacity, weight)
    holds: tuple[tuple[int, int], ...] = ()  # (capacity, part of FULL)


class Fluid:
    """The classes in flight.  Time is integer fs and is passed in; nothing here owns a clock."""

    def __init__(self, classes: Sequence[FlowClass], capacities: int) -> None:
        self.room = [FULL] * capacities
        self.drawn = [0] * capacities  # what the active demands would draw alone, plus what they hold
        self.held = [0] * capacities
        self.users: list[set[int]] = [set() for _ in range(capacities)]
        self.binding = [False] * capacities
        self.classes: list[FlowClass] = []
        self.draws: list[tuple[tuple[int, int], ...]] = []
        self.members: list[list[tuple[int, int]]] = []
        self.virtual: list[int] = []
        self.since: list[int] = []
        self.pace: list[int] = []
        self.due: list[int] = []
        self.history: list[list[Pace]] = []
        self.touched: set[int] = set()
        self.changed: set[int] = set()
        self.solves = 0
        for one in classes:
            self.extend(one)

    def extend(self, one: FlowClass) -> int:
        """Make a class known; its number."""
        holds = dict(one.holds)
        weights = dict(one.weights)
        self.classes.append(one)
        self.draws.append(
            tuple(
                (capacity, weights.get(capacity, 0) * one.alone + holds.get(capacity, 0))
                for capacity in sorted(weights.keys() | holds.keys())
            )
        )
        self.members.append([])
        for column in (self.virtual, self.since, self.pace):
            column.append(0)
        self.due.append(UNBOUND)
        self.history.append([])
        return len(self.classes) - 1

    def join(self, number: int, op: int, time: int, now: int) -> None:
        """A member that alone would take `time` fs starts to flow."""
        one = self.classes[number]
        members = self.members[number]
        if members:
            self.virtual[number] += self.pace[number] * (now - self.since[number])
        else:
            self.virtual[number] = 0
            for capacity, _ in self.draws[number]:
                self.users[capacity].add(number)
        self.since[number] = now
        heappush(members, (self.virtual[number] + one.alone * time, op))
        self._count(number, 1)

    def leave(self, number: int, now: int) -> list[int]:
        """Members that have received all their service by now, in order of op number."""
        if self.due[number] != now:
            return []
        self.due[number] = UNBOUND
        self.virtual[number] += self.pace[number] * (now - self.since[number])
        self.since[number] = now
        reached = self.virtual[number]
        members = self.members[number]
        ended = []
        while members and members[0][0] <= reached:
            ended.append(heappop(members)[1])
        self._count(number, -len(ended))
        if not members:
            for capacity, _ in self.draws[number]:
                self.users[capacity].discard(number)
        return ended

    def _count(self, number: int, change: int) -> None:
        self.touched.add(number)
        for capacity, draw in self.draws[number]:
            self.drawn[capacity] += change * draw
        for capacity, part in self.classes[number].holds:
            self.held[capacity] += change * part

    def set_room(self, capacity: int, room: int) -> None:
        """From now on there is only so much of a capacity (at most FULL, its nominal rate)."""
        self.room[capacity] = room
        self.changed.add(capacity)

    def settle(self, now: int) -> list[tuple[int, int]]:
        """Solve what this instant's changes touched; (time, class) of the ends that moved."""
        component = self._component()
        if not component:
            return []
        alone = [self.classes[number].alone for number in component]
        paces, bounds = alone, [UNBOUND] * len(component)
        weights = [[pair for pair in self.classes[number].weights if self.binding[pair[0]]] for number in component]
        if any(weights):
            self.solves += 1
            room = dict.fromkeys([capacity for pairs in weights for capacity, _ in pairs], 0)
            for capacity in room:
                room[capacity] = max(0, self.room[capacity] - self.held[capacity])
            paces, bounds = fill(alone, [len(self.members[number]) for number in component], weights, room)
        moved = []
        for number, pace, bound in zip(component, paces, bounds, strict=True):
            end = self._schedule(number, pace, bound, now)
            if end is not None:
                moved.append((end, number))
        self.touched.clear()
        return moved

    def _component(self) -> list[int]:
        """Classes whose pace may have changed: the touched ones, and all that binding capacities tie to them."""
        seeds = set(self.touched)
        seen = set(self.changed)
        for number in self.touched:
            seen.update(capacity for capacity, _ in self.draws[number])
        for capacity in seen:
            binds = self.drawn[capacity] > self.room[capacity]
            if binds or self.binding[capacity]:
                seeds |= self.users[capacity]
            self.binding[capacity] = binds
        self.changed.clear()
        found = {number for number in seeds if self.members[number]}
        for number in self.touched - found:
            self._rest(number)
        stack = list(found)
        while stack:
            for capacity, _ in self.draws[stack.pop()]:
                if self.binding[capacity] and capacity not in seen:
                    seen.add(capacity)
                    fresh = self.users[capacity] - found
                    found |= fresh
                    stack.extend(fresh)
        return sorted(found)

    def _rest(self, number: int) -> None:
        """The class has no member left."""
        if self.pace[number]:
            self.pace[number] = 0
            self.history[number].append(Pace(self.since[number], 0, UNBOUND))

    def _schedule(self, number: int, pace: int, bound: int, now: int) -> int | None:
        history = self.history[number]
        same = bool(pace and history) and pace == self.pace[number] and history[-1].bound == bound
        if same and number not in self.touched:
            return None
        self.virtual[number] += self.pace[number] * (now - self.since[number])
        self.since[number] = now
        self.pace[number] = pace
        if not same:
            history.append(Pace(now, pace, bound))
        if not pace:
            self.due[number] = UNBOUND
            return None
        end = now - (self.virtual[number] - self.members[number][0][0]) // pace
        if end == self.due[number]:
            return None
        self.due[number] = end
        return end
