"""Topologies: the pairs of devices that an entry of `links:` with `topology` connects.

To add a topology, write a class in this package and add a line to `TOPOLOGIES`. A topology is a frozen dataclass, whose fields
are keys of the entry, with a method `edges(members)` that raises ValueError for a number of members that it cannot connect. A
topology that adds switches has a field `switch`, and their names begin with `@`.
"""

from __future__ import annotations

from typing import Final

from hwsim.machine.topologies.edge import Edge, EdgeColumns, Topology
from hwsim.spec.kinds import KindTable

TOPOLOGIES: Final = KindTable[type[Topology]](
    {
        "dragonfly": "hwsim.machine.topologies.dragonfly:Dragonfly",
        "fat-tree": "hwsim.machine.topologies.clos:FatTree",
        "fully-connected": "hwsim.machine.topologies.direct:FullyConnected",
        "hybrid-cube-mesh": "hwsim.machine.topologies.direct:HybridCubeMesh",
        "leaf-spine": "hwsim.machine.topologies.clos:LeafSpine",
        "line": "hwsim.machine.topologies.direct:LineTopology",
        "ring": "hwsim.machine.topologies.direct:RingTopology",
        "star": "hwsim.machine.topologies.direct:Star",
        "torus": "hwsim.machine.topologies.direct:TorusTopology",
        "tree": "hwsim.machine.topologies.tree:TreeTopology",
    }
)

__all__ = ["TOPOLOGIES", "Edge", "EdgeColumns", "Topology"]
