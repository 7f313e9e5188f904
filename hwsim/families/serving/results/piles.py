"""Values in bins, with the sums of the parts that they consist of."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.families.serving.results.accounting import PARTS
from hwsim.records import dataclass
from hwsim.results.bins import DROPPED, bin_of
from hwsim.ticks import Column


def middle(number: int) -> float:
    """The number in the middle of a bin.

    >>> abs(middle(bin_of(3.0)) / 3.0 - 1) < 0.004
    True
    """
    (value,) = struct.unpack("<d", struct.pack("<q", (number << DROPPED) + (1 << DROPPED - 1 if number else 0)))
    return float(value)


@dataclass(slots=True)
class Pile:
    """Values of one kind in bins: how many, their sum, and the sums of the parts that they consist of.

    Args:
        many: tokens that the parts of a bin are shared by; requests, for times of a request.
    """

    count: dict[int, int] = field(default_factory=dict)
    parts: dict[int, list[int]] = field(default_factory=dict)
    many: dict[int, int] = field(default_factory=dict)
    total: float = 0
    most: float = 0.0

    def add(self, values: Column, counts: Column) -> None:
        """Add values with their counts, without the parts that they consist of."""
        if not len(values):
            return
        places = values.astype(np.float64).view(np.int64) >> DROPPED
        first = int(places.min())
        sums = np.bincount(places - first, weights=counts)  # of whole numbers
        for place in np.flatnonzero(sums).tolist():
            self.count[first + place] = self.count.get(first + place, 0) + int(sums[place])
        self.total += ticks.total(ticks.multiply(values, counts))
        self.most = max(self.most, float(values.max()))

    def add_runs(self, first: Column, slope: Column, many: Column, counts: Column) -> None:
        """Add `many` values of each run, the first of them and each `slope` larger than the last; each with its count."""
        ends = np.cumsum(many)  # count
        number = np.arange(ends[-1]) - np.repeat(ends - many, many)
        steps = ticks.multiply(np.repeat(slope, many), number)
        self.add(ticks.add(np.repeat(first, many), steps), np.repeat(counts, many))

    def add_all(self, values: NDArray[np.float64], parts: Sequence[Column], shared_by: Column | None = None) -> None:
        """Values with the parts that they consist of, times `shared_by`."""
        if not len(values):
            return
        places = values.view(np.int64) >> DROPPED
        order = np.argsort(places, kind="stable")
        distinct, firsts, counts = np.unique(places[order], return_index=True, return_counts=True)
        sums = [ticks.group_totals(part[order], firsts).tolist() for part in parts]
        many = counts.tolist() if shared_by is None else ticks.group_totals(shared_by[order], firsts).tolist()
        for row, place in enumerate(distinct.tolist()):
            self.count[place] = self.count.get(place, 0) + int(counts[row])
            self.many[place] = self.many.get(place, 0) + many[row]
            kept = self.parts.setdefault(place, [0] * len(parts))
            for number, column in enumerate(sums):
                kept[number] += column[row]
        self.total += float(values.sum())
        self.most = max(self.most, float(values.max()))

    @property
    def number(self) -> int:
        """Number of values."""
        return sum(self.count.values())  # integers

    def at(self, part: float) -> float:
        """The value below which this part of all lies, to 0.4 %."""
        wanted, passed = part * self.number, 0
        for place in sorted(self.count):
            passed += self.count[place]
            if passed >= wanted:
                return min(middle(place), self.most)
        return 0.0

    def around(self, low: float, high: float, value: float) -> tuple[int, int, list[int]]:
        """(values, what they are shared by, sums of their parts) of the bins that hold these parts of all.

        Bins of more than twice the value, or of less than half of it, are left out: a few that wait a hundred times as long are
        not what those around the value wait for.
        """
        number, passed = self.number, 0
        count, many, sums = 0, 0, [0] * len(PARTS)
        least, most = bin_of(value / 2), bin_of(2 * value)
        for place in sorted(self.parts):
            start, passed = passed, passed + self.count[place]
            if passed > low * number and start < high * number and least <= place <= most:
                count += self.count[place]
                many += self.many[place]
                sums = [before + more for before, more in zip(sums, self.parts[place], strict=True)]
        return count, many, sums
