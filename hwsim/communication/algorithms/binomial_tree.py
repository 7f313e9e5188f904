"""Binomial tree: every step doubles the ranks that have the data, or halves those that have yet to send it.

    broadcast, reduce          ceil(log2 n) (a + S/B)
    all-reduce               2 ceil(log2 n) (a + S/B)           reduce, then broadcast
    gather, scatter            ceil(log2 n) a + (n - 1)/n S/B
    barrier                  2 ceil(log2 n) a

Source: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005.
Range: short messages; the whole buffer passes every level without pipelining.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.communication.algorithms.algorithm import Algorithm
from hwsim.communication.plan import CollectivePlan, Operation, PlanSend, RankGroup
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class BinomialTree(Algorithm):
    """A binomial tree over any number of ranks; the root is rank 0."""

    kind: ClassVar[str] = "binomial-tree"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "broadcast", "reduce", "gather", "scatter", "barrier")

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan: up, down, or up and then down."""
        n = group.ranks
        parts = operation in ("gather", "scatter")
        levels = [1 << level for level in range((n - 1).bit_length())]
        sends: list[PlanSend] = []
        up = operation in ("all-reduce", "reduce", "gather", "barrier")
        if up:
            for step, distance in enumerate(levels):
                for parent in range(0, n - distance, 2 * distance):
                    child = parent + distance
                    span = (child, min(distance, n - child)) if parts else (0, 1)
                    sends.append(PlanSend(step, child, parent, *span, not parts))
        if operation in ("all-reduce", "broadcast", "scatter", "barrier"):
            begin = len(levels) if up else 0
            for step, distance in enumerate(reversed(levels)):
                for parent in range(0, n - distance, 2 * distance):
                    child = parent + distance
                    span = (child, min(distance, n - child)) if parts else (0, 1)
                    sends.append(PlanSend(begin + step, parent, child, *span))
        return CollectivePlan(operation, n, n if parts else 1, tuple(sends))
