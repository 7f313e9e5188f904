"""The amounts that a step of a collective draws, by number of the capacity: `hwsim.communication.drawn` for thousands of ranks.

The machine distinguishes pairs of devices by the shape of their route (`Machine.draws`), so that a pair costs a microsecond and
nothing is named but the first capacity of each kind. Amounts that several pairs draw from one capacity are summed as equal
amounts counted, the smallest first. So equal capacities come to equal sums, bit for bit, whatever the order of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.communication.drawn import Exchange, Row, Waits
from hwsim.communication.placing import handling
from hwsim.communication.rounds import Pair, Round
from hwsim.demand import Capacity, Cost, Demand, Term, Wide, Wire
from hwsim.graph.opgraph import Ints
from hwsim.machine.numbering import Draws
from hwsim.records import dataclass

LEAST: Final = 512  # ranks from which columns are quicker
_DIGITS: Final = str.maketrans("", "", "0123456789")

Floats = NDArray[np.float64]


def fits(exchange: Exchange) -> bool:
    """Whether columns can hold the amounts: many ranks, all GPUs or all CPUs, no compute held."""
    return len(exchange.placed.parties) >= LEAST and exchange.overheads.compute <= 0 and exchange.alike()


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of devices by name, and the amounts that they draw."""

    sources: Sequence[str]
    targets: Sequence[str]
    draws: Draws


@dataclass(slots=True)
class Column:
    """Amounts, and the bytes behind them, by number of the capacity."""

    amounts: Floats
    moved: Floats
    latency: float = 0.0
    floor: float = 0.0

    def add(self, other: Column, times: float) -> None:
        self.amounts += times * other.amounts
        self.moved += times * other.moved


class _Rows(NamedTuple):
    """Draws row by row: number of the capacity, place of the amount in the last two columns (amounts, bytes behind them)."""

    number: Ints
    which: Ints
    amounts: Floats
    moved: Floats


class Columns:
    """Amounts by number. A look is what capacities have in common: name without digits, rate and unit."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.count = exchange.machine.capacity_numbers
        self.looks: dict[tuple[str, float, str], int] = {}
        self.look = np.full(self.count, -1, np.int32)  # by number of the capacity
        self.rates: list[float] = []  # by look
        self._pairs: dict[tuple[object, ...], tuple[Sequence[Pair], Pairs]] = {}  # steps there and back have the same pairs

    def nothing(self) -> Column:
        return Column(np.zeros(self.count), np.zeros(self.count))

    def step(self, stage: Round) -> tuple[Column, Waits]:
        drawn = self.nothing()
        waits = (0.0, 0.0)
        shares = np.array([share for _, _, share in stage.pairs])
        rows: list[_Rows] = []
        for share in dict.fromkeys(shares.tolist()):
            pairs = [pair for pair in stage.pairs if pair[2] == share] if (shares != share).any() else stage.pairs
            size = share * self.exchange.size
            transfers = self._transfers(pairs, size)
            for overhead, latency in self._waits(transfers):
                if overhead + latency > math.fsum(waits):
                    waits = overhead, latency
            drawn.floor = max([drawn.floor, *(cost.demand.floor for cost in transfers.draws.costs)])
            rows += self._rows(transfers, size, reduce=stage.reduce)
        number = np.concatenate([row.number for row in rows])
        starts = np.cumsum([0, *(len(row.amounts) for row in rows)]).tolist()
        which = np.concatenate([row.which + start for row, start in zip(rows, starts, strict=False)])
        _sum(drawn.amounts, number, which, np.concatenate([row.amounts for row in rows]))
        _sum(drawn.moved, number, which, np.concatenate([row.moved for row in rows]))
        return drawn, waits

    def seconds(self, amounts: Column) -> float:
        used = np.flatnonzero(amounts.amounts > 0)
        rates = np.array([*self.rates, 1.0])[self.look[used]]
        return float(max(amounts.floor, (amounts.amounts[used] / rates).max(initial=0.0)))

    def rows(self, amounts: Column) -> list[Row]:
        """Rows of the first capacity of each kind."""
        wide = self._wide(amounts)
        return sorted((kind.capacity.name, kind.amount, kind.moved) for kind in wide.kinds) if wide else []

    def cost(self, total: Column, share: float, why: tuple[Term, ...]) -> Cost:
        demand = Demand(latency=total.latency, floor=total.floor, share=share)
        return Cost(demand, why=why, wide=self._wide(total))

    def _transfers(self, pairs: Sequence[Pair], size: float) -> Pairs:
        """Amounts of pairs that send `size` bytes each."""
        key = size, len(pairs), pairs[0], pairs[-1]
        before = self._pairs.get(key)
        if before is None or before[0] != pairs:
            machine, parties = self.exchange.machine, self.exchange.placed.parties
            sources = [parties[source] for source, _, _ in pairs]
            targets = [parties[target] for _, target, _ in pairs]
            how = handling(machine, self.exchange.placed.algorithm, parties[0], parties[1])
            before = self._pairs[key] = pairs, Pairs(sources, targets, machine.draws(sources, targets, size, how))
        return before[1]

    def _waits(self, pairs: Pairs) -> list[Waits]:
        """The different (overhead, latency) of pairs in one node and in two."""
        draws, overheads = pairs.draws, self.exchange.overheads
        if overheads.hop is None:
            shapes = [(False, shape) for shape in np.unique(draws.shape).tolist()]
        else:
            ends = zip(pairs.sources, pairs.targets, strict=True)
            apart = [self.exchange.placed.across(a, b) for a, b in ends]
            shapes = sorted(set(zip(apart, draws.shape.tolist(), strict=True)))
        return [(overheads.of_step(far), draws.costs[shape].demand.latency) for far, shape in shapes]

    def _rows(self, pairs: Pairs, size: float, *, reduce: bool) -> list[_Rows]:
        """Rows of the pairs' amounts; a receiver that adds reads its own data."""
        draws, machine, efficiency = pairs.draws, self.exchange.machine, self.exchange.overheads.efficiency
        sizes = [len(cost.demand.amounts) for cost in draws.costs]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        looks, amounts, moved = [], [], []
        again: list[tuple[int, float]] = []  # by shape: the row of the receiver's memory, and the amount that reading draws
        _, first_pairs = np.unique(draws.shape, return_index=True)
        for cost, pair in zip(draws.costs, first_pairs.tolist(), strict=True):
            natural = {name: amount for name, amount, unit in cost.moved if unit != "1"}
            for name, amount in cost.demand.amounts:
                looks.append(self._look(name))
                amounts.append(float(amount / efficiency if self.exchange.is_wire(name) else amount))
                moved.append(float(natural.get(name, 0.0)))
            if reduce and (read := self.exchange.read_again(pairs.targets[pair], size)) is not None:
                numbers = draws.capacity[draws.first[pair] : draws.first[pair + 1]].tolist()
                again.append(([machine.capacity_name(number) for number in numbers].index(read[0]), read[1]))
        many = np.diff(draws.first)
        table = np.repeat(starts[draws.shape] - draws.first[:-1], many) + np.arange(len(draws.capacity))
        self.look[draws.capacity] = np.array(looks, np.int32)[table]
        rows = [_Rows(draws.capacity, table, np.array(amounts), np.array(moved))]
        if again:
            places = np.array([place for place, _ in again])
            memory = draws.capacity[draws.first[:-1] + places[draws.shape]]
            rows.append(_Rows(memory, draws.shape, np.array([seconds for _, seconds in again]), np.full(len(again), size)))
        return rows

    def _look(self, name: str) -> int:
        """Number of a capacity's look."""
        capacity = self.exchange.machine.capacities[name]
        key = name.translate(_DIGITS), capacity.rate, capacity.unit
        if key not in self.looks:
            self.looks[key] = len(self.looks)
            self.rates.append(capacity.rate)
        return self.looks[key]

    def _wide(self, amounts: Column) -> Wide | None:
        """The amounts as columns of a cost; None if nothing is drawn."""
        used = np.flatnonzero(amounts.amounts > 0)
        if not len(used):
            return None
        machine = self.exchange.machine
        _, amount = np.unique(amounts.amounts[used], return_inverse=True)
        _, moved = np.unique(amounts.moved[used], return_inverse=True)
        code = (self.look[used].astype(np.int64) * (int(amount.max()) + 1) + amount.ravel()) * (
            int(moved.max()) + 1
        ) + moved.ravel()
        _, first, kind = np.unique(code, return_index=True, return_inverse=True)
        kinds = []
        for place in first.tolist():
            number = int(used[place])
            capacity: Capacity = machine.capacities[machine.capacity_name(number)]
            kinds.append(Wire(capacity, float(amounts.amounts[number]), float(amounts.moved[number])))
        return Wide(used, kind.ravel(), tuple(kinds), self.count, machine.capacity_name)


def _sum(column: Floats, number: Ints, which: Ints, values: Floats) -> None:
    """Add up by number: equal values counted, then the smallest first."""
    distinct, place = np.unique(values, return_inverse=True)
    code, many = np.unique(number.astype(np.int64) * len(distinct) + place.ravel()[which], return_counts=True)
    column += np.bincount(code // len(distinct), weights=many * distinct[code % len(distinct)], minlength=len(column))
