"""The amounts that a step of a collective draws, by number of the capacity and added in the order of the pairs.

The same to the last bit as by name (`hwsim.communication.drawn.Names`), for scores of ranks and more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hwsim.communication.drawing import Drawing
from hwsim.communication.drawn import UNITS, Exchange, Line, Waits, cost_by_name
from hwsim.communication.rounds import Round
from hwsim.demand import Cost, Term
from hwsim.graph.opgraph import Floats, Ints
from hwsim.records import dataclass
from hwsim.ticks import distinct


@dataclass(slots=True)
class Sums:
    """Amounts, and the bytes behind them, by place of the capacity among those drawn from; the last may be missing."""

    amounts: Floats
    moved: Floats
    latency: float = 0.0
    floor: float = 0.0

    def add(self, other: Sums, times: float) -> None:
        if len(self.amounts) < len(other.amounts):
            self.amounts, self.moved = (np.pad(each, (0, len(other.amounts) - len(each))) for each in (self.amounts, self.moved))
        self.amounts[: len(other.amounts)] += times * other.amounts
        self.moved[: len(other.moved)] += times * other.moved


class Numbered:
    """Amounts by place, where a capacity has the place that was next when it was first drawn from."""

    def __init__(self, exchange: Exchange, rounds: Sequence[Round]) -> None:
        self.exchange = exchange
        self.drawing = Drawing(exchange, rounds)
        self._place = np.full(exchange.machine.capacity_numbers, -1, np.int32)  # by number
        self._names: list[str] = []
        self._rates: Floats = np.empty(0)
        self._units = np.empty(0, "U4")
        self._order: Ints = np.empty(0, np.int64)  # of the places by name

    def nothing(self) -> Sums:
        return Sums(np.empty(0), np.empty(0))

    def step(self, stage: Round) -> tuple[Sums, Waits]:
        drawn, waits = self.nothing(), (0.0, 0.0)
        for step in self.drawing.parts(stage):
            new = step.number[self._place[step.number] < 0]
            if len(new):
                self._name(distinct(new))
            places, count = self._place[step.number], len(self._names)
            drawn.amounts = _added(drawn.amounts, places, step.table.amounts[step.which], count)
            drawn.moved = _added(drawn.moved, places, step.table.moved[step.which], count)
            drawn.floor = max(drawn.floor, step.floor)
            waits = step.waits if math.fsum(step.waits) > math.fsum(waits) else waits
        return drawn, waits

    def seconds(self, amounts: Sums) -> float:
        return max(amounts.floor, self.busy(amounts))

    def slowest(self, total: Sums) -> list[Line]:
        seconds = total.amounts / self._rates[: len(total.amounts)]
        lines: list[Line] = []
        for unit in UNITS:
            of_unit = np.flatnonzero(self._units[: len(seconds)] == unit)
            longest = float(seconds[of_unit].max(initial=0.0))
            if longest > 0:
                at = min(of_unit[seconds[of_unit] == longest].tolist(), key=self._names.__getitem__)
                lines.append(Line(unit, longest, self._names[at], float(total.moved[at])))
        return lines

    def busy(self, total: Sums) -> float:
        return float((total.amounts / self._rates[: len(total.amounts)]).max(initial=0.0))

    def widest(self, total: Sums) -> float:
        return float(total.amounts[self._units[: len(total.amounts)] == "B"].max(initial=0.0))

    def cost(self, total: Sums, share: float, why: tuple[Term, ...]) -> Cost:
        if len(self._order) != len(self._names):
            self._order = np.array(sorted(range(len(self._names)), key=self._names.__getitem__), np.int64)
        order = self._order[self._order < len(total.amounts)]
        order = order[total.amounts[order] > 0]
        names = [self._names[at] for at in order.tolist()]
        rows = zip(names, total.amounts[order].tolist(), total.moved[order].tolist(), strict=True)
        return cost_by_name(self.exchange, rows, total, share, why)

    def _name(self, numbers: Ints) -> None:
        """Give places to capacities."""
        machine = self.exchange.machine
        self._place[numbers] = np.arange(len(self._names), len(self._names) + len(numbers))
        names = [machine.capacity_name(number) for number in numbers.tolist()]
        self._names += names
        capacities = machine.capacities
        self._rates = np.append(self._rates, [capacities[name].rate for name in names])
        self._units = np.append(self._units, [capacities[name].unit for name in names])


def _added(sums: Floats, places: Ints, values: Floats, count: int) -> Floats:
    """Sums by place with more rows, added in their order."""
    if not len(sums):
        return np.asarray(np.bincount(places, weights=values, minlength=count), np.float64)
    sums = np.pad(sums, (0, count - len(sums)))
    np.add.at(sums, places, values)
    return sums
