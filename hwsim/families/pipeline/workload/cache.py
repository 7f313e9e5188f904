"""Hit rates of the page cache of Linux in each epoch.

Every sample is read once an epoch. With c = bytes of the cache / bytes of the data below 1, of what is read again

    shuffled   the h of h = ((1 - e^-a)/a)^2       in order   the h of h = e^-a,       a = (1 - h)/c

Anything in the cache may be replaced, so a sample survives each miss with probability 1 - 1/size.

**Source**: Mohan et al., "Analyzing and mitigating data stalls in DNN training", PVLDB 14(5), 2021, section 7.1. Measured with
c = 0.65: 53 % of misses shuffled, 66 % in order.

**Error**: 54 and 61 %; a plain lru would give 72 and 100 %.

**Range**: samples of about one size, from the second epoch on; several hosts that share out each epoch anew: see `hit_rate`.
"""

from __future__ import annotations

import math


def hit_rate(part: float, epoch: int, *, shuffled: bool, hosts: int = 1) -> float:
    """The part of the reads of an epoch (0 is the first) that the cache serves.

    Args:
        part: bytes of the cache / bytes of the data that this host reads over the epochs.
        hosts: machines that share out shuffled data anew each epoch. A sample comes back to its host once in `hosts` epochs,
            as if drawn at random: then `part` is held of what has been seen (at most all that was seen).

    >>> hit_rate(0.5, 0, shuffled=True), hit_rate(1.0, 1, shuffled=True)
    (0.0, 1.0)
    >>> [round(hit_rate(0.65, 1, shuffled=shuffled), 3) for shuffled in (True, False)]
    [0.464, 0.393]
    """
    if epoch == 0 or part <= 0:
        return 0.0
    if shuffled and hosts > 1:
        return min(1.0, part, 1 - (1 - 1 / hosts) ** epoch)
    if part >= 1:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):  # the rate that reproduces itself: below it more survives, above it less
        rate = (low + high) / 2
        missed = (1 - rate) / part
        survives = (-math.expm1(-missed) / missed) ** 2 if shuffled else math.exp(-missed)
        low, high = (rate, high) if survives > rate else (low, rate)
    return low
