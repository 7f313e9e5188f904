"""State of a service over time: requests that come, begin and end, and blocks of caches that are taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.ticks import Column

CELLS: Final = 512  # stretches of time of the course, at most
FINEST: Final = 40  # bits of the shortest stretch: 1.1 ms


@dataclass(slots=True)
class Course:
    """State over time, in at most `CELLS` stretches of equal length: events are counted, and cache x time is added up.

    Args:
        taken: blocks x fs; area: of all stretches. most: blocks of one cache at once.
    """

    bits: int = FINEST
    came: dict[int, int] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    area: int = 0
    most: int = 0

    def counts(self, column: dict[int, int], time: int) -> None:
        """An event."""
        cell = time >> self.bits
        while cell >= CELLS:
            self._double()
            cell = time >> self.bits
        column[cell] = column.get(cell, 0) + 1

    def takes(self, starts: Sequence[int], ends: Sequence[int], blocks: Sequence[int]) -> None:
        """So many blocks of a cache are taken from one instant to another, by each of some runs."""
        self.most = max(self.most, *blocks)
        while max(ends) >> self.bits >= CELLS:
            self._double()
        origin, start = self._since(starts)
        self._adds(origin, start, ticks.column([end - origin for end in ends]), ticks.column(blocks))

    def grows(self, starts: Sequence[int], first: Column, slope: Column, many: Column, later: Sequence[int]) -> None:
        """Those runs take these blocks in each of `many` iterations after their first; they were counted from their start.

        first: fs of the first iteration of a run; slope: more for each after it.
        """
        blocks, kept = ticks.column(later), np.flatnonzero(later)
        run = np.repeat(np.arange(len(many)), many)[kept]
        number = kept + 1 - (np.cumsum(many) - many)[run]  # count
        more = ticks.multiply(slope[run], number * (number - 1) // 2)
        length = ticks.add(ticks.multiply(first[run], number), more)
        origin, start = self._since(starts)
        self._adds(origin, start[run], ticks.add(start[run], length), -blocks[kept])

    def _since(self, times: Sequence[int]) -> tuple[int, Column]:
        """The start of the stretch of the first of these times, and all of them counted from it."""
        origin = min(times) >> self.bits << self.bits
        return origin, ticks.column([time - origin for time in times])

    def _adds(self, origin: int, start: Column, end: Column, blocks: Column) -> None:
        if not len(blocks):
            return
        amount = ticks.multiply(blocks, end - start)
        self.area += ticks.total(amount)
        base, cell, last = origin >> self.bits, start >> self.bits, end >> self.bits
        inside = np.flatnonzero(cell == last)
        order = inside[np.argsort(cell[inside], kind="stable")]
        cells, firsts = np.unique(cell[order], return_index=True)
        for number, total in zip(cells.tolist(), ticks.group_totals(amount[order], firsts).tolist(), strict=True):
            self.taken[base + number] = self.taken.get(base + number, 0) + total
        for row in np.flatnonzero(cell != last).tolist():
            since, until, number = int(start[row]), int(end[row]), int(cell[row])
            while since < until:
                stop = min(until, (number + 1) << self.bits)
                self.taken[base + number] = self.taken.get(base + number, 0) + int(blocks[row]) * (stop - since)
                since, number = stop, number + 1

    def _double(self) -> None:
        self.bits += 1
        for column in (self.came, self.began, self.ended, self.taken):
            halved: dict[int, int] = {}
            for cell, amount in column.items():
                halved[cell >> 1] = halved.get(cell >> 1, 0) + amount
            column.clear()
            column.update(halved)
