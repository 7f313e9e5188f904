"""The links of a machine by the names of their ends: each made when it is asked for, and kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, overload

from hwsim.devices import Nic, Switch
from hwsim.machine.layout import Layout
from hwsim.machine.naming import below
from hwsim.machine.placed import Link, Routing
from hwsim.units import natural

_KEPT: Final = 400_000  # ways between neighbours remembered
_FEW: Final = 64  # neighbours that are looked through one by one

Scope = tuple[Layout, str, int]  # with its name, and the number that a device has there


class Net:
    """Who is linked to whom, and how.  A device with a hundred thousand links is no dearer than one with two, unless all
    its neighbours are asked for.  Where a routing is given, its links alone."""

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
        found = self._scopes.get(name)
        if found is None:
            steps: list[Scope] = []
            layout, prefix, rest = self.layout, "", name
            while True:
                spot = layout.find(rest)
                if spot is None:
                    break
                steps.append((layout, prefix, spot.number))
                head, dot, tail = rest.partition(".")
                own = layout.local(head)
                if not dot or own is None or own[0].child is None:
                    break
                layout, prefix, rest = own[0].child, below(prefix, head), tail
            if len(self._scopes) >= _KEPT:
                self._scopes.clear()
            found = self._scopes[name] = tuple(steps)
        return found

    def degree(self, name: str) -> int:
        """How many links leave a device."""
        return sum(layout.wires.degree(number) for layout, _, number in self.scopes(name))  # whole

    def forwards(self, name: str) -> bool:
        """Whether a device passes traffic on."""
        found = self._forwards.get(name)
        if found is None:
            spot = self.layout.find(name)
            found = self._forwards[name] = spot is not None and spot.part.forwards
        return found

    def wait(self, name: str) -> float:
        """Seconds that a device on the way takes."""
        spot = self.layout.find(name)
        model = None if spot is None else spot.part.model
        return model.latency if isinstance(model, Nic | Switch) else 0.0

    def neighbours(self, name: str, routing: Routing | None = None) -> tuple[str, ...]:
        """The devices that links from one lead to."""
        key = name, routing
        found = self._neighbours.get(key)
        if found is None:
            names: dict[str, None] = {}
            for layout, prefix, number in self.scopes(name):
                for wire, other in layout.wires.at(number):
                    if routing is None or layout.wires.of(wire)[0].routing == routing:
                        names[below(prefix, layout.name(other))] = None
            found = self._neighbours[key] = tuple(names)
        return found

    def near(self, name: str) -> list[str]:
        """Its neighbours inside a computer: over no network."""
        found: dict[str, None] = {}
        for layout, prefix, number in self.scopes(name):
            if any(not bundle.model.network for bundle in layout.wires.bundles):
                for wire, other in layout.wires.at(number):
                    if not layout.wires.of(wire)[0].model.network:
                        found[below(prefix, layout.name(other))] = None
        return list(found)

    def between(self, source: str, target: str, routing: Routing | None = None) -> tuple[Link, ...]:
        """The links from one device to another."""
        key = source, target
        found = self._between.get(key)
        if found is None:
            if len(self._between) >= _KEPT:
                self._between.clear()
            found = self._between[key] = tuple(self._join(source, target))
        return found if routing is None else tuple(link for link in found if link.routing == routing)

    def among(self, source: str, names: set[str], routing: Routing | None = None) -> list[str]:
        """Those of some devices that links from one lead to."""
        if self.degree(source) <= _FEW:
            return [name for name in self.neighbours(source, routing) if name in names]
        return [name for name in names if self.between(source, name, routing)]

    def leaving(self, name: str) -> list[Link]:
        """All links that leave a device, by the names of their other ends, then by their own."""
        found = [
            self._link(layout, prefix, wire, number)
            for layout, prefix, number in self.scopes(name)
            for wire, _ in layout.wires.at(number)
        ]
        return sorted(found, key=lambda link: (natural(link.target), link.name))

    def called(self, name: str) -> list[Link]:
        """All links of a name, by the names of their ends."""
        found = list(self._called(self.layout, "", name))
        return sorted(found, key=lambda link: (natural(link.source), natural(link.target)))

    def _called(self, layout: Layout, prefix: str, name: str) -> Iterator[Link]:
        for first, bundle in zip(layout.wires.first(), layout.wires.bundles, strict=True):
            if bundle.name == name:
                for wire, (a, b) in enumerate(zip(bundle.a.tolist(), bundle.b.tolist(), strict=True), first):
                    yield self._link(layout, prefix, wire, a)
                    yield self._link(layout, prefix, wire, b)
        for part in layout.parts:
            child = part.child
            if child is not None and any(each.name == name for scope in child.scopes() for each in scope.wires.bundles):
                for own in part.names:
                    yield from self._called(child, below(prefix, own), name)

    def drawing(self, capacity: str) -> list[Link]:
        """The links that draw from a capacity: one called NAME:A->B, NAME:A--B or NAME:A<->B."""
        _, colon, ends = capacity.rpartition(":")
        for arrow in ("<->", "->", "--") if colon else ():
            at = ends.find(arrow)
            while at >= 0:  # names may have dashes, too
                a, b = ends[:at], ends[at + len(arrow) :]
                if self.layout.find(a) is not None and self.layout.find(b) is not None:
                    found = [link for link in self.between(a, b) if capacity in (link.capacity, link.both)]
                    if found:
                        return found
                at = ends.find(arrow, at + 1)
        return []

    def bandwidths(self, name: str) -> list[float]:
        """Bytes per second of all links that leave a device, in no order; makes no link."""
        found = []
        for layout, _, number in self.scopes(name):
            for wire, _ in layout.wires.at(number):
                bundle, at = layout.wires.of(wire)
                found.append(bundle.model.carried() * int(bundle.count[at]))
        return found

    def _join(self, source: str, target: str) -> Iterator[Link]:
        for (layout, prefix, here), (other, same, there) in zip(self.scopes(source), self.scopes(target), strict=False):
            if layout is not other or prefix != same:
                return
            wires = layout.wires
            start, end = (here, there) if wires.degree(here) <= wires.degree(there) else (there, here)
            for wire, far in wires.at(start):
                if far == end:
                    yield self._link(layout, prefix, wire, here)

    def _link(self, layout: Layout, prefix: str, wire: int, start: int) -> Link:
        """The direction of a wire that begins at a device."""
        bundle, at = layout.wires.of(wire)
        a, b = int(bundle.a[at]), int(bundle.b[at])
        back = b == start
        key = prefix, wire, back
        found = self.made.get(key)
        if found is None:
            ends = below(prefix, layout.name(a)), below(prefix, layout.name(b))
            found = self.made[key] = bundle.link(at, *ends, back=back)
            half = found.model.duplex == "half"
            self.wire_of[found.capacity] = layout, prefix, wire, 2 if half else int(back)
            if found.both:
                self.wire_of[found.both] = layout, prefix, wire, 2
        return found


class Links(Sequence[Link]):
    """All links, by the names of their ends, then by their own.  `len` costs nothing; to go through them makes them all."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._count = 2 * wires_in(net.layout)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Link]:
        net = self._net
        for name in net.layout.walk(lambda part: part.names if part.child is None else ()):
            yield from net.leaving(name)

    @overload
    def __getitem__(self, at: int) -> Link: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Link, ...]: ...
    def __getitem__(self, at: int | slice) -> Link | tuple[Link, ...]:
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} links>"


def wires_in(layout: Layout) -> int:
    """Connections, at any depth."""
    inside = sum(len(part.names) * wires_in(part.child) for part in layout.parts if part.child is not None)  # whole
    return len(layout.wires) + inside
