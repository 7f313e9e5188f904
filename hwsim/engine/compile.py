"""Preparation of a flat graph for simulation: durations in fs, classes of demands, and relevant capacities.

A capacity never binds if the demands that can be active concurrently draw at most its rate. Such a capacity has no effect and is
removed without loss of accuracy. An op without capacities has a fixed duration and is not part of rate computations.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.demand import Capacity, Cost, Demand, rates_of
from hwsim.engine.fair import FULL, LEVEL_BITS, WEIGHT_BITS
from hwsim.engine.fluid import Clock, CrowdLimit, FlowClass
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Floats, Ints
from hwsim.records import dataclass
from hwsim.ticks import FEMTO


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """The durations and classes of ops.

    Args:
        fixed: fixed duration (fs).
        flow: subsequent duration without contention (fs), as a member of class `flow_class`.
        flow_class: class of the demand; -1: none.
        classes: all classes of demands.
        played: whether an external server simulates the requests of the op and reports their end.
        starts: class and duration (fs) of the start-up time of ops whose clock changes, which is not part of `fixed`.
    """

    fixed: ticks.Column
    flow: ticks.Column
    flow_class: NDArray[np.int32]
    classes: tuple[FlowClass, ...]
    played: NDArray[np.bool_]
    starts: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActiveCosts:
    """The costs that may be active concurrently, as limited by queues and pools.

    Args:
        groups: (maximum number of active ops, costs of the ops) of each queue and pool.
        loose: number of ops of each cost outside queues and pools.
    """

    groups: tuple[tuple[int, tuple[int, ...]], ...]
    loose: Ints


def compile_flat(flat: FlatGraph, *, closed: bool = True, changing: Collection[str] = ()) -> CompiledGraph:
    """Return durations and classes of all ops.

    Args:
        closed: whether no other op will use the capacities, so that capacities that never bind can be removed.
        changing: capacities whose rate may change, which are kept.
    """
    graph = flat.graph
    rates = rates_of(graph.capacities)
    numbers = {capacity.name: number for number, capacity in enumerate(graph.capacities)}
    demands = [cost.demand for cost in graph.costs]
    _check(demands, graph.capacities)
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    full = [flow_class(demand, rates, numbers, changing, pairs) for demand in demands]
    kept = set(numbers.values())
    if closed:
        active = _active(flat)
        always_kept = _can_crowd(active, full) | {numbers[name] for name in changing if name in numbers}
        kept = _can_bind(active, full, len(numbers)) | always_kept
    table: dict[FlowClass, int] = {}
    member_of = np.full(len(demands) + 1, -1, np.int32)
    for number, unpruned in enumerate(full):
        pruned = unpruned.only(kept)
        if pruned.weights or pruned.holds or pruned.crowd or pruned.clocks:
            member_of[number] = table.setdefault(pruned, len(table))
    is_uniform = bool((flat.size == 1).all())  # durations depend only on the cost
    cost, size = (np.arange(len(demands) + 1), np.ones(1)) if is_uniform else (flat.cost, flat.size)
    latency = latencies(graph.costs)
    flow = bodies(graph.costs, rates).take(cost)
    with np.errstate(over="ignore", invalid="ignore"):  # `ticks.rounded` checks the result
        for factor in (size, FEMTO):
            flow *= factor
        np.rint(flow, out=flow)
        fixed = np.rint(latency.take(cost) * FEMTO) if latency.any() else np.zeros(len(cost))
    if is_uniform:
        unused = np.ones(len(cost), np.bool_)
        unused[flat.cost] = False
        flow[unused] = fixed[unused] = 0
    number_of = np.where(flow > 0, member_of.take(cost), np.int32(-1))
    try:
        flow_fs, fixed_fs = ticks.rounded(flow), ticks.rounded(fixed)
    except ticks.TooLong as error:
        fits = np.maximum(flow, fixed) <= ticks.LONGEST
        op = int(np.argmax(~(fits[flat.cost] if is_uniform else fits)))
        raise ticks.TooLong(error.seconds, flat.graph.labels[int(flat.label[op])].name) from error
    played = np.array([*(cost.played for cost in graph.costs), False], np.bool_).take(cost)
    starting = _starting(demands, numbers, changing, table, cost) if changing else None
    flows = (number_of >= 0) | played
    if starting is not None:
        _, start_fs = starting
        fixed_fs = ticks.add(fixed_fs, -start_fs)
        flows |= start_fs > 0
    if not flows.all():
        fixed_fs = ticks.column(np.where(flows, fixed_fs, ticks.add(fixed_fs, flow_fs)))
    starts: Mapping[int, tuple[int, int]] = {}
    if starting is not None:
        starts = _starts_by_op(*((column.take(flat.cost) for column in starting) if is_uniform else starting))
    if is_uniform:
        fixed_fs, flow_fs = fixed_fs.take(flat.cost), flow_fs.take(flat.cost)
        number_of, played = number_of.take(flat.cost), played.take(flat.cost)
    return CompiledGraph(
        fixed=ticks.add(fixed_fs, flat.time),
        flow=flow_fs,
        flow_class=number_of,
        classes=tuple(table),
        played=played,
        starts=starts,
    )


def _starting(
    demands: Sequence[Demand],
    numbers: Mapping[str, int],
    changing: Collection[str],
    table: dict[FlowClass, int],
    cost: NDArray[np.signedinteger[Any]],
) -> tuple[Ints, Ints] | None:
    """Class of each cost's start-up time (-1: none) and its duration (fs); None if all are 0. Classes are added to the table."""
    of_start, start_fs = np.full(len(demands) + 1, -1, np.int64), np.zeros(len(demands) + 1, np.int64)
    for number, demand in enumerate(demands):
        starts = start_class(demand, numbers, changing)
        if starts is not None:
            of_start[number] = table.setdefault(starts, len(table))
            start_fs[number] = ticks.femtoseconds(demand.start * demand.latency)
    return (of_start[cost], start_fs[cost]) if start_fs.any() else None


def _starts_by_op(of_start: Ints, start_fs: Ints) -> dict[int, tuple[int, int]]:
    ops = np.flatnonzero(start_fs > 0)
    return dict(zip(ops.tolist(), zip(of_start[ops].tolist(), start_fs[ops].tolist(), strict=True), strict=True))


def start_class(demand: Demand, numbers: Mapping[str, int], changing: Collection[str]) -> FlowClass | None:
    """Return the class of a demand's start-up time, which draws nothing and runs at its slowest clock; None: no clock changes."""
    one = 1 << LEVEL_BITS
    clocks = tuple([Clock(numbers[name], one, 0, 1) for name, _ in demand.clocks if name in changing]) if demand.start else ()
    return FlowClass(one, (), clocks=clocks) if clocks else None


def flow_class(
    demand: Demand,
    rates: Mapping[str, float],
    numbers: Mapping[str, int],
    changing: Collection[str] = (),
    pairs: dict[tuple[int, int], tuple[int, int]] | None = None,
) -> FlowClass:
    """Return the class of a demand: its weights and maximum pace, computed exactly from ratios of integers.

    Several equal demands that one op represents are a class with a multiple of the weight.

    Args:
        demand: demand of a cost.
        rates: rate of each capacity.
        numbers: number of each capacity.
        changing: capacities whose speed changes; other clocks are omitted.
        pairs: table of (capacity, weight) pairs, so that classes share equal pairs.
    """
    weights: dict[int, int] = {}
    limits = []
    served = []  # limits at the device of a crowd
    for name, amount, times in demand.drawn:
        number = numbers[name]
        weight, limit = _weight(amount, demand.share, rates[name])
        weights[number] = weights.get(number, 0) + times * weight
        limits.append(limit)
        if demand.crowd is not None and name == demand.crowd.capacity:
            served.append(limit)
    if demand.floor:
        share, per_share = float(demand.share).as_integer_ratio()
        floor, per_floor = float(demand.floor).as_integer_ratio()
        limits.append((share * per_floor << LEVEL_BITS) // (floor * per_share))
        served.append(limits[-1])
    holds: dict[int, int] = {}
    for name, fraction, times in demand.held:
        number = numbers[name]
        holds[number] = holds.get(number, 0) + times * (int(fraction * 2**53) * FULL >> 53)
    alone = max(1, min(limits, default=1 << LEVEL_BITS))
    crowd = (
        None
        if demand.crowd is None
        else CrowdLimit(
            numbers[demand.crowd.capacity],
            demand.crowd.depth * demand.crowd.times,
            max(1, min(served, default=alone)),
            demand.crowd,
        )
    )
    clocks = _clocks(demand, numbers, changing) if changing and demand.clocks else ()
    rows = sorted(weights.items())
    shared = tuple(rows if pairs is None else [pairs.setdefault(row, row) for row in rows])
    return FlowClass(alone, shared, tuple(sorted(holds.items())), crowd, clocks)


def _clocks(demand: Demand, numbers: Mapping[str, int], changing: Collection[str]) -> tuple[Clock, ...]:
    """Clocks whose speed changes, with pace = share / (rest + own / speed)."""
    from fractions import Fraction  # slow import, rarely needed

    share, floor = Fraction(demand.share), Fraction(demand.floor)
    rest = floor * (1 - Fraction(max(part for _, part in demand.clocks)))
    clocks = []
    for name, part in demand.clocks:
        if floor and part and name in changing:
            slowed = floor * Fraction(part)
            units = math.lcm(rest.denominator, slowed.denominator)
            factor, per_share = share.numerator * units << LEVEL_BITS, units * share.denominator
            clocks.append(Clock(numbers[name], factor, int(rest * per_share), int(slowed * per_share)))
    return tuple(clocks)


@lru_cache(maxsize=4096)
def _weight(amount: float, share: float, rate: float) -> tuple[int, int]:
    """Weight of an amount drawn from a capacity, and the maximum pace that the capacity allows."""
    drawn, per_drawn = float(amount).as_integer_ratio()
    shared, per_share = float(share).as_integer_ratio()
    offered_a_second, per_rate = float(rate).as_integer_ratio()
    taken, offered = drawn * per_share * per_rate, per_drawn * shared * offered_a_second
    return (taken << WEIGHT_BITS) // offered, (offered << LEVEL_BITS) // taken


def _check(demands: Sequence[Demand], capacities: Sequence[Capacity]) -> None:
    for capacity in capacities:
        if not (math.isfinite(capacity.rate) and capacity.rate > 0):
            raise ValueError(f"capacity {capacity.name}: expected a positive finite rate, got {capacity.rate}")
    for demand in demands:
        if flaw := demand.flaw():
            raise ValueError(f"{flaw}: {demand}")


def _active(flat: FlatGraph) -> ActiveCosts:
    """Groups of concurrent costs: one op per queue, and `servers` ops per pool whose ops take and return a server themselves."""
    uses = flat.cost >= 0
    if not uses.any():
        return ActiveCosts((), np.empty(0, np.int64))
    kinds = len(flat.graph.costs)
    queued = uses & (flat.queue >= 0)
    pooled = uses & (flat.queue < 0) & (flat.take >= 0) & (flat.take == flat.give)
    groups: dict[tuple[bool, int], list[int]] = {}
    for is_pool, mask, number in ((False, queued, flat.queue), (True, pooled, flat.take)):
        for pair in ticks.distinct(number[mask].astype(np.int64) * kinds + flat.cost[mask]).tolist():
            group, cost = divmod(pair, kinds)
            groups.setdefault((is_pool, group), []).append(cost)
    return ActiveCosts(
        groups=tuple(
            (flat.graph.pools[group].servers if is_pool else 1, tuple(costs)) for (is_pool, group), costs in groups.items()
        ),
        loose=np.bincount(flat.cost[uses & ~queued & ~pooled], minlength=kinds),
    )


def _can_bind(active: ActiveCosts, classes: Sequence[FlowClass], capacities: int) -> set[int]:
    """Capacities from which the ops that may be active concurrently could draw more than the rate."""
    total = [0] * capacities
    draws = {kind: classes[kind].draws() for kind in {kind for _, kinds in active.groups for kind in kinds}}
    for servers, kinds in active.groups:
        largest: dict[int, int] = {}
        for kind in kinds:
            for capacity, drawn, held in draws[kind]:
                largest[capacity] = max(largest.get(capacity, 0), drawn + held)
        for capacity, drawn in largest.items():
            total[capacity] += servers * drawn
    for kind in np.flatnonzero(active.loose).tolist():
        count = int(active.loose[kind])
        for capacity, drawn, held in classes[kind].draws():
            total[capacity] += count * (drawn + held)
    return {capacity for capacity, drawn in enumerate(total) if drawn > FULL}


def _can_crowd(active: ActiveCosts, classes: Sequence[FlowClass]) -> set[int]:
    """Capacities at which several ops of a crowd may be active concurrently."""
    op_counts: dict[int, int] = {}
    crowds = [(None, 0) if class_.crowd is None else (class_.crowd.capacity, class_.crowd.crowd.times) for class_ in classes]
    for servers, kinds in active.groups:
        of_group: dict[int, int] = {}
        for capacity, times in (crowds[kind] for kind in kinds):
            if capacity is not None:
                of_group[capacity] = max(of_group.get(capacity, 0), servers * times)
        for capacity, times in of_group.items():
            op_counts[capacity] = op_counts.get(capacity, 0) + times
    for kind, (capacity, times) in enumerate(crowds):
        if capacity is not None and kind < len(active.loose):
            op_counts[capacity] = op_counts.get(capacity, 0) + int(active.loose[kind]) * times
    return {capacity for capacity, count in op_counts.items() if count > 1}


def latencies(costs: Sequence[Cost]) -> Floats:
    """Return the latency of each cost (s), followed by 0 for ops without a cost."""
    return np.array([*(cost.demand.latency for cost in costs), 0.0])


def bodies(costs: Sequence[Cost], rates: Mapping[str, float]) -> Floats:
    """Return the time of each cost after its latency (s), as `Demand.body`, followed by 0 for ops without a cost."""
    seconds = np.array([*(cost.demand.floor for cost in costs), 0.0])
    drawn = np.fromiter((amount for cost in costs for _, amount in cost.demand.amounts), np.float64)
    rate = np.fromiter((rates[name] for cost in costs for name, _ in cost.demand.amounts), np.float64)
    counts = np.fromiter((len(cost.demand.amounts) for cost in costs), np.int64, len(costs))
    with np.errstate(over="ignore"):
        np.maximum.at(seconds, np.repeat(np.arange(len(costs)), counts), drawn / rate)
    return seconds
