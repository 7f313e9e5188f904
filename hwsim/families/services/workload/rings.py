"""Services that ask themselves, at once or by others: whether a request that comes to one ever ends.

Let a request of service i ask service j a_ij times in the mean. In a ring (services that all reach each other) requests do not
end where the largest eigenvalue of its part of a is 1 or more. They are then a branching process that does not die out (Harris,
"The theory of branching processes", 1963). Timeouts do not end it: what was given up asks on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from hwsim.families.services.workload.ladder import asks_of
from hwsim.families.services.workload.program import Program

_ALMOST: Final = 1 - 1e-9


def endless(program: Program) -> Iterator[tuple[list[int], float]]:
    """Rings of services whose requests never end, and by how much each generation is larger than the one before."""
    asks = np.array(asks_of(program))
    many = len(program.services)
    reached = asks > 0
    for through in range(many):
        reached |= np.outer(reached[:, through], reached[through])
    left = [number for number in range(many) if reached[number, number]]
    while left:
        ring = [number for number in left if reached[left[0], number] and reached[number, left[0]]]
        left = [number for number in left if number not in ring]
        growth = float(np.abs(np.linalg.eigvals(asks[np.ix_(ring, ring)])).max())
        if growth >= _ALMOST:
            yield ring, growth
