"""Links of a machine as a graph, and the search for all shortest routes and the widest of them.

Links are created on first use. The search proceeds from both ends and meets in the middle, so that a route between two of ten
thousand GPUs visits only the few devices near each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from hwsim.devices import Nic, Switch
from hwsim.formats import natural
from hwsim.machine.contents import Link, Routing, below
from hwsim.machine.layout import Layout

_KEPT: Final = 400_000  # maximum number of cached pairs of neighbours
BOTH: Final = 2  # third of the three numbers of a wire: a to b, b to a, both
_FEW: Final = 64  # number of links up to which all neighbours are enumerated

Layers = Sequence[set[str]]
T = TypeVar("T", bound=Hashable)
Scope = tuple[Layout, str, int]  # layout, name of the scope, number of a device there


class Net:
    """A graph of links between devices by name.

    The cost of a lookup does not depend on the number of links of a device, except for lookups of all neighbours. Methods with
    `routing` consider only links with that routing.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.made: dict[tuple[str, int, bool], Link] = {}
        self.wire_of: dict[
            str, tuple[Layout, str, int, int]
        ] = {}  # by capacity of a created link: scope, name, wire, direction or BOTH
        self._scopes: dict[str, tuple[Scope, ...]] = {}
        self._between: dict[tuple[str, str], tuple[Link, ...]] = {}
        self._neighbours: dict[tuple[str, Routing | None], tuple[str, ...]] = {}
        self._forwards: dict[str, bool] = {}

    def scopes(self, name: str) -> tuple[Scope, ...]:
        """Return the whole machine and the inner machines around a device, with the number of the device in each."""
        scopes = self._scopes.get(name)
        if scopes is None:
            steps: list[Scope] = []
            layout, prefix, rest = self.layout, "", name
            while True:
                spot = layout.find(rest)
                if spot is None:
                    break
                steps.append((layout, prefix, spot.number))
                head, dot, tail = rest.partition(".")
                member = layout.local(head)
                if not dot or member is None or member[0].child is None:
                    break
                layout, prefix, rest = member[0].child, below(prefix, head), tail
            if len(self._scopes) >= _KEPT:
                self._scopes.clear()
            scopes = self._scopes[name] = tuple(steps)
        return scopes

    def degree(self, name: str) -> int:
        """Return the number of links that leave a device."""
        return sum(layout.wires.degree(number) for layout, _, number in self.scopes(name))  # integers

    def forwards(self, name: str) -> bool:
        """Return whether a device forwards traffic."""
        forwards = self._forwards.get(name)
        if forwards is None:
            spot = self.layout.find(name)
            forwards = self._forwards[name] = spot is not None and spot.part.forwards
        return forwards

    def wait(self, name: str) -> float:
        """Return the latency (s) of a device on a route."""
        spot = self.layout.find(name)
        model = None if spot is None else spot.part.model
        return model.latency if isinstance(model, Nic | Switch) else 0.0

    def neighbours(self, name: str, routing: Routing | None = None) -> tuple[str, ...]:
        """Return the devices to which a device is linked."""
        key = name, routing
        names = self._neighbours.get(key)
        if names is None:
            ends: dict[str, None] = {}
            for layout, prefix, number in self.scopes(name):
                for wire, end in layout.wires.at(number):
                    if routing is None or layout.wires.of(wire)[0].routing == routing:
                        ends[below(prefix, layout.name(end))] = None
            names = self._neighbours[key] = tuple(ends)
        return names

    def near(self, name: str) -> list[str]:
        """Return the neighbours over links that are not network links."""
        ends: dict[str, None] = {}
        for layout, prefix, number in self.scopes(name):
            if any(not bundle.model.network for bundle in layout.wires.bundles):
                for wire, end in layout.wires.at(number):
                    if not layout.wires.of(wire)[0].model.network:
                        ends[below(prefix, layout.name(end))] = None
        return list(ends)

    def between(self, source: str, target: str, routing: Routing | None = None) -> tuple[Link, ...]:
        """Return the links from one device to another."""
        key = source, target
        links = self._between.get(key)
        if links is None:
            if len(self._between) >= _KEPT:
                self._between.clear()
            links = self._between[key] = tuple(self._join(source, target))
        return links if routing is None else tuple(link for link in links if link.routing == routing)

    def among(self, source: str, names: set[str], routing: Routing | None = None) -> list[str]:
        """Return the devices in `names` that are linked to a device."""
        if self.degree(source) <= _FEW:
            return [name for name in self.neighbours(source, routing) if name in names]
        return [name for name in names if self.between(source, name, routing)]

    def leaving(self, name: str) -> list[Link]:
        """Return all links that leave a device, ordered by target, then by name of the link."""
        links = [
            self.link(layout, prefix, wire, number)
            for layout, prefix, number in self.scopes(name)
            for wire, _ in layout.wires.at(number)
        ]
        return sorted(links, key=lambda link: (natural(link.target), link.name))

    def called(self, name: str) -> list[Link]:
        """Return all links of a name, ordered by their ends."""
        found = list(self._called(self.layout, "", name))
        return sorted(found, key=lambda link: (natural(link.source), natural(link.target)))

    def _called(self, layout: Layout, prefix: str, name: str) -> Iterator[Link]:
        for first, bundle in zip(layout.wires.starts, layout.wires.bundles, strict=True):
            if bundle.name == name:
                for wire, (a, b) in enumerate(zip(bundle.a.tolist(), bundle.b.tolist(), strict=True), first):
                    yield self.link(layout, prefix, wire, a)
                    yield self.link(layout, prefix, wire, b)
        for part in layout.parts:
            child = part.child
            if child is not None and any(bundle.name == name for scope in child.scopes() for bundle in scope.wires.bundles):
                for member in part.names:
                    yield from self._called(child, below(prefix, member), name)

    def drawing(self, capacity: str) -> Link | None:
        """Return a link that draws from a capacity NAME:A->B, NAME:A--B or NAME:A<->B; None if there is none."""
        _, colon, ends = capacity.rpartition(":")
        for arrow in ("<->", "->", "--") if colon and capacity not in self.wire_of else ():
            index = ends.find(arrow)
            while index >= 0:  # names can contain dashes
                a, b = ends[:index], ends[index + len(arrow) :]
                if self.layout.find(a) is not None and self.layout.find(b) is not None:
                    self.between(a, b)
                index = ends.find(arrow, index + 1)
        if capacity not in self.wire_of:
            return None
        layout, prefix, wire, slot = self.wire_of[capacity]
        return self.link(layout, prefix, wire, int((layout.wires.b if slot == 1 else layout.wires.a)[wire]))

    def bandwidths(self, name: str) -> list[float]:
        """Return the bandwidths (bytes/s) of all links that leave a device, unordered, without creating links."""
        bandwidths = []
        for layout, _, number in self.scopes(name):
            for wire, _ in layout.wires.at(number):
                bundle, row = layout.wires.of(wire)
                bandwidths.append(bundle.model.carried() * int(bundle.count[row]))
        return bandwidths

    def _join(self, source: str, target: str) -> Iterator[Link]:
        for (layout, prefix, start_number), (same_layout, same_prefix, end_number) in zip(
            self.scopes(source), self.scopes(target), strict=False
        ):
            if layout is not same_layout or prefix != same_prefix:
                return
            wires = layout.wires
            start, end = (
                (start_number, end_number)
                if wires.degree(start_number) <= wires.degree(end_number)
                else (end_number, start_number)
            )
            for wire, far in wires.at(start):
                if far == end:
                    yield self.link(layout, prefix, wire, start_number)

    def link(self, layout: Layout, prefix: str, wire: int, start: int) -> Link:
        """Return the link of a wire in the direction that starts at a device."""
        bundle, row = layout.wires.of(wire)
        a, b = int(bundle.a[row]), int(bundle.b[row])
        is_reversed = b == start
        key = prefix, wire, is_reversed
        link = self.made.get(key)
        if link is None:
            ends = below(prefix, layout.name(a)), below(prefix, layout.name(b))
            source, target = ends[::-1] if is_reversed else ends
            model, capacity, both = bundle.model, f"{bundle.name}:{source}->{target}", ""
            if model.duplex == "half" or model.two_way < 2:
                low, high = sorted(ends, key=natural)
                if model.duplex == "half":
                    capacity = f"{bundle.name}:{low}--{high}"
                else:
                    both = f"{bundle.name}:{low}<->{high}"
            count = int(bundle.count[row])
            bandwidth, latency = model.carried() * count, model.delay()
            link = Link(bundle.name, source, target, model.kind, bandwidth, latency, capacity, model, count, both, bundle.routing)
            self.made[key] = link
            self.wire_of[capacity] = layout, prefix, wire, BOTH if model.duplex == "half" else int(is_reversed)
            if both:
                self.wire_of[both] = layout, prefix, wire, BOTH
        return link


def meet(
    a: T,
    b: T,
    grow: Callable[[set[T], T, set[T], set[T]], set[T]],
    leading: Callable[[set[T], set[T]], set[T]],
    degree: Callable[[T], int],
) -> list[set[T]] | None:
    """Return all nodes on shortest routes between two ends, layer by layer; None if there is no route.

    Args:
        grow: function that returns the next layer, given a layer, the end from which it was reached, all nodes seen from that
            end, and all nodes seen from the other end.
        leading: function that returns the members of a layer that are linked to the next layer.
        degree: function that returns the number of neighbours; the side with fewer is extended first.
    """
    near, far = [{a}], [{b}]
    seen_near, seen_far = {a}, {b}
    while not seen_near & seen_far:
        forward = sum(map(degree, near[-1])) <= sum(map(degree, far[-1]))  # integers
        layers, seen, goal = (near, seen_near, seen_far) if forward else (far, seen_far, seen_near)
        layer = grow(layers[-1], a if forward else b, seen, goal)
        if not layer:
            return None
        seen |= layer
        layers.append(layer)
    middle = near[-1] & far[-1]
    sides: list[list[set[T]]] = []
    for layers in (near, far):
        kept, reached = [], middle
        for layer in reversed(layers[:-1]):
            reached = leading(layer, reached)
            kept.append(reached)
        sides.append(kept)
    return [*reversed(sides[0]), middle, *sides[1]]


class Graph:
    """A graph of all links, or of the links of one routing; barred: NICs whose links to the inside of their node are ignored."""

    def __init__(self, net: Net, routing: Routing | None = None, barred: frozenset[str] = frozenset()) -> None:
        self._net, self._routing, self._barred = net, routing, barred

    def without(self, barred: frozenset[str]) -> Graph:
        """Return a copy that ignores the links of these NICs to the inside of their nodes."""
        return Graph(self._net, self._routing, barred)

    def layers(self, a: str, b: str) -> list[set[str]] | None:
        """Return the devices on shortest routes from a to b by distance from a; None if there is no route."""
        net = self._net

        def grow(layer: set[str], end: str, seen: set[str], goal: set[str]) -> set[str]:
            return {
                target
                for source in layer
                if source == end or net.forwards(source)
                for target in net.neighbours(source, self._routing)
                if target not in seen and (net.forwards(target) or target in goal) and self._open(source, target)
            }

        def leading(layer: set[str], beyond: set[str]) -> set[str]:
            return {name for name in layer if self._among(name, beyond)}

        return meet(a, b, grow, leading, net.degree)

    def bottleneck(self, layers: Layers) -> float:
        """Return the widest bottleneck (bytes/s) of all routes through the layers."""
        widths = dict.fromkeys(layers[0], float("inf"))
        for layer, beyond in pairwise(layers):
            reached: dict[str, float] = {}
            for source in layer:
                for target in self._among(source, beyond):
                    width = min(widths.get(source, 0.0), self._widest(source, target).bandwidth)
                    reached[target] = max(reached.get(target, 0.0), width)
            widths = reached
        return max(widths.values())

    def only(self, layers: Layers) -> tuple[Link, ...]:
        """Return the route over the widest links through layers of one device each."""
        return tuple(self._widest(source, target) for (source,), (target,) in pairwise(layers))

    def first(self, layers: Layers, width: float, cards: frozenset[str] = frozenset()) -> tuple[Link, ...]:
        """Return the first route over links of at least `width`: the route through the most NICs, then the first by names."""
        # By layer from the end: maximum number of the NICs on a route from each device to the end.
        card_counts: list[dict[str, int]] = [dict.fromkeys(layers[-1], 0)]
        for devices in reversed(layers[:-1]):
            beyond = card_counts[-1]
            onward = {source: [beyond[target] for target in beyond if self._wide(source, target, width)] for source in devices}
            card_counts.append({source: max(counts) + (source in cards) for source, counts in onward.items() if counts})
        source = next(iter(layers[0]))
        links = []
        for counts in list(reversed(card_counts))[1:]:
            targets = (target for target in counts if self._wide(source, target, width))
            target = min(targets, key=lambda target: (-counts[target], natural(target)))
            links.append(self._widest(source, target))
            source = target
        return tuple(links)

    def _open(self, source: str, target: str) -> bool:
        """Return whether no barred NIC is at the inner end of a link between two neighbours."""
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

    def onward(self, name: str, layer: set[str], width: float) -> Iterator[Link]:
        """Iterate over the links from a device into a layer of at least `width`, ordered by target."""
        for target in sorted(self._among(name, layer), key=natural):
            parallel = self._net.between(name, target, self._routing)
            yield from sorted((link for link in parallel if link.bandwidth >= width), key=lambda link: link.name)
