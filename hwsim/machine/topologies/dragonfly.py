"""A dragonfly: routers in groups, all routers of a group linked to each other, and every group to every other.

    members -> router (`leaf_ports` each) -> one of `routers` in its group -> `global_ports` links of each to other groups

So no minimal way has more than one link between groups. The `routers` x `global_ports` links of a group are divided equally
among the other groups, as far as possible; with the most groups, routers x global_ports + 1, that is one.

Source: Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008: p = leaf_ports,
a = routers, h = global_ports, balanced at a = 2 p = 2 h.
Range: minimal ways only, the detours of Valiant or UGAL over a third group are not taken; links of both kinds are alike.
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
    """Groups of `routers` with `leaf_ports` members each, filled in natural order."""

    leaf_ports: int = field("members at one leaf or router", minimum=1)
    routers: int = field("routers of a group, each linked to each", minimum=1)
    global_ports: int = field("links of a router to other groups", minimum=1)
    switch: Switch = field("its switches", default_factory=Switch)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError where there are more groups than one has links to.

        >>> edges = Dragonfly(leaf_ports=1, routers=2, global_ports=1).edges(["a", "b", "c", "d", "e", "f"])
        >>> [(edge.a, edge.b) for edge in edges[6:]][:4]
        [('@router0-0', '@router0-1'), ('@router1-0', '@router1-1'), ('@router2-0', '@router2-1'), ('@router0-0', '@router1-1')]
        """
        groups = self._groups(members)
        ports = self.routers * self.global_ports
        if groups > ports + 1:
            raise ValueError(
                f"{len(members)} members are {groups} groups, but {self.routers} routers with {self.global_ports} links to "
                f"other groups reach {ports} others"
            )
        edges = [Edge(self._router(at // self.leaf_ports), name) for at, name in enumerate(members)]
        for group in range(groups):
            inside = range(group * self.routers, (group + 1) * self.routers)
            edges += [Edge(self._router(a), self._router(b)) for a, b in combinations(inside, 2)]
        between = Counter(self._between(groups, ports))
        return edges + [Edge(self._router(a), self._router(b), count) for (a, b), count in between.items()]

    def _groups(self, members: Sequence[str]) -> int:
        return math.ceil(len(members) / (self.leaf_ports * self.routers))

    def _router(self, number: int) -> str:
        return f"@router{number // self.routers}-{number % self.routers}"

    def _between(self, groups: int, ports: int) -> Iterator[tuple[int, int]]:
        """Numbers of the routers at both ends: port k of a group leads k mod (groups - 1) + 1 groups onward."""
        for group, partner in combinations(range(groups), 2):
            for turn in range(ports // (groups - 1)):
                turn_here = turn * (groups - 1) + (partner - group) - 1
                turn_there = turn * (groups - 1) + (groups - (partner - group)) - 1
                yield (
                    group * self.routers + turn_here // self.global_ports,
                    partner * self.routers + turn_there // self.global_ports,
                )
