"""Fit of the table `kernels` of a CPU to measured library calls, with an interval for each number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import median
from typing import Any, Final

import numpy as np

from hwsim.devices.kernels import CacheTier, Corrections, Form, Function, MatmulTime, MeasuredFunctions
from hwsim.devices.typical_functions import estimate_function, typical_time
from hwsim.devices.work import LibraryCall
from hwsim_calibrate.calls import GENERAL, SORTED, SUITES, call_of
from hwsim_calibrate.fit.corrections import correct
from hwsim_calibrate.fit.least_squares import Floats, Problem, solve
from hwsim_calibrate.fit.model import SHARPEST, Capacities, Model, Name, entry_of, work_of
from hwsim_calibrate.store import Measurements, Row, quiet

BOOTSTRAPS: Final = 24
SLOWER: Final = ("across",)  # forms that increase the time per element
CORE_SIZES: Final = 5  # sizes of a function in a format from which it contributes to the fit of caches and memory
MIN_CORE_SIZES: Final = 3  # the same, if no function has more sizes
COMPUTE_BOUND: Final = frozenset({*GENERAL, *SORTED, "bincount", "where"})  # functions that do not contribute to it
MIN_WEIGHT: Final = 0.4  # of a call with all flags; large arrays, which determine the memory bandwidth, often have several
LARGE: Final = 2.0**20  # bytes of an array for which the allocator may map new pages
HUGE_PAGE: Final = 2.0**21  # bytes
SMALL_PAGE: Final = 4096  # bytes
DOUBTFUL: Final[Mapping[str, float]] = {"unsteady": 0.5, "noisy": 0.7, "bimodal": 0.5, "shared": 0.7, "few": 0.7}
USUAL_CACHES: Final = {"L2": 48 * 1024.0, "L3": 2.0**20, "memory": 2.0**25}
CALL_SPREAD, ELEMENT_SPREAD = 0.2, 0.3  # of estimates from similar functions; chosen on 997 calls of one CPU
NEGLIGIBLE: Final = 1e-13  # seconds per byte


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A measured call.

    Args:
        call: the library call.
        seconds: time in each round without the overhead of the timing loop (s).
        weight: weight in the fit.
        case: name of the case.
    """

    call: LibraryCall
    seconds: tuple[float, ...]
    weight: float
    case: str

    @property
    def quiet(self) -> float:
        return quiet(self.seconds)


Rows = Sequence[TimedCall]


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95 % bootstrap interval, and the number of measured calls that determine it."""

    value: float
    low: float
    high: float
    points: int


@dataclass(frozen=True, slots=True)
class FittedKernels:
    """A fitted table.

    Args:
        kernels: the table.
        intervals: path of a number -> its interval.
        timed: the measured calls.
    """

    kernels: MeasuredFunctions
    intervals: Mapping[Name, Interval]
    timed: tuple[TimedCall, ...]


def timed_calls(measurements: Measurements, suites: Sequence[str] = SUITES) -> tuple[TimedCall, ...]:
    """Return the single-thread library calls that the rows of some suites time."""
    empty = min((row.quiet for row in measurements.of(op="pass")), default=0.0)
    rows = [row for row in measurements.rows if row.suite in suites and row.op != "pass"]
    return tuple(_timed_call(row, call, empty) for row in rows if (call := call_of(row)) is not None)


def _timed_call(row: Row, call: LibraryCall, empty: float) -> TimedCall:
    weight = max(math.prod(DOUBTFUL.get(flag, 1.0) for flag in row.flags), MIN_WEIGHT)
    seconds = tuple(max(time - empty, 0.1 * time) for time in row.seconds)
    if call.into == "new" and row.faults and call.made >= LARGE:  # the allocator may reuse pages by chance
        call = replace(call, fresh=call.written if min(row.faults) >= call.made / HUGE_PAGE else 0.0)
    return TimedCall(call, seconds, weight, row.case)


def capacities_of(measurements: Measurements) -> Capacities:
    """Return the working set (bytes) from which each level beyond L1 is used: the reported cache sizes, or usual sizes."""
    sizes = dict(USUAL_CACHES) | reported_sizes(measurements)
    return Capacities(sizes if sizes["L2"] < sizes["L3"] < sizes["memory"] else dict(USUAL_CACHES))


def reported_sizes(measurements: Measurements) -> dict[str, float]:
    """Return the size (bytes) of the cache before each level, as the system reports it."""
    sizes: dict[str, float] = {}
    for level, beyond in (("L1d", "L2"), ("L2", "L3"), ("L3", "memory")):
        value: Any = measurements.environment
        for key in ("cpu", "caches", level, "bytes"):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and value > 0:
            sizes[beyond] = float(value)
    return sizes


def fit_kernels(
    rows: Sequence[TimedCall],
    capacities: Capacities,
    *,
    library: str = "",
    seed: int = 0,
    bootstraps: int = BOOTSTRAPS,
) -> FittedKernels:
    """Fit the table to measured calls.

    Args:
        rows: the measured calls.
        capacities: cache sizes.
        library: name and version of the library.
        seed: seed of the bootstrap.
        bootstraps: number of refits for the intervals, with resampled rounds and weights.
    """
    from hwsim_calibrate import blas

    with blas.using(1):  # the systems of equations are too small for several threads
        core, rest = split_core(rows)
        return _fit(core, rest, Model([row.call for row in core], capacities), library, seed, bootstraps)


def _fit(core: Rows, rest: Rows, model: Model, library: str, seed: int, bootstraps: int) -> FittedKernels:
    rows = [*core, *rest]
    measured = np.array([row.quiet for row in core])
    weights = np.array([row.weight for row in core])
    x = solve(Problem(model.times, measured, model.start, model.spread, weights))
    again = [_refit(model, core, weights, x, np.random.default_rng((seed, index))) for index in range(bootstraps)]
    points = _points(model)
    intervals = {
        name: _interval(_value(name, x[index]), [_value(name, refit[index]) for refit in again], int(points[index]))
        for name, index in model.names.items()
    }
    kernels = with_rest(_table(model, x, Corrections(), library), rest)
    calls = [row.call for row in rows]
    calculated = np.array([kernels.time(call).seconds for call in calls])
    corrections = correct(calls, np.array([row.quiet for row in rows]) / calculated)
    return FittedKernels(replace(kernels, corrections=corrections), intervals, (*core, *rest))


def split_core(rows: Sequence[TimedCall]) -> tuple[list[TimedCall], list[TimedCall]]:
    """Return (calls that determine caches and memory, because their function has many sizes in their format; the rest)."""
    size_counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (entry_of(row.call), row.call.dtype)
        size_counts[key] = size_counts.get(key, 0) + 1
    counts = [size_counts[entry_of(row.call), row.call.dtype] for row in rows if _uses_memory(row.call)]
    min_count = max(MIN_CORE_SIZES, min(CORE_SIZES, max(counts, default=CORE_SIZES)))
    core = [
        row
        for row in rows
        if row.call.product is not None
        or (_uses_memory(row.call) and size_counts[entry_of(row.call), row.call.dtype] >= min_count)
    ]
    chosen = {id(row) for row in core}
    return (core, [row for row in rows if id(row) not in chosen]) if core else (list(rows), [])


def _uses_memory(call: LibraryCall) -> bool:
    """Return whether the times of a call at several sizes determine caches and memory."""
    return call.product is None and call.function not in COMPUTE_BOUND


def with_rest(kernels: MeasuredFunctions, rows: Sequence[TimedCall]) -> MeasuredFunctions:
    """Add functions with few sizes to the table: fit their call and element times with the fitted memory."""
    entries: dict[str, list[TimedCall]] = {}
    for row in rows:
        entries.setdefault(entry_of(row.call), []).append(row)
    functions = dict(kernels.functions)
    for entry, timed_rows in entries.items():
        before = kernels.functions.get(entry, Function(counts=(math.inf, 0.0)))
        functions[entry] = _fit_function(kernels, entry, before, timed_rows)
    return replace(kernels, functions=with_plain(functions), forms=_forms(functions))


def _fit_function(kernels: MeasuredFunctions, entry: str, earlier: Function, rows: Sequence[TimedCall]) -> Function:
    """Fit the missing numbers of a function to its own rows."""
    formats = sorted({row.call.dtype for row in rows if row.call.count > 0})
    looped = any(row.call.rows > 1 for row in rows) and earlier.row <= 0
    names = [*(["call"] if earlier.call <= 0 else []), *formats, *(["row"] if looped else [])]
    nothing = Function(
        call=earlier.call, each=dict.fromkeys(formats, 0.0), row=earlier.row, log=entry.split(maxsplit=1)[0] in SORTED
    )
    bare = replace(kernels, functions={entry: nothing}, forms={}, corrections=Corrections())
    base = np.array([bare.time(row.call).seconds for row in rows])
    matrix = np.array([[_amount(name, row.call) for name in names] for row in rows])
    measured = np.array([row.quiet for row in rows])

    def times(x: Floats) -> tuple[Floats, Floats]:
        slopes = matrix * np.exp(x)
        return base + slopes.sum(1) + 1e-12, slopes

    expected = _expected(kernels, rows)
    guessed = {"call": 3e-7, "row": 1e-8} | expected
    start = np.log([guessed.get(name) or _first(matrix[:, column], measured) for column, name in enumerate(names)])
    spread = np.array([(CALL_SPREAD if name == "call" else ELEMENT_SPREAD) if name in expected else 3.0 for name in names])
    weights = np.array([row.weight for row in rows])
    x = solve(Problem(times, measured, start, spread, weights), steps=40)
    values = dict(zip(names, np.exp(x).tolist(), strict=True))
    counts = [max(row.call.count, 1.0) for row in rows]
    return Function(
        call=values.get("call", earlier.call),
        each={**earlier.each, **{dtype: values[dtype] for dtype in formats}},
        row=values.get("row", earlier.row),
        log=nothing.log,
        counts=(min(*counts, earlier.counts[0]), max(*counts, earlier.counts[1])),
    )


def _expected(kernels: MeasuredFunctions, rows: Sequence[TimedCall]) -> dict[str, float]:
    """Return the expected time (s) of a call and, by number format, of an element.

    The estimates are from similar measured functions, else from another CPU. A single size cannot separate the two times.
    """
    result: dict[str, float] = {}
    for row in rows:
        if row.call.count <= 0:
            continue
        function, times = estimate_function(kernels, row.call), typical_time(row.call.function, row.call.form, row.call.dtype)
        if function is not None:
            call, element = function.call, function.each[row.call.dtype]
        elif times is not None:
            _, element, call = times
        else:
            continue
        if element > 0:
            result[row.call.dtype] = element
        if call > 0:
            result["call"] = call
    return result


def _amount(name: str, call: LibraryCall) -> float:
    """Return how often a call incurs the time `call`, `row`, or of an element in a number format."""
    if name == "call":
        return 1.0
    if name == "row":
        return call.rows if call.rows > 1 else 0.0
    return work_of(call) if call.dtype == name else 0.0


def _first(amounts: Floats, measured: Floats) -> float:
    """Return a start value for the time per element, from the largest call."""
    return float(max(np.min(measured[amounts > 0] / amounts[amounts > 0]), 1e-12))


def among_others(fitted: FittedKernels, measurements: Measurements, draws: int = BOOTSTRAPS, seed: int = 0) -> FittedKernels:
    """Add the slowdown of the call overhead after other calls, from the case `mixed`; without this case, it is 1."""
    rows, draw = list(measurements.of(op="mixed")), np.random.default_rng(seed)
    if not rows:
        return fitted
    values, again = [], []
    for row in rows:
        side = row.params.get("side", 1)
        times = [fitted.kernels.time(call) for call in mixed_calls(int(side) if isinstance(side, int) else 1)
                 if not fitted.kernels.unknown(call)]  # fmt: skip
        starts, rest = sum(time_.call * time_.ratio for time_ in times), sum(time_.body for time_ in times)
        ratios = [(quiet(draw.choice(row.seconds, len(row.seconds)).tolist()) - rest) / starts for _ in range(draws)]
        values.append(max((row.quiet - rest) / starts, 1.0))
        again.append([max(ratio, 1.0) for ratio in ratios])
    value = float(median(values))
    interval = _interval(value, [float(median_) for median_ in np.median(np.array(again), axis=0)], len(rows))
    spread = Interval(value, min(interval.low, *values), max(interval.high, *values), len(rows))
    intervals = {**fitted.intervals, ("among_others",): spread}
    return replace(fitted, kernels=replace(fitted.kernels, among_others=value), intervals=intervals)


def page_faults(fitted: FittedKernels, measurements: Measurements) -> FittedKernels:
    """Add the time of a page fault of 4 KiB beyond the rate of huge pages; if it was not measured, it is 0."""
    rate = fitted.kernels.pages
    times = [
        max(row.quiet / faults - size / faults / (rate or math.inf), 0.0)
        for row in measurements.of("allocation", "mapped")
        if row.params.get("pages") == "small"
        and isinstance(size := row.params.get("bytes"), int)
        and (faults := min(row.faults, default=0.0)) >= size / (2 * SMALL_PAGE)
    ]
    if not times:
        return fitted
    value = float(median(times))
    spread = Interval(value, min(times), max(times), len(times))
    return replace(fitted, kernels=replace(fitted.kernels, fault=value), intervals={**fitted.intervals, ("fault",): spread})


@cache
def mixed_calls(side: int) -> tuple[LibraryCall, ...]:
    """Return the calls of the case `mixed`."""
    from hwsim_calibrate.kernels import mixed_step
    from hwsim_calibrate.recording.numpy_patches import calls_of

    return tuple(calls_of(partial(mixed_step, side)))


def _refit(model: Model, rows: Sequence[TimedCall], weights: Floats, x: Floats, draw: np.random.Generator) -> Floats:
    measured = np.array([quiet(draw.choice(row.seconds, len(row.seconds)).tolist()) for row in rows])
    drawn = weights * draw.exponential(1.0, len(rows))
    return solve(Problem(model.times, measured, model.start, model.spread, drawn), x, steps=12)


def _value(name: Name, x: float) -> float:
    """Return a number of the table from x; `overlap` is at most 1."""
    value = float(np.exp(x))
    return min(value, 1.0) if name == ("overlap",) else value


def _points(model: Model) -> Floats:
    """Return for each number the count of calls that spend more than 1 % of their time on it."""
    times, slopes = model.times(model.start)
    return np.asarray((slopes / times[:, None] > 0.01).sum(0), np.float64)


def _interval(value: float, again: Sequence[float], points: int) -> Interval:
    if not again:
        return Interval(value, value, value, points)
    low, high = np.quantile(again, [0.025, 0.975])
    return Interval(value, min(float(low), value), max(float(high), value), points)


# ---- from parameters to a table ----


def _table(model: Model, x: Floats, corrections: Corrections, library: str) -> MeasuredFunctions:
    values = {name: float(np.exp(x[index])) for name, index in model.names.items()}
    functions = _functions(model, values)
    return MeasuredFunctions(
        library=library,
        into={into: values["into", into] for into in ("new", "out", "self")},
        overlap=min(values["overlap",], 1.0),
        pages=1.0 / values["pages",],
        lookup=values["lookup",],
        levels={level: _tier(values, level) for level in model.levels},
        functions=with_plain(functions),
        forms=_forms(functions),
        products=_products(model, values),
        corrections=corrections,
    )


def _tier(values: Mapping[Name, float], level: str) -> CacheTier:
    rates = {role: values["levels", level, role] for role in ("read", "write", "update")}
    finite = {role: 1.0 / rate for role, rate in rates.items() if rate > NEGLIGIBLE}
    keys = {key: values["levels", level, key] for key in ("beyond", "lookup", "sharpness")}
    keys["sharpness"] = min(keys["sharpness"], SHARPEST)
    return CacheTier(**keys, **finite)


def _functions(model: Model, values: Mapping[Name, float]) -> dict[str, Function]:
    counts: dict[str, list[float]] = {}
    for call in model.calls:
        if call.product is None:
            counts.setdefault(entry_of(call), []).append(max(call.count, 1.0))
    functions = {}
    for entry, sizes in sorted(counts.items()):
        path = ("functions", entry)
        functions[entry] = Function(
            call=values[*path, "call"],
            each={name[3]: value for name, value in values.items() if name[:2] == path and name[2] == "each"},
            row=values.get((*path, "row"), 0.0),
            log=entry.split()[0] in SORTED,
            counts=(min(sizes), max(sizes)),
        )
    return functions


def with_plain(functions: Mapping[str, Function]) -> dict[str, Function]:
    """Add an entry without form for each function; if it was not measured, copy the form with the largest size."""
    table = dict(functions)
    for entry, function in functions.items():
        name, _, form = entry.partition(" ")
        if form and name not in functions and (name not in table or table[name].counts[1] < function.counts[1]):
            table[name] = function
    return dict(sorted(table.items()))


def _forms(functions: Mapping[str, Function]) -> dict[str, Form]:
    """Return the additional time of each form: the median over functions that were measured with and without it."""
    more: dict[str, list[tuple[float, float]]] = {}
    slower: dict[str, list[float]] = {}
    for entry, function in functions.items():
        base, _, form = entry.rpartition(" ")
        if base in functions:
            more.setdefault(form, []).append((max(function.call - functions[base].call, 0.0), function.row))
            if form in SLOWER:
                plain = functions[base].each
                slower.setdefault(form, []).extend(time - plain[dtype] for dtype, time in function.each.items() if dtype in plain)
    return {
        form: Form(
            call=median(call for call, _ in costs),
            row=median(row for _, row in costs),
            each=max(median(slower.get(form, [0.0])), 0.0),
        )
        for form, costs in sorted(more.items())
    }


def _products(model: Model, values: Mapping[Name, float]) -> dict[str, MatmulTime]:
    sizes: dict[str, list[float]] = {}
    for call in model.calls:
        if call.product is not None:
            sizes.setdefault(call.dtype, []).append(float(call.product.m) * call.product.n * call.product.k)
    products = {}
    for entry, counts in sorted(sizes.items()):
        numbers = {name[2]: value for name, value in values.items() if name[:2] == ("products", entry)}
        products[entry] = MatmulTime(**{**numbers, "flop": 1.0 / numbers["flop"]}, counts=(min(counts), max(counts)))
    return products


def without_corrections(kernels: MeasuredFunctions) -> MeasuredFunctions:
    """Return the table without its corrections."""
    return replace(kernels, corrections=Corrections())
