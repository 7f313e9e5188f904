"""Crowds in integers: how much slower a demand is by the number of accesses at its device, exactly the same in every engine.

`hwsim.demand.Crowd` is worked out once, in floats, at the depth of the demand alone, at each depth up to twice `EACH`, and at
`EACH` depths an octave above. In between, and beyond the last, the table is a line of integers.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import Final

from hwsim.demand import Crowd

ONE_BITS: Final = 30
ONE: Final = 1 << ONE_BITS
EACH: Final = 16  # depths an octave
LAST: Final = 1 << 16  # the last depth in the table


class Table:
    """Slowness and lightness (see `Crowd.slowness`) by the number under way, in units of 2**-30."""

    def __init__(self, crowd: Crowd) -> None:
        self._depths = [crowd.depth]
        while self._depths[-1] < max(LAST, 2 * crowd.depth):
            at = self._depths[-1]
            self._depths.append(at + max(1, (1 << at.bit_length() - 1) // EACH))
        rows = [crowd.slowness(depth) for depth in self._depths]
        self._slow = [round(slow * ONE) for slow, _ in rows]
        self._light = [round(light * ONE) for _, light in rows]
        self._known: dict[int, tuple[int, int]] = {}

    def at(self, under_way: int) -> tuple[int, int]:
        """Both at this number of accesses under way, with the demand's own."""
        known = self._known.get(under_way)
        if known is None:
            known = self._known[under_way] = self._between(under_way)
        return known

    def _between(self, under_way: int) -> tuple[int, int]:
        place = bisect_right(self._depths, under_way) - 1
        low = self._depths[place]
        if place == len(self._depths) - 1:
            return self._slow[place] * under_way // low, self._light[place]
        wide, past = self._depths[place + 1] - low, under_way - low
        slow = self._slow[place] + (self._slow[place + 1] - self._slow[place]) * past // wide
        return slow, self._light[place + 1] + (self._light[place] - self._light[place + 1]) * (wide - past) // wide


@lru_cache(maxsize=256)
def table(crowd: Crowd) -> Table:
    """The table of a crowd, made once."""
    return Table(crowd)
