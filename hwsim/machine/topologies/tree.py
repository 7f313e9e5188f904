"""A tree of switches, as PCI Express makes them: members at the lowest switches, those at higher ones, the highest at a root.

    root -> fan_out[0] switches -> fan_out[1] below each -> ... -> the last number of members at each of the lowest

Source: PCI Express Base Specification, 1.3 (fabric topology); the trees of servers as `nvidia-smi topo -m` prints them.
Range: every link is alike; where the ones at the top are wider, write them as `between`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.devices.network import Switch
from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class Tree:
    """`root: cpu, fan_out: [2, 4]`: two switches below the CPU with four members each; filled in natural order."""

    root: tuple[str, ...] = field("the part at its top, usually a CPU; of several each has a tree", one_or_many=True)
    fan_out: tuple[int, ...] = field(
        "children of the root, of each switch below it, ...", one_or_many=True, minimum=1, example="[2, 4]"
    )
    switch: Switch = field("its switches", default_factory=Switch)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for members that do not fit below the root, or none.

        >>> [(edge.a, edge.b) for edge in Tree(("cpu",), (2, 2)).edges("abcd")]
        [('cpu', '@switch0'), ('cpu', '@switch1'), ('@switch0', 'a'), ('@switch0', 'b'), ('@switch1', 'c'), ('@switch1', 'd')]
        """
        most = len(self.root) * math.prod(self.fan_out)
        if not members or len(members) > most:
            shape = " x ".join(str(each) for each in self.fan_out)
            trees = f"{len(self.root)} trees" if len(self.root) > 1 else "a tree"
            raise ValueError(f"{trees} of {shape} holds 1 to {most} members, not {len(members)}")
        edges: list[Edge] = []
        below = list(members)
        for level in range(len(self.fan_out) - 1, -1, -1):
            ports = self.fan_out[level]
            name = "@switch" if len(self.fan_out) == 2 else f"@switch{level}-"
            above = [f"{name}{index}" for index in range(math.ceil(len(below) / ports))] if level else list(self.root)
            edges = [Edge(above[at // ports], each) for at, each in enumerate(below)] + edges
            below = above
        return edges
