"""The edges that a topology is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Edge:
    """Two devices to connect, by `count` links side by side.

    The name of a switch that the topology itself brings begins with `@`.
    """

    a: str
    b: str
    count: int = 1


class Topology(Protocol):
    """Which of some devices are connected."""

    def edges(self, members: Sequence[str]) -> Sequence[Edge] | Edges:
        """Links between members, or between them and switches of its own."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Very many edges as columns; `counts` of each.

    >>> Edges.all_of(["sw", "sw"], ["a", "b"])
    Edges(a=['sw', 'sw'], b=['a', 'b'], counts=[1, 1])
    """

    a: Sequence[str]
    b: Sequence[str]
    counts: Sequence[int]

    @classmethod
    def all_of(cls, a: Sequence[str], b: Sequence[str], count: int = 1) -> Edges:
        """Edges of as many links each."""
        return cls(a, b, [count] * len(a))

    @classmethod
    def of(cls, edges: Sequence[Edge] | Edges) -> Edges:
        """Any edges as columns."""
        if isinstance(edges, Edges):
            return edges
        return cls([edge.a for edge in edges], [edge.b for edge in edges], [edge.count for edge in edges])

    def __add__(self, other: Edges) -> Edges:
        return Edges([*self.a, *other.a], [*self.b, *other.b], [*self.counts, *other.counts])
