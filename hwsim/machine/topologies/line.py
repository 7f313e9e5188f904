"""Each with the next, in natural order of names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A chain without ends joined."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for fewer than two.

        >>> [(edge.a, edge.b) for edge in Line().edges(["a", "b", "c"])]
        [('a', 'b'), ('b', 'c')]
        """
        if len(members) < 2:
            raise ValueError("a line needs at least 2 members")
        return [Edge(a, b) for a, b in pairwise(members)]
