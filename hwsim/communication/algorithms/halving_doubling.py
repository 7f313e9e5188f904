"""Recursive halving, then recursive doubling: few steps and few bytes.

    all-reduce                    2 log2 n a + 2 (n - 1)/n S/B
    reduce-scatter, all-gather      log2 n a +   (n - 1)/n S/B

If n is not a power of two, r = n - 2^k pairs act as one rank each: an all-reduce moves the whole buffer once more before and once
after.

Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.
Range: partners are up to n/2 apart, so many pairs cross the links of a ring or a torus at once; the links of a Machine include
that.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.communication.algorithms.algorithm import Algorithm
from hwsim.communication.algorithms.folding import FoldedRanks, exchanges
from hwsim.communication.plan import CollectivePlan, Operation, RankGroup
from hwsim.communication.rounds import Round, rounds_of
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class HalvingDoubling(Algorithm):
    """Recursive halving and doubling over any number of ranks."""

    kind: ClassVar[str] = "halving-doubling"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather")

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan. Chunks are the ranks' parts; for an all-reduce, one per each of the 2^k exchanging ranks."""
        folded = FoldedRanks.of(group.ranks)
        even = operation == "all-reduce"
        sends = list(exchanges(operation, folded, FoldedRanks(folded.size, folded.size, 0) if even else folded))
        return CollectivePlan(operation, group.ranks, folded.size if even else group.ranks, tuple(sends))

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        folded = FoldedRanks.of(group.ranks)
        return rounds_of(self.plan(operation, group)) if folded.extra else _rounds(operation, folded)

    repeated_steps = rounds


def _rounds(operation: Operation, folded: FoldedRanks) -> tuple[Round, ...]:
    """Return the rounds of 2^k ranks without creating sends: all sends of a step have the same size."""
    n = folded.size
    levels = [(level, True) for level in reversed(range(folded.levels))] if operation != "all-gather" else []
    levels += [(level, False) for level in range(folded.levels)] if operation != "reduce-scatter" else []
    return tuple(
        Round("reduce" if reduce else "send", tuple((rank, rank ^ 1 << level, (1 << level) / n) for rank in range(n)), 1, reduce)
        for level, reduce in levels
    )
