"""A compact histogram of many numbers, with logarithmic bins.

There are 128 bins per octave, taken from the bits of the double, so a percentile is at most 0.4 % off. Memory is needed for the
bins between the smallest and the largest number. Histograms merge exactly, in any order. Up to 4,096 numbers are kept as they
are, and their percentiles are exact.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterable
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.ticks import FEMTO

Floats = NDArray[np.float64]

DROPPED: Final = 45  # bits of a double below the first seven of its mantissa: 128 bins an octave
FEW: Final = 4096  # numbers kept before they are counted into bins


@dataclass(slots=True)
class Bins:
    """A histogram of non-negative numbers.

    Args:
        zeros: count of zeros.
        lowest: index of the first bin.
        counts: counts of the bins from `lowest` on.
        few: largest count of numbers that are kept as they are.
        least, most: smallest and largest counted number.
        whole: sum of the counted numbers in units of 1e-15 (fs for times in seconds).
    """

    zeros: int = 0
    lowest: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    few: int = FEW
    least: float = math.inf
    most: float = 0.0
    whole: int = 0
    _counted: int = 0
    _kept: array[float] = field(default_factory=lambda: array("d"), repr=False)

    def __len__(self) -> int:
        return self._counted + len(self._kept)

    def add(self, number: float) -> None:
        """Add a number."""
        self._kept.append(number)
        if len(self._kept) > self.few:
            self._count()

    def extend(self, numbers: Iterable[float] | Floats) -> None:
        """Add several numbers."""
        if isinstance(numbers, np.ndarray):
            self._kept.frombytes(np.ascontiguousarray(numbers, np.float64).tobytes())
        else:
            self._kept.extend(numbers)
        if len(self._kept) > self.few:
            self._count()

    def merge(self, added: Bins) -> None:
        """Add all numbers of another histogram, exactly."""
        self._kept.extend(added._kept)
        if added._counted:
            self._grow(added.lowest, added.lowest + len(added.counts))
            offset = added.lowest - self.lowest
            self.counts[offset : offset + len(added.counts)] += added.counts
            self.zeros, self._counted = self.zeros + added.zeros, self._counted + added._counted
            self.least, self.most = min(self.least, added.least), max(self.most, added.most)
            self.whole += added.whole
        if len(self._kept) and (self._counted or len(self._kept) > self.few):
            self._count()

    def settled(self) -> Bins:
        """Return the histogram itself, with buffered numbers counted unless there are few."""
        if self._counted and len(self._kept):
            self._count()
        return self

    @property
    def mean(self) -> float:
        """Average; 0 for an empty histogram."""
        return self.total / len(self) if len(self) else 0.0

    @property
    def total(self) -> float:
        if not self._counted:
            return math.fsum(self._kept)
        self.settled()
        return self.whole / FEMTO

    @property
    def smallest(self) -> float:
        return min(self.least, min(self._kept, default=math.inf)) if len(self) else 0.0

    @property
    def largest(self) -> float:
        return max(self.most, max(self._kept, default=0.0))

    def percentile(self, share: float) -> float:
        """Return the percentile of a fraction; 0 for an empty histogram.

        Few numbers are interpolated linearly between the nearest two; for many, it is the middle of the bin.
        """
        low, high = self.around(share)
        return (low + high) / 2

    def around(self, share: float) -> tuple[float, float]:
        """Return the limits of the bin that contains a percentile; for few numbers, the exact percentile twice."""
        if not self._counted:
            exact = float(np.percentile(self._kept, 100 * min(max(share, 0.0), 1.0))) if len(self._kept) else 0.0
            return exact, exact
        self.settled()
        rank = min(max(math.ceil(share * self._counted), 1), self._counted)
        if rank <= self.zeros:
            return 0.0, 0.0
        index = int(np.searchsorted(np.cumsum(self.counts), rank - self.zeros)) + self.lowest  # count
        return max(_edge(index), self.least), min(_edge(index + 1), self.most)

    def below(self, number: float) -> float:
        """Return the share of numbers up to a limit, interpolated within its bin."""
        if not len(self):
            return 0.0
        if not self._counted:
            return sum(kept <= number for kept in self._kept) / len(self._kept)  # integers
        self.settled()
        if number < 0:
            return 0.0
        if number >= self.most:
            return 1.0
        if number < self.least:
            return (self.zeros if self.least > 0 else 0) / self._counted
        index = bin_of(number) - self.lowest
        low, high = max(_edge(self.lowest + index), self.least), min(_edge(self.lowest + index + 1), self.most)
        inside = (number - low) / (high - low) if high > low else 1.0
        under = int(self.counts[:index].sum())  # count
        return (self.zeros + under + inside * int(self.counts[index])) / self._counted

    def _count(self) -> None:
        numbers = np.frombuffer(self._kept, np.float64)
        if not bool((numbers >= 0).all()) or not math.isfinite(float(numbers.max(initial=0.0))):
            raise ValueError("expected finite, non-negative numbers")
        self.whole += ticks.total(ticks.rounded(np.rint(numbers * FEMTO)))
        self._counted += len(numbers)
        numbers = numbers[numbers > 0]
        self.zeros += len(self._kept) - len(numbers)
        del self._kept[:]
        if not len(numbers):
            return
        self.least, self.most = min(self.least, float(numbers.min())), max(self.most, float(numbers.max()))
        bins = numbers.view(np.int64) >> DROPPED
        first, last = int(bins.min()), int(bins.max())
        self._grow(first, last + 1)
        counted = np.bincount(bins - first)
        self.counts[first - self.lowest : last + 1 - self.lowest] += counted

    def _grow(self, first: int, end: int) -> None:
        """Extend the bins to a range."""
        if not len(self.counts):
            self.lowest, self.counts = first, np.zeros(end - first, np.int64)
            return
        before, after = max(self.lowest - first, 0), max(end - self.lowest - len(self.counts), 0)
        if before or after:
            self.counts = np.concatenate((np.zeros(before, np.int64), self.counts, np.zeros(after, np.int64)))
            self.lowest -= before


def bin_of(number: float) -> int:
    """Return the bin of a non-negative number; bins are ordered like their numbers.

    >>> bin_of(1.0) == bin_of(1.007), bin_of(1.0) + 1 == bin_of(1.008), bin_of(2.0) - bin_of(1.0)
    (True, True, 128)
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    return int(bits) >> DROPPED


def _edge(index: int) -> float:
    """Return the lower edge of a bin."""
    return math.ldexp(1 + (index & 127) / 128, (index >> 7) - 1023)
