"""Devices and links of a machine by family, and distances between devices.

The devices are the GPUs, else the NICs, else the CPUs. Between them: bisection bandwidth, diameter, and the route of each pair
for up to 16 devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwsim.machine import Link, Machine, NoRoute, UnknownName
from hwsim.machine.contents import PlacedDevice, PlacedNode
from hwsim.records import dataclass
from hwsim.views.kit.view import Unshowable
from hwsim.views.topology.bisection import Bisection, bisection, parallel_links
from hwsim.views.topology.reach import HopDistances, reach

MOST_PAIRS: Final = 16  # largest number of devices with a list of pairs
MOST_DEVICES: Final = 20_000  # largest number of devices


@dataclass(frozen=True, slots=True)
class LinksTo:
    """Equal links from a device to a device family.

    Args:
        count: number of links.
        label: label.
        bandwidth: bandwidth of each link per direction (B/s).
        to: device family.
    """

    count: int
    label: str
    bandwidth: float
    to: str


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Devices of one family and kind with identical links.

    Args:
        family, kind: family and kind.
        names: names.
        links: links.
    """

    family: str
    kind: str
    names: tuple[str, ...]
    links: tuple[LinksTo, ...]


@dataclass(frozen=True, slots=True)
class DevicePair:
    """The route between two devices.

    Args:
        a, b: devices.
        how: as in `nvidia-smi topo -m`: NV2 (two NVLinks, directly or through switches), PIX (one PCIe switch), PXB
            (several), PHB
            (one CPU), SYS (the link between CPUs), a kind of link, NET (through NICs).
        hops: number of links.
        bandwidth: bandwidth of the narrowest link, or of all parallel routes that the routing uses (B/s).
    """

    a: str
    b: str
    how: str
    hops: int
    bandwidth: float


@dataclass(frozen=True, slots=True)
class MachineTopology:
    """The topology of a machine.

    Args:
        machine: machine.
        alike: all devices by family and links.
        of: devices between which distances are given.
        bisections: over all links; also over the widest kind of link if it connects the devices and is not the only kind.
        reach: distances; None for fewer than two devices.
        pairs: route of each pair.
    """

    machine: Machine
    alike: tuple[DeviceGroup, ...]
    of: tuple[str, ...]
    bisections: tuple[Bisection, ...]
    reach: HopDistances | None
    pairs: tuple[DevicePair, ...]


def find(machine: Machine, *, of: str = "") -> MachineTopology:
    """Return the topology of a machine, with distances between the devices of a pattern.

    Args:
        machine: machine.
        of: pattern; "" for the GPUs, else the NICs, else the CPUs.

    Raises:
        Unshowable: no device matches the pattern, or the machine has too many devices.
    """
    if len(machine.devices) > MOST_DEVICES:
        message = f"topology with {len(machine.devices):,} devices: expected at most {MOST_DEVICES:,}"
        raise Unshowable(message, "fewer nodes of the same kind have the same connections: --set let.nodes=16")
    try:
        members = machine.select(of) if of else _default_members(machine)
    except UnknownName as error:
        raise Unshowable(error.message, error.hint, "--of") from error
    several = len(members) > 1
    return MachineTopology(
        machine=machine,
        alike=tuple(alike(machine)),
        of=members,
        bisections=_bisections(machine, members) if several else (),
        reach=reach(machine, members) if several else None,
        pairs=tuple(_pairs(machine, members)) if several and len(members) <= MOST_PAIRS else (),
    )


def starred(machine: Machine, name: str) -> str:
    """Return the family of a device, prefixed with the families of the machines around it.

    >>> from hwsim import api
    >>> starred(api.load_machine("p3.16xlarge"), "gpu3")
    'gpu*'
    """
    return _starred(machine, machine.devices[name])


def starred_node(machine: Machine, name: str) -> str:
    """Return the family of a nested machine, prefixed with the families of the machines around it."""
    return _starred(machine, machine.nodes[name])


def _starred(machine: Machine, placed: PlacedDevice | PlacedNode) -> str:
    family = placed.family if placed.index is None else f"{placed.family}*"
    return f"{starred_node(machine, placed.node)}.{family}" if placed.node else family


def alike(machine: Machine) -> list[DeviceGroup]:
    """Return all devices, grouped by family and links."""
    leaving: dict[str, list[Link]] = {}
    for link in machine.links:
        leaving.setdefault(link.source, []).append(link)
    families = {name: starred(machine, name) for name in machine.devices}
    groups: dict[tuple[str, str, tuple[LinksTo, ...]], list[str]] = {}
    for name, device in machine.devices.items():
        counts: dict[tuple[str, float, str], int] = {}
        for link in leaving.get(name, ()):
            number = parallel_links(link)
            key = link.model.label(), link.bandwidth / number, families[link.target]
            counts[key] = counts.get(key, 0) + number
        links = [LinksTo(count, label, bandwidth, to) for (label, bandwidth, to), count in counts.items()]
        ordered = tuple(sorted(links, key=lambda to: (-to.count * to.bandwidth, to.label, to.to)))
        groups.setdefault((families[name], device.kind, ordered), []).append(name)
    return [DeviceGroup(family, kind, tuple(names), links) for (family, kind, links), names in groups.items()]


def _default_members(machine: Machine) -> tuple[str, ...]:
    several = (names for kind in ("gpu", "nic", "cpu") if len(names := machine.devices_of(kind)) > 1)
    return next(several, ())


def _bisections(machine: Machine, members: Sequence[str]) -> tuple[Bisection, ...]:
    over_all = bisection(machine, members)
    if over_all is None:
        return ()
    inside = set(members)
    kinds: dict[str, float] = {}
    for link in machine.links:
        if link.source in inside:
            kinds[link.kind] = kinds.get(link.kind, 0.0) + link.bandwidth
    widest = max(sorted(kinds), key=lambda kind: kinds[kind])
    alone = bisection(machine, members, widest) if len({link.kind for link in machine.links}) > 1 else None
    return (over_all,) if alone is None or {limit.kind for limit in over_all.limits} == {widest} else (over_all, alone)


def _pairs(machine: Machine, members: Sequence[str]) -> list[DevicePair]:
    pairs = []
    for a in members:
        for b in members:
            if a == b:
                continue
            try:
                route = machine.route(a, b)
            except NoRoute:
                continue
            pairs.append(DevicePair(a, b, _how(machine, route), len(route), _width(machine, a, b, route)))
    return pairs


def _width(machine: Machine, a: str, b: str, route: Sequence[Link]) -> float:
    """Return the bandwidth over all routes that the routing uses (B/s), limited by the most loaded link."""
    drawn = dict(machine.transfer(a, b, 1e9).demand.amounts)
    links = [link for link in machine.links if link.capacity in drawn]
    parts = [drawn[link.capacity] / link.bandwidth for link in links]
    several = len({link.capacity for link in links}) > len({link.capacity for link in route})  # a shared medium is one capacity
    return 1e9 / max(parts) if several else min(link.bandwidth for link in route)


def _how(machine: Machine, route: Sequence[Link]) -> str:
    """Return the kind of a route (see `DevicePair.how`); MIX for links of several kinds."""
    passed = [machine.devices[link.target].kind for link in route[:-1]]
    kinds = {link.kind for link in route}
    if kinds == {"nvlink"}:
        return f"NV{min(parallel_links(link) for link in route)}"
    if "nic" in passed or (any(link.model.network for link in route) and len(route) > 1):
        return "NET"
    if "cpu" in passed:
        return "SYS" if passed.count("cpu") > 1 else "PHB"
    if kinds == {"pcie"} and passed:
        return "PIX" if len(passed) == 1 else "PXB"
    return route[0].model.short if len(kinds) == 1 else "MIX"
