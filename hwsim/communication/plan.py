"""The shape of a collective: sender, receiver and chunks of every send, step by step.

A plan says what moves, never how long it takes. Because it names chunks it can be carried out on
integers (`execute.prove`), so that an algorithm is known to be right before it is timed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.machine.libraries.operations import MOST_SENDS, OPERATIONS, CannotCollect, Group, Operation
from hwsim.records import dataclass

__all__ = ["OPERATIONS", "SUMS", "CannotCollect", "Group", "Operation", "Plan", "Send", "refuse_more"]

# Operations after which a rank has the sum of what the ranks began with.
SUMS: Final[frozenset[Operation]] = frozenset({"all-reduce", "reduce-scatter", "reduce", "barrier"})


def refuse_more(count: int) -> None:
    """Raise CannotCollect if a plan has more sends than are written out, before they are."""
    if count > MOST_SENDS:
        message = f"{count:,} sends exceed the limit of {MOST_SENDS:,}"
        raise CannotCollect(message, "use fewer pieces, or `steps: steady`, which simulates each phase as one op")


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
        return tuple(sizes_of(self.operation, self.ranks, self.chunks, size, weights, self.shares).tolist())


def sizes_of(
    operation: Operation, ranks: int, chunks: int, size: float, weights: Sequence[float] = (), shares: Sequence[float] = ()
) -> NDArray[np.float64]:
    """Bytes of each chunk of a plan, as `Plan.sizes` says, without its sends."""
    if operation == "barrier":
        return np.zeros(chunks)
    fractions = np.full(chunks, 1 / (ranks if operation == "all-to-all" else chunks)) if not shares else np.array(shares)
    if not weights:
        return fractions * size
    least, together, fraction_sum = min(weights), math.fsum(weights), math.fsum(fractions.tolist())
    pairs = ranks**2 if operation == "all-to-all" else 0
    if pairs and len(weights) == pairs == chunks and least >= 0 and together > 0:
        return np.array(weights, np.float64) * (fraction_sum * size / together)
    if len(weights) != ranks or least < 0 or together <= 0:
        raise CannotCollect(f"{len(weights)} weights for {ranks} ranks", "give one weight per rank, not all of them zero")
    parts = [slice(rank * chunks // ranks, (rank + 1) * chunks // ranks) for rank in range(ranks)]
    before_by_length: dict[int, float] = {}  # by length what a part has, where all chunks are equal
    for part, weight in zip(parts, weights, strict=True):  # of an all-to-all: what each rank sends
        many = part.stop - part.start
        before = math.fsum(fractions[part].tolist()) if shares or many not in before_by_length else before_by_length[many]
        before_by_length[many] = before
        fractions[part] = fractions[part] / before * (weight / together * fraction_sum)
    sized: NDArray[np.float64] = fractions * size
    return sized
