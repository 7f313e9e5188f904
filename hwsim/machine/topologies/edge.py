"""Edges of a topology."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection of two devices by `count` parallel links.

    The name of a switch that the topology adds begins with `@`.
    """

    a: str
    b: str
    count: int = 1


class Topology(Protocol):
    """A protocol of topologies."""

    def edges(self, members: Sequence[str]) -> Sequence[Edge] | Edges:
        """Return the links between members, or between members and added switches."""


@dataclass(frozen=True, slots=True)
class Edges:
    """A table of many edges as columns.

    >>> Edges.all_of(["sw", "sw"], ["a", "b"])
    Edges(a=['sw', 'sw'], b=['a', 'b'], counts=[1, 1])
    """

    a: Sequence[str]
    b: Sequence[str]
    counts: Sequence[int]

    @classmethod
    def all_of(cls, a: Sequence[str], b: Sequence[str], count: int = 1) -> Edges:
        """Return edges with `count` links each."""
        return cls(a, b, [count] * len(a))

    @classmethod
    def of(cls, edges: Sequence[Edge] | Edges) -> Edges:
        """Return any edges as columns."""
        if isinstance(edges, Edges):
            return edges
        return cls([edge.a for edge in edges], [edge.b for edge in edges], [edge.count for edge in edges])

    def __add__(self, other: Edges) -> Edges:
        return Edges([*self.a, *other.a], [*self.b, *other.b], [*self.counts, *other.counts])
