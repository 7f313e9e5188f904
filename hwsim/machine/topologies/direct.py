"""Topologies without switches of their own: members linked to one another, or to a part that is there.

Members are taken in the natural order of their names. A torus is filled last dimension first; a dimension of two has a single
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

from hwsim.machine.topologies.edge import Edge, Edges
from hwsim.records import dataclass
from hwsim.spec.fields import field

MOST_MEMBERS: Final = 2000  # of a fully connected group
# (GPU, GPU, NVLinks between them): the upper half of the matrix of `nvidia-smi topo -m`.
CUBE_MESH: Final = (
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """A chain: each with the next."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for fewer than two.

        >>> [(edge.a, edge.b) for edge in Line().edges(["a", "b", "c"])]
        [('a', 'b'), ('b', 'c')]
        """
        if len(members) < 2:
            raise ValueError("a line needs at least 2 members")
        return [Edge(a, b) for a, b in pairwise(members)]


@dataclass(frozen=True, slots=True)
class Ring:
    """A closed chain: the last is linked to the first; of two members a single link."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for fewer than two.

        >>> [(edge.a, edge.b) for edge in Ring().edges(["a", "b", "c"])]
        [('a', 'b'), ('b', 'c'), ('c', 'a')]
        """
        if len(members) < 2:
            raise ValueError("a ring needs at least 2 members")
        closed = [*members, members[0]] if len(members) > 2 else members
        return [Edge(a, b) for a, b in pairwise(closed)]


@dataclass(frozen=True, slots=True)
class Star:
    """One link from each member to the hub, usually a switch."""

    hub: str = field("the part in the middle, usually a switch")

    def edges(self, members: Sequence[str]) -> Edges:
        """Raise ValueError without members.

        >>> Star("sw").edges(["a", "b"])
        Edges(a=['sw', 'sw'], b=['a', 'b'], counts=[1, 1])
        """
        if not members:
            raise ValueError("a star needs at least 1 member besides its hub")
        return Edges.all_of([self.hub] * len(members), members)


@dataclass(frozen=True, slots=True)
class FullyConnected:
    """One link for each pair."""

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for fewer than two, or for more than anyone would wire.

        >>> len(FullyConnected().edges(["a", "b", "c", "d"]))
        6
        """
        if len(members) < 2:
            raise ValueError("a fully-connected group needs at least 2 members")
        if len(members) > MOST_MEMBERS:
            raise ValueError(f"more than {MOST_MEMBERS} members are not connected one by one: put a switch in between")
        return [Edge(a, b) for a, b in combinations(members, 2)]


@dataclass(frozen=True, slots=True)
class Torus:
    """A grid whose rows close to rings, as in pods of TPUs; `size: [4, 4, 4]`; without `wrap` a mesh."""

    size: tuple[int, ...] = field("members along each dimension", one_or_many=True, minimum=1, example="[4, 4, 4]")
    wrap: bool = field("the last of a row is linked to its first", default=True)

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError unless they fill the grid.

        >>> [len(grid.edges("abcdefgh")) for grid in (Torus((4, 2)), Torus((4, 2), wrap=False), Torus((2, 2, 2)))]
        [12, 10, 12]
        """
        if math.prod(self.size) != len(members):
            shape = " x ".join(str(each) for each in self.size)
            raise ValueError(f"a torus of {shape} has {math.prod(self.size)} members, not {len(members)}")
        edges = []
        stride = len(members)
        for length in self.size:
            stride //= length
            for at, name in enumerate(members):
                place = at // stride % length
                last = place == length - 1
                if length > 1 and (not last or (self.wrap and length > 2)):
                    edges.append(Edge(name, members[at + stride - (length * stride if last else 0)]))
        return edges


@dataclass(frozen=True, slots=True)
class HybridCubeMesh:
    """Eight GPUs, 24 NVLinks: two groups of four, each fully connected, and each GPU with its counterpart in the other group.

    8 of these 16 connections are doubled, so that every V100 uses its six NVLinks.
    """

    def edges(self, members: Sequence[str]) -> list[Edge]:
        """Raise ValueError for any other number than eight.

        >>> sum(edge.count for edge in HybridCubeMesh().edges("abcdefgh"))
        24
        """
        if len(members) != 8:
            raise ValueError(f"a hybrid-cube-mesh connects 8 members, not {len(members)}")
        return [Edge(members[a], members[b], count) for a, b, count in CUBE_MESH]
