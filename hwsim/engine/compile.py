"""A flat graph made ready to replay: durations in fs, classes of demands, capacities that matter.

A capacity on which the demands that can be active at once draw no more than there is can never
bind. Its demands run as if alone, so it is dropped, exactly; an op left without a capacity has a
fixed duration and never meets the solver.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.demand import Capacity, Cost, Demand, rates_of
from hwsim.engine.fair import FULL, LEVEL_BITS, WEIGHT_BITS
from hwsim.engine.fluid import Clock, Crowded, FlowClass
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Floats, Ints
from hwsim.records import dataclass
from hwsim.ticks import FEMTO


@dataclass(frozen=True, slots=True)
class Compiled:
    """Per op: fixed fs, then `flow` fs (if it flows alone) as a member of class `flow_class` (-1: none).

    played: who else ends besides: a server outside, which says when.
    starts: class and fs of the start of each op whose start goes at a clock that changes; `fixed` is without them.
    """

    fixed: ticks.Column
    flow: ticks.Column
    flow_class: NDArray[np.int32]
    classes: tuple[FlowClass, ...]
    played: NDArray[np.bool_]
    starts: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Active:
    """Costs that may be in flight together, as far as queues and pools say.

    groups: per queue and per pool (servers of them at once), the costs of its ops.
    loose: by cost, its ops that nothing restrains.
    """

    groups: tuple[tuple[int, tuple[int, ...]], ...]
    loose: Ints


def compile_flat(flat: FlatGraph, *, closed: bool = True, changing: Collection[str] = ()) -> Compiled:
    """Durations and classes of every op.

    closed: nothing else will ever draw from the capacities, so those that can never bind are dropped.
    changing: capacities that may have less than their rate for a while; they are kept.
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
        apart = _can_crowd(active, full) | {numbers[name] for name in changing if name in numbers}
        kept = _can_bind(active, full, len(numbers)) | apart
    table: dict[FlowClass, int] = {}
    member_of = np.full(len(demands) + 1, -1, np.int32)
    for number, unpruned in enumerate(full):
        pruned = unpruned.only(kept)
        if pruned.weights or pruned.holds or pruned.crowd or pruned.clocks:
            member_of[number] = table.setdefault(pruned, len(table))
    alike = bool((flat.size == 1).all())  # then an op takes as long as its cost says
    cost, size = (np.arange(len(demands) + 1), np.ones(1)) if alike else (flat.cost, flat.size)
    latency = latencies(graph.costs)
    flow = bodies(graph.costs, rates).take(cost)
    with np.errstate(over="ignore", invalid="ignore"):  # `ticks.rounded` refuses what is too long
        for factor in (size, FEMTO):
            flow *= factor
        np.rint(flow, out=flow)
        fixed = np.rint(latency.take(cost) * FEMTO) if latency.any() else np.zeros(len(cost))
    if alike:
        unused = np.ones(len(cost), np.bool_)
        unused[flat.cost] = False
        flow[unused] = fixed[unused] = 0
    number_of = np.where(flow > 0, member_of.take(cost), np.int32(-1))
    try:
        flow_fs, fixed_fs = ticks.rounded(flow), ticks.rounded(fixed)
    except ticks.TooLong as error:
        fits = np.maximum(flow, fixed) <= ticks.LONGEST
        op = int(np.argmax(~(fits[flat.cost] if alike else fits)))
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
        starts = _of_ops(*((each.take(flat.cost) for each in starting) if alike else starting))
    if alike:
        fixed_fs, flow_fs = fixed_fs.take(flat.cost), flow_fs.take(flat.cost)
        number_of, played = number_of.take(flat.cost), played.take(flat.cost)
    return Compiled(
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
    """Class of the start of each cost (-1: its speed never changes) and its fs; None if none has one. Classes join the table."""
    of_start, start_fs = np.full(len(demands) + 1, -1, np.int64), np.zeros(len(demands) + 1, np.int64)
    for number, demand in enumerate(demands):
        starts = start_class(demand, numbers, changing)
        if starts is not None:
            of_start[number] = table.setdefault(starts, len(table))
            start_fs[number] = ticks.femtoseconds(demand.start * demand.latency)
    return (of_start[cost], start_fs[cost]) if start_fs.any() else None


def _of_ops(of_start: Ints, start_fs: Ints) -> dict[int, tuple[int, int]]:
    """By op the class of its start, and its fs."""
    ops = np.flatnonzero(start_fs > 0)
    return dict(zip(ops.tolist(), zip(of_start[ops].tolist(), start_fs[ops].tolist(), strict=True), strict=True))


def start_class(demand: Demand, numbers: Mapping[str, int], changing: Collection[str]) -> FlowClass | None:
    """The class of the start of a demand: it draws nothing, and goes at the slowest of its clocks. None: none changes."""
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
    """Weights and pace of a demand. Exact: floats are ratios of integers, and only those are multiplied.

    changing: capacities whose speed changes; other clocks are left out.

    Equal demands together draw a whole number of times the amount of one, so they are one class with that weight.

    pairs: weights of capacities that classes share, so that equal ones are one object.
    """
    weights: dict[int, int] = {}
    limits = []
    served = []  # of those, what the device of a crowd alone allows
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
        else Crowded(
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
    """The clocks whose speed changes: the pace is share / (rest + own / speed)."""
    share, floor = Fraction(demand.share), Fraction(demand.floor)
    rest = floor * (1 - Fraction(max(part for _, part in demand.clocks)))
    clocks = []
    for name, part in demand.clocks:
        if floor and part and name in changing:
            slowed = floor * Fraction(part)
            units = math.lcm(rest.denominator, slowed.denominator)
            most, per_share = share.numerator * units << LEVEL_BITS, units * share.denominator
            clocks.append(Clock(numbers[name], most, int(rest * per_share), int(slowed * per_share)))
    return tuple(clocks)


@lru_cache(maxsize=4096)
def _weight(amount: float, share: float, rate: float) -> tuple[int, int]:
    """Weight of an amount drawn from a capacity, and the pace that the capacity alone allows."""
    drawn, per_drawn = float(amount).as_integer_ratio()
    shared, per_share = float(share).as_integer_ratio()
    offered_a_second, per_rate = float(rate).as_integer_ratio()
    taken, offered = drawn * per_share * per_rate, per_drawn * shared * offered_a_second
    return (taken << WEIGHT_BITS) // offered, (offered << LEVEL_BITS) // taken


def _check(demands: Sequence[Demand], capacities: Sequence[Capacity]) -> None:
    for capacity in capacities:
        if not (math.isfinite(capacity.rate) and capacity.rate > 0):
            raise ValueError(f"capacity {capacity.name} has rate {capacity.rate}: it must be positive and finite")
    for demand in demands:
        if flaw := demand.flaw():
            raise ValueError(f"{flaw}: {demand}")


def _active(flat: FlatGraph) -> Active:
    """At most one op of a queue is in flight, at most `servers` of a pool whose ops take and give it back themselves."""
    uses = flat.cost >= 0
    if not uses.any():
        return Active((), np.empty(0, np.int64))
    kinds = len(flat.graph.costs)
    queued = uses & (flat.queue >= 0)
    pooled = uses & (flat.queue < 0) & (flat.take >= 0) & (flat.take == flat.give)
    groups: dict[tuple[bool, int], list[int]] = {}
    for is_pool, among, number in ((False, queued, flat.queue), (True, pooled, flat.take)):
        for pair in ticks.distinct(number[among].astype(np.int64) * kinds + flat.cost[among]).tolist():
            group, which = divmod(pair, kinds)
            groups.setdefault((is_pool, group), []).append(which)
    return Active(
        groups=tuple(
            (flat.graph.pools[group].servers if is_pool else 1, tuple(which)) for (is_pool, group), which in groups.items()
        ),
        loose=np.bincount(flat.cost[uses & ~queued & ~pooled], minlength=kinds),
    )


def _can_bind(active: Active, classes: Sequence[FlowClass], capacities: int) -> set[int]:
    """Capacities on which the ops that may be active together could draw more than there is."""
    total = [0] * capacities
    draws = {which: classes[which].draws() for which in {which for _, kinds in active.groups for which in kinds}}
    for servers, kinds in active.groups:
        most: dict[int, int] = {}
        for kind in kinds:
            for capacity, drawn, held in draws[kind]:
                most[capacity] = max(most.get(capacity, 0), drawn + held)
        for capacity, drawn in most.items():
            total[capacity] += servers * drawn
    for which in np.flatnonzero(active.loose).tolist():
        count = int(active.loose[which])
        for capacity, drawn, held in classes[which].draws():
            total[capacity] += count * (drawn + held)
    return {capacity for capacity, drawn in enumerate(total) if drawn > FULL}


def _can_crowd(active: Active, classes: Sequence[FlowClass]) -> set[int]:
    """Capacities at which several ops of a crowd may be active together."""
    most: dict[int, int] = {}
    crowds = [(None, 0) if class_.crowd is None else (class_.crowd.capacity, class_.crowd.crowd.times) for class_ in classes]
    for servers, kinds in active.groups:
        of_group: dict[int, int] = {}
        for capacity, times in (crowds[kind] for kind in kinds):
            if capacity is not None:
                of_group[capacity] = max(of_group.get(capacity, 0), servers * times)
        for capacity, times in of_group.items():
            most[capacity] = most.get(capacity, 0) + times
    for which, (capacity, times) in enumerate(crowds):
        if capacity is not None and which < len(active.loose):
            most[capacity] = most.get(capacity, 0) + int(active.loose[which]) * times
    return {capacity for capacity, ops in most.items() if ops > 1}


def latencies(costs: Sequence[Cost]) -> Floats:
    """Latency of each cost in seconds, and at the end 0, for ops without a cost."""
    return np.array([*(cost.demand.latency for cost in costs), 0.0])


def bodies(costs: Sequence[Cost], rates: Mapping[str, float]) -> Floats:
    """Seconds of each cost after its latency, as `Demand.body` says; 0 at the end, for ops without a cost."""
    seconds = np.array([*(cost.demand.floor for cost in costs), 0.0])
    drawn = np.fromiter((amount for cost in costs for _, amount in cost.demand.amounts), np.float64)
    rate = np.fromiter((rates[name] for cost in costs for name, _ in cost.demand.amounts), np.float64)
    many = np.fromiter((len(cost.demand.amounts) for cost in costs), np.int64, len(costs))
    with np.errstate(over="ignore"):
        np.maximum.at(seconds, np.repeat(np.arange(len(costs)), many), drawn / rate)
    return seconds
