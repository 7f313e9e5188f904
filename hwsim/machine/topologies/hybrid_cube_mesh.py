"""NVIDIA's hybrid cube mesh of eight V100: DGX-1 and the cloud machines built like it (p3.16xlarge).

Two groups of four, each fully connected, and each GPU with its counterpart in the other group;
8 of these 16 connections are doubled, so that every V100 uses its six NVLinks.
Source: NVIDIA DGX-1 With Tesla V100 System Architecture, white paper WP-08437, 2017, figure on the
network topology; the doubled connections as `nvidia-smi topo -m` prints them on such machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwsim.machine.topologies.edge import Edge
from hwsim.records import dataclass

# (GPU, GPU, NVLinks between them): the upper half of the matrix of `nvidia-smi topo -m`.
LINKS: Final = (
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HybridCubeMesh:
    """Eight GPUs, 24 NVLinks."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for any other number than eight.

        >>> sum(edge.count for edge in HybridCubeMesh().edges("abcdefgh"))
        24
        """
        if len(members) != 8:
            raise ValueError(f"a hybrid-cube-mesh connects 8 members, not {len(members)}")
        return [Edge(members[a], members[b], count) for a, b, count in LINKS]
