"""Busy times of the devices of a run, those among them that others stand for in a folded run.

Ranks that are folded: every capacity that one represents (`Alike.members`) is drawn from as much as that one.

A training that is folded: a step draws from each copy of a GPU (`Trained.copies`) what it draws from the simulated one. An
exchange names all of them and is counted once. Threads of the other GPUs spend as much on their hosts.

Checkpoints, evaluations and other jobs count on the devices that they name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.costs.power import Power, PowerItem
from hwsim.graph.opgraph import Alike, Floats, Ints, Trained
from hwsim.machine import Machine
from hwsim.results.result import Result
from hwsim.results.usage import drawing_since
from hwsim.ticks import FEMTO
from hwsim.workload.programs import host_of

PARTS: Final = ("compute", "memory")  # capacities of a GPU that its power depends on


class Busy(NamedTuple):
    """Seconds that a device works at its full rate, and that a GPU is bound by memory; many: devices alike."""

    full: float
    memory: float
    many: int


class Unit(NamedTuple):
    """GPUs that do the same: their capacities ("" where nothing draws from one), and the folded training, 0 for none."""

    compute: str
    memory: str
    training: int


def busy_in(result: Result, machine: Machine, power: Power) -> tuple[dict[int, list[Busy]], float]:
    """Busy times of devices by part; and the most watts that GPUs draw above idle at once."""
    flat = result.timeline.flat
    folded = [each for each in flat.graph.trainings if each.copies]
    training = _training_of(result, folded)
    items = {item.part: item for item in power.items}
    by_part, gpus, above = _gpus(result, machine, items, folded, training)
    for name, (worked, many) in _others(result, machine, folded, training, gpus).items():
        spot = machine.layout.find(name)
        if spot is not None:
            by_part.setdefault(id(spot.part), []).append(Busy(worked, 0.0, many))
    return by_part, above


def _training_of(result: Result, folded: Sequence[Trained]) -> Ints:
    """By op the folded training that it is a step's of, from 1; 0 for every other op."""
    flat = result.timeline.flat
    numbers = np.zeros(len(flat), np.int64)
    labels, base = flat.graph.labels, 0
    steps = [at for at, label in enumerate(labels) if label.kind == "step"]
    programs = {trained.program: number for number, trained in enumerate(folded, 1)}
    for block in flat.graph.blocks if folded else ():
        ended = [labels[label].program for label in steps if (block.label == label).any()]
        numbers[base : base + block.total] = next((programs[name] for name in ended if name in programs), 0)
        base += block.total
    return numbers


# ---- GPUs: by the kernels that they run ----


def _gpus(
    result: Result, machine: Machine, items: Mapping[int, PowerItem], folded: Sequence[Trained], training: Ints
) -> tuple[dict[int, list[Busy]], set[str], float]:
    """Busy times by part, the names of the GPUs, and the most that they draw above idle at once."""
    timeline = result.timeline
    flat, count = timeline.flat, len(timeline.flat.graph.costs)
    parts: dict[str, int] = {}  # of GPUs; 0 of others

    def part(name: str) -> int:
        if name not in parts:
            spot = machine.layout.find(name)
            parts[name] = id(spot.part) if spot is not None and spot.part.kind == "gpu" else 0
        return parts[name]

    drawn: list[dict[str, list[tuple[float, int]]]] = []
    for cost in flat.graph.costs:
        rows: dict[str, list[tuple[float, int]]] = {}
        for capacity, amount, times in cost.demand.drawn:
            name, _, kind = capacity.rpartition(".")
            if kind in PARTS and part(name):
                rows.setdefault(capacity, []).append((amount, times))
        drawn.append(rows)
    units = _units(flat.graph.alike, dict.fromkeys(name for rows in drawn for name in rows), folded)
    numbers: dict[tuple[int, str], list[int]] = {}  # of the units that draw from a capacity
    for number, unit in enumerate(units):
        for capacity in (unit.compute, unit.memory):
            numbers.setdefault((unit.training, capacity), []).append(number)
    op_key = np.where(flat.cost >= 0, training * (count + 1) + flat.cost, count)
    slots: list[dict[int, tuple[float, float, list[tuple[int, float]]]]] = []
    for key in np.unique(op_key).tolist():
        of_training, cost_number = divmod(key, count + 1)
        if cost_number < count:
            rows_of = _rows(drawn[cost_number], of_training, units, numbers)
            for place, ((compute, memory), who) in enumerate(rows_of.items()):
                if place == len(slots):
                    slots.append({})
                slots[place][key] = compute, memory, who
    if not slots:
        return {}, set(), 0.0
    watts_of = np.array([_watts(names, part, items) for names in units.values()]).reshape(-1, 2)
    busy = np.zeros((2, len(units)))
    begin = drawing_since(timeline)
    edges: list[tuple[Floats, Floats, Floats]] = []
    keys = (len(folded) + 1) * (count + 1)
    for slot in slots:
        row, watts = np.zeros((2, keys)), np.zeros((2, keys))  # compute, memory
        for key, (compute, memory, who) in slot.items():
            row[:, key] = compute, memory
            for number, many in who:
                watts[:, key] += many * watts_of[number]
        ops = np.flatnonzero((row.sum(axis=0) > 0)[op_key])
        of_ops, sizes = op_key[ops], flat.size[ops]
        spans = (timeline.end[ops] - begin[ops]).astype(np.float64) / FEMTO
        full = np.minimum(sizes * row[0, of_ops], spans)
        bound = np.minimum(sizes * row[1, of_ops], spans - full)
        sums = [np.bincount(of_ops, weights=weights, minlength=keys) for weights in (full, bound)]
        for key, (_, _, who) in slot.items():
            for number, many in who:
                busy[:, number] += many * sums[0][key], many * sums[1][key]
        with np.errstate(divide="ignore", invalid="ignore"):
            drew = np.where(spans > 0, (full * watts[0, of_ops] + bound * watts[1, of_ops]) / spans, 0.0)
        edges.append((begin[ops].astype(np.float64), timeline.end[ops].astype(np.float64), drew))
    return _by_part(units, busy.T.tolist(), part), {name for names in units.values() for name in names}, _most(edges)


def _units(alike: Alike | None, drawn: Iterable[str], folded: Sequence[Trained]) -> dict[Unit, tuple[str, ...]]:
    """The GPUs of each unit."""
    members = {} if alike is None else alike.members
    leads: dict[str, list[str]] = {}  # by GPU the capacities that stand for its compute and its memory
    for capacity in drawn:
        at = capacity.endswith(".memory")
        for member in members.get(capacity, (capacity,)):
            leads.setdefault(member.rpartition(".")[0], ["", ""])[at] = capacity
    gpus: dict[Unit, list[str]] = {}
    for name, (compute, memory) in leads.items():
        gpus.setdefault(Unit(compute, memory, 0), []).append(name)
    units = {unit: tuple(names) for unit, names in gpus.items()}
    for number, trained in enumerate(folded, 1):
        units |= {Unit(f"{names[0]}.compute", f"{names[0]}.memory", number): names for names in trained.copies}
    return units


def _rows(
    drawn: Mapping[str, list[tuple[float, int]]], training: int, units: Mapping[Unit, object],
    numbers: Mapping[tuple[int, str], list[int]],
) -> dict[tuple[float, float], list[tuple[int, float]]]:  # fmt: skip
    """(compute, memory) that a cost draws of a GPU -> the units whose GPUs it draws them from, and how many times."""
    rows: dict[tuple[float, float], list[tuple[int, float]]] = {}
    listed = list(units) if drawn else []
    for number in dict.fromkeys(number for capacity in drawn for number in numbers.get((training, capacity), ())):
        unit = listed[number]
        for compute, memory, times in _together(drawn.get(unit.compute, ()), drawn.get(unit.memory, ())):
            rows.setdefault((compute, memory), []).append((number, times))
    return rows


def _together(compute: Sequence[tuple[float, int]], memory: Sequence[tuple[float, int]]) -> Iterator[tuple[float, float, int]]:
    """(compute, memory, times) of ops that draw on both capacities of a GPU, or on one."""
    left = [list(compute), list(memory)]
    while left[0] or left[1]:
        (first, many), (second, others) = (rows[0] if rows else (0.0, 0) for rows in left)
        times = min(many or others, others or many)
        yield first, second, times
        left = [([(rows[0][0], rows[0][1] - times)] if rows[0][1] > times else []) + rows[1:] if rows else [] for rows in left]


def _watts(names: Iterable[str], part: Callable[[str], int], items: Mapping[int, PowerItem]) -> tuple[float, float]:
    """Watts above idle of GPUs at their full rate, and bound by memory."""
    many = Counter(part(name) for name in names)
    drawing = [(items[of], count * (1.0 + items[of].besides)) for of, count in many.items() if of in items]
    return (
        math.fsum(count * (item.loaded - item.idle) for item, count in drawing),
        math.fsum(count * (item.memory - item.idle) for item, count in drawing),
    )


def _by_part(
    units: Mapping[Unit, tuple[str, ...]], busy: Sequence[Sequence[float]], part: Callable[[str], int]
) -> dict[int, list[Busy]]:
    """Busy times of GPUs by part, one of all that are in the same units."""
    places: dict[str, tuple[int, ...]] = {}
    for number, names in enumerate(units.values()):
        for name in names:
            places[name] = (*places.get(name, ()), number)
    by_part: dict[int, list[Busy]] = {}
    for (of_part, numbers), many in Counter((part(name), numbers) for name, numbers in places.items()).items():
        full, memory = (math.fsum(busy[number][at] for number in numbers) for at in range(2))
        by_part.setdefault(of_part, []).append(Busy(full, memory, many))
    return by_part


def _most(edges: Iterable[tuple[Floats, Floats, Floats]]) -> float:
    """The highest sum of what is drawn at the same time: (begin, end, watts) of ops."""
    columns = list(edges)
    begins, ends, watts = (np.concatenate([each[place] for each in columns]) for place in range(3))
    at = np.concatenate([ends, begins])  # what ends at an instant comes before what begins
    order = np.argsort(at, kind="stable")
    level = np.cumsum(np.concatenate([-watts, watts])[order])
    return float(level.max(initial=0.0))


# ---- other devices: by the most used of their capacities ----


def _others(
    result: Result, machine: Machine, folded: Sequence[Trained], training: Ints, gpus: set[str]
) -> dict[str, tuple[float, int]]:
    """By name the seconds that a device works, and how many such devices there are."""
    alike = result.timeline.flat.graph.alike
    members = {} if alike is None else alike.members
    worked: dict[str, float] = {}  # by capacity
    many: dict[str, int] = {}  # of devices that no name is known of
    for usage in result.usage:
        if ":" in usage.capacity or not usage.busy_fs or usage.capacity.rpartition(".")[0] in gpus:
            continue  # of a link, or never used
        names = members.get(usage.capacity, (usage.capacity,))
        worked |= dict.fromkeys(names, usage.utilisation * result.makespan_s)
        many[usage.capacity.rpartition(".")[0]] = usage.alike - len(names) + 1
    for number, trained in enumerate(folded, 1):
        if trained.alone:
            for capacity, seconds in _of_hosts(result, machine, trained, training == number):
                worked[capacity] = worked.get(capacity, 0.0) + seconds
    for number in (at for at, trained in enumerate(folded, 1) if not trained.alone):
        costs = np.unique(result.timeline.flat.cost[training == number]).tolist()
        drawn = {name for cost in costs if cost >= 0 for name, _, _ in result.timeline.flat.graph.costs[cost].demand.drawn}
        for device in {name.rpartition(".")[0] for name in drawn if ":" not in name} & many.keys():
            many[device] *= folded[number - 1].replicas
    busy: dict[str, tuple[float, int]] = {}
    for capacity, seconds in worked.items():
        device = capacity.rpartition(".")[0]
        busy[device] = max(seconds, busy[device][0] if device in busy else 0.0), many.get(device, 1)
    return busy


def _of_hosts(result: Result, machine: Machine, trained: Trained, steps: NDArray[np.bool_]) -> Iterator[tuple[str, float]]:
    """(capacity of a host, seconds of it) that the threads of represented GPUs take, which have no ops."""
    flat = result.timeline.flat
    costs, begin = flat.graph.costs, drawing_since(result.timeline)
    threads = np.array([each.kind == "host" for each in flat.graph.labels], np.bool_)
    ops = np.flatnonzero(steps & threads[flat.label] & (flat.cost >= 0))
    numbers = flat.cost[ops]
    sizes = np.bincount(numbers, weights=flat.size[ops], minlength=len(costs))
    spans = np.bincount(numbers, weights=(result.timeline.end[ops] - begin[ops]).astype(np.float64), minlength=len(costs)) / FEMTO
    rates = {each.name: each.rate for each in flat.graph.capacities}
    for first, *others in trained.copies:
        host_here = host_of(machine, machine.device(first).node)
        hosts = Counter(host_of(machine, machine.device(name).node) for name in others)
        for number in np.unique(numbers).tolist():
            demand = costs[number].demand
            taken = [(name, amount * times * sizes[number] / rates[name]) for name, amount, times in demand.drawn]
            taken += [(name, part * times * spans[number]) for name, part, times in demand.held]
            for name, seconds in taken:
                device, _, kind = name.rpartition(".")
                if device == host_here:
                    yield from ((f"{host}.{kind}", many * float(seconds)) for host, many in hosts.items() if host)
