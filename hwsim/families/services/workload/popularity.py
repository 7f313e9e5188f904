"""Hit rates of an LRU cache for items of given popularity.

Requests are independent; the k-th most popular of `of` items is requested with a probability p_k proportional to 1 / k^zipf. Then

    hit(n) = sum p_k (1 - (1 - p_k)^n),   n: lookups since the cache was empty,   until it is full after T lookups:
    sum (1 - (1 - p_k)^T) = entries,      and from then on hit(T)

The average while the cache fills is exact. For a full cache this is Che's approximation of LRU, which uses the same number of
lookups T until eviction for all items.

Source: Che et al., "Hierarchical web caching systems", IEEE JSAC 20(7), 2002. Why it is accurate: Fricker, Robert and Roberts,
"A versatile and accurate approximation for LRU cache performance", ITC 2012.
Range: items of one size; concurrent misses of one item each fetch it; popularity does not change.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass

SINGLE: Final = 4096  # ranks computed individually; later ranks are grouped
GROUP: Final = 1.01  # ratio of the last to the first rank of a group
KNOTS: Final = 96  # knots of the hit rate while the cache fills
FULL: Final = 1e-6  # miss rate below which a cache that can hold all items counts as full

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Filling:
    """The hit rate of a cache as a function of the lookups since it was empty.

    Args:
        lines: segments (upper end in lookups, a, b) of a + b lookups, ascending; after the last one the cache is full.
        hit: hit rate of the full cache.
    """

    lines: tuple[tuple[float, float, float], ...]
    hit: float

    @property
    def full(self) -> float:
        """Lookups until the cache is full."""
        return self.lines[-1][0]

    def at(self, lookups: int) -> float:
        """Return the hit rate after a number of lookups."""
        for until, base, slope in self.lines:
            if lookups <= until:
                return base + slope * lookups
        return self.hit


def hit_rate_curve(entries: float, of: float, zipf: float) -> Filling:
    """Return the hit rate of a cache, from the first lookup on.

    Args:
        entries: capacity in items.
        of: number of distinct items.
        zipf: exponent of the popularity.

    >>> half = hit_rate_curve(500, 1000, 0.0)  # uniform popularity: the hit rate is the share of items in the cache
    >>> round(half.hit, 6), round(half.at(0), 6), round(half.full)
    (0.5, 0.0, 693)
    """
    ranks, share = _shares(of, zipf)
    log_misses = [math.log1p(-min(part, 1 - 1e-15)) for part in share.tolist()]

    def requested(lookups: float) -> Floats:
        """Return the probability that an item of each group is requested in a number of lookups."""
        return np.array([-math.expm1(lookups * log_miss) for log_miss in log_misses])

    def hits(lookups: float) -> float:
        return math.fsum((ranks * share * requested(lookups)).tolist())

    low, high = 0.0, 1.0

    def is_full(lookups: float) -> bool:
        if entries >= of:
            return hits(lookups) >= 1 - FULL
        return math.fsum((ranks * requested(lookups)).tolist()) >= entries

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
    """Return the number of items in each group of ranks, and the probability of each item."""
    edges = [float(rank) for rank in range(1, int(min(of, SINGLE)) + 1)]
    while edges[-1] < of:
        edges.append(min(of, max(edges[-1] + 1, math.floor(edges[-1] * GROUP))))
    starts = np.array(edges)
    ranks = np.diff(starts, append=of + 1)
    ends = starts + ranks - 0.5
    begins = starts - 0.5
    groups = list(zip(edges, ranks.tolist(), begins.tolist(), ends.tolist(), strict=True))
    weights = np.array([start**-zipf if count == 1 else _weight(begin, end, zipf) for start, count, begin, end in groups])
    weights /= math.fsum(weights.tolist())
    kept = ranks > 0
    return ranks[kept], weights[kept] / ranks[kept]


def _weight(begin: float, end: float, zipf: float) -> float:
    if math.isclose(zipf, 1.0):
        return math.log(end / begin)
    return float((end ** (1 - zipf) - begin ** (1 - zipf)) / (1 - zipf))
