"""Sums of the amounts that steps of a collective draw, by capacity index: the contents of a step, a phase and its cost.

All capacities of one look have the same rate and unit. Only capacities in the result get names.

Amounts from one capacity are added in the order of the pairs. In a cost with columns (`Cost.wide`), equal amounts are counted and
the smallest summed first. So equal capacities have bitwise equal sums, regardless of the order of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Final, NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.placement import PlacedAlgorithm
from hwsim.communication.rounds import Round
from hwsim.communication.step_draws import PairKinds, StepDraws
from hwsim.demand import AmountColumns, Cost, Demand, EqualCapacities, Term, Unit
from hwsim.devices import Cpu, Gpu, Memory
from hwsim.graph.opgraph import Floats, Ints
from hwsim.machine import Machine
from hwsim.machine.libraries.overheads import Overheads
from hwsim.records import dataclass

LEAST: Final = 512  # minimum ranks of a cost with columns
UNITS: Final[tuple[Unit, ...]] = ("1", "B", "s")

Waits = tuple[float, float]  # seconds before a step's first byte arrives: of the library, of the links


@dataclass(frozen=True, slots=True)
class PlacedCollective:
    """One collective: an algorithm among devices, bytes of one rank's array, and the library's overheads."""

    machine: Machine
    placed: PlacedAlgorithm
    size: float
    overheads: Overheads

    def is_wire(self, capacity: str) -> bool:
        """Return whether the capacity is one direction of a link, so its amounts are bytes."""
        return self.machine.capacities[capacity].unit == "B"

    def read_again(self, receiver: str, size: float) -> tuple[str, float] | None:
        """Return (capacity, amount) of a receiver's read of its own data before a reduction; None without memory."""
        model = self.machine.device(receiver).model
        return model.copy_bytes(receiver, size) if size > 0 and isinstance(model, Cpu | Gpu | Memory) else None


class SlowestCapacity(NamedTuple):
    """The slowest capacity of its unit.

    Args:
        moved: bytes behind the amount.
    """

    unit: Unit
    seconds: float
    capacity: str
    moved: float


@dataclass(slots=True)
class Sums:
    """Amounts, and the bytes behind them, by capacity index; trailing zeros may be missing.

    Args:
        latency: latency before the amounts (s).
        floor: minimum time of the amounts (s).
    """

    amounts: Floats = field(default_factory=lambda: np.empty(0))
    moved: Floats = field(default_factory=lambda: np.empty(0))
    latency: float = 0.0
    floor: float = 0.0

    def add(self, other: Sums, times: float) -> None:
        count = len(other.amounts)
        self.amounts, self.moved = _pad(self.amounts, count), _pad(self.moved, count)
        self.amounts[:count] += times * other.amounts
        self.moved[:count] += times * other.moved


class _Prices(NamedTuple):
    """Amounts and waits of each kind of pair.

    Args:
        amounts, moved: by row.
        waits: by code.
        floors: by kind.
    """

    kinds: PairKinds
    amounts: Floats
    moved: Floats
    latencies: list[float]
    waits: Floats
    floors: Floats


class Ledger:
    """The sums of a collective's steps; `columns`: whether costs among very many devices may have columns."""

    def __init__(self, exchange: PlacedCollective, drawing: StepDraws, *, columns: bool = False) -> None:
        self.exchange, self._machine, self._drawing = exchange, exchange.machine, drawing
        self._once = isinstance(exchange.placed.algorithm, InNetwork)
        is_large = len(exchange.placed.parties) >= LEAST
        self._wide = columns and is_large and exchange.overheads.compute <= 0 and not self._once
        self._prices: _Prices | None = None
        self._latest: tuple[Sums, tuple[Ints, Ints, Ints]] | None = None  # latest sums with their kinds

    def step(self, stage: Round) -> tuple[Sums, Waits]:
        """Return the amounts of a step, and the longest wait of its pairs."""
        sums, waits = Sums(), (0.0, 0.0)
        for step in [self._drawing.step(stage)] if self._wide else self._drawing.parts(stage):
            prices, count = self._price(step.kinds), len(self._drawing.numbers)
            if not len(step.code):
                continue
            if self.exchange.size > 0:
                add = _counted_sums if self._wide else self._switch_sums if self._once else _ordered_sums
                sums.amounts = add(sums.amounts, step.place, prices.amounts, step.which, count)
                sums.moved = add(sums.moved, step.place, prices.moved, step.which, count)
            sums.floor = max(sums.floor, float(prices.floors[step.code >> 1].max()))
            shape, apart = divmod(int(step.code[prices.waits[step.code].argmax()]), 2)
            longest = self.exchange.overheads.of_step(bool(apart)), prices.latencies[shape]
            waits = longest if math.fsum(longest) > math.fsum(waits) else waits
        return sums, waits

    def seconds(self, amounts: Sums) -> float:
        return max(amounts.floor, self.busy(amounts))

    def busy(self, total: Sums) -> float:
        return float(self._seconds(total).max(initial=0.0))

    def longest(self, total: Sums, word: Callable[[str], str]) -> tuple[float, str]:
        """Return the seconds of the slowest capacity, and a word for its kind of link ("" for a device)."""
        seconds, kinds = self._seconds(total), [look.link for look in self._drawing.looks]
        longest = float(seconds.max(initial=0.0))
        places = np.flatnonzero(seconds == longest)
        words = {word(kinds[look]) for look in self._drawing.look[places].tolist()} if longest > 0 else {word("")}
        if len(words) > 1:
            first = min(places.tolist(), key=self._drawing.name)
            words = {word(kinds[self._drawing.look[first]])}
        return longest, words.pop()

    def slowest(self, total: Sums) -> list[SlowestCapacity]:
        """Return the slowest capacity of each unit."""
        drawing = self._drawing
        places = self._kinds(total)[1] if self._wide else np.flatnonzero(total.amounts > 0)
        seconds, looks = self._seconds(total)[places], drawing.look[places]
        lines: list[SlowestCapacity] = []
        for unit in UNITS:
            of_unit = np.flatnonzero(np.array([look.unit == unit for look in drawing.looks], np.bool_)[looks])
            longest = float(seconds[of_unit].max(initial=0.0))
            if longest > 0:
                first = min(places[of_unit[seconds[of_unit] == longest]].tolist(), key=drawing.name)
                lines.append(SlowestCapacity(unit, longest, drawing.name(first), float(total.moved[first])))
        return lines

    def on_slowest_link(self, total: Sums) -> float:
        """Return the largest amount on the slowest links; 0 without links."""
        links = np.flatnonzero(self._drawing.is_wire[: len(total.amounts)])
        seconds = self._seconds(total)[links]
        return float(total.amounts[links[seconds == seconds.max(initial=0.0)]].max(initial=0.0))

    def cost(self, total: Sums, share: float, why: tuple[Term, ...]) -> Cost:
        """Return the cost of a phase with named amounts and the compute that its kernels hold; zero amounts are omitted."""
        if self._wide:
            return Cost(Demand(latency=total.latency, floor=total.floor, share=share), why=why, wide=self._wide_amounts(total))
        places = np.flatnonzero(total.amounts > 0)
        names = map(self._drawing.name, places.tolist())
        rows = sorted(zip(names, total.amounts[places].tolist(), total.moved[places].tolist(), strict=True))
        placed, compute = self.exchange.placed, self.exchange.overheads.compute
        ranks = placed.parties[: placed.group.ranks] if compute > 0 else ()
        gpus = sorted(name for name in ranks if self._machine.device(name).kind == "gpu")
        demand = Demand(
            latency=total.latency,
            amounts=tuple([(name, amount) for name, amount, _ in rows]),
            floor=total.floor,
            holds=tuple((f"{name}.compute", compute) for name in gpus),
            share=share,
        )
        return Cost(demand, moved=tuple([(name, moved, "B") for name, _, moved in rows if moved > 0]), why=why)

    def _price(self, kinds: PairKinds) -> _Prices:
        if self._prices is not None and self._prices.kinds is kinds:
            return self._prices
        size, overheads = self.exchange.size, self.exchange.overheads
        costs = kinds.draws.price(kinds.draws.kinds, size)
        amounts, moved = list[float](), list[float]()
        for kind, cost, is_wire, reader in zip(kinds.draws.kinds, costs, kinds.wires, kinds.readers, strict=True):
            natural = {name: amount for name, amount, unit in cost.moved if unit != "1"}
            for (name, amount), links in zip(cost.demand.amounts, is_wire, strict=False):
                amounts.append(amount / overheads.efficiency if links else amount)
                moved.append(natural.get(name, 0.0))
            amounts.append(0.0 if reader is None else reader.copy_bytes("", kind.size * size)[1])
            moved.append(kind.size * size)
        latencies = [cost.demand.latency for cost in costs]
        waits = [overheads.of_step(apart) + latency for latency in latencies for apart in (False, True)]
        floors = [cost.demand.floor for cost in costs]
        self._prices = _Prices(kinds, np.array(amounts), np.array(moved), latencies, np.array(waits), np.array(floors))
        return self._prices

    def _seconds(self, total: Sums) -> Floats:
        seconds: Floats = total.amounts / self._drawing.rates[: len(total.amounts)]
        return seconds

    def _switch_sums(self, sums: Floats, places: Ints, values: Floats, which: Ints, count: int) -> Floats:
        """Return the sums by index, with the maximum for links: a switch adds incoming bytes and copies outgoing ones."""
        sums, is_wire = _pad(sums, count), self._drawing.is_wire[places]
        np.maximum.at(sums, places[is_wire], values[which[is_wire]])
        np.add.at(sums, places[~is_wire], values[which[~is_wire]])
        return sums

    def _kinds(self, total: Sums) -> tuple[Ints, Ints, Ints]:
        """Return the used capacities in numerical order, the first of each kind, and the kind of each."""
        if self._latest is not None and self._latest[0] is total:
            return self._latest[1]
        used = np.flatnonzero(total.amounts > 0)
        used = used[np.argsort(self._drawing.numbers[used])]
        code = self._drawing.look[used].astype(np.int64)
        for column in (total.amounts, total.moved):
            different, value = _distinct(column[used])
            code = code * max(1, len(different)) + value
        _, first, kind = np.unique(code, return_index=True, return_inverse=True)
        separated = used, used[first], kind.ravel().astype(np.int32)
        self._latest = total, separated
        return separated

    def _wide_amounts(self, total: Sums) -> AmountColumns | None:
        """Return the amounts as columns of a cost; None if nothing is drawn."""
        used, firsts, kind = self._kinds(total)
        if not len(used):
            return None
        capacities, machine = self._machine.capacities, self._machine
        kinds = [
            EqualCapacities(capacities[self._drawing.name(place)], float(total.amounts[place]), float(total.moved[place]))
            for place in firsts.tolist()
        ]
        return AmountColumns(self._drawing.numbers[used], kind, tuple(kinds), machine.capacity_numbers, machine.capacity_name)


def _pad(column: Floats, count: int) -> Floats:
    """Return a column, padded with zeros to `count` rows."""
    if len(column) >= count:
        return column
    longer = np.zeros(count)
    longer[: len(column)] = column
    return longer


def _ordered_sums(sums: Floats, places: Ints, values: Floats, which: Ints, count: int) -> Floats:
    """Return the sums by index after more values are added, in row order; `which`: index of each row's value."""
    if not len(sums):
        return np.asarray(np.bincount(places, weights=values[which], minlength=count), np.float64)
    sums = _pad(sums, count)
    np.add.at(sums, places, values[which])
    return sums


def _distinct(values: Floats) -> tuple[Floats, Ints]:
    """Return the distinct values, ascending, and the index of each value; fast for few distinct values."""
    different = ticks.distinct(values)
    return different, np.searchsorted(different, values)


def _counted_sums(_: Floats, places: Ints, values: Floats, which: Ints, count: int) -> Floats:
    """Return the sums by index: equal values are counted, and the smallest summed first."""
    different, indices = _distinct(values)
    value = indices[which]
    last = np.zeros(count, np.int64)
    last[places] = value
    if bool((last[places] == value).all()):  # all amounts of a capacity are equal
        return np.asarray(np.bincount(places, minlength=count) * different[last], np.float64)
    code, counts = ticks.counted(places.astype(np.int64) * len(different) + value)
    weights = counts * different[code % len(different)]
    return np.asarray(np.bincount(code // len(different), weights=weights, minlength=count), np.float64)
