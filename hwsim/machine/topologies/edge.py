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

    def edges(self, members: Sequence[str]) -> Sequence[Edge] | EdgeColumns:
        """Return the links between members, or between members and added switches."""


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """A table of many edges as columns.

    >>> EdgeColumns.all_of(["sw", "sw"], ["a", "b"])
    EdgeColumns(a=['sw', 'sw'], b=['a', 'b'], counts=[1, 1])
    """

    a: Sequence[str]
    b: Sequence[str]
    counts: Sequence[int]

    @classmethod
    def all_of(cls, a: Sequence[str], b: Sequence[str], count: int = 1) -> EdgeColumns:
        """Return edges with `count` links each."""
        return cls(a, b, [count] * len(a))

    @classmethod
    def of(cls, edges: Sequence[Edge] | EdgeColumns) -> EdgeColumns:
        """Return any edges as columns."""
        if isinstance(edges, EdgeColumns):
            return edges
        return cls([edge.a for edge in edges], [edge.b for edge in edges], [edge.count for edge in edges])

    def __add__(self, other: EdgeColumns) -> EdgeColumns:
        return EdgeColumns([*self.a, *other.a], [*self.b, *other.b], [*self.counts, *other.counts])
