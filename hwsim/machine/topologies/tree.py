"""A tree of switches, as in PCI Express: members are linked to the lowest switches, the highest switches to a root.

    root -> fan_out[0] switches -> fan_out[1] switches below each -> ... -> fan_out[-1] members at each lowest switch

Source: PCI Express Base Specification, 1.3 (fabric topology); the trees of servers as `nvidia-smi topo -m` prints them.
Range: all links are identical; write links at the top that are wider as `between`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.devices.network import Switch
from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class TreeTopology:
    """A tree of switches, filled in natural order of the members' names.

    `root: cpu, fan_out: [2, 4]` means two switches below the CPU with four members each.
    """

    root: tuple[str, ...] = field("device at the top, usually a CPU; several devices have a tree each", one_or_many=True)
    fan_out: tuple[int, ...] = field(
        "number of children of the root, then of each switch, level by level", one_or_many=True, minimum=1, example="[2, 4]"
    )
    switch: Switch = field("properties of the switches", default_factory=Switch)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Return the links; raise ValueError without members, or if the tree has too few ports for them.

        >>> [(edge.a, edge.b) for edge in TreeTopology(("cpu",), (2, 2)).edges("abcd")]
        [('cpu', '@switch0'), ('cpu', '@switch1'), ('@switch0', 'a'), ('@switch0', 'b'), ('@switch1', 'c'), ('@switch1', 'd')]
        """
        max_members = len(self.root) * math.prod(self.fan_out)
        if not members or len(members) > max_members:
            shape = " x ".join(map(str, self.fan_out))
            trees = f"{len(self.root)} trees" if len(self.root) > 1 else "a tree"
            raise ValueError(f"{trees} of {shape} supports 1 to {max_members} members, got {len(members)}")
        edges: list[Edge] = []
        below = list(members)
        for level in range(len(self.fan_out) - 1, -1, -1):
            ports = self.fan_out[level]
            prefix = "@switch" if len(self.fan_out) == 2 else f"@switch{level}-"
            above = [f"{prefix}{index}" for index in range(math.ceil(len(below) / ports))] if level else list(self.root)
            edges = [Edge(above[index // ports], name) for index, name in enumerate(below)] + edges
            below = above
        return edges
