"""The shape of a collective: sender, receiver and chunks of every send, step by step.

A plan says what moves, never how long it takes. Because it names chunks it can be carried out on
integers (`execute.prove`), so that an algorithm is known to be right before it is timed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hwsim.machine.libraries.operations import OPERATIONS, CannotCollect, Group, Operation
from hwsim.records import dataclass

__all__ = ["OPERATIONS", "SUMS", "CannotCollect", "Group", "Operation", "Plan", "Send"]

# Operations after which a rank has the sum of what the ranks began with.
SUMS: Final[frozenset[Operation]] = frozenset({"all-reduce", "reduce-scatter", "reduce", "barrier"})


class Send(NamedTuple):
    """In `step`, `source` sends `chunks` chunks from `chunk` on to `target`, which adds them to its own or keeps them.

    Sends of one step happen at once: each carries what its source had before the step.
    """

    step: int
    source: int
    target: int
    chunk: int
    chunks: int = 1
    reduce: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Sends in the order of their steps.

    Args:
        ranks: ranks that take part. Participants beyond them, `helpers`, hold nothing at first: servers, switches.
        chunks: pieces of the buffer. An all-to-all has ranks x ranks: chunk s x ranks + t goes from s to t.
        shares: part of the bytes that each chunk has; equal ones if empty.
    """

    operation: Operation
    ranks: int
    chunks: int
    sends: tuple[Send, ...]
    helpers: int = 0
    shares: tuple[float, ...] = ()

    @property
    def steps(self) -> int:
        """Number of steps."""
        return 1 + max((send.step for send in self.sends), default=-1)

    def by_step(self) -> Iterator[tuple[Send, ...]]:
        """The sends of each step."""
        steps: list[list[Send]] = [[] for _ in range(self.steps)]
        for send in self.sends:
            steps[send.step].append(send)
        return (tuple(step) for step in steps)

    def part(self, rank: int) -> range:
        """Chunks that are this rank's where every rank has a part: of scatter, gather and what is made of them."""
        return range(rank * self.chunks // self.ranks, (rank + 1) * self.chunks // self.ranks)

    def sizes(self, size: float, weights: Sequence[float] = ()) -> tuple[float, ...]:
        """Bytes of each chunk when the whole has `size`; `weights` give the ranks' parts in proportion, or the parts
        of all pairs of an all-to-all, a row for each sender.

        The whole is what nccl-tests call size: the array of one rank, before it for an all-to-all and
        all parts together for all-gather and reduce-scatter.
        """
        if self.operation == "barrier":
            return (0.0,) * self.chunks
        shares = self.shares or (1 / (self.ranks if self.operation == "all-to-all" else self.chunks),) * self.chunks
        if not weights:
            return tuple(share * size for share in shares)
        pairs = self.ranks**2 if self.operation == "all-to-all" else 0
        if pairs and len(weights) == pairs == self.chunks and min(weights) >= 0 and math.fsum(weights) > 0:
            unit = math.fsum(shares) * size / math.fsum(weights)
            return tuple(weight * unit for weight in weights)
        if len(weights) != self.ranks or min(weights) < 0 or math.fsum(weights) <= 0:
            raise CannotCollect(f"{len(weights)} weights for {self.ranks} ranks", "one for each, not all zero")
        weighted = list(shares)
        for rank, weight in enumerate(weights):  # of an all-to-all: what each rank sends
            part = self.part(rank)
            before = math.fsum(shares[chunk] for chunk in part)
            wanted = weight / math.fsum(weights) * math.fsum(shares)
            for chunk in part:
                weighted[chunk] = shares[chunk] / before * wanted
        return tuple(share * size for share in weighted)
