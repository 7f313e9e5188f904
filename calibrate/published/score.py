"""Scores: errors of a model on a set of measured rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from published.parts import declared

# Use of the rows in the fit: device, generation or source held out; no similar rows fitted; other sizes fitted; some rows fitted.
Half = Literal["cross-validated", "not fitted", "interpolated", "partly fitted"]
WORST = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Miss:
    """One row with its prediction, in the row's unit."""

    row: str
    predicted: float
    measured: float
    group: str = ""  # source x device, or curve
    reason: str = ""

    @property
    def error(self) -> float:
        """|ln(predicted / measured)|; infinite if the prediction is not a positive finite number.

        >>> round(Miss("a", 110.0, 100.0).error, 3), Miss("a", 0.0, 1.0).error
        (0.095, inf)
        """
        ratio = self.predicted / self.measured
        return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf

    @property
    def relative(self) -> float:
        """|predicted - measured| / measured."""
        return abs(self.predicted - self.measured) / abs(self.measured)


@dataclass(frozen=True, slots=True)
class Ranked:
    """The rows with the largest errors, and the group median common to all scores.

    Args:
        median, tail: median and 90th percentile of |ln(predicted / measured)| in each group, averaged over the groups.
    """

    furthest: tuple[Miss, ...] = ()
    median: float = 0.0
    tail: float = 0.0
    groups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One score, its bound, and its rows.

    Args:
        name: the comparison.
        metric: method of aggregating errors, see `METRICS`.
        value: the score; 0.05 is 5 %.
        bound: target, the maximum value.
        rows: number of rows.
        half: use of these rows in the fit, see `Half`.
        reached: best score so far if it exceeds the bound; `notes` explains why.
        worst: rows with the largest errors.
    """

    name: str
    metric: str
    value: float
    bound: float
    rows: int
    half: Half = "partly fitted"
    reached: float | None = None
    worst: Ranked = Ranked()
    notes: str = ""

    @property
    def limit(self) -> float:
        """The maximum value that a test accepts."""
        return self.bound if self.reached is None else self.reached * 1.02


def worst_of(rows: Iterable[Miss], why: Callable[[Miss], str] = lambda _: "", shown: int = WORST) -> Ranked:
    """Return the rows by error, largest first, with a cause if it was investigated."""
    found = sorted(rows, key=lambda each: (-each.error, each.row))
    median, tail = group_median(found) if found else (0.0, 0.0)
    worst = [Miss(miss.row, miss.predicted, miss.measured, miss.group, miss.reason or why(miss)) for miss in found[:shown]]
    return Ranked(tuple(worst), median, tail, len(by_group(found)))


def by_group(rows: Iterable[Miss]) -> Mapping[str, list[Miss]]:
    """Return the rows of each group, sorted by the name of the group."""
    found: dict[str, list[Miss]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row)
    return dict(sorted(found.items()))


def group_median(rows: Iterable[Miss]) -> tuple[float, float]:
    """Return the median and the 90th percentile of |ln(predicted / measured)| in each group, averaged over the groups.

    >>> [round(each, 3) for each in group_median([Miss("a", 1.1, 1, "x"), Miss("b", 1, 1, "x"), Miss("c", 1.2, 1, "y")])]
    [0.115, 0.134]
    """
    groups = by_group(rows).values()
    medians = [statistics.median(miss.error for miss in group) for group in groups]
    tails = [percentile([miss.error for miss in group], 0.9) for group in groups]
    return statistics.fmean(medians), statistics.fmean(tails)


def mean_error(rows: Sequence[Miss]) -> float:
    """Return the mean of |predicted - measured| / measured."""
    return statistics.fmean(row.relative for row in rows)


def worst_error(rows: Sequence[Miss]) -> float:
    """Return the largest |predicted - measured| / measured."""
    return max(row.relative for row in rows)


def percentile(values: Sequence[float], part: float) -> float:
    """Return a percentile with linear interpolation.

    >>> percentile([1.0, 2.0, 3.0], 0.75)
    2.5
    """
    ordered = sorted(values)
    at = part * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    if ordered[low] == ordered[high]:
        return ordered[low]
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def _by_group_median(of: Callable[[Iterable[float]], float]) -> Callable[[Sequence[Miss]], float]:
    """Return a metric: the median over groups of a statistic of their errors."""
    return lambda rows: statistics.median(of(miss.error for miss in group) for group in by_group(rows).values())


NOTES: Final[Mapping[str, str]] = declared("score")["notes"]
# Name of a metric: aggregation of the errors of rows.
METRICS: Final[Mapping[str, Callable[[Sequence[Miss]], float]]] = {
    "group median": lambda rows: group_median(rows)[0],
    "median over all rows": lambda rows: statistics.median(row.error for row in rows),
    "median of the group medians": _by_group_median(statistics.median),
    "median over devices of the mean error": _by_group_median(statistics.fmean),
    "median over drives of the mean error": _by_group_median(statistics.fmean),
    "mean relative error": mean_error,
    "largest relative error": worst_error,
    "largest relative difference": worst_error,
}


def scored(
    name: str,
    rows: Sequence[Miss],
    bound: float,
    half: Half = "partly fitted",
    *,
    metric: str = "group median",
    why: Callable[[Miss], str] = lambda _: "",
    shown: int = WORST,
    reached: float | None = None,
    notes: str = "",
) -> Score:
    """Return the score of some rows by a metric of `METRICS`; other arguments as in `Score` and `worst_of`."""
    return Score(
        name=name,
        metric=metric,
        value=METRICS[metric](rows),
        bound=bound,
        rows=len(rows),
        half=half,
        reached=reached,
        worst=worst_of(rows, why, shown),
        notes=notes or NOTES.get(name, ""),
    )


def held_out(
    rows: Iterable[T], size: Callable[[T], float], group: Callable[[T], object] = lambda _: None, fewest: int = 1
) -> list[T]:
    """Return alternate sizes of each group, from the second on; groups with fewer than `fewest` rows are skipped.

    >>> held_out([4, 1, 2, 2, 8], float)
    [2, 2, 8]
    """
    groups: dict[object, list[T]] = {}
    for row in rows:
        groups.setdefault(group(row), []).append(row)
    out = []
    for mine in groups.values():
        if len(mine) >= fewest:
            scored_sizes = set(sorted({size(row) for row in mine})[1::2])
            out += [row for row in sorted(mine, key=size) if size(row) in scored_sizes]
    return out
