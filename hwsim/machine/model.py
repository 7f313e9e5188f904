"""The machine as a value: what is placed where, under which name, linked to what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.demand import Capacity, Cost
from hwsim.devices import Storage
from hwsim.machine.capacities import rates
from hwsim.machine.handling import PLAIN, Handling
from hwsim.machine.layout import Layout
from hwsim.machine.libraries.reading import Libraries, library_of
from hwsim.machine.moved import Moved
from hwsim.machine.names import Names
from hwsim.machine.numbering import Draws, Floats, Handlings
from hwsim.machine.placed import Kept, Link, NoRoute, PlacedDevice, PlacedNode, UnknownName, V, within
from hwsim.machine.routes import Routes
from hwsim.machine.transfer import Transfers, join
from hwsim.machine.views import kinds
from hwsim.machine.wires import Ints
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.devices.storage import Access, Asked, Direction
    from hwsim.machine.libraries.kinds import Library
    from hwsim.spec import Warning


_WRITTEN_OUT: Final = 10_000  # devices, up to which a small value is made of all of them


class _Hosts(dict[Hashable, tuple[int, float]]):
    """Which CPU of its machine works for a device, and the links between them, for all at equal places of equal machines."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices and nodes by full name and links, all in natural order (gpu10 after gpu9).

    groups: what a bare `cpu` means in a node of several sockets, all of their cores, by name.
    let: the parameters the file was read with.
    libraries: what its devices exchange data with, by machine inside it ("" for the whole), then by kind.
    ideal: nothing that it leaves out is filled in.
    unsure: numbers whose spread its file says.
    """

    name: str
    devices: Mapping[str, PlacedDevice]
    nodes: Mapping[str, PlacedNode]
    groups: Mapping[str, PlacedDevice]
    links: Collection[Link]
    capacities: Mapping[str, Capacity]
    let: Mapping[str, object]
    warnings: tuple[Warning, ...]
    _names: Names = field(repr=False, compare=False)
    _routes: Routes = field(repr=False, compare=False)
    _transfers: Transfers = field(repr=False, compare=False)
    libraries: Mapping[str, Libraries] = field(default_factory=dict)
    ideal: bool = False
    unsure: tuple[Moved, ...] = field(default=(), repr=False, compare=False)
    _kept: Kept = field(default_factory=Kept, init=False, repr=False, compare=False)

    def kept(self, kind: Callable[[], V]) -> V:
        """Results worked out on this machine, by their class: empty at first, and the caller's to fill."""
        return self._kept.value(kind)

    @property
    def layout(self) -> Layout:
        """Its parts as the file has them: equal devices, and equal machines inside it, once."""
        return self._routes.net.layout

    def select(self, pattern: str | Sequence[str], inside: str = "") -> tuple[str, ...]:
        """Full names of the devices (or nodes) that a name, family*, range or list of these means.

        `gpu0`, `gpu*`, `gpu0..3`, `node*.gpu*`, `node0..95.gpu*`; a bare kind means the only
        part of that kind; `cpu` means all sockets of the node. Names resolve inside the node
        `inside` first, then outwards; where a scope itself has no such name, at any depth in it.

        Raises:
            UnknownName: nothing has that name, or a bare kind fits several parts.
        """
        return self._names.select(pattern, inside)

    def one(self, pattern: str | Sequence[str], inside: str = "") -> str:
        """The only name that `select` finds.

        Raises:
            UnknownName: there is none, or there are several (the message lists them).
        """
        return self._names.one(pattern, inside)

    def device(self, name: str) -> PlacedDevice:
        """The device (or group of sockets) of that full name, as `select` and `one` give it."""
        found = self.devices.get(name) or self.groups.get(name)
        if found is None:
            raise self._names.no_device(name)
        return found

    def node_of(self, name: str) -> str:
        """The machine inside the machine that a device of that full name is in; cheap, as it looks at the name alone."""
        return within(name)[0]

    def home_of(self, name: str) -> str:
        """The smallest machine that has a CPU and holds a device, or is the machine inside the machine of that name; else ""."""
        node = name if name in self.nodes else self.node_of(name)
        while node and not self.devices_of("cpu", node):
            node = self.node_of(node)
        return node

    def host_of(self, name: str, *, linked: bool = False) -> str:
        """The CPU that works for a device, or for a machine inside the machine; "" if the machine has none.

        That is a CPU of the smallest machine around it that has any: the one with the fewest links to the device, the first of
        those as near. A CPU is its own.  linked: "" too where no link leads to the device.
        """
        cpus = self.devices_of("cpu", self.home_of(name))
        if not name or name in self.nodes or (len(cpus) < 2 and not linked):  # cheap, and a machine has its first
            return cpus[0] if cpus else ""

        def links(cpu: str) -> float:
            try:
                return len(self.route(cpu, name))
            except NoRoute:
                return inf

        known, key = self.kept(_Hosts), self.inside((*cpus, name))
        place = known.get(key) if key is not None else None
        if place is None:
            place = known[key] = min(enumerate(map(links, cpus)), key=lambda each: (each[1], each[0]), default=(0, inf))
        return "" if place[1] == inf and (linked or not cpus) else cpus[place[0]]

    def samples(self, names: Iterable[str]) -> tuple[PlacedDevice, ...]:
        """The first device of every part that these devices belong to: all models and kinds among very many names.

        Nothing is made but the few that are returned. Equal machines inside the machine share their parts; groups of sockets
        are looked up one by one.

        Raises:
            UnknownName: no device.
        """
        return tuple(map(self.device, self._transfers.bulk.of_each_part(tuple(names))))

    def part_of(self, name: str) -> Hashable:
        """The part that a device belongs to, the same in equal machines inside the machine; None if the name is no device's."""
        return self._transfers.bulk.part_of(name)

    def inside(self, names: Sequence[str]) -> Hashable:
        """A key of devices that are in one machine inside the machine; None where no key says what is between them.

        Equal for devices at equal places of equal machines, if what one transfer between them costs and shares with another is
        the same but for names.
        """
        return self._transfers.bulk.inside(names)

    def devices_of(self, kind: str, inside: str = "") -> tuple[str, ...]:
        """Full names of all devices of one kind in a node (default: everywhere)."""
        return self._names.of_kind(kind, inside)

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of every device by name; cheap, whatever the size."""
        by_name = kinds(self._routes.net.layout)
        return dict(by_name) if len(by_name) <= _WRITTEN_OUT else by_name

    def by_requests(self) -> tuple[str, ...]:
        """The devices that are to be simulated request by request; cheap where there are none."""
        layout = self._routes.net.layout
        return tuple(layout.walk(lambda part: part.names if part.child is None and part.fidelity == "requests" else ()))

    def route(self, a: str, b: str) -> tuple[Link, ...]:
        """Links from a to b: fewest hops, then the widest bottleneck, then names.

        Between its ends a route passes only through switches, CPUs, NICs and devices that say
        `forwards: true`. For a group of sockets, the socket nearest to the other end.

        Raises:
            NoRoute: they are not connected.
        """
        return self._routes.route(*self._transfers.ends(a, b)).links

    def links_from(self, name: str) -> list[Link]:
        """The links that leave a device, by the names of their other ends, then by their own; none others are made."""
        return self._routes.net.leaving(name)

    def links_called(self, name: str) -> list[Link]:
        """All links of that name, as in `links`; none others are made."""
        return self._routes.net.called(name)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of links, each once, in order; cheap."""
        return tuple(sorted({bundle.name for layout in self._routes.net.layout.scopes() for bundle in layout.wires.bundles}))

    def transfer(self, a: str, b: str, size: float, handling: Handling = PLAIN) -> Cost:
        """`size` bytes from a to b; `handling` says in how many messages, from which memory, by whom.

        Draws the bytes from every link direction on the route, and their time from the memories
        at both ends. Latency: the sum over the links, the switches and NICs passed, and the
        memories. From a device to itself: a copy that reads and writes its memory.

        Raises:
            NoRoute: they are not connected.
        """
        return self._transfers.cost(a, b, size, handling)

    def draws(self, sources: Sequence[str], targets: Sequence[str], size: float, handling: Handling = PLAIN) -> Draws:
        """Costs of `transfer(sources[i], targets[i], size, handling)` for every i, in columns (see `Draws`).

        Pairs like one that is known (equal nodes at equal switches) take about a microsecond each and make no objects.
        Copies by a core (`by="cpu"`), and within a group of sockets, are for `transfer` alone.

        Raises:
            NoRoute: two of them are not connected.
            UnknownName: no device.
        """
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources, but {len(targets)} targets")
        places = np.arange(2 * len(sources))
        return self.draws_among((*sources, *targets), places[: len(sources)], places[len(sources) :], size, handling)

    def draws_among(
        self, names: Sequence[str], sources: Ints, targets: Ints, size: float | Floats, handling: Handlings = PLAIN
    ) -> Draws:
        """The same from and to places among names; size: of all, or of each: then a shape has one size, too."""
        return self._transfers.bulk.draws(names, sources, targets, size, handling)

    def capacity_name(self, number: int) -> str:
        """Name of the capacity of that number (`Draws.capacity`). Cheap: nothing else is named.

        Raises:
            UnknownName: the number is no capacity's.
        """
        return self._transfers.bulk.numbering.name(number)

    def capacity_number(self, name: str) -> int:
        """The number of a capacity: the inverse of `capacity_name`.

        Raises:
            UnknownName: nothing has a capacity of that name.
        """
        return self._transfers.bulk.numbering.number(name)

    def link_kind(self, capacity: str) -> str:
        """The kind of link that a capacity is of; "" if it is of none."""
        link = self._routes.net.drawing(capacity)
        return "" if link is None else link.kind

    @property
    def capacity_numbers(self) -> int:
        """Numbers of capacities lie from 0 to before this: the length of an array with a place for each."""
        return self._transfers.bulk.numbering.count

    def read(
        self, disk: str, size: float, times: float = 1, access: Access = "sequential", depth: float = 1, to: str = ""
    ) -> Cost:
        """`times` reads of `size` bytes each from a disk, moved on to `to`.

        Without `to`, or from a disk that the machine links to nothing, what the disk takes alone.

        Raises:
            UnknownName: not a disk.
            NoRoute: the disk has links, but none leads to `to`.
        """
        from hwsim.devices.storage import Asked

        request = Asked(size=size, times=times, access=access, depth=depth)
        return self.serve(disk, "read", request, to)

    def serve(self, disk: str, direction: Direction, request: Asked, partner: str = "") -> Cost:
        """Cost of an op on a disk, with its bytes moved on to `partner` (or, written, coming from it).

        A request with a share of writes reads one part and writes the other, in turns.
        """
        model, share = self._disk(disk), request.written
        if not 0 < share < 1:
            direction = "write" if share else direction
            cost = self._with_links(model.serve(disk, direction, request), disk, direction, request.bytes, partner)
            return replace(cost, requests=request.requests(disk, direction))
        from hwsim.devices.storage import mixed

        cost = mixed(model, disk, request)
        for way, part in (("read", 1 - share), ("write", share)):
            cost = self._with_links(cost, disk, way, request.bytes * part, partner)
        return replace(cost, requests=request.requests(disk, direction))

    def _with_links(self, cost: Cost, disk: str, direction: str, size: float, partner: str) -> Cost:
        if not partner or not self._routes.net.degree(disk):
            return cost
        ends = (disk, partner) if direction == "read" else (partner, disk)
        return join(cost, self._transfers.cost(*ends, size, ends=False))

    def library(self, devices: Sequence[str], kinds: Sequence[str]) -> Library | None:
        """The library by which these devices exchange data: of the first of the kinds that a machine around them all states.

        If there is none, and the devices are in several nodes that all state the same library, this library.
        """
        if not self.libraries:
            return None
        return library_of(self.libraries, [self.node_of(name) for name in devices], kinds)

    def rates(self) -> Mapping[str, float]:
        """Capacity name to amount per second: what `Demand.alone` needs. Each is looked up when it is asked for."""
        return rates(self.capacities)

    def _disk(self, name: str) -> Storage:
        model = self.device(name).model
        if not isinstance(model, Storage):
            raise UnknownName(f"{name} is a {model.kind}, not a disk", "to move bytes between devices, use copy")
        return model
