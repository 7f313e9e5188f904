"""The amounts that a step of a collective draws, by number of the capacity: `hwsim.communication.drawn` for thousands of ranks.

The machine distinguishes pairs of devices by the shape of their route (`Machine.draws`), so that a pair costs a microsecond and
nothing is named but the first capacity of each kind. Amounts that several pairs draw from one capacity are summed as equal
amounts counted, the smallest first. So equal capacities come to equal sums, bit for bit, whatever the order of the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.communication.drawing import Drawing
from hwsim.communication.drawn import Exchange, Line, Row, Waits, slowest_of
from hwsim.communication.rounds import Round
from hwsim.demand import Capacity, Cost, Demand, Term, Wide, Wire
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass

LEAST: Final = 512  # ranks from which columns are quicker
_DIGITS: Final = str.maketrans("", "", "0123456789")

Floats = NDArray[np.float64]


def fits(exchange: Exchange) -> bool:
    """Whether columns can hold the amounts: many ranks, all GPUs or all CPUs, no compute held."""
    return len(exchange.placed.parties) >= LEAST and exchange.overheads.compute <= 0 and exchange.alike()


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


class Columns:
    """Amounts by number. A look is what capacities have in common: name without digits, rate and unit."""

    def __init__(self, exchange: Exchange, rounds: Sequence[Round]) -> None:
        self.exchange = exchange
        self.drawing = Drawing(exchange, rounds)
        self.count = exchange.machine.capacity_numbers
        self.looks: dict[tuple[str, float, str], int] = {}
        self.look = np.full(self.count, -1, np.int32)  # by number of the capacity
        self.rates: list[float] = []  # by look
        self._looks: tuple[Sequence[str], Ints] | None = None  # of the names of the last table

    def nothing(self) -> Column:
        return Column(np.zeros(self.count), np.zeros(self.count))

    def step(self, stage: Round) -> tuple[Column, Waits]:
        drawn = self.nothing()
        step = self.drawing.step(stage)
        table = step.table
        if self._looks is None or self._looks[0] is not table.names:
            self._looks = table.names, np.array([self._look(name) if name else -1 for name in table.names], np.int32)
        looks = self._looks[1][step.which]
        self.look[step.number[looks >= 0]] = looks[looks >= 0]
        drawn.floor = step.floor
        _sum(drawn.amounts, step.number, step.which, table.amounts)
        _sum(drawn.moved, step.number, step.which, table.moved)
        return drawn, step.waits

    def seconds(self, amounts: Column) -> float:
        return max(amounts.floor, self.busy(amounts))

    def busy(self, total: Column) -> float:
        used = np.flatnonzero(total.amounts > 0)
        rates = np.array([*self.rates, 1.0])[self.look[used]]
        return float((total.amounts[used] / rates).max(initial=0.0))

    def slowest(self, total: Column) -> list[Line]:
        return slowest_of(self.exchange, self._rows(total))

    def widest(self, total: Column) -> float:
        return max((amount for name, amount, _ in self._rows(total) if self.exchange.is_wire(name)), default=0.0)

    def _rows(self, amounts: Column) -> list[Row]:
        """Rows of the first capacity of each kind."""
        wide = self._wide(amounts)
        return sorted((kind.capacity.name, kind.amount, kind.moved) for kind in wide.kinds) if wide else []

    def cost(self, total: Column, share: float, why: tuple[Term, ...]) -> Cost:
        demand = Demand(latency=total.latency, floor=total.floor, share=share)
        return Cost(demand, why=why, wide=self._wide(total))

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
