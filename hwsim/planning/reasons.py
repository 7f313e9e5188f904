"""Reasons for rejection: the constraint, the value, the limit, the relative miss, and a change that would remove the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from hwsim.formats import percent
from hwsim.planning.requirements import Requirement
from hwsim.records import dataclass

INFINITE: Final = float("inf")
FACTOR: Final = 9.0  # relative miss from which it is printed as a factor
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Reason:
    """A violated constraint.

    Args:
        constraint: name: memory, power, training p90, ...; `no plan` and `machine` have no numbers.
        text: value and limit as text.
        needed: value in SI units; None if there is no number.
        allowed: limit in SI units; None if there is no number.
        excess: needed / allowed - 1; infinite if there are no numbers.
        lift: change that would remove the reason.
    """

    constraint: str
    text: str
    needed: float | None = None
    allowed: float | None = None
    excess: float = INFINITE
    lift: str = ""

    @property
    def told(self) -> str:
        """Text: the value, the limit, and the change that would make the option feasible."""
        return self.text + (f"; {self.lift}" if self.lift else "")

    @property
    def brief(self) -> str:
        """As `told`, without details in brackets."""
        return self.text.partition(" (")[0] + (f"; {self.lift}" if self.lift else "")

    def __str__(self) -> str:
        return f"{self.constraint}: {self.told}"

    def lifted(self, text: str) -> Reason:
        """Return the reason with a change that would remove it."""
        return replace(self, lift=text) if text and not self.lift else self


def relative_miss(excess: float, digits: int = 0) -> str:
    """Return the relative miss as text.

    >>> relative_miss(0.671), relative_miss(0.0123, 1), relative_miss(29491.3)
    ('67 %', '1.2 %', 'a factor of 29,492')
    """
    return percent(excess, f".{digits}f") if excess < FACTOR else f"a factor of {excess + 1:,.0f}"


def broken_reason(requirement: Requirement, value: float, more: str = "") -> Reason | None:
    """Return the reason for a value outside a requirement; None if the value meets it.

    >>> from hwsim.planning.requirements import MEASURES, PlanQuantity
    >>> most = Requirement(PlanQuantity("", MEASURES["power"]), -float("inf"), 8e6, "power at most 8 MW")
    >>> print(broken_reason(most, 10.98e6))
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
class RejectionGroup:
    """A group of options that are rejected for the same reason.

    Args:
        where: value that the options share.
        reason: reason of the nearest option.
        numbers: numbers of the options.
        nearest: number of the option with the smallest miss.
        nearest_where: values of that option.
    """

    where: str
    reason: Reason
    numbers: tuple[int, ...]
    nearest: int
    nearest_where: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejected option: its number, its values, and all known reasons."""

    number: int
    values: tuple[tuple[str, object], ...]
    reasons: tuple[Reason, ...]

    @property
    def excess(self) -> float:
        """Largest relative miss."""
        return max((reason.excess for reason in self.reasons), default=INFINITE)


def group_rejections(
    rejected: Iterable[Rejected], alike: Callable[[Rejected], str], named: Callable[[Rejected], str]
) -> tuple[RejectionGroup, ...]:
    """Group rejected options by their first reason, the largest group first.

    Reasons without numbers are equal if their texts are equal except for digits.
    """
    groups: dict[tuple[str, str, str], list[Rejected]] = {}
    for option in rejected:
        first = option.reasons[0]
        words = _NUMBER.sub("#", first.text) if first.needed is None else ""
        groups.setdefault((first.constraint, alike(option), words), []).append(option)
    groups_found = []
    for (_, where, _), members in groups.items():
        nearest = min(members, key=lambda each: (each.reasons[0].excess, each.number))
        numbers = tuple(member.number for member in members)
        groups_found.append(RejectionGroup(where, nearest.reasons[0], numbers, nearest.number, named(nearest)))
    return tuple(sorted(groups_found, key=lambda group: (-len(group.numbers), group.numbers)))


def nearest_rejection(rejected: Sequence[Rejected]) -> Rejected | None:
    """Return the option with the fewest reasons without numbers and, among these, the smallest largest miss."""

    def missing(each: Rejected) -> tuple[int, float, int]:
        finite = [reason.excess for reason in each.reasons if reason.excess < INFINITE]
        return len(each.reasons) - len(finite), max(finite, default=0.0), each.number

    return min(rejected, key=missing, default=None)
