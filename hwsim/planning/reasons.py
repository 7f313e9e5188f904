"""Why an option is no answer: a constraint, what it needs, what is allowed, by how much, and what would lift it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from hwsim.formats import percent
from hwsim.planning.wants import Requirement
from hwsim.records import dataclass

INFINITE: Final = float("inf")
FACTOR: Final = 9.0  # part that a number misses its bound by, from which on it is a factor
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Reason:
    """One constraint that an option breaks.

    Args:
        constraint: its name: memory, power, training p90, ...; no plan and machine have no numbers.
        text: what it needs and what is allowed, in words; lift: what would lift it.
        needed, allowed: numbers in SI units, None where there are none.
        excess: needed over allowed less 1; infinite where there are no numbers.
    """

    constraint: str
    text: str
    needed: float | None = None
    allowed: float | None = None
    excess: float = INFINITE
    lift: str = ""

    @property
    def told(self) -> str:
        """What it needs and what would lift it."""
        return self.text + (f"; {self.lift}" if self.lift else "")

    @property
    def brief(self) -> str:
        """The same without details in brackets."""
        return self.text.partition(" (")[0] + (f"; {self.lift}" if self.lift else "")

    def __str__(self) -> str:
        return f"{self.constraint}: {self.told}"

    def lifted(self, text: str) -> Reason:
        """The reason with what would lift it."""
        return replace(self, lift=text) if text and not self.lift else self


def off_by(excess: float, digits: int = 0) -> str:
    """The part by which a number misses its bound.

    >>> off_by(0.671), off_by(0.0123, 1), off_by(29491.3)
    ('67 %', '1.2 %', 'a factor of 29,492')
    """
    return percent(excess, f".{digits}f") if excess < FACTOR else f"a factor of {excess + 1:,.0f}"


def broken(requirement: Requirement, value: float, more: str = "") -> Reason | None:
    """The reason that a value is, or None if it holds.

    >>> from hwsim.planning.wants import MEASURES, Quantity
    >>> most = Requirement(Quantity("", MEASURES["power"]), -float("inf"), 8e6, "power at most 8 MW")
    >>> print(broken(most, 10.98e6))
    power: 11 MW, 2.98 MW over 8 MW
    """
    excess = requirement.excess(value)
    if excess <= 0:
        return None
    measure, bound = requirement.quantity.measure, requirement.bound
    side, off = ("over", value - bound) if value > requirement.high else ("below", bound - value)
    shown, allowed = measure.shown(value), measure.shown(bound)
    if shown == allowed:
        shown, allowed = measure.shown(value, 6), measure.shown(bound, 6)
    text = f"{shown}, {measure.off(off, bound)} {side} {allowed}"
    return Reason(requirement.quantity.title, text + more, value, bound, excess)


@dataclass(frozen=True, slots=True)
class Group:
    """Equal reasons of several options.

    Args:
        where: what these options have alike; numbers: their numbers; nearest: the number of the one that misses least.
    """

    where: str
    reason: Reason
    numbers: tuple[int, ...]
    nearest: int
    nearest_where: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """An option that is no answer: its number, its values, and every reason known."""

    number: int
    values: tuple[tuple[str, object], ...]
    reasons: tuple[Reason, ...]

    @property
    def excess(self) -> float:
        """By how much it misses what it misses most."""
        return max((reason.excess for reason in self.reasons), default=INFINITE)


def grouped(
    rejected: Iterable[Rejected], alike: Callable[[Rejected], str], named: Callable[[Rejected], str]
) -> tuple[Group, ...]:
    """Reasons with the options they are of, the most frequent first; of each option its first reason counts.

    Reasons without numbers are equal if their words are: which of them misses least, nothing says.
    """
    groups: dict[tuple[str, str, str], list[Rejected]] = {}
    for each in rejected:
        first = each.reasons[0]
        words = _NUMBER.sub("#", first.text) if first.needed is None else ""
        groups.setdefault((first.constraint, alike(each), words), []).append(each)
    groups_found = []
    for (_, where, _), members in groups.items():
        nearest = min(members, key=lambda each: (each.reasons[0].excess, each.number))
        numbers = tuple(member.number for member in members)
        groups_found.append(Group(where, nearest.reasons[0], numbers, nearest.number, named(nearest)))
    return tuple(sorted(groups_found, key=lambda group: (-len(group.numbers), group.numbers)))


def nearest_of(rejected: Sequence[Rejected]) -> Rejected | None:
    """The option with the fewest reasons that have no numbers, and that misses least what it misses most."""

    def missing(each: Rejected) -> tuple[int, float, int]:
        finite = [reason.excess for reason in each.reasons if reason.excess < INFINITE]
        return len(each.reasons) - len(finite), max(finite, default=0.0), each.number

    return min(rejected, key=missing, default=None)
