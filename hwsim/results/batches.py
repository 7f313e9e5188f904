"""Confidence intervals of the average and the percentiles of simulated requests: batch means after a warm-up.

The requests of a run, in order, are cut into 32 batches. The variance between batches estimates how far the average and the
percentiles of another run of this length would deviate: neighbouring requests are correlated (a long queue stays long), batches
hardly are. If batches are still correlated, the interval is widened as for an autoregressive process. For a percentile, the
interval of the share of requests above it is converted back to values; it has no upper end if the share may be 0.

**Source**: warm-up: MSER-5 (White, 1997); correlated batches: Tafazzoli, Wilson: Skart (2011).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass
from hwsim.results.bins import FEW, Bins

Floats = NDArray[np.float64]

BATCHES: Final = 32
_SEGMENTS: Final = 64  # segments; at twice as many, neighbours are merged
_FINE: Final = 2000  # sums for the warm-up search; at twice as many, neighbours are merged
_FIVE: Final = 5  # requests per sum at first
_TAIL: Final = 32  # least number of requests above a percentile for a valid interval
_WIDE: Final = 0.5  # relative half width from which an interval is useless
_ALIKE: Final = 0.4  # correlation of neighbouring batches above which the run is too short
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
STATISTICS: Final = ("mean", *PERCENTILES, "max")  # statistics of a request time


@dataclass(frozen=True, slots=True)
class ConfidenceRange:
    """A number with the 95 % range of other runs of the same length.

    Args:
        value: value of this run.
        low, high: ends of the range; high may be infinite.
    """

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Distance of the further end, as a fraction of the value."""
        return max(self.value - self.low, self.high - self.value) / self.value if self.value > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SteadyStatistics:
    """Average and percentiles of a run's requests, with intervals.

    Args:
        count: number of requests after the warm-up.
        dropped: number of requests in the warm-up.
        mean: average.
        percentiles: (fraction, percentile) pairs.
        most: largest value.
        settled: whether the warm-up ended in the first half of the run; if not, there may be no steady state.
        short: percentiles (0 for the average) whose intervals are too narrow because the run is too short.
        needed: sufficient number of requests; None if the utilization is unknown or at least 1.
    """

    count: int
    dropped: int
    mean: ConfidenceRange
    percentiles: tuple[tuple[float, ConfidenceRange], ...]
    most: float
    settled: bool
    short: tuple[float, ...]
    needed: int | None = None

    def at(self, share: float) -> ConfidenceRange:
        """Return the percentile of a fraction, such as 0.95."""
        return dict(self.percentiles)[share]


def requests_needed(utilization: float) -> int | None:
    """Return the number of requests after which batches are nearly independent; None if the utilization is at least 1.

    The number is 300 relaxation times of the busiest resource.
    """
    if utilization >= 1:
        return None
    return math.ceil(300 / (1 - math.sqrt(max(utilization, 0.0))) ** 2)


@dataclass(slots=True)
class BatchedSamples:
    """Values of a run in order, as histograms of consecutive segments and fine-grained sums."""

    count: int = 0
    _size: int = FEW // _SEGMENTS
    _segments: list[Bins] = field(default_factory=list, repr=False)
    _fine: list[float] = field(default_factory=list, repr=False)  # sums
    _fine_size: int = _FIVE
    _kept: array[float] = field(default_factory=lambda: array("d"), repr=False)
    _loose: array[float] = field(default_factory=lambda: array("d"), repr=False)  # not yet in a fine sum

    def add(self, number: float) -> None:
        """Append a value."""
        self._kept.append(number)
        self.count += 1
        if len(self._kept) > FEW:
            self._cut()

    def extend(self, numbers: Floats) -> None:
        """Append several values."""
        for first in range(0, len(numbers), FEW):
            block = np.ascontiguousarray(numbers[first : first + FEW], np.float64)
            self._kept.frombytes(block.tobytes())
            self.count += len(block)
            if len(self._kept) > FEW:
                self._cut()

    def _cut(self) -> None:
        """Move all buffered values into segments and fine-grained sums."""
        kept, self._kept = np.array(self._kept, np.float64), array("d")
        self._loose.frombytes(kept.tobytes())
        self._refine()
        index = 0
        while index < len(kept):
            if not self._segments or len(self._segments[-1]) >= self._size:
                if len(self._segments) == 2 * _SEGMENTS:
                    self._segments = [_joined(pair) for pair in zip(self._segments[::2], self._segments[1::2], strict=True)]
                    self._size *= 2
                self._segments.append(Bins(few=0))
            count = min(self._size - len(self._segments[-1]), len(kept) - index)
            self._segments[-1].extend(kept[index : index + count])
            index += count

    def _refine(self) -> None:
        rows = len(self._loose) // self._fine_size
        loose = np.array(self._loose, np.float64)
        self._fine.extend(_sums(loose[: rows * self._fine_size].reshape(rows, self._fine_size)))
        self._loose = self._loose[rows * self._fine_size :]
        while len(self._fine) >= 2 * _FINE:
            if len(self._fine) % 2:
                rest = self._fine.pop() / self._fine_size  # the last sum goes back as equal values
                self._loose = array("d", [rest] * self._fine_size) + self._loose
            self._fine = [left + right for left, right in zip(self._fine[::2], self._fine[1::2], strict=True)]
            self._fine_size *= 2

    @property
    def warm_up(self) -> tuple[int, bool]:
        """(number of requests before the steady state by MSER-5, whether it ends in the first half of the run)."""
        if self.count <= FEW:
            kept = np.array(self._kept, np.float64)
            rows = len(kept) // _FIVE
            fine, size = _sums(kept[: rows * _FIVE].reshape(rows, _FIVE)), _FIVE
        else:
            fine, size = self._fine, self._fine_size
        index = _steady(np.array(fine, np.float64))
        return index * size, index < len(fine) // 2 or not fine

    def estimate(self, *, warm_up: int | None = None, utilization: float | None = None) -> SteadyStatistics:
        """Return the average and the percentiles with their intervals.

        Args:
            warm_up: number of requests at the beginning to exclude; None: determined by MSER-5.
            utilization: utilization of the busiest resource; None if unknown.
        """
        cut, steady = self.warm_up
        batches, dropped = self._batches(cut if warm_up is None else warm_up)
        everything = Bins()
        for batch in batches:
            everything.merge(batch)
        count = len(everything)
        sizes = [len(batch) for batch in batches]
        alike = _correlation([batch.mean for batch in batches])
        mean = everything.mean
        half = _half([batch.mean - mean for batch in batches], sizes, alike)
        percentiles = []
        needed = None if utilization is None else requests_needed(utilization)
        busy = utilization is not None and (needed is None or count < needed)
        short = [0.0] if busy or alike > _ALIKE or len(batches) < BATCHES else []
        for share in PERCENTILES.values():
            value = everything.percentile(share)
            parts = [batch.below(value) for batch in batches]
            middle = math.fsum(part * size for part, size in zip(parts, sizes, strict=True)) / max(1, count)
            related = _correlation(parts)
            away = _half([part - middle for part in parts], sizes, related)
            low, _ = everything.around(share - away)
            _, high = everything.around(share + away) if share + away < 1 else (0.0, math.inf)
            percentiles.append((share, ConfidenceRange(value, min(value, low), max(value, high))))
            if short or related > _ALIKE or percentiles[-1][1].half > _WIDE or count * (1 - share) < _TAIL:
                short.append(share)
        return SteadyStatistics(
            count,
            dropped,
            ConfidenceRange(mean, max(0.0, mean - half), mean + half),
            tuple(percentiles),
            everything.largest,
            steady,
            tuple(short),
            needed,
        )

    def _batches(self, warm_up: int) -> tuple[list[Bins], int]:
        """Return (batches after the warm-up, number of requests in the warm-up)."""
        if self.count <= FEW:
            warm_up = min(warm_up, self.count)
            left = np.array(self._kept, np.float64)[warm_up:]
            parts = [_of(part) for part in np.array_split(left, min(BATCHES, max(1, len(left))))]
            return parts, warm_up
        if len(self._kept):
            self._cut()
        first = min(math.ceil(warm_up / self._size), len(self._segments) - 1)
        segments = self._segments[first:]
        count = min(BATCHES, len(segments))
        edges = [number * len(segments) // count for number in range(count + 1)]
        return [_joined(segments[begin:end]) for begin, end in pairwise(edges)], first * self._size


def _of(numbers: Floats) -> Bins:
    made = Bins()
    made.extend(numbers)
    return made


def _joined(some: Sequence[Bins]) -> Bins:
    made = Bins(few=0)
    for part in some:
        made.merge(part)
    return made


def _sums(rows: Floats) -> list[float]:
    """Return the sum of each row, added pairwise so that the order is the same on every platform."""
    columns = [rows[:, number] for number in range(rows.shape[1])]
    while len(columns) > 1:
        paired = [left + right for left, right in zip(columns[::2], columns[1::2], strict=False)]
        columns = paired + columns[len(paired) * 2 :]
    return columns[0].tolist() if columns else []


def _steady(means: Floats) -> int:
    """Return the number of means to drop by MSER: the remaining means have the least squared standard error."""
    if len(means) < 2 * _FIVE:
        return 0
    means = means - means[-1]  # near 0, so that squares lose no precision
    left = np.arange(len(means), 0, -1)
    mean = np.cumsum(means[::-1])[::-1] / left
    error = (np.cumsum((means * means)[::-1])[::-1] / left - mean * mean) / left
    return int(np.argmin(error[: len(means) // 2 + 1]))


def _correlation(parts: Sequence[float]) -> float:
    """Return the lag-1 correlation; 0 for fewer than three values or if all are equal."""
    if len(parts) < 3:
        return 0.0
    mean = math.fsum(parts) / len(parts)
    squares = math.fsum((part - mean) ** 2 for part in parts)
    products = math.fsum((left - mean) * (right - mean) for left, right in pairwise(parts))
    return products / squares if squares > 0 else 0.0


def _half(away: Sequence[float], sizes: Sequence[int], alike: float) -> float:
    """Return the half width of the 95 % interval of the mean of batches, wider if neighbours are correlated (AR(1))."""
    if len(away) < 2:
        return math.inf
    spread = math.fsum(size * distance * distance for distance, size in zip(away, sizes, strict=True)) / (len(away) - 1)
    inflated = (1 + alike) / (1 - alike) if 0 < alike < 1 else 1.0
    return _student(len(away) - 1) * math.sqrt(spread * inflated / sum(sizes))  # integers


def _student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, within 0.1 % from 4 degrees of freedom on (Cornish and Fisher)."""
    z = 1.959963984540054
    if freedom < 4:
        return (12.7062, 4.3027, 3.1824)[max(freedom, 1) - 1]
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + math.fsum(term / freedom ** (power + 1) for power, term in enumerate(terms))
