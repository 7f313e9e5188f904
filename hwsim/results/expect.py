"""Comparing a run with what its workload expects: `expect: {machine: d2l-4gpu-pcie, makespan: 15 ms +- 1 %}`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, Literal

from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, did_you_mean
from hwsim.units import RATE, RATIO, TIME, Dimension, UnitError, format_quantity

if TYPE_CHECKING:
    from hwsim.spec.expectation import Expectation

Status = Literal["met", "violated", "skipped"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation: its quantity, the wanted range in words, the value that came out (SI units), and why it was skipped."""

    quantity: str
    wanted: str
    status: Status
    value: float | None = None
    reason: str = ""


KNOWN: Final[Mapping[str, Dimension]] = {"makespan": TIME}
SERVED: Final[Mapping[str, Dimension]] = {  # of a service; see `hwsim.results.serving`
    **{f"{what}_{part}": TIME for what in ("ttft", "tpot", "latency") for part in ("mean", "p50", "p95", "p99", "max")},
    "requests_per_s": RATE,
    "tokens_per_s": RATE,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Expectations of a workload, and the machine that they are about ("": any)."""

    machine: str = ""
    expectations: tuple[tuple[str, Expectation], ...] = ()


TRAINED: Final[Mapping[str, Dimension]] = {
    "step": TIME,
    "mfu": RATIO,
    "days": TIME,
}  # of a training; see `hwsim.results.training`


def wanted_of(
    tree: Tree | None,
    mistakes: Mistakes,
    jobs: Collection[str] = (),
    services: Collection[str] = (),
    trainings: Collection[str] = (),
) -> Wanted:
    """Read `expect:`; jobs add `NAME.makespan`, services and trainings (jobs, or "") add `SERVED` and `TRAINED`."""
    if tree is None or tree.value is None:
        return Wanted()
    if not tree.is_mapping:
        mistakes.add(tree.place, f"`expect` is a mapping, not {tree.what()}", "such as expect: {makespan: 15 ms +- 1 %}")
        return Wanted()
    from hwsim.spec.expectation import parse_expectation

    expectations: list[tuple[str, Expectation]] = []
    dimensions = {**KNOWN, **{f"{job}.makespan": TIME for job in jobs}}
    dimensions |= {f"{training}.{name}" if training else name: entry for training in trainings for name, entry in TRAINED.items()}
    dimensions |= {f"{service}.{name}" if service else name: entry for service in services for name, entry in SERVED.items()}
    for name, entry in tree.items():
        if name == "machine":
            if not isinstance(entry.value, str):
                mistakes.add(entry.place, f"a machine is expected by name, not {entry.what()}")
        elif name not in dimensions:
            mistakes.add(
                tree.key_place(name), f"nothing is known to expect of '{name}'", did_you_mean(name, ["machine", *dimensions])
            )
        elif isinstance(entry.value, dict | list | None):
            mistakes.add(entry.place, f"an expectation is a text, not {entry.what()}", "such as 15 ms +- 1 %")
        else:
            try:
                expected = parse_expectation(entry.value)
            except UnitError as error:
                mistakes.add_unit_error(entry.place, error)
                continue
            if expected.dimension.fits(dimensions[name]):
                expectations.append((name, expected))
            else:
                mistakes.add(entry.place, f"a {name} is {dimensions[name].name}, not {expected.dimension.name}")
    return Wanted(tree.text("machine") or "", tuple(expectations))


def verdicts(
    wanted: Wanted,
    values: Mapping[str, float],
    *,
    called: Collection[str],
    changed: bool,
    expect: bool | Literal["auto"],
) -> tuple[Verdict, ...]:
    """One verdict per expectation.

    Args:
        values: quantities of the run, in SI units.
        called: names of the machine.  changed: something was set.
        expect: check always, never, or ("auto") if the run is on the machine of the expectations and nothing is set.
    """
    skipped = ""
    if expect is False:
        skipped = "not asked for"
    elif expect == "auto" and wanted.machine and wanted.machine not in called:
        skipped = f"it is about {wanted.machine}"
    elif expect == "auto" and changed:
        skipped = "the run was changed with --set"
    judged = []
    for name, expected in wanted.expectations:
        value = values.get(name)
        if skipped or value is None:
            judged.append(Verdict(name, expected.text, "skipped", value, skipped or "there is none"))
        elif expected.check(value):
            judged.append(Verdict(name, expected.text, "met", value))
        else:
            unit = {**KNOWN, **SERVED, **TRAINED}[name.rpartition(".")[2]].unit
            shown = format_quantity(value, unit, 4)
            judged.append(Verdict(name, expected.text, "violated", value, f"it is {shown}"))
    return tuple(judged)
