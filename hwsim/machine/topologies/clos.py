"""Folded Clos networks: leaf-spine, and fat trees of two or three levels with rails and pods.

    leaf-spine   members -> leaves; every leaf is linked to every spine
    fat-tree     members -> leaves of their rail (`leaf_ports` each) -> the spine of their pod -> the core

In a fat tree, member i of every node is linked to leaves of rail i. Without `pod`, one spine connects all leaves. With `pod`,
that many leaves of each rail form a pod, and a core connects the spines of the pods.

Source: Clos, "A study of non-blocking switching networks", Bell System Technical Journal 32(2), 1953, folded. Leiserson,
"Fat-trees: universal networks for hardware-efficient supercomputing", IEEE Transactions on Computers C-34(10), 1985. Al-Fares,
Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008; rails: NVIDIA DGX SuperPOD reference
architecture, RA-11333, 2023.
Error: a spine with many parallel links (`spines: 1`, and every level of a fat tree) spreads traffic over the uplinks without hash
collisions, as with adaptive routing. With several spines, each pair of members always uses the same spine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.devices.network import Switch
from hwsim.machine.contents import within
from hwsim.machine.topologies.edge import Edge, EdgeColumns
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class LeafSpine:
    """A leaf-spine network with `leaf_ports` members per leaf, filled in natural order of their names."""

    leaf_ports: int = field("number of members per leaf switch", minimum=1)
    oversubscription: float = field(
        "oversubscription of a leaf: bandwidth of its members over its uplinks", default=1.0, minimum=1.0
    )
    spines: int = field("number of spine switches, among which a leaf's uplinks are divided", default=1, minimum=1)
    switch: Switch = field("properties of the switches", default_factory=Switch)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Return the links; raise ValueError if a leaf's uplinks cannot be divided evenly among the spines.

        >>> [(edge.a, edge.b, edge.count) for edge in LeafSpine(2).edges(["a", "b", "c"])]
        [('@leaf0', 'a', 1), ('@leaf0', 'b', 1), ('@leaf1', 'c', 1), ('@spine0', '@leaf0', 2), ('@spine0', '@leaf1', 2)]
        """
        edges = [Edge(f"@leaf{index // self.leaf_ports}", name) for index, name in enumerate(members)]
        leaves = math.ceil(len(members) / self.leaf_ports)
        if leaves > 1:
            count = uplinks(self.leaf_ports, self.oversubscription, self.spines)
            edges += [Edge(f"@spine{spine}", f"@leaf{leaf}", count) for spine in range(self.spines) for leaf in range(leaves)]
        return edges


def uplinks(ports: int, oversubscription: float, upper_count: int) -> int:
    """Return the number of links from one switch to each of the `upper_count` switches of the next level.

    >>> uplinks(32, 2.0, 4), uplinks(9, 9 / 7, 1)
    (4, 7)

    Raises:
        ValueError: the result is not a whole number.
    """
    count = round(ports / oversubscription / upper_count, 9)  # 9 / (9 / 7) is 7
    if count < 1 or not count.is_integer():
        uplink = f"{ports} ports / oversubscription {oversubscription:g} / {upper_count} switches = {count:g} uplinks"
        raise ValueError(f"{uplink}: expected a whole number per switch")
    return int(count)


@dataclass(frozen=True, slots=True)
class FatTree:
    """A fat tree: leaves by rail, one spine per pod, and a core above the pods."""

    leaf_ports: int = field("number of members per leaf switch", minimum=1)
    rails: int = field("number of rails: member i of each node is linked to leaves of rail i mod rails", default=1, minimum=1)
    oversubscription: float = field(
        "oversubscription of a leaf: bandwidth of its members over its uplinks", default=1.0, minimum=1.0
    )
    pod: int | None = field("leaves per rail in one pod (default: all leaves, without a core)", default=None, minimum=1)
    core_oversubscription: float = field(
        "oversubscription: bandwidth below a pod's spine over the bandwidth of its links to the core", default=1.0, minimum=1.0
    )
    switch: Switch = field("properties of the switches", default_factory=Switch)

    def edges(self, members: Sequence[str]) -> EdgeColumns:
        """Return the links; raise ValueError if ports cannot be divided evenly.

        >>> rails = FatTree(leaf_ports=2, rails=2).edges(["node0.nic0", "node0.nic1", "node1.nic0", "node1.nic1"])
        >>> rails.a[:2], [*zip(rails.a, rails.b, rails.counts)][4:]
        (['@leaf0-0', '@leaf1-0'], [('@spine0', '@leaf0-0', 2), ('@spine0', '@leaf1-0', 2)])
        """
        at_leaf: list[str] = []
        last = [""] * self.rails  # leaf of each rail to which the next member is added
        filled = [0] * self.rails
        member_count: dict[str, int] = {}  # by node, so far
        leaves: dict[str, int] = {}  # leaf -> its pod
        for index, name in enumerate(members):
            node, _ = within(name)
            index_in_node = member_count.get(node, 0) if node else index
            member_count[node] = index_in_node + 1
            rail = index_in_node % self.rails
            if filled[rail] % self.leaf_ports == 0:
                leaf = filled[rail] // self.leaf_ports
                last[rail] = f"@leaf{leaf}" if self.rails == 1 else f"@leaf{rail}-{leaf}"
                leaves[last[rail]] = 0 if self.pod is None else leaf // self.pod
            filled[rail] += 1
            at_leaf.append(last[rail])
        edges = EdgeColumns.all_of(at_leaf, members)
        if len(leaves) > 1:
            count = uplinks(self.leaf_ports, self.oversubscription, 1)
            edges += EdgeColumns.all_of([f"@spine{pod}" for pod in leaves.values()], list(leaves), count)
        pods = sorted(set(leaves.values()))
        if len(pods) > 1:
            below = uplinks(self.leaf_ports, self.oversubscription, 1) * self.rails * (self.pod or 1)
            count = uplinks(below, self.core_oversubscription, 1)
            edges += EdgeColumns.all_of(["@core"] * len(pods), [f"@spine{pod}" for pod in pods], count)
        return edges
