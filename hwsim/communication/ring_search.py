"""Search for rings in a graph of links: Hamiltonian cycles that together use as much link bandwidth as possible.

The search tries the widest rings first, with backtracking. Rings can use at most half of a vertex's links (one in, one out). This
bound ends the search as soon as it is reached. NCCL searches its graphs in the same way.

Source: NCCL, src/graph/search.cc; the two rings of the hybrid cube mesh: d2l 13.7.2.
Range: up to about 16 GPUs; if the step budget is exhausted, the best rings found so far are used, which may not be optimal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hwsim.machine import Machine
from hwsim.records import dataclass

_STEPS: Final = 200_000  # step budget of the search, about 0.3 s


@dataclass(frozen=True, slots=True)
class FoundRing:
    """A cycle over all vertices with `width` parallel links, usable in both directions."""

    order: tuple[int, ...]
    width: int


Edges = Mapping[tuple[int, int], int]  # (a, b) with a < b -> number of links


def find_rings(vertices: int, edges: Edges, *, steps: int = _STEPS) -> tuple[FoundRing, ...]:
    """Return the rings with the greatest total width, widest first.

    >>> square = {(0, 1): 2, (1, 2): 2, (2, 3): 2, (0, 3): 2, (0, 2): 1}
    >>> find_rings(4, square)
    (FoundRing(order=(0, 1, 2, 3), width=2),)
    """
    if vertices < 2:
        return ()
    if vertices == 2:
        width = edges.get((0, 1), 0)
        return (FoundRing((0, 1), width),) if width else ()
    left = {pair: count for pair, count in sorted(edges.items()) if count > 0}
    return _RingSearch(vertices, steps).best(left)


def nvlink_edges(machine: Machine, devices: Sequence[str]) -> dict[tuple[int, int], int]:
    """Return the number of direct NVLinks between devices, by index pairs."""
    place = {name: index for index, name in enumerate(devices)}
    edges: dict[tuple[int, int], int] = {}
    for a, name in enumerate(devices):
        for link in machine.links_from(name):
            b = place.get(link.target)
            if link.kind == "nvlink" and b is not None and a < b:
                edges[a, b] = edges.get((a, b), 0) + link.count * link.model.uses()
    return edges


class _RingSearch:
    """A ring search with its remaining step budget."""

    def __init__(self, vertices: int, steps: int) -> None:
        self.vertices = vertices
        self.steps = steps

    def best(self, left: dict[tuple[int, int], int]) -> tuple[FoundRing, ...]:
        """Return the best rings over these links."""
        degree = [0] * self.vertices
        for (a, b), count in left.items():
            degree[a] += count
            degree[b] += count
        bound = min(degree) // 2
        best: tuple[FoundRing, ...] = ()
        if bound == 0:
            return best
        for width in range(min(bound, max(left.values())), 0, -1):
            for order in self._cycles(left, width):
                rest = dict(left)
                for a, b in _pairs(order):
                    rest[a, b] -= width
                rings = (FoundRing(order, width), *self.best(rest))
                if sum(ring.width for ring in rings) > sum(ring.width for ring in best):
                    best = rings
                if sum(ring.width for ring in best) == bound or self.steps <= 0:
                    return best
        return best

    def _cycles(self, left: Edges, width: int) -> Iterator[tuple[int, ...]]:
        """Yield the Hamiltonian cycles over links of that width, in vertex order, each in one direction."""
        near = [[b for b in range(self.vertices) if left.get((min(a, b), max(a, b)), 0) >= width] for a in range(self.vertices)]
        path, seen = [0], [False] * self.vertices
        seen[0] = True
        trail = [iter(near[0])]
        while trail and self.steps > 0:
            self.steps -= 1
            after = next((b for b in trail[-1] if not seen[b]), None)
            if after is None:
                trail.pop()
                seen[path.pop()] = False
                continue
            path.append(after)
            if len(path) == self.vertices and 0 in near[after] and path[1] < after:
                yield tuple(path)
            seen[after] = True
            trail.append(iter(near[after]))


def _pairs(order: Sequence[int]) -> Iterator[tuple[int, int]]:
    for place, a in enumerate(order):
        b = order[(place + 1) % len(order)]
        yield min(a, b), max(a, b)
