"""Use of each capacity in a run: busy time, amount moved, utilization."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from hwsim import ticks
from hwsim.demand import Capacity, Cost, Crowd, Unit, device_of
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Floats, Ints, RepresentedRanks
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

Natural = dict[tuple[int, str], tuple[list[tuple[float, int]], Unit]]  # by cost and capacity: ((amount, count), ...), unit


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of one capacity.

    Args:
        capacity: name of the capacity.
        busy_fs: time during which at least one op drew from the capacity or occupied part of it, after its own time and
            latency (fs).
        moved: amount in `unit`; FLOP for a device whose capacity is device time.
        unit: unit of the amount.
        utilization: amount drawn and occupied, as a fraction of rate x makespan.
        identical_count: number of capacities that the row represents, in a folded run.
        kind, device: kind and device of the capacity.
    """

    capacity: str
    busy_fs: int
    moved: float
    unit: Unit
    utilization: float
    identical_count: int = 1
    kind: str = ""
    device: str = ""

    @property
    def busy_s(self) -> float:
        """Busy time (s)."""
        return self.busy_fs / FEMTO

    @property
    def rate(self) -> float:
        """`moved` per busy second; 0 if never busy."""
        return self.moved / self.busy_s if self.busy_fs else 0.0


def usage(timeline: Timeline) -> tuple[Usage, ...]:
    """Return the use of each capacity of the graph, in graph order."""
    if "usage" not in timeline.found:
        timeline.found["usage"] = _usage(timeline)
    rows: tuple[Usage, ...] = timeline.found["usage"]
    return rows


def unfold_usage(rows: Iterable[Usage], alike: RepresentedRanks) -> tuple[Usage, ...]:
    """Return the rows of a folded run, with a row for each capacity of a represented device."""
    named = {row.capacity: row for row in rows}
    for first, members in alike.members.items():
        if first in named:
            row = replace(named[first], identical_count=1)
            named |= {name: replace(row, capacity=name, device=device_of(name, row.kind)) for name in members}
    return tuple([named[name] for name in sorted(named)])  # as `hwsim.graph.builder.capacities_of` sorts them


def _usage(timeline: Timeline) -> tuple[Usage, ...]:
    flat = timeline.flat
    costs, capacities = flat.graph.costs, flat.graph.capacities
    ops_of, sizes = _by_cost(flat, len(costs))
    begin = timeline.drawing_since()
    draws = _by_capacity((*cost.demand.drawn, *_served(cost)) if cost.played else cost.demand.drawn for cost in costs)
    holds = _by_capacity(cost.demand.held for cost in costs)
    natural = _natural(costs)
    happens = [len(ops) > 0 for ops in ops_of]
    holding = sorted({number for rows in holds.values() for number, *_ in rows})
    held_fs = {number: ticks.total(timeline.end[ops_of[number]] - begin[ops_of[number]]) for number in holding}
    crowded = {number for number, cost in enumerate(costs) if cost.demand.crowd is not None}
    playing = {number for number, cost in enumerate(costs) if cost.played}
    busy: dict[tuple[int, ...], int] = {}
    rows = []
    represented = flat.graph.alike.capacities if flat.graph.alike is not None else {}
    for capacity in capacities:
        drawn = [row for row in draws.get(capacity.name, ()) if happens[row[0]]]
        held = [row for row in holds.get(capacity.name, ()) if happens[row[0]]]
        who = tuple(sorted({number for number, *_ in (*drawn, *held)}))
        if who not in busy:  # the links of a ring have the same ops
            several = [np.empty(0, np.int64), *(ops_of[number] for number in who)]
            ops = several[1] if len(who) == 1 else np.concatenate(several)
            busy[who] = ticks.covered(begin[ops], timeline.end[ops])
        amount = _together([(part, times * sizes[number]) for number, part, times in drawn]) if drawn else 0
        if crowded and any(_lightens(costs[number].demand.crowd, capacity.name) for number, *_ in drawn):
            amount = math.fsum(
                times * part * _added_up(_lighter(timeline, begin, ops_of[number])) for number, part, times in drawn
            )
        kept = capacity.rate * _together([(part, times * held_fs[number]) for number, part, times in held]) / FEMTO
        kept = min(kept, max(0.0, capacity.rate * busy[who] / FEMTO - amount))  # at most all of it is held at once
        drawing = [(number, sizes[number]) for number in dict.fromkeys(number for number, *_ in drawn)]
        moved, unit = _moved(capacity, amount, drawing, natural)
        offered = capacity.rate * timeline.makespan
        if playing and any(number in playing and not part for number, part, _ in drawn):
            kept, offered = float(busy[who]), float(timeline.makespan_fs)
        utilization = (amount + kept) / offered if offered else 0.0
        alike, kind, device = represented.get(capacity.name, 1), capacity.kind, capacity.device
        rows.append(Usage(capacity.name, busy[who], moved, unit, utilization, alike, kind, device))
    return tuple(rows)


def _together(rows: Iterable[tuple[float, float]]) -> float:
    """Return the sum of amount x count; equal amounts are joined first, so that a folded run has the same sum."""
    often: dict[float, float] = {}
    for amount, times in rows:
        often[amount] = often.get(amount, 0) + times
    return math.fsum([amount * times for amount, times in often.items()])


def _by_cost(flat: FlatGraph, costs: int) -> tuple[list[Ints], list[float]]:
    """Return (ops of each cost, sum of their sizes)."""
    used = np.flatnonzero(flat.cost >= 0)
    by_cost = used[ticks.order(flat.cost[used])]
    counts = np.bincount(flat.cost[used], minlength=costs)
    del used  # saves memory for millions of ops
    ops_of = [by_cost[low:high] for low, high in pairwise([0, *np.cumsum(counts).tolist()])]
    return ops_of, counts.astype(np.float64).tolist() if (flat.size == 1).all() else [_added_up(flat.size[ops]) for ops in ops_of]


def _lightens(crowd: Crowd | None, capacity: str) -> bool:
    """Return whether an access takes less of the capacity the more accesses are queued, as on a disk arm that reorders them."""
    return crowd is not None and crowd.capacity == capacity and crowd.slowness(2 * crowd.depth)[1] < 1


def _lighter(timeline: Timeline, begin: Ints, ops: Ints) -> Floats:
    """Return the sizes of ops, reduced by the gain from other accesses in the queue during their time."""
    flat = timeline.flat
    crowd = flat.graph.costs[int(flat.cost[ops[0]])].demand.crowd
    size = flat.size[ops]
    if crowd is None or not (timeline.flow_class[ops] >= 0).any():
        return size
    depth = np.array([_depth(cost.demand.crowd, crowd.capacity) for cost in flat.graph.costs] + [0], np.int64)[flat.cost]
    others = np.flatnonzero((depth > 0) & (timeline.end > begin))
    moments = np.concatenate([begin[others], timeline.end[others]]).astype(np.float64)
    order = np.argsort(moments, kind="stable")
    under_way = np.cumsum(np.concatenate([depth[others], -depth[others]])[order])
    values, place = np.unique(under_way, return_inverse=True)
    light = np.array([crowd.slowness(max(crowd.depth, number))[1] for number in values.tolist()])[place]
    times = moments[order]
    sums = np.concatenate([[0.0], np.cumsum(light[:-1] * np.diff(times))])
    low, high = begin[ops].astype(np.float64), timeline.end[ops].astype(np.float64)
    took = np.where(high > low, high - low, 1.0)
    part = np.where(high > low, (np.interp(high, times, sums) - np.interp(low, times, sums)) / took, 1.0)
    return np.asarray(size * part)


def _depth(crowd: Crowd | None, capacity: str) -> int:
    return crowd.depth * crowd.times if crowd is not None and crowd.capacity == capacity else 0


def _added_up(sizes: Floats) -> float:
    """Return the sum of the sizes, independent of their order."""
    if not len(sizes) or (sizes[0] == sizes).all():
        return float(sizes[0]) * len(sizes) if len(sizes) else 0.0
    values, counts = np.unique(sizes, return_counts=True)
    return math.fsum((values * counts).tolist())


def _served(cost: Cost) -> Iterator[tuple[str, float, int]]:
    """Yield the device that serves the requests of an op one by one, as a capacity from which the op draws nothing."""
    named = {name for name, _ in cost.demand.amounts}
    return ((name, 0.0, 1) for name in dict.fromkeys(name for name, *_ in cost.moved) if name not in named)


def _by_capacity(rows: Iterable[Sequence[tuple[str, float, int]]]) -> dict[str, list[tuple[int, float, int]]]:
    """Return (cost number, amount, count) by capacity.

    Args:
        rows: by cost, (capacity, amount, count).
    """
    table: dict[str, list[tuple[int, float, int]]] = {}
    for number, drawn in enumerate(rows):
        for name, amount, times in drawn:
            table.setdefault(name, []).append((number, amount, times))
    return table


def _natural(costs: tuple[Cost, ...]) -> Natural:
    natural: Natural = {}
    for number, cost in enumerate(costs):
        counts: dict[str, list[int]] = {}
        for name, _, times in (*cost.demand.drawn, *cost.demand.held) if cost.demand.times else ():
            counts.setdefault(name, []).append(times)
        for name, amount, unit in cost.moved:
            times = counts[name].pop(0) if counts.get(name) else 1
            natural[number, name] = [*(natural[number, name][0] if (number, name) in natural else ()), (amount, times)], unit
    return natural


def _moved(capacity: Capacity, amount: float, sizes: list[tuple[int, float]], natural: Natural) -> tuple[float, Unit]:
    """Return (amount, unit): the natural unit if all ops that state one agree, else the amount drawn."""
    stated = [(size, natural[number, capacity.name]) for number, size in sizes if (number, capacity.name) in natural]
    units = {unit for _, (_, unit) in stated}
    if len(units) != 1:
        return amount, capacity.unit
    unit: Unit = "1" if capacity.unit == "1" else units.pop()  # messages and accesses are counted
    return _together([(natural_each, size * times) for size, (rows, _) in stated for natural_each, times in rows]), unit
