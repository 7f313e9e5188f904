"""The machine as a value: what is placed where, under which name, linked to what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hwsim.demand import Capacity, Cost
from hwsim.devices import Storage
from hwsim.devices.storage import Access, Asked, Direction, mixed
from hwsim.machine.handling import PLAIN, Handling
from hwsim.machine.libraries import Libraries, library_of
from hwsim.machine.names import Names, UnknownName
from hwsim.machine.placed import Link, PlacedDevice, PlacedNode
from hwsim.machine.routes import Routes
from hwsim.machine.transfer import Transfers, join

if TYPE_CHECKING:
    from hwsim.communication.kinds import Library


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices and nodes by full name and links, all in natural order (gpu10 after gpu9).

    groups: what a bare `cpu` means in a node of several sockets, all of their cores, by name.
    let: the parameters the file was read with.
    libraries: what its devices exchange data with, by machine inside it ("" for the whole), then by kind.
    """

    name: str
    devices: Mapping[str, PlacedDevice]
    nodes: Mapping[str, PlacedNode]
    groups: Mapping[str, PlacedDevice]
    links: tuple[Link, ...]
    capacities: Mapping[str, Capacity]
    let: Mapping[str, object]
    warnings: tuple[str, ...]
    _names: Names = field(repr=False, compare=False)
    _routes: Routes = field(repr=False, compare=False)
    _transfers: Transfers = field(repr=False, compare=False)
    libraries: Mapping[str, Libraries] = field(default_factory=dict)

    def select(self, pattern: str | Sequence[str], inside: str = "") -> tuple[str, ...]:
        """Full names of the devices (or nodes) that a name, family*, range or list of these means.

        `gpu0`, `gpu*`, `gpu0..3`, `node*.gpu*`, `node0..95.gpu*`; a bare kind means the only
        part of that kind; `cpu` means all sockets of the node.  Names resolve inside the node
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

    def devices_of(self, kind: str, inside: str = "") -> tuple[str, ...]:
        """Full names of all devices of one kind in a node (default: everywhere)."""
        return self._names.of_kind(kind, inside)

    def route(self, a: str, b: str) -> tuple[Link, ...]:
        """Links from a to b: fewest hops, then the widest bottleneck, then names.

        Between its ends a route passes only through switches, CPUs, NICs and devices that say
        `forwards: true`.  For a group of sockets, the socket nearest to the other end.

        Raises:
            NoRoute: they are not connected.
        """
        return self._transfers.route(a, b)

    def transfer(self, a: str, b: str, size: float, handling: Handling = PLAIN) -> Cost:
        """`size` bytes from a to b; `handling` says in how many messages, from which memory, by whom.

        Draws the bytes from every link direction on the route, and their time from the memories
        at both ends.  Latency: the sum over the links, the switches and NICs passed, and the
        memories.  From a device to itself: a copy that reads and writes its memory.

        Raises:
            NoRoute: they are not connected.
        """
        return self._transfers.cost(a, b, size, handling)

    def read(
        self, disk: str, size: float, times: float = 1, access: Access = "sequential", depth: float = 1, to: str = ""
    ) -> Cost:
        """`times` reads of `size` bytes each from a disk, moved on to `to`.

        Without `to`, or from a disk that the machine links to nothing, what the disk takes alone.

        Raises:
            UnknownName: not a disk.
            NoRoute: the disk has links, but none leads to `to`.
        """
        asked = Asked(size=size, times=times, access=access, depth=depth)
        return self.serve(disk, "read", asked, to)

    def write(
        self, disk: str, size: float, times: float = 1, access: Access = "sequential", depth: float = 1, of: str = ""
    ) -> Cost:
        """`times` writes of `size` bytes each to a disk, coming from `of`; otherwise as `read`."""
        asked = Asked(size=size, times=times, access=access, depth=depth)
        return self.serve(disk, "write", asked, of)

    def serve(self, disk: str, direction: Direction, asked: Asked, other: str = "") -> Cost:
        """What an op asks of a disk, its bytes moved on to `other` (or, written, coming from it).

        Of an `asked` with a share of writes the one part is read and the other written, in turns.
        """
        model, share = self._disk(disk), asked.written
        if not 0 < share < 1:
            direction = "write" if share else direction
            cost = self._with_links(model.serve(disk, direction, asked), disk, direction, asked.bytes, other)
            return replace(cost, requests=asked.requests(disk, direction))
        cost = mixed(model, disk, asked)
        for way, part in (("read", 1 - share), ("write", share)):
            cost = self._with_links(cost, disk, way, asked.bytes * part, other)
        return replace(cost, requests=asked.requests(disk, direction))

    def _with_links(self, cost: Cost, disk: str, direction: str, size: float, other: str) -> Cost:
        if not other or not self._transfers.linked(disk):
            return cost
        ends = (disk, other) if direction == "read" else (other, disk)
        return join(cost, self._transfers.cost(*ends, size, ends=False))

    def library(self, devices: Sequence[str], kinds: Sequence[str]) -> Library | None:
        """What these devices exchange data with: of the first of the kinds that a machine around them all says.

        Where none does and they are in several nodes that all say the same: that.
        """
        return library_of(self.libraries, [self.device(name).node for name in devices], kinds)

    def rates(self) -> dict[str, float]:
        """Capacity name to amount per second: what `Demand.alone` needs."""
        return {name: capacity.rate for name, capacity in self.capacities.items()}

    def _disk(self, name: str) -> Storage:
        model = self.device(name).model
        if not isinstance(model, Storage):
            raise UnknownName(f"{name} is a {model.kind}, not a disk", "to move bytes between devices, use copy")
        return model
