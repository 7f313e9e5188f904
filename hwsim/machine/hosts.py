"""Shortest routes between equal inner machines, composed of three stretches instead of a search through the whole machine.

A host is an inner machine, or a device that forwards no traffic. The core consists of all other devices, mostly switches. If all
wires outside hosts connect a host and the core or two devices of the core, and no route through a third host is as short as one
around it, the shortest routes are composed of

    a stretch from the source to a port of its host              equal for all equal hosts
    a stretch in the core between the switches at two ports      equal for all hosts at these switches
    a stretch from a port of the target's host to the target

The result contains exactly the devices that a search of the whole machine finds. If a condition fails, that search is made
instead.

Example: in a pod of four nodes with one NIC each at one switch, the route from node0.gpu to node1.gpu is node0.gpu, node0.nic |
switch | node1.nic, node1.gpu. All 12 pairs of nodes share both inner stretches, which are computed once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from hwsim.machine.contents import below
from hwsim.machine.host_wires import HostOwners, HostWires
from hwsim.machine.layout import Layout, LayoutPart
from hwsim.machine.net import Graph, Net, meet
from hwsim.machine.nic_assignment import NicAssignment

_MOST_CHECKS: Final = 200_000  # maximum pairs of ports that `Hosts.apart` checks


class Port(NamedTuple):
    """A link out of a host: number of a device within the host, and number of a device of the core."""

    local: int
    core: int


class Exit(NamedTuple):
    """A stretch from a device to the core.

    Args:
        hops: number of links.
        local: number of the last device within the host.
        core: number of the first device of the core.
        layers: names of the devices within the host, layer by layer.
    """

    hops: int
    local: int
    core: int
    layers: tuple[frozenset[str], ...]


class Hosts:
    """A calculator of shortest routes between hosts of the outermost scope; owner, starts, part_of_host: see `HostOwners`."""

    def __init__(self, net: Net, cards: NicAssignment | None = None) -> None:
        self._layout = layout = net.layout
        self._cards = cards
        self.owned = HostOwners.of(layout)
        self.owner, self.starts, self.part_of_host = self.owned.owner, self.owned.starts, self.owned.part
        self._inner: dict[int, Graph] = {}
        self._ways: dict[tuple[int, int, int, frozenset[str]], tuple[frozenset[str], ...] | None] = {}
        self._within: dict[tuple[int, int, int], list[set[str]] | None] = {}
        self._exits: dict[tuple[int, int, int, bool], tuple[Exit, ...]] = {}
        self._latest: tuple[tuple[int, int], tuple[int, list[tuple[Exit, tuple[frozenset[int], ...], Exit]]]] = (-1, -1), (-1, [])
        self._barred_cards: dict[tuple[int, int], frozenset[str]] = {}  # by (part or host, number within it)
        self._core_layers: dict[tuple[int, int], tuple[frozenset[int], ...] | None] = {}

    @cached_property
    def attached(self) -> HostWires | None:
        """Wires between hosts and the core; None if a host is linked to a host."""
        return self.owned.attached(self._layout)

    @cached_property
    def apart(self) -> bool:
        """Whether no shortest route between two hosts passes through a third host."""
        attached = self.attached
        if attached is None:
            return False
        checked = 0
        _, representatives = np.unique(attached.kind, return_index=True)
        for host in representatives.tolist():
            part = self._layout.parts[int(self.part_of_host[host])]
            ports = self._ports(attached, host)
            for index, port in enumerate(ports):
                for next_port in ports[index + 1 :]:
                    checked += 1
                    if checked > _MOST_CHECKS or (port.core != next_port.core and not self._around(part, port, next_port)):
                        return False
        return True

    def layers(self, a: str, b: str, *, own: bool = False) -> list[set[str]] | None:
        """Return the devices on shortest routes from a to b by distance from a; None if a search is required.

        Args:
            own: use only routes through the ends' own NICs.
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
            for index, names in enumerate(out.layers):
                layers[index].update(self._named(h, names))
            for index, numbers in enumerate(core, len(out.layers)):
                layers[index].update(name(number) for number in numbers)
            for index, names in enumerate(into.layers):
                layers[best - index].update(self._named(k, names))
        return layers

    def alike(self, a: int, b: int) -> bool:
        """Return whether the devices on shortest routes have the same order by name for all equivalent pairs.

        They have if all devices at the same distance are in one host, or all in the core.
        """
        h, k = int(self.owner[a]), int(self.owner[b])
        if h == k and h >= 0:
            return self._inside(a, b, h) is not None
        return len({(out.hops, into.hops) for out, _, into in self.shortest(a, b)[1]}) == 1

    def shortest(self, a: int, b: int) -> tuple[int, list[tuple[Exit, tuple[frozenset[int], ...], Exit]]]:
        """Return the hops between devices of different hosts, and all routes with that number as (out, core layers, in).

        The routes use the ends' own NICs if there are such routes.
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
        """Return the layers of core devices on shortest routes within the core; None if there is no route."""
        key = s, t
        if key not in self._core_layers:
            layers = meet(s, t, self._grow, self._leading, lambda number: len(self._neighbours.get(number, ())))
            self._core_layers[key] = None if layers is None else tuple(map(frozenset, layers))
        return self._core_layers[key]

    def _grow(self, layer: set[int], _end: int, seen: set[int], _goal: set[int]) -> set[int]:
        return {other for number in layer for other in self._neighbours.get(number, ())} - seen

    def _leading(self, layer: set[int], beyond: set[int]) -> set[int]:
        """Return the members of a layer that are linked to the next, searched from the side with fewer links."""
        near = self._neighbours
        if sum(len(near.get(number, ())) for number in layer) < sum(len(near.get(number, ())) for number in beyond):
            return {number for number in layer if not beyond.isdisjoint(near.get(number, ()))}
        return layer & {other for number in beyond for other in near.get(number, ())}

    def _inside(self, a: int, b: int, host: int) -> list[set[str]] | None:
        """Return the layers of routes within one host; None if a route outside the host is as short."""
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
        """Return the exits of a device, the nearest first; own: only through its own NICs."""
        attached = self.attached
        if host < 0 or attached is None:
            return (Exit(0, -1, number, ()),)
        key = int(self.part_of_host[host]), number - int(self.starts[host]), int(attached.kind[host]), own
        exits = self._exits.get(key)
        if exits is None:
            part = self._layout.parts[key[0]]
            barred = self._barred(number, host) if own and part.child is not None else frozenset()
            found = self._leave(part, key[1], self._ports(attached, host), barred)
            exits = self._exits[key] = tuple(sorted(found, key=lambda exit_: exit_.hops))
        return exits

    @cached_property
    def closed(self) -> bool:
        """Whether all links out of hosts are network links, so that equal hosts are equal nodes."""
        inside = [bundle for bundle in self._layout.wires.bundles if not bundle.model.network]
        return not any(bool(((self.owner[bundle.a] >= 0) | (self.owner[bundle.b] >= 0)).any()) for bundle in inside)

    def _barred(self, number: int, host: int) -> frozenset[str]:
        """Return the names, within the host, of NICs that the device does not use."""
        key = int(self.part_of_host[host]) if self.closed else -1 - host, number - int(self.starts[host])
        if key not in self._barred_cards:
            self._barred_cards[key] = self._find_barred(number)
        return self._barred_cards[key]

    def _find_barred(self, number: int) -> frozenset[str]:
        name = self._layout.name(number)
        others = self._cards.others(name) - {name} if self._cards else frozenset()
        prefix = name.partition(".")[0] + "."
        return frozenset(other.removeprefix(prefix) for other in others if other.startswith(prefix))

    def _leave(self, part: LayoutPart, local: int, ports: Iterable[Port], barred: frozenset[str]) -> Iterable[Exit]:
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
        """Return the layers of devices on shortest routes within a host to a forwarding device; None if there is no route."""
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

    def _ports(self, attached: HostWires, host: int) -> list[Port]:
        rows = slice(int(attached.first[host]), int(attached.first[host + 1]))
        return [Port(*ends) for ends in zip(attached.local[rows].tolist(), attached.core[rows].tolist(), strict=True)]

    def _around(self, part: LayoutPart, port: Port, next_port: Port) -> bool:
        """Return whether the route between two switches around a host is shorter than the route through it."""
        child = part.child
        if child is None:
            return True  # it forwards no traffic
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
        """Neighbours within the core of each core device."""
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
