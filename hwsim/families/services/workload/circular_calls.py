"""Circular calls of services: whether a request causes endless further requests.

Let a request of service i call service j a_ij times on average. Within a ring (services that all reach each other), requests do
not end if the largest eigenvalue of the matrix a of the ring is 1 or more: they are a branching process that does not die out.
Timeouts do not end it, because a request continues after its caller has timed out.

Source: Harris, "The theory of branching processes", 1963.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from hwsim.families.services.workload.program import ServicesProgram
from hwsim.families.services.workload.throughput_limits import asks_of

_ALMOST: Final = 1 - 1e-9  # eigenvalue


def endless(program: ServicesProgram) -> Iterator[tuple[list[int], float]]:
    """Yield (services of a ring whose requests never end, growth factor from one generation of requests to the next)."""
    asks = np.array(asks_of(program))
    count = len(program.services)
    reached = asks > 0
    for through in range(count):
        reached |= np.outer(reached[:, through], reached[through])
    left = [number for number in range(count) if reached[number, number]]
    while left:
        ring = [number for number in left if reached[left[0], number] and reached[number, left[0]]]
        left = [number for number in left if number not in ring]
        growth = float(np.abs(np.linalg.eigvals(asks[np.ix_(ring, ring)])).max())
        if growth >= _ALMOST:
            yield ring, growth
