"""Weighted max-min fair sharing in integers: the pace of every demand on shared capacities.

Every demand has a maximum pace, and every capacity a limited rate. All paces increase together from zero; the pace of a demand is
fixed at its own maximum, or when one of its capacities is full (progressive filling: Bertsekas and Gallager, Data Networks, 1992,
section 6.5.2). The result is unique: every demand runs at its maximum, or uses a full capacity on which no other demand has a
higher pace.

Sums and products are integers, and levels are rounded down. The result is therefore independent of any order, no capacity exceeds
100 %, and m equal demands have the same result as one demand of multiplicity m, bit for bit.

`fill` is the reference; a run updates its last solution instead (`fluid`), with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

LEVEL_BITS = 64  # paces are in units of 2**-64 share/s
WEIGHT_BITS = 100  # weights are in units of 2**-100 of the capacity per unit of pace
FULL = 1 << (LEVEL_BITS + WEIGHT_BITS)  # an entire capacity
PART_BITS = 53  # available amounts are in units of 2**-53 of the capacity

UNBOUND = -1


def part(fraction: float) -> int:
    """Return the available amount of a capacity at a fraction of its rate, in units of 2**-53 of the capacity."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"expected a fraction of the rate from 0 to 1, got {fraction}")
    return int(fraction * 2**PART_BITS)


def fill(
    alone: Sequence[int], members: Sequence[int], weights: Sequence[Sequence[tuple[int, int]]], room: Mapping[int, int]
) -> tuple[list[int], list[int]]:
    """Return the pace of one member of each class, and the capacity that limits it (`UNBOUND`: none).

    Args:
        alone: maximum pace of each class.
        members: number of identical demands of each class.
        weights: (capacity, share of it per member at pace 1) pairs of each class.
        room: available amount of each capacity, at most `FULL`.

    Two equal demands that could each fill the capacity, and one that needs a tenth of it:

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
    position = 0
    while position < count:
        number = ascending[position]
        if pace[number] >= 0:
            position += 1
            continue
        level = _next_full(heap, left, load)
        if level < 0 or alone[number] <= level:
            level = alone[number]
            stopping = [(number, UNBOUND)]
        else:
            stopping = _limited(_all_full(heap, left, load, level), users, pace)
        for number, capacity in stopping:
            pace[number] = level
            bound[number] = capacity
            for capacity_crossed, weight in weights[number]:
                drawn = members[number] * weight
                load[capacity_crossed] -= drawn
                left[capacity_crossed] -= level * drawn
    return pace, bound


def _next_full(heap: list[tuple[int, int]], left: Mapping[int, int], load: Mapping[int, int]) -> int:
    """Level at which the next capacity is full; -1: none. Levels only increase, so old levels are lower bounds."""
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
    """All capacities that are full at this level, together, so that their order has no effect."""
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


def _limited(full: Sequence[int], users: Mapping[int, Sequence[int]], pace: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs (limited class, limiting capacity with the lowest number)."""
    limits: dict[int, int] = {}
    for capacity in sorted(full):
        for number in users[capacity]:
            if pace[number] < 0:
                limits.setdefault(number, capacity)
    return list(limits.items())
