"""Residuals of recorded NumPy programs: unseen programs, and functions held out of a calibration.

    whole          thirty scripts, predicted in a blind test
    measured       whole programs on the machine whose calls were timed in the same rounds
    interpolated   calls with sizes between those of the fit
    extrapolated   calls with sizes beyond those of the fit
    related        functions held out of a calibration, predicted from similar functions (`hwsim.devices.typical_functions`)
    usual          functions of one CPU, predicted from the typical times of another CPU
    formula        the same from peak and bandwidth only

The measurements are distributed with the package (`hwsim_calibrate/data`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from hwsim.devices.kernels import Corrections, Function
from hwsim.devices.typical_functions import estimate_function, typical_time
from hwsim.devices.work import LibraryCall, elementwise_call
from hwsim.origins import Case
from hwsim_calibrate import store
from hwsim_calibrate.composites import PROGRAMS
from hwsim_calibrate.fit import Fitted, fit
from hwsim_calibrate.fit.holdout import held_out
from hwsim_calibrate.fit.kernels import capacities_of, fit_kernels, timed_calls
from hwsim_calibrate.store import Measurements, load
from hwsim_calibrate.validate import SUITE, predict
from published.residual import Residual, of_miss
from published.score import Half, Miss, Score, scored

DATA: Final = Path(store.__file__).parent / "data"
PROGRAMMED: Final = "epyc-zen4-vm-2core"  # the file that contains programs
OTHER: Final = "epyc-zen3-vm-2core"  # a CPU that does not define the typical times
ELEMENTS: Final = 16384.0
LARGE: Final = 4e5  # minimum elements of a call held out for extrapolation


def residuals(data: Path) -> list[Residual]:  # noqa: ARG001 (as all topics)
    """Return all residuals."""
    return [*(_first(script) for script in first_sight()), *_whole(), *_sizes(), *_functions()]


@dataclass(frozen=True, slots=True)
class FirstSight:
    """A script of the blind test: CPU time of itself and of its calls, and prediction, in seconds.

    It was recorded, and simulated on a machine file measured ten minutes before on an idle machine.
    """

    program: str
    script_s: float
    calls_s: float
    predicted_s: float
    low_s: float
    high_s: float

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted_s / self.script_s - 1.0

    @property
    def held(self) -> bool:
        """Whether the prediction's interval contains the measured time."""
        return self.low_s <= self.script_s <= self.high_s


def first_sight() -> list[FirstSight]:
    """Return all scripts of the blind test."""
    with (Path(__file__).parent / "data" / "programs.csv").open(encoding="utf-8") as file:
        return [
            FirstSight(row.pop("program"), **{key: float(value) for key, value in row.items()}) for row in csv.DictReader(file)
        ]


def _first(row: FirstSight) -> Residual:
    return _residual("whole", "known", row.program, PROGRAMMED, row.predicted_s, row.script_s)


def _sizes() -> Iterator[Residual]:
    """Return calls predicted by fits without their size: between other sizes, and beyond them."""
    for name in (PROGRAMMED, OTHER):
        found = load(DATA / f"{name}.json.gz")
        rows, capacities = timed_calls(found), capacities_of(found)
        for case in held_out(rows, capacities).cases:
            yield _residual("interpolated", "known", f"{case.case} on {name}", name, case.predicted, case.measured)
        large = [row for row in rows if row.call.product is None and row.call.count >= LARGE]
        left = {id(row) for row in large}
        kernels = fit_kernels([row for row in rows if id(row) not in left], capacities, bootstraps=0).kernels
        for row in large:
            if not kernels.unknown(row.call) and kernels.time(row.call).standing == "extrapolated":
                predicted = kernels.time(row.call).seconds
                yield _residual("extrapolated", "known", f"{row.case} on {name}", name, predicted, row.quiet)


def _whole() -> Iterator[Residual]:
    """Return programs predicted from the calls of the same file."""
    found = load(DATA / f"{PROGRAMMED}.json.gz")
    times = {row.op: row.quiet for row in found.of(SUITE)}
    machine = _fitted(found, PROGRAMMED).machine
    for program in PROGRAMS:
        if program.name in times:
            told = predict(program, machine, times[program.name])
            yield _residual("measured", "known", program.name, PROGRAMMED, told.time.predicted, told.time.measured)


def _functions() -> Iterator[Residual]:
    """Return functions of the other CPU: held out, from typical times, and from the formula."""
    fitted = _fitted(load(DATA / f"{OTHER}.json.gz"), OTHER)
    if fitted.kernels is None:
        return
    kernels = replace(fitted.kernels.kernels, corrections=Corrections())
    peak = max(time.flop for time in kernels.products.values())
    rate = kernels.levels["memory"].read or peak
    for entry, function in kernels.functions.items():
        name, _, form = entry.partition(" ")
        for dtype, cost in function.each.items():
            known = typical_time(name, form, dtype)
            if known is None or function.log or cost < 1e-12:
                continue
            call = elementwise_call(name, dtype=dtype, count=ELEMENTS, inputs=1, form=form)
            measured, row = function.call + cost * ELEMENTS, f"{entry} {dtype}"
            without = {other: it for other, it in kernels.functions.items() if other.partition(" ")[0] != name}
            told = estimate_function(replace(kernels, functions=without), call)
            if told is not None:
                yield _residual("related", "known", row, OTHER, _seconds(told, dtype), measured)
            yield _residual("usual", "outside", row, OTHER, known[2] + known[1] * ELEMENTS, measured)
            yield _residual("formula", "outside", row, OTHER, _formula(call, peak, rate), measured)


def _seconds(function: Function, dtype: str) -> float:
    return function.call + function.each[dtype] * ELEMENTS


def _formula(call: LibraryCall, peak: float, rate: float) -> float:
    """Return the roofline of one core: one operation per element, every byte from memory."""
    return max(call.count / peak, call.moved / rate)


def _residual(regime: str, case: Case, row: str, device: str, predicted: float, measured: float) -> Residual:
    return of_miss(Miss(row, predicted, measured, f"{device} numpy"), "program", regime, case, unit=row, work=row, device=device)


def _fitted(found: Measurements, name: str) -> Fitted:
    """Return the machine fitted to the calls of a file, without its programs."""
    return fit(replace(found, rows=tuple(row for row in found.rows if row.suite != SUITE)), name=name)


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of programs, and of held-out functions."""
    found = residuals(data)
    out = []
    for regime, name, bound, reached, half in (
        ("whole", "thirty NumPy scripts, blind test", 0.08, 0.17, "not fitted"),
        ("measured", "NumPy programs, from calls timed on the same machine", 0.08, 0.10, "not fitted"),
        ("related", "NumPy functions, held-out function", 0.35, None, "cross-validated"),
        ("usual", "NumPy functions of a Zen 3 core, from times of a Zen 4 core", 0.60, None, "cross-validated"),
    ):
        misses = [residual.miss for residual in found if residual.regime == regime]
        out.append(scored(name, misses, bound, cast("Half", half), metric="median over all rows", reached=reached))
    return tuple(out)
