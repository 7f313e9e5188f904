"""Histograms of latencies, with the sums of their parts in each bin."""

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
    """Return the value in the middle of a bin.

    >>> abs(middle(bin_of(3.0)) / 3.0 - 1) < 0.004
    True
    """
    (value,) = struct.unpack("<d", struct.pack("<q", (number << DROPPED) + (1 << DROPPED - 1 if number else 0)))
    return float(value)


@dataclass(slots=True)
class LatencyHistogram:
    """A histogram with logarithmic bins (0.4 %).

    Args:
        count: number of values in each bin.
        parts: sums of the parts of the values in each bin.
        many: divisor of these sums in each bin: tokens for TPOT, otherwise requests.
        total: sum of all values.
        most: largest value.
    """

    count: dict[int, int] = field(default_factory=dict)
    parts: dict[int, list[int]] = field(default_factory=dict)
    many: dict[int, int] = field(default_factory=dict)
    total: float = 0
    most: float = 0.0

    def add(self, values: Column, counts: Column) -> None:
        """Add values with their counts, without parts."""
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
        """Add the arithmetic series of each run: `many` values from `first` with difference `slope`, each `counts` times."""
        ends = np.cumsum(many)  # count
        number = np.arange(ends[-1]) - np.repeat(ends - many, many)
        steps = ticks.multiply(np.repeat(slope, many), number)
        self.add(ticks.add(np.repeat(first, many), steps), np.repeat(counts, many))

    def add_all(self, values: NDArray[np.float64], parts: Sequence[Column], shared_by: Column | None = None) -> None:
        """Add values with their parts; parts are multiplied by `shared_by`."""
        if not len(values):
            return
        places = values.view(np.int64) >> DROPPED
        order = np.argsort(places, kind="stable")
        distinct, firsts, counts = np.unique(places[order], return_index=True, return_counts=True)
        sums = [ticks.group_totals(part[order], firsts).tolist() for part in parts]
        divisors = counts.tolist() if shared_by is None else ticks.group_totals(shared_by[order], firsts).tolist()
        for row, place in enumerate(distinct.tolist()):
            self.count[place] = self.count.get(place, 0) + int(counts[row])
            self.many[place] = self.many.get(place, 0) + divisors[row]
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
        """Return the quantile of this share, to 0.4 %."""
        wanted, passed = part * self.number, 0
        for place in sorted(self.count):
            passed += self.count[place]
            if passed >= wanted:
                return min(middle(place), self.most)
        return 0.0

    def around(self, low: float, high: float, value: float) -> tuple[int, int, list[int]]:
        """Return (values, divisor, sums of parts) of the bins between the quantiles `low` and `high`.

        Bins above twice the value, or below half of it, are excluded, because rare outliers have other causes than typical
        values.
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
