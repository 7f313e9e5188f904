"""Two shapes that many parts have in common: a soft minimum, and the ramp of a cache's hits.

Source of the soft minimum: the asymptotic bounds of a closed queueing network (Denning and Buzen, "The
operational analysis of queueing network models", ACM Computing Surveys 10(3), 1978), rounded at the knee.
"""

from __future__ import annotations

import math


def soft_min(first: float, second: float, sharpness: float) -> float:
    """Smaller than both, and near the smaller one where they are far apart.

        (first^-p + second^-p)^(-1/p),  p = sharpness; the minimum itself for infinite p

    >>> round(soft_min(1.0, 1.0, 1.0), 3), round(soft_min(1.0, 1000.0, 2.0), 3), soft_min(3.0, 2.0, math.inf)
    (0.5, 1.0, 2.0)
    """
    low, high = min(first, second), max(first, second)
    if low <= 0 or math.isinf(high) or math.isinf(sharpness):
        return low
    return float(low * (1.0 + (low / high) ** sharpness) ** (-1.0 / sharpness))


def hit_share(working_set: float, capacity: float, *, full: float = 0.8, none: float = 1.3) -> float:
    """Part of the accesses that a cache serves when `working_set` bytes are gone over again and again.

    1 up to `full` x capacity, 0 from `none` x capacity, linear between.

    >>> hit_share(50, 100), hit_share(200, 100), round(hit_share(105, 100), 2)
    (1.0, 0.0, 0.5)
    """
    if capacity <= 0:
        return 0.0
    return min(1.0, max(0.0, (none - working_set / capacity) / (none - full)))
