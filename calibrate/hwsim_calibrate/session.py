"""One measuring from its beginning to its file: its suites, going on where an earlier run stopped, what was left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
RUN_BUDGET: Final = 80.0  # seconds of `run`, which fits and validates as well
LARGEST: Final = 31 * MiB  # freed before anything is measured; see suites/allocation.py

KiB: Final = 1024
# Ops by suite, and their sizes: bytes, elements, or the sides of a product.
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
    """The cases of a run.

    Args:
        suites: names; empty for all that the machine has.
        more: cases that come first, instead of all suites or in addition to the named ones.
        needed: measure also what a machine file needs.
        budget: seconds for all runs of the same cases that go into one file together.
        memory, gpu: see `Scope`.
        keep: whether a case is measured.
    """

    suites: Sequence[str] = ()
    more: Sequence[Case] = ()
    needed: bool = False
    budget: float = BUDGET
    seed: int = 0
    rounds: int = harness.MOST
    memory: int = 256 * MiB
    gpu: int = 0
    keep: Callable[[Case], bool] = field(default=lambda _: True)


def measure(
    plan: Plan,
    path: str | Path | None = None,
    *,
    report: Callable[[harness.Progress], None] | None = None,
    clocks: Clocks | None = None,
) -> Measurements:
    """Measure, and keep results in a file on the way; a file that exists is gone on from.

    Raises:
        SpecError: the file is of another machine or no file of measurements, or there is no suite of that name.
        OSError: the file cannot be written.
    """
    for name in plan.suites:
        if name not in SUITES:
            raise SpecError.of(None, f"there is no suite '{name}'", did_you_mean(name, SUITES))
    earlier, began = _begin(plan, path), time.monotonic()
    spent = float(earlier.settings["spent"])

    def result(rows: list[Row]) -> Measurements:
        settings = {**earlier.settings, "spent": round(spent + time.monotonic() - began, 1)}
        return replace(earlier.with_rows(rows), settings=settings)

    with blas.using(1):
        scope = Scope(memory=plan.memory, gpu=plan.gpu)
        cases, skipped = _cases(plan, scope)
        np.empty(LARGEST, np.uint8).fill(0)  # the allocator of a program that has run for a while; see suites/allocation.py
        rows, failed = harness.run(
            cases,
            budget=max(plan.budget - spent, 0.0),
            seed=plan.seed + round(spent),
            most=plan.rounds,
            known=earlier.rows,
            clocks=clocks,
            report=report,
            keep=None if path is None else lambda rows: result(rows).save(path),
            first={case.key for case in plan.more},
        )
    ops = {case.key: f"{case.suite}/{case.op}" for case in cases}
    for key, reason in failed.items():
        skipped.setdefault(ops[key], reason)
    done = {row.key for row in rows} | set(failed)
    unreached = [op for key, op in ops.items() if key not in done]
    for op in dict.fromkeys(unreached):
        skipped.setdefault(op, f"the budget was spent before {unreached.count(op)} of its cases")
    measurements = replace(result(rows), skipped=dict(sorted({**earlier.skipped, **skipped}.items())))
    if path is not None:
        measurements.save(path)
    return measurements


def _begin(plan: Plan, path: str | Path | None) -> Measurements:
    """The content of the file of an earlier run, or an empty one."""
    fingerprint = environment.fingerprint()
    if "gpu" in plan.suites or not plan.suites:
        from hwsim_calibrate.suites.gpu import describe

        fingerprint |= {"gpu": properties} if (properties := describe(plan.gpu)) else {}
    settings: dict[str, Any] = {"seed": plan.seed, "suites": list(plan.suites), "budget": plan.budget, "spent": 0.0}
    settings |= {"more": sorted(case.name for case in plan.more)} if plan.more else {}
    if path is None or not Path(path).exists():
        return Measurements(fingerprint, (), settings)
    earlier = load(path)
    mistakes = [
        Mistake(
            Place(str(path), 0, 0), f"it was measured on another machine ({difference})", "remove the file, or write another one"
        )
        for difference in differences(earlier.environment, fingerprint)
    ]
    if mistakes:
        raise SpecError(mistakes)
    if all(earlier.settings.get(key) == settings.get(key) for key in ("suites", "more")):  # else other cases join the file
        settings = {**earlier.settings, **settings, "spent": float(earlier.settings.get("spent", 0.0))}
    else:  # the environment of the first run stays
        first = {key: value for key, value in earlier.settings.items() if key != "before"}
        settings |= {key: fingerprint[key] for key in ("date", "load")}
        settings["before"] = [*earlier.settings.get("before", ()), first]
    again = plan.suites or SUITES
    others = {name: reason for name, reason in earlier.skipped.items() if name.partition("/")[0] not in again}
    return replace(earlier, settings=settings, skipped=others)


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
    return [case for case in cases if plan.keep(case)], skipped


def needed(scope: Scope) -> list[Case]:
    """The few cases without which no machine file has the times of arithmetic, memory, an access and new pages."""
    return [
        case
        for name, ops in NEEDED.items()
        if not missing(name)
        for case in suite(name).cases(scope)
        if case.op in ops and _is_needed(case, ops[case.op])
    ]


def _is_needed(case: Case, sizes: Sequence[int]) -> bool:
    """Whether it has one of these sizes, and is plain: written to an array that exists."""
    params = case.params
    size = params.get("bytes", params.get("n", params.get("shape")))
    if isinstance(size, tuple) and len(set(size)) == 1:
        size = size[0]
    plain = params.get("transposed", "none") == "none" and (case.op != "add" or params.get("into") == "out")
    return not sizes or (size in sizes and plain)
