"""Every member with one in the middle."""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.machine.topologies.edge import Edges
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class Star:
    """One link from each member to the hub, usually a switch."""

    hub: str = field("the part in the middle, usually a switch")

    def edges(self, members: Sequence[str]) -> Edges:
        """Raise ValueError without members.

        >>> [(edge.a, edge.b) for edge in Star("sw").edges(["a", "b"])]
        [('sw', 'a'), ('sw', 'b')]
        """
        if not members:
            raise ValueError("a star needs at least 1 member besides its hub")
        return Edges([self.hub] * len(members), members)
