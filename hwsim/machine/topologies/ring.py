"""Each with the next, and the last with the first, in natural order of names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Ring:
    """A closed chain; of two members a single link."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for fewer than two.

        >>> [(edge.a, edge.b) for edge in Ring().edges(["a", "b", "c"])]
        [('a', 'b'), ('b', 'c'), ('c', 'a')]
        """
        if len(members) < 2:
            raise ValueError("a ring needs at least 2 members")
        closed = [*members, members[0]] if len(members) > 2 else members
        return [Edge(a, b) for a, b in pairwise(closed)]
