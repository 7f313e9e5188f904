"""Busy times of the devices of a run, including devices that a folded run represents by another one.

In a folded run, every represented capacity (`RepresentedRanks.members`) has the same load as its representative.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from hwsim.costs.power import Power, PowerItem
from hwsim.demand import Capacity, by_name, device_of
from hwsim.graph.opgraph import Floats, Ints, RepresentedRanks
from hwsim.machine import Machine
from hwsim.results.result import Result
from hwsim.ticks import FEMTO

PARTS: Final = ("compute", "memory")  # GPU capacities that set its power
STEPS: Final = 1 << 54  # integer steps from zero to full GPU power, whose sums are exact in any order


class DeviceBusyTimes(NamedTuple):
    """Seconds that a device works at its full rate, and that a GPU is bound by memory; many: devices alike."""

    full: float
    memory: float
    many: int


class BusyUnit(NamedTuple):
    """A group of identical GPUs, by their capacities; "" if no op uses the capacity."""

    compute: str
    memory: str


def busy_in(result: Result, machine: Machine, power: Power) -> tuple[dict[int, list[DeviceBusyTimes]], float]:
    """Return busy times of devices by part, and the peak power of the GPUs above idle (watts)."""
    items = {item.part: item for item in power.items}
    by_part, gpus, above = _gpus(result, machine, items)
    for name, (worked, many) in _others(result, gpus).items():
        spot = machine.layout.find(name)
        if spot is not None:
            by_part.setdefault(id(spot.part), []).append(DeviceBusyTimes(worked, 0.0, many))
    return by_part, above


# ---- GPUs: by the kernels that they run ----


def _gpus(
    result: Result, machine: Machine, items: Mapping[int, PowerItem]
) -> tuple[dict[int, list[DeviceBusyTimes]], set[str], float]:
    """Return GPU busy times by part, the names of the GPUs, and their peak power above idle (watts)."""
    timeline = result.simulated
    flat, count = timeline.flat, len(timeline.flat.graph.costs)
    parts: dict[str, int] = {}  # of GPUs; 0 of others

    def part(name: str) -> int:
        if name not in parts:
            spot = machine.layout.find(name)
            parts[name] = id(spot.part) if spot is not None and spot.part.kind == "gpu" else 0
        return parts[name]

    known = by_name(flat.graph.capacities)
    drawn: list[dict[str, list[tuple[float, int]]]] = []
    for cost in flat.graph.costs:
        rows: dict[str, list[tuple[float, int]]] = {}
        for capacity, amount, times in cost.demand.drawn:
            if known[capacity].kind in PARTS and part(known[capacity].device):
                rows.setdefault(capacity, []).append((amount, times))
        drawn.append(rows)
    units = _units(flat.graph.alike, {name: known[name] for rows in drawn for name in rows})
    numbers: dict[str, list[int]] = {}  # of the units that draw from a capacity
    for number, unit in enumerate(units):
        for capacity in unit:
            numbers.setdefault(capacity, []).append(number)
    op_key, listed = np.where(flat.cost >= 0, flat.cost, count), list(units)
    slots: list[dict[int, tuple[float, float, list[tuple[int, float]]]]] = []
    for key in np.unique(op_key).tolist():
        rows_of = _rows(drawn[key], listed, numbers) if key < count else {}
        for place, ((compute, memory), who) in enumerate(rows_of.items()):
            if place == len(slots):
                slots.append({})
            slots[place][key] = compute, memory, who
    if not slots:
        return {}, set(), 0.0
    every = {name for names in units.values() for name in names}
    counts = [Counter(part(name) for name in names) for names in units.values()]
    kinds = {of: _watts(item) for of, item in items.items() if any(of in each for each in counts)}
    most = math.fsum(max(watts) * sum(each[of] for each in counts) for of, watts in kinds.items())  # integers
    step = 2.0 ** math.ceil(math.log2(max(1.0, most) / STEPS))
    busy: list[tuple[list[float], list[float]]] = [([], []) for _ in units]
    begin = timeline.drawing_since()
    edges: list[tuple[Floats, Floats, Ints]] = [(np.empty(0), np.empty(0), np.empty(0, np.int64))]
    keys = count + 1
    for slot in slots:
        row = np.zeros((2, keys))  # compute, memory
        gpus = {of: np.zeros(keys, np.int64) for of in kinds}
        for key, (compute, memory, who) in slot.items():
            row[:, key] = compute, memory
            for number, many in who:
                for of in counts[number].keys() & kinds.keys():
                    gpus[of][key] += many * counts[number][of]
        ops = np.flatnonzero((row.sum(axis=0) > 0)[op_key])
        of_ops, sizes = op_key[ops], flat.size[ops]
        spans = (timeline.end[ops] - begin[ops]).astype(np.float64) / FEMTO
        full = np.minimum(sizes * row[0, of_ops], spans)
        bound = np.minimum(sizes * row[1, of_ops], spans - full)
        sums = [np.bincount(of_ops, weights=weights, minlength=keys).tolist() for weights in (full, bound)]
        for key, (_, _, who) in slot.items():
            for number, many in who:
                for index in range(2):
                    busy[number][index].append(many * sums[index][key])
        begins, ends = (times[ops].astype(np.float64) for times in (begin, timeline.end))
        for of, (full_watts, bound_watts) in kinds.items():
            with np.errstate(divide="ignore", invalid="ignore"):
                drew = np.where(spans > 0, (full * full_watts + bound * bound_watts) / spans, 0.0)
            edges.append((begins, ends, np.rint(drew / step).astype(np.int64) * gpus[of][of_ops]))
    return _by_part(units, busy, part), every, _most(edges) * step


def _units(alike: RepresentedRanks | None, drawn: Mapping[str, Capacity]) -> dict[BusyUnit, tuple[str, ...]]:
    """Return the groups of identical GPUs."""
    members = {} if alike is None else alike.members
    leads: dict[str, list[str]] = {}  # by GPU the capacities that stand for its compute and its memory
    for name, capacity in drawn.items():
        for member in members.get(name, (name,)):
            leads.setdefault(device_of(member, capacity.kind), ["", ""])[capacity.kind == "memory"] = name
    gpus: dict[BusyUnit, list[str]] = {}
    for name, (compute, memory) in leads.items():
        gpus.setdefault(BusyUnit(compute, memory), []).append(name)
    return {unit: tuple(names) for unit, names in gpus.items()}


def _rows(
    drawn: Mapping[str, list[tuple[float, int]]], units: Sequence[BusyUnit], numbers: Mapping[str, list[int]]
) -> dict[tuple[float, float], list[tuple[int, float]]]:  # fmt: skip
    """Return, by (compute, memory) demand on a GPU, the GPU groups with that demand and the number of times."""
    rows: dict[tuple[float, float], list[tuple[int, float]]] = {}
    for number in dict.fromkeys(number for capacity in drawn for number in numbers.get(capacity, ())):
        unit = units[number]
        for compute, memory, times in _together(drawn.get(unit.compute, ()), drawn.get(unit.memory, ())):
            rows.setdefault((compute, memory), []).append((number, times))
    return rows


def _together(compute: Sequence[tuple[float, int]], memory: Sequence[tuple[float, int]]) -> Iterator[tuple[float, float, int]]:
    """Return (compute, memory, times) of ops that use one or both capacities of a GPU."""
    left = [list(compute), list(memory)]
    while left[0] or left[1]:
        (first, many), (second, others) = (rows[0] if rows else (0.0, 0) for rows in left)
        times = min(many or others, others or many)
        yield first, second, times
        left = [([(rows[0][0], rows[0][1] - times)] if rows[0][1] > times else []) + rows[1:] if rows else [] for rows in left]


def _watts(item: PowerItem) -> tuple[float, float]:
    """Return the power of a GPU above idle at its full rate, and bound by memory (watts)."""
    return (1.0 + item.besides) * (item.loaded - item.idle), (1.0 + item.besides) * (item.memory - item.idle)


def _by_part(
    units: Mapping[BusyUnit, tuple[str, ...]], busy: Sequence[tuple[list[float], list[float]]], part: Callable[[str], int]
) -> dict[int, list[DeviceBusyTimes]]:
    """Return GPU busy times by part, with one entry for equally busy GPUs."""
    places: dict[str, tuple[int, ...]] = {}
    for number, names in enumerate(units.values()):
        for name in names:
            places[name] = (*places.get(name, ()), number)
    alike: Counter[tuple[int, float, float]] = Counter()
    for (of_part, numbers), many in Counter((part(name), numbers) for name, numbers in places.items()).items():
        full, memory = (math.fsum(spent for number in numbers for spent in busy[number][index]) for index in range(2))
        alike[of_part, full, memory] += many
    by_part: dict[int, list[DeviceBusyTimes]] = {}
    for (of_part, full, memory), many in alike.items():
        by_part.setdefault(of_part, []).append(DeviceBusyTimes(full, memory, many))
    return by_part


def _most(edges: Iterable[tuple[Floats, Floats, Ints]]) -> int:
    """Return the peak of the total power of concurrent ops, given as (begin, end, power)."""
    columns = list(edges)
    begins, ends, watts = (np.concatenate([column[place] for column in columns]) for place in range(3))
    at = np.concatenate([ends, begins])  # what ends at an instant comes before what begins
    order = np.argsort(at, kind="stable")
    level = np.cumsum(np.concatenate([-watts, watts])[order])
    return int(level.max(initial=0))


# ---- other devices: by the most used of their capacities ----


def _others(result: Result, gpus: set[str]) -> dict[str, tuple[float, int]]:
    """Return the busy time and the number of devices, by name, for devices other than GPUs."""
    alike = result.simulated.flat.graph.alike
    members = {} if alike is None else alike.members
    worked: dict[str, tuple[str, float]] = {}  # device and seconds by capacity
    many: dict[str, int] = {}  # of devices that no name is known of
    for usage in result.usage:
        if not usage.device or not usage.busy_fs or usage.device in gpus:
            continue  # of a link, or never used
        names = members.get(usage.capacity, (usage.capacity,)) if usage.identical_count > 1 else (usage.capacity,)
        worked |= {name: (device_of(name, usage.kind), usage.utilization * result.makespan_s) for name in names}
        many[usage.device] = usage.identical_count - len(names) + 1
    busy: dict[str, tuple[float, int]] = {}
    for device, seconds in worked.values():
        busy[device] = max(seconds, busy[device][0] if device in busy else 0.0), many.get(device, 1)
    return busy
