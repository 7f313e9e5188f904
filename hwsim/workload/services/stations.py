"""Which capacities of a machine services are served at: as few as there are that can ever bind.

A capacity is left out where it cannot bind, however many requests there are. Let every kind of work draw most, in time
alone, from its first capacity; of a disk it is the queue. From another capacity L it draws at most r times as much, r the
largest ratio among the works with that first capacity. No first capacity gives more than all of itself. So where the ratios
of all first capacities other than L come to at most 1, L is never full. This is exact: the memory and the PCI Express behind
a disk are left out on most machines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.demand import Capacity, Demand, rates_of
from hwsim.workload.services.arms import Accesses, accesses_of
from hwsim.workload.services.program import NONE, Number, Served, Station, StationKind

_SAME: Final = 1e-12
_ROUNDED: Final = 1e-6  # where lines meet
_DEPTHS: Final = tuple(2**power for power in range(17))  # accesses at a device


def stations_of(
    served: Sequence[Served],
    capacities: Mapping[str, Capacity],
    *,
    shared: Collection[str] = (),
    in_turn: Collection[str] = (),
    sizes: Mapping[int, Number] | None = None,
) -> tuple[tuple[Served, ...], tuple[Station, ...], tuple[str, ...]]:
    """The works with their stations, the stations, and the capacities that works wait for.

    Args:
        shared: capacities that others than services draw from, too.
        in_turn: capacities whose servers serve first come first served.
        sizes: by work, where its size differs from request to request.
    """
    drawing = {
        number: each.cost.demand for number, each in enumerate(served) if each.cost is not None and _names(each.cost.demand)
    }
    outside = _reached(drawing, shared)
    issued = [number for number, demand in drawing.items() if outside & set(_names(demand))]
    inside = {number: demand for number, demand in drawing.items() if number not in issued}
    binding = _binding(list(inside.values()), capacities)
    cut = {number: _only(demand, binding) for number, demand in inside.items()}
    stations: list[Station] = []
    out, rates = list(served), rates_of(capacities.values())
    for names in _components(list(cut.values())):
        members = {number: demand for number, demand in cut.items() if names & set(_names(demand))}
        kind: StationKind = "shared" if len(names) == 1 and not any(each.holds for each in members.values()) else "network"
        servers = 1
        if names <= set(in_turn) and kind == "shared" and all(_is_one(each) for each in members.values()):
            kind, servers = "fifo", round(capacities[next(iter(names))].rate)
        accesses = {number: accesses_of(drawing[number], rates) for number in members} if kind == "shared" else {}
        at_arms = _at_arms(accesses, sizes or {})
        if at_arms:
            for flow, number in enumerate(members):
                out[number] = replace(out[number], station=len(stations), flow=flow)
            place, kinds = tuple(capacities[name] for name in names), tuple(members.values())
            stations.append(Station("arms", place, kinds, at_arms[0].arms, at_arms))
            continue
        demands: list[Demand] = []
        for number, demand in members.items():
            alike = next((at for at, second in enumerate(demands) if _alike(demand, second)), len(demands))
            if alike == len(demands):
                demands.append(demand)
            out[number] = replace(out[number], station=len(stations), flow=alike)
        stations.append(Station(kind, tuple(capacities[name] for name in sorted(names)), tuple(demands), servers))
    if issued:
        demands = []
        for number in issued:
            out[number] = replace(out[number], station=len(stations), flow=len(demands))
            demands.append(drawing[number])
        names = frozenset(name for number in issued for name in _names(drawing[number]))
        stations.append(Station("issued", tuple(capacities[name] for name in sorted(names)), tuple(demands)))
    first = {number: _first(demand, capacities, rates)[0] for number, demand in drawing.items()}
    waited = tuple(dict.fromkeys(first[number] for number in sorted(first)))
    return (
        tuple(
            replace(each, resource=waited.index(first[number]) if number in first else NONE) for number, each in enumerate(out)
        ),
        tuple(stations),
        waited,
    )


def _at_arms(works: Mapping[int, Accesses | None], sizes: Mapping[int, Number]) -> tuple[Accesses, ...]:
    """The accesses of works at one capacity, if all of them are served one at a time by as many arms; else none."""
    at_arms: list[Accesses] = []
    for number, accesses in works.items():
        size = sizes.get(number)
        if accesses is None or accesses.arms != next(iter(at_arms), accesses).arms:
            return ()
        if size is not None and (accesses.count > 1 or size.of(0.0) * accesses.first < accesses.reach * (1 - _ROUNDED)):
            return ()  # other numbers of accesses, not only longer ones
        at_arms.append(accesses)
    return tuple(at_arms)


def _names(demand: Demand) -> tuple[str, ...]:
    queue = () if demand.crowd is None else (demand.crowd.capacity,)
    return tuple(dict.fromkeys((*(name for name, _ in (*demand.amounts, *demand.holds)), *queue)))


def _reached(drawing: Mapping[int, Demand], shared: Collection[str]) -> set[str]:
    """The shared capacities, and all that works which draw from one of them draw from besides."""
    reached = set(shared)
    while True:
        more = {name for demand in drawing.values() if reached & set(_names(demand)) for name in _names(demand)} - reached
        if not more:
            return reached
        reached |= more


def _share(demand: Demand, capacities: Mapping[str, Capacity]) -> dict[str, float]:
    """Seconds of each capacity alone."""
    return {name: amount / capacities[name].rate for name, amount in demand.amounts}


def _binding(demands: Sequence[Demand], capacities: Mapping[str, Capacity]) -> frozenset[str]:
    """The capacities that may bind."""
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
    """The capacity that a work draws most from, and the seconds of it that it takes at least."""
    if demand.crowd is not None:
        return demand.crowd.capacity, least_of_queue(demand, rates)
    share = _share(demand, capacities)
    first = max(share, key=lambda name: (share[name], name), default="")
    return first, share.get(first, 0.0)


def least_of_queue(demand: Demand, rates: Mapping[str, float]) -> float:
    """Seconds of its device's queue that a work takes at least, whatever the others there are; with one access it takes all."""
    return min((_among(demand, rates, depth) for depth in _DEPTHS), default=0.0)


def long_queue(demand: Demand, rates: Mapping[str, float], most: int | None = None) -> float:
    """Seconds of its device's queue that a work takes where that is as long as it can be: `most` accesses, None: any number."""
    return _among(demand, rates, _DEPTHS[-1] if most is None else most)


def _among(demand: Demand, rates: Mapping[str, float], under_way: int) -> float:
    crowd = demand.crowd
    if crowd is None:
        return 0.0
    depth = max(under_way, crowd.depth)
    alone = max([demand.floor, *(amount / rates[name] for name, amount in demand.amounts if name == crowd.capacity)])
    return alone * crowd.slowness(depth)[0] * crowd.depth / depth


def _only(demand: Demand, names: Collection[str]) -> Demand:
    """The demand without what cannot bind."""
    return replace(demand, amounts=tuple(each for each in demand.amounts if each[0] in names))


def _components(demands: Sequence[Demand]) -> list[frozenset[str]]:
    """Capacities that works tie together."""
    result: list[set[str]] = []
    for demand in demands:
        names = set(_names(demand))
        touching = [each for each in result if each & names]
        result = [each for each in result if not each & names]
        result.append(names.union(*touching))
    return [frozenset(each) for each in sorted(result, key=min)]


def _is_one(demand: Demand) -> bool:
    """Whether it keeps one of the capacity's servers busy, and no more."""
    [(_, amount)] = demand.amounts
    return math.isclose(demand.floor, amount, rel_tol=_SAME)


def _alike(first: Demand, second: Demand) -> bool:
    """Whether two works draw in the same proportion to their time alone."""
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
