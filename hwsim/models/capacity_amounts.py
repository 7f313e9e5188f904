"""Amounts drawn by exchanges, indexed by capacity number. Folding leaves few capacities, and only these get names.

Amounts from one capacity are added in the order of the exchanges, so that floating-point sums are reproducible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from hwsim.communication.step_draws import CapacityLook, look_of
from hwsim.demand import Cost, Unit
from hwsim.machine import Machine, UnknownName
from hwsim.machine.capacity_numbers import Floats, TransferDraws
from hwsim.machine.wires import Ints
from hwsim.records import dataclass

Flags = NDArray[np.bool_]
Names = tuple[str, ...]  # of devices


@dataclass(frozen=True, slots=True, eq=False)
class CapacityAmounts:
    """Amounts drawn from capacities.

    Args:
        numbers: capacity number of each row; a number may occur several times.
        amounts: amount of each row.
        moved: bytes behind each amount.
    """

    numbers: Ints
    amounts: Floats
    moved: Floats

    @classmethod
    def joined(cls, several: Sequence[CapacityAmounts]) -> CapacityAmounts:
        """Return the concatenation of several sets of rows."""
        return cls(
            np.concatenate([np.empty(0, np.int64), *(rows.numbers for rows in several)]),
            np.concatenate([np.empty(0), *(rows.amounts for rows in several)]),
            np.concatenate([np.empty(0), *(rows.moved for rows in several)]),
        )

    def summed(self, other: CapacityAmounts | None = None) -> CapacityAmounts:
        """Return one row per capacity, in ascending order; columns that equal those of `other` are shared with it."""
        numbers, indices = np.unique(self.numbers, return_inverse=True)
        sums = [np.bincount(indices.ravel(), column, len(numbers)).astype(np.float64) for column in (self.amounts, self.moved)]
        if other is not None:
            sums = [old if np.array_equal(old, new) else new for old, new in zip((other.amounts, other.moved), sums, strict=True)]
        return CapacityAmounts(numbers.astype(np.int32), *sums)


@dataclass(frozen=True, slots=True, eq=False)
class NumberedCost:
    """A cost whose amounts are indexed by capacity number.

    Args:
        rows: one row per capacity, in ascending order.
        rest: the cost without amounts.
        holds: share of each row's capacity that is reserved while the cost runs.
    """

    rows: CapacityAmounts
    rest: Cost
    holds: Floats | None = None

    def named(self, machine: Machine, kept: Flags | None = None) -> Cost:
        """Return the cost with capacity names; `kept` flags the rows that remain (default: all)."""
        rows = self.rows
        columns = [column if kept is None else column[kept] for column in (rows.numbers, rows.amounts, rows.moved)]
        numbers, amounts, moved = (column.tolist() for column in columns)
        named_rows = sorted(zip(map(machine.capacity_name, numbers), amounts, moved, strict=True))
        unit: Unit = "B"
        demand = replace(self.rest.demand, amounts=tuple([(name, amount) for name, amount, _ in named_rows if amount > 0]))
        return replace(self.rest, demand=demand, moved=tuple([(name, size, unit) for name, _, size in named_rows if size > 0]))


class Capacities:
    """The kinds of capacities by number. A kind becomes known when a capacity is looked up by name, or matched with a known one.

    `kinds`: all kinds, in the order of their first use.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.kinds: list[CapacityLook] = []
        self._place: dict[CapacityLook, int] = {}
        self._of: Ints = np.full(machine.capacity_numbers, -1, np.int32)
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Return the number of a capacity and record its kind.

        Raises:
            UnknownName: the capacity does not exist.
        """
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self.machine.capacity_number(name)
            self._of[number] = self._kind(name)
        return number

    def _kind(self, name: str) -> int:
        kind = look_of(self.machine, name)
        if kind not in self._place:
            self._place[kind] = len(self.kinds)
            self.kinds.append(kind)
        return self._place[kind]

    def of(self, numbers: Ints) -> Ints:
        """Return the index of each capacity's kind; -1 if unknown."""
        found: Ints = self._of[numbers]
        return found

    def alike(self, numbers: Ints, known: Ints) -> None:
        """Assign the kinds of known capacities to others."""
        self._of[numbers] = self._of[known]

    def drawn(self, draws: TransferDraws) -> None:
        """Record the kinds of all capacities that transfers draw from."""
        kinds = np.array([self._kind(name) for cost in draws.costs for name, _ in cost.demand.amounts], np.int32)
        self._of[draws.capacity] = kinds[draws.rows()]

    def rates(self, numbers: Ints) -> Floats:
        """Return the rate (amount per second) of each capacity."""
        return np.array([kind.rate for kind in self.kinds], np.float64)[self._of[numbers]]

    def carry_bytes(self, numbers: Ints) -> Flags:
        """Return whether each capacity is measured in bytes, as links are."""
        return np.array([kind.unit == "B" for kind in self.kinds], np.bool_)[self._of[numbers]]

    def rows(self, costs: Iterable[Cost]) -> CapacityAmounts:
        """Return the rows of several costs in order. Messages are counted, but move no bytes."""
        numbers: list[int] = []
        amounts: list[float] = []
        moved: list[float] = []
        for cost in costs:
            sizes = {name: size for name, size, _ in cost.moved}
            for name, amount in cost.demand.amounts:
                number = self.number(name)
                numbers.append(number)
                amounts.append(amount)
                moved.append(sizes.get(name, 0.0) if self.kinds[self._of[number]].unit != "1" else 0.0)
        return CapacityAmounts(np.array(numbers, np.int64), np.array(amounts, np.float64), np.array(moved, np.float64))

    def numbered(self, cost: Cost) -> NumberedCost:
        """Return a cost indexed by capacity number."""
        drawn_rows = self.rows([cost])
        held_numbers = np.array([self.number(name) for name, _ in cost.demand.holds], np.int64)
        nothing = np.zeros(len(held_numbers))
        rows = CapacityAmounts.joined([drawn_rows, CapacityAmounts(held_numbers, nothing, nothing)])
        parts = np.array([part for _, part in cost.demand.holds], np.float64)
        order = np.argsort(rows.numbers)
        holds = np.concatenate([np.zeros(len(drawn_rows.numbers)), parts])[order]
        rest = replace(cost, demand=replace(cost.demand, amounts=(), holds=()), moved=())
        return NumberedCost(CapacityAmounts(rows.numbers[order], rows.amounts[order], rows.moved[order]), rest, holds)


class HiddenCapacities:
    """The known capacities that another capacity represents. No op draws from them.

    `flags`: by capacity number.
    """

    def __init__(self, machine: Machine, flags: Flags) -> None:
        self.flags, self._is_hidden = flags, cache(partial(_is_hidden, machine, flags))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._is_hidden(name)


def _is_hidden(machine: Machine, flags: Flags, name: str) -> bool:
    try:
        return bool(flags[machine.capacity_number(name)])
    except UnknownName:
        return False


def rounding_classes(amounts: Floats) -> Ints:
    """Return an index for each amount that is equal for amounts that differ only by the rounding of a sum."""
    different, indices = np.unique(amounts, return_inverse=True)
    texts: dict[str, int] = {}
    places = np.array([texts.setdefault(f"{amount:.12e}", len(texts)) for amount in different.tolist()], np.int64)
    place_of_each: Ints = places[indices.ravel()]
    return place_of_each


def largest(values: Floats) -> float:
    """Return the maximum; 0 for an empty array."""
    return float(values.max(initial=0.0))
