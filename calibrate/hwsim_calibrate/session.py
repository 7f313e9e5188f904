"""One measuring run: select the cases, resume from the file of an earlier run, measure, and save the results."""

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

BUDGET: Final = 120.0  # seconds of `measure`
RUN_BUDGET: Final = 80.0  # seconds of `run`, which takes less than three minutes including fit and validation
LARGEST: Final = 31 * MiB  # freed before the first case, see suites/allocation.py

KiB: Final = 1024
# Cases that every machine file requires: suite -> op -> sizes (bytes, elements, or dimensions of a matmul).
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
    """The cases and limits of a run.

    Args:
        suites: names of suites; empty for all suites that the machine supports.
        more: cases to measure first, in addition to `suites`; if there are any, empty `suites` means none.
        needed: whether the cases that every machine file requires are measured too.
        budget: time limit (s) of all runs of the same cases into one file.
        seed: seed of the random order of the cases.
        rounds: maximum number of rounds.
        memory: see `Scope`.
        gpu: see `Scope`.
        keep: filter of the cases.
    """

    suites: Sequence[str] = ()
    more: Sequence[Case] = ()
    needed: bool = False
    budget: float = BUDGET
    seed: int = 0
    rounds: int = harness.MAX_ROUNDS
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
    """Measure the cases of a plan. Save intermediate results to the file, and resume from it if it exists.

    Raises:
        SpecError: A suite does not exist, or the file is from another machine or not a file of measurements.
        OSError: The file cannot be written.
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
        np.empty(LARGEST, np.uint8).fill(0)  # brings the allocator to the state of a long-running program
        rows, failed = harness.run(
            cases,
            budget=max(plan.budget - spent, 0.0),
            seed=plan.seed + round(spent),
            max_rounds=plan.rounds,
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
        skipped.setdefault(op, f"{unreached.count(op)} of its cases did not fit into the budget")
    measurements = replace(result(rows), skipped=dict(sorted({**earlier.skipped, **skipped}.items())))
    if path is not None:
        measurements.save(path)
    return measurements


def _begin(plan: Plan, path: str | Path | None) -> Measurements:
    """Return the measurements of an earlier run in the file, or empty ones."""
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
        Mistake(Place(str(path), 0, 0), f"it was measured on another machine ({difference})", "delete it, or choose another file")
        for difference in differences(earlier.environment, fingerprint)
    ]
    if mistakes:
        raise SpecError(mistakes)
    if all(
        earlier.settings.get(key) == settings.get(key) for key in ("suites", "more")
    ):  # else the file also receives other cases
        settings = {**earlier.settings, **settings, "spent": float(earlier.settings.get("spent", 0.0))}
    else:  # the file keeps the environment of the first run
        first = {key: value for key, value in earlier.settings.items() if key != "before"}
        settings |= {key: fingerprint[key] for key in ("date", "load")}
        settings["before"] = [*earlier.settings.get("before", ()), first]
    again = plan.suites or SUITES
    others = {name: reason for name, reason in earlier.skipped.items() if name.partition("/")[0] not in again}
    return replace(earlier, settings=settings, skipped=others)


def _cases(plan: Plan, scope: Scope) -> tuple[list[Case], dict[str, str]]:
    """Return the cases of a plan, and suite -> why it has none."""
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
    """Return the few cases that every machine file requires for arithmetic, memory, latencies and new pages."""
    return [
        case
        for name, ops in NEEDED.items()
        if not missing(name)
        for case in suite(name).cases(scope)
        if case.op in ops and _is_needed(case, ops[case.op])
    ]


def _is_needed(case: Case, sizes: Sequence[int]) -> bool:
    """Return whether a case has one of the sizes, and no transposed operand or new result array."""
    params = case.params
    size = params.get("bytes", params.get("n", params.get("shape")))
    if isinstance(size, tuple) and len(set(size)) == 1:
        size = size[0]
    plain = params.get("transposed", "none") == "none" and (case.op != "add" or params.get("into") == "out")
    return not sizes or (size in sizes and plain)
