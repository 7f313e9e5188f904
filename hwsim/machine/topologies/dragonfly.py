"""A dragonfly network: groups of fully connected routers, with links from every group to every other group.

    members -> router (`leaf_ports` each) -> one of `routers` in its group -> `global_ports` links of each to other groups

A minimal route therefore contains at most one link between groups. The `routers` x `global_ports` links of a group are divided
equally among the other groups, as far as possible. At the maximum number of groups, routers x global_ports + 1, each pair has one
link.

Source: Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008: p = leaf_ports,
a = routers, h = global_ports, balanced at a = 2 p = 2 h.
Range: minimal routing only, without Valiant or UGAL detours over a third group; local and global links are identical.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from hwsim.devices.network import Switch
from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class Dragonfly:
    """A dragonfly of groups of `routers` with `leaf_ports` members each, filled in natural order of their names."""

    leaf_ports: int = field("number of members per router", minimum=1)
    routers: int = field("number of routers per group (all-to-all within the group)", minimum=1)
    global_ports: int = field("number of links of a router to other groups", minimum=1)
    switch: Switch = field("properties of the routers", default_factory=Switch)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Return the links; raise ValueError if a group has fewer links than there are other groups.

        >>> edges = Dragonfly(leaf_ports=1, routers=2, global_ports=1).edges(["a", "b", "c", "d", "e", "f"])
        >>> [(edge.a, edge.b) for edge in edges[6:]][:4]
        [('@router0-0', '@router0-1'), ('@router1-0', '@router1-1'), ('@router2-0', '@router2-1'), ('@router0-0', '@router1-1')]
        """
        groups = self._groups(members)
        ports = self.routers * self.global_ports
        if groups > ports + 1:
            raise ValueError(
                f"{len(members)} members form {groups} groups, but {self.routers} routers with {self.global_ports} global links "
                f"reach only {ports} other groups"
            )
        edges = [Edge(self._router(index // self.leaf_ports), name) for index, name in enumerate(members)]
        for group in range(groups):
            inside = range(group * self.routers, (group + 1) * self.routers)
            edges += [Edge(self._router(a), self._router(b)) for a, b in combinations(inside, 2)]
        between = Counter(self._between(groups, ports))
        return edges + [Edge(self._router(a), self._router(b), count) for (a, b), count in between.items()]

    def _groups(self, members: Sequence[str]) -> int:
        return math.ceil(len(members) / (self.leaf_ports * self.routers))

    def _router(self, index: int) -> str:
        return f"@router{index // self.routers}-{index % self.routers}"

    def _between(self, groups: int, ports: int) -> Iterator[tuple[int, int]]:
        """Yield the routers at both ends of each global link: port k of group g is linked to group g + k mod (groups - 1) + 1."""
        for group, partner in combinations(range(groups), 2):
            for turn in range(ports // (groups - 1)):
                turn_here = turn * (groups - 1) + (partner - group) - 1
                turn_there = turn * (groups - 1) + (groups - (partner - group)) - 1
                yield (
                    group * self.routers + turn_here // self.global_ports,
                    partner * self.routers + turn_there // self.global_ports,
                )
