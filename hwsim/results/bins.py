"""Many numbers in little memory: a histogram of logarithmic bins.

There are 128 bins an octave, taken from the bits of the number, so a percentile is at most 0.4 % off. Memory is needed for the
bins between the smallest and the largest number. Two histograms are merged exactly, in any order. Up to 4,096 numbers are kept
as they are, and their percentiles are exact.
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
FEW: Final = 4096  # numbers that are kept until they are counted


@dataclass(slots=True)
class Bins:
    """A histogram of numbers that are not negative.

    Args:
        zeros: how many are 0.
        lowest: number of the first bin; counts: of the bins from there on.
        few: largest count of numbers that are kept as they are.
        whole: the sum, in 1e-15 (of times in seconds: fs).
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
        """One more."""
        self._kept.append(number)
        if len(self._kept) > self.few:
            self._count()

    def extend(self, numbers: Iterable[float] | Floats) -> None:
        """Several more."""
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
            at = added.lowest - self.lowest
            self.counts[at : at + len(added.counts)] += added.counts
            self.zeros, self._counted = self.zeros + added.zeros, self._counted + added._counted
            self.least, self.most = min(self.least, added.least), max(self.most, added.most)
            self.whole += added.whole
        if len(self._kept) and (self._counted or len(self._kept) > self.few):
            self._count()

    def settled(self) -> Bins:
        """Itself, with all numbers counted, if there are many; few are left as they are."""
        if self._counted and len(self._kept):
            self._count()
        return self

    @property
    def mean(self) -> float:
        """The mean; 0 without a number."""
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
        """The number that this share of all are not above; 0 without a number.

        For few numbers, linear between the nearest two; for many, the middle of the bin.
        """
        low, high = self.around(share)
        return (low + high) / 2

    def around(self, share: float) -> tuple[float, float]:
        """Ends of the bin of a percentile; for few numbers, the exact percentile twice."""
        if not self._counted:
            exact = float(np.percentile(self._kept, 100 * min(max(share, 0.0), 1.0))) if len(self._kept) else 0.0
            return exact, exact
        self.settled()
        rank = min(max(math.ceil(share * self._counted), 1), self._counted)
        if rank <= self.zeros:
            return 0.0, 0.0
        at = int(np.searchsorted(np.cumsum(self.counts), rank - self.zeros)) + self.lowest  # count
        return max(_edge(at), self.least), min(_edge(at + 1), self.most)

    def below(self, number: float) -> float:
        """The share that is not above a number: exact up to the part of its bin that lies below it."""
        if not len(self):
            return 0.0
        if not self._counted:
            return sum(each <= number for each in self._kept) / len(self._kept)  # integers
        self.settled()
        if number < 0:
            return 0.0
        if number >= self.most:
            return 1.0
        if number < self.least:
            return (self.zeros if self.least > 0 else 0) / self._counted
        at = bin_of(number) - self.lowest
        low, high = max(_edge(self.lowest + at), self.least), min(_edge(self.lowest + at + 1), self.most)
        inside = (number - low) / (high - low) if high > low else 1.0
        under = int(self.counts[:at].sum())  # count
        return (self.zeros + under + inside * int(self.counts[at])) / self._counted

    def _count(self) -> None:
        numbers = np.frombuffer(self._kept, np.float64)
        if not bool((numbers >= 0).all()) or not math.isfinite(float(numbers.max(initial=0.0))):
            raise ValueError("only finite numbers that are not negative are counted")
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
        """Make room for these bins."""
        if not len(self.counts):
            self.lowest, self.counts = first, np.zeros(end - first, np.int64)
            return
        before, after = max(self.lowest - first, 0), max(end - self.lowest - len(self.counts), 0)
        if before or after:
            self.counts = np.concatenate((np.zeros(before, np.int64), self.counts, np.zeros(after, np.int64)))
            self.lowest -= before


def bin_of(number: float) -> int:
    """The bin of a number that is not negative; bins are in the order of their numbers.

    >>> bin_of(1.0) == bin_of(1.007), bin_of(1.0) + 1 == bin_of(1.008), bin_of(2.0) - bin_of(1.0)
    (True, True, 128)
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    return int(bits) >> DROPPED


def _edge(at: int) -> float:
    """The least number of a bin."""
    return math.ldexp(1 + (at & 127) / 128, (at >> 7) - 1023)
