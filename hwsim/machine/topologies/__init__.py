"""Every topology hwsim knows: which of some devices a `links:` entry connects.

A new one is a new file here and its line in the table. Each is a frozen dataclass (its fields are keys of the entry) with
`edges(members)`; a number of members that it cannot connect is a ValueError. One that brings switches of its own has a field
`switch`, and names them with `switches(members)`, each with an `@` in front.
"""

from __future__ import annotations

from typing import Final

from hwsim.machine.topologies.edge import Edge, Edges, Topology
from hwsim.spec.kinds import Kinds

TOPOLOGIES: Final = Kinds[type[Topology]](
    {
        "dragonfly": "hwsim.machine.topologies.dragonfly:Dragonfly",
        "fat-tree": "hwsim.machine.topologies.fat_tree:FatTree",
        "fully-connected": "hwsim.machine.topologies.fully_connected:FullyConnected",
        "hybrid-cube-mesh": "hwsim.machine.topologies.hybrid_cube_mesh:HybridCubeMesh",
        "leaf-spine": "hwsim.machine.topologies.leaf_spine:LeafSpine",
        "line": "hwsim.machine.topologies.line:Line",
        "ring": "hwsim.machine.topologies.ring:Ring",
        "star": "hwsim.machine.topologies.star:Star",
        "torus": "hwsim.machine.topologies.torus:Torus",
        "tree": "hwsim.machine.topologies.tree:Tree",
    }
)

__all__ = ["TOPOLOGIES", "Edge", "Edges", "Topology"]
