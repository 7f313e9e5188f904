"""Two-level collectives, for hierarchies and tori: within each node, across nodes, within each node again.

Rank j of every node owns shard j: it reduces the shard within its node, reduces it across nodes with the ranks in the same
position, and distributes it within its node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hwsim.communication.pairs import SendPairs
from hwsim.communication.plan import CannotCollect, Operation, PlanSend, RankGroup
from hwsim.communication.rounds import Round
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Levels:
    """k nodes of g ranks each.

    `ranks[i][j]` is rank j of node i; chunk i x g + j is node i's part of shard j.
    """

    ranks: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, group: RankGroup) -> Levels:
        """Return the nodes of a group, which must have equal sizes."""
        sizes = group.sizes
        if len(set(sizes)) > 1:
            raise CannotCollect(f"expected the same number of ranks in every node, got {min(sizes)} to {max(sizes)}")
        return cls(tuple(tuple(range(start, start + size)) for start, size in zip(group.starts, sizes, strict=True)))

    @property
    def nodes(self) -> int:
        return len(self.ranks)

    @property
    def size(self) -> int:
        """Ranks per node."""
        return len(self.ranks[0])

    def stages(self, operation: Operation) -> tuple[tuple[str, int], ...]:
        """Return (name, steps) of the consecutive stages."""
        inside, across = self.size - 1, self.nodes - 1
        stages: tuple[tuple[str, int], ...] = ()
        if operation != "all-gather":
            stages = (("reduce-scatter within", inside), ("reduce-scatter across", across))
        if operation != "reduce-scatter":
            stages = (*stages, ("all-gather across", across), ("all-gather within", inside))
        return stages

    def sends(self, stage: str) -> Iterator[PlanSend]:
        """Yield the sends of one stage, with steps counted from 0."""
        g, k = self.size, self.nodes
        reduce = stage.startswith("reduce")
        for step in range((g if stage.endswith("within") else k) - 1):
            for i in range(k):
                for j in range(g):
                    if stage.endswith("within"):
                        shard = (j - step - (1 if reduce else 0)) % g
                        target = self.ranks[i][(j + 1) % g]
                        chunks: Sequence[int] = range(shard, g * k, g)
                    else:
                        part = (i - step - (1 if reduce else 0)) % k
                        target = self.ranks[(i + 1) % k][j]
                        chunks = (part * g + j,)
                    for chunk in chunks:
                        yield PlanSend(step, self.ranks[i][j], target, chunk, 1, reduce)

    def rounds(self, operation: Operation, share: float = 1.0, pieces: int = 1) -> list[Round]:
        """Return the stages that have steps as rounds; both stages within nodes share their pairs, as do both across nodes."""
        pairs: dict[bool, SendPairs] = {}
        rounds = []
        for stage, steps in self.stages(operation):
            within = stage.endswith("within")
            if not steps:
                continue
            if within not in pairs:
                pairs[within] = self._pairs(share, pieces, within=within)
            rounds.append(Round(stage, pairs[within], steps * pieces, reduce=stage.startswith("reduce")))
        return rounds

    def _pairs(self, share: float, pieces: int, *, within: bool) -> SendPairs:
        """Return sender, receiver and share of the bytes in a step."""
        g, k = self.size, self.nodes
        part = share / (g if within else g * k) / pieces
        ranks = np.array(self.ranks, np.int64)
        sources, targets = ranks.ravel(), np.roll(ranks, -1, axis=1 if within else 0).ravel()
        order = np.lexsort((targets, sources))
        return SendPairs(sources[order], targets[order], np.full(len(order), part))
