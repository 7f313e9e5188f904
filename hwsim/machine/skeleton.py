"""Equivalent routes over different switches: the skeleton of a pair of hosts describes its routes without names.

Problem: thousands of pairs of nodes have routes over different switches that cost the same. `hwsim.machine.bulk` computes one of
them and transfers the result to the others, if their skeletons are equal.

A route depends only on the order of equally distant switches by name, not on the names themselves. Suppose that the switches on
the shortest routes of two pairs of hosts correspond, layer by layer and rank by rank in that order, with wires of the same
entries of `links:` between them. Then the route of one pair is the route of the other with the switches exchanged.

Terms:

    host, core   see `hwsim.machine.hosts`; a core device is mostly a switch
    layer        core devices at one distance from the source host, on shortest routes
    rank         index of a core device in its layer, in natural order of names
    position     `Position`: (layer, rank) of a core device
    skeleton     `Skeleton`: the layers of a pair of devices, and a key that is equal for pairs with equivalent routes
    place        `Place`: a capacity in terms of a skeleton: of a core device, of a wire in the core, or of a wire to a host
    ordinal      which of several capacities of a device, or of several parallel wires
    direction    of a wire: 0 from source to target, 1 back, `BOTH` for the limit of both directions; of a host: 0 out, 1 in

Example: node0 and node1 are linked to switch leaf0, node2 and node3 to leaf1, and both leaves to spine0. The pairs (node0, node2)
and (node3, node1) have the layers [leaf0], [spine0], [leaf1] and [leaf1], [spine0], [leaf0], thus equal keys. The wire
spine0->leaf1 of the first route has the place CoreWire(start=(1, 0), end=(2, 0), ordinal=0, direction=0). In the second pair,
that place is the wire spine0->leaf0.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from hwsim.formats import natural
from hwsim.machine.capacities import Backplanes
from hwsim.machine.capacity_numbers import CapacityNumbers
from hwsim.machine.hosts import Hosts, Port
from hwsim.machine.layout import Layout
from hwsim.machine.net import BOTH

Position = tuple[int, int]  # layer and rank of a core device


class Skeleton(NamedTuple):
    """A description of the shortest routes between two devices.

    Args:
        key: equal for pairs with equivalent routes.
        layers: core devices on the routes by layer, in natural order of names.
    """

    key: Hashable
    layers: list[list[int]]


class CoreDevice(NamedTuple):
    """A place: capacity `ordinal` of the core device at `position`."""

    position: Position
    ordinal: int


class CoreWire(NamedTuple):
    """A place: a direction of wire `ordinal` among those between two core devices; `start` is nearer to the source."""

    start: Position
    end: Position
    ordinal: int
    direction: int


class HostWire(NamedTuple):
    """A place: a direction of a wire between a host and the core.

    Args:
        is_target: whether the host is that of the target.
        local: number of the device in its host.
        position: position of the core device.
        ordinal: index among the wires between the two devices.
        direction: 0 out of the host, 1 into it, or BOTH.
    """

    is_target: bool
    local: int
    position: Position
    ordinal: int
    direction: int


Place = CoreDevice | CoreWire | HostWire


class Skeletons:
    """A calculator of skeletons for pairs of devices in different hosts."""

    def __init__(self, layout: Layout, hosts: Hosts, numbering: CapacityNumbers, backplanes: Backplanes) -> None:
        self._layout, self._hosts, self._numbering, self._backplanes = layout, hosts, numbering, backplanes
        self._models: dict[int, Hashable] = {}  # by core device
        self._host_wires: dict[int, dict[Port, list[int]]] = {}  # by host

    def of(self, a: int, b: int) -> Skeleton:
        """Return the skeleton of the shortest routes between two devices, for which `Hosts.alike` must hold."""
        _, routes = self._hosts.shortest(a, b)
        layer_count = len(routes[0][1])
        layers = [self._ordered({device for _, core, _ in routes for device in core[index]}) for index in range(layer_count)]
        ranks = [{device: rank for rank, device in enumerate(layer)} for layer in layers]
        key = (
            self._end(a, {(out.local, out.core) for out, _, _ in routes}, ranks[0]),
            self._end(b, {(into.local, into.core) for _, _, into in routes}, ranks[-1]),
            tuple(tuple(self._model(device) for device in layer) for layer in layers),
            tuple(self._text_order(layer) for layer in layers),
            tuple(self._wiring(layer, next_layer) for layer, next_layer in pairwise(layers)),
            tuple({(out.hops, into.hops) for out, _, into in routes}),
        )
        return Skeleton(key, layers)

    def place(self, number: int, layers: list[list[int]], hosts: tuple[int, int]) -> Place | None:
        """Return the place of a capacity on the routes of a skeleton; None if it is in one of the hosts.

        Args:
            number: number of the capacity.
            layers: layers of the skeleton.
            hosts: hosts of source and target.
        """
        table = self._numbering.table(self._layout)
        if number < table.wires:
            device, index = self._device(number)
            return None if self._hosts.owner[device] >= 0 else CoreDevice(_position(layers, device), index)
        wire, slot = divmod(number - table.wires, 3)
        bundle, row = self._layout.wires.of(wire)
        a, b = int(bundle.a[row]), int(bundle.b[row])
        owners = int(self._hosts.owner[a]), int(self._hosts.owner[b])
        if owners == (-1, -1):
            start, end = _position(layers, a), _position(layers, b)
            is_reversed = start > end
            parallel = self._core_wires[(b, a) if is_reversed else (a, b)]
            direction = slot if slot == BOTH or not is_reversed else 1 - slot
            return CoreWire(min(start, end), max(start, end), parallel.index(wire), direction)
        is_out = owners[0] >= 0
        host, device, core = (owners[0], a, b) if is_out else (owners[1], b, a)
        is_target = host == hosts[1]
        layer = len(layers) - 1 if is_target else 0
        local = device - int(self._hosts.starts[host])
        index = self._wires_between(host, local, core).index(wire)
        direction = slot if slot == BOTH or is_out else 1 - slot
        return HostWire(is_target, local, (layer, layers[layer].index(core)), index, direction)

    def number(self, place: Place, layers: list[list[int]], hosts: tuple[int, int]) -> int:
        """Return the number of the capacity at a place of an equivalent skeleton; the inverse of `place`."""
        table = self._numbering.table(self._layout)
        match place:
            case CoreDevice(position=(layer, rank), ordinal=index):
                part, member, _ = self._layout.at(layers[layer][rank])
                part_index = self._layout.place(part)
                return table.starts[part_index] + member * table.each[part_index] + index
            case CoreWire(start=(layer, rank), end=(end_layer, end_rank), ordinal=index, direction=direction):
                a, b = layers[layer][rank], layers[end_layer][end_rank]
                wire = self._core_wires[a, b][index]
                is_reversed = self._layout.wires.a[wire] != a
                return table.wires + 3 * wire + (direction if direction == BOTH or not is_reversed else 1 - direction)
            case HostWire(is_target=is_target, local=local, position=(layer, rank), ordinal=index, direction=direction):
                wire = self._wires_between(hosts[is_target], local, layers[layer][rank])[index]
                is_out = self._hosts.owner[self._layout.wires.a[wire]] >= 0
                return table.wires + 3 * wire + (direction if direction == BOTH or is_out else 1 - direction)

    def _end(self, device: int, ports: set[tuple[int, int]], ranks: dict[int, int]) -> Hashable:
        """Return a key of one end: its part and position in its host, and the wires from the host to the core."""
        host = int(self._hosts.owner[device])
        if host < 0:
            return ranks[device]
        wires = tuple(
            sorted((local, ranks[core], tuple(map(self._entry, self._wires_between(host, local, core)))) for local, core in ports)
        )
        return int(self._hosts.part_of_host[host]), device - int(self._hosts.starts[host]), wires

    def _wires_between(self, host: int, local: int, core: int) -> list[int]:
        if host not in self._host_wires:
            attached = self._hosts.attached
            if attached is None:
                return []
            rows = slice(int(attached.first[host]), int(attached.first[host + 1]))
            ends = zip(attached.local[rows].tolist(), attached.core[rows].tolist(), attached.wire[rows].tolist(), strict=True)
            by_port: dict[Port, list[int]] = {}
            for start, end, wire in ends:
                by_port.setdefault(Port(start, end), []).append(wire)
            self._host_wires[host] = by_port
        return self._host_wires[host].get(Port(local, core), [])

    def _entry(self, wire: int) -> tuple[int, int, bool]:
        """Return the entry of `links:` of a wire, its number of parallel links, and whether its end a is in a host."""
        bundle, row = self._layout.wires.of(wire)
        return id(bundle), int(bundle.count[row]), bool(self._hosts.owner[bundle.a[row]] >= 0)

    def _model(self, device: int) -> Hashable:
        """Return a key of the model and the backplane of a core device."""
        if device not in self._models:
            part, _, _ = self._layout.at(device)
            self._models[device] = id(part.model), self._backplanes.rate(self._layout.name(device))
        return self._models[device]

    def _ordered(self, devices: set[int]) -> list[int]:
        return list(devices) if len(devices) == 1 else sorted(devices, key=lambda device: natural(self._layout.name(device)))

    def _text_order(self, layer: list[int]) -> tuple[int, ...]:
        """Return the ranks of a layer's devices in lexical order of names, which adaptive routing and ECMP use."""
        if len(layer) == 1:
            return (0,)
        names = [self._layout.name(device) for device in layer]
        return tuple(names.index(name) for name in sorted(names))

    def _wiring(self, layer: list[int], next_layer: list[int]) -> Hashable:
        return tuple(tuple(map(self._entry, self._core_wires.get((a, b), ()))) for a in layer for b in next_layer)

    @cached_property
    def _core_wires(self) -> dict[tuple[int, int], list[int]]:
        """For each ordered pair of core devices the wires between them, by their entries."""
        a, b = self._layout.wires.a, self._layout.wires.b
        is_core = (self._hosts.owner[a] < 0) & (self._hosts.owner[b] < 0)
        wires: dict[tuple[int, int], list[int]] = {}
        for wire in is_core.nonzero()[0].tolist():
            start, end = int(a[wire]), int(b[wire])
            wires.setdefault((start, end), []).append(wire)
            if start != end:
                wires.setdefault((end, start), []).append(wire)
        return wires

    def _device(self, number: int) -> tuple[int, int]:
        """Return the first device of the member that has a capacity, and the index of the capacity in the member."""
        part, member, index = self._numbering.split(number)
        return self._layout.parts[part].start + member * self._layout.parts[part].each, index


def _position(layers: list[list[int]], device: int) -> Position:
    return next((index, layer.index(device)) for index, layer in enumerate(layers) if device in layer)
