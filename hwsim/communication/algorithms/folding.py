"""Exchanges between partners at distances 1, 2, 4, ... for any number of ranks: the first few ranks act in pairs.

Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004: with r = n - 2^k excess ranks, each of the
first r odd ranks takes the data of its even neighbour, and returns the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.communication.plan import Operation, PlanSend
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class FoldedRanks:
    """n ranks as `size` = 2^k pairs or single ranks, in order.

    >>> FoldedRanks.of(6)
    FoldedRanks(ranks=6, size=4, extra=2)
    """

    ranks: int
    size: int
    extra: int

    @classmethod
    def of(cls, ranks: int) -> FoldedRanks:
        size = 1 << (ranks.bit_length() - 1)
        return cls(ranks, size, ranks - size)

    @property
    def levels(self) -> int:
        """log2 of the size."""
        return self.size.bit_length() - 1

    def leader(self, place: int) -> int:
        """Return the rank that acts for a position: the odd rank of a pair, or the single rank."""
        return 2 * place + 1 if place < self.extra else place + self.extra

    def first(self, place: int) -> int:
        """Return the first rank of a position; `first(size)` is the number of ranks."""
        return 2 * place if place < self.extra else place + self.extra

    def span(self, place: int, places: int) -> tuple[int, int]:
        """Return (first rank, number of ranks) of `places` positions."""
        begin = self.first(place)
        return begin, self.first(place + places) - begin


def exchanges(operation: Operation, folded: FoldedRanks, parts: FoldedRanks, *, adds: bool = False) -> Iterator[PlanSend]:
    """Yield the sends between partners at distances 2^k: fold to 2^k ranks, halve (reduce), double (gather), unfold.

    Args:
        parts: division of the chunks; the chunks of a block of positions are its `span`.
        adds: every doubling exchange carries the whole buffer and is added, so no halving is needed.
    """
    step, chunks = 0, 1 if adds else parts.ranks
    gather = operation == "all-gather"
    if folded.extra:
        for place in range(folded.extra):
            span = (2 * place, 1) if gather else (0, chunks)
            yield PlanSend(0, 2 * place, 2 * place + 1, *span, not gather)
        step = 1
    halving = () if gather or adds else tuple((1 << level, True) for level in reversed(range(folded.levels)))
    doubling = () if operation == "reduce-scatter" else tuple((1 << level, False) for level in range(folded.levels))
    for distance, halves in (*halving, *doubling):
        for place in range(folded.size):
            partner = place ^ distance
            block = (partner if halves else place) // distance * distance
            span = (0, 1) if adds else parts.span(block, distance)
            yield PlanSend(step, folded.leader(place), folded.leader(partner), *span, halves or adds)
        step += 1
    for place in range(folded.extra):
        rank = 2 * place
        match operation:
            case "reduce-scatter":
                yield PlanSend(step, rank + 1, rank, rank, 1)
            case "all-reduce":
                yield PlanSend(step, rank + 1, rank, 0, chunks)
            case _:  # the parts before and after the rank's own
                if rank:
                    yield PlanSend(step, rank + 1, rank, 0, rank)
                yield PlanSend(step, rank + 1, rank, rank + 1, folded.ranks - rank - 1)
