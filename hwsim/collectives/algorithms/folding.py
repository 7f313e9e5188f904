"""Any number of ranks as a power of two: the first few ranks in pairs that act as one.

Source: Rabenseifner, "Optimization of collective reduction operations", ICCS 2004: with r = n - 2^k ranks
too many, each of the first r odd ranks takes over what its even neighbour has, and gives back the result.
"""

from __future__ import annotations

from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Folded:
    """n ranks as `size` = 2^k pairs or single ranks, in order.

    >>> Folded.of(6)
    Folded(ranks=6, size=4, extra=2)
    """

    ranks: int
    size: int
    extra: int

    @classmethod
    def of(cls, ranks: int) -> Folded:
        size = 1 << (ranks.bit_length() - 1)
        return cls(ranks, size, ranks - size)

    @property
    def levels(self) -> int:
        """log2 of the size."""
        return self.size.bit_length() - 1

    def leader(self, place: int) -> int:
        """The rank that acts for a pair: its odd one; or the rank that is alone."""
        return 2 * place + 1 if place < self.extra else place + self.extra

    def first(self, place: int) -> int:
        """First rank of a place; `first(size)` is the number of ranks."""
        return 2 * place if place < self.extra else place + self.extra

    def span(self, place: int, places: int) -> tuple[int, int]:
        """(first rank, how many) of that many places."""
        begin = self.first(place)
        return begin, self.first(place + places) - begin

    def widest(self, places: int) -> int:
        """The most ranks that an aligned block of that many places has."""
        return self.span(0, places)[1]
