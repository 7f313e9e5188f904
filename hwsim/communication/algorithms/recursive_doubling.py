"""Recursive doubling: partners at distances 1, 2, 4, ...; after log2 n exchanges, every rank has the data of all.

    all-reduce       log2 n (a + S/B)
    all-gather       log2 n a + (n - 1)/n S/B
    barrier          ceil(log2 n) a           dissemination: rank r to r + 2^k, for any n

If n is not a power of two, r = n - 2^k pairs act as one rank each: an all-reduce takes 2 (a + S/B) more, an all-gather one more
step before and after.

Source: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; the barrier: Hensgen, Finkel, Manber, "Two algorithms for
barrier synchronization", International Journal of Parallel Programming 17(1), 1988.
Range: short messages, because every exchange of an all-reduce carries the whole buffer.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.communication.algorithms.algorithm import Algorithm
from hwsim.communication.algorithms.folding import FoldedRanks, exchanges
from hwsim.communication.plan import CollectivePlan, Operation, PlanSend, RankGroup
from hwsim.communication.rounds import Round
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class RecursiveDoubling(Algorithm):
    """Recursive doubling over any number of ranks."""

    kind: ClassVar[str] = "recursive-doubling"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "all-gather", "barrier")

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan: fold, exchange with the partner at each distance, unfold."""
        n = group.ranks
        if operation == "barrier":
            steps = range((n - 1).bit_length())
            sends = [PlanSend(step, rank, (rank + (1 << step)) % n, 0, 1, True) for step in steps for rank in range(n)]
            return CollectivePlan(operation, n, 1, tuple(sends))
        gather = operation == "all-gather"
        folded = FoldedRanks.of(n)
        return CollectivePlan(operation, n, n if gather else 1, tuple(exchanges(operation, folded, folded, adds=not gather)))

    def repeated_steps(self, operation: Operation, group: RankGroup) -> tuple[Round, ...] | None:
        return None if operation == "barrier" else self.rounds(operation, group)
