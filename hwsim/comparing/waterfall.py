"""A waterfall: the contribution of each change of the files to the difference of two results, as Shapley values.

Changes that do not make valid files separately (a part and its links, a count and the numbers that depend on it) are joined. With
more than eight changes, changes without effect, separately and together, from either end, are dropped first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hwsim.comparing.parameters import Files, Parameter, joined, mixed, parameters
from hwsim.comparing.shapley import EXACT, ORDERS, Chosen, shares
from hwsim.records import dataclass

Progress = Callable[[int, int], None]
MONEY: Final = 100.0  # USD; larger amounts are counted in cents
DIGITS: Final = 12  # significant digits of a value without a natural unit


class CannotMix(Exception):
    """An error for a set of changes whose files cannot run."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """A change and its share of the difference.

    Args:
        share: share in whole units.
        unsure: standard error of the share, in the same unit; 0 if it is exact.
    """

    change: Parameter
    share: int
    unsure: float = 0.0


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The steps from the first value to the second, whose shares add up to the difference exactly.

    Args:
        first: first value, in whole units.
        last: second value, in whole units.
        unit: size of the unit, such as 1e-15 s or 0.01 USD.
        steps: changes with an effect, largest first.
        without: changes without effect.
        evaluations: number of evaluated sets of changes.
        orders: number of sampled orders; 0 if all orders are included.
    """

    first: int
    last: int
    unit: float
    steps: tuple[Contribution, ...]
    without: tuple[Parameter, ...]
    evaluations: int
    orders: int


def quantum(values: Iterable[float], unit: str) -> float:
    """Return the unit in which values are counted: femtoseconds, cents, or the twelfth digit of the largest.

    >>> quantum([1.0], "s"), quantum([3e6], "USD"), quantum([0.37], "%")
    (1e-15, 0.01, 1e-12)
    """
    largest = max(map(abs, values), default=0.0)
    if unit == "s" or (unit == "USD" and largest >= MONEY):
        return 1e-15 if unit == "s" else 0.01
    return 10.0 ** (math.floor(math.log10(largest)) + 1 - DIGITS) if largest > 0 else 1.0


def waterfall(
    first: Files,
    second: Files,
    value: Callable[[Files], int],
    unit: float,
    *,
    exact: int = EXACT,
    orders: int = ORDERS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Waterfall:
    """Find the contribution of each change from the first files to the second.

    Args:
        first: files of A.
        second: files of B.
        value: function that returns the result of files in whole units, or raises CannotMix if they cannot run.
        unit: size of the unit.
        exact: number of changes up to which all sets are evaluated.
        orders: number of sampled orders for more changes.
        seed: seed of the sampling.
        progress: function that is called with (evaluations done, total).
    """
    game = _Game(first, second, value, progress)
    names = game.grouped(parameters(first, second))
    without: list[str] = []
    if len(names) > exact:
        without = game.idle(names)
        names = [name for name in names if name not in without]
    while True:
        try:
            divided = shares(names, game.value, exact=exact, orders=orders, seed=seed)
            break
        except CannotMix:  # some changes are only valid together
            names = [game.join(names)]
    steps = [Contribution(game.changes[name], divided.whole[name], divided.unsure.get(name, 0.0)) for name in names]
    steps.sort(key=lambda step: (-abs(step.share), step.change.name))
    without += [step.change.name for step in steps if not step.share]
    ends = game.value(frozenset()), game.value(frozenset(names))
    return Waterfall(
        *ends,
        unit,
        tuple(step for step in steps if step.share),
        tuple(game.changes[name] for name in sorted(without)),
        game.evaluations,
        divided.orders,
    )


class _Game:
    """A cache of results by set of changes."""

    def __init__(self, first: Files, second: Files, value: Callable[[Files], int], progress: Progress | None) -> None:
        self._first, self._second, self._value, self._progress = first, second, value, progress
        self._values: dict[Chosen, int | None] = {}  # result by names of single changes
        self._parts: dict[str, Chosen] = {}  # name -> names of the single changes in it
        self._single: dict[str, Parameter] = {}
        self.changes: dict[str, Parameter] = {}

    @property
    def evaluations(self) -> int:
        """Number of evaluated sets of changes."""
        return len(self._values)

    def value(self, chosen: Chosen) -> int:
        """Return the result of A with a subset of the changes.

        Raises:
            CannotMix: the files cannot run.
        """
        single = frozenset(name for joint in chosen for name in self._parts[joint])
        if single not in self._values:
            try:
                self._values[single] = self._value(self._files(single))
            except CannotMix:
                self._values[single] = None
            if self._progress is not None:
                self._progress(len(self._values), max(len(self._values), 2 ** min(len(self.changes), EXACT)))
        value = self._values[single]
        if value is None:
            raise CannotMix
        return value

    def _files(self, single: Chosen) -> Files:
        if len(single) == len(self._single):
            return self._second
        return mixed(self._first, self._second, (self._single[name] for name in sorted(single)))

    def grouped(self, changes: Sequence[Parameter]) -> list[str]:
        """Return the names of the changes; changes that cannot be made or omitted separately are joined."""
        self._single = {change.name: change for change in changes}
        self.changes = dict(self._single)
        self._parts = {name: frozenset([name]) for name in self._single}
        names = list(self._single)
        while lame := [name for name in names if not self._stands(names, [name])]:
            partner = next(
                ((name, other) for name in lame for other in names if other != name and self._stands(names, [name, other])), None
            )
            group = list(partner) if partner else lame if len(lame) > 1 and self._stands(names, lame) else names
            joint = self.join(group)
            names = sorted([*(name for name in names if name not in group), joint])
            if len(names) == 1:
                break
        return names

    def _stands(self, names: Sequence[str], group: Sequence[str]) -> bool:
        """Return whether the changes of a group can be made separately and omitted separately."""
        return self._runs(frozenset(group)) and self._runs(frozenset(names) - frozenset(group))

    def _runs(self, chosen: Chosen) -> bool:
        try:
            self.value(chosen)
        except CannotMix:
            return False
        return True

    def join(self, names: Sequence[str]) -> str:
        """Join changes and return the name of the joint change."""
        parts = frozenset(name for joint in names for name in self._parts[joint])
        joint = joined([self._single[name] for name in sorted(parts)])
        self._parts[joint.name], self.changes[joint.name] = parts, joint
        return joint.name

    def idle(self, names: Sequence[str]) -> list[str]:
        """Return the changes without effect, separately and together, from either end."""
        everything = frozenset(names)
        none, last = self.value(frozenset()), self.value(everything)
        alone = [name for name in names if self.value(frozenset([name])) == none and self.value(everything - {name}) == last]
        together = frozenset(alone)
        try:
            is_idle = self.value(together) == none and self.value(everything - together) == last
        except CannotMix:
            is_idle = False
        return alone if is_idle else []
