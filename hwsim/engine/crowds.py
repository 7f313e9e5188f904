"""Slowdown of a demand by concurrent accesses at its device, in integers, so that all engines have equal results.

`hwsim.demand.Crowd` is evaluated once, in floats, at the demand's own depth, at each depth up to twice `EACH`, and at `EACH`
depths per octave above. Between and beyond these depths the table is interpolated linearly in integers.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import Final

from hwsim.demand import Crowd

ONE_BITS: Final = 30
ONE: Final = 1 << ONE_BITS
EACH: Final = 16  # depths per octave
LAST: Final = 1 << 16  # last depth in the table


class CrowdTable:
    """A table of slowness and lightness (see `Crowd.slowness`) by the number of accesses in flight, in units of 2**-30."""

    def __init__(self, crowd: Crowd) -> None:
        self._depths = [crowd.depth]
        while self._depths[-1] < max(LAST, 2 * crowd.depth):
            depth = self._depths[-1]
            self._depths.append(depth + max(1, (1 << depth.bit_length() - 1) // EACH))
        rows = [crowd.slowness(depth) for depth in self._depths]
        self._slow = [round(slow * ONE) for slow, _ in rows]
        self._light = [round(light * ONE) for _, light in rows]
        self._known: dict[int, tuple[int, int]] = {}

    def at(self, under_way: int) -> tuple[int, int]:
        """Return (slowness, lightness) for a number of accesses in flight, including the demand's own."""
        known = self._known.get(under_way)
        if known is None:
            known = self._known[under_way] = self._interpolate(under_way)
        return known

    def _interpolate(self, under_way: int) -> tuple[int, int]:
        index = bisect_right(self._depths, under_way) - 1
        low = self._depths[index]
        if index == len(self._depths) - 1:
            return self._slow[index] * under_way // low, self._light[index]
        width, offset = self._depths[index + 1] - low, under_way - low
        slow = self._slow[index] + (self._slow[index + 1] - self._slow[index]) * offset // width
        return slow, self._light[index + 1] + (self._light[index] - self._light[index + 1]) * (width - offset) // width


@lru_cache(maxsize=256)
def table(crowd: Crowd) -> CrowdTable:
    """Return the table of a crowd (cached)."""
    return CrowdTable(crowd)
