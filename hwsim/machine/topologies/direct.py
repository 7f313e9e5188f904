"""Topologies that add no switches: members are linked to one another or to an existing device.

Members are ordered by their names in natural order. A torus is filled last dimension first; a dimension of length two has one
link.

Source: torus: Jouppi et al., "TPU v4: an optically reconfigurable supercomputer", ISCA 2023 (4 x 4 x 4 cubes, closed to tori).
hybrid cube mesh: NVIDIA DGX-1 With Tesla V100 System Architecture, white paper WP-08437, 2017, figure on the network topology;
the doubled connections as `nvidia-smi topo -m` prints them on such machines (DGX-1, p3.16xlarge).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Final

from hwsim.machine.topologies.edge import Edge, EdgeColumns
from hwsim.records import dataclass
from hwsim.spec.fields import field

MAX_MESH_MEMBERS: Final = 2000  # maximum members of a fully connected group
# (GPU, GPU, number of NVLinks): the upper half of the matrix of `nvidia-smi topo -m`.
CUBE_MESH: Final = (
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LineTopology:
    """A chain in which each member is linked to the next."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Return the links; raise ValueError for fewer than two members.

        >>> [(edge.a, edge.b) for edge in LineTopology().edges(["a", "b", "c"])]
        [('a', 'b'), ('b', 'c')]
        """
        if len(members) < 2:
            raise ValueError(f"a line requires at least 2 members, got {len(members)}")
        return [Edge(a, b) for a, b in pairwise(members)]


@dataclass(frozen=True, slots=True)
class RingTopology:
    """A closed chain: the last member is linked to the first; two members have a single link."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Return the links; raise ValueError for fewer than two members.

        >>> [(edge.a, edge.b) for edge in RingTopology().edges(["a", "b", "c"])]
        [('a', 'b'), ('b', 'c'), ('c', 'a')]
        """
        if len(members) < 2:
            raise ValueError(f"a ring requires at least 2 members, got {len(members)}")
        closed = [*members, members[0]] if len(members) > 2 else members
        return [Edge(a, b) for a, b in pairwise(closed)]


@dataclass(frozen=True, slots=True)
class Star:
    """A star: one link from each member to the hub, usually a switch."""

    hub: str = field("device in the centre, usually a switch")

    def edges(self, members: Sequence[str]) -> EdgeColumns:
        """Return the links; raise ValueError without members.

        >>> Star("sw").edges(["a", "b"])
        EdgeColumns(a=['sw', 'sw'], b=['a', 'b'], counts=[1, 1])
        """
        if not members:
            raise ValueError("a star requires at least 1 member besides its hub")
        return EdgeColumns.all_of([self.hub] * len(members), members)


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """A full mesh: one link per pair of members."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Return the links; raise ValueError for fewer than two members or more than `MAX_MESH_MEMBERS`.

        >>> len(FullyConnected().edges(["a", "b", "c", "d"]))
        6
        """
        if len(members) < 2:
            raise ValueError(f"fully-connected requires at least 2 members, got {len(members)}")
        if len(members) > MAX_MESH_MEMBERS:
            raise ValueError(f"fully-connected supports at most {MAX_MESH_MEMBERS} members, got {len(members)}: use a switch")
        return [Edge(a, b) for a, b in combinations(members, 2)]


@dataclass(frozen=True, slots=True)
class TorusTopology:
    """A grid whose rows are closed to rings, as in TPU pods; without `wrap`, a mesh."""

    size: tuple[int, ...] = field("number of members along each dimension", one_or_many=True, minimum=1, example="[4, 4, 4]")
    wrap: bool = field("whether the last member of a row is linked to the first", default=True)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Return the links; raise ValueError unless the members fill the grid.

        >>> [len(grid.edges("abcdefgh")) for grid in (TorusTopology((4, 2)), TorusTopology((4, 2), wrap=False),
        ...     TorusTopology((2, 2, 2)))]
        [12, 10, 12]
        """
        if math.prod(self.size) != len(members):
            shape = " x ".join(map(str, self.size))
            raise ValueError(f"a torus of {shape} requires {math.prod(self.size)} members, got {len(members)}")
        edges = []
        stride = len(members)
        for length in self.size:
            stride //= length
            for index, name in enumerate(members):
                is_last = index // stride % length == length - 1
                if length > 1 and (not is_last or (self.wrap and length > 2)):
                    edges.append(Edge(name, members[index + stride - (length * stride if is_last else 0)]))
        return edges


@dataclass(frozen=True, slots=True)
class HybridCubeMesh:
    """A network of 8 GPUs with 24 NVLinks: two fully connected groups of four, and a connection from each GPU to its counterpart.

    Of these 16 connections, 8 have two links, so that every V100 uses its six NVLinks.
    """

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Return the links; raise ValueError unless there are eight members.

        >>> sum(edge.count for edge in HybridCubeMesh().edges("abcdefgh"))
        24
        """
        if len(members) != 8:
            raise ValueError(f"a hybrid-cube-mesh requires 8 members, got {len(members)}")
        return [Edge(members[a], members[b], count) for a, b, count in CUBE_MESH]
