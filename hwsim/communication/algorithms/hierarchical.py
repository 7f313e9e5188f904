"""Hierarchical collectives: within the node, across nodes, within the node again; each rank sends 1/g of the bytes across nodes.

    all-reduce      2 (g - 1) (a + S / (g B)) + 2 (k - 1) (a + S / (g k B))        k nodes of g ranks

With `pieces`, the stages process different pieces at the same time. Both stages within nodes use the same links, and so do both
stages across. The slower pair of stages determines the rate; the faster one adds the time of a piece at the start and the end:

    (in nodes + across) / p + (1 - 1/p) max(in nodes, across)

Source: Jia et al., "Highly scalable deep learning training system with mixed-precision", arXiv:1807.11205, 2018, and
NCCL's and Horovod's hierarchical all-reduce; nodes of unequal size: defined in this module.
Range: nodes of unequal size only for all-reduce; the ranks beyond the size of the smallest node send their shards directly.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.communication.algorithms.algorithm import Algorithm, Presets
from hwsim.communication.algorithms.two_levels import Levels
from hwsim.communication.plan import CannotCollect, CollectivePlan, Operation, PlanSend, RankGroup, refuse_too_many_sends
from hwsim.communication.rounds import Round, rounds_of
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class Hierarchical(Algorithm):
    """Rings within the nodes, and between ranks in the same position of all nodes."""

    kind: ClassVar[str] = "hierarchical"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather")
    presets: ClassVar[Presets | None] = {"hierarchical": {}, "hierarchical-pipelined": {"pieces": 8}}

    pieces: int = field("pieces that are pipelined through the stages; 1: one stage after another", default=1, minimum=1)

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan. Chunk (i x g + j) x pieces + p is piece p of rank j of node i."""
        if len(set(group.sizes)) > 1:
            return _uneven_plan(operation, group)
        levels = Levels.of(group)
        stages = [(name, steps) for name, steps in levels.stages(operation) if steps]
        slot = max((steps for _, steps in stages), default=0)  # steps reserved for a piece in each stage
        refuse_too_many_sends(self.pieces * group.ranks * sum(steps for _, steps in stages))  # integers
        sends: list[PlanSend] = []
        for piece in range(self.pieces):
            begin = piece * slot
            for name, steps in stages:
                sends += [
                    send._replace(step=begin + send.step, chunk=send.chunk * self.pieces + piece) for send in levels.sends(name)
                ]
                begin += slot if self.pieces > 1 else steps
        return CollectivePlan(operation, group.ranks, group.ranks * self.pieces, tuple(sorted(sends)))

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        """Return one round per stage; with `pieces` they overlap (`in_flight`)."""
        if len(set(group.sizes)) > 1:
            return rounds_of(_uneven_plan(operation, group))
        return tuple(Levels.of(group).rounds(operation, pieces=self.pieces))

    def repeated_steps(self, operation: Operation, group: RankGroup) -> tuple[Round, ...] | None:
        return self.rounds(operation, group) if self.pieces == 1 and len(set(group.sizes)) <= 1 else None

    def in_flight(self, group: RankGroup) -> int:
        return self.pieces if len(set(group.sizes)) == 1 else 1


def _uneven_plan(operation: Operation, group: RankGroup) -> CollectivePlan:
    """Return a plan for nodes of unequal size.

    Rank j of every node has shard j, for j below the size of the smallest node; the node's ranks send to it and receive from it.
    """
    if operation != "all-reduce":
        raise CannotCollect(f"hierarchical {operation} does not support nodes of unequal size", "use `ring`")
    k, g = len(group.sizes), min(group.sizes)
    nodes = [range(start, start + size) for start, size in zip(group.starts, group.sizes, strict=True)]
    sends: list[PlanSend] = []
    for node in nodes:
        for rank in node:
            for j in range(g):
                if node[j] != rank:
                    sends += [PlanSend(0, rank, node[j], j * k, k, True), PlanSend(2 * k - 1, node[j], rank, j * k, k)]
    for step in range(2 * (k - 1)):
        reduce = step < k - 1
        for i, node in enumerate(nodes):
            part = (i - step - 1) % k if reduce else (i - (step - k + 1)) % k
            sends += [PlanSend(1 + step, node[j], nodes[(i + 1) % k][j], j * k + part, 1, reduce) for j in range(g)]
    return CollectivePlan(operation, group.ranks, g * k, tuple(sorted(sends)))
