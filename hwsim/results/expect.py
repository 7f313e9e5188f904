"""Comparing a run with what its workload expects: `expect: {machine: d2l-4gpu-pcie, makespan: 15 ms +- 1 %}`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.spec import Mistake, Mistakes, SpecError, Tree, Warning, did_you_mean
from hwsim.units import COUNT, RATE, RATIO, TIME, Dimension, UnitError

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
OF_TRAINING: Final[Mapping[str, Dimension]] = {
    "step": TIME,
    "mfu": RATIO,
    "days": TIME,
    "goodput": RATIO,
    "days_with_failures": TIME,
    "days_p90": TIME,
}  # see `hwsim.results.training`
OF_SERVICE: Final[Mapping[str, Dimension]] = {  # see `hwsim.results.serving`
    **{f"{what}_{part}": TIME for what in ("ttft", "tpot", "latency") for part in ("mean", "p50", "p95", "p99", "max")},
    "requests_per_s": RATE,
    "tokens_per_s": RATE,
    "goodput": RATE,
    "gpu_hours": TIME,
    "copies_mean": COUNT,
}
HOUR: Final = 3600.0  # seconds
HOURS: Final = frozenset({"gpu_hours"})  # quantities that are counted in hours, as their name says


def seconds_of(quantity: str, value: float) -> float:
    """A value in SI units, as bounds are.

    >>> seconds_of("chat.gpu_hours", 2.0), seconds_of("ttft_p95", 2.0)
    (7200.0, 2.0)
    """
    return value * HOUR if quantity.rpartition(".")[2] in HOURS else value


OF_ANSWERS: Final[Mapping[str, Dimension]] = {  # see `hwsim.results.services`
    **{f"latency_{part}": TIME for part in ("mean", "p50", "p95", "p99", "max")},
    **dict.fromkeys(("requests_per_s", "goodput"), RATE),
    **dict.fromkeys(("refused", "failed", "wasted"), RATIO),
    "there_mean": COUNT,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Expectations of a workload, and the machine that they are about ("": any)."""

    machine: str = ""
    expectations: tuple[tuple[str, Expectation], ...] = ()


def wanted_of(
    tree: Tree | None,
    mistakes: Mistakes,
    jobs: Collection[str] = (),
    services: Collection[str] = (),
    trainings: Collection[str] = (),
    answering: Collection[str] = (),
) -> Wanted:
    """Read `expect:`.

    Args:
        jobs: names of the jobs; each has a `NAME.makespan`.
        services, trainings: the jobs that are one; each has the quantities of `OF_SERVICE` or `OF_TRAINING` as
            `NAME.QUANTITY`. A workload that is one itself has the name "".
        answering: services of `services:`, and their choices; each has the quantities of `OF_ANSWERS`.
    """
    if tree is None or tree.value is None:
        return Wanted()
    if not tree.is_mapping:
        mistakes.add(tree.place, f"`expect` is a mapping, not {tree.what()}", "such as expect: {makespan: 15 ms +- 1 %}")
        return Wanted()
    expectations: list[tuple[str, Expectation]] = []
    dimensions = {**OF_RUN, **{f"{job}.makespan": TIME for job in jobs}}
    for kind_of_job, quantities in ((trainings, OF_TRAINING), (services, OF_SERVICE), (answering, OF_ANSWERS)):
        dimensions |= {f"{job}.{name}" if job else name: entry for job in kind_of_job for name, entry in quantities.items()}
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
    return Wanted(tree.text("machine") or "", tuple(expectations))


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
    part = next((each for each in warnings if each.code == "part-of-a-day"), None)
    named = next((name for name, _ in wanted.expectations if name.rpartition(".")[2] in {**OF_SERVICE, **OF_ANSWERS}), "")
    if part is not None and named:
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
            of, _, quantity = name.rpartition(".")
            serves = (f"{of}." if of else "") + "requests_per_s" in values
            unit = {**OF_RUN, **OF_TRAINING, **({**OF_SERVICE, **OF_ANSWERS} if serves else {})}[quantity].unit
            shown = format_quantity(seconds_of(name, value), "h" if quantity in HOURS else unit, 4)
            judged.append(Verdict(name, expected.text, "violated", value, f"it is {shown}"))
    return tuple(judged)
