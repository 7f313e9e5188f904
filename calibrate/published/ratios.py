"""Equal work on two devices: what the two errors have in common, so that a ratio's interval holds what it says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from published.intervals import Floats, weighted_quantile
from published.residual import Residual

PAIRS: Final = 8  # works that a correlation is of, at least
LEVEL: Final = 0.9
LEAST, MOST = -1.0, 0.9  # correlations: two devices never share all of an error
Pair = tuple[Residual, Residual]


def pairs(found: Iterable[Residual]) -> Iterator[Pair]:
    """Rows of equal work on two devices; where a device has several rows of a work, the one in the middle."""
    works: dict[tuple[str, str, str], dict[str, list[Residual]]] = {}
    for each in found:
        works.setdefault((each.topic, each.case, each.work), {}).setdefault(each.device, []).append(each)
    for devices in works.values():
        rows = [sorted(rows, key=lambda row: row.log)[(len(rows) - 1) // 2] for _, rows in sorted(devices.items())]
        yield from itertools.combinations(rows, 2)


def ratio_half(first: float, second: float, alike: float) -> float:
    """Half width of a ratio's logarithm, of half widths of its two answers and the correlation of their errors.

    >>> round(ratio_half(0.3, 0.4, 0.0), 3), round(ratio_half(0.3, 0.3, 0.5), 3)
    (0.5, 0.3)
    """
    return math.sqrt(max(0.0, first**2 + second**2 - 2 * alike * first * second))


def most_alike(both: Sequence[Pair], halves: Sequence[tuple[float, float]]) -> Floats:
    """The largest correlation at which each ratio still lies inside its interval.

    Args:
        halves: half widths of 90 % of both answers, as logarithms.
    """
    a, b = np.array(halves, dtype=float).reshape(-1, 2).T
    off = np.array([first.log - second.log for first, second in both])
    return np.asarray((a**2 + b**2 - off**2) / (2 * a * b))


def alike(found: Floats, devices: Sequence[str]) -> float:
    """The correlation at which 90 % of ratios lie inside their intervals; pairs of devices weigh by the root of their works.

    Errors of equal work that are correlated by more would have a narrower interval, which holds fewer of them.

    Args:
        found: of `most_alike`.
        devices: name of the pair of each work.
    """
    _, place, count = np.unique(np.asarray(devices), return_inverse=True, return_counts=True)
    return float(np.clip(weighted_quantile(found, 1.0 / np.sqrt(count[place]), 1.0 - LEVEL), LEAST, MOST))
