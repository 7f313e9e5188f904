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
BLOCK: Final = 4_096  # entries that are added up together
MANY: Final = 1 << 16  # iterations of runs that are added up together, at most


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
    _taken: list[tuple[int, int, int]] = field(default_factory=list)
    _runs: list[tuple[int, int, int, int]] = field(default_factory=list)
    _later: list[int] = field(default_factory=list)

    def counts(self, column: dict[int, int], time: int) -> None:
        """An event."""
        cell = time >> self.bits
        while cell >= CELLS:
            self._double()
            cell = time >> self.bits
        column[cell] = column.get(cell, 0) + 1

    def takes(self, start: int, end: int, blocks: int) -> None:
        """So many blocks of a cache are taken from `start` to `end`."""
        self._taken.append((start, end, blocks))
        if len(self._taken) > BLOCK:
            self.settle()

    def grows(self, start: int, first: int, slope: int, later: Sequence[int]) -> None:
        """A run since `start` takes these blocks in each iteration after its first; they were counted from its start.

        first: fs of the first iteration; slope: more for each after it.
        """
        self._runs.append((start, first, slope, len(later)))
        self._later += later
        if len(self._later) > MANY:
            self.settle()

    def settle(self) -> None:
        """Add up what is known of the caches."""
        if self._taken:
            begins, ends, taken = zip(*self._taken, strict=True)
            self.most = max(self.most, *taken)
            origin = self._origin(min(begins), max(ends))
            start, end = (ticks.column([each - origin for each in times]) for times in (begins, ends))
            self._adds(origin, start, end, ticks.column(taken))
            self._taken.clear()
        if self._later:
            starts, firsts, slopes, counts = zip(*self._runs, strict=True)
            last = max(start + count * first + slope * (count * (count - 1) // 2) for start, first, slope, count in self._runs)
            origin = self._origin(min(starts), last)
            start = ticks.column([each - origin for each in starts])
            first, slope, many = (ticks.column(each) for each in (firsts, slopes, counts))
            blocks = ticks.column(self._later)
            kept = np.flatnonzero(blocks)
            run = np.repeat(np.arange(len(many)), many)[kept]
            number = kept + 1 - (np.cumsum(many) - many)[run]  # count
            more = ticks.multiply(slope[run], number * (number - 1) // 2)
            length = ticks.add(ticks.multiply(first[run], number), more)
            self._adds(origin, start[run], ticks.add(start[run], length), -blocks[kept])
            self._runs.clear()
            self._later.clear()

    def _origin(self, first: int, last: int) -> int:
        """The start of the stretch of a time, once all times up to the last have stretches: what follows is counted from it."""
        while last >> self.bits >= CELLS:
            self._double()
        return first >> self.bits << self.bits

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
