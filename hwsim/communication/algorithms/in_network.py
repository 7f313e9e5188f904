"""In-network reduction: the switch sums the ranks' data, and every sum crosses each link once.

    nvls    all-reduce                    4 a + max(S + S/n) / P       each rank loads its part and multicasts it.
            reduce-scatter, all-gather    2 a + S / P
    sharp   all-reduce, barrier           2 a + S / P                  up a tree of switches and down again.

A ring needs 2 (n - 1)/n S/P: in-network reduction is up to 2x faster. P: bandwidth of a port per direction (B/s).

Source: NVLS: NVIDIA, "NVLink SHARP" in NCCL 2.17 (multimem.ld_reduce and multimem.st, PTX ISA 8.1); SHARP: Graham et al.,
"Scalable hierarchical aggregation protocol (SHArP)", COM-HPC 2016.
Range: one switch, or a tree that acts as one. Switches of several nodes form a hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from hwsim.communication.algorithms.algorithm import Algorithm, Presets
from hwsim.communication.plan import CollectivePlan, Operation, PlanSend, RankGroup
from hwsim.communication.rounds import Round, rounds_of
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class InNetwork(Algorithm):
    """In-network reduction with the switch as an additional participant."""

    kind: ClassVar[str] = "in-network"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "barrier")
    presets: ClassVar[Presets | None] = {"nvls": {"by": "nvls"}, "sharp": {"by": "sharp"}}

    by: Literal["nvls", "sharp"] = field("nvls: GPU loads and stores through the switch; sharp: switches reduce", default="nvls")

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan. Participant n is the switch."""
        n = group.ranks
        chunks = 1 if operation in ("barrier", "broadcast") else n
        return CollectivePlan(operation, n, chunks, tuple(self._sends(operation, n)), helpers=1)

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        """Return one round: bytes to and from the switch use different directions of the links and flow at the same time."""
        if group.ranks == 1:
            return ()
        steps = rounds_of(self.plan(operation, group))
        loads: dict[tuple[int, int], float] = {}
        for source, target, share in (pair for step in steps for pair in step.pairs):
            loads[source, target] = loads.get((source, target), 0.0) + share
        pairs = tuple((source, target, share) for (source, target), share in sorted(loads.items()))
        return (Round(f"{operation} in the switch", pairs, 1, hops=len(steps) - 1),)

    def _sends(self, operation: Operation, n: int) -> Iterator[PlanSend]:
        switch, ranks = n, range(n if n > 1 else 0)
        match operation:
            case "all-reduce" | "reduce-scatter" | "barrier":
                span = 1 if operation == "barrier" else n
                yield from (PlanSend(0, rank, switch, 0, span, True) for rank in ranks)
                if operation == "barrier" or (operation == "all-reduce" and self.by == "sharp"):
                    yield from (PlanSend(1, switch, rank, 0, span) for rank in ranks)
                    return
                yield from (PlanSend(1, switch, rank, rank) for rank in ranks)
                if operation == "all-reduce":
                    yield from (PlanSend(2, rank, switch, rank) for rank in ranks)
                    yield from (PlanSend(3, switch, rank, 0, n) for rank in ranks)
            case "all-gather":
                yield from (PlanSend(0, rank, switch, rank) for rank in ranks)
                yield from (PlanSend(1, switch, rank, 0, n) for rank in ranks)
            case _:
                yield from (PlanSend(0, 0, switch, 0) for _ in ranks[:1])
                yield from (PlanSend(1, switch, rank, 0) for rank in ranks[1:])
