"""Shortest ways between equal machines without a search through all of them: out of one, over the switches, into the other.

A host is a machine inside the machine, or a device that passes nothing on; the core is every other device.
If wires outside lead from hosts to the core or inside the core, and no route through a third host is as short as one around
it, the shortest routes are put together from

    from a device to the ports of its host      the same for all equal hosts
    from the switch at a port to another        the same for all hosts at these switches
    from the ports of the other host inward

These are exactly the devices that a search over the whole would find; where one of the conditions fails, that search is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from hwsim.machine.attached import Attached, Owners
from hwsim.machine.cards import Cards
from hwsim.machine.layout import Layout, Part
from hwsim.machine.net import Graph, Net, meet
from hwsim.machine.placed import below

_MOST_CHECKS: Final = 200_000


class Port(NamedTuple):
    """A way out of a host: from one of its devices, by its number there, to a device of the core, by its number."""

    local: int
    core: int


class Exit(NamedTuple):
    """A way from a device to the core: hops, the last device of the host and the first of the core, the devices passed before
    that, layer by layer."""

    hops: int
    local: int
    core: int
    layers: tuple[frozenset[str], ...]


class Hosts:
    """Hosts of the outermost scope of a machine. owner, starts, part_of_host: see `Owners`. cards: whose is which."""

    def __init__(self, net: Net, cards: Cards | None = None) -> None:
        self._layout = layout = net.layout
        self._cards = cards
        self.owned = Owners.of(layout)
        self.owner, self.starts, self.part_of_host = self.owned.owner, self.owned.starts, self.owned.part
        self._inner: dict[int, Graph] = {}
        self._ways: dict[tuple[int, int, int, frozenset[str]], tuple[frozenset[str], ...] | None] = {}
        self._within: dict[tuple[int, int, int], list[set[str]] | None] = {}
        self._exits: dict[tuple[int, int, int, bool], tuple[Exit, ...]] = {}
        self._latest: tuple[tuple[int, int], tuple[int, list[tuple[Exit, tuple[frozenset[int], ...], Exit]]]] = (-1, -1), (-1, [])
        self._barred_cards: dict[tuple[int, int], frozenset[str]] = {}  # by part, or by host, and number in it
        self._core_layers: dict[tuple[int, int], tuple[frozenset[int], ...] | None] = {}

    @cached_property
    def attached(self) -> Attached | None:
        """The wires between hosts and the core; None where hosts are linked to hosts."""
        return self.owned.attached(self._layout)

    @cached_property
    def apart(self) -> bool:
        """Whether no shortest way between two passes through a third."""
        attached = self.attached
        if attached is None:
            return False
        checked = 0
        _, representatives = np.unique(attached.kind, return_index=True)
        for host in representatives.tolist():
            part = self._layout.parts[int(self.part_of_host[host])]
            ports = self._ports(attached, host)
            for at, port in enumerate(ports):
                for next_port in ports[at + 1 :]:
                    checked += 1
                    if checked > _MOST_CHECKS or (port.core != next_port.core and not self._around(part, port, next_port)):
                        return False
        return True

    def layers(self, a: str, b: str, *, own: bool = False) -> list[set[str]] | None:
        """The devices on shortest routes between two by their distance from a; None where only a search can tell.

        own: over the ends' own cards alone.
        """
        if not self.apart:
            return None
        start, end = self._layout.find(a), self._layout.find(b)
        return None if start is None or end is None else self._layers(start.number, end.number, own=own)

    def _layers(self, a: int, b: int, *, own: bool) -> list[set[str]] | None:
        h, k = int(self.owner[a]), int(self.owner[b])
        if h == k and h >= 0:
            return None if own else self._inside(a, b, h)
        best, joined = self._shortest(a, b, own=own)
        if not joined:
            return None
        layers: list[set[str]] = [set() for _ in range(best + 1)]
        name = self._layout.name
        for out, core, into in joined:
            for at, names in enumerate(out.layers):
                layers[at].update(self._named(h, names))
            for at, numbers in enumerate(core, len(out.layers)):
                layers[at].update(name(number) for number in numbers)
            for at, names in enumerate(into.layers):
                layers[best - at].update(self._named(k, names))
        return layers

    def alike(self, a: int, b: int) -> bool:
        """Whether the devices on shortest ways between two are in the same order by name for all pairs like these.

        They are where all that are equally far are in one host, or all in the core.
        """
        h, k = int(self.owner[a]), int(self.owner[b])
        if h == k and h >= 0:
            return self._inside(a, b, h) is not None
        return len({(out.hops, into.hops) for out, _, into in self.shortest(a, b)[1]}) == 1

    def shortest(self, a: int, b: int) -> tuple[int, list[tuple[Exit, tuple[frozenset[int], ...], Exit]]]:
        """Hops between devices of different hosts, and all routes with that number: out, over the core, in.

        Over the ends' own cards, where there are such ways.
        """
        if self._latest[0] != (a, b):
            by_own_cards = self._shortest(a, b, own=True)
            self._latest = (a, b), by_own_cards if by_own_cards[1] else self._shortest(a, b, own=False)
        return self._latest[1]

    def _shortest(self, a: int, b: int, *, own: bool) -> tuple[int, list[tuple[Exit, tuple[frozenset[int], ...], Exit]]]:
        leaving = self._exits_of(a, int(self.owner[a]), own=own)
        entering = self._exits_of(b, int(self.owner[b]), own=own)
        best = -1
        joined: list[tuple[Exit, tuple[frozenset[int], ...], Exit]] = []
        for out in leaving:
            for into in entering:
                if 0 <= best < out.hops + into.hops + (out.core != into.core):
                    continue
                core = self.core_layers(out.core, into.core)
                if core is None:
                    continue
                total = out.hops + len(core) - 1 + into.hops
                if best < 0 or total < best:
                    best, joined = total, []
                if total == best:
                    joined.append((out, core, into))
        return best, joined

    def core_layers(self, s: int, t: int) -> tuple[frozenset[int], ...] | None:
        """The devices of the core on shortest ways between two of them that stay in it."""
        key = s, t
        if key not in self._core_layers:
            layers = meet(s, t, self._grow, self._leading, lambda number: len(self._neighbours.get(number, ())))
            self._core_layers[key] = None if layers is None else tuple(map(frozenset, layers))
        return self._core_layers[key]

    def _grow(self, layer: set[int], _end: int, seen: set[int], _goal: set[int]) -> set[int]:
        return {other for number in layer for other in self._neighbours.get(number, ())} - seen

    def _leading(self, layer: set[int], beyond: set[int]) -> set[int]:
        """Those of a layer that are linked to the next; looked for from the side with fewer links."""
        near = self._neighbours
        if sum(len(near.get(number, ())) for number in layer) < sum(len(near.get(number, ())) for number in beyond):
            return {number for number in layer if not beyond.isdisjoint(near.get(number, ()))}
        return layer & {other for number in beyond for other in near.get(number, ())}

    def _inside(self, a: int, b: int, host: int) -> list[set[str]] | None:
        """Within one host, where every way around is longer."""
        start = int(self.starts[host])
        part = self._layout.parts[int(self.part_of_host[host])]
        if part.child is None:
            return [{self._layout.name(a)}]
        key = id(part.child), a - start, b - start
        if key not in self._within:
            names = part.child.name(a - start), part.child.name(b - start)
            self._within[key] = self._graph(part.child).layers(*names)
        layers = self._within[key]
        if layers is None:
            return None
        leaving, entering = self._exits_of(a, host), self._exits_of(b, host)
        if leaving and entering and len(layers) - 1 >= leaving[0].hops + entering[0].hops:
            return None
        return [set(self._named(host, names)) for names in layers]

    def _exits_of(self, number: int, host: int, *, own: bool = False) -> tuple[Exit, ...]:
        """The nearest first. own: over the device's own cards alone."""
        attached = self.attached
        if host < 0 or attached is None:
            return (Exit(0, -1, number, ()),)
        key = int(self.part_of_host[host]), number - int(self.starts[host]), int(attached.kind[host]), own
        exits = self._exits.get(key)
        if exits is None:
            part = self._layout.parts[key[0]]
            barred = self._barred(number, host) if own and part.child is not None else frozenset()
            ways = self._leave(part, key[1], self._ports(attached, host), barred)
            exits = self._exits[key] = tuple(sorted(ways, key=lambda one: one.hops))
        return exits

    @cached_property
    def closed(self) -> bool:
        """Whether networks alone lead out of hosts, so that the computers of equal hosts are equal."""
        inside = [bundle for bundle in self._layout.wires.bundles if not bundle.model.network]
        return not any(bool(((self.owner[each.a] >= 0) | (self.owner[each.b] >= 0)).any()) for each in inside)

    def _barred(self, number: int, host: int) -> frozenset[str]:
        """Cards of a device's host that are not its own, by their names there."""
        key = int(self.part_of_host[host]) if self.closed else -1 - host, number - int(self.starts[host])
        if key not in self._barred_cards:
            self._barred_cards[key] = self._find_barred(number)
        return self._barred_cards[key]

    def _find_barred(self, number: int) -> frozenset[str]:
        name = self._layout.name(number)
        others = self._cards.others(name) - {name} if self._cards else frozenset()
        prefix = name.partition(".")[0] + "."
        return frozenset(other.removeprefix(prefix) for other in others if other.startswith(prefix))

    def _leave(self, part: Part, local: int, ports: Iterable[Port], barred: frozenset[str]) -> Iterable[Exit]:
        child = part.child
        for port in dict.fromkeys(ports):
            if child is None:
                yield Exit(1, port.local, port.core, (frozenset([""]),))
                continue
            layers = self._way(child, local, port.local, barred)
            if layers is not None:
                yield Exit(len(layers), port.local, port.core, layers)

    def _way(
        self, child: Layout, local: int, port: int, barred: frozenset[str] = frozenset()
    ) -> tuple[frozenset[str], ...] | None:
        """The devices on shortest ways inside a host to one that passes on to others; None if there is none."""
        key = id(child), local, port, barred
        if key not in self._ways:
            name = child.name(port)
            if local == port:
                self._ways[key] = (frozenset([name]),)
            else:
                graph = self._graph(child)
                graph = graph.without(barred) if barred else graph
                layers = graph.layers(child.name(local), name) if _forwards(child, name) else None
                self._ways[key] = None if layers is None else tuple(frozenset(layer) for layer in layers)
        return self._ways[key]

    def _named(self, host: int, names: Iterable[str]) -> Iterable[str]:
        part = self._layout.parts[int(self.part_of_host[host])]
        own = part.names[(int(self.starts[host]) - part.start) // part.each]
        return [below(own, name) if name else own for name in names]

    def _ports(self, attached: Attached, host: int) -> list[Port]:
        rows = slice(int(attached.first[host]), int(attached.first[host + 1]))
        return [Port(*each) for each in zip(attached.local[rows].tolist(), attached.core[rows].tolist(), strict=True)]

    def _around(self, part: Part, port: Port, next_port: Port) -> bool:
        """Whether from switch to switch the way around a host is shorter than the way through it."""
        child = part.child
        if child is None:
            return True  # it passes nothing on
        through = self._way(child, port.local, next_port.local)
        if (
            through is None
            or self._way(child, next_port.local, port.local) is None
            or not _forwards(child, child.name(port.local))
        ):
            return True
        around = self.core_layers(port.core, next_port.core)
        return around is not None and len(around) - 1 < len(through) - 1 + 2

    def _graph(self, child: Layout) -> Graph:
        if id(child) not in self._inner:
            self._inner[id(child)] = Graph(Net(child))
        return self._inner[id(child)]

    @cached_property
    def _neighbours(self) -> dict[int, list[int]]:
        """Neighbours of each device of the core within the core."""
        a, b = self._layout.wires.a, self._layout.wires.b
        inner = (self.owner[a] < 0) & (self.owner[b] < 0)
        neighbours: dict[int, list[int]] = {}
        for start, end in zip(a[inner].tolist(), b[inner].tolist(), strict=True):
            neighbours.setdefault(start, []).append(end)
            neighbours.setdefault(end, []).append(start)
        return neighbours


def _forwards(layout: Layout, name: str) -> bool:
    spot = layout.find(name)
    return spot is not None and spot.part.forwards
