"""Every topology hwsim knows: which of some devices a `links:` entry connects.

A new one is a class here and its line in the table. Each is a frozen dataclass (its fields are keys of the entry) with
`edges(members)`; a number of members that it cannot connect is a ValueError. One that brings switches of its own has a field
`switch`, and names them with an `@` in front.
"""

from __future__ import annotations

from typing import Final

from hwsim.machine.topologies.edge import Edge, Edges, Topology
from hwsim.spec.kinds import Kinds

TOPOLOGIES: Final = Kinds[type[Topology]](
    {
        "dragonfly": "hwsim.machine.topologies.dragonfly:Dragonfly",
        "fat-tree": "hwsim.machine.topologies.clos:FatTree",
        "fully-connected": "hwsim.machine.topologies.direct:FullyConnected",
        "hybrid-cube-mesh": "hwsim.machine.topologies.direct:HybridCubeMesh",
        "leaf-spine": "hwsim.machine.topologies.clos:LeafSpine",
        "line": "hwsim.machine.topologies.direct:Line",
        "ring": "hwsim.machine.topologies.direct:Ring",
        "star": "hwsim.machine.topologies.direct:Star",
        "torus": "hwsim.machine.topologies.direct:Torus",
        "tree": "hwsim.machine.topologies.tree:Tree",
    }
)

__all__ = ["TOPOLOGIES", "Edge", "Edges", "Topology"]
