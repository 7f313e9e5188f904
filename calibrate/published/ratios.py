"""Equal work on two devices: what the two errors have in common, so that a ratio's interval holds what it says."""

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

PAIRS: Final = 8  # works that a correlation is of, at least
LEVEL: Final = 0.9
RIGHT: Final = 0.95  # of claims
# Two devices never share all of an error; below -1 both widths together are too narrow, for wrong claims are of the outliers.
LEAST, MOST = -3.0, 0.9
RHOS: Final = np.concatenate([np.arange(0.85, -1.0, -0.05), np.arange(-1.0, LEAST, -0.1)])
DRAWS, SEED, SAFE = 40, 11, 0.25
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


@dataclass(frozen=True, slots=True)
class Works:
    """Equal works on pairs of devices, in columns.

    Args:
        holds: the largest correlation at which each ratio still lies inside its interval.
        claimed: the correlation above which one device is called faster.
        right: whether that would be right.
        weight: of each work; pairs of devices weigh by the root of their works.
        pair: number of the pair of devices.
    """

    holds: Floats
    claimed: Floats
    right: NDArray[np.bool_]
    weight: Floats
    pair: Codes

    def without(self, code: int) -> Works:
        """All works but those of one pair of devices."""
        at = self.pair != code
        return Works(self.holds[at], self.claimed[at], self.right[at], self.weight[at], self.pair[at])

    def alike(self, draws: int = DRAWS) -> float:
        """The correlation of the errors: the largest at which 90 % of ratios lie inside, and 95 % of claims are right.

        Of so many draws of the pairs of devices, with replacement, three of four have a larger one.
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
            claims, well = (np.concatenate([[0.0], np.cumsum(each)])[at] for each in (count, count * right))
            enough = well >= RIGHT * claims
            found.append(float(tried[enough.argmax()]) if enough.any() else LEAST)
        return float(np.quantile(found, SAFE))


def works(both: Sequence[Pair], halves: Sequence[tuple[float, float]]) -> Works:
    """Works in columns.

    Args:
        halves: half widths of 90 % of both answers, as logarithms.
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
