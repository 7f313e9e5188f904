"""Folded Clos networks: leaves and spines, and fat trees of two or three levels by rail and pod.

    leaf-spine   members at the leaves, every leaf linked to every spine
    fat-tree     members -> leaves of their rail (`leaf_ports` each) -> the spine of their pod -> the core

In a fat tree member i of every node is linked to leaves of rail i. Without `pod` all leaves meet in one spine. With it, `pod`
leaves of each rail make a pod, and the pods meet in a core.

Source: Clos, "A study of non-blocking switching networks", Bell System Technical Journal 32(2), 1953, folded. Leiserson,
"Fat-trees: universal networks for hardware-efficient supercomputing", IEEE Transactions on Computers C-34(10), 1985. Al-Fares,
Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008; rails: NVIDIA DGX SuperPOD reference
architecture, RA-11333, 2023.
Error: one switch of many parallel links (`spines: 1`, and every level of a fat tree) spreads traffic over the uplinks without
collisions, as under adaptive routing; with several spines, each pair of members keeps to one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.devices.network import Switch
from hwsim.machine.placed import within
from hwsim.machine.topologies.edge import Edge, Edges
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class LeafSpine:
    """Leaves of `leaf_ports` members each, filled in natural order."""

    leaf_ports: int = field("members at one leaf", minimum=1)
    oversubscription: float = field("members' bandwidth over that of a leaf's uplinks", default=1.0, minimum=1.0)
    spines: int = field("spine switches, among which a leaf's uplinks are divided", default=1, minimum=1)
    switch: Switch = field("its switches", default_factory=Switch)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError where a leaf's uplinks cannot be divided evenly among the spines.

        >>> [(edge.a, edge.b, edge.count) for edge in LeafSpine(2).edges(["a", "b", "c"])]
        [('@leaf0', 'a', 1), ('@leaf0', 'b', 1), ('@leaf1', 'c', 1), ('@spine0', '@leaf0', 2), ('@spine0', '@leaf1', 2)]
        """
        edges = [Edge(f"@leaf{at // self.leaf_ports}", name) for at, name in enumerate(members)]
        leaves = math.ceil(len(members) / self.leaf_ports)
        if leaves > 1:
            count = uplinks(self.leaf_ports, self.oversubscription, self.spines)
            edges += [Edge(f"@spine{spine}", f"@leaf{leaf}", count) for spine in range(self.spines) for leaf in range(leaves)]
        return edges


def uplinks(ports: int, oversubscription: float, switches: int) -> int:
    """Links from one switch to each of the `switches` above it.

    >>> uplinks(32, 2.0, 4), uplinks(9, 9 / 7, 1)
    (4, 7)

    Raises:
        ValueError: not a whole number.
    """
    count = round(ports / oversubscription / switches, 9)  # 9 / (9 / 7) is 7
    if count < 1 or not count.is_integer():
        above = "one switch" if switches == 1 else f"{switches} switches"
        raise ValueError(f"{ports} ports at an oversubscription of {oversubscription:g} are {count:g} links to each of {above}")
    return int(count)


@dataclass(frozen=True, slots=True)
class FatTree:
    """Leaves by rail, a spine for each pod, a core above the pods."""

    leaf_ports: int = field("members at one leaf", minimum=1)
    rails: int = field("member i of each node is linked to leaves of rail i mod rails", default=1, minimum=1)
    oversubscription: float = field("members' bandwidth over that of a leaf's uplinks", default=1.0, minimum=1.0)
    pod: int | None = field("leaves of one pod in each rail (default: all of them, without a core)", default=None, minimum=1)
    core_oversubscription: float = field(
        "bandwidth below a pod's spine over that of its links to the core", default=1.0, minimum=1.0
    )
    switch: Switch = field("its switches", default_factory=Switch)

    def edges(self, members: Sequence[str]) -> Edges:
        """Raise ValueError where ports cannot be divided evenly.

        >>> rails = FatTree(leaf_ports=2, rails=2).edges(["node0.nic0", "node0.nic1", "node1.nic0", "node1.nic1"])
        >>> rails.a[:2], [*zip(rails.a, rails.b, rails.counts)][4:]
        (['@leaf0-0', '@leaf1-0'], [('@spine0', '@leaf0-0', 2), ('@spine0', '@leaf1-0', 2)])
        """
        at_leaf: list[str] = []
        last = [""] * self.rails  # the leaf that is being filled
        filled = [0] * self.rails
        place: dict[str, int] = {}  # members of each node so far
        leaves: dict[str, int] = {}  # leaf -> its pod
        for number, name in enumerate(members):
            node, _ = within(name)
            at = place.get(node, 0) if node else number
            place[node] = at + 1
            rail = at % self.rails
            if filled[rail] % self.leaf_ports == 0:
                turn = filled[rail] // self.leaf_ports
                last[rail] = f"@leaf{turn}" if self.rails == 1 else f"@leaf{rail}-{turn}"
                leaves[last[rail]] = 0 if self.pod is None else turn // self.pod
            filled[rail] += 1
            at_leaf.append(last[rail])
        edges = Edges.all_of(at_leaf, members)
        if len(leaves) > 1:
            count = uplinks(self.leaf_ports, self.oversubscription, 1)
            edges += Edges.all_of([f"@spine{pod}" for pod in leaves.values()], list(leaves), count)
        pods = sorted(set(leaves.values()))
        if len(pods) > 1:
            below = uplinks(self.leaf_ports, self.oversubscription, 1) * self.rails * (self.pod or 1)
            count = uplinks(below, self.core_oversubscription, 1)
            edges += Edges.all_of(["@core"] * len(pods), [f"@spine{pod}" for pod in pods], count)
        return edges
