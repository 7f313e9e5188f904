"""A machine as an immutable value: lookups by name, routes, costs of transfers and of disk accesses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.demand import Capacity, Cost, device_of
from hwsim.devices import Storage
from hwsim.machine.capacities import rates
from hwsim.machine.capacity_numbers import CapacityNames, Floats, Handlings, TransferDraws
from hwsim.machine.contents import Link, MachineCaches, NoRoute, PlacedDevice, PlacedNode, UnknownName, V, within
from hwsim.machine.layout import Layout
from hwsim.machine.libraries.parser import Libraries, library_of
from hwsim.machine.link_entries import DeviceNumbers
from hwsim.machine.moved_numbers import MovedNumber
from hwsim.machine.names import NameIndex
from hwsim.machine.routes import Routes
from hwsim.machine.transfer import Transfers, join
from hwsim.machine.transfer_options import PLAIN, TransferOptions
from hwsim.machine.views import kinds
from hwsim.machine.wires import Ints
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.devices.storage import Access, Direction, StorageAccesses
    from hwsim.machine.libraries.kinds import Library
    from hwsim.machine.scores import Scores
    from hwsim.spec import Warning


_WRITTEN_OUT: Final = 10_000  # number of devices up to which a plain dict of all of them is returned


class _Hosts(dict[Hashable, tuple[int, float]]):
    """A cache of (index of the host CPU, number of links to it), by places of devices in equal machines."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine; all collections are in natural order of names (gpu10 after gpu9).

    Args:
        name: name in the file.
        devices: devices by full name.
        nodes: machines inside the machine by full name.
        groups: groups of CPU sockets by name: a bare `cpu` in a node of several sockets means all their cores.
        links: links in both directions.
        capacities: capacities by name.
        let: parameters with which the file was read.
        warnings: warnings about the file.
        libraries: communication libraries by inner machine ("" for the whole), then by kind.
        ideal: whether the file states `class: ideal`, so that no class defaults are used.
        unsure: uncertain numbers of the file.
        scores: measurements of earlier runs on this machine.
    """

    name: str
    devices: Mapping[str, PlacedDevice]
    nodes: Mapping[str, PlacedNode]
    groups: Mapping[str, PlacedDevice]
    links: Collection[Link]
    capacities: Mapping[str, Capacity]
    let: Mapping[str, object]
    warnings: tuple[Warning, ...]
    _names: NameIndex = field(repr=False, compare=False)
    _routes: Routes = field(repr=False, compare=False)
    _transfers: Transfers = field(repr=False, compare=False)
    libraries: Mapping[str, Libraries] = field(default_factory=dict)
    ideal: bool = False
    unsure: tuple[MovedNumber, ...] = field(default=(), repr=False, compare=False)
    scores: Scores | None = None
    _kept: MachineCaches = field(default_factory=MachineCaches, init=False, repr=False, compare=False)

    def kept(self, kind: Callable[[], V]) -> V:
        """Return the cache of results of this type for this machine; it starts empty, and the caller fills it."""
        return self._kept.value(kind)

    @property
    def layout(self) -> Layout:
        """Parts as in the file: equal devices and equal inner machines are stored once."""
        return self._routes.net.layout

    def select(self, pattern: str | Sequence[str], inside: str = "") -> tuple[str, ...]:
        """Return the full names of the devices or nodes that match a name, family*, range, or list of these.

        Examples: `gpu0`, `gpu*`, `gpu0..3`, `node*.gpu*`, `node0..95.gpu*`. A bare kind matches the only part of that kind; `cpu`
        matches all sockets of a node. Names are looked up in the node `inside` first, then in the nodes around it; in each, first
        among its own parts, then at any depth.

        Raises:
            UnknownName: no device has that name, or a bare kind matches several parts.
        """
        return self._names.select(pattern, inside)

    def one(self, pattern: str | Sequence[str], inside: str = "") -> str:
        """Return the only name that `select` finds.

        Raises:
            UnknownName: it finds none or several (the message lists them).
        """
        return self._names.one(pattern, inside)

    def device(self, name: str) -> PlacedDevice:
        """Return the device (or group of sockets) of a full name, as returned by `select` and `one`."""
        found = self.devices.get(name) or self.groups.get(name)
        if found is None:
            raise self._names.no_device(name)
        return found

    def node_of(self, name: str) -> str:
        """Return the inner machine of a device by its full name; no lookup is required."""
        return within(name)[0]

    def home_of(self, name: str) -> str:
        """Return the smallest inner machine with a CPU that contains the device or inner machine `name`, or is it; else ""."""
        node = name if name in self.nodes else self.node_of(name)
        while node and not self.devices_of("cpu", node):
            node = self.node_of(node)
        return node

    def host_of(self, name: str, *, linked: bool = False) -> str:
        """Return the host CPU of a device or of an inner machine; "" if there is none.

        The host is a CPU of the smallest machine around the device that has one: the CPU with the fewest links to the device, the
        first among equals. A CPU is its own host.

        Args:
            linked: return "" if no route connects the CPU and the device.
        """
        cpus = self.devices_of("cpu", self.home_of(name))
        if not name or name in self.nodes or (len(cpus) < 2 and not linked):  # a machine gets its first CPU
            return cpus[0] if cpus else ""

        def links(cpu: str) -> float:
            try:
                return len(self.route(cpu, name))
            except NoRoute:
                return inf

        known, key = self.kept(_Hosts), self.inside((*cpus, name))
        place = known.get(key) if key is not None else None
        if place is None:
            place = known[key] = min(enumerate(map(links, cpus)), key=lambda pair: (pair[1], pair[0]), default=(0, inf))
        return "" if place[1] == inf and (linked or not cpus) else cpus[place[0]]

    def samples(self, names: Iterable[str]) -> tuple[PlacedDevice, ...]:
        """Return one device per part of these devices, to get all models and kinds among very many names.

        No other devices are created. Equal inner machines share their parts; groups of sockets are looked up one by one.

        Raises:
            UnknownName: a name is not that of a device.
        """
        return tuple(map(self.device, self.device_numbers.of_each_part(tuple(names))))

    @property
    def device_numbers(self) -> DeviceNumbers:
        """Numbers and parts of devices."""
        return self._transfers.device_numbers

    def holders(self, capacities: Sequence[str], kind: str) -> Ints:
        """Return the device numbers of capacities of one kind; -1 for an unknown device."""
        if isinstance(capacities, CapacityNames):
            return capacities.devices
        return self.device_numbers.numbers([device_of(name, kind) for name in capacities])

    def inside(self, names: Sequence[str]) -> Hashable:
        """Return a key of devices of one inner machine; None if there is no such key.

        The key is equal for devices at equal places of equal machines, if transfers between them have the same costs and share
        the same capacities except for names.
        """
        return self._transfers.bulk.inside(names)

    def devices_of(self, kind: str, inside: str = "") -> tuple[str, ...]:
        """Return the full names of all devices of one kind in a node (default: in the whole machine)."""
        return self._names.of_kind(kind, inside)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Kind of every device by name, created lazily."""
        by_name = kinds(self._routes.net.layout)
        return dict(by_name) if len(by_name) <= _WRITTEN_OUT else by_name

    def by_requests(self) -> tuple[str, ...]:
        """Return the devices that are simulated request by request."""
        layout = self._routes.net.layout
        return tuple(layout.walk(lambda part: part.names if part.child is None and part.fidelity == "requests" else ()))

    def route(self, a: str, b: str) -> tuple[Link, ...]:
        """Return the links from a to b: fewest hops, then the widest bottleneck, then the order of names.

        A route passes only through switches, CPUs, NICs and devices with `forwards: true`. If an end is a group of sockets, the
        route ends at the socket nearest to the other end.

        Raises:
            NoRoute: the devices are not connected.
        """
        return self._routes.route(*self._transfers.ends(a, b)).links

    def links_from(self, name: str) -> list[Link]:
        """Return the links that leave a device, ordered by the names of their targets, then of the links."""
        return self._routes.net.leaving(name)

    def links_called(self, name: str) -> list[Link]:
        """Return all links of a name, in the order of `links`."""
        return self._routes.net.called(name)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of links, sorted, without duplicates."""
        return tuple(sorted({bundle.name for layout in self._routes.net.layout.scopes() for bundle in layout.wires.bundles}))

    def transfer(self, a: str, b: str, size: float, handling: TransferOptions = PLAIN) -> Cost:
        """Return the cost of moving `size` bytes from a to b.

        The cost draws bytes from every link direction on the route, and time from the memories at both ends. Its latency is the
        sum over links, switches, NICs and memories. A transfer from a device to itself reads and writes its memory.

        Args:
            handling: number and protocol of messages, kind of host memory, and mover.

        Raises:
            NoRoute: the devices are not connected.
        """
        return self._transfers.cost(a, b, size, handling)

    def draws(
        self, sources: Sequence[str], targets: Sequence[str], size: float, handling: TransferOptions = PLAIN
    ) -> TransferDraws:
        """Return the costs of `transfer(sources[i], targets[i], size, handling)` for all i as columns.

        A pair that is equivalent to an earlier one (equal nodes at equal switches) takes about a microsecond and creates no
        objects. Copies by a core (`by="cpu"`) and copies within a group of sockets are supported only by `transfer`.

        Raises:
            NoRoute: a pair is not connected.
            UnknownName: a name is not that of a device.
        """
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources, but {len(targets)} targets")
        sources_at, targets_at = np.split(np.arange(2 * len(sources)), 2)
        return self.draws_among((*sources, *targets), sources_at, targets_at, size, handling)

    def draws_among(
        self, names: Sequence[str], sources: Ints, targets: Ints, size: float | Floats, handling: Handlings = PLAIN
    ) -> TransferDraws:
        """Return the same for sources and targets as indexes into `names`; size: of all pairs, or of each (one per shape)."""
        return self._transfers.bulk.draws(names, sources, targets, size, handling)

    def capacity_name(self, number: int) -> str:
        """Return the name of a capacity by its number (`TransferDraws.capacity`).

        Raises:
            UnknownName: no capacity has this number.
        """
        return self._transfers.bulk.numbering.name(number)

    def capacity_names(self, numbers: Ints) -> CapacityNames:
        """Return the names of many capacities, created when they are read."""
        return CapacityNames(self._transfers.bulk.numbering, numbers)

    def capacity_number(self, name: str) -> int:
        """Return the number of a capacity: the inverse of `capacity_name`.

        Raises:
            UnknownName: no capacity has this name.
        """
        return self._transfers.bulk.numbering.number(name)

    def link_kind(self, capacity: str) -> str:
        """Return the kind of the link of a capacity; "" if the capacity is not a link's."""
        link = self._routes.net.drawing(capacity)
        return "" if link is None else link.kind

    @property
    def capacity_numbers(self) -> int:
        """Upper bound of all capacity numbers: the length of an array indexed by them."""
        return self._transfers.bulk.numbering.count

    def read(
        self, disk: str, size: float, times: float = 1, access: Access = "sequential", depth: float = 1, to: str = ""
    ) -> Cost:
        """Return the cost of `times` reads of `size` bytes each from a disk, with the transfer to `to`.

        Without `to`, or if the disk has no links, the cost covers only the disk.

        Raises:
            UnknownName: the device is not a disk.
            NoRoute: the disk has links, but no route to `to`.
        """
        from hwsim.devices.storage import StorageAccesses

        request = StorageAccesses(size=size, times=times, access=access, depth=depth)
        return self.serve(disk, "read", request, to)

    def serve(self, disk: str, direction: Direction, request: StorageAccesses, partner: str = "") -> Cost:
        """Return the cost of an op on a disk, with the transfer of its bytes to `partner` (for writes: from it).

        A request with a fraction of writes alternates between reads and writes.
        """
        model, share = self._disk(disk), request.written
        if not 0 < share < 1:
            direction = "write" if share else direction
            cost = self._with_links(model.serve(disk, direction, request), disk, direction, request.bytes, partner)
            return replace(cost, requests=request.requests(disk, direction))
        from hwsim.devices.storage import mixed_cost

        cost = mixed_cost(model, disk, request)
        for part_direction, part in (("read", 1 - share), ("write", share)):
            cost = self._with_links(cost, disk, part_direction, request.bytes * part, partner)
        return replace(cost, requests=request.requests(disk, direction))

    def _with_links(self, cost: Cost, disk: str, direction: str, size: float, partner: str) -> Cost:
        if not partner or not self._routes.net.degree(disk):
            return cost
        ends = (disk, partner) if direction == "read" else (partner, disk)
        return join(cost, self._transfers.cost(*ends, size, ends=False))

    def library(self, devices: Sequence[str], kinds: Sequence[str]) -> Library | None:
        """Return the communication library of these devices: the first of the kinds that a machine around all of them states.

        If there is none, and all of their nodes state the same library, return that library.
        """
        if not self.libraries:
            return None
        return library_of(self.libraries, [self.node_of(name) for name in devices], kinds)

    def rates(self) -> Mapping[str, float]:
        """Return the rate of each capacity by name, looked up lazily, for `Demand.alone`."""
        return rates(self.capacities)

    def _disk(self, name: str) -> Storage:
        model = self.device(name).model
        if not isinstance(model, Storage):
            raise UnknownName(f"{name} is a {model.kind}: expected a disk", "use copy to move bytes between devices")
        return model
