"""Pairwise exchange: in step s, rank r sends to rank r + s + 1.

    all-to-all, reduce-scatter, all-gather      (n - 1) (a + S / (n B))

Every rank sends to one rank and receives from one rank at a time, so there is no incast.

Source: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, pairwise exchange for long messages.
Range: a network without full bisection bandwidth slows the steps of distant pairs; the links of a Machine include that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hwsim.communication.algorithms.algorithm import Algorithm
from hwsim.communication.pairs import SendPairs
from hwsim.communication.plan import CollectivePlan, Operation, PlanSend, RankGroup, sizes_of
from hwsim.communication.rounds import Round
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Pairwise(Algorithm):
    """A pairwise exchange of n - 1 steps with one partner each."""

    kind: ClassVar[str] = "pairwise"
    operations: ClassVar[tuple[Operation, ...]] = ("all-to-all", "reduce-scatter", "all-gather")

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan. In step s, each rank sends to the rank s + 1 further."""
        n = group.ranks
        sends = []
        for step in range(n - 1):
            for rank in range(n):
                partner = (rank + step + 1) % n
                chunk = {"all-to-all": rank * n + partner, "reduce-scatter": partner}.get(operation, rank)
                sends.append(PlanSend(step, rank, partner, chunk, 1, operation == "reduce-scatter"))
        return CollectivePlan(operation, n, n * n if operation == "all-to-all" else n, tuple(sends))

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        return _rounds(operation, group.ranks, name=operation)

    def weighted(self, operation: Operation, group: RankGroup, weights: Sequence[float]) -> tuple[Round, ...]:
        return _rounds(operation, group.ranks, weights, "reduce" if operation == "reduce-scatter" else "send")


def _rounds(operation: Operation, ranks: int, weights: Sequence[float] = (), name: str = "") -> tuple[Round, ...]:
    """Return the rounds of the plan; no two steps have the same pairs."""
    is_all_to_all = operation == "all-to-all"
    shares = sizes_of(operation, ranks, ranks * ranks if is_all_to_all else ranks, 1.0, weights)
    source = np.arange(ranks)
    rounds = []
    for step in range(ranks - 1):
        target = (source + step + 1) % ranks
        chunk = source * ranks + target if is_all_to_all else target if operation == "reduce-scatter" else source
        rounds.append(Round(name, SendPairs(source, target, shares[chunk]), 1, operation == "reduce-scatter"))
    return tuple(rounds)
