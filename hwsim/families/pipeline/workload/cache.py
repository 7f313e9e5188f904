"""Hit rates of the page cache of Linux in each epoch.

Every sample is read once per epoch. With c = size of the cache / size of the dataset below 1, the hit rate of later epochs is

    shuffled   the h of h = ((1 - e^-a)/a)^2       in order   the h of h = e^-a,       a = (1 - h)/c

A miss replaces a random cached sample, so a sample survives a miss with probability 1 - 1/size.

**Source**: Mohan et al., "Analyzing and mitigating data stalls in DNN training", PVLDB 14(5), 2021, section 7.1. Measured with
c = 0.65: 53 % of misses shuffled, 66 % in order.

**Error**: the model gives 54 and 61 %; LRU would give 72 and 100 %.

**Range**: samples of about the same size, from the second epoch on; several hosts that redistribute samples: see `hit_rate`.
"""

from __future__ import annotations

import math


def hit_rate(part: float, epoch: int, *, shuffled: bool, hosts: int = 1) -> float:
    """Return the hit rate of the reads of an epoch (0 is the first).

    Args:
        part: size of the cache / size of the data that this host reads over the epochs.
        epoch: index of the epoch.
        shuffled: whether samples are read in random order.
        hosts: hosts that redistribute shuffled data in each epoch. A sample returns to the same host with a probability of
            1 / `hosts` per epoch; the hit rate is then at most the share of the data that the host has read before.

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
    for _ in range(60):  # fixed point: below it, more samples survive; above it, fewer
        rate = (low + high) / 2
        missed = (1 - rate) / part
        survives = (-math.expm1(-missed) / missed) ** 2 if shuffled else math.exp(-missed)
        low, high = (rate, high) if survives > rate else (low, rate)
    return low
