"""One measuring from its beginning to its file: which suites, going on where an earlier run stopped, what was left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.spec import Mistake, Place, SpecError, did_you_mean
from hwsim_calibrate import blas, environment, harness
from hwsim_calibrate.case import Case
from hwsim_calibrate.clocks import Clocks
from hwsim_calibrate.environment import differences
from hwsim_calibrate.store import Measurements, Row, load
from hwsim_calibrate.suites import SUITES, MiB, Scope, missing, suite

BUDGET: Final = 120.0  # seconds; with fit and validation a calibration takes less than three minutes
RUN_BUDGET: Final = 90.0  # of `run`, which fits and validates as well
LARGEST: Final = 31 * MiB  # freed before anything is measured; see suites/allocation.py

KiB: Final = 1024
# Of these suites, which ops, and at which sizes: bytes, elements, or the sides of a product.
NEEDED: Final[dict[str, dict[str, tuple[int, ...]]]] = {
    "kernels": {"pass": (), "mixed": (), "matmul": (64, 256, 512), "add": (1, 1024, 65536, 1 << 20, 1 << 22)},
    "memory": {
        "chase": tuple(KiB * size for size in (8, 16, 24, 64, 128, 256, 384, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 98304)),
        "read": (16 * KiB, 256 * KiB, 4 * MiB, 96 * MiB),
        "write": (16 * KiB, 256 * KiB, 4 * MiB, 96 * MiB),
    },
    "allocation": {"fill": (MiB, 24 * MiB, 96 * MiB), "mapped": (MiB, 16 * MiB)},
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    suites: names; empty for all that the machine has.  more: cases in the place of all suites, or beside those named; they come
    first.  needed: with them, what a machine file needs beside them.  budget: seconds for all runs of the same cases that go
    into one file together.  memory, file: see `Scope`.  keep: which cases.
    """

    suites: Sequence[str] = ()
    more: Sequence[Case] = ()
    needed: bool = False
    budget: float = BUDGET
    seed: int = 0
    rounds: int = harness.MOST
    memory: int = 256 * MiB
    file: int = 128 * MiB
    folder: str | None = None
    keep: Callable[[Case], bool] = field(default=lambda _: True)


def measure(
    plan: Plan,
    path: str | Path | None = None,
    *,
    report: Callable[[harness.Progress], None] | None = None,
    clocks: Clocks | None = None,
) -> Measurements:
    """Measure, and keep what is known in a file on the way; a file that is there is gone on from.

    Raises:
        SpecError: the file is of another machine or no file of measurements, or there is no suite of that name.
        OSError: the file cannot be written.
    """
    for name in plan.suites:
        if name not in SUITES:
            raise SpecError([Mistake(None, f"there is no suite '{name}'", did_you_mean(name, SUITES))])
    found, began = _begin(plan, path), time.monotonic()
    spent = float(found.settings["spent"])

    def result(rows: list[Row]) -> Measurements:
        settings = {**found.settings, "spent": round(spent + time.monotonic() - began, 1)}
        return replace(found.with_rows(rows), settings=settings)

    def keep(rows: list[Row]) -> None:
        if path is not None:
            result(rows).save(path)

    with ExitStack() as session:
        scope = Scope(session, memory=plan.memory, file=plan.file, folder=plan.folder)
        session.enter_context(blas.using(1))
        cases, skipped = _cases(plan, scope)
        _settle_allocator()
        rows, failed = harness.run(
            cases,
            budget=max(plan.budget - spent, 0.0),
            seed=plan.seed + round(spent),
            most=plan.rounds,
            known=found.rows,
            clocks=clocks,
            report=report,
            keep=keep,
            first={case.key for case in plan.more},
        )
    _name(skipped, failed, cases, {row.key for row in rows})
    found = replace(found, skipped=dict(sorted({**found.skipped, **skipped}.items())))
    whole = result(rows)
    if path is not None:
        whole.save(path)
    return whole


def _begin(plan: Plan, path: str | Path | None) -> Measurements:
    """What an earlier run left in the file, or nothing yet."""
    here = environment.fingerprint()
    if "gpu" in plan.suites or not plan.suites:
        here |= _gpu()
    folder = plan.folder or _temporary()
    here["storage"] = {"file_system": environment.file_system(folder)}
    settings: dict[str, Any] = {"seed": plan.seed, "suites": list(plan.suites), "budget": plan.budget, "spent": 0.0}
    settings |= {"more": sorted(case.name for case in plan.more)} if plan.more else {}
    if path is None or not Path(path).exists():
        return Measurements(here, (), settings)
    found = load(path)
    differ = differences(found.environment, here)
    if differ:
        hint = "remove the file, or write another one"
        raise SpecError(
            [Mistake(Place(str(path), 0, 0), f"it was measured on another machine ({each})", hint) for each in differ]
        )
    same = all(found.settings.get(key) == settings.get(key) for key in ("suites", "more"))  # else other cases join the file
    settings["spent"] = float(found.settings.get("spent", 0.0)) if same else 0.0
    again = plan.suites or SUITES
    others = {name: reason for name, reason in found.skipped.items() if name.partition("/")[0] not in again}
    return replace(found, settings=settings, skipped=others)


def _cases(plan: Plan, scope: Scope) -> tuple[list[Case], dict[str, str]]:
    """The cases of all suites, and why some have none."""
    cases, skipped = list(plan.more), {}
    if plan.needed and not plan.suites:
        cases += needed(scope)
    for name in plan.suites or (() if plan.more else SUITES):
        reason = missing(name)
        if reason:
            skipped[name] = reason
        else:
            cases += suite(name).cases(scope)
    return [each for each in cases if plan.keep(each)], skipped


def needed(scope: Scope) -> list[Case]:
    """The few cases without which no machine file says what arithmetic, memory, an access and new pages take."""
    return [
        case
        for name, ops in NEEDED.items()
        if not missing(name)
        for case in suite(name).cases(scope)
        if case.op in ops and _is_needed(case, ops[case.op])
    ]


def _is_needed(case: Case, sizes: Sequence[int]) -> bool:
    """Whether it is of one of these sizes, and plain: written to an array that is there."""
    params = case.params
    if not sizes:
        return True
    said = params.get("bytes", params.get("n", params.get("shape")))
    size = said[0] if isinstance(said, tuple) and len(set(said)) == 1 else said
    return size in sizes and params.get("transposed", "none") == "none" and (case.op != "add" or params.get("into") == "out")


def _name(
    skipped: dict[str, str], failed: dict[tuple[str, str], str], cases: Sequence[Case], measured: set[tuple[str, str]]
) -> None:
    """Say what has no row, by suite and op: what failed and why, what the budget did not reach."""
    ops = {case.key: f"{case.suite}/{case.op}" for case in cases}
    for key, reason in failed.items():
        skipped.setdefault(ops[key], reason)
    unreached = [ops[case.key] for case in cases if case.key not in measured and case.key not in failed]
    for op in dict.fromkeys(unreached):
        skipped.setdefault(op, f"the budget was spent before {unreached.count(op)} of its cases")


def _settle_allocator() -> None:
    """Bring the allocator into the state of a program that has run for a while; see suites/allocation.py."""
    np.empty(LARGEST, np.uint8).fill(0)


def _gpu() -> dict[str, Any]:
    from hwsim_calibrate.suites.gpu import describe

    properties = describe()
    return {"gpu": properties} if properties else {}


def _temporary() -> str:
    import tempfile

    return tempfile.gettempdir()
