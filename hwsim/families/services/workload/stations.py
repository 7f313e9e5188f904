"""Stations of services: the capacities of a machine that can become a bottleneck.

Capacities that can never bind, with any number of requests, are removed. The first capacity of a kind of work is the one that it
uses longest when alone (for a disk, its queue). It uses another capacity L at most r times as long; r is the largest ratio among
all work with the same first capacity. A first capacity is used at most entirely. So if the ratios of all first capacities other
than L add up to at most 1, L is never full. This is exact: on most machines, it removes the memory and the PCI Express link
behind a disk.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.demand import Capacity, Demand, rates_of
from hwsim.families.services.workload.arms import ArmAccesses, accesses_of
from hwsim.families.services.workload.program import NONE, ServedStatement, Station, StationKind, StepNumber

_SAME: Final = 1e-12  # relative difference
_ROUNDED: Final = 1e-6  # relative rounding where segments meet
_DEPTHS: Final = tuple(2**power for power in range(17))  # queue depths of a device


class NotFifo(Exception):
    """Raised if work cannot be served first come, first served at a station that requires it."""


def stations_of(
    served: Sequence[ServedStatement],
    capacities: Mapping[str, Capacity],
    *,
    shared: Collection[str] = (),
    changed: Collection[str] = (),
    in_turn: Collection[str] = (),
    sizes: Mapping[int, StepNumber] | None = None,
    works: Iterable[int] | None = None,
) -> tuple[tuple[ServedStatement, ...], tuple[Station, ...], tuple[str, ...]]:
    """Return the statements with their stations, the stations, and the capacities that work waits for.

    Args:
        served: statements of all services.
        capacities: capacities of the machine, by name.
        shared: capacities that jobs use as well.
        changed: capacities whose speed changes during the run.
        in_turn: capacities with first come, first served.
        sizes: random sizes, by index of the statement.
        works: indices of the statements that are executed, in an order that does not depend on unused ones; None: all.

    Raises:
        NotInTurn: work at a capacity of `in_turn` does not use exactly one server.
    """
    drawing = {
        number: cost.demand
        for number in (range(len(served)) if works is None else works)
        if (cost := served[number].cost) is not None and _names(cost.demand)
    }
    outside = _reached(drawing, {*shared, *changed})
    binding = _binding(list(drawing.values()), capacities)
    cut = {number: _only(demand, binding) for number, demand in drawing.items()}
    stations: list[Station] = []
    out, rates = list(served), rates_of(capacities.values())
    for names in _components(list(cut.values())):
        members = {number: demand for number, demand in cut.items() if names & set(_names(demand))}
        kind: StationKind = "shared" if len(names) == 1 and not any(demand.holds for demand in members.values()) else "network"
        issued = any(outside & set(_names(drawing[number])) for number in members)
        servers = 1
        if names <= set(in_turn) and kind == "shared" and all(map(_is_one, members.values())):
            kind, servers = "fifo", round(capacities[next(iter(names))].rate)
        drawn_by_others = names & set(shared)
        accesses = (
            {member: accesses_of(drawing[member], rates) for member in members}
            if kind == "shared" and not drawn_by_others
            else {}
        )
        at_arms = _at_arms(accesses, sizes or {})
        if at_arms:
            kind, servers = "arms", at_arms[0].arms
        if (fifo := names & set(in_turn)) and (kind != "fifo" or drawn_by_others):
            name = served[next(iter(members))].name
            why = "jobs or models use them, too" if drawn_by_others else f"'{name}' uses several of them, or memory as well"
            raise NotFifo(f"{min(fifo)} cannot serve requests first come, first served: {why}")
        demands: list[Demand] = []
        for number, demand in members.items():
            apart = issued or at_arms
            same = (index for index, other in enumerate(demands) if not apart and _alike(demand, other))
            alike = next(same, len(demands))
            if alike == len(demands):
                whole = drawing[number] if issued else demand
                demands.append(replace(whole, crowd=None) if issued and at_arms else whole)
            out[number] = replace(out[number], station=len(stations), flow=alike)
        every = {name for number in members for name in _names(drawing[number])} if issued else names
        order = sorted(every, key=lambda name: (name not in names, name))  # those that name the station first
        places = tuple(capacities[name] for name in order)
        stations.append(Station(kind, places, tuple(demands), servers, at_arms, issued))
    first = {number: _first(demand, capacities, rates)[0] for number, demand in drawing.items()}
    waited = tuple(dict.fromkeys(first[number] for number in sorted(first)))
    return (
        tuple(
            replace(stmt, resource=waited.index(first[number]) if number in first else NONE) for number, stmt in enumerate(out)
        ),
        tuple(stations),
        waited,
    )


def _at_arms(works: Mapping[int, ArmAccesses | None], sizes: Mapping[int, StepNumber]) -> tuple[ArmAccesses, ...]:
    """Return the accesses of all work at a capacity if the same number of arms serves each access, else ()."""
    at_arms: list[ArmAccesses] = []
    for number, accesses in works.items():
        size = sizes.get(number)
        if accesses is None or accesses.arms != next(iter(at_arms), accesses).arms:
            return ()
        if size is not None and (accesses.count > 1 or size.of(0.0) * accesses.first < accesses.reach * (1 - _ROUNDED)):
            return ()  # a larger size would change the number of accesses
        at_arms.append(accesses)
    return tuple(at_arms)


def _names(demand: Demand) -> tuple[str, ...]:
    queue = () if demand.crowd is None else (demand.crowd.capacity,)
    return tuple(dict.fromkeys((*(name for name, _ in (*demand.amounts, *demand.holds)), *queue)))


def _reached(drawing: Mapping[int, Demand], shared: Collection[str]) -> set[str]:
    """Return the shared capacities, and all capacities of work that uses one of them, transitively."""
    reached = set(shared)
    while True:
        more = {name for demand in drawing.values() if reached & set(_names(demand)) for name in _names(demand)} - reached
        if not more:
            return reached
        reached |= more


def _share(demand: Demand, capacities: Mapping[str, Capacity]) -> dict[str, float]:
    """Return the time of each capacity without contention (s)."""
    return {name: amount / capacities[name].rate for name, amount in demand.amounts}


def _binding(demands: Sequence[Demand], capacities: Mapping[str, Capacity]) -> frozenset[str]:
    """Return the capacities that can be a bottleneck."""
    rates = rates_of(capacities.values())
    kept = {name for demand in demands for name, _ in demand.holds}
    firsts = [_first(demand, capacities, rates) for demand in demands]
    kept |= {name for name, _ in firsts} - {""}
    for name in sorted({entry for demand in demands for entry, _ in demand.amounts} - kept):
        ratio: dict[str, float] = {}
        for demand, (first, least) in zip(demands, firsts, strict=True):
            drawn = _share(demand, capacities).get(name, 0.0)
            if drawn > 0:
                ratio[first] = max(ratio.get(first, 0.0), drawn / least if least > 0 else math.inf)
        if math.fsum(ratio.values()) > 1.0:
            kept.add(name)
    return frozenset(kept)


def _first(demand: Demand, capacities: Mapping[str, Capacity], rates: Mapping[str, float]) -> tuple[str, float]:
    """Return the capacity that work uses longest, and its minimum time of it (s)."""
    if demand.crowd is not None:
        return demand.crowd.capacity, least_of_queue(demand, rates)
    share = _share(demand, capacities)
    first = max(share, key=lambda name: (share[name], name), default="")
    return first, share.get(first, 0.0)


def least_of_queue(demand: Demand, rates: Mapping[str, float]) -> float:
    """Return the minimum time (s) that work needs of its device's queue, over all queue depths."""
    return min((_among(demand, rates, depth) for depth in _DEPTHS), default=0.0)


def long_queue(demand: Demand, rates: Mapping[str, float], most: int | None = None) -> float:
    """Return the time (s) that work needs of its device's queue at the largest depth: `most` accesses, None: any number."""
    return _among(demand, rates, _DEPTHS[-1] if most is None else most)


def _among(demand: Demand, rates: Mapping[str, float], under_way: int) -> float:
    crowd = demand.crowd
    if crowd is None:
        return 0.0
    depth = max(under_way, crowd.depth)
    alone = max([demand.floor, *(amount / rates[name] for name, amount in demand.amounts if name == crowd.capacity)])
    return alone * crowd.slowness(depth)[0] * crowd.depth / depth


def _only(demand: Demand, names: Collection[str]) -> Demand:
    """Return the demand on these capacities only."""
    return replace(demand, amounts=tuple(amount for amount in demand.amounts if amount[0] in names))


def _components(demands: Sequence[Demand]) -> list[frozenset[str]]:
    """Return groups of capacities that are connected by work that uses several of them."""
    result: list[set[str]] = []
    for demand in demands:
        names = set(_names(demand))
        touching = [group for group in result if group & names]
        result = [group for group in result if not group & names]
        result.append(names.union(*touching))
    return [frozenset(group) for group in sorted(result, key=min)]


def _is_one(demand: Demand) -> bool:
    """Whether the work uses exactly one server of the capacity."""
    [(_, amount)] = demand.amounts
    return math.isclose(demand.floor, amount, rel_tol=_SAME)


def _alike(first: Demand, second: Demand) -> bool:
    """Whether two demands have the same proportions of amounts to their uncontended time."""
    if (
        first.holds
        or second.holds
        or first.crowd
        or second.crowd
        or [name for name, _ in first.amounts] != [name for name, _ in second.amounts]
    ):
        return first == second
    pairs = [(first.floor, second.floor), *((a, b) for (_, a), (_, b) in zip(first.amounts, second.amounts, strict=True))]
    ratio = first.share / second.share
    return all(math.isclose(a, b * ratio, rel_tol=_SAME, abs_tol=0.0) for a, b in pairs)
