"""Equal work on two devices: correlation of the two errors, so that the intervals of ratios have the promised coverage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from published.intervals import Codes, Floats, weighted_quantile
from published.residual import Residual

PAIRS: Final = 8  # minimum works behind a correlation
LEVEL: Final = 0.9
RIGHT: Final = 0.95  # share of correct claims
# Errors of two devices are never fully correlated; below -1, even the sum of both widths is too narrow, because of outliers.
LEAST, MOST = -3.0, 0.9
RHOS: Final = np.concatenate([np.arange(0.85, -1.0, -0.05), np.arange(-1.0, LEAST, -0.1)])
DRAWS, SEED, SAFE = 40, 11, 0.25
Pair = tuple[Residual, Residual]


def pairs(found: Iterable[Residual]) -> Iterator[Pair]:
    """Return pairs of rows of equal work on two devices; of several rows of a device, the middle one."""
    works: dict[tuple[str, str, str], dict[str, list[Residual]]] = {}
    for row in found:
        works.setdefault((row.topic, row.case, row.work), {}).setdefault(row.device, []).append(row)
    for devices in works.values():
        rows = [sorted(rows, key=lambda row: row.log)[(len(rows) - 1) // 2] for _, rows in sorted(devices.items())]
        yield from itertools.combinations(rows, 2)


def ratio_half(first: float, second: float, alike: float) -> float:
    """Return the half width of a ratio's logarithm from both half widths and the correlation of their errors.

    >>> round(ratio_half(0.3, 0.4, 0.0), 3), round(ratio_half(0.3, 0.3, 0.5), 3)
    (0.5, 0.3)
    """
    return math.sqrt(max(0.0, first**2 + second**2 - 2 * alike * first * second))


@dataclass(frozen=True, slots=True)
class Works:
    """Equal works on pairs of devices, in columns.

    Args:
        holds: largest correlation at which the ratio lies inside its interval.
        claimed: correlation above which one device is claimed to be faster.
        right: whether that claim is correct.
        weight: weight of each work; a pair of devices has the square root of its number of works.
        pair: number of the pair of devices.
    """

    holds: Floats
    claimed: Floats
    right: NDArray[np.bool_]
    weight: Floats
    pair: Codes

    def without(self, code: int) -> Works:
        """Return all works except those of one pair of devices."""
        at = self.pair != code
        return Works(self.holds[at], self.claimed[at], self.right[at], self.weight[at], self.pair[at])

    def alike(self, draws: int = DRAWS) -> float:
        """Return the correlation of the errors: the largest with 90 % coverage of ratios and 95 % correct claims.

        The value is the lower quartile of a bootstrap over pairs of devices.
        """
        order = np.argsort(self.claimed)
        claimed, right, pair = self.claimed[order], self.right[order], np.unique(self.pair[order], return_inverse=True)[1]
        many = int(pair.max()) + 1
        generator = np.random.default_rng(SEED)
        found = []
        for _ in range(draws):
            times = np.bincount(generator.integers(0, many, many), minlength=many).astype(float)
            count = times[pair]
            drawn = count > 0
            quantile = weighted_quantile(self.holds[order][drawn], (self.weight[order] * count)[drawn], 1.0 - LEVEL)
            most = float(np.clip(quantile, LEAST, MOST))
            tried = np.array([most, *RHOS[most > RHOS]])
            at = np.searchsorted(claimed, tried)
            claims, well = (np.concatenate([[0.0], np.cumsum(weight)])[at] for weight in (count, count * right))
            enough = well >= RIGHT * claims
            found.append(float(tried[enough.argmax()]) if enough.any() else LEAST)
        return float(np.quantile(found, SAFE))


def works(both: Sequence[Pair], halves: Sequence[tuple[float, float]]) -> Works:
    """Return works in columns.

    Args:
        halves: half widths of the 90 % intervals of both answers, as logarithms.
    """
    a, b = np.array(halves, dtype=float).reshape(-1, 2).T
    off = np.array([first.log - second.log for first, second in both])
    said = np.array([math.log(first.predicted / second.predicted) for first, second in both])
    _, pair, count = np.unique(
        [f"{first.device} | {second.device}" for first, second in both], return_inverse=True, return_counts=True
    )
    right = np.sign(said) == np.sign(said - off)
    return Works(
        (a**2 + b**2 - off**2) / (2 * a * b), (a**2 + b**2 - said**2) / (2 * a * b), right, 1.0 / np.sqrt(count[pair]), pair
    )
