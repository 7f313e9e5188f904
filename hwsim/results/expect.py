"""Comparing a run with what its workload expects: `expect: {machine: d2l-4gpu-pcie, makespan: 15 ms +- 1 %}`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.results.verdict import Verdict
from hwsim.spec import Expectation, Mistakes, Tree, did_you_mean, parse_expectation
from hwsim.units import RATE, RATIO, TIME, Dimension, UnitError, format_quantity

KNOWN: Final[Mapping[str, Dimension]] = {"makespan": TIME}
SERVED: Final[Mapping[str, Dimension]] = {  # of a service; see `hwsim.results.serving`
    **{f"{what}_{part}": TIME for what in ("ttft", "tpot", "latency") for part in ("mean", "p50", "p95", "p99", "max")},
    "requests_per_s": RATE,
    "tokens_per_s": RATE,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a workload expects, and of which machine ("": any)."""

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
    """Read `expect:`; of each of the jobs, `NAME.makespan` may be expected too, of services (jobs, or "") what is `SERVED`."""
    if tree is None or tree.value is None:
        return Wanted()
    if not tree.is_mapping:
        mistakes.add(tree.place, f"`expect` is a mapping, not {tree.what()}", "such as expect: {makespan: 15 ms +- 1 %}")
        return Wanted()
    found: list[tuple[str, Expectation]] = []
    known = {**KNOWN, **{f"{job}.makespan": TIME for job in jobs}}
    known |= {f"{training}.{name}" if training else name: each for training in trainings for name, each in TRAINED.items()}
    known |= {f"{service}.{name}" if service else name: each for service in services for name, each in SERVED.items()}
    for name, each in tree.items():
        if name == "machine":
            if not isinstance(each.value, str):
                mistakes.add(each.place, f"a machine is expected by name, not {each.what()}")
        elif name not in known:
            mistakes.add(tree.key_place(name), f"nothing is known to expect of '{name}'", did_you_mean(name, ["machine", *known]))
        elif isinstance(each.value, dict | list | None):
            mistakes.add(each.place, f"an expectation is a text, not {each.what()}", "such as 15 ms +- 1 %")
        else:
            try:
                expected = parse_expectation(each.value)
            except UnitError as error:
                mistakes.add_unit_error(each.place, error)
                continue
            if expected.dimension.fits(known[name]):
                found.append((name, expected))
            else:
                mistakes.add(each.place, f"a {name} is {known[name].name}, not {expected.dimension.name}")
    return Wanted(tree.text("machine") or "", tuple(found))


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
        values: what came out, in SI units.
        called: names of the machine.  changed: something was set.
        expect: check always, never, or ("auto") if the run is the one that is spoken of.
    """
    skipped = ""
    if expect is False:
        skipped = "not asked for"
    elif expect == "auto" and wanted.machine and wanted.machine not in called:
        skipped = f"it is about {wanted.machine}"
    elif expect == "auto" and changed:
        skipped = "the run was changed with --set"
    found = []
    for name, expected in wanted.expectations:
        value = values.get(name)
        if skipped or value is None:
            found.append(Verdict(name, expected.text, "skipped", value, skipped or "there is none"))
        elif expected.check(value):
            found.append(Verdict(name, expected.text, "met", value))
        else:
            unit = {**KNOWN, **SERVED, **TRAINED}[name.rpartition(".")[2]].unit
            shown = format_quantity(value, unit, 4)
            found.append(Verdict(name, expected.text, "violated", value, f"it is {shown}"))
    return tuple(found)
