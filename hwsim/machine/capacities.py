"""The capacities of a machine by name: of its devices, the backplanes of its switches, and its links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwsim.demand import Capacity
from hwsim.devices import Switch
from hwsim.machine.layout import Layout, Part
from hwsim.machine.net import Net


class Backplanes:
    """Bytes per second of the switches whose links could bring more than they pass on."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._rates: dict[str, float | None] = {}
        self._any = any(oversubscription(part) is not None for part in net.layout.every())

    def rate(self, name: str) -> float | None:
        """Bytes per second of one switch; None for anything else."""
        if not self._any:
            return None
        if name not in self._rates:
            self._rates[name] = self._find(name)
        return self._rates[name]

    def names(self) -> Iterator[str]:
        """The switches that have one."""
        if self._any:
            switches = self._net.layout.walk(lambda part: part.names if oversubscription(part) is not None else ())
            yield from (name for name in switches if self.rate(name) is not None)

    def _find(self, name: str) -> float | None:
        spot = self._net.layout.find(name)
        times = None if spot is None else oversubscription(spot.part)
        if times is None:
            return None
        carried, bandwidths = 0.0, self._net.bandwidths(name)
        if len(set(bandwidths)) > 1:  # added up in the order of names, whatever the order of the file
            bandwidths = [link.bandwidth for link in self._net.leaving(name)]
        for bandwidth in bandwidths:
            carried += bandwidth
        return carried / times if carried > 0 else None


def oversubscription(part: Part) -> float | None:
    """Bandwidth of the links at switches over the bandwidth that the switches pass on."""
    return part.model.oversubscription if isinstance(part.model, Switch) else None


class Capacities(Mapping[str, Capacity]):
    """Capacities of devices in natural order, then of backplanes, then of links; `len` makes none of them."""

    def __init__(self, net: Net, backplanes: Backplanes) -> None:
        self._net, self._backplanes = net, backplanes
        self.made: dict[str, Capacity] = {}
        self._count: int | None = None

    def __getitem__(self, name: str) -> Capacity:
        capacity = self.made.get(name)
        if capacity is None:
            capacity = self._find(name)
            if capacity is None:
                raise KeyError(name)
            self.made[name] = capacity
        return capacity

    def __iter__(self) -> Iterator[str]:
        seen = set()
        for name in self._net.layout.walk(lambda part: part.names if part.child is None else ()):
            spot = self._net.layout.find(name)
            for capacity in spot.part.model.capacities(name) if spot is not None and spot.part.model is not None else ():
                seen.add(capacity.name)
                yield capacity.name
        for name in self._backplanes.names():
            if (full := f"{name}.backplane") not in seen:
                yield full
        shared: set[str] = set()  # by both directions
        for device in self._net.layout.walk(lambda part: part.names if part.child is None else ()):
            for link in self._net.leaving(device):
                if link.model.duplex != "half":
                    yield link.capacity
                full = link.capacity if link.model.duplex == "half" else link.both
                if full and full not in shared:
                    shared.add(full)
                    yield full

    def __len__(self) -> int:
        if self._count is None:
            self._count = _capacities_in(self._net.layout) + sum(1 for name in self._backplanes.names() if not self._stated(name))
        return self._count

    def __repr__(self) -> str:
        return f"<{len(self)} capacities by name>"

    def _stated(self, name: str) -> bool:
        spot = self._net.layout.find(name)
        model = None if spot is None else spot.part.model
        return isinstance(model, Switch) and model.bandwidth is not None

    def _find(self, name: str) -> Capacity | None:
        head, dot, tail = name.rpartition(".")
        if dot and tail == "backplane" and (rate := self._backplanes.rate(head)) is not None:
            return Capacity(name, rate, "B")
        spot = self._net.layout.find(head) if dot else None
        if spot is not None and spot.part.model is not None:
            return next((each for each in spot.part.model.capacities(head) if each.name == name), None)
        for link in self._net.drawing(name):
            if link.both == name:
                return Capacity(name, link.bandwidth * link.model.two_way, "B")
            if link.capacity == name:
                return Capacity(name, link.bandwidth, "B")
        return None


def _capacities_in(layout: Layout) -> int:
    """Number of capacities of devices and links, at any depth."""
    total = 0
    for part in layout.parts:
        if part.child is not None:
            total += len(part.names) * _capacities_in(part.child)
        elif part.model is not None:
            total += len(part.names) * len(part.model.capacities(part.names[0]))
    for bundle in layout.wires.bundles:
        total += len(bundle.a) * (1 if bundle.model.duplex == "half" else 3 if bundle.model.two_way < 2 else 2)
    return total


class Rates(Mapping[str, float]):
    """Amounts per second of capacities."""

    def __init__(self, capacities: Mapping[str, Capacity]) -> None:
        self._capacities = capacities

    def __getitem__(self, name: str) -> float:
        return self._capacities[name].rate

    def __iter__(self) -> Iterator[str]:
        return iter(self._capacities)

    def __len__(self) -> int:
        return len(self._capacities)
