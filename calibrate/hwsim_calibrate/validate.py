"""How far a calibrated machine's predictions are off, on what its fit never saw.

    sizes       every other size of each function held out of a second fit
    programs    small programs of many calls, none of them used to fit or to tune: recorded, simulated call by call, and timed
    itself      every measured call told again by the formula alone: what the table does not have to correct

Errors are of the quiet time, as a part of what was measured; the median with an interval from drawing the cases anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim_calibrate import figure as drawn
from hwsim_calibrate.case import Case
from hwsim_calibrate.composites import PROGRAMS, TEXT, Program
from hwsim_calibrate.fit import Fitted
from hwsim_calibrate.fit.heldout import HeldOut, Told, score
from hwsim_calibrate.fit.kernels import FittedKernels, without_corrections
from hwsim_calibrate.harness import run
from hwsim_calibrate.recording.ops import workload_of
from hwsim_calibrate.recording.patching import calls_of
from hwsim_calibrate.store import Amounts, Row

SUITE: Final = "programs"
SIZES: Final = (0.06, 0.25)  # median and p90 that are asked for
BLIND: Final = (0.10, 0.25)
TEXTS: Final = 0.10
BUDGET: Final = 40.0  # seconds that timing the programs may take
WORST: Final = 8


@dataclass(frozen=True, slots=True)
class Predicted:
    """A program: seconds told and measured, calls, and the part of the time told by calls that nobody measured."""

    program: Program
    told: Told
    calls: int
    uncalibrated: float


@dataclass(frozen=True, slots=True)
class Report:
    """What was found; each part None or empty where it was not asked for."""

    machine: str
    sizes: HeldOut | None = None
    itself: HeldOut | None = None
    programs: tuple[Predicted, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def blind(self) -> HeldOut:
        """Of the programs that serve for nothing but the score."""
        return score([each.told for each in self.programs if each.program.blind and each.program.name != TEXT.name])

    @property
    def development(self) -> HeldOut:
        """Of the programs that were looked at while the model was built."""
        return score([each.told for each in self.programs if not each.program.blind])

    @property
    def text(self) -> Told | None:
        """The benchmark of the text."""
        return next((each.told for each in self.programs if each.program.name == TEXT.name), None)

    def bounds(self) -> list[tuple[str, float, float, bool]]:
        """(what, found, asked for, met) of each figure."""
        found: list[tuple[str, float, float]] = []
        if self.sizes is not None and self.sizes.told:
            found += [("sizes held out, median", self.sizes.median, SIZES[0]), ("sizes held out, p90", self.sizes.p90, SIZES[1])]
        blind = self.blind
        if blind.told:
            found += [("programs, median", blind.median, BLIND[0]), ("programs, p90", blind.p90, BLIND[1])]
        if self.text is not None:
            found.append((TEXT.name, abs(self.text.error), TEXTS))
        return [(what, value, bound, value <= bound) for what, value, bound in found]

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"

    def markdown(self) -> str:
        """A page for docs/validation."""
        return "\n".join(_page(self)) + "\n"

    def plot(self, path: str | Path) -> Path:
        """Predicted against measured, and the errors: .png, .svg or .pdf."""
        from hwsim.views.kit.writing import write

        return write(path, drawn.render(self._groups(), Path(path).suffix))

    def _groups(self) -> dict[str, list[tuple[float, float]]]:
        found = {"sizes held out": list(self.sizes.told) if self.sizes else []}
        found["programs"] = [each.told for each in self.programs]
        return {name: [(each.measured, each.predicted) for each in told] for name, told in found.items() if told}

    def to_json(self) -> dict[str, Any]:
        """All numbers."""
        return {
            "hwsim": "validation/1",
            "machine": self.machine,
            "bounds": [{"what": what, "found": value, "bound": bound, "met": met} for what, value, bound, met in self.bounds()],
            "sizes": _scored(self.sizes),
            "itself": _scored(self.itself),
            "blind": _scored(self.blind),
            "development": _scored(self.development),
            "programs": [
                {
                    "name": each.program.name,
                    "blind": each.program.blind,
                    "measured_s": each.told.measured,
                    "predicted_s": each.told.predicted,
                    "error": each.told.error,
                    "calls": each.calls,
                    "uncalibrated": each.uncalibrated,
                }
                for each in self.programs
            ],
            "notes": list(self.notes),
        }


def validate(
    machine: Fitted | str | Path,
    *,
    programs: Iterable[Program] = PROGRAMS,
    timed: Mapping[str, float] | None = None,
    budget: float = BUDGET,
    seed: int = 0,
    report: Callable[[Any], None] | None = None,
) -> Report:
    """The errors of a fitted machine, or of a machine file and the measurements beside it.

    programs: those that are timed here and predicted.  timed: seconds of those that need not be timed.
    budget: seconds that timing may take.

    Raises:
        SpecError: the mistakes of the machine file.
    """
    fitted = machine if isinstance(machine, Fitted) else None
    name = fitted.name if fitted else Path(str(machine)).stem
    chosen, known = tuple(programs), dict(timed or {})
    waiting = [each for each in chosen if each.name not in known]
    rows = measure(waiting, budget=budget, seed=seed, report=report) if waiting else {}
    known |= {name: row.quiet for name, row in rows.items()}
    said: Any = fitted.machine if fitted else machine
    if fitted is None:
        fitted = _beside(Path(str(machine)), seed)
    found = [predict(program, said, known[program.name]) for program in chosen if program.name in known]
    itself = formula_alone(fitted.kernels) if fitted and fitted.kernels else None
    flagged = sum(bool(row.flags) for row in rows.values())
    notes = (f"{flagged} of {len(rows)} programs were disturbed while they were timed",) if flagged else ()
    return Report(name, fitted.heldout if fitted else None, itself, tuple(found), notes)


def _beside(path: Path, seed: int) -> Fitted | None:
    """The fit again, of the measurements that `hwsim calibrate run` has put beside a machine file."""
    from hwsim_calibrate.fit import fit
    from hwsim_calibrate.store import load

    store = path.with_name(path.name.removesuffix(".yaml") + ".measurements.json.gz")
    return fit(load(store), name=path.stem, seed=seed) if store.exists() else None


def measure(
    programs: Sequence[Program], *, budget: float, seed: int = 0, report: Callable[[Any], None] | None = None
) -> dict[str, Row]:
    """The programs timed, by name: each on one thread, by its CPU time."""
    from hwsim_calibrate import blas
    from hwsim_calibrate.session import LARGEST

    with blas.using(1):
        np.empty(LARGEST, np.uint8).fill(0)  # the allocator of a program that has run for a while
        rows, _ = run([case_of(program) for program in programs], budget=budget, seed=seed, report=report)
    return {row.op: row for row in rows}


def case_of(program: Program) -> Case:
    """A program as a case of the harness."""
    return Case(SUITE, program.name, {}, Amounts(), partial(_make, program), samples=5, seconds=4e-3, name=program.name)


def _make(program: Program, _: ExitStack) -> Callable[[], object]:
    return program.make()


def predict(program: Program, machine: Any, measured: float) -> Predicted:
    """The program recorded, and simulated on the machine."""
    import hwsim
    from hwsim.results.coverage import coverage

    calls = calls_of(program.make)
    result = hwsim.simulate(machine, workload_of(program.name, calls))
    share = coverage(result.timeline)
    told = Told(program.name, measured, result.makespan_s)
    return Predicted(program, told, len(calls), share.uncalibrated if share else 1.0)


def formula_alone(fitted: FittedKernels) -> HeldOut:
    """Every measured call by the formula without its corrections: with them it is what was measured."""
    kernels = without_corrections(fitted.kernels)
    return score([Told(row.case, row.quiet, kernels.time(row.call).seconds) for row in fitted.timed])


# ---- words ----


def _lines(report: Report) -> Iterable[str]:
    yield f"{report.machine}: predicted against measured"
    for what, value, bound, met in report.bounds():
        yield f"  {what:<42} {100 * value:5.1f} %   {'within' if met else 'ABOVE'} {100 * bound:g} %"
    for title, found in _parts(report):
        yield f"  {title:<26} {found}"
    if report.sizes is not None and report.sizes.told:
        yield "  worst sizes: " + "; ".join(f"{each.case} {100 * each.error:+.0f} %" for each in report.sizes.worst(3))
    if report.programs:
        worst = sorted(report.programs, key=lambda each: -abs(each.told.error))[:WORST]
        yield "  worst programs: " + "; ".join(f"{each.program.name} {100 * each.told.error:+.0f} %" for each in worst)
    if report.notes:
        yield "  " + "; ".join(report.notes[:WORST])


def _parts(report: Report) -> list[tuple[str, HeldOut]]:
    parts = [
        ("sizes held out", report.sizes),
        ("the formula alone", report.itself),
        ("programs, blind", report.blind),
        ("programs, development", report.development),
    ]
    return [(title, found) for title, found in parts if found is not None and found.told]


def _page(report: Report) -> Iterable[str]:
    yield "# Calibration\n"
    yield "Written by `python -m published.composites`.  Every figure is of what the fit never saw: sizes held out of a second"
    yield "fit, and programs of numpy that were recorded, simulated call by call, and timed on the machine itself.\n"
    yield "| what | found | asked for | |\n|---|---|---|---|"
    for what, value, bound, met in report.bounds():
        yield f"| {what} | {100 * value:.1f} % | at most {100 * bound:g} % | {'met' if met else '**not met**'} |"
    yield ""
    for title, found in _parts(report):
        yield f"- {title}: {found}"
    yield ""
    yield "The development programs were looked at while the model was built; the blind ones were written before it was first"
    yield "scored on them and serve for nothing else.  That first score, calls and programs timed minutes apart on a busy"
    yield "machine, was median 12.1 %, p90 29 %.  The formula has not been changed since, but for fresh pages, which a fit now"
    yield "takes from what the system counted; the measuring has: calls and programs in the same rounds, and arrays anywhere"
    yield "in their pages, as programs have them.\n"
    yield "| program | calls | measured | predicted | error | uncalibrated | |\n|---|---|---|---|---|---|---|"
    for each in sorted(report.programs, key=lambda one: abs(one.told.error)):
        yield (
            f"| {each.program.name} | {each.calls} | {_time(each.told.measured)} | {_time(each.told.predicted)} | "
            f"{100 * each.told.error:+.1f} % | {100 * each.uncalibrated:.0f} % | {'' if each.program.blind else 'development'} |"
        )
    if report.sizes is not None and report.sizes.told:
        yield "\nWorst sizes held out:\n"
        for worst in report.sizes.worst(WORST):
            yield f"- {worst.case}: {100 * worst.error:+.0f} %"
    if report.notes:
        yield "\n" + "; ".join(report.notes)


def _time(seconds: float) -> str:
    from hwsim.units import format_quantity

    return format_quantity(seconds, "s", 3)


def _scored(found: HeldOut | None) -> dict[str, Any] | None:
    if found is None or not found.told:
        return None
    return {
        "median": found.median,
        "ci95": list(found.ci95),
        "p90": found.p90,
        "mean": found.mean,
        "cases": [{"case": each.case, "measured_s": each.measured, "predicted_s": each.predicted} for each in found.told],
    }


__all__ = ["PROGRAMS", "Predicted", "Report", "validate"]
