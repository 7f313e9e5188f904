"""Bisection bandwidth: the flow from one half of some devices to the other, for the worst way to halve them.

    bisection = min over halves (A, B), |A| = floor(n / 2), of the most that can flow from A to B, each way

Exact where at most 1000 ways to halve differ (always up to 12 devices, and for any number that hang alike on the same
switches). Beyond, the less of two ways, an upper bound: in order of names, and every other one.

Source: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 3.3.1; that it is hard to
find: Garey, Johnson, Stockmeyer, Theoretical Computer Science 1, 1976.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from hwsim.machine import Link, Machine
from hwsim.records import dataclass
from hwsim.views.topology.flow import Network
from hwsim.views.topology.reach import neighbours

MOST_CUTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Cut:
    """Links of one kind (or devices with a rate of their own) that limit a bisection: number and total bandwidth, B/s.

    Args:
        wires: peak of the same links, with headers; the bandwidth for devices.
    """

    kind: str
    count: int
    bandwidth: float
    wires: float


@dataclass(frozen=True, slots=True)
class Bisection:
    """Bisection bandwidth in each direction, B/s.

    Args:
        halves: the two halves that reach it.
        exact: no other halves have less.
        cuts: number of ways to halve that were tried.
        over: the only kind of link that counts; "" for all kinds.
    """

    bandwidth: float
    halves: tuple[tuple[str, ...], tuple[str, ...]]
    exact: bool
    cuts: int
    over: str
    limits: tuple[Cut, ...]

    @property
    def wires(self) -> float:
        """Peak of the links that limit it, without headers, B/s."""
        return math.fsum(limit.wires for limit in self.limits)


def bisection(machine: Machine, members: Sequence[str], over: str = "") -> Bisection | None:
    """Bisection of at least two devices over all links, or over links of one kind; None if these do not connect them."""
    links = _carrying(machine, [link for link in machine.links if over in ("", link.kind)], frozenset(members))
    network = Network(machine, links)
    if len(members) < 2 or not all(network.holds(name) for name in members):
        return None
    if not _reached(links, members[0]) >= set(members):
        return None
    classes = _alike(links, members)
    exact = _ways(classes, len(members)) <= MOST_CUTS
    tried = _every(classes, members) if exact else iter((frozenset(members[: len(members) // 2]), frozenset(members[1::2])))
    best, least, cuts = frozenset[str](), None, 0
    for half in tried:
        flow = network.flow(sorted(half), [name for name in members if name not in half], least)
        cuts += 1
        if least is None or flow < least:
            best, least = half, flow
    halves = tuple(name for name in members if name in best), tuple(name for name in members if name not in best)
    if members[0] in halves[1]:
        halves = halves[1], halves[0]
    value = network.flow(*halves)
    return Bisection(float(value), halves, exact, cuts, over, _limits(machine, network.cut()))


def _carrying(machine: Machine, links: Sequence[Link], members: frozenset[str]) -> list[Link]:
    """Links that traffic between members can take: no dead ends."""
    kept = [
        link for link in links if all(name in members or machine.devices[name].forwards for name in (link.source, link.target))
    ]
    while True:
        dead = {name for name, others in neighbours(kept).items() if len(others) == 1 and name not in members}
        if not dead:
            return kept
        kept = [link for link in kept if link.source not in dead and link.target not in dead]


def _alike(links: Sequence[Link], members: Sequence[str]) -> list[list[str]]:
    """Members that can change places: they have the same links to the same devices."""
    leaving: dict[str, list[tuple[str, float]]] = {name: [] for name in members}
    for link in links:
        if link.source in leaving:
            leaving[link.source].append((link.target, link.bandwidth))
    classes: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for name, others in leaving.items():
        classes.setdefault(tuple(sorted(others)), []).append(name)
    return list(classes.values())


def _ways(classes: Sequence[Sequence[str]], members: int) -> int:
    """Number of different ways to take half of the members; both halves of an even number are one way."""
    ways = [1, *(0 for _ in range(members // 2))]  # by the number of members taken
    for members_alike in classes:
        ways = [sum(ways[max(0, taken - len(members_alike)) : taken + 1]) for taken in range(len(ways))]  # integers
    return math.ceil(ways[-1] / 2) if members % 2 == 0 else ways[-1]


def _every(classes: Sequence[Sequence[str]], members: Sequence[str]) -> Iterator[frozenset[str]]:
    half, even = len(members) // 2, len(members) % 2 == 0
    for numbers in product(*(range(len(names) + 1) for names in classes)):
        if sum(numbers) != half:  # integers
            continue
        others = tuple(len(names) - number for names, number in zip(classes, numbers, strict=True))
        if not even or numbers <= others:
            yield frozenset(name for names, number in zip(classes, numbers, strict=True) for name in names[:number])


def _reached(links: Sequence[Link], start: str) -> set[str]:
    """Devices that links lead to from one of them."""
    near = neighbours(links)
    reached, front = {start}, {start}
    while front:
        front = set().union(*(near.get(name, set()) for name in front)) - reached
        reached |= front
    return reached


def _limits(machine: Machine, cut: Sequence[Link | str]) -> tuple[Cut, ...]:
    """The full links by kind, and the devices whose own rate is the limit."""
    limits: dict[str, Cut] = {}
    for end in cut:
        if isinstance(end, Link):
            kind, count = end.kind, parallel_links(end)
            bandwidth, wires = end.bandwidth, end.model.peak() * end.count
        else:
            kind, count = machine.devices[end].kind, 1
            capacity = machine.capacities.get(f"{end}.backplane") or machine.capacities[f"{end}.tx"]
            bandwidth = wires = capacity.rate
        before = limits.get(kind, Cut(kind, 0, 0.0, 0.0))
        limits[kind] = Cut(kind, before.count + count, before.bandwidth + bandwidth, before.wires + wires)
    return tuple(sorted(limits.values(), key=lambda limit: (-limit.bandwidth, limit.kind)))


def parallel_links(link: Link) -> int:
    """Number of equal links that make one connection."""
    return link.count * int(getattr(link.model, "links", 1))
