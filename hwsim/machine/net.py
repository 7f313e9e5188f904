"""The links of a machine as a graph: each link made when it is first needed, all shortest routes and the widest of them.

The search runs from both ends and meets in the middle, so that a route between two of ten thousand GPUs looks at the few
devices near each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from hwsim.devices import Nic, Switch
from hwsim.formats import natural
from hwsim.machine.layout import Layout
from hwsim.machine.placed import Link, Routing, below

_KEPT: Final = 400_000  # ways between neighbours remembered
BOTH: Final = 2  # of the three numbers of a wire: a to b, b to a, both
_FEW: Final = 64  # neighbours that are looked through one by one

Layers = Sequence[set[str]]
T = TypeVar("T", bound=Hashable)
Scope = tuple[Layout, str, int]  # with its name, and the number that a device has there


class Net:
    """Links between devices by name. A device with a hundred thousand links is no dearer than one with two, unless all
    its neighbours are asked for. With a routing, only its links count."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.made: dict[tuple[str, int, bool], Link] = {}
        self.wire_of: dict[str, tuple[Layout, str, int, int]] = {}  # by capacity of a link made: scope, wire, direction or both
        self._scopes: dict[str, tuple[Scope, ...]] = {}
        self._between: dict[tuple[str, str], tuple[Link, ...]] = {}
        self._neighbours: dict[tuple[str, Routing | None], tuple[str, ...]] = {}
        self._forwards: dict[str, bool] = {}

    def scopes(self, name: str) -> tuple[Scope, ...]:
        """The whole machine, and the machines inside it that a device is in, with its number in each."""
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
        """Number of links that leave a device."""
        return sum(layout.wires.degree(number) for layout, _, number in self.scopes(name))  # integers

    def forwards(self, name: str) -> bool:
        """Whether a device passes traffic on."""
        forwards = self._forwards.get(name)
        if forwards is None:
            spot = self.layout.find(name)
            forwards = self._forwards[name] = spot is not None and spot.part.forwards
        return forwards

    def wait(self, name: str) -> float:
        """Seconds that a device on the way takes."""
        spot = self.layout.find(name)
        model = None if spot is None else spot.part.model
        return model.latency if isinstance(model, Nic | Switch) else 0.0

    def neighbours(self, name: str, routing: Routing | None = None) -> tuple[str, ...]:
        """The devices that links from one lead to."""
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
        """Its neighbours inside a computer: over no network."""
        ends: dict[str, None] = {}
        for layout, prefix, number in self.scopes(name):
            if any(not bundle.model.network for bundle in layout.wires.bundles):
                for wire, end in layout.wires.at(number):
                    if not layout.wires.of(wire)[0].model.network:
                        ends[below(prefix, layout.name(end))] = None
        return list(ends)

    def between(self, source: str, target: str, routing: Routing | None = None) -> tuple[Link, ...]:
        """The links from one device to another."""
        key = source, target
        links = self._between.get(key)
        if links is None:
            if len(self._between) >= _KEPT:
                self._between.clear()
            links = self._between[key] = tuple(self._join(source, target))
        return links if routing is None else tuple(link for link in links if link.routing == routing)

    def among(self, source: str, names: set[str], routing: Routing | None = None) -> list[str]:
        """Those of some devices that links from one lead to."""
        if self.degree(source) <= _FEW:
            return [name for name in self.neighbours(source, routing) if name in names]
        return [name for name in names if self.between(source, name, routing)]

    def leaving(self, name: str) -> list[Link]:
        """All links that leave a device, by the names of their other ends, then by their own."""
        links = [
            self.link(layout, prefix, wire, number)
            for layout, prefix, number in self.scopes(name)
            for wire, _ in layout.wires.at(number)
        ]
        return sorted(links, key=lambda link: (natural(link.target), link.name))

    def called(self, name: str) -> list[Link]:
        """All links of a name, by the names of their ends."""
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
            if child is not None and any(each.name == name for scope in child.scopes() for each in scope.wires.bundles):
                for member in part.names:
                    yield from self._called(child, below(prefix, member), name)

    def drawing(self, capacity: str) -> Link | None:
        """A link that draws from a capacity: one called NAME:A->B, NAME:A--B or NAME:A<->B."""
        _, colon, ends = capacity.rpartition(":")
        for arrow in ("<->", "->", "--") if colon and capacity not in self.wire_of else ():
            at = ends.find(arrow)
            while at >= 0:  # names may have dashes, too
                a, b = ends[:at], ends[at + len(arrow) :]
                if self.layout.find(a) is not None and self.layout.find(b) is not None:
                    self.between(a, b)
                at = ends.find(arrow, at + 1)
        if capacity not in self.wire_of:
            return None
        layout, prefix, wire, which = self.wire_of[capacity]
        return self.link(layout, prefix, wire, int((layout.wires.b if which == 1 else layout.wires.a)[wire]))

    def bandwidths(self, name: str) -> list[float]:
        """Bytes per second of all links that leave a device, in no order; makes no link."""
        bandwidths = []
        for layout, _, number in self.scopes(name):
            for wire, _ in layout.wires.at(number):
                bundle, at = layout.wires.of(wire)
                bandwidths.append(bundle.model.carried() * int(bundle.count[at]))
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
        """The direction of a wire that begins at a device."""
        bundle, at = layout.wires.of(wire)
        a, b = int(bundle.a[at]), int(bundle.b[at])
        back = b == start
        key = prefix, wire, back
        link = self.made.get(key)
        if link is None:
            ends = below(prefix, layout.name(a)), below(prefix, layout.name(b))
            source, target = ends[::-1] if back else ends
            model, capacity, both = bundle.model, f"{bundle.name}:{source}->{target}", ""
            if model.duplex == "half" or model.two_way < 2:
                low, high = sorted(ends, key=natural)
                if model.duplex == "half":
                    capacity = f"{bundle.name}:{low}--{high}"
                else:
                    both = f"{bundle.name}:{low}<->{high}"
            count = int(bundle.count[at])
            bandwidth, latency = model.carried() * count, model.delay()
            link = Link(bundle.name, source, target, model.kind, bandwidth, latency, capacity, model, count, both, bundle.routing)
            self.made[key] = link
            self.wire_of[capacity] = layout, prefix, wire, BOTH if model.duplex == "half" else int(back)
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
    """Everything on shortest routes between two ends, layer by layer, searched from both; None if there is no route.

    Args:
        grow: the layer after one, given the end it was reached from, all seen from there, and all seen from the other end.
        leading: members of a layer that lead to the next one.
        degree: number of neighbours, which decides from where the search goes on.
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
    """Over all links, or the links of one routing. barred: cards whose links to the inside of their computer are left out."""

    def __init__(self, net: Net, routing: Routing | None = None, barred: frozenset[str] = frozenset()) -> None:
        self._net, self._routing, self._barred = net, routing, barred

    def without(self, barred: frozenset[str]) -> Graph:
        """The same without the ways of these cards into their computers."""
        return Graph(self._net, self._routing, barred)

    def layers(self, a: str, b: str) -> list[set[str]] | None:
        """The devices on shortest routes between two, by their distance from a; None if there is no route."""
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
        """The widest bottleneck over all routes through the layers."""
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
        """The route through layers of one device each, over the widest links."""
        return tuple(self._widest(source, target) for (source,), (target,) in pairwise(layers))

    def first(self, layers: Layers, width: float, cards: frozenset[str] = frozenset()) -> tuple[Link, ...]:
        """The first route over links at least that wide: over as many of these cards as it can, then by names."""
        ways: list[dict[str, int]] = [dict.fromkeys(layers[-1], 0)]  # what still reaches the end, over how many of the cards
        for devices in reversed(layers[:-1]):
            beyond = ways[-1]
            onward = {source: [beyond[each] for each in beyond if self._wide(source, each, width)] for source in devices}
            ways.append({source: max(most) + (source in cards) for source, most in onward.items() if most})
        at = next(iter(layers[0]))
        links = []
        for layer in list(reversed(ways))[1:]:
            target = min((each for each in layer if self._wide(at, each, width)), key=lambda each: (-layer[each], natural(each)))
            links.append(self._widest(at, target))
            at = target
        return tuple(links)

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
