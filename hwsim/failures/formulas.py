"""Checkpoint interval and goodput in closed form.

M: mean time between failures; t: work between checkpoints; w: pause of the job for a checkpoint; d: downtime after a failure.

    Young   t = sqrt(2 w M)
    Daly    t = sqrt(2 w M) (1 + sqrt(w / 2M) / 3 + w / 18M) - w, or M if w >= 2M
    best    (1 - t/M) exp((t + w)/M) = 1: maximum of the goodput below, for any d
    goodput t exp(-lag/M) / (M exp(d/M) (exp((t + w)/M) - 1))

The goodput is exact for exponential times between failures, which also occur while the job is down. An asynchronous checkpoint
becomes valid `lag` after its pause: after s seconds without failures, the valid ones are those with k (t + w) + lag <= s.

**Source**: Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974. Daly, "A higher order
estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006. Two levels as Moody et al., "Design, modeling,
and evaluation of a scalable multi-level checkpointing system", SC 2010. Spares by Erlang's loss formula, 1917.
**Error**: against simulation 0.1 % (`tests/test_failures.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

LARGEST: Final = 700.0  # largest exponent of exp


def young(mtbf: float, write: float) -> float:
    """Return the work between checkpoints by Young's first-order formula (s).

    >>> young(3.0 * 3600, 6.0)
    360.0
    """
    return math.sqrt(2.0 * write * mtbf)


def daly(mtbf: float, write: float) -> float:
    """Return the work between checkpoints by Daly's higher-order formula (s)."""
    if write >= 2.0 * mtbf:
        return mtbf
    part = write / (2.0 * mtbf)
    return math.sqrt(2.0 * write * mtbf) * (1.0 + math.sqrt(part) / 3.0 + part / 9.0) - write


def best(mtbf: float, write: float) -> float:
    """Return the work between checkpoints with the highest goodput (s).

    >>> round(best(100.0, 1.0), 3), round(daly(100.0, 1.0), 3)
    (13.483, 13.483)
    """
    cost = write / mtbf
    if cost < 1e-9:  # avoids cancellation; Daly is exact here
        return max(0.0, daly(mtbf, write))
    low, high = 0.0, 1.0
    for _ in range(200):  # bisection: the left side decreases with t
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if math.log1p(-middle) + middle + cost > 0:
            low = middle
        else:
            high = middle
    return low * mtbf


def renewal(mtbf: float, every: float, write: float, down: float, lag: float = 0.0) -> float:
    """Return the goodput with checkpoints every `every` seconds of work.

    >>> round(renewal(3.0, 0.5, 0.01, 0.1), 4), renewal(3.0, 5000.0, 0.0, 0.0)
    (0.8699, 0.0)
    """
    turn = (every + write) / mtbf
    if turn + (down + lag) / mtbf > LARGEST:
        return 0.0
    if turn <= 0:
        return math.exp(-(down + lag) / mtbf)
    return every / mtbf * math.exp(-(down + lag) / mtbf) / math.expm1(turn)


def two_levels(
    mtbf: float, survives: float, every: float, times: int, near: float, far: float, near_down: float, far_down: float
) -> float:
    """Return the goodput with copies in memory every `every` seconds of work, every `times`-th one on storage instead.

    Args:
        mtbf: mean time between failures (s).
        survives: share of failures that leave the copies intact; after the others, the job restarts from storage.
        every: work between two copies (s).
        times: copies per checkpoint on storage, including it.
        near: pause of the training for a copy in memory (s).
        far: pause of the training for a checkpoint on storage (s).
        near_down: downtime with a restart from memory (s).
        far_down: downtime with a restart from storage (s).
    """
    if max(every + far, near_down, far_down) / mtbf > LARGEST:
        return 0.0
    back = mtbf * math.expm1(far_down / mtbf)  # downtime from storage, with further failures meanwhile

    def through(seconds: float) -> tuple[float, float, float]:
        """Return (a, b, c): remaining time = a + b x remaining time at the next copy + c x remaining time from storage."""
        undisturbed = math.exp(-seconds / mtbf)
        again = math.exp(-near_down / mtbf)
        stays = 1.0 - survives * (1.0 - again)
        up = survives * (1.0 - undisturbed) / stays  # restarts from memory per attempt
        scale = 1.0 - up * again
        spent = mtbf * (1.0 - undisturbed) + up * mtbf * (1.0 - again)
        lost = (1.0 - survives) * (1.0 - undisturbed) + up * (1.0 - survives) * (1.0 - again)
        return spent / scale, undisturbed / scale, lost / scale

    short, last = through(every + near), through(every + far)
    reaches = short[1] ** (times - 1)
    tries = (1.0 - reaches) / (1.0 - short[1]) if short[1] < 1.0 - 1e-12 else times - 1.0
    spent, lost = tries * short[0] + reaches * last[0], tries * short[2] + reaches * last[2]
    return times * every * (1.0 - lost) / (spent + lost * back) if lost < 1.0 else 0.0


def find_maximum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the argument of the only maximum of a function, by golden-section search on a logarithmic scale.

    >>> round(find_maximum(lambda x: -(x - 3.0) ** 2, 0.1, 100.0), 6)
    3.0
    """
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = math.log(low), math.log(high)
    c, d = b - golden * (b - a), a + golden * (b - a)
    value_c, value_d = function(math.exp(c)), function(math.exp(d))
    while b - a > 1e-9:
        if value_c >= value_d:
            b, d, value_d = d, c, value_c
            c = b - golden * (b - a)
            value_c = function(math.exp(c))
        else:
            a, c, value_c = c, d, value_d
            d = a + golden * (b - a)
            value_d = function(math.exp(d))
    return math.exp((a + b) / 2.0)


def spares_for(broken: float, percentile: float) -> int:
    """Return the smallest number of spares that suffices for `percentile` of the time with `broken` nodes in repair on average.

    >>> spares_for(15.5, 0.99), spares_for(0.005, 0.99)
    (25, 0)
    """
    if broken > LARGEST:  # normal approximation of the Poisson distribution
        from statistics import NormalDist

        return math.ceil(broken + NormalDist().inv_cdf(percentile) * math.sqrt(broken))
    term = total = math.exp(-broken)
    count = 0
    while total < percentile and count < 100_000:
        count += 1
        term *= broken / count
        total += term
    return count


def erlang_b(servers: int, load: float) -> float:
    """Return the share of time in which all servers are busy and arrivals are lost (Erlang B).

    >>> round(erlang_b(1, 1.0), 3), round(erlang_b(17, 15.5), 3)
    (0.5, 0.127)
    """
    part = 1.0
    for count in range(1, servers + 1):
        part = load * part / (count + load * part)
        if part < 1e-16:
            return 0.0
    return part
