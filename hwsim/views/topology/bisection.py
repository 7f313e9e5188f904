"""Bisection bandwidth: the flow between two halves of some devices, for the worst halving.

    bisection = min over halves (A, B), |A| = floor(n / 2), of the max flow from A to B, per direction

The result is exact if at most 1000 halvings differ: always up to 12 devices, and for any number of devices with identical links
to the same switches. Otherwise it is an upper bound: the minimum of two halvings, in order of names and alternating.

Source: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 3.3.1; NP-hardness: Garey,
Johnson, Stockmeyer, Theoretical Computer Science 1, 1976.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from hwsim.machine import Link, Machine
from hwsim.records import dataclass
from hwsim.views.topology.flow import FlowNetwork
from hwsim.views.topology.reach import neighbours

MOST_CUTS: Final = 1000


@dataclass(frozen=True, slots=True)
class BisectionCut:
    """Links of one kind, or devices with their own rate, that limit a bisection.

    Args:
        kind: kind of the links or devices.
        count: number of links or devices.
        bandwidth: total bandwidth (B/s).
        wires: total peak of the links, including headers (B/s); the bandwidth for devices.
    """

    kind: str
    count: int
    bandwidth: float
    wires: float


@dataclass(frozen=True, slots=True)
class Bisection:
    """The bisection bandwidth of some devices.

    Args:
        bandwidth: bandwidth per direction (B/s).
        halves: worst halving.
        exact: whether no other halving has less.
        cuts: number of halvings that were tried.
        over: kind of link to which the flow is restricted; "" for all kinds.
        limits: full links and devices.
    """

    bandwidth: float
    halves: tuple[tuple[str, ...], tuple[str, ...]]
    exact: bool
    cuts: int
    over: str
    limits: tuple[BisectionCut, ...]

    @property
    def wires(self) -> float:
        """Peak of the limiting links, including headers (B/s)."""
        return math.fsum(limit.wires for limit in self.limits)


def bisection(machine: Machine, members: Sequence[str], over: str = "") -> Bisection | None:
    """Return the bisection of at least two devices, over all links or one kind of link; None if they are not connected."""
    links = _carrying(machine, [link for link in machine.links if over in ("", link.kind)], frozenset(members))
    network = FlowNetwork(machine, links)
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
    """Return the links that traffic between members can take, without dead ends."""
    kept = [
        link for link in links if all(name in members or machine.devices[name].forwards for name in (link.source, link.target))
    ]
    while True:
        dead = {name for name, others in neighbours(kept).items() if len(others) == 1 and name not in members}
        if not dead:
            return kept
        kept = [link for link in kept if link.source not in dead and link.target not in dead]


def _alike(links: Sequence[Link], members: Sequence[str]) -> list[list[str]]:
    """Return classes of members with identical links to the same devices."""
    leaving: dict[str, list[tuple[str, float]]] = {name: [] for name in members}
    for link in links:
        if link.source in leaving:
            leaving[link.source].append((link.target, link.bandwidth))
    classes: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for name, others in leaving.items():
        classes.setdefault(tuple(sorted(others)), []).append(name)
    return list(classes.values())


def _ways(classes: Sequence[Sequence[str]], members: int) -> int:
    """Return the number of distinct halvings; the two halves of an even number count once."""
    ways = [1, *(0 for _ in range(members // 2))]  # by number of members in the half
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
    """Return the devices that a device reaches over these links."""
    near = neighbours(links)
    reached, front = {start}, {start}
    while front:
        front = set().union(*(near.get(name, set()) for name in front)) - reached
        reached |= front
    return reached


def _limits(machine: Machine, cut: Sequence[Link | str]) -> tuple[BisectionCut, ...]:
    """Return the full links by kind, and the devices whose own rate is the limit."""
    limits: dict[str, BisectionCut] = {}
    for end in cut:
        if isinstance(end, Link):
            kind, count = end.kind, parallel_links(end)
            bandwidth, wires = end.bandwidth, end.model.peak() * end.count
        else:
            kind, count = machine.devices[end].kind, 1
            capacity = machine.capacities.get(f"{end}.backplane") or machine.capacities[f"{end}.tx"]
            bandwidth = wires = capacity.rate
        before = limits.get(kind, BisectionCut(kind, 0, 0.0, 0.0))
        limits[kind] = BisectionCut(kind, before.count + count, before.bandwidth + bandwidth, before.wires + wires)
    return tuple(sorted(limits.values(), key=lambda limit: (-limit.bandwidth, limit.kind)))


def parallel_links(link: Link) -> int:
    """Return the number of parallel links of a connection."""
    return link.count * int(getattr(link.model, "links", 1))
