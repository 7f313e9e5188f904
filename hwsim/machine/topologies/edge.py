"""What a topology is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edge:
    """Two devices to connect, by `count` links side by side.

    The name of a switch that the topology itself brings begins with `@`.
    """

    a: str
    b: str
    count: int = 1
