"""Measured calls of a library -> the table of a CPU's `kernels`, each number with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import median
from typing import Final

import numpy as np

from hwsim.devices.kernels import Corrections, Form, Function, Kernels, ProductTime, Tier
from hwsim.devices.work import Call
from hwsim_calibrate.fit.calls import SORTED, SUITES, call_of
from hwsim_calibrate.fit.corrections import correct
from hwsim_calibrate.fit.model import Capacities, Model, Name, entry_of
from hwsim_calibrate.fit.solve import Floats, Problem, solve
from hwsim_calibrate.store import Measurements, Row

BOOTSTRAPS: Final = 24
LARGE: Final = 2.0**20  # bytes of an array that an allocator may have to ask the system for
HUGE: Final = 2.0**21  # bytes of the largest pages
SMALL: Final = 4096  # of the smallest
DOUBTFUL: Final[Mapping[str, float]] = {"unsteady": 0.5, "noisy": 0.7, "bimodal": 0.5, "shared": 0.7, "few": 0.7}
USUAL_CACHES: Final = {"L2": 48 * 1024.0, "L3": 2.0**20, "memory": 2.0**25}
NEVER: Final = 1e-13  # seconds a byte: less is nothing


@dataclass(frozen=True, slots=True)
class Timed:
    """One measured call: seconds per round, what a call of nothing takes taken off."""

    call: Call
    seconds: tuple[float, ...]
    weight: float
    case: str

    @property
    def quiet(self) -> float:
        return quiet(self.seconds)


@dataclass(frozen=True, slots=True)
class Interval:
    """95 % of the refits lie between; `points` measured calls spoke of it."""

    value: float
    low: float
    high: float
    points: int


@dataclass(frozen=True, slots=True)
class FittedKernels:
    """The table, and the interval of each number by its path."""

    kernels: Kernels
    intervals: Mapping[Name, Interval]
    timed: tuple[Timed, ...]


def quiet(seconds: Sequence[float]) -> float:
    """The lowest round, from ten rounds on the lowest tenth."""
    ordered = sorted(seconds)
    return ordered[0] if len(ordered) < 10 else ordered[len(ordered) // 10]


def timed(measurements: Measurements) -> tuple[Timed, ...]:
    """The rows that time one call of numpy on one thread."""
    nothing = min((row.quiet for row in measurements.of(op="pass")), default=0.0)
    found = []
    for row in measurements.rows:
        call = call_of(row) if row.suite in SUITES and row.op != "pass" else None
        if call is not None:
            found.append(_timed(row, call, nothing))
    return tuple(found)


def _timed(row: Row, call: Call, nothing: float) -> Timed:
    weight = math.prod(DOUBTFUL.get(flag, 1.0) for flag in row.flags)
    seconds = tuple(max(each - nothing, 0.1 * each) for each in row.seconds)
    if call.into == "new" and row.faults and call.made >= LARGE:  # whether the allocator had pages left is a matter of luck
        call = replace(call, paged=min(row.faults) >= call.made / HUGE)
    return Timed(call, seconds, weight, row.case)


def capacities_of(measurements: Measurements) -> Capacities:
    """What the system says of its caches, as where the levels beyond the first begin; the usual sizes if it says nothing."""
    sizes = dict(USUAL_CACHES) | reported_sizes(measurements)
    return Capacities(sizes if sizes["L2"] < sizes["L3"] < sizes["memory"] else dict(USUAL_CACHES))


def reported_sizes(measurements: Measurements) -> dict[str, float]:
    """What the system says of its caches: of each level beyond the first, the bytes of the one before it."""
    cpu = measurements.environment.get("cpu")
    said = cpu.get("caches") if isinstance(cpu, Mapping) else None
    sizes: dict[str, float] = {}
    for level, beyond in (("L1d", "L2"), ("L2", "L3"), ("L3", "memory")):
        found = said.get(level) if isinstance(said, Mapping) else None
        size = found.get("bytes") if isinstance(found, Mapping) else None
        if isinstance(size, int | float) and size > 0:
            sizes[beyond] = float(size)
    return sizes


def fit_kernels(
    rows: Sequence[Timed], capacities: Capacities, *, library: str = "", seed: int = 0, bootstraps: int = BOOTSTRAPS
) -> FittedKernels:
    """The table that these calls speak of.

    bootstraps: refits from rounds drawn anew, with cases weighted anew, for the intervals; 0: no intervals.
    """
    from hwsim_calibrate import blas

    with blas.using(1):  # small systems of equations: threads only get in each other's way
        return _fit(rows, capacities, library, seed, bootstraps)


def _fit(rows: Sequence[Timed], capacities: Capacities, library: str, seed: int, bootstraps: int) -> FittedKernels:
    model = Model([row.call for row in rows], capacities)
    measured = np.array([row.quiet for row in rows])
    weights = np.array([row.weight for row in rows])
    x = solve(Problem(model.times, measured, model.start, model.spread, weights))
    calculated = model.times(x)[0]
    again = [_refit(model, rows, weights, x, np.random.default_rng((seed, turn))) for turn in range(bootstraps)]
    points = _points(model)
    intervals = {
        name: _interval(float(np.exp(x[at])), [float(np.exp(each[at])) for each in again], int(points[at]))
        for name, at in model.names.items()
    }
    corrections = correct(model.calls, measured / calculated)
    return FittedKernels(_table(model, x, corrections, library), intervals, tuple(rows))


def among_others(fitted: FittedKernels, measurements: Measurements, draws: int = BOOTSTRAPS, seed: int = 0) -> FittedKernels:
    """With how much longer a call takes to start after others, from the cases that mix them; 1 where none were measured."""
    rows, draw = list(measurements.of(op="mixed")), np.random.default_rng(seed)
    if not rows:
        return fitted
    found, again = [], []
    for row in rows:
        side = row.params.get("side", 1)
        times = [fitted.kernels.time(call) for call in mixed_calls(int(side) if isinstance(side, int) else 1)
                 if not fitted.kernels.unknown(call)]  # fmt: skip
        starts, rest = sum(each.call * each.ratio for each in times), sum(each.body for each in times)
        ratios = [(quiet(draw.choice(row.seconds, len(row.seconds)).tolist()) - rest) / starts for _ in range(draws)]
        found.append(max((row.quiet - rest) / starts, 1.0))
        again.append([max(ratio, 1.0) for ratio in ratios])
    value = float(median(found))
    interval = _interval(value, [float(each) for each in np.median(np.array(again), axis=0)], len(rows))
    spread = Interval(value, min(interval.low, *found), max(interval.high, *found), len(rows))
    intervals = {**fitted.intervals, ("among_others",): spread}
    return replace(fitted, kernels=replace(fitted.kernels, among_others=value), intervals=intervals)


def page_faults(fitted: FittedKernels, measurements: Measurements) -> FittedKernels:
    """With what a page of 4 KiB takes when it is met for the first time, beyond the rate of large ones; 0 if not measured."""
    rate = fitted.kernels.pages
    found = [
        max(row.quiet / met - size / met / (rate or math.inf), 0.0)
        for row in measurements.of("allocation", "mapped")
        if row.params.get("pages") == "small"
        and isinstance(size := row.params.get("bytes"), int)
        and (met := min(row.faults, default=0.0)) >= size / (2 * SMALL)
    ]
    if not found:
        return fitted
    value = float(median(found))
    spread = Interval(value, min(found), max(found), len(found))
    return replace(fitted, kernels=replace(fitted.kernels, fault=value), intervals={**fitted.intervals, ("fault",): spread})


@cache
def mixed_calls(side: int) -> tuple[Call, ...]:
    """What the case `mixed` calls."""
    from hwsim_calibrate.kernels import mixed_step
    from hwsim_calibrate.recording.patching import calls_of

    return tuple(calls_of(partial(mixed_step, side)))


def _refit(model: Model, rows: Sequence[Timed], weights: Floats, x: Floats, draw: np.random.Generator) -> Floats:
    measured = np.array([quiet(draw.choice(row.seconds, len(row.seconds)).tolist()) for row in rows])
    drawn = weights * draw.exponential(1.0, len(rows))
    return solve(Problem(model.times, measured, model.start, model.spread, drawn), x, steps=12)


def _points(model: Model) -> Floats:
    """How many calls have a noticeable part of their time from each number."""
    times, slopes = model.times(model.start)
    found: Floats = (slopes / times[:, None] > 0.01).sum(0)
    return found


def _interval(value: float, again: Sequence[float], points: int) -> Interval:
    if not again:
        return Interval(value, value, value, points)
    low, high = np.quantile(again, [0.025, 0.975])
    return Interval(value, min(float(low), value), max(float(high), value), points)


# ---- numbers to a table ----


def _table(model: Model, x: Floats, corrections: Corrections, library: str) -> Kernels:
    values = {name: float(np.exp(x[at])) for name, at in model.names.items()}
    functions = _functions(model, values)
    return Kernels(
        library=library,
        sharpness=values["sharpness",],
        into={into: values["into", into] for into in ("new", "out", "self")},
        pages=1.0 / values["pages",],
        lookup=values["lookup",],
        levels={level: _tier(values, level) for level in model.levels},
        functions=with_plain(functions),
        forms=_forms(functions),
        products=_products(model, values),
        corrections=corrections,
    )


def _tier(values: Mapping[Name, float], level: str) -> Tier:
    rates = {role: values["levels", level, role] for role in ("read", "write", "update")}
    found = {role: 1.0 / each for role, each in rates.items() if each > NEVER}
    return Tier(beyond=values["levels", level, "beyond"], lookup=values["levels", level, "lookup"], **found)


def _functions(model: Model, values: Mapping[Name, float]) -> dict[str, Function]:
    counts: dict[str, list[float]] = {}
    for call in model.calls:
        if call.product is None:
            counts.setdefault(entry_of(call), []).append(max(call.count, 1.0))
    found = {}
    for entry, sizes in sorted(counts.items()):
        at = ("functions", entry)
        each = {name[3]: value for name, value in values.items() if name[:2] == at and name[2] == "each"}
        found[entry] = Function(
            call=values[*at, "call"],
            each=each,
            row=values.get((*at, "row"), 0.0),
            log=entry.split()[0] in SORTED,
            counts=(min(sizes), max(sizes)),
        )
    return found


def with_plain(functions: Mapping[str, Function]) -> dict[str, Function]:
    """With an entry for each function whatever its form: where that was not measured, as in the form measured at most sizes."""
    found = dict(functions)
    for entry, function in functions.items():
        name, _, form = entry.partition(" ")
        if form and name not in functions and (name not in found or found[name].counts[1] < function.counts[1]):
            found[name] = function
    return dict(sorted(found.items()))


def _forms(functions: Mapping[str, Function]) -> dict[str, Form]:
    """What a form costs more, over all functions that were measured with and without it."""
    more: dict[str, list[tuple[float, float]]] = {}
    for entry, function in functions.items():
        base, _, form = entry.rpartition(" ")
        if base in functions:
            more.setdefault(form, []).append((max(function.call - functions[base].call, 0.0), function.row))
    return {
        form: Form(call=median(call for call, _ in each), row=median(row for _, row in each))
        for form, each in sorted(more.items())
    }


def _products(model: Model, values: Mapping[Name, float]) -> dict[str, ProductTime]:
    sizes: dict[str, list[float]] = {}
    for call in model.calls:
        if call.product is not None:
            sizes.setdefault(call.dtype, []).append(float(call.product.m) * call.product.n * call.product.k)
    found = {}
    for dtype, counts in sorted(sizes.items()):
        own = {name[2]: value for name, value in values.items() if name[:2] == ("products", dtype)}
        found[dtype] = ProductTime(**{**own, "flop": 1.0 / own["flop"]}, counts=(min(counts), max(counts)))
    return found


def without_corrections(kernels: Kernels) -> Kernels:
    """The formula alone."""
    return replace(kernels, corrections=Corrections())
