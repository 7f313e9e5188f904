"""The time between checkpoints, and the part of the time that is work, in closed form.

M: mean time between failures; t: work between checkpoints; w: how long one stops the training; d: from a failure until the
job goes on.

    Young   t = sqrt(2 w M)
    Daly    t = sqrt(2 w M) (1 + sqrt(w / 2M) / 3 + w / 18M) - w, or M if w >= 2M
    best    (1 - t/M) exp((t + w)/M) = 1: where the goodput below is largest, whatever d is
    goodput t exp(-lag/M) / (M exp(d/M) (exp((t + w)/M) - 1))

The last is exact for failures that come by chance alone (exponential), also while the job is down. An asynchronous checkpoint
counts `lag` after it: a stretch of s seconds between failures keeps as many as there are k with k (t + w) + lag <= s.

**Source**: Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974. Daly, "A higher order
estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006. Two levels as Moody et al., "Design, modeling,
and evaluation of a scalable multi-level checkpointing system", SC 2010. Spares by Erlang's loss formula, 1917.
**Error**: against simulation 0.1 % (`tests/test_failures.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

LARGEST: Final = 700.0  # exponent from which exp overflows


def young(mtbf: float, write: float) -> float:
    """Seconds of work between checkpoints, first order.

    >>> young(3.0 * 3600, 6.0)
    360.0
    """
    return math.sqrt(2.0 * write * mtbf)


def daly(mtbf: float, write: float) -> float:
    """The same, higher order."""
    if write >= 2.0 * mtbf:
        return mtbf
    part = write / (2.0 * mtbf)
    return math.sqrt(2.0 * write * mtbf) * (1.0 + math.sqrt(part) / 3.0 + part / 9.0) - write


def best(mtbf: float, write: float) -> float:
    """The same, exactly.

    >>> round(best(100.0, 1.0), 3), round(daly(100.0, 1.0), 3)
    (13.483, 13.483)
    """
    cost = write / mtbf
    if cost < 1e-9:  # too small for the difference below; Daly is exact there
        return max(0.0, daly(mtbf, write))
    low, high = 0.0, 1.0
    for _ in range(200):  # the left side falls with t: bisection to the last digit
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if math.log1p(-middle) + middle + cost > 0:
            low = middle
        else:
            high = middle
    return low * mtbf


def renewal(mtbf: float, every: float, write: float, down: float, lag: float = 0.0) -> float:
    """Goodput: work over time.

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
    """Goodput with copies in memory every `every` seconds of work, each `times`-th written to storage instead.

    Args:
        survives: share of failures that leave the copies whole; the others go back to storage.
        near, far: seconds that a copy, and a write, stops the training; near_down, far_down: from a failure until it goes on.
    """
    if max(every + far, near_down, far_down) / mtbf > LARGEST:
        return 0.0
    back = mtbf * math.expm1(far_down / mtbf)  # until it runs again from storage, failures meanwhile included

    def through(seconds: float) -> tuple[float, float, float]:
        """(a, b, c): time from here = a + b x time from the next state + c x time from storage."""
        undisturbed = math.exp(-seconds / mtbf)
        again = math.exp(-near_down / mtbf)
        stays = 1.0 - survives * (1.0 - again)
        up = survives * (1.0 - undisturbed) / stays  # times that it is restarted from memory, per try
        scale = 1.0 - up * again
        spent = mtbf * (1.0 - undisturbed) + up * mtbf * (1.0 - again)
        lost = (1.0 - survives) * (1.0 - undisturbed) + up * (1.0 - survives) * (1.0 - again)
        return spent / scale, undisturbed / scale, lost / scale

    short, last = through(every + near), through(every + far)
    reaches = short[1] ** (times - 1)
    tries = (1.0 - reaches) / (1.0 - short[1]) if short[1] < 1.0 - 1e-12 else times - 1.0
    spent, lost = tries * short[0] + reaches * last[0], tries * short[2] + reaches * last[2]
    return times * every * (1.0 - lost) / (spent + lost * back) if lost < 1.0 else 0.0


def peak(function: Callable[[float], float], low: float, high: float) -> float:
    """The argument at which a function with one maximum is largest, on a scale of logarithms.

    >>> round(peak(lambda x: -(x - 3.0) ** 2, 0.1, 100.0), 6)
    3.0
    """
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = math.log(low), math.log(high)
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = function(math.exp(c)), function(math.exp(d))
    while b - a > 1e-9:
        if at_c >= at_d:
            b, d, at_d = d, c, at_c
            c = b - golden * (b - a)
            at_c = function(math.exp(c))
        else:
            a, c, at_c = c, d, at_d
            d = a + golden * (b - a)
            at_d = function(math.exp(d))
    return math.exp((a + b) / 2.0)


def spares_for(broken: float, percentile: float) -> int:
    """The smallest number of spares that is enough in `percentile` of the time, where `broken` nodes are away in the mean.

    >>> spares_for(15.5, 0.99), spares_for(0.005, 0.99)
    (25, 0)
    """
    if broken > LARGEST:  # a normal distribution, to all digits that matter
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
    """Part of the time that all servers are busy, where who comes then is lost (Erlang B).

    >>> round(erlang_b(1, 1.0), 3), round(erlang_b(17, 15.5), 3)
    (0.5, 0.127)
    """
    part = 1.0
    for count in range(1, servers + 1):
        part = load * part / (count + load * part)
        if part < 1e-16:
            return 0.0
    return part
