"""Hit rates of a cache that holds what was asked for last, by the popularity of what is asked for.

Each of the `of` things is asked for on its own, the k-th most popular with a share p_k proportional to 1 / k^zipf. Then

    hit(n) = sum p_k (1 - (1 - p_k)^n),   n: lookups since the cache was empty,   until it is full after T lookups:
    sum (1 - (1 - p_k)^T) = entries,      and from then on hit(T)

While it fills this is exact in the mean. Full, it is Che's approximation of least recently used, which takes one number
of lookups T for the time until any entry falls out: Che et al., "Hierarchical web caching systems", IEEE JSAC
20(7), 2002. Why it is good: Fricker, Robert and Roberts, "A versatile and accurate approximation for LRU cache
performance", ITC 2012.
Range: things of one size; those who miss the same thing at once each fetch it; popularity does not change.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass

SINGLE: Final = 4096  # ranks that are taken one by one; beyond them in groups
GROUP: Final = 1.01  # ranks of a group, the last over the first
KNOTS: Final = 96  # of the curve while it fills
FULL: Final = 1e-6  # of what is asked for: less missing is nothing missing

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Filling:
    """The hit rate of a cache by the number of lookups since it was empty.

    Args:
        lines: (lookups up to which it counts, a, b) in rising order: a + b lookups; behind the last one the cache is full.
        hit: when it is full.
    """

    lines: tuple[tuple[float, float, float], ...]
    hit: float

    @property
    def full(self) -> float:
        """Lookups until it is full."""
        return self.lines[-1][0]

    def at(self, lookups: int) -> float:
        """The part of the lookups that find it, after this number of them."""
        for until, base, slope in self.lines:
            if lookups <= until:
                return base + slope * lookups
        return self.hit


def filling(entries: float, of: float, zipf: float) -> Filling:
    """The hit rate of a cache with room for `entries`, from the first lookup on.

    >>> half = filling(500, 1000, 0.0)  # all alike: what is in it is found
    >>> round(half.hit, 6), round(half.at(0), 6), round(half.full)
    (0.5, 0.0, 693)
    """
    ranks, share = _shares(of, zipf)
    missed = [math.log1p(-min(each, 1 - 1e-15)) for each in share.tolist()]

    def there(lookups: float) -> Floats:
        """Part of each group's things asked for in a number of lookups."""
        return np.array([-math.expm1(lookups * each) for each in missed])

    def hits(lookups: float) -> float:
        return math.fsum((ranks * share * there(lookups)).tolist())

    low, high = 0.0, 1.0

    def is_full(lookups: float) -> bool:
        """Whether nothing more goes in, or nothing more is missing."""
        if entries >= of:
            return hits(lookups) >= 1 - FULL
        return math.fsum((ranks * there(lookups)).tolist()) >= entries

    while not is_full(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_full(middle) else (middle, high)
    least = min(1.0, high)
    knots = sorted({0.0, *(least * (high / least) ** (place / (KNOTS - 1)) for place in range(KNOTS)), high})
    values = [hits(knot) for knot in knots]
    lines = []
    for (n0, h0), (n1, h1) in pairwise(zip(knots, values, strict=True)):
        slope = (h1 - h0) / (n1 - n0)
        lines.append((n1, h0 - slope * n0, slope))
    return Filling(tuple(lines), 1.0 if entries >= of else values[-1])


def _shares(of: float, zipf: float) -> tuple[Floats, Floats]:
    """Things in each group of ranks, and the share of each of them."""
    edges = [float(rank) for rank in range(1, int(min(of, SINGLE)) + 1)]
    while edges[-1] < of:
        edges.append(min(of, max(edges[-1] + 1, math.floor(edges[-1] * GROUP))))
    starts = np.array(edges)
    ranks = np.diff(starts, append=of + 1)
    ends = starts + ranks - 0.5
    begins = starts - 0.5
    groups = list(zip(edges, ranks.tolist(), begins.tolist(), ends.tolist(), strict=True))
    weights = np.array([start**-zipf if many == 1 else _weight(begin, end, zipf) for start, many, begin, end in groups])
    weights /= math.fsum(weights.tolist())
    kept = ranks > 0
    return ranks[kept], weights[kept] / ranks[kept]


def _weight(begin: float, end: float, zipf: float) -> float:
    if math.isclose(zipf, 1.0):
        return math.log(end / begin)
    return float((end ** (1 - zipf) - begin ** (1 - zipf)) / (1 - zipf))
