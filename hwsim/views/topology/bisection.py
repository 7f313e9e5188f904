"""Bisection bandwidth: what flows from one half of some devices to the other, for the worst way to halve them.

    bisection = min over halves (A, B), |A| = floor(n / 2), of the most that can flow from A to B, each way

Exact where at most 1000 ways to halve differ (always up to 12 devices, and for any number that hang alike on the same
switches).  Beyond, the least of some halves, an upper bound: in order of names, every other one, half of each node, those
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
    """What limits a bisection: links of one kind (or devices of their own rate), how many, and what they carry in all.

    wires: what the same links carry with headers and all that is not reached; None for a device.
    """

    what: str
    count: int
    bandwidth: float
    wires: float | None


@dataclass(frozen=True, slots=True)
class Bisection:
    """bandwidth in B/s, each way.  halves: the worst.  exact: no halves are worse; `cuts`: how many were tried.

    over: the kind of link it is confined to, "" for all.
    """

    bandwidth: float
    halves: tuple[tuple[str, ...], tuple[str, ...]]
    exact: bool
    cuts: int
    over: str
    limits: tuple[Cut, ...]

    @property
    def wires(self) -> float:
        """What the links that limit it could carry without headers, at their peak."""
        return math.fsum(each.bandwidth if each.wires is None else each.wires for each in self.limits)


def bisection(machine: Machine, members: Sequence[str], over: str = "") -> Bisection | None:
    """Of at least two devices, over all links or those of one kind; None where these do not connect them."""
    links = _that_matter(machine, [link for link in machine.links if over in ("", link.kind)], frozenset(members))
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
        found = network.flow(sorted(half), [name for name in members if name not in half], least)
        cuts += 1
        if least is None or found < least:
            best, least = half, found
    if not exact:
        best, more = _exchanged(network, members, best, least or 0)
        cuts += more
    halves = tuple(name for name in members if name in best), tuple(name for name in members if name not in best)
    if members[0] in halves[1]:
        halves = halves[1], halves[0]
    value = network.flow(*halves)
    return Bisection(float(value), halves, exact, cuts, over, _limits(machine, network.cut()))


def _that_matter(machine: Machine, links: Sequence[Link], members: frozenset[str]) -> list[Link]:
    """Links on which traffic between members can be: no dead ends."""
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
    """Members that can change places: the same links to the same devices."""
    hung: dict[str, list[tuple[str, float]]] = {name: [] for name in members}
    for link in links:
        if link.source in hung:
            hung[link.source].append((link.target, link.bandwidth))
    classes: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for name, others in hung.items():
        classes.setdefault(tuple(sorted(others)), []).append(name)
    return list(classes.values())


def _ways(classes: Sequence[Sequence[str]], members: int) -> int:
    """How many ways to take half of the members differ; both halves of an even number are one way."""
    ways = {0: 1}
    for each in classes:
        more: dict[int, int] = {}
        for taken, count in ways.items():
            for number in range(min(len(each), members // 2 - taken) + 1):
                more[taken + number] = more.get(taken + number, 0) + count
        ways = more
    found = ways.get(members // 2, 0)
    return math.ceil(found / 2) if members % 2 == 0 else found


def _every(classes: Sequence[Sequence[str]], members: Sequence[str]) -> Iterator[frozenset[str]]:
    half, even = len(members) // 2, len(members) % 2 == 0
    for numbers in product(*(range(len(each) + 1) for each in classes)):
        if sum(numbers) != half:  # whole
            continue
        others = tuple(len(each) - number for each, number in zip(classes, numbers, strict=True))
        if not even or numbers <= others:
            yield frozenset(name for each, number in zip(classes, numbers, strict=True) for name in each[:number])


def _some(machine: Machine, links: Sequence[Link], members: Sequence[str]) -> Iterator[frozenset[str]]:
    half = len(members) // 2
    yield frozenset(members[:half])
    yield frozenset(members[1::2])
    nodes: dict[str, list[str]] = {}
    for name in members:
        nodes.setdefault(machine.devices[name].node, []).append(name)
    inside = [name for each in nodes.values() for name in each[: len(each) // 2]]
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
    """Better halves by exchanging two members as long as that helps, and how many were looked at."""
    looked, left = 0, _WORK // network.arcs()
    improved = True
    while improved:
        improved = False
        for a, b in product(sorted(half), sorted(set(members) - half)):
            if looked >= left:
                return half, looked
            other = (half - {a}) | {b}
            found = network.flow(sorted(other), [name for name in members if name not in other], value)
            looked += 1
            if found < value:
                half, value, improved = other, found, True
                break
    return half, looked


def _limits(machine: Machine, cut: Sequence[Link | str]) -> tuple[Cut, ...]:
    """The full links by kind, and the devices whose own rate is the limit."""
    found: dict[str, Cut] = {}
    for each in cut:
        if isinstance(each, Link):
            what, count = each.kind, each.count * getattr(each.model, "links", 1)
            bandwidth, wires = each.bandwidth, each.model.peak() * each.count
        else:
            what, count = machine.devices[each].kind, 1
            backplane = machine.capacities.get(f"{each}.backplane")
            bandwidth = wires = backplane.rate if backplane is not None else machine.capacities[f"{each}.tx"].rate
        before = found.get(what, Cut(what, 0, 0.0, 0.0))
        found[what] = Cut(what, before.count + count, before.bandwidth + bandwidth, (before.wires or 0.0) + wires)
    return tuple(sorted(found.values(), key=lambda each: (-each.bandwidth, each.what)))
