"""Routes: fewest hops by the ends' own cards, then the widest bottleneck, then names; or over equally good ones.

Traffic enters and leaves a network by the network cards that are its ends' own (`hwsim.machine.cards`); if these are several,
an equal part of the bytes takes each. A device that is no GPU takes a card that is not its own if that card is nearer to the
other end. Links may say that traffic spreads between them:

single    the first by names, always the same
ecmp      one of the shortest and widest, by a hash of the names of the two ends
adaptive  all of the shortest and widest, an equal part of the bytes over each

The fixed route says where traffic enters and leaves links with a `routing` of their own. Between these two devices, over links
of that routing alone, all routes as short as the fixed one and as wide as the widest are equally good.

Source: ecmp: Hopps, RFC 2992, 2000 (a hash of the flow's ends over next hops of equal cost). Adaptive: Kim, Dally, Scott,
Abts, ISCA 2008, and the packet spraying of Dixit et al., INFOCOM 2013, without the queues that tell how loaded a way is.
Error: real switches hash ports too: two flows between the same ends may part there, and share one way here.
Range: adaptive takes minimal ways only, with equal parts whatever else is on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from math import lcm
from typing import Final

from hwsim.machine.cards import Cards
from hwsim.machine.hosts import Hosts
from hwsim.machine.net import Graph, Layers, Net
from hwsim.machine.placed import Link, NoRoute, Routing
from hwsim.records import dataclass

_KEPT: Final = 200_000
_SPREAD: Final[tuple[Routing, ...]] = ("ecmp", "adaptive")


@dataclass(frozen=True, slots=True)
class Route:
    """The links that traffic takes from one device to another.

    links: the route; if several share the bytes, the one with the longest latency.
    shares: every link that carries a part of the bytes, and the part; empty if all bytes take `links`.
    """

    links: tuple[Link, ...]
    shares: tuple[tuple[Link, float], ...] = ()

    def stops(self, start: str) -> tuple[str, ...]:
        """The devices on the way, both ends included."""
        return (start, *(link.target for link in self.links))


class Routes:
    """Routes between devices. cards: whose is which, where there are any."""

    def __init__(self, net: Net, cards: Cards | None = None) -> None:
        self.net, self._cards = net, cards
        self._all = Graph(net)
        self.hosts = Hosts(net, cards)
        routings = set[Routing]().union(*(layout.wires.routings for layout in net.layout.scopes()))
        self._fabrics = {routing: Graph(net, routing) for routing in _SPREAD if routing in routings}
        self._cache: dict[tuple[str, str], Route | None] = {}

    def find(self, a: str, b: str) -> Route | None:
        """The route from a to b, and over which links the bytes spread; None if there is no route."""
        key = (a, b)
        if key not in self._cache:
            if len(self._cache) >= _KEPT:
                self._cache.clear()
            self._cache[key] = self._search(a, b)
        return self._cache[key]

    def route(self, a: str, b: str) -> Route:
        """As `find`.

        Raises:
            NoRoute: they are not connected.
        """
        route = self.find(a, b)
        if route is None:
            loose = [name for name in (a, b) if not self.net.degree(name)]
            hint = "traffic passes through switches, CPUs, NICs and what says `forwards: true`"
            raise NoRoute(f"there is no route from {a} to {b}", f"no link ends at {' and '.join(loose)}" if loose else hint)
        return route

    def _search(self, a: str, b: str) -> Route | None:
        if a == b:
            return Route(())
        graph, layers = self._all, None
        barred = self._cards.barred(a, b) if self._cards else frozenset()
        if barred:
            graph = self._all.without(barred)
            layers = self.hosts.layers(a, b, own=True) or graph.layers(a, b)
        if layers is None:
            graph, layers = self._all, self.hosts.layers(a, b) or self._all.layers(a, b)
        if layers is None:
            return None
        if all(len(layer) == 1 for layer in layers):  # nothing to choose
            return self._spread(graph.only(layers), (a, b))
        ways = [self._spread(fixed, (a, b, *turn)) for turn, fixed in self._fixed(graph, layers, a, b)]
        if len(ways) == 1:
            return ways[0]
        parts: dict[tuple[str, str, str], tuple[Link, float]] = {}
        for way in ways:
            for link, part in way.shares or [(link, 1.0) for link in way.links]:
                key = link.name, link.source, link.target
                parts[key] = link, parts.get(key, (link, 0.0))[1] + part / len(ways)
        slowest = max(ways, key=lambda way: self._seconds(way.links))  # the first of equals
        return Route(slowest.links, tuple(parts.values()))

    def _fixed(self, graph: Graph, layers: Layers, a: str, b: str) -> list[tuple[tuple[str, ...], tuple[Link, ...]]]:
        """The route by the ends' own cards: one, or one for each card, numbered."""
        width = graph.bottleneck(layers)
        on_way = set().union(*layers)
        ends = [[card for card in self._cards.own(name) if card in on_way] for name in (a, b)] if self._cards else []
        turns = lcm(*(len(own) or 1 for own in ends))
        routes: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[Link, ...]]] = {}
        for turn in range(turns):
            cards = frozenset(own[turn % len(own)] for own in ends if own)
            links = graph.first(layers, width, cards)
            routes.setdefault(tuple(link.target for link in links), ((str(turn),) if turn else (), links))
        return list(routes.values())

    def _spread(self, fixed: tuple[Link, ...], pair: tuple[str, ...]) -> Route:
        """A route with its stretches over links that have a routing of their own."""
        if all(link.routing == "single" for link in fixed):
            return Route(fixed)
        route: list[Link] = []
        shares: list[tuple[Link, float]] = []
        for routing, group in groupby(fixed, key=lambda link: link.routing):
            run = list(group)
            if routing == "single":
                links, parts = run, [(link, 1.0) for link in run]
            else:
                links, parts = self._run(routing, run[0].source, run[-1].target, pair)
            route += links
            shares += parts
        return Route(tuple(route), tuple(shares) if len(shares) > len(route) else ())

    def _seconds(self, links: Iterable[Link]) -> float:
        """Seconds of a signal over them."""
        return math.fsum(link.latency + self.net.wait(link.target) for link in links)

    def _run(self, routing: Routing, start: str, end: str, pair: tuple[str, ...]) -> tuple[list[Link], list[tuple[Link, float]]]:
        """The part of a route that lies on links of one routing: its links, and those that share the bytes."""
        fabric = self._fabrics[routing]
        layers = fabric.layers(start, end) or []  # never empty: the fixed route lies there
        width = fabric.bottleneck(layers)
        steps = [
            [link for name in sorted(layer) for link in fabric.onward(name, beyond, width)] for layer, beyond in pairwise(layers)
        ]
        left = _counts(((link.target, link.source) for step in reversed(steps) for link in step), end)
        if routing == "ecmp":
            from hashlib import blake2b

            number = int.from_bytes(blake2b(" ".join(pair).encode(), digest_size=8).digest()) % left[start]
            chosen = _numbered(steps, left, start, number)
            return chosen, [(link, 1.0) for link in chosen]
        come = _counts(((link.source, link.target) for step in steps for link in step), start)
        parts = [
            (link, come[link.source] * left[link.target] / left[start])
            for step in steps
            for link in step
            if link.source in come and link.target in left
        ]
        return self._slowest([[link for link in step if link.target in left] for step in steps], start), parts

    def _slowest(self, steps: Sequence[Sequence[Link]], start: str) -> list[Link]:
        """The route of the longest latency through these steps; among equals the first by names."""
        longest: dict[str, tuple[float, list[Link]]] = {}
        for step in reversed(steps):
            for link in step:
                after, links = longest.get(link.target, (0.0, []))
                seconds = link.latency + self.net.wait(link.target) + after
                if link.source not in longest or seconds > longest[link.source][0]:
                    longest[link.source] = seconds, [link, *links]
        return longest[start][1]


def _counts(steps: Iterable[tuple[str, str]], start: str) -> dict[str, int]:
    """Number of routes from a device to every other, each step from one layer to the next.

    >>> _counts([("a", "x"), ("a", "y"), ("x", "b"), ("y", "b")], "a")
    {'a': 1, 'x': 1, 'y': 1, 'b': 2}
    """
    counts = {start: 1}
    for source, target in steps:
        if source in counts:
            counts[target] = counts.get(target, 0) + counts[source]
    return counts


def _numbered(steps: Sequence[Sequence[Link]], left: Mapping[str, int], start: str, number: int) -> list[Link]:
    """The way of that number among all, in order of names."""
    route: list[Link] = []
    at = start
    for step in steps:
        for link in step:
            ways = left.get(link.target, 0) if link.source == at else 0
            if number < ways:
                break
            number -= ways
        route.append(link)
        at = link.target
    return route
