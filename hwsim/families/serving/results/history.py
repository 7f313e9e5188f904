"""The history of a service: requests that arrive, start and complete, and KV-cache blocks in use, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.ticks import Column

CELLS: Final = 512  # maximum number of time intervals
FINEST: Final = 40  # log2 of the shortest interval in fs: 1.1 ms


@dataclass(slots=True)
class ServiceHistory:
    """A history in at most `CELLS` equal time intervals, whose length doubles as the run grows.

    Args:
        bits: log2 of the length of an interval (fs).
        came, began, ended: number of arrivals, starts and completions in each interval.
        taken: integral of the blocks in use over each interval (blocks x fs).
        area: sum of `taken`.
        most: maximum blocks in use in one cache.
    """

    bits: int = FINEST
    came: dict[int, int] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    area: int = 0
    most: int = 0

    def counts(self, column: dict[int, int], time: int) -> None:
        """Count an event."""
        cell = time >> self.bits
        while cell >= CELLS:
            self._double()
            cell = time >> self.bits
        column[cell] = column.get(cell, 0) + 1

    def takes(self, starts: Sequence[int], ends: Sequence[int], blocks: Sequence[int]) -> None:
        """Add runs that each keep some blocks in use from start to end."""
        self.most = max(self.most, *blocks)
        while max(ends) >> self.bits >= CELLS:
            self._double()
        origin, start = self._relative_times(starts)
        self._add_area(origin, start, ticks.column([end - origin for end in ends]), ticks.column(blocks))

    def grows(self, starts: Sequence[int], first: Column, slope: Column, many: Column, later: Sequence[int]) -> None:
        """Correct `takes` for runs that allocate blocks iteration by iteration.

        Args:
            starts: starts of the runs (fs).
            first: duration of the first iteration of each run (fs).
            slope: growth of the duration from one iteration to the next (fs).
            many: number of iterations of each run after the first.
            later: blocks that each of these iterations allocates.
        """
        blocks, kept = ticks.column(later), np.flatnonzero(later)
        run = np.repeat(np.arange(len(many)), many)[kept]
        number = kept + 1 - (np.cumsum(many) - many)[run]  # count
        more = ticks.multiply(slope[run], number * (number - 1) // 2)
        length = ticks.add(ticks.multiply(first[run], number), more)
        origin, start = self._relative_times(starts)
        self._add_area(origin, start[run], ticks.add(start[run], length), -blocks[kept])

    def _relative_times(self, times: Sequence[int]) -> tuple[int, Column]:
        """Return (start of the interval of the earliest time, all times relative to it)."""
        origin = min(times) >> self.bits << self.bits
        return origin, ticks.column([time - origin for time in times])

    def _add_area(self, origin: int, start: Column, end: Column, blocks: Column) -> None:
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
