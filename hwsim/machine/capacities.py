"""Capacities of a machine by name: of devices, backplanes of switches, and links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from hwsim.demand import Capacity
from hwsim.devices import Switch
from hwsim.machine.contents import within
from hwsim.machine.layout import Layout, LayoutPart
from hwsim.machine.net import Net
from hwsim.machine.views import LazyMapping, device_names


class Backplanes:
    """A calculator of the backplane bandwidth of oversubscribed switches."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._rates: dict[str, float | None] = {}
        self._any = any(oversubscription(part) is not None for part in net.layout.every())

    def rate(self, name: str) -> float | None:
        """Return the backplane bandwidth (bytes/s) of an oversubscribed switch; None for other devices."""
        if not self._any:
            return None
        if name not in self._rates:
            self._rates[name] = self._find(name)
        return self._rates[name]

    def names(self) -> Iterator[str]:
        """Iterate over the oversubscribed switches."""
        if self._any:
            switches = self._net.layout.walk(lambda part: part.names if oversubscription(part) is not None else ())
            yield from (name for name in switches if self.rate(name) is not None)

    def _find(self, name: str) -> float | None:
        spot = self._net.layout.find(name)
        ratio = None if spot is None else oversubscription(spot.part)
        if ratio is None:
            return None
        carried, bandwidths = 0.0, self._net.bandwidths(name)
        if len(set(bandwidths)) > 1:  # summed in the order of names, independent of the order of the file
            bandwidths = [link.bandwidth for link in self._net.leaving(name)]
        for bandwidth in bandwidths:
            carried += bandwidth
        return carried / ratio if carried > 0 else None


def oversubscription(part: LayoutPart) -> float | None:
    """Return the oversubscription of switches: bandwidth of their links over their backplane bandwidth; None: not stated."""
    return part.model.oversubscription if isinstance(part.model, Switch) else None


def capacities(net: Net, backplanes: Backplanes) -> LazyMapping[Capacity]:
    """Return the capacities by name: of devices in natural order, then of backplanes, then of links."""
    return LazyMapping(partial(_find, net, backplanes), partial(_names, net, backplanes), partial(_count, net, backplanes))


def rates(by_name: Mapping[str, Capacity]) -> LazyMapping[float]:
    """Return the rate of each capacity by name."""
    return LazyMapping(partial(_rate, by_name), partial(iter, by_name), partial(len, by_name))


def _rate(by_name: Mapping[str, Capacity], name: str) -> float | None:
    capacity = by_name.get(name)
    return None if capacity is None else capacity.rate


def _names(net: Net, backplanes: Backplanes) -> Iterator[str]:
    seen = set()
    for name in device_names(net.layout):
        spot = net.layout.find(name)
        for capacity in spot.part.model.capacities(name) if spot is not None and spot.part.model is not None else ():
            seen.add(capacity.name)
            yield capacity.name
    yield from (full for name in backplanes.names() if (full := f"{name}.backplane") not in seen)
    shared: set[str] = set()  # limits of both directions together
    for device in device_names(net.layout):
        for link in net.leaving(device):
            if link.model.duplex != "half":
                yield link.capacity
            full = link.capacity if link.model.duplex == "half" else link.both
            if full and full not in shared:
                shared.add(full)
                yield full


def _find(net: Net, backplanes: Backplanes, name: str) -> Capacity | None:
    head, tail = within(name)
    if tail == "backplane" and (rate := backplanes.rate(head)) is not None:
        return Capacity.of(head, "backplane", rate, "B")
    spot = net.layout.find(head) if head else None
    if spot is not None and spot.part.model is not None:
        return next((capacity for capacity in spot.part.model.capacities(head) if capacity.name == name), None)
    if (link := net.drawing(name)) is None:
        return None
    kind = "both" if link.both == name else "wire" if link.model.duplex == "half" else "way"
    rate = link.bandwidth * (link.model.two_way if kind == "both" else 1)
    return Capacity(name, rate, "B", kind, link=link.name, ends=(link.source, link.target))


def _count(net: Net, backplanes: Backplanes) -> int:
    return _capacities_in(net.layout) + sum(1 for name in backplanes.names() if not _has_bandwidth(net, name))


def _has_bandwidth(net: Net, switch: str) -> bool:
    spot = net.layout.find(switch)
    model = None if spot is None else spot.part.model
    return isinstance(model, Switch) and model.bandwidth is not None


def _capacities_in(layout: Layout) -> int:
    """Return the number of capacities of devices and links, at any depth."""
    total = 0
    for part in layout.parts:
        if part.child is not None:
            total += len(part.names) * _capacities_in(part.child)
        elif part.model is not None:
            total += len(part.names) * len(part.model.capacities(part.names[0]))
    for bundle in layout.wires.bundles:
        total += len(bundle.a) * (1 if bundle.model.duplex == "half" else 3 if bundle.model.two_way < 2 else 2)
    return total
