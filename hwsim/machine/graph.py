"""The links as a graph: all shortest ways between two devices, and the widest of them.

The search runs from both ends and meets in the middle, so that a route between two of ten
thousand GPUs looks at the few devices near each, not at all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hwsim.machine.net import Net
from hwsim.machine.placed import Link, Routing
from hwsim.units import natural

Layers = Sequence[set[str]]


class Graph:
    """Over all links, or over those of one routing.  barred: cards without what links them to the inside of their computer."""

    def __init__(self, net: Net, routing: Routing | None = None, barred: frozenset[str] = frozenset()) -> None:
        self._net, self._routing, self._barred = net, routing, barred

    def without(self, barred: frozenset[str]) -> Graph:
        """The same without the ways of these cards into their computers."""
        return Graph(self._net, self._routing, barred)

    def layers(self, a: str, b: str) -> list[set[str]] | None:
        """The devices on shortest routes between two, by their distance from a; None if there is no route."""
        net = self._net
        near, far = [{a}], [{b}]
        seen_near, seen_far = {a}, {b}
        while not seen_near & seen_far:
            forward = self._effort(near[-1]) <= self._effort(far[-1])
            layers, seen, other = (near, seen_near, seen_far) if forward else (far, seen_far, seen_near)
            end = a if forward else b
            grown = {
                target
                for source in layers[-1]
                if source == end or net.forwards(source)
                for target in net.neighbours(source, self._routing)
                if target not in seen and (net.forwards(target) or target in other) and self._open(source, target)
            }
            if not grown:
                return None
            seen |= grown
            layers.append(grown)
        middle = near[-1] & far[-1]
        inner = [self._back(near, middle), self._back(far, middle)]
        return [*reversed(inner[0]), middle, *inner[1]]

    def _effort(self, layer: set[str]) -> int:
        return sum(map(self._net.degree, layer))  # whole

    def _back(self, layers: Sequence[set[str]], middle: set[str]) -> list[set[str]]:
        """The layers before the middle, nearest to it first, without what does not lead there."""
        kept: list[set[str]] = []
        reached = middle
        for layer in reversed(layers[:-1]):
            reached = {name for name in layer if self._among(name, reached)}
            kept.append(reached)
        return kept

    def bottleneck(self, layers: Layers) -> float:
        """The widest bottleneck over all routes through the layers."""
        widths = dict.fromkeys(layers[0], float("inf"))
        for here, there in pairwise(layers):
            reached: dict[str, float] = {}
            for source in here:
                for target in self._among(source, there):
                    width = min(widths.get(source, 0.0), self._widest(source, target).bandwidth)
                    reached[target] = max(reached.get(target, 0.0), width)
            widths = reached
        return max(widths.values())

    def only(self, layers: Layers) -> tuple[Link, ...]:
        """The route through layers of one device each, over the widest links."""
        return tuple(self._widest(source, target) for (source,), (target,) in pairwise(layers))

    def first(self, layers: Layers, width: float, cards: frozenset[str] = frozenset()) -> tuple[Link, ...]:
        """The first route over links at least that wide: over as many of these cards as it can, then by names."""
        ways: list[dict[str, int]] = [dict.fromkeys(layers[-1], 0)]  # what still reaches the end, over how many of the cards
        for here in reversed(layers[:-1]):
            beyond = ways[-1]
            onward = {source: [beyond[each] for each in beyond if self._wide(source, each, width)] for source in here}
            ways.append({source: max(most) + (source in cards) for source, most in onward.items() if most})
        at = next(iter(layers[0]))
        found = []
        for layer in list(reversed(ways))[1:]:
            target = min((each for each in layer if self._wide(at, each, width)), key=lambda each: (-layer[each], natural(each)))
            found.append(self._widest(at, target))
            at = target
        return tuple(found)

    def _open(self, source: str, target: str) -> bool:
        """Whether no card that is barred stands at the inner end of a way between two neighbours."""
        if target in self._barred and target in self._net.near(source):
            return False
        return not (source in self._barred and source in self._net.near(target))

    def _among(self, source: str, names: set[str]) -> list[str]:
        found = self._net.among(source, names, self._routing)
        return [name for name in found if self._open(source, name)] if self._barred else found

    def _wide(self, source: str, target: str, width: float) -> bool:
        links = self._net.between(source, target, self._routing)
        return any(link.bandwidth >= width for link in links) and self._open(source, target)

    def _widest(self, source: str, target: str) -> Link:
        parallel = self._net.between(source, target, self._routing)
        return parallel[0] if len(parallel) == 1 else min(parallel, key=lambda link: (-link.bandwidth, link.name))

    def onward(self, name: str, there: set[str], width: float) -> Iterator[Link]:
        """The links from a device into a layer that are at least that wide, by the names of their ends."""
        for target in sorted(self._among(name, there), key=natural):
            parallel = self._net.between(name, target, self._routing)
            yield from sorted((link for link in parallel if link.bandwidth >= width), key=lambda link: link.name)
