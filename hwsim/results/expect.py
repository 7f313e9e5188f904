"""Comparing a run with what its workload expects: `expect: {machine: d2l-4gpu-pcie, makespan: 15 ms +- 1 %}`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final, Literal

from hwsim.doors import FAMILIES, door
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
    """One expectation: its quantity, the wanted range in words, the value that came out, and why it was skipped.

    value: in SI units; GPU-hours in hours (see `seconds_of`).
    """

    quantity: str
    wanted: str
    status: Status
    value: float | None = None
    reason: str = ""


OF_RUN: Final[Mapping[str, Dimension]] = {"makespan": TIME}
HOUR: Final = 3600.0  # seconds
HOURS: Final = frozenset({"gpu_hours"})  # quantities that are counted in hours, as their name says


def seconds_of(quantity: str, value: float) -> float:
    """A value in SI units, as bounds are.

    >>> seconds_of("chat.gpu_hours", 2.0), seconds_of("ttft_p95", 2.0)
    (7200.0, 2.0)
    """
    return value * HOUR if quantity.rpartition(".")[2] in HOURS else value


@dataclass(frozen=True, slots=True)
class Wanted:
    """Expectations of a workload, the machine that they are about ("": any), and what each is measured in."""

    machine: str = ""
    expectations: tuple[tuple[str, Expectation], ...] = ()
    dimensions: Mapping[str, Dimension] = field(default_factory=dict)


def wanted_of(
    tree: Tree | None,
    mistakes: Mistakes,
    jobs: Collection[str] = (),
    more: Mapping[str, Dimension] | None = None,
) -> Wanted:
    """Read `expect:`.

    Args:
        jobs: names of the jobs; each has a `NAME.makespan`.
        more: quantities of families, by their full names (see `hwsim.doors.wanted_of`).
    """
    if tree is None or tree.value is None:
        return Wanted()
    if not tree.is_mapping:
        mistakes.add(tree.place, f"`expect` is a mapping, not {tree.what()}", "such as expect: {makespan: 15 ms +- 1 %}")
        return Wanted()
    expectations: list[tuple[str, Expectation]] = []
    dimensions = {**OF_RUN, **{f"{job}.makespan": TIME for job in jobs}, **(more or {})}
    for name, entry in tree.items():
        if name == "machine":
            if not isinstance(entry.value, str):
                mistakes.add(entry.place, f"a machine is expected by name, not {entry.what()}")
        elif name not in dimensions:
            meant = "makespan" if name == "time" else name  # as summaries and sweeps say
            mistakes.add(
                tree.key_place(name), f"nothing is known to expect of '{name}'", did_you_mean(meant, ["machine", *dimensions])
            )
        else:
            expected = _expectation(entry, name, dimensions[name], mistakes)
            if expected is not None:
                expectations.append((name, expected))
    return Wanted(tree.text("machine") or "", tuple(expectations), dimensions)


def _expectation(tree: Tree, name: str, dimension: Dimension, mistakes: Mistakes) -> Expectation | None:
    """The expectation of a quantity; None after a mistake."""
    from hwsim.spec.expectation import parse_expectation

    if isinstance(tree.value, dict | list | None):
        mistakes.add(tree.place, f"an expectation is a text, not {tree.what()}", "such as 15 ms +- 1 %")
        return None
    try:
        expected = parse_expectation(tree.value)
    except UnitError as error:
        mistakes.add_unit_error(tree.place, error)
        return None
    if expected.dimension.fits(dimension):
        return expected
    mistakes.add(tree.place, f"a {name} is {dimension.name}, not {expected.dimension.name}")
    return None


class PartOfDay(SpecError):
    """Something is expected of requests that come in a cycle, a trace or a ramp, and the run is a part of it."""


def refuse_part_of_day(wanted: Wanted, warnings: Iterable[Warning]) -> None:
    """Raise PartOfDay if anything is expected of services of which the run has a part of the load."""
    part = next((warning for warning in warnings if warning.code == "part-of-a-day"), None)
    if part is None:
        return
    measured = {name for key in FAMILIES if door(key).answers for name in door(key).quantities}
    if named := next((name for name, _ in wanted.expectations if name.rpartition(".")[2] in measured), ""):
        hint = "more requests or a longer run, a shorter cycle or `ramp`, or `poisson` at the rate of the busiest time"
        raise PartOfDay([Mistake(part.place, f"`{named}` is expected, and {part.text}", hint)])


def skipped_for(wanted: Wanted, *, called: Collection[str], changed: bool, expect: bool | Literal["auto"]) -> str:
    """Why nothing is checked; "" if it is. Arguments as of `verdicts`."""
    if expect is False:
        return "not asked for"
    if expect == "auto" and wanted.machine and wanted.machine not in called:
        return f"it is about {wanted.machine}"
    return "the run was changed with --set" if expect == "auto" and changed else ""


def lacking(warnings: Iterable[Warning], memory: Iterable[DeviceMemory]) -> str:
    """Why the machine cannot do what was simulated, in words; "" if it can. Of a service that is overloaded the times tell."""
    of = [warning.code for warning in warnings if warning.exceeds and warning.code != "overloaded"]
    of += [f"out of memory on {device.device}" for device in memory if not device.fits]
    return f"the machine cannot do what was simulated: {of[0]}" if of else ""


def verdicts(
    wanted: Wanted,
    values: Mapping[str, float],
    *,
    called: Collection[str],
    changed: bool,
    expect: bool | Literal["auto"],
    lacking: str = "",
) -> tuple[Verdict, ...]:
    """One verdict per expectation.

    Args:
        values: quantities of the run, in SI units; GPU-hours in hours.
        called: all names of the machine.
        changed: whether a setting differs from the files (`--set`).
        expect: check always, never, or ("auto") if the run is on the machine of the expectations and nothing is set.
        lacking: as of `lacking`: such a run meets nothing.
    """
    skipped = skipped_for(wanted, called=called, changed=changed, expect=expect)
    judged = []
    for name, expected in wanted.expectations:
        value = values.get(name)
        if skipped or value is None:
            finite = None if value is None or not math.isfinite(value) else value
            judged.append(Verdict(name, expected.text, "skipped" if skipped else "violated", finite, skipped or "there is none"))
        elif not math.isfinite(value):  # of a service that is overloaded
            status: Status = "met" if expected.check(value) else "violated"
            judged.append(Verdict(name, expected.text, status, None, "it grows with the run: there is no steady state"))
        elif expected.check(seconds_of(name, value)):
            judged.append(Verdict(name, expected.text, "skipped" if lacking else "met", value, lacking))
        else:
            unit = "h" if name.rpartition(".")[2] in HOURS else wanted.dimensions[name].unit
            shown = format_quantity(seconds_of(name, value), unit, 4)
            judged.append(Verdict(name, expected.text, "violated", value, f"it is {shown}"))
    return tuple(judged)
