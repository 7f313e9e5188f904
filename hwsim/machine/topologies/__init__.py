"""Every topology hwsim knows: which of some devices a `links:` entry connects.

A new one is a new file here and a line in this dict.  Each is a frozen dataclass (its fields are
keys of the entry) with `edges(members)`; a number of members it cannot connect is a ValueError.
"""

from __future__ import annotations

from typing import Final

from hwsim.machine.topologies.edge import Edge
from hwsim.machine.topologies.fully_connected import FullyConnected
from hwsim.machine.topologies.hybrid_cube_mesh import HybridCubeMesh
from hwsim.machine.topologies.line import Line
from hwsim.machine.topologies.ring import Ring
from hwsim.machine.topologies.star import Star

Topology = FullyConnected | HybridCubeMesh | Line | Ring | Star

TOPOLOGIES: Final[dict[str, type[Topology]]] = {
    "fully-connected": FullyConnected,
    "hybrid-cube-mesh": HybridCubeMesh,
    "line": Line,
    "ring": Ring,
    "star": Star,
}

__all__ = ["TOPOLOGIES", "Edge", "FullyConnected", "HybridCubeMesh", "Line", "Ring", "Star", "Topology"]
