"""Costs of transfers from one device to another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from hwsim.demand import Cost, Demand, LazyTerms, Term, Unit
from hwsim.devices import Sockets, Storage
from hwsim.links import Protocol
from hwsim.machine.capacities import Backplanes
from hwsim.machine.contents import NoRoute, PlacedDevice, UnknownName
from hwsim.machine.link_entries import DeviceNumbers
from hwsim.machine.path import Collector, Path, on_wire, shared_by_sockets
from hwsim.machine.routes import Routes
from hwsim.machine.transfer_options import PLAIN, TransferOptions, TransferTally, copy_by, protocol_on, send_messages

if TYPE_CHECKING:
    from hwsim.devices.storage import Direction
    from hwsim.machine.bulk import BulkTransfers

_CACHED: Final = 200_000  # maximum number of cached costs


class Transfers:
    """A calculator of transfers; it caches paths by pair of devices and costs by size."""

    def __init__(
        self,
        devices: Mapping[str, PlacedDevice],
        groups: Mapping[str, PlacedDevice],
        routes: Routes,
        backplanes: Backplanes,
    ) -> None:
        self._devices, self._groups, self.routes, self.backplanes = devices, groups, routes, backplanes
        self._paths: dict[tuple[str, str, Protocol | None], Path] = {}
        self._costs: dict[tuple[str, str, float, bool, TransferOptions], Cost] = {}
        self.device_numbers = DeviceNumbers(routes.net.layout)

    @cached_property
    def bulk(self) -> BulkTransfers:
        """Calculator of very many transfers as columns."""
        from hwsim.machine.bulk import BulkTransfers  # imported late: few runs need it

        return BulkTransfers(self)

    def ends(self, a: str, b: str) -> tuple[str, str]:
        """Return the devices at both ends; a group of sockets is replaced by the socket nearest to the other end."""
        if a == b:
            return a, b
        pairs = [(start, end) for start in self._members(a) for end in self._members(b)]
        if len(pairs) == 1:
            return pairs[0]
        reached = [(route.links, pair) for pair in pairs if (route := self.routes.find(*pair)) is not None]
        if not reached:
            raise NoRoute(f"there is no route from {a} to {b}", None)
        return min(reached, key=lambda row: (len(row[0]), -min((link.bandwidth for link in row[0]), default=0.0)))[1]

    def cost(self, a: str, b: str, size: float, handling: TransferOptions = PLAIN, *, ends: bool = True) -> Cost:
        """See `Machine.transfer`; `ends=False` omits the time of disks at the ends."""
        key = (a, b, size, ends, handling)
        cost = self._costs.get(key)
        if cost is None:
            if len(self._costs) >= _CACHED:
                self._costs.clear()
            cost = self._costs[key] = self._make(a, b, size, ends, handling)
        return cost

    def once(self, a: str, b: str, size: float, handling: TransferOptions) -> Cost:
        """Return the cost without caching it, for very many sizes."""
        return self._make(a, b, size, True, handling)

    def _members(self, name: str) -> tuple[str, ...]:
        group = self._groups.get(name)
        if group is not None and isinstance(group.model, Sockets):
            return group.model.names
        if name not in self._devices:
            raise UnknownName(f"there is no device '{name}'")
        return (name,)

    def _disks(self, a: str, b: str) -> list[tuple[str, Storage, Direction]]:
        """Return the disks at both ends with the direction of access; a disk that is simulated request by request comes last."""
        ends: tuple[tuple[str, Direction], ...] = (a, "read"), (b, "write")
        found = [(device, direction) for name, direction in ends if (device := self._devices.get(name)) is not None]
        found.sort(key=lambda end: end[0].fidelity == "requests")
        return [(device.name, device.model, direction) for device, direction in found if isinstance(device.model, Storage)]

    def _path_and_tally(self, a: str, b: str, size: float, handling: TransferOptions) -> tuple[Path, TransferTally]:
        """Return the path of a transfer and its additional costs."""
        path = self._paths.get((a, b, handling.protocol))
        if path is None:
            path = self._paths[a, b, handling.protocol] = self._path(*self.ends(a, b), handling.protocol)
        tally = TransferTally()
        start, end = self._devices.get(path.stops[0]), self._devices.get(path.stops[-1])
        if start is not None and end is not None:
            copy_by(tally, start, end, path.links, size, handling)
        if path.protocol is not None:
            send_messages(tally, self._devices, path.stops, path.links, handling.messages, path.protocol)
        return path, tally

    def _make(self, a: str, b: str, size: float, ends: bool, handling: TransferOptions) -> Cost:
        if disks := self._disks(a, b) if ends else ():
            from hwsim.devices.storage import StorageAccesses  # imported late: few runs copy to a disk

            cost, asked = self._make(a, b, size, False, handling), StorageAccesses(size=size, of_service=handling.of_service)
            for name, disk, direction in disks:  # like an op that reads or writes the disk
                cost = replace(join(disk.serve(name, direction, asked), cost), requests=asked.requests(name, direction))
            return cost
        path, tally = self._path_and_tally(a, b, size, handling)
        latency = path.latency + math.fsum([term.seconds for term in tally.latencies])
        if size <= 0:
            return Cost(Demand(latency=latency), why=(*path.latencies, *tally.latencies))
        messages = handling.messages
        drawn: dict[str, tuple[float, float, Unit]] = {
            draw.capacity: ((wire := on_wire(draw.framing, size, messages)) * draw.amount, wire * draw.times, "B")
            for draw in path.draws
        }
        if tally.draws:
            for name, (amount, moved, unit) in tally.draws.items():
                before, past, _ = drawn.get(name, (0.0, 0.0, unit))
                drawn[name] = before + amount, past + moved, unit
            drawn = dict(sorted(drawn.items()))
        return Cost(
            Demand(
                latency=latency,
                amounts=tuple([(name, amount) for name, (amount, _, _) in drawn.items()]),
                floor=max([term.seconds for term in tally.floors], default=0.0),
                holds=tuple(sorted([(name, part) for name, part in tally.holds.items() if name not in drawn])),
                share=path.passes * size,
                clocks=tally.clocks(),
            ),
            moved=tuple([(name, moved, unit) for name, (_, moved, unit) in drawn.items()]),
            why=LazyTerms(_derivation, path, size, messages, tally),
        )

    def _path(self, a: str, b: str, protocol: Protocol | None) -> Path:
        if a == b and a in self._groups:  # a copy within a group of sockets
            members = self._members(a)
            collector = Collector(self._devices, self.backplanes, None)
            for _ in range(2):
                collector.end(members[0], inside=True)
            collector.draws = shared_by_sockets(collector.draws, members)
            return collector.path((a,), ())
        route = self.routes.route(a, b)
        stops = route.stops(a)
        collector = Collector(self._devices, self.backplanes, protocol_on(self._devices, stops, protocol))
        for name in (a, b):
            collector.end(name, inside=not route.links)
        if route.shares:
            collector.spread(stops, route)
        else:
            collector.along(stops, route.links)
        return collector.path(stops, route.links)


def _derivation(path: Path, size: float, messages: float, tally: TransferTally) -> tuple[Term, ...]:
    lines = (line.term(size, messages) for line in path.lines)
    return (*path.latencies, *tally.latencies, *lines, *tally.terms, *tally.floors)


def join(first: Cost, then: Cost) -> Cost:
    """Return both costs as one op: latencies in sequence, everything else in parallel."""
    amounts: dict[str, float] = {}
    for name, amount in (*first.demand.amounts, *then.demand.amounts):
        amounts[name] = amounts.get(name, 0.0) + amount
    longer = max((first.demand, then.demand), key=lambda demand: demand.floor)
    return Cost(
        Demand(
            latency=first.demand.latency + then.demand.latency,
            amounts=tuple(sorted(amounts.items())),
            floor=longer.floor,
            holds=tuple(sorted({**dict(first.demand.holds), **dict(then.demand.holds)}.items())),
            share=then.demand.share if then.demand.amounts else first.demand.share,
            crowd=first.demand.crowd or then.demand.crowd,
            clocks=longer.clocks,
        ),
        moved=tuple(sorted((*first.moved, *then.moved))),
        why=(*first.why, *then.why),
    )
