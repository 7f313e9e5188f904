"""The phases of a collective among very many devices, in columns: `hwsim.collectives.steady` for thousands of ranks.

The machine tells pairs of devices apart by the shape of their way (`Machine.draws`), so that a pair costs a microsecond and
nothing is named but the first capacity of each kind.  Sums of what several pairs draw from one capacity are made of equal
amounts counted, the smallest first, so that equal capacities come to equal sums, bit for bit, whatever the order of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.collectives.algorithms import InNetwork
from hwsim.collectives.placing import Placed, handling
from hwsim.collectives.rounds import Pair, Round
from hwsim.demand import Capacity, Wide, Wire
from hwsim.devices import Cpu, Gpu, Memory
from hwsim.graph.opgraph import Ints
from hwsim.machine import Machine
from hwsim.machine.draws import Draws
from hwsim.machine.libraries.overheads import Overheads
from hwsim.records import dataclass

LEAST: Final = 512  # ranks from which columns are quicker
SEVERAL: Final = 64  # ranks from which one look at all pairs is
_DIGITS: Final = str.maketrans("", "", "0123456789")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """Pairs of devices by name, and what they draw."""

    sources: Sequence[str]
    targets: Sequence[str]
    draws: Draws


@dataclass(slots=True)
class Column:
    """What a step, or a phase, takes: per number of a capacity its amount and the bytes behind it."""

    amounts: Floats
    moved: Floats
    latency: float = 0.0
    floor: float = 0.0

    def add(self, other: Column, times: float) -> None:
        """So many times another one's."""
        self.amounts += times * other.amounts
        self.moved += times * other.moved


class _Rows(NamedTuple):
    """What is drawn, row by row: the number of the capacity, and which of some amounts, with the bytes behind them."""

    number: Ints
    which: Ints
    amounts: Floats
    moved: Floats


class Kinds:
    """Which capacities have been met, and what they are like: names without digits, rate and unit."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.count = machine.capacity_numbers
        self.looks: dict[tuple[str, float, str], int] = {}
        self.look = np.full(self.count, -1, np.int32)
        self.rates: list[float] = []
        self._known: dict[tuple[object, ...], tuple[Sequence[Pair], Asked]] = {}  # steps there and back ask the same

    def asked(self, placed: Placed, pairs: Sequence[Pair], size: float) -> Asked:
        """What pairs draw that send so much each."""
        key = size, len(pairs), pairs[0], pairs[-1]
        before = self._known.get(key)
        if before is None or before[0] != pairs:
            sources = [placed.parties[source] for source, _, _ in pairs]
            targets = [placed.parties[target] for _, target, _ in pairs]
            how = handling(self.machine, placed.algorithm, placed.parties[0], placed.parties[1])
            before = self._known[key] = pairs, Asked(sources, targets, self.machine.draws(sources, targets, size, how))
        return before[1]

    def number(self, name: str) -> int:
        """Of what a capacity is like."""
        one = self.machine.capacities[name]
        key = name.translate(_DIGITS), one.rate, one.unit
        if key not in self.looks:
            self.looks[key] = len(self.looks)
            self.rates.append(one.rate)
        return self.looks[key]

    def nothing(self) -> Column:
        """Before anything is drawn."""
        return Column(np.zeros(self.count), np.zeros(self.count))

    def named(self, column: Column) -> list[tuple[str, float, float]]:
        """(capacity, amount, bytes) of the first capacity of each kind."""
        wide = self.wide(column)
        return sorted((each.capacity.name, each.amount, each.moved) for each in wide.kinds) if wide else []

    def seconds(self, column: Column) -> float:
        """What the longest of all takes."""
        used = np.flatnonzero(column.amounts > 0)
        rates = np.array([*self.rates, 1.0])[self.look[used]]
        return float(max(column.floor, (column.amounts[used] / rates).max(initial=0.0)))

    def wide(self, column: Column) -> Wide | None:
        """The amounts as they are drawn."""
        used = np.flatnonzero(column.amounts > 0)
        if not len(used):
            return None
        _, amount = np.unique(column.amounts[used], return_inverse=True)
        _, moved = np.unique(column.moved[used], return_inverse=True)
        code = (self.look[used].astype(np.int64) * (int(amount.max()) + 1) + amount.ravel()) * (
            int(moved.max()) + 1
        ) + moved.ravel()
        _, first, kind = np.unique(code, return_index=True, return_inverse=True)
        kinds = []
        for place in first.tolist():
            number = int(used[place])
            capacity: Capacity = self.machine.capacities[self.machine.capacity_name(number)]
            kinds.append(Wire(capacity, float(column.amounts[number]), float(column.moved[number])))
        return Wide(used, kind.ravel(), tuple(kinds), self.count, self.machine.capacity_name)


def fits(machine: Machine, placed: Placed, overheads: Overheads) -> bool:
    """Whether columns can say it: many ranks, all GPUs or all CPUs, nothing held."""
    return len(placed.parties) >= LEAST and overheads.compute <= 0 and alike(machine, placed)


def alike(machine: Machine, placed: Placed) -> bool:
    """Whether what pairs draw is worth asking for in columns: many ranks and nobody else, all GPUs or all CPUs."""
    names = placed.parties
    if len(names) < SEVERAL or isinstance(placed.algorithm, InNetwork):
        return False
    first = machine.device(names[0])
    return isinstance(first.model, Cpu | Gpu) and len(names) == placed.group.ranks and _all_like(machine, names, first.kind)


def _all_like(machine: Machine, names: Sequence[str], kind: str) -> bool:
    """Whether they are all devices of one kind, without a look at each."""
    return set(names) <= set(machine.devices_of(kind))


def step(
    machine: Machine, placed: Placed, each: Round, size: float, overheads: Overheads, kinds: Kinds
) -> tuple[Column, tuple[float, float]]:
    """What one step draws, and (the library's, the links') seconds before its first byte arrives."""
    found = Column(np.zeros(kinds.count), np.zeros(kinds.count))
    waits = (0.0, 0.0)
    shares = np.array([share for _, _, share in each.pairs])
    rows: list[_Rows] = []
    for share in dict.fromkeys(shares.tolist()):
        pairs = [pair for pair in each.pairs if pair[2] == share] if (shares != share).any() else each.pairs
        asked = kinds.asked(placed, pairs, share * size)
        draws = asked.draws
        for here, latency in _waits(asked, overheads):
            if here + latency > math.fsum(waits):
                waits = here, latency
        found.floor = max([found.floor, *(cost.demand.floor for cost in draws.costs)])
        rows += _rows(machine, draws, asked.targets, share * size, overheads, kinds, reduce=each.reduce)
    number = np.concatenate([row.number for row in rows])
    starts = np.cumsum([0, *(len(row.amounts) for row in rows)]).tolist()
    which = np.concatenate([row.which + start for row, start in zip(rows, starts, strict=False)])
    _sum(found.amounts, number, which, np.concatenate([row.amounts for row in rows]))
    _sum(found.moved, number, which, np.concatenate([row.moved for row in rows]))
    return found, waits


def _waits(asked: Asked, overheads: Overheads) -> list[tuple[float, float]]:
    """The different (overhead, latency) of pairs in the same node and in two."""
    draws = asked.draws
    if overheads.hop is None:
        known = [(False, shape) for shape in np.unique(draws.shape).tolist()]
    else:
        ends = zip(asked.sources, asked.targets, strict=True)
        across = [a.rpartition(".")[0] != b.rpartition(".")[0] for a, b in ends]
        known = sorted(set(zip(across, draws.shape.tolist(), strict=True)))
    return [(overheads.of_step(far), draws.costs[shape].demand.latency) for far, shape in known]


def _rows(
    machine: Machine, draws: Draws, targets: Sequence[str], size: float, overheads: Overheads, kinds: Kinds, *, reduce: bool
) -> list[_Rows]:
    """Everything that pairs draw; a receiver that adds reads what it has."""
    sizes = [len(cost.demand.amounts) for cost in draws.costs]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    looks, amounts, moved = [], [], []
    again: list[tuple[int, float]] = []  # of each shape, the row of the receiver's memory, and what reading again takes of it
    _, first_pairs = np.unique(draws.shape, return_index=True)
    for cost, pair in zip(draws.costs, first_pairs.tolist(), strict=True):
        natural = {name: amount for name, amount, unit in cost.moved if unit != "1"}
        for name, amount in cost.demand.amounts:
            looks.append(kinds.number(name))
            wire = machine.capacities[name].unit == "B"
            amounts.append(float(amount / overheads.efficiency if wire else amount))
            moved.append(float(natural.get(name, 0.0)))
        model = machine.device(targets[pair]).model
        if reduce and size > 0 and isinstance(model, Cpu | Gpu | Memory):
            capacity, seconds = model.copy_bytes(targets[pair], size)
            own = draws.capacity[draws.first[pair] : draws.first[pair + 1]].tolist()
            again.append(([machine.capacity_name(number) for number in own].index(capacity), seconds))
    many = np.diff(draws.first)
    table = np.repeat(starts[draws.shape] - draws.first[:-1], many) + np.arange(len(draws.capacity))
    kinds.look[draws.capacity] = np.array(looks, np.int32)[table]
    found = [_Rows(draws.capacity, table, np.array(amounts), np.array(moved))]
    if again:
        places = np.array([place for place, _ in again])
        memory = draws.capacity[draws.first[:-1] + places[draws.shape]]
        found.append(_Rows(memory, draws.shape, np.array([seconds for _, seconds in again]), np.full(len(again), size)))
    return found


def _sum(column: Floats, number: Ints, which: Ints, values: Floats) -> None:
    """Add up by number: equal values counted, then the smallest first."""
    known, place = np.unique(values, return_inverse=True)
    code, many = np.unique(number.astype(np.int64) * len(known) + place.ravel()[which], return_counts=True)
    column += np.bincount(code // len(known), weights=many * known[code % len(known)], minlength=len(column))
