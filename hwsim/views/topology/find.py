"""What a machine is made of and how it hangs together: parts and links that are alike as one line, how far and how wide.

Of some devices (the GPUs, else the network cards, else all that computes): bisection bandwidth, diameter, narrowest route,
and of up to 16 of them how every pair is linked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwsim.machine import Link, Machine, NoRoute, UnknownName
from hwsim.records import dataclass
from hwsim.views.kit.view import Unshowable
from hwsim.views.topology.bisection import Bisection, bisection
from hwsim.views.topology.reach import Reach, reach

MOST_PAIRS: Final = 16  # devices whose pairs are listed one by one
MOST_DEVICES: Final = 20_000


@dataclass(frozen=True, slots=True)
class LinksTo:
    """Links of one device that are alike: how many, each with so many B/s in each direction, and to which family."""

    count: int
    what: str
    bandwidth: float
    to: str


@dataclass(frozen=True, slots=True)
class Alike:
    """Devices of one family and kind with the same links."""

    family: str
    kind: str
    names: tuple[str, ...]
    links: tuple[LinksTo, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """How traffic gets from one device to another.

    how: as `nvidia-smi topo -m` says it: NV2 (over two NVLinks, also through their switches), PIX (one PCIe switch), PXB
    (several), PHB (one CPU), SYS (over the link between CPUs), a kind of link, NET (through network cards).
    bandwidth: B/s of the narrowest link, of all ways together where the routing uses several.
    """

    a: str
    b: str
    how: str
    hops: int
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Topology:
    """Findings; bisections: over all links, and over the widest kind alone where a second kind connects them too."""

    machine: Machine
    devices: int
    connections: int
    alike: tuple[Alike, ...]
    of: tuple[str, ...]
    bisections: tuple[Bisection, ...]
    reach: Reach | None
    pairs: tuple[Pair, ...]


def find(machine: Machine, *, of: str = "") -> Topology:
    """The topology of a machine, with distances between the devices `of` a pattern.

    Raises:
        Unshowable: nothing is called `of`, or the machine has more devices than can be compared pair by pair.
    """
    if len(machine.devices) > MOST_DEVICES:
        message = f"{len(machine.devices):,} devices are too many for a topology, which goes through every pair"
        hint = "fewer nodes of the same kind are connected in the same way: --set let.nodes=16"
        raise Unshowable(f"{message}; the most is {MOST_DEVICES:,}", hint)
    try:
        members = machine.select(of) if of else _those_that_matter(machine)
    except UnknownName as error:
        raise Unshowable(error.message, error.hint, "--of") from error
    several = len(members) > 1
    return Topology(
        machine=machine,
        devices=len(machine.devices),
        connections=len(machine.links) // 2,
        alike=tuple(alike(machine)),
        of=members,
        bisections=_bisections(machine, members) if several else (),
        reach=reach(machine, members) if several else None,
        pairs=tuple(_pairs(machine, members)) if several and len(members) <= MOST_PAIRS else (),
    )


def starred(machine: Machine, name: str) -> str:
    """The family of a device with that of the machines around it.

    >>> from hwsim import api
    >>> starred(api.load_machine("p3.16xlarge"), "gpu3")
    'gpu*'
    """
    device = machine.devices[name]
    own = name.rpartition(".")[2]
    family = device.family if own == device.family else f"{device.family}*"
    return f"{_starred_node(machine, device.node)}.{family}" if device.node else family


def _starred_node(machine: Machine, name: str) -> str:
    node = machine.nodes[name]
    own = node.family if node.index is None else f"{node.family}*"
    return f"{_starred_node(machine, node.node)}.{own}" if node.node else own


def side_by_side(link: Link) -> int:
    """How many links one connection is."""
    return link.count * int(getattr(link.model, "links", 1))


def alike(machine: Machine) -> list[Alike]:
    """All devices, those of a family with the same links together."""
    leaving: dict[str, list[Link]] = {}
    for link in machine.links:
        leaving.setdefault(link.source, []).append(link)
    families = {name: starred(machine, name) for name in machine.devices}
    found: dict[tuple[str, str, tuple[LinksTo, ...]], list[str]] = {}
    for name, device in machine.devices.items():
        counts: dict[tuple[str, float, str], int] = {}
        for link in leaving.get(name, ()):
            number = side_by_side(link)
            key = link.model.label(), link.bandwidth / number, families[link.target]
            counts[key] = counts.get(key, 0) + number
        links = [LinksTo(count, what, each, to) for (what, each, to), count in counts.items()]
        ordered = tuple(sorted(links, key=lambda one: (-one.count * one.bandwidth, one.what, one.to)))
        found.setdefault((families[name], device.kind, ordered), []).append(name)
    return [Alike(family, kind, tuple(names), links) for (family, kind, links), names in found.items()]


def _those_that_matter(machine: Machine) -> tuple[str, ...]:
    for kind in ("gpu", "nic", "cpu"):
        found = machine.devices_of(kind)
        if len(found) > 1:
            return found
    return ()


def _bisections(machine: Machine, members: Sequence[str]) -> tuple[Bisection, ...]:
    whole = bisection(machine, members)
    if whole is None:
        return ()
    inside = set(members)
    kinds: dict[str, float] = {}
    for link in machine.links:
        if link.source in inside:
            kinds[link.kind] = kinds.get(link.kind, 0.0) + link.bandwidth
    widest = max(sorted(kinds), key=lambda kind: kinds[kind])
    alone = bisection(machine, members, widest) if len({link.kind for link in machine.links}) > 1 else None
    if alone is None or {each.what for each in whole.limits} == {widest}:
        return (whole,)
    return whole, alone


def _pairs(machine: Machine, members: Sequence[str]) -> list[Pair]:
    found = []
    for a in members:
        for b in members:
            if a == b:
                continue
            try:
                route = machine.route(a, b)
            except NoRoute:
                continue
            found.append(Pair(a, b, _how(machine, route), len(route), _width(machine, a, b, route)))
    return found


def _width(machine: Machine, a: str, b: str, route: Sequence[Link]) -> float:
    """Of all that the routing uses together: what the most loaded link allows."""
    drawn = dict(machine.transfer(a, b, 1e9).demand.amounts)
    links = [link for link in machine.links if link.capacity in drawn]
    parts = [drawn[link.capacity] / link.bandwidth for link in links]
    several = len({link.capacity for link in links}) > len({link.capacity for link in route})  # a shared medium is one capacity
    return 1e9 / max(parts) if several else min(link.bandwidth for link in route)


def _how(machine: Machine, route: Sequence[Link]) -> str:
    passed = [machine.devices[link.target].kind for link in route[:-1]]
    kinds = {link.kind for link in route}
    if kinds == {"nvlink"}:
        return f"NV{min(side_by_side(link) for link in route)}"
    if "nic" in passed or (any(link.model.network for link in route) and len(route) > 1):
        return "NET"
    if "cpu" in passed:
        return "SYS" if passed.count("cpu") > 1 else "PHB"
    if kinds == {"pcie"} and passed:
        return "PIX" if len(passed) == 1 else "PXB"
    return route[0].model.short if len(kinds) == 1 else "MIX"
