"""Direct exchange: every rank exchanges with every other rank at once, in the fewest steps and over every link of a full mesh.

    all-reduce                                    2 (a + (n - 1)/n S/P)      P: bandwidth of a port, all links together
    reduce-scatter, all-gather, all-to-all,
    gather, scatter                                 a + (n - 1)/n S/P
    broadcast, reduce                               a + (n - 1) S/P
    send                                            a + S/P

Source: the linear algorithms in Thakur, Rabenseifner, Gropp, "Optimization of collective communication
operations in MPICH", IJHPCA 19(1), 2005; AMD's RCCL and one-shot all-reduce kernels use this algorithm.
Range: incast (many senders to one receiver) reduces the bandwidth of switches and hosts; it is not modelled here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from hwsim.communication.algorithms.algorithm import Algorithm
from hwsim.communication.pairs import SendPairs
from hwsim.communication.plan import CollectivePlan, Operation, PlanSend, RankGroup, sizes_of
from hwsim.communication.rounds import Round, rounds_of
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class DirectExchange(Algorithm):
    """A direct exchange of each rank with all other ranks in one step."""

    kind: ClassVar[str] = "direct"
    operations: ClassVar[tuple[Operation, ...]] = (
        "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce", "gather", "scatter", "barrier", "send",
    )  # fmt: skip

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan: one step, or two for an all-reduce."""
        n = group.ranks
        chunks = n * n if operation == "all-to-all" else 1 if operation == "barrier" else n
        return CollectivePlan(operation, n, chunks, tuple(_sends(operation, n)))

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        if operation == "all-to-all":
            return _all_to_all(group.ranks, name=operation)
        return rounds_of(self.plan(operation, group), name=operation)

    def weighted(self, operation: Operation, group: RankGroup, weights: Sequence[float]) -> tuple[Round, ...]:
        if operation == "all-to-all":
            return _all_to_all(group.ranks, weights, "send")
        return rounds_of(self.plan(operation, group), weights)


def _sends(operation: Operation, n: int) -> Iterator[PlanSend]:
    others = [(rank, other) for rank in range(n) for other in range(n) if rank != other]
    match operation:
        case "all-reduce":
            yield from (PlanSend(0, rank, other, other, 1, True) for rank, other in others)
            yield from (PlanSend(1, rank, other, rank) for rank, other in others)
        case "reduce-scatter":
            yield from (PlanSend(0, rank, other, other, 1, True) for rank, other in others)
        case "all-gather":
            yield from (PlanSend(0, rank, other, rank) for rank, other in others)
        case "all-to-all":
            yield from (PlanSend(0, rank, other, rank * n + other) for rank, other in others)
        case "broadcast":
            yield from (PlanSend(0, 0, other, 0, n) for other in range(1, n))
        case "reduce":
            yield from (PlanSend(0, other, 0, 0, n, True) for other in range(1, n))
        case "gather":
            yield from (PlanSend(0, other, 0, other) for other in range(1, n))
        case "scatter":
            yield from (PlanSend(0, 0, other, other) for other in range(1, n))
        case "barrier":
            yield from (PlanSend(0, rank, other, 0, 1, True) for rank, other in others)
        case "send":
            yield from (PlanSend(0, 0, n - 1, 0, n) for _ in range(min(1, n - 1)))


def _all_to_all(ranks: int, weights: Sequence[float] = (), name: str = "") -> tuple[Round, ...]:
    """Return the round of an all-to-all."""
    shares = sizes_of("all-to-all", ranks, ranks * ranks, 1.0, weights)
    chunk = np.arange(ranks * ranks)
    chunk = chunk[chunk // ranks != chunk % ranks] if ranks else chunk
    return (Round(name, SendPairs(chunk // ranks, chunk % ranks, shares[chunk])),) if len(chunk) else ()
