"""Prediction errors of a calibrated machine for cases and programs that its fit has not used.

- sizes: every other size of each function is held out of a second fit.
- programs: small programs of many calls are recorded, simulated and timed.
- gpu: every other size of each group of GPU cases is held out of a second fit.
- itself: all measured calls are predicted by the formula without the table of corrections.

Errors are relative to the undisturbed measured time. The interval of the median is from a bootstrap over the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.devices.work import LibraryCall
from hwsim_calibrate.case import Case
from hwsim_calibrate.composites import PROGRAMS, TEXT, Program
from hwsim_calibrate.fit import Fitted
from hwsim_calibrate.fit.holdout import HeldOut, Predicted, score
from hwsim_calibrate.fit.kernels import FittedKernels, without_corrections
from hwsim_calibrate.harness import run
from hwsim_calibrate.recording.numpy_patches import steps_of
from hwsim_calibrate.recording.ops import workload_of
from hwsim_calibrate.recording.tape import Step
from hwsim_calibrate.store import Amounts, Row

SUITE: Final = "programs"
SIZES: Final = (0.06, 0.25)  # bounds of median and p90
BLIND: Final = (0.10, 0.25)
TEXTS: Final = 0.10
BUDGET: Final = 40.0  # seconds for timing the programs


@dataclass(frozen=True, slots=True)
class ProgramError:
    """The prediction error of a program.

    Args:
        program: the program.
        time: measured and predicted time.
        calls: number of calls.
        uncalibrated: share of the predicted time from the general formula.
        related: share of the predicted time from similar measured functions.
        recorded: share of the predicted time of calls without an op, which have their recorded time.
    """

    program: Program
    time: Predicted
    calls: int
    uncalibrated: float
    related: float = 0.0
    recorded: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """The prediction errors of a machine; parts that were not evaluated are None or empty."""

    machine: str
    sizes: HeldOut | None = None
    itself: HeldOut | None = None
    programs: tuple[ProgramError, ...] = ()
    notes: tuple[str, ...] = ()
    gpu: Mapping[str, HeldOut] = field(default_factory=dict)

    @property
    def blind(self) -> HeldOut:
        """Errors of the programs that serve only for validation."""
        return score([program.time for program in self.programs if program.program.blind and program.program.name != TEXT.name])

    @property
    def development(self) -> HeldOut:
        """Errors of the programs that were used to develop the model."""
        return score([program.time for program in self.programs if not program.program.blind])

    def bounds(self) -> list[tuple[str, float, float, bool]]:
        """Return (name, value, bound, whether the bound is met) of each figure with a bound."""
        figures: list[tuple[str, float, float]] = []
        for name, errors, bounds in (("held-out sizes", self.sizes, SIZES), ("programs", self.blind, BLIND)):
            if errors is not None and errors.cases:
                figures += [(f"{name}, median", errors.median, bounds[0]), (f"{name}, p90", errors.p90, bounds[1])]
        figures += [(TEXT.name, abs(program.time.error), TEXTS) for program in self.programs if program.program.name == TEXT.name]
        return [(name, value, bound, value <= bound) for name, value, bound in figures]


def validate(
    machine: Fitted | str | Path,
    *,
    programs: Iterable[Program] = PROGRAMS,
    timed: Mapping[str, float] | None = None,
    budget: float = BUDGET,
    seed: int = 0,
    report: Callable[[Any], None] | None = None,
) -> Report:
    """Return the errors of a fitted machine, or of a machine file with its measurements next to it.

    Args:
        machine: the fitted machine, or the path of a machine file.
        programs: programs to time on this machine and to predict.
        timed: program -> its measured time (s); these programs are not timed.
        budget: time limit for timing (s).
        seed: seed of the random order and of the bootstrap.
        report: function that receives the progress.

    Raises:
        SpecError: The machine file has mistakes.
    """
    fitted = machine if isinstance(machine, Fitted) else _fitted_again(Path(machine), seed)
    name = machine.name if isinstance(machine, Fitted) else Path(machine).stem
    chosen, seconds = tuple(programs), dict(timed or {})
    untimed = [program for program in chosen if program.name not in seconds]
    rows = measure(untimed, budget=budget, seed=seed, report=report) if untimed else {}
    seconds |= {name: row.quiet for name, row in rows.items()}
    simulated: Any = machine.machine if isinstance(machine, Fitted) else machine
    errors = tuple(predict(program, simulated, seconds[program.name]) for program in chosen if program.name in seconds)
    itself = formula_alone(fitted.kernels) if fitted and fitted.kernels else None
    flagged = sum(bool(row.flags) for row in rows.values())
    notes = (f"{flagged} of {len(rows)} programs were disturbed while they were timed",) if flagged else ()
    return Report(name, fitted.heldout if fitted else None, itself, errors, notes, fitted.gpu if fitted else {})


def _fitted_again(path: Path, seed: int) -> Fitted | None:
    """Repeat the fit from the measurements that `hwsim calibrate run` saved next to the machine file."""
    from hwsim_calibrate.fit import fit
    from hwsim_calibrate.store import load

    store = path.with_name(path.name.removesuffix(".yaml") + ".measurements.json.gz")
    return fit(load(store), name=path.stem, seed=seed) if store.exists() else None


def measure(
    programs: Sequence[Program], *, budget: float, seed: int = 0, report: Callable[[Any], None] | None = None
) -> dict[str, Row]:
    """Time programs on one thread by CPU time; return name -> row."""
    from hwsim_calibrate import blas
    from hwsim_calibrate.session import LARGEST

    with blas.using(1):
        np.empty(LARGEST, np.uint8).fill(0)  # brings the allocator to the state of a long-running program
        rows, _ = run([case_of(program) for program in programs], budget=budget, seed=seed, report=report)
    return {row.op: row for row in rows}


def case_of(program: Program) -> Case:
    """Return a program as a case for the harness."""
    return Case(SUITE, program.name, {}, Amounts(), lambda _: program.make(), samples=5, seconds=4e-3, name=program.name)


def predict(program: Program, machine: Any, measured: float) -> ProgramError:
    """Record a program and simulate it on a machine."""
    import hwsim
    from hwsim.results.coverage import coverage

    steps = steps_of(program.make)
    calls = [step.cpu if step.op.call is None else step.op.call for step in steps if _takes_time(step)]
    result = hwsim.simulate(machine, workload_of(program.name, calls))
    share = coverage(result.timeline)
    time = Predicted(program.name, measured, result.makespan_s)
    recorded = sum(call for call in calls if not isinstance(call, LibraryCall)) / max(result.makespan_s, 1e-12)
    uncalibrated = (share.uncalibrated if share else 1.0) * (1.0 - recorded)
    return ProgramError(program, time, len(calls), uncalibrated, share.related if share else 0.0, recorded)


def _takes_time(step: Step) -> bool:
    """Return whether a call counts: the allocation of an array does not."""
    return step.op.call is not None or not step.name.startswith("empty")


def formula_alone(fitted: FittedKernels) -> HeldOut:
    """Return the errors of all measured calls by the formula without its table of corrections."""
    kernels = without_corrections(fitted.kernels)
    return score([Predicted(row.case, row.quiet, kernels.time(row.call).seconds) for row in fitted.timed])
