"""Every topology hwsim knows: which of some devices a `links:` entry connects.

A new one is a new file here and a line in this dict.  Each is a frozen dataclass (its fields are
keys of the entry) with `edges(members)`; a number of members it cannot connect is a ValueError.
One that brings switches of its own names them with `switches(members)`, each with an `@` in front, and has a `switch`.
"""

from __future__ import annotations

from typing import Final

from hwsim.machine.topologies.dragonfly import Dragonfly
from hwsim.machine.topologies.edge import Edge, Edges
from hwsim.machine.topologies.fat_tree import FatTree
from hwsim.machine.topologies.fully_connected import FullyConnected
from hwsim.machine.topologies.hybrid_cube_mesh import HybridCubeMesh
from hwsim.machine.topologies.leaf_spine import LeafSpine
from hwsim.machine.topologies.line import Line
from hwsim.machine.topologies.ring import Ring
from hwsim.machine.topologies.star import Star
from hwsim.machine.topologies.torus import Torus
from hwsim.machine.topologies.tree import Tree

Topology = Dragonfly | FatTree | FullyConnected | HybridCubeMesh | LeafSpine | Line | Ring | Star | Torus | Tree
WithSwitches = Dragonfly | FatTree | LeafSpine | Tree  # those that bring switches of their own

TOPOLOGIES: Final[dict[str, type[Topology]]] = {
    "dragonfly": Dragonfly,
    "fat-tree": FatTree,
    "fully-connected": FullyConnected,
    "hybrid-cube-mesh": HybridCubeMesh,
    "leaf-spine": LeafSpine,
    "line": Line,
    "ring": Ring,
    "star": Star,
    "torus": Torus,
    "tree": Tree,
}

__all__ = [
    "TOPOLOGIES",
    "Dragonfly",
    "Edge",
    "Edges",
    "FatTree",
    "FullyConnected",
    "HybridCubeMesh",
    "LeafSpine",
    "Line",
    "Ring",
    "Star",
    "Topology",
    "Torus",
    "Tree",
    "WithSwitches",
]
