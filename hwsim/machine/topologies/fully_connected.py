"""Every member with every other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass

MOST_MEMBERS: Final = 2000


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """One link for each pair."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for fewer than two, or for more than anyone would wire.

        >>> len(FullyConnected().edges(["a", "b", "c", "d"]))
        6
        """
        if len(members) < 2:
            raise ValueError("a fully-connected group needs at least 2 members")
        if len(members) > MOST_MEMBERS:
            raise ValueError(f"more than {MOST_MEMBERS} members are not connected one by one: put a switch in between")
        return [Edge(a, b) for a, b in combinations(members, 2)]
