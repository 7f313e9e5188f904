"""Bisection bandwidth: the flow from one half of some devices to the other, for the worst way to halve them.

    bisection = min over halves (A, B), |A| = floor(n / 2), of the most that can flow from A to B, each way

Exact where at most 1000 ways to halve differ (always up to 12 devices, and for any number that hang alike on the same
switches). Beyond, the least of some halves, an upper bound: in order of names, every other one, half of each node, those
nearest to the first, and what exchanging two at a time improves.

Source: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 3.3.1; that it is hard to
find: Garey, Johnson, Stockmeyer, Theoretical Computer Science 1, 1976.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from hwsim.machine import Link, Machine
from hwsim.records import dataclass
from hwsim.views.topology.flow import Network

MOST_CUTS: Final = 1000
_WORK: Final = 300_000  # arcs x flows that a search by exchanges may look at


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
    if len(_distances(links, members[0]).keys() & set(members)) < len(members):
        return None
    classes = _alike(links, members)
    exact = _ways(classes, len(members)) <= MOST_CUTS
    tried = _every(classes, members) if exact else _some(machine, links, members)
    best, least, cuts = frozenset[str](), None, 0
    for half in tried:
        flow = network.flow(sorted(half), [name for name in members if name not in half], least)
        cuts += 1
        if least is None or flow < least:
            best, least = half, flow
    if not exact:
        best, more = _exchanged(network, members, best, least or 0)
        cuts += more
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
        near: dict[str, set[str]] = {}
        for link in kept:
            near.setdefault(link.source, set()).add(link.target)
        dead = {name for name, others in near.items() if len(others) == 1 and name not in members}
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


def _some(machine: Machine, links: Sequence[Link], members: Sequence[str]) -> Iterator[frozenset[str]]:
    half = len(members) // 2
    yield frozenset(members[:half])
    yield frozenset(members[1::2])
    nodes: dict[str, list[str]] = {}
    for name in members:
        nodes.setdefault(machine.devices[name].node, []).append(name)
    inside = [name for names in nodes.values() for name in names[: len(names) // 2]]
    rest = [name for name in members if name not in set(inside)]
    yield frozenset([*inside, *rest][:half])
    away = _distances(links, members[0])
    order = {name: at for at, name in enumerate(members)}
    yield frozenset(sorted(members, key=lambda name: (away.get(name, len(away)), order[name]))[:half])


def _distances(links: Sequence[Link], start: str) -> Mapping[str, int]:
    near: dict[str, list[str]] = {}
    for link in links:
        near.setdefault(link.source, []).append(link.target)
    away, front = {start: 0}, [start]
    while front:
        reached = dict.fromkeys(target for name in front for target in near.get(name, ()) if target not in away)
        away |= dict.fromkeys(reached, away[front[0]] + 1)
        front = list(reached)
    return away


def _exchanged(network: Network, members: Sequence[str], half: frozenset[str], value: int) -> tuple[frozenset[str], int]:
    """Better halves, by exchanging two members as long as that helps, and the number of exchanges tried."""
    tried, most = 0, _WORK // network.arcs()
    improved = True
    while improved:
        improved = False
        for a, b in product(sorted(half), sorted(set(members) - half)):
            if tried >= most:
                return half, tried
            exchanged = (half - {a}) | {b}
            flow = network.flow(sorted(exchanged), [name for name in members if name not in exchanged], value)
            tried += 1
            if flow < value:
                half, value, improved = exchanged, flow, True
                break
    return half, tried


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
