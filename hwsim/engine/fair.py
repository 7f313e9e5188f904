"""Weighted max-min fair sharing, in integers: the pace of every demand on shared capacities.

Every demand has a pace it cannot beat alone; capacities have room. All paces rise together
from zero; a demand stops rising at its own limit, or when a capacity it draws from is full
(progressive filling: Bertsekas and Gallager, Data Networks, 1992, section 6.5.2). The result is
the only one in which every demand runs at its own limit or crosses a full capacity on which
no demand has a higher pace.

Sums and products are integers and levels are rounded down. So the result does not depend on the
order of anything, no capacity passes 100 %, and m equal demands are the same as one of
multiplicity m, bit for bit.

`fill` is the definition; a run mends its last solution instead (`fluid`), with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

LEVEL_BITS = 64  # paces are in units of 2**-64 share/s
WEIGHT_BITS = 100  # what one unit of pace takes of a capacity, in units of 2**-100 of the capacity
FULL = 1 << (LEVEL_BITS + WEIGHT_BITS)  # a whole capacity

UNBOUND = -1


def fill(
    alone: Sequence[int],
    members: Sequence[int],
    weights: Sequence[Sequence[tuple[int, int]]],
    room: Mapping[int, int],
) -> tuple[list[int], list[int]]:
    """Pace of one member of each class, and the capacity that holds it back (`UNBOUND`: none does).

    Args:
        alone: per class, the pace it cannot beat.
        members: per class, how many identical demands it stands for.
        weights: per class, (capacity, what one member takes of it at pace 1).
        room: capacity -> what there is of it, at most `FULL`.

    Two equal demands that could each fill the capacity, and one that wants a tenth of it:

    >>> weight = FULL // 1000
    >>> fill([1000, 100], [2, 1], [[(0, weight)], [(0, weight)]], {0: FULL})
    ([450, 100], [0, -1])
    """
    count = len(alone)
    left = dict(room)
    load: dict[int, int] = {}
    users: dict[int, list[int]] = {}
    for number in range(count):
        for capacity, weight in weights[number]:
            drawn = members[number] * weight
            if capacity in load:
                load[capacity] += drawn
                users[capacity].append(number)
            else:
                load[capacity] = drawn
                users[capacity] = [number]
    pace = [UNBOUND] * count
    bound = [UNBOUND] * count
    heap = [(left[capacity] // drawn, capacity) for capacity, drawn in load.items() if drawn]
    heapify(heap)
    ascending = sorted(range(count), key=alone.__getitem__)
    at = 0
    while at < count:
        number = ascending[at]
        if pace[number] >= 0:
            at += 1
            continue
        level = _next_full(heap, left, load)
        if level < 0 or alone[number] <= level:
            level = alone[number]
            held = [(number, UNBOUND)]
        else:
            held = _held_back(_all_full(heap, left, load, level), users, pace)
        for number, capacity in held:
            pace[number] = level
            bound[number] = capacity
            for capacity_crossed, weight in weights[number]:
                drawn = members[number] * weight
                load[capacity_crossed] -= drawn
                left[capacity_crossed] -= level * drawn
    return pace, bound


def _next_full(heap: list[tuple[int, int]], left: Mapping[int, int], load: Mapping[int, int]) -> int:
    """Level at which the next capacity fills, -1 if none does. Levels only rise, so old ones are lower bounds."""
    while heap:
        level, capacity = heap[0]
        drawn = load[capacity]
        if not drawn:
            heappop(heap)
            continue
        filled_at = left[capacity] // drawn
        if filled_at <= level:
            return level
        heapreplace(heap, (filled_at, capacity))
    return -1


def _all_full(heap: list[tuple[int, int]], left: Mapping[int, int], load: Mapping[int, int], level: int) -> list[int]:
    """Every capacity that fills at this level: all at once, so that their order cannot matter."""
    full = []
    while heap and heap[0][0] <= level:
        _, capacity = heappop(heap)
        drawn = load[capacity]
        if drawn:
            filled_at = left[capacity] // drawn
            if filled_at <= level:
                full.append(capacity)
            else:
                heappush(heap, (filled_at, capacity))
    return full


def _held_back(full: Sequence[int], users: Mapping[int, Sequence[int]], pace: Sequence[int]) -> list[tuple[int, int]]:
    """(class that is held back, capacity that holds it back: of several, the first by number)."""
    held: dict[int, int] = {}
    for capacity in sorted(full):
        for number in users[capacity]:
            if pace[number] < 0:
                held.setdefault(number, capacity)
    return list(held.items())
