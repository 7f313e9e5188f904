"""Two levels of switches: members at the leaves, every leaf linked to every spine.

Source: Clos, "A study of non-blocking switching networks", Bell System Technical Journal 32(2), 1953, folded; Al-Fares,
Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008.
Error: with one spine of many links side by side (`spines: 1`, the default) traffic spreads over the uplinks without
collisions, as under adaptive routing; with several, each pair of members keeps to one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.devices.network import Switch
from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class LeafSpine:
    """Leaves of `leaf_ports` members each, filled in natural order."""

    leaf_ports: int = field("members at one leaf", minimum=1)
    oversubscription: float = field("members' bandwidth over that of a leaf's uplinks", default=1.0, minimum=1.0)
    spines: int = field("spine switches, among which a leaf's uplinks are divided", default=1, minimum=1)
    switch: Switch = field("its switches", default_factory=Switch)

    def switches(self, members: Sequence[str]) -> list[str]:
        """Leaves, and spines where there is more than one leaf."""
        leaves = math.ceil(len(members) / self.leaf_ports)
        return [f"@leaf{at}" for at in range(leaves)] + [f"@spine{at}" for at in range(self.spines if leaves > 1 else 0)]

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError where a leaf's uplinks cannot be divided evenly among the spines.

        >>> [(edge.a, edge.b, edge.count) for edge in LeafSpine(2).edges(["a", "b", "c"])]
        [('@leaf0', 'a', 1), ('@leaf0', 'b', 1), ('@leaf1', 'c', 1), ('@spine0', '@leaf0', 2), ('@spine0', '@leaf1', 2)]
        """
        found = [Edge(f"@leaf{at // self.leaf_ports}", name) for at, name in enumerate(members)]
        leaves = math.ceil(len(members) / self.leaf_ports)
        if leaves > 1:
            count = uplinks(self.leaf_ports, self.oversubscription, self.spines)
            found += [Edge(f"@spine{spine}", f"@leaf{leaf}", count) for spine in range(self.spines) for leaf in range(leaves)]
        return found


def uplinks(ports: int, oversubscription: float, switches: int) -> int:
    """Links from one switch to each of the `switches` above it.

    >>> uplinks(32, 2.0, 4)
    4

    Raises:
        ValueError: not a whole number.
    """
    count = ports / oversubscription / switches
    if count < 1 or not count.is_integer():
        above = "one switch" if switches == 1 else f"{switches} switches"
        raise ValueError(f"{ports} ports at an oversubscription of {oversubscription:g} are {count:g} links to each of {above}")
    return int(count)
