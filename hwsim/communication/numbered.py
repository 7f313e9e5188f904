"""The amounts that a step of a collective draws, by number of the capacity: `hwsim.communication.drawn` for scores of ranks.

The machine distinguishes pairs of devices by the shape of their route (`Machine.draws`), so that a pair costs a microsecond.
Each look of capacities has one rate and one unit; names are made of the capacities that an answer names, and of no others.

Amounts from one capacity are added in the order of the pairs, the same to the last bit as by name. In a cost in columns
(`Cost.wide`) they are summed as equal amounts counted, the smallest first: equal capacities come to equal sums, bit for bit,
whatever the order of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.communication.drawing import Drawing, Table
from hwsim.communication.drawn import UNITS, Exchange, Ledger, Line, Names, Waits, cost_by_name
from hwsim.communication.rounds import Round
from hwsim.demand import Cost, Demand, Term, Unit, Wide, Wire
from hwsim.graph.opgraph import Floats, Ints
from hwsim.records import dataclass

LEAST: Final = 512  # ranks from which a cost may be in columns
_DIGITS: Final = str.maketrans("", "", "0123456789")


@dataclass(slots=True)
class Sums:
    """Amounts, and the bytes behind them, by place of the capacity among those drawn from; the last may be missing.

    moved: empty where the bytes are not asked for.
    """

    amounts: Floats
    moved: Floats
    latency: float = 0.0
    floor: float = 0.0

    def add(self, other: Sums, times: float) -> None:
        self.amounts, self.moved = _lengthened(self.amounts, len(other.amounts)), _lengthened(self.moved, len(other.moved))
        self.amounts[: len(other.amounts)] += times * other.amounts
        self.moved[: len(other.moved)] += times * other.moved


class Look(NamedTuple):
    """The features that capacities have in common. name: without digits; link: the kind of link, "" of a device's."""

    name: str
    rate: float
    unit: Unit
    link: str


class Numbered:
    """Amounts by place, where a capacity has the place that was next when it was first drawn from.

    wide: costs are in columns.  says_bytes: the bytes behind the amounts are asked for.
    """

    def __init__(self, exchange: Exchange, rounds: Sequence[Round], *, wide: bool = False, says_bytes: bool = True) -> None:
        self.exchange, self._machine, self._wide, self._says_bytes = exchange, exchange.machine, wide, says_bytes
        self.drawing = Drawing(exchange, rounds)
        self._place = np.full(self._machine.capacity_numbers, -1, np.int32)  # by number
        self._numbers: Ints = np.empty(0, np.int32)  # by place
        self._look: Ints = np.empty(0, np.int32)  # by place
        self._looks: dict[Look, int] = {}
        self._look_of_name: dict[str, int] = {"": -1}  # of a second read, whose capacity has a row of its own
        self._rates, self._is_wire = np.empty(0), np.empty(0, np.bool_)  # by place
        self._names: dict[int, str] = {}  # by place, of those that were asked for
        self._latest: tuple[Sums, tuple[Ints, Ints, Ints]] | None = None  # amounts that were separated, and their kinds

    def nothing(self) -> Sums:
        return Sums(np.empty(0), np.empty(0))

    def step(self, stage: Round) -> tuple[Sums, Waits]:
        drawn, waits = self.nothing(), (0.0, 0.0)
        add = _counted if self._wide else _in_order
        for step in [self.drawing.step(stage)] if self._wide else self.drawing.parts(stage):
            places = self._places(step.number, step.which, step.table)
            count = len(self._numbers)
            drawn.amounts = add(drawn.amounts, places, step.table.amounts, step.which, count)
            if self._says_bytes:
                drawn.moved = add(drawn.moved, places, step.table.moved, step.which, count)
            drawn.floor = max(drawn.floor, step.floor)
            waits = step.waits if math.fsum(step.waits) > math.fsum(waits) else waits
        return drawn, waits

    def seconds(self, amounts: Sums) -> float:
        return max(amounts.floor, self.busy(amounts))

    def busy(self, total: Sums) -> float:
        return float(self._seconds(total).max(initial=0.0))

    def longest(self, total: Sums, word: Callable[[str], str]) -> tuple[float, str]:
        seconds = self._seconds(total)
        most = float(seconds.max(initial=0.0))
        places = np.flatnonzero(seconds == most)
        kinds = [look.link for look in self._looks]
        words = {word(kinds[look]) for look in np.unique(self._look[places]).tolist()} if most > 0 else {word("")}
        if len(words) > 1:
            first = min(places.tolist(), key=self._name)
            words = {word(kinds[self._look[first]])}
        return most, words.pop()

    def slowest(self, total: Sums) -> list[Line]:
        places = self._kinds(total)[1] if self._wide else np.flatnonzero(total.amounts > 0)
        seconds, looks = self._seconds(total)[places], self._look[places]
        lines: list[Line] = []
        for unit in UNITS:
            of_unit = np.flatnonzero(np.array([look.unit == unit for look in self._looks], np.bool_)[looks])
            longest = float(seconds[of_unit].max(initial=0.0))
            if longest > 0:
                first = min(places[of_unit[seconds[of_unit] == longest]].tolist(), key=self._name)
                lines.append(Line(unit, longest, self._name(first), float(total.moved[first])))
        return lines

    def on_slowest_link(self, total: Sums) -> float:
        links = np.flatnonzero(self._is_wire[: len(total.amounts)])
        seconds = self._seconds(total)[links]
        return float(total.amounts[links[seconds == seconds.max(initial=0.0)]].max(initial=0.0))

    def cost(self, total: Sums, share: float, why: tuple[Term, ...]) -> Cost:
        if self._wide:
            return Cost(Demand(latency=total.latency, floor=total.floor, share=share), why=why, wide=self._in_columns(total))
        places = np.flatnonzero(total.amounts > 0)
        names = map(self._name, places.tolist())
        rows = sorted(zip(names, total.amounts[places].tolist(), total.moved[places].tolist(), strict=True))
        return cost_by_name(self.exchange, rows, total, share, why)

    def _seconds(self, total: Sums) -> Floats:
        seconds: Floats = total.amounts / self._rates[: len(total.amounts)]
        return seconds

    def _name(self, place: int) -> str:
        name = self._names.get(place)
        if name is None:
            name = self._names[place] = self._machine.capacity_name(int(self._numbers[place]))
        return name

    def _places(self, number: Ints, which: Ints, table: Table) -> Ints:
        """The place of the capacity of each row; one that has none yet is given the next."""
        places: Ints = self._place[number]
        if places.min(initial=0) >= 0:
            return places
        new = np.flatnonzero(places < 0)
        self._place[number[new[::-1]]] = -2 - new[::-1]  # of rows of one capacity, the first counts
        new = new[self._place[number[new]] == -2 - new]
        self._place[number[new]] = np.arange(len(self._numbers), len(self._numbers) + len(new))
        self._numbers = np.append(self._numbers, number[new].astype(np.int32))
        looks = np.array([self._look_number(name) for name in table.names], np.int32)
        self._look = np.append(self._look, looks[which[new]])
        self._rates = np.array([look.rate for look in self._looks])[self._look]
        self._is_wire = np.array([look.unit == "B" for look in self._looks], np.bool_)[self._look]
        given: Ints = self._place[number]
        return given

    def _look_number(self, name: str) -> int:
        number = self._look_of_name.get(name)
        if number is None:
            capacity = self._machine.capacities[name]
            look = Look(name.translate(_DIGITS), capacity.rate, capacity.unit, self._machine.link_kind(name))
            number = self._look_of_name[name] = self._looks.setdefault(look, len(self._looks))
        return number

    def _kinds(self, total: Sums) -> tuple[Ints, Ints, Ints]:
        """Capacities that are drawn from, in the order of their numbers; of each kind of them the first; the kind of each."""
        if self._latest is not None and self._latest[0] is total:
            return self._latest[1]
        used = np.flatnonzero(total.amounts > 0)
        used = used[np.argsort(self._numbers[used])]
        code = self._look[used].astype(np.int64)
        for column in (total.amounts, total.moved):
            different, value = _few(column[used])
            code = code * max(1, len(different)) + value
        _, first, kind = np.unique(code, return_index=True, return_inverse=True)
        separated = used, used[first], kind.ravel().astype(np.int32)
        self._latest = total, separated
        return separated

    def _in_columns(self, total: Sums) -> Wide | None:
        """The amounts as columns of a cost; None if nothing is drawn."""
        used, firsts, kind = self._kinds(total)
        if not len(used):
            return None
        capacities = self._machine.capacities
        kinds = [
            Wire(capacities[self._name(place)], float(total.amounts[place]), float(total.moved[place]))
            for place in firsts.tolist()
        ]
        return Wide(self._numbers[used], kind, tuple(kinds), self._machine.capacity_numbers, self._machine.capacity_name)


def ledger_of(exchange: Exchange, rounds: Sequence[Round], *, columns: bool = False, says_bytes: bool = True) -> Ledger[Any]:
    """Amounts by number where there are many ranks of one kind.

    columns: whether costs among very many may be in columns.  says_bytes: whether it is asked for costs and lines.
    """
    if not exchange.alike():
        return Names(exchange)
    wide = columns and len(exchange.placed.parties) >= LEAST and exchange.overheads.compute <= 0
    return Numbered(exchange, rounds, wide=wide, says_bytes=says_bytes)


def _lengthened(column: Floats, count: int) -> Floats:
    """A column with zeros at its end, up to `count` rows."""
    if len(column) >= count:
        return column
    longer = np.zeros(count)
    longer[: len(column)] = column
    return longer


def _in_order(sums: Floats, places: Ints, values: Floats, which: Ints, count: int) -> Floats:
    """Sums by place with more rows, added in their order; which: the place of each row among the values."""
    if not len(sums):
        return np.asarray(np.bincount(places, weights=values[which], minlength=count), np.float64)
    sums = _lengthened(sums, count)
    np.add.at(sums, places, values[which])
    return sums


def _few(values: Floats) -> tuple[Floats, Ints]:
    """The different values, ascending, and the place of each among them; where they are few, without sorting places."""
    different = np.unique(values)
    return different, np.searchsorted(different, values)


def _counted(_: Floats, places: Ints, values: Floats, which: Ints, count: int) -> Floats:
    """Sums by place: equal values counted, then the smallest first."""
    different, at = _few(values)
    value = at[which]
    last = np.zeros(count, np.int64)
    last[places] = value
    if bool((last[places] == value).all()):  # all that is drawn from a capacity is equal
        return np.asarray(np.bincount(places, minlength=count) * different[last], np.float64)
    code, many = ticks.counted(places.astype(np.int64) * len(different) + value)
    weights = many * different[code % len(different)]
    return np.asarray(np.bincount(code // len(different), weights=weights, minlength=count), np.float64)
