"""The plan of a collective: sender, receiver and chunks of every send, step by step.

A plan defines what moves, not how long it takes. Because it names chunks, it can be executed on integers (`execute.prove`), which
verifies an algorithm before it is timed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.machine.libraries.operations import MAX_SENDS, OPERATIONS, CannotCollect, Operation, RankGroup
from hwsim.records import dataclass

__all__ = ["OPERATIONS", "SUMS", "CannotCollect", "CollectivePlan", "Operation", "PlanSend", "RankGroup", "refuse_too_many_sends"]

# Operations that sum the ranks' data.
SUMS: Final[frozenset[Operation]] = frozenset({"all-reduce", "reduce-scatter", "reduce", "barrier"})


def refuse_too_many_sends(count: int) -> None:
    """Raise CannotCollect if a plan would have more sends than the limit, before they are created."""
    if count > MAX_SENDS:
        message = f"{count:,} sends exceed the limit of {MAX_SENDS:,}"
        raise CannotCollect(message, "use fewer pieces, or `steps: steady`, which simulates each phase as one op")


class PlanSend(NamedTuple):
    """A send of `chunks` consecutive chunks from index `chunk`; the target adds them to its own chunks, or overwrites its own.

    Sends of one step are simultaneous: each carries the data that its source had before the step.
    """

    step: int
    source: int
    target: int
    chunk: int
    chunks: int = 1
    reduce: bool = False


@dataclass(frozen=True, slots=True)
class CollectivePlan:
    """The sends of a collective, in the order of their steps.

    Args:
        ranks: number of ranks. Further participants (`helpers`: servers, switches) have no data at first.
        chunks: number of chunks of the buffer. An all-to-all has ranks x ranks: chunk s x ranks + t goes from s to t.
        shares: share of the bytes of each chunk; empty: equal shares.
    """

    operation: Operation
    ranks: int
    chunks: int
    sends: tuple[PlanSend, ...]
    helpers: int = 0
    shares: tuple[float, ...] = ()

    @property
    def steps(self) -> int:
        """Number of steps."""
        return 1 + max((send.step for send in self.sends), default=-1)

    def by_step(self) -> Iterator[tuple[PlanSend, ...]]:
        """Return the sends of each step."""
        steps: list[list[PlanSend]] = [[] for _ in range(self.steps)]
        for send in self.sends:
            steps[send.step].append(send)
        return (tuple(step) for step in steps)

    def part(self, rank: int) -> range:
        """Return the chunks of a rank in operations with a part per rank: scatter, gather and operations built on them."""
        return range(rank * self.chunks // self.ranks, (rank + 1) * self.chunks // self.ranks)

    def sizes(self, size: float, weights: Sequence[float] = ()) -> tuple[float, ...]:
        """Return the bytes of each chunk if the whole array has `size` bytes.

        The whole array is the size in nccl-tests: the array of one rank (before an all-to-all), or all parts together for
        all-gather and reduce-scatter.

        Args:
            weights: relative parts of the ranks; or of all pairs of an all-to-all, one row per sender.
        """
        return tuple(sizes_of(self.operation, self.ranks, self.chunks, size, weights, self.shares).tolist())


def sizes_of(
    operation: Operation, ranks: int, chunks: int, size: float, weights: Sequence[float] = (), shares: Sequence[float] = ()
) -> NDArray[np.float64]:
    """Return the bytes of each chunk of a plan without its sends; as `CollectivePlan.sizes`."""
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
    before_by_length: dict[int, float] = {}  # part length -> share of a part with equal chunks
    for part, weight in zip(parts, weights, strict=True):  # in an all-to-all, a part is what a rank sends
        length = part.stop - part.start
        before = math.fsum(fractions[part].tolist()) if shares or length not in before_by_length else before_by_length[length]
        before_by_length[length] = before
        fractions[part] = fractions[part] / before * (weight / together * fraction_sum)
    sized: NDArray[np.float64] = fractions * size
    return sized
