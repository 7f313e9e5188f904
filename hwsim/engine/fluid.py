"""Active demands: classes of identical demands that share capacities while they run (a fluid model).

A class stores the virtual service V that one member has received since the class became active. A member that joins at V with
work W ends when the virtual service reaches V + W. A change of pace therefore needs one update per class, for any number of
members. V = sum of pace x time is an integer, so dividing an interval has no effect.

Only capacities that could bind (the active demands alone would exceed the rate) couple classes. Paces are updated from the last
solution, and only for classes that a change affects. The result equals `fair.fill` for all classes together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from hwsim.demand import Crowd
from hwsim.engine.fair import FULL, UNBOUND
from hwsim.records import dataclass
from hwsim.results.timeline import PaceChange

Depths: TypeAlias = "Sequence[int] | Mapping[int, int]"  # number of accesses in flight, by number of the device's capacity
ALONE, FULL_AT, EXPECTED = 0, 1, 2  # events at a level, in this order
MOST_KEPT = 256  # changes of pace stored since a member last joined or left, if other work is not recorded
MERGED = 8  # successive changes that are merged into two


@dataclass(frozen=True, slots=True)
class CrowdLimit:
    """A crowd of accesses at a capacity.

    Args:
        depth: accesses in flight per member of the class.
        pace: maximum pace of a member at the device alone.
    """

    capacity: int
    depth: int
    pace: int
    crowd: Crowd


@dataclass(frozen=True, slots=True)
class Clock:
    """A capacity whose speed scales a part of the floor; the maximum pace is most x room / (rest x room + own x FULL)."""

    capacity: int
    most: int
    rest: int
    own: int

    def pace(self, room: int) -> int:
        """Return the maximum pace for this available amount of the capacity."""
        return self.most * room // (self.rest * room + self.own * FULL)


@dataclass(frozen=True, slots=True)
class FlowClass:
    """A class of demands with equal maximum pace, weights, holds, crowd and clocks."""

    alone: int
    weights: tuple[tuple[int, int], ...]  # (capacity, weight)
    holds: tuple[tuple[int, int], ...] = ()  # (capacity, part of FULL)
    crowd: CrowdLimit | None = None
    clocks: tuple[Clock, ...] = ()

    def now(self, depth: Depths, room: Sequence[int]) -> FlowClass:
        """Return the class for these accesses in flight at each device, and this available amount of each capacity."""
        crowded = self if self.crowd is None else self.among(depth[self.crowd.capacity])
        at = -1 if self.crowd is None else self.crowd.capacity  # accesses there wait for the slow accesses of others
        paces = [(clock.pace(room[clock.capacity]), (crowded if clock.capacity == at else self).alone) for clock in self.clocks]
        alone = min([crowded.alone, *[pace * among // self.alone for pace, among in paces]])
        return crowded if alone == crowded.alone else FlowClass(alone, crowded.weights, crowded.holds, crowded.crowd, self.clocks)

    def held_by(self, alone: int, room: Sequence[int]) -> int:
        """Return the capacity of the clock or crowd that limits the class to this pace; `UNBOUND`: none."""
        if alone == self.alone:
            return UNBOUND
        slow = (clock.capacity for clock in self.clocks if clock.pace(room[clock.capacity]) == alone)
        return next(slow, UNBOUND if self.crowd is None else self.crowd.capacity)

    def among(self, under_way: int) -> FlowClass:
        """Return the class for this number of accesses in flight at its device."""
        crowd = self.crowd
        if crowd is None or under_way in (0, crowd.crowd.depth):  # 0: not yet counted
            return self
        from hwsim.engine.crowds import ONE_BITS, table

        slow, light = table(crowd.crowd).at(under_way)
        alone = max(1, min(self.alone, (crowd.pace << ONE_BITS) // slow))
        times = crowd.crowd.times
        weights = tuple([
            (capacity, times * (weight // times * light >> ONE_BITS) if capacity == crowd.capacity else weight)
            for capacity, weight in self.weights
        ])  # fmt: skip
        return FlowClass(alone, weights, self.holds, crowd, self.clocks)

    def only(self, capacities: Collection[int]) -> FlowClass:
        """Return the class restricted to these capacities."""
        weights, holds = (tuple([pair for pair in pairs if pair[0] in capacities]) for pairs in (self.weights, self.holds))
        crowd = self.crowd if self.crowd is not None and self.crowd.capacity in capacities else None
        is_same = len(weights) == len(self.weights) and len(holds) == len(self.holds) and crowd is self.crowd
        return self if is_same else FlowClass(self.alone, weights, holds, crowd, self.clocks)

    def draws(self) -> list[tuple[int, int, int]]:
        """Return (capacity, amount drawn at the maximum pace, amount held) of every capacity, in parts of FULL, by number."""
        if not self.holds:  # weights are in order
            return [(capacity, weight * self.alone, 0) for capacity, weight in self.weights]
        weights, holds = dict(self.weights), dict(self.holds)
        return [(no, weights.get(no, 0) * self.alone, holds.get(no, 0)) for no in sorted(weights.keys() | holds.keys())]


def _totals(flow_class: FlowClass) -> tuple[tuple[int, int], ...]:
    """(capacity, amount drawn at the maximum pace plus amount held) in parts of FULL."""
    return tuple([(capacity, drawn + held) for capacity, drawn, held in flow_class.draws()])


class Fluid:
    """The state of all classes. Time (integer fs) is an argument of each method; there is no clock here."""

    def __init__(self, classes: Sequence[FlowClass], capacities: int) -> None:
        self.room = [FULL] * capacities
        self.drawn = [0] * capacities  # amount that the active demands would draw at their maximum paces, plus held amounts
        self.held = [0] * capacities
        self.users: list[dict[int, int]] = [{} for _ in range(capacities)]  # active class -> weight
        self.level = [UNBOUND] * capacities  # level at which each was full in the last solution
        self.binding = [False] * capacities
        self.depth = [0] * capacities  # accesses in flight
        self.followers: list[list[int]] = [[] for _ in range(capacities)]  # classes with a crowd or clock at the capacity
        self.classes: list[FlowClass] = []
        self.now: list[FlowClass] = []  # classes in their present crowds and at present speeds
        self.draws: list[tuple[tuple[int, int], ...]] = []  # present draws
        self.members: list[list[tuple[int, int]]] = []
        self.virtual: list[int] = []
        self.since: list[int] = []
        self.pace: list[int] = []
        self.due: list[int] = []
        self.history: list[list[PaceChange]] = []
        self.touched: set[int] = set()
        self.changed: set[int] = set()
        self.swelled: set[int] = set()  # capacities whose crowd or clock changed
        self.passing: set[int] = set()  # classes whose paces are not recorded
        self._settled: dict[int, int] = {}  # number of changes of pace until a member last joined or left
        self.more = False  # whether a capacity changed otherwise than by ends of demands
        self.solves = 0
        for flow_class in classes:
            self.extend(flow_class)

    def extend(self, flow_class: FlowClass, *, passing: bool = False) -> int:
        """Add a class; return its number.

        Args:
            passing: whether its paces are not recorded, and those of other classes only as far as members need them.
        """
        if passing:
            self.passing.add(len(self.classes))
        if flow_class.crowd is not None:
            self.followers[flow_class.crowd.capacity].append(len(self.classes))
        for clock in flow_class.clocks:
            self.followers[clock.capacity].append(len(self.classes))
        self.classes.append(flow_class)
        self.now.append(flow_class)
        self.draws.append(_totals(flow_class))
        self.members.append([])
        for column in (self.virtual, self.since, self.pace):
            column.append(0)
        self.due.append(UNBOUND)
        self.history.append([])
        return len(self.classes) - 1

    def join(self, number: int, op: int, time: int, instant: int) -> None:
        """Add a member that would take `time` (fs) without contention."""
        flow_class = self.classes[number]
        members = self.members[number]
        self.more = True
        if members:
            self.virtual[number] += self.pace[number] * (instant - self.since[number])
        else:
            self.virtual[number] = 0
            if flow_class.clocks:  # a class without members is not updated
                self.now[number] = flow_class.now(self.depth, self.room)
                self.draws[number] = _totals(self.now[number])
            for capacity, weight in self.now[number].weights:
                self.users[capacity][number] = weight
        self.since[number] = instant
        heappush(members, (self.virtual[number] + flow_class.alone * time, op))
        self._count(number, 1)

    def leave(self, number: int, instant: int) -> list[int]:
        """Remove and return the members that have received all their service."""
        if self.due[number] != instant:
            return []
        self.due[number] = UNBOUND
        self.virtual[number] += self.pace[number] * (instant - self.since[number])
        self.since[number] = instant
        reached = self.virtual[number]
        members = self.members[number]
        ended = []
        while members and members[0][0] <= reached:
            ended.append(heappop(members)[1])
        self._count(number, -len(ended))
        if not members:
            for capacity, _ in self.classes[number].weights:
                del self.users[capacity][number]
        return ended

    def _count(self, number: int, change: int) -> None:
        self.touched.add(number)
        if self.passing:
            self._settled[number] = len(self.history[number])
        self.more |= bool(self.classes[number].holds)
        for capacity, draw in self.draws[number]:
            self.drawn[capacity] += change * draw
        for capacity, part in self.classes[number].holds:
            self.held[capacity] += change * part
        crowd = self.classes[number].crowd
        if crowd is not None:
            self.depth[crowd.capacity] += change * crowd.depth
            self.swelled.add(crowd.capacity)

    def _swell(self, capacity: int) -> None:
        """Update every class with a crowd or clock at the capacity."""
        for number in self.followers[capacity]:
            member_count = len(self.members[number])
            if not member_count:
                continue
            before, after = self.now[number], self.classes[number].now(self.depth, self.room)
            is_same = before.alone == after.alone and before.weights == after.weights
            is_free = number not in self.touched and self.pace[number] == after.alone  # another clock than before may limit it
            if is_same and not (is_free and self.history[number][-1].bound != self._alone_bound(number)):
                continue
            self.now[number] = after
            for crossed, drawn in self.draws[number]:
                self.drawn[crossed] -= member_count * drawn
            self.draws[number] = _totals(after)
            for crossed, drawn in self.draws[number]:
                self.drawn[crossed] += member_count * drawn
            for crossed, weight in after.weights:
                self.users[crossed][number] = weight
            self.touched.add(number)
            self.more = True

    def set_room(self, capacity: int, room: int) -> None:
        """Set the available amount of a capacity from now on (at most FULL, its nominal rate)."""
        self.room[capacity] = room
        self.more = True
        self.changed.add(capacity)
        if self.followers[capacity]:
            self.swelled.add(capacity)

    def settle(self, instant: int) -> list[tuple[int, int]]:
        """Update the paces after the changes of this instant; return (time, class) of changed ends."""
        for capacity in self.swelled:
            self._swell(capacity)
        self.swelled.clear()
        seen = self.changed
        active = []
        lowest = UNBOUND if self.more else min((self.pace[number] for number in self.touched), default=UNBOUND)
        for number in self.touched:
            for capacity, _ in self.draws[number]:
                seen.add(capacity)
            if self.members[number]:
                active.append(number)
            else:
                self._rest(number)
        dirty = []
        for capacity in seen:
            binds = self.drawn[capacity] > self.room[capacity]
            if binds or self.binding[capacity]:
                dirty.append(capacity)
                self.binding[capacity] = binds
        if dirty:
            mended = self._mend(dirty, active, lowest)
        else:
            mended = [(number, self.now[number].alone, self._alone_bound(number)) for number in active]
        moved = []
        for number, pace, bound in mended:
            end = self._schedule(number, pace, bound, instant)
            if end is not None:
                moved.append((end, number))
        self.touched.clear()
        self.changed.clear()
        self.more = False
        return moved

    def _mend(self, dirty: Sequence[int], active: Sequence[int], level: int) -> list[tuple[int, int, int]]:
        """Return pace and bound of the active touched classes, and of all classes that the dirty capacities affect.

        The algorithm is the progressive filling of `fair.fill`, restricted to capacities whose filling differs from the last
        solution. A capacity is added at the level at which one of its classes stops earlier than before, or does not stop at
        its old pace; up to that level its filling is unchanged. A class without such a change is `EXPECTED` to stop at its old
        pace.

        Args:
            level: level up to which nothing differs; if demands have only ended, the lowest of their paces.
        """
        self.solves += any(self.binding[capacity] for capacity in dirty)
        classes, members, paces, levels, binding = self.now, self.members, self.pace, self.level, self.binding
        left: dict[int, int] = {}
        load: dict[int, int] = {}
        rising = set(active)
        settled: dict[int, int] = {}
        queue = [(classes[number].alone, ALONE, number) for number in active]
        heapify(queue)
        reached = list(dirty)
        mended: list[tuple[int, int, int]] = []
        while True:
            for capacity in reached:
                if capacity in left:
                    continue
                levels[capacity] = UNBOUND
                room, drawn = max(0, self.room[capacity] - self.held[capacity]), 0
                for number, weight in self.users[capacity].items():
                    weight *= len(members[number])
                    if number not in rising:
                        pace = settled.get(number)
                        if pace is None:
                            pace, alone = paces[number], classes[number].alone
                            if pace > level or (pace == level and pace < alone):
                                rising.add(number)
                                heappush(queue, (pace, ALONE if pace == alone else EXPECTED, number))
                                drawn += weight
                                continue
                        room -= pace * weight
                    else:
                        drawn += weight
                left[capacity], load[capacity] = room, drawn
                if drawn and binding[capacity]:
                    heappush(queue, (room // drawn, FULL_AT, capacity))
            reached = []
            if not queue:
                return mended
            level, kind, number = heappop(queue)
            if kind == FULL_AT:
                stopping = self._full(queue, left, load, level, number, rising)
            elif number not in rising:
                continue
            else:
                stopping = [number]
                if kind == EXPECTED:
                    crossed = [capacity for capacity, _ in classes[number].weights if binding[capacity]]
                    if not any(levels[capacity] == level for capacity in crossed):
                        reached = crossed
                        heappush(queue, (classes[number].alone, ALONE, number))
                        continue
            for number in stopping:
                rising.discard(number)
                settled[number] = level
                is_limited = level < classes[number].alone
                bound = UNBOUND if is_limited else self._alone_bound(number)
                differs = number in self.touched or level != paces[number]
                member_count = len(members[number])
                for capacity, weight in classes[number].weights:
                    if not binding[capacity]:
                        continue
                    if is_limited and levels[capacity] == level and (bound < 0 or capacity < bound):
                        bound = capacity
                    if capacity in left:
                        load[capacity] -= member_count * weight
                        left[capacity] -= level * member_count * weight
                    elif differs:
                        reached.append(capacity)
                mended.append((number, level, bound))

    def _full(
        self,
        queue: list[tuple[int, int, int]],
        left: dict[int, int],
        load: dict[int, int],
        level: int,
        capacity: int,
        rising: set[int],
    ) -> list[int]:
        """Classes limited by the capacities that are full at this level, together, so that their order has no effect."""
        limited: dict[int, None] = {}
        while True:
            drawn = load[capacity]
            if drawn:
                filled_at = left[capacity] // drawn
                if filled_at > level:
                    heappush(queue, (filled_at, FULL_AT, capacity))
                else:
                    self.level[capacity] = level
                    limited.update((number, None) for number in self.users[capacity] if number in rising)
            if not (queue and queue[0][0] <= level and queue[0][1] == FULL_AT):
                return list(limited)
            _, _, capacity = heappop(queue)

    def _alone_bound(self, number: int) -> int:
        """The capacity of the clock or crowd that limits a class whose capacities are not full."""
        return self.classes[number].held_by(self.now[number].alone, self.room)

    def _rest(self, number: int) -> None:
        """Set the pace of a class without members to 0."""
        if self.pace[number]:
            self.pace[number] = 0
            self.history[number].append(PaceChange(self.since[number], 0, UNBOUND))
            if self.passing:
                self._forget(number)

    def _schedule(self, number: int, pace: int, bound: int, instant: int) -> int | None:
        history = self.history[number]
        same = bool(history) and pace == self.pace[number] and history[-1].bound == bound
        if same and number not in self.touched:
            return None
        self.virtual[number] += self.pace[number] * (instant - self.since[number])
        self.since[number] = instant
        self.pace[number] = pace
        if not same:
            history.append(PaceChange(instant, pace, bound))
            if self.passing:
                self._forget(number)
        if not pace:
            self.due[number] = UNBOUND
            return None
        end = instant - (self.virtual[number] - self.members[number][0][0]) // pace
        if end == self.due[number]:
            return None
        self.due[number] = end
        return end

    def _forget(self, number: int) -> None:
        """Shorten the history of a class, but preserve the exact service between the joining and leaving of recorded members."""
        history = self.history[number]
        if number in self.passing:
            del history[:-1]
            self._settled[number] = 0
            return
        first = self._settled.get(number, 0)
        if len(history) - first <= MOST_KEPT:
            return
        last = len(history) - 1  # the current pace
        merged: list[PaceChange] = []
        for low in range(first, last, MERGED):
            merged += _merged(history[low : min(low + MERGED, last)], history[min(low + MERGED, last)].start)
        history[first:last] = merged


def _merged(changes: Sequence[PaceChange], end: int) -> list[PaceChange]:
    """Merge changes into one or two with the same integer service until `end`; their bound is the longest-lasting one."""
    begin, received, held = changes[0].start, 0, dict[int, int]()
    for change, until in zip(changes, [*(change.start for change in changes[1:]), end], strict=True):
        received += change.pace * (until - change.start)
        held[change.bound] = held.get(change.bound, 0) + until - change.start
    bound = max(held, key=lambda capacity: (held[capacity], capacity))
    pace, rest = divmod(received, end - begin)
    if not rest:
        return [PaceChange(begin, pace, bound)]
    return [PaceChange(begin, pace, bound), PaceChange(end - rest, pace + 1, bound)]
