"""Busy times of the devices of a run, including devices that a folded run represents by another one.

In a folded run, every represented capacity (`RepresentedRanks.members`) has the same load as its representative.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.costs.power import Power, PowerItem
from hwsim.demand import Capacity, by_name
from hwsim.graph.opgraph import Floats, Ints, RepresentedRanks
from hwsim.machine import Machine
from hwsim.results.result import Result
from hwsim.ticks import FEMTO, distinct

PARTS: Final = ("compute", "memory")  # GPU capacities that set its power
Flags = NDArray[np.bool_]
STEPS: Final = 1 << 54  # integer steps from zero to full GPU power, whose sums are exact in any order


class DeviceBusyTimes(NamedTuple):
    """Time of a device at its full rate, and time of a GPU bound by memory (s); many: number of identical devices."""

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
    by_part, is_gpu, above = _gpus(result, machine, items)
    for of_part, device in _others(result, machine, is_gpu):
        by_part.setdefault(of_part, []).append(device)
    return by_part, above


# ---- GPUs: by the kernels that they run ----


def _gpus(
    result: Result, machine: Machine, items: Mapping[int, PowerItem]
) -> tuple[dict[int, list[DeviceBusyTimes]], Flags, float]:
    """Return GPU busy times by part, whether each device is one of these GPUs, and their peak power above idle (watts)."""
    timeline = result.simulated
    flat, count = timeline.flat, len(timeline.flat.graph.costs)
    known = by_name(flat.graph.capacities)
    drawn: list[dict[str, list[tuple[float, int]]]] = []
    for cost in flat.graph.costs:
        rows: dict[str, list[tuple[float, int]]] = {}
        for capacity, amount, times in cost.demand.drawn:
            if known[capacity].kind in PARTS:
                rows.setdefault(capacity, []).append((amount, times))
        drawn.append(rows)
    units, is_gpu = _units(flat.graph.alike, machine, {name: known[name] for rows in drawn for name in rows})
    numbers: dict[str, list[int]] = {}  # of the units that draw from a capacity
    for number, unit in enumerate(units):
        for capacity in unit:
            numbers.setdefault(capacity, []).append(number)
    op_key, listed = np.where(flat.cost >= 0, flat.cost, count), list(units)
    slots: list[dict[int, tuple[float, float, list[tuple[int, float]]]]] = []
    for key in distinct(op_key).tolist():
        rows_of = _rows(drawn[key], listed, numbers) if key < count else {}
        for place, ((compute, memory), who) in enumerate(rows_of.items()):
            if place == len(slots):
                slots.append({})
            slots[place][key] = compute, memory, who
    if not slots:
        return {}, is_gpu, 0.0
    counts = list(units.values())
    kinds = {of: _watts(item) for of, item in items.items() if any(of in unit for unit in counts)}
    most = math.fsum(max(watts) * sum(unit[of] for unit in counts) for of, watts in kinds.items())  # integers
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
    return _by_part(counts, busy), is_gpu, _most(edges) * step


def _units(
    alike: RepresentedRanks | None, machine: Machine, drawn: Mapping[str, Capacity]
) -> tuple[dict[BusyUnit, Counter[int]], Flags]:
    """Return the number of GPUs of each part in each group of identical GPUs, and whether each device is such a GPU."""
    names, (parts, part_of) = ("", *drawn), machine.device_numbers.parts
    leads = np.zeros((2, len(parts)), np.int64)  # for each device the capacities that represent its compute and its memory
    for number, (name, capacity) in enumerate(drawn.items(), 1):
        leads[int(capacity.kind == "memory"), machine.holders(_represented(alike, name), capacity.kind)] = number
    is_gpu = leads.any(axis=0) & np.isin(parts, [of for of, part in enumerate(part_of) if part.kind == "gpu"])
    devices = np.flatnonzero(is_gpu)
    codes, counts = np.unique((leads[0] * len(names) + leads[1])[devices] * len(parts) + parts[devices], return_counts=True)
    units: dict[BusyUnit, Counter[int]] = {}
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        lead, of = divmod(code, len(parts))
        unit = BusyUnit(*(names[index] for index in divmod(lead, len(names))))
        units.setdefault(unit, Counter())[id(part_of[of])] += count
    return units, is_gpu


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


def _by_part(counts: Sequence[Counter[int]], busy: Sequence[tuple[list[float], list[float]]]) -> dict[int, list[DeviceBusyTimes]]:
    """Return GPU busy times by part, with one entry for equally busy GPUs."""
    alike: Counter[tuple[int, float, float]] = Counter()
    for by_part, (full, memory) in zip(counts, busy, strict=True):
        for of_part, many in by_part.items():
            alike[of_part, math.fsum(full), math.fsum(memory)] += many
    times: dict[int, list[DeviceBusyTimes]] = {}
    for (of_part, full_s, memory_s), many in alike.items():
        times.setdefault(of_part, []).append(DeviceBusyTimes(full_s, memory_s, many))
    return times


def _most(edges: Iterable[tuple[Floats, Floats, Ints]]) -> int:
    """Return the peak of the total power of concurrent ops, given as (begin, end, power)."""
    columns = list(edges)
    begins, ends, watts = (np.concatenate([column[place] for column in columns]) for place in range(3))
    at = np.concatenate([ends, begins])  # what ends at an instant comes before what begins
    order = np.argsort(at, kind="stable")
    level = np.cumsum(np.concatenate([-watts, watts])[order])
    return int(level.max(initial=0))


# ---- other devices: by the most used of their capacities ----


def _others(result: Result, machine: Machine, is_gpu: Flags) -> Iterator[tuple[int, DeviceBusyTimes]]:
    """Yield (part, busy time) of devices other than GPUs, once for equally busy devices of a part."""
    alike, (parts, part_of) = result.simulated.flat.graph.alike, machine.device_numbers.parts
    worked, many = np.zeros(len(parts)), np.ones(len(parts), np.int64)
    for usage in result.usage:
        if usage.device and usage.busy_fs:  # not of a link
            names = _represented(alike, usage.capacity) if usage.identical_count > 1 else (usage.capacity,)
            numbers = machine.holders(names, usage.kind)
            worked[numbers] = np.maximum(worked[numbers], usage.utilization * result.makespan_s)
            many[numbers[0]] = usage.identical_count - len(names) + 1  # no name is known of the rest
    devices = np.flatnonzero((worked > 0) & ~is_gpu & (parts >= 0))
    seconds, index = np.unique(worked[devices], return_inverse=True)
    codes, rows = np.unique(index.ravel() * len(parts) + parts[devices], return_inverse=True)
    for code, count in zip(codes.tolist(), np.bincount(rows.ravel(), many[devices]).tolist(), strict=True):
        place, of = divmod(code, len(parts))
        yield id(part_of[of]), DeviceBusyTimes(float(seconds[place]), 0.0, int(count))


def _represented(alike: RepresentedRanks | None, capacity: str) -> Sequence[str]:
    """Return the capacities of devices that a capacity represents, itself first."""
    return (capacity,) if alike is None else alike.members.get(capacity, (capacity,))
