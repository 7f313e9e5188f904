"""Expectations of a workload, such as `expect: {machine: d2l-4gpu-pcie, makespan: 15 ms +- 1 %}`, checked against the run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal

from hwsim.families_interface import FAMILIES, family_interface
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.spec import Mistake, Mistakes, SpecError, Tree, Warning, did_you_mean
from hwsim.units import TIME, Dimension, UnitError

if TYPE_CHECKING:
    from hwsim.results.memory import DeviceMemory
    from hwsim.spec.expectation import Expectation

Status = Literal["met", "violated", "skipped"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking one expectation.

    Args:
        quantity: name of the quantity.
        expected: expected range in words.
        status: met, violated or skipped.
        value: value of the run in SI units, or in hours for GPU-hours (see `seconds_of`); None without one.
        reason: reason why it was skipped or violated.
    """

    quantity: str
    expected: str
    status: Status
    value: float | None = None
    reason: str = ""


OF_RUN: Final[Mapping[str, Dimension]] = {"makespan": TIME}
HOUR: Final = 3600.0  # seconds
MEANT: Final = {"time": "makespan", "copies_mean": "replicas_mean", "there_mean": "in_flight_mean"}  # other names, for hints
HOURS: Final = frozenset({"gpu_hours"})  # quantities in hours, as in their names


def seconds_of(quantity: str, value: float) -> float:
    """Return a value in SI units, like the bounds of an expectation.

    >>> seconds_of("chat.gpu_hours", 2.0), seconds_of("ttft_p95", 2.0)
    (7200.0, 2.0)
    """
    return value * HOUR if quantity.rpartition(".")[2] in HOURS else value


@dataclass(frozen=True, slots=True)
class ExpectedQuantities:
    """The expectations of a workload.

    Args:
        machine: machine that the expectations are for; "" for any.
        expectations: (quantity, expectation) pairs.
        dimensions: dimension of each quantity.
    """

    machine: str = ""
    expectations: tuple[tuple[str, Expectation], ...] = ()
    dimensions: Mapping[str, Dimension] = field(default_factory=dict)


def wanted_of(
    tree: Tree | None,
    mistakes: Mistakes,
    jobs: Collection[str] = (),
    more: Mapping[str, Dimension] | None = None,
) -> ExpectedQuantities:
    """Read `expect:`.

    Args:
        tree: value of `expect:`.
        mistakes: list to which mistakes are added.
        jobs: names of the jobs, each of which has a quantity `NAME.makespan`.
        more: dimensions of the quantities of families by full name (see `hwsim.families_interface.expectable_quantities`).
    """
    if tree is None or tree.value is None:
        return ExpectedQuantities()
    if not tree.is_mapping:
        mistakes.add(tree.place, f"expected a mapping for `expect`, got {tree.what()}", "expect: {makespan: 15 ms +- 1 %}")
        return ExpectedQuantities()
    expectations: list[tuple[str, Expectation]] = []
    dimensions = {**OF_RUN, **{f"{job}.makespan": TIME for job in jobs}, **(more or {})}
    for name, entry in tree.items():
        if name == "machine":
            if not isinstance(entry.value, str):
                mistakes.add(entry.place, f"expected the name of a machine, got {entry.what()}")
        elif name not in dimensions:
            meant = name.removesuffix(last := name.rpartition(".")[2]) + MEANT.get(last, last)
            hint = did_you_mean(meant, ["machine", *dimensions])
            mistakes.add(tree.key_place(name), f"unknown quantity '{name}' in `expect`", hint)
        else:
            expected = _expectation(entry, name, dimensions[name], mistakes)
            if expected is not None:
                expectations.append((name, expected))
    return ExpectedQuantities(tree.text("machine") or "", tuple(expectations), dimensions)


def _expectation(tree: Tree, name: str, dimension: Dimension, mistakes: Mistakes) -> Expectation | None:
    """Return the expectation of a quantity; None after a mistake."""
    from hwsim.spec.expectation import parse_expectation

    if isinstance(tree.value, dict | list | None):
        mistakes.add(tree.place, f"expected a text, got {tree.what()}", "for example 15 ms +- 1 %")
        return None
    try:
        expected = parse_expectation(tree.value)
    except UnitError as error:
        mistakes.add_unit_error(tree.place, error)
        return None
    if expected.dimension.fits(dimension):
        return expected
    mistakes.add(tree.place, f"`{name}`: expected {dimension.name}, got {expected.dimension.name}")
    return None


class PartOfDay(SpecError):
    """Raised if a quantity is expected of requests with a cycle, a trace or a ramp of which the run covers only a part."""


def refuse_part_of_day(wanted: ExpectedQuantities, warnings: Iterable[Warning]) -> None:
    """Raise PartOfDay if a quantity is expected of services and the run covers only a part of their load."""
    part = next((warning for warning in warnings if warning.code == "partial-cycle"), None)
    if part is None:
        return
    measured = {name for key in FAMILIES if family_interface(key).answers for name in family_interface(key).quantities}
    if named := next((name for name, _ in wanted.expectations if name.rpartition(".")[2] in measured), ""):
        hint = "simulate more requests, shorten the cycle or `ramp`, or let the day start before its peak"
        raise PartOfDay([Mistake(part.place, f"`{named}` is expected, and {part.text}", hint)])


def skipped_for(wanted: ExpectedQuantities, *, called: Collection[str], changed: bool, expect: bool | Literal["auto"]) -> str:
    """Return the reason why no expectation is checked; "" if they are. Arguments as for `verdicts`."""
    if expect is False:
        return "not asked for"
    if expect == "auto" and wanted.machine and wanted.machine not in called:
        return f"it is for {wanted.machine}"
    return "the run was changed with --set" if expect == "auto" and changed else ""


def lacking(warnings: Iterable[Warning], memory: Iterable[DeviceMemory]) -> str:
    """Return the reason why the machine cannot do what was simulated; "" if it can.

    An overloaded service is excluded, because its latencies show the overload.
    """
    limits = [warning.code for warning in warnings if warning.exceeds and warning.code != "overloaded"]
    limits += [f"out of memory on {device.device}" for device in memory if not device.fits]
    return f"the machine cannot do what was simulated: {limits[0]}" if limits else ""


def verdicts(
    wanted: ExpectedQuantities,
    values: Mapping[str, float],
    *,
    called: Collection[str],
    changed: bool,
    expect: bool | Literal["auto"],
    lacking: str = "",
) -> tuple[Verdict, ...]:
    """Return a verdict for each expectation.

    Args:
        wanted: expectations.
        values: quantities of the run in SI units; GPU-hours in hours.
        called: all names of the machine.
        changed: whether a setting (`--set`) differs from the files.
        expect: whether to check; "auto" checks if the run is on the machine of the expectations and nothing is set.
        lacking: result of `lacking`; if not empty, no expectation is met.
    """
    skipped = skipped_for(wanted, called=called, changed=changed, expect=expect)
    judged = []
    for name, expected in wanted.expectations:
        value = values.get(name)
        if skipped or value is None:
            finite = None if value is None or not math.isfinite(value) else value
            judged.append(Verdict(name, expected.text, "skipped" if skipped else "violated", finite, skipped or "no such value"))
        elif not math.isfinite(value):  # an overloaded service
            status: Status = "met" if expected.check(value) else "violated"
            judged.append(Verdict(name, expected.text, status, None, "it grows with the run: there is no steady state"))
        elif expected.check(seconds_of(name, value)):
            judged.append(Verdict(name, expected.text, "skipped" if lacking else "met", value, lacking))
        else:
            unit = "h" if name.rpartition(".")[2] in HOURS else wanted.dimensions[name].unit
            shown = format_quantity(seconds_of(name, value), unit, 4)
            judged.append(Verdict(name, expected.text, "violated", value, f"it is {shown}"))
    return tuple(judged)
