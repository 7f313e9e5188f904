"""The edges that a topology is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, overload

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

    def edges(self, members: Sequence[str]) -> Sequence[Edge]:
        """Links between members, or between them and switches of its own."""


class Edges(Sequence[Edge]):
    """Very many edges as columns; `counts` of each, or one number for all.

    >>> Edges(["sw", "sw"], ["a", "b"])[1]
    Edge(a='sw', b='b', count=1)
    """

    __slots__ = ("a", "b", "counts")

    def __init__(self, a: Sequence[str], b: Sequence[str], counts: Sequence[int] | int = 1) -> None:
        self.a, self.b = a, b
        self.counts = [counts] * len(a) if isinstance(counts, int) else counts

    @classmethod
    def of(cls, edges: Sequence[Edge]) -> Edges:
        """Any edges as columns."""
        if isinstance(edges, Edges):
            return edges
        return cls([edge.a for edge in edges], [edge.b for edge in edges], [edge.count for edge in edges])

    def __len__(self) -> int:
        return len(self.a)

    def __iter__(self) -> Iterator[Edge]:
        return (Edge(a, b, count) for a, b, count in zip(self.a, self.b, self.counts, strict=True))

    @overload
    def __getitem__(self, at: int) -> Edge: ...
    @overload
    def __getitem__(self, at: slice) -> list[Edge]: ...
    def __getitem__(self, at: int | slice) -> Edge | list[Edge]:
        if isinstance(at, slice):
            return [self[each] for each in range(len(self))[at]]
        return Edge(self.a[at], self.b[at], self.counts[at])

    def __add__(self, other: Edges) -> Edges:
        return Edges([*self.a, *other.a], [*self.b, *other.b], [*self.counts, *other.counts])
