"""Hit rates of a cache in each epoch.

Every sample is read once an epoch. With c = bytes of the cache / bytes of the data below 1, of what is read again

    pinned    in any order   c

    lru       shuffled       c + (1 - c) ln(1 - c)         in order   nothing

    linux     shuffled       the h of h = ((1 - e^-a)/a)^2  in order   the h of h = e^-a,       a = (1 - h)/c

lru: a sample is read at place p of one epoch and q of the next, as parts of it. All but p (1 - q) of the data is read in between,
and the sample is still there if that fits. The rate is the probability that a product of two uniform numbers exceeds 1 - c.

linux: anything in the cache may be replaced, so a sample survives each miss with probability 1 - 1/size.

**Source**: Mohan et al., "Analyzing and mitigating data stalls in DNN training", PVLDB 14(5), 2021, section 7.1. Measured for the
page cache of Linux with c = 0.65: 53 % of misses shuffled, 66 % in order, and 35 % for a cache that keeps what it has.

**Error**: `linux` gives 54 and 61 %, `pinned` 35 %; a plain lru would give 72 and 100 %.

**Range**: samples of about one size, from the second epoch on; several hosts that share out each epoch anew: see `hit_rate`.
"""

from __future__ import annotations

import math
from typing import Literal

Policy = Literal["linux", "lru", "pinned"]


def hit_rate(policy: Policy, part: float, epoch: int, *, shuffled: bool, hosts: int = 1) -> float:
    """The part of the reads of an epoch (0 is the first) that a cache serves.

    Args:
        part: bytes of the cache / bytes of the data that this host reads over the epochs.
        hosts: machines that share out shuffled data anew each epoch. A sample comes back to its host once in `hosts` epochs,
            as if drawn at random. Then every policy holds `part` of what has been seen (at most all that was seen).

    >>> hit_rate("lru", 0.5, 0, shuffled=True), hit_rate("lru", 1.0, 1, shuffled=True)
    (0.0, 1.0)
    >>> [round(hit_rate(policy, 0.65, 1, shuffled=True), 3) for policy in ("linux", "lru", "pinned")]
    [0.464, 0.283, 0.65]
    >>> [round(hit_rate(policy, 0.65, 1, shuffled=False), 3) for policy in ("linux", "lru", "pinned")]
    [0.393, 0.0, 0.65]
    """
    if epoch == 0 or part <= 0:
        return 0.0
    if shuffled and hosts > 1:
        return min(1.0, part, 1 - (1 - 1 / hosts) ** epoch)
    if part >= 1:
        return 1.0
    match policy:
        case "pinned":
            return part
        case "lru":
            return part + (1 - part) * math.log1p(-part) if shuffled else 0.0
        case "linux":
            return _random(part, 2 if shuffled else 1)


def _random(part: float, power: int) -> float:
    """The hit rate that reproduces itself where what goes is chosen at random: below it more survives, above it less."""
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        missed = (1 - rate) / part
        survives = math.exp(-missed) if power == 1 else (-math.expm1(-missed) / missed) ** 2
        low, high = (rate, high) if survives > rate else (low, rate)
    return low
