"""Ways over different switches that are alike: the same pattern of switches and wires between equal places of equal hosts.

Which way traffic takes depends on how switches equally far are ordered by name, not on their names. Take two pairs of
hosts whose switches on the shortest routes correspond, layer by layer and rank by rank in that order, with wires of the same
entries between them. The route of one pair is the route of the other with the switches exchanged.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from hwsim.formats import natural
from hwsim.machine.capacities import Backplanes
from hwsim.machine.hosts import Hosts, Port
from hwsim.machine.layout import Layout
from hwsim.machine.net import BOTH
from hwsim.machine.numbering import Numbering

Where = tuple[int, int]  # layer and rank of a device of the core


class Skeleton(NamedTuple):
    """key: equal for pairs that are alike. layers: the devices of the core on their shortest ways, in order of names."""

    key: Hashable
    layers: list[list[int]]


class CoreDevice(NamedTuple):
    """Capacity number `which` (from 0) of a core device."""

    at: Where
    which: int


class CoreWire(NamedTuple):
    """A number of a wire within the core: from the layer before (0), back (1) or both.

    which: index among the wires between the two.
    """

    at: Where
    to: Where
    which: int
    way: int


class HostWire(NamedTuple):
    """A number of a wire of one of the two hosts: out (0), in (1) or both.

    which: index among the wires between the two.
    """

    target: bool
    local: int
    at: Where
    which: int
    way: int


Place = CoreDevice | CoreWire | HostWire


class Skeletons:
    """Skeletons of pairs of devices in two different hosts of a machine."""

    def __init__(self, layout: Layout, hosts: Hosts, numbering: Numbering, backplanes: Backplanes) -> None:
        self._layout, self._hosts, self._numbering, self._backplanes = layout, hosts, numbering, backplanes
        self._looks: dict[int, Hashable] = {}
        self._wires: dict[int, dict[Port, list[int]]] = {}  # of a host

    def of(self, a: int, b: int) -> Skeleton:
        """The shortest ways between two, which are as `Hosts.alike` says."""
        _, joined = self._hosts.shortest(a, b)
        many = len(joined[0][1])
        layers = [self._ordered({each for _, core, _ in joined for each in core[index]}) for index in range(many)]
        ranks = [{number: rank for rank, number in enumerate(layer)} for layer in layers]
        key = (
            self._end(a, {(out.local, out.core) for out, _, _ in joined}, ranks[0]),
            self._end(b, {(into.local, into.core) for _, _, into in joined}, ranks[-1]),
            tuple(tuple(self._look(number) for number in layer) for layer in layers),
            tuple(self._texts(layer) for layer in layers),
            tuple(self._joins(layer, beyond) for layer, beyond in pairwise(layers)),
            tuple({(out.hops, into.hops) for out, _, into in joined}),
        )
        return Skeleton(key, layers)

    def place(self, number: int, layers: list[list[int]], hosts: tuple[int, int]) -> Place | None:
        """Place of a numbered capacity on these routes; None if it is in one of the hosts."""
        table = self._numbering.table(self._layout)
        if number < table.wires:
            device, which = self._device(number)
            return None if self._hosts.owner[device] >= 0 else CoreDevice(_where(layers, device), which)
        wire, slot = divmod(number - table.wires, 3)
        bundle, row = self._layout.wires.of(wire)
        a, b = int(bundle.a[row]), int(bundle.b[row])
        owners = int(self._hosts.owner[a]), int(self._hosts.owner[b])
        if owners == (-1, -1):
            start, end = _where(layers, a), _where(layers, b)
            back = start > end
            joined = self._joined[(b, a) if back else (a, b)]
            way = slot if slot == BOTH or not back else 1 - slot
            return CoreWire(min(start, end), max(start, end), joined.index(wire), way)
        out = owners[0] >= 0
        host, device, core = (owners[0], a, b) if out else (owners[1], b, a)
        target = host == hosts[1]
        at = _where(layers[-1:] if target else layers[:1], core)
        at = (len(layers) - 1, at[1]) if target else at
        local = device - int(self._hosts.starts[host])
        which = self._wires_at(host, local, core).index(wire)
        return HostWire(target, local, at, which, slot if slot == BOTH or out else 1 - slot)

    def number(self, place: Place, layers: list[list[int]], hosts: tuple[int, int]) -> int:
        """The number of the capacity at a place of other ways that are alike."""
        table = self._numbering.table(self._layout)
        match place:
            case CoreDevice(at=(layer, rank), which=which):
                part, index, _ = self._layout.at(layers[layer][rank])
                where = self._layout.place(part)
                return table.starts[where] + index * table.each[where] + which
            case CoreWire(at=(layer, rank), to=(beyond, other), which=which, way=way):
                a, b = layers[layer][rank], layers[beyond][other]
                wire = self._joined[a, b][which]
                back = self._layout.wires.a[wire] != a
                return table.wires + 3 * wire + (way if way == BOTH or not back else 1 - way)
            case HostWire(target=target, local=local, at=(layer, rank), which=which, way=way):
                wire = self._wires_at(hosts[target], local, layers[layer][rank])[which]
                out = self._hosts.owner[self._layout.wires.a[wire]] >= 0
                return table.wires + 3 * wire + (way if way == BOTH or out else 1 - way)

    def _end(self, number: int, ways: set[tuple[int, int]], ranks: dict[int, int]) -> Hashable:
        """Place of one end in its host, and the wires that link it to the core."""
        host = int(self._hosts.owner[number])
        if host < 0:
            return ranks[number]
        wires = tuple(
            sorted((local, ranks[core], tuple(map(self._entry, self._wires_at(host, local, core)))) for local, core in ways)
        )
        return int(self._hosts.part_of_host[host]), number - int(self._hosts.starts[host]), wires

    def _wires_at(self, host: int, local: int, core: int) -> list[int]:
        """From a device of a host to one of the core."""
        if host not in self._wires:
            attached = self._hosts.attached
            if attached is None:
                return []
            rows = slice(int(attached.first[host]), int(attached.first[host + 1]))
            ends = zip(attached.local[rows].tolist(), attached.core[rows].tolist(), attached.wire[rows].tolist(), strict=True)
            by_port: dict[Port, list[int]] = {}
            for start, end, wire in ends:
                by_port.setdefault(Port(start, end), []).append(wire)
            self._wires[host] = by_port
        return self._wires[host].get(Port(local, core), [])

    def _entry(self, wire: int) -> tuple[int, int, bool]:
        """Bundle of a wire, its count, and whether its first end is in a host."""
        bundle, row = self._layout.wires.of(wire)
        return id(bundle), int(bundle.count[row]), bool(self._hosts.owner[bundle.a[row]] >= 0)

    def _look(self, number: int) -> Hashable:
        """Model and backplane of a core device."""
        if number not in self._looks:
            part, _, _ = self._layout.at(number)
            self._looks[number] = id(part.model), self._backplanes.rate(self._layout.name(number))
        return self._looks[number]

    def _ordered(self, numbers: set[int]) -> list[int]:
        return list(numbers) if len(numbers) == 1 else sorted(numbers, key=lambda number: natural(self._layout.name(number)))

    def _texts(self, layer: list[int]) -> tuple[int, ...]:
        """The places of its devices in the order of their names as texts, which counts where traffic spreads."""
        if len(layer) == 1:
            return (0,)
        names = [self._layout.name(number) for number in layer]
        return tuple(names.index(name) for name in sorted(names))

    def _joins(self, here: list[int], there: list[int]) -> Hashable:
        return tuple(tuple(map(self._entry, self._joined.get((one, other), ()))) for one in here for other in there)

    @cached_property
    def _joined(self) -> dict[tuple[int, int], list[int]]:
        """The wires between two devices of the core, by their bundles."""
        a, b = self._layout.wires.a, self._layout.wires.b
        inner = (self._hosts.owner[a] < 0) & (self._hosts.owner[b] < 0)
        joined: dict[tuple[int, int], list[int]] = {}
        for wire in inner.nonzero()[0].tolist():
            start, end = int(a[wire]), int(b[wire])
            joined.setdefault((start, end), []).append(wire)
            if start != end:
                joined.setdefault((end, start), []).append(wire)
        return joined

    def _device(self, number: int) -> tuple[int, int]:
        """The device in the outermost scope that a capacity is of, or in the host it is of, and which of its capacities."""
        part, index, rest = self._numbering.split(number)
        return self._layout.parts[part].start + index * self._layout.parts[part].each, rest


def _where(layers: list[list[int]], number: int) -> Where:
    return next((at, layer.index(number)) for at, layer in enumerate(layers) if number in layer)
