"""Routes between devices: fewest hops through the ends' own NICs, then widest bottleneck, then names; or several equal routes.

Traffic enters and leaves a network through the NICs of its two ends (`hwsim.machine.nic_assignment`); several NICs carry equal
parts of the bytes. A device that is not a GPU uses another NIC if that is nearer to the other end. Links with `routing`
distribute traffic:

single    the first route in order of names, always the same
ecmp      one of the shortest and widest routes, by a hash of the names of the two ends
adaptive  all of the shortest and widest routes, with equal parts of the bytes

First, the fixed route (`single`) is found. Each stretch of it over links with another routing is then replaced: between the two
ends of the stretch, over links of that routing, all routes as short as the stretch and as wide as the widest are equal.

Source: ecmp: Hopps, RFC 2992, 2000 (a hash of the flow's ends over next hops of equal cost). Adaptive: Kim, Dally, Scott,
Abts, ISCA 2008, and the packet spraying of Dixit et al., INFOCOM 2013, without queues that show the load of a route.
Error: real switches also hash ports, so that two flows between the same ends can use different routes; here they share one.
Range: adaptive routing uses minimal routes only, with equal parts regardless of other traffic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from math import lcm
from typing import Final

from hwsim.machine.contents import Link, NoRoute, Routing
from hwsim.machine.hosts import Hosts
from hwsim.machine.net import Graph, Layers, Net
from hwsim.machine.nic_assignment import NicAssignment
from hwsim.records import dataclass

_KEPT: Final = 200_000  # maximum number of cached routes
_SPREAD: Final[tuple[Routing, ...]] = ("ecmp", "adaptive")


@dataclass(frozen=True, slots=True)
class Route:
    """A route from one device to another.

    Args:
        links: links of the route; if several routes share the bytes, those of the route with the longest latency.
        shares: (link, fraction of the bytes) of all routes; empty if `links` carry all bytes.
    """

    links: tuple[Link, ...]
    shares: tuple[tuple[Link, float], ...] = ()

    def stops(self, start: str) -> tuple[str, ...]:
        """Return the devices on the route, with both ends."""
        return (start, *(link.target for link in self.links))


class Routes:
    """A calculator of routes; cards: assignment of NICs to devices, if there are NICs."""

    def __init__(self, net: Net, cards: NicAssignment | None = None) -> None:
        self.net, self._cards = net, cards
        self._all = Graph(net)
        self.hosts = Hosts(net, cards)
        routings = set[Routing]().union(*(layout.wires.routings for layout in net.layout.scopes()))
        self._fabrics = {routing: Graph(net, routing) for routing in _SPREAD if routing in routings}
        self._cache: dict[tuple[str, str], Route | None] = {}

    def find(self, a: str, b: str) -> Route | None:
        """Return the route from a to b; None if there is none."""
        key = (a, b)
        if key not in self._cache:
            if len(self._cache) >= _KEPT:
                self._cache.clear()
            self._cache[key] = self._search(a, b)
        return self._cache[key]

    def route(self, a: str, b: str) -> Route:
        """Return the route from a to b.

        Raises:
            NoRoute: the devices are not connected.
        """
        route = self.find(a, b)
        if route is None:
            loose = [name for name in (a, b) if not self.net.degree(name)]
            hint = "traffic passes only through switches, CPUs, NICs and devices with `forwards: true`"
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
        if all(len(layer) == 1 for layer in layers):  # only one route
            return self._spread(graph.only(layers), (a, b))
        routes = [self._spread(fixed, (a, b, *turn)) for turn, fixed in self._fixed(graph, layers, a, b)]
        if len(routes) == 1:
            return routes[0]
        parts: dict[tuple[str, str, str], tuple[Link, float]] = {}
        for route in routes:
            for link, part in route.shares or [(link, 1.0) for link in route.links]:
                key = link.name, link.source, link.target
                parts[key] = link, parts.get(key, (link, 0.0))[1] + part / len(routes)
        slowest = max(routes, key=lambda route: self._seconds(route.links))  # the first among equals
        return Route(slowest.links, tuple(parts.values()))

    def _fixed(self, graph: Graph, layers: Layers, a: str, b: str) -> list[tuple[tuple[str, ...], tuple[Link, ...]]]:
        """Return the fixed routes through the ends' own NICs, each with a number for the hash (none for the first)."""
        width = graph.bottleneck(layers)
        devices = set().union(*layers)
        ends = [[card for card in self._cards.own(name) if card in devices] for name in (a, b)] if self._cards else []
        turns = lcm(*(len(own) or 1 for own in ends))
        routes: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[Link, ...]]] = {}
        for turn in range(turns):
            cards = frozenset(own[turn % len(own)] for own in ends if own)
            links = graph.first(layers, width, cards)
            routes.setdefault(tuple(link.target for link in links), ((str(turn),) if turn else (), links))
        return list(routes.values())

    def _spread(self, fixed: tuple[Link, ...], pair: tuple[str, ...]) -> Route:
        """Return the route after ECMP or adaptive routing, which replaces each stretch over such links."""
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
        """Return the latency (s) of links and of the devices between them."""
        return math.fsum(link.latency + self.net.wait(link.target) for link in links)

    def _run(self, routing: Routing, start: str, end: str, pair: tuple[str, ...]) -> tuple[list[Link], list[tuple[Link, float]]]:
        """Return one stretch over links of one routing: the links of its slowest route, and (link, part) of all routes."""
        fabric = self._fabrics[routing]
        layers = fabric.layers(start, end) or []  # never empty: it contains the fixed route
        width = fabric.bottleneck(layers)
        steps = [
            [link for name in sorted(layer) for link in fabric.onward(name, beyond, width)] for layer, beyond in pairwise(layers)
        ]
        routes_to_end = _counts(((link.target, link.source) for step in reversed(steps) for link in step), end)
        if routing == "ecmp":
            from hashlib import blake2b

            number = int.from_bytes(blake2b(" ".join(pair).encode(), digest_size=8).digest()) % routes_to_end[start]
            chosen = _numbered(steps, routes_to_end, start, number)
            return chosen, [(link, 1.0) for link in chosen]
        routes_from_start = _counts(((link.source, link.target) for step in steps for link in step), start)
        parts = [
            (link, routes_from_start[link.source] * routes_to_end[link.target] / routes_to_end[start])
            for step in steps
            for link in step
            if link.source in routes_from_start and link.target in routes_to_end
        ]
        return self._slowest([[link for link in step if link.target in routes_to_end] for step in steps], start), parts

    def _slowest(self, steps: Sequence[Sequence[Link]], start: str) -> list[Link]:
        """Return the route with the longest latency through these steps, the first in order of names among equals."""
        longest: dict[str, tuple[float, list[Link]]] = {}
        for step in reversed(steps):
            for link in step:
                after, links = longest.get(link.target, (0.0, []))
                seconds = link.latency + self.net.wait(link.target) + after
                if link.source not in longest or seconds > longest[link.source][0]:
                    longest[link.source] = seconds, [link, *links]
        return longest[start][1]


def _counts(steps: Iterable[tuple[str, str]], start: str) -> dict[str, int]:
    """Return the number of routes from a device to every other; steps: (from, to) pairs, layer by layer.

    >>> _counts([("a", "x"), ("a", "y"), ("x", "b"), ("y", "b")], "a")
    {'a': 1, 'x': 1, 'y': 1, 'b': 2}
    """
    counts = {start: 1}
    for source, target in steps:
        if source in counts:
            counts[target] = counts.get(target, 0) + counts[source]
    return counts


def _numbered(steps: Sequence[Sequence[Link]], routes_to_end: Mapping[str, int], start: str, number: int) -> list[Link]:
    """Return the route of a number among all, in order of names."""
    route: list[Link] = []
    device = start
    for step in steps:
        for link in step:
            count = routes_to_end.get(link.target, 0) if link.source == device else 0
            if number < count:
                break
            number -= count
        route.append(link)
        device = link.target
    return route
