"""Measured calls of a library -> the table of a CPU's `kernels`, each number with its interval."""

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
from hwsim_calibrate.fit.model import SHARPEST, Capacities, Model, Name, entry_of, work_of
from hwsim_calibrate.fit.solve import Floats, Problem, solve
from hwsim_calibrate.store import Measurements, Row, quiet

BOOTSTRAPS: Final = 24
SLOWER: Final = ("across",)  # forms that make each element slower
FEW: Final = 3  # sizes from which on it does so where no function has more
CORE: Final = 5  # sizes from which on a function in a format tells of memory, too
ALONE: Final = frozenset({*GENERAL, *SORTED, "bincount", "where"})  # functions whose arithmetic hides memory
LEAST: Final = 0.4  # weight of a call with every flag: large arrays have most of them, and nothing else tells of memory
LARGE: Final = 2.0**20  # bytes of an array that an allocator may have to ask the system for
HUGE: Final = 2.0**21  # bytes of the largest pages
SMALL: Final = 4096  # of the smallest
DOUBTFUL: Final[Mapping[str, float]] = {"unsteady": 0.5, "noisy": 0.7, "bimodal": 0.5, "shared": 0.7, "few": 0.7}
USUAL_CACHES: Final = {"L2": 48 * 1024.0, "L3": 2.0**20, "memory": 2.0**25}
AT_CALLS, AT_ELEMENTS = 0.2, 0.3  # spreads of what functions alike say of a call and an element; chosen on 997 calls of one CPU
NEVER: Final = 1e-13  # seconds a byte: less is nothing


@dataclass(frozen=True, slots=True)
class Timed:
    """One measured call: seconds per round, less the time of an empty call."""

    call: LibraryCall
    seconds: tuple[float, ...]
    weight: float
    case: str

    @property
    def quiet(self) -> float:
        return quiet(self.seconds)


@dataclass(frozen=True, slots=True)
class Interval:
    """A number, the interval of 95 % of the refits, and the `points` measured calls that it rests on."""

    value: float
    low: float
    high: float
    points: int


@dataclass(frozen=True, slots=True)
class FittedKernels:
    """The table, and the interval of each number by its path."""

    kernels: MeasuredFunctions
    intervals: Mapping[Name, Interval]
    timed: tuple[Timed, ...]


def timed(measurements: Measurements, suites: Sequence[str] = SUITES) -> tuple[Timed, ...]:
    """The rows of some suites that time one call of a library on one thread."""
    empty = min((row.quiet for row in measurements.of(op="pass")), default=0.0)
    rows = [row for row in measurements.rows if row.suite in suites and row.op != "pass"]
    return tuple(_timed(row, call, empty) for row in rows if (call := call_of(row)) is not None)


def _timed(row: Row, call: LibraryCall, empty: float) -> Timed:
    weight = max(math.prod(DOUBTFUL.get(flag, 1.0) for flag in row.flags), LEAST)
    seconds = tuple(max(each - empty, 0.1 * each) for each in row.seconds)
    if call.into == "new" and row.faults and call.made >= LARGE:  # the allocator may have pages left, by chance
        call = replace(call, fresh=call.written if min(row.faults) >= call.made / HUGE else 0.0)
    return Timed(call, seconds, weight, row.case)


def capacities_of(measurements: Measurements) -> Capacities:
    """Sizes of the caches as the system reports them, or the usual sizes: where the levels beyond the first begin."""
    sizes = dict(USUAL_CACHES) | reported_sizes(measurements)
    return Capacities(sizes if sizes["L2"] < sizes["L3"] < sizes["memory"] else dict(USUAL_CACHES))


def reported_sizes(measurements: Measurements) -> dict[str, float]:
    """Bytes of the level before each level beyond the first, as the system reports them."""
    sizes: dict[str, float] = {}
    for level, beyond in (("L1d", "L2"), ("L2", "L3"), ("L3", "memory")):
        value: Any = measurements.environment
        for key in ("cpu", "caches", level, "bytes"):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and value > 0:
            sizes[beyond] = float(value)
    return sizes


def fit_kernels(
    rows: Sequence[Timed],
    capacities: Capacities,
    *,
    library: str = "",
    seed: int = 0,
    bootstraps: int = BOOTSTRAPS,
) -> FittedKernels:
    """The table that fits these calls.

    Args:
        bootstraps: refits for the intervals, with rounds and weights drawn anew.
    """
    from hwsim_calibrate import blas

    with blas.using(1):  # small systems of equations: threads only get in each other's way
        core, rest = parted(rows)
        return _fit(core, rest, Model([row.call for row in core], capacities), library, seed, bootstraps)


def _fit(core: Sequence[Timed], rest: Sequence[Timed], model: Model, library: str, seed: int, bootstraps: int) -> FittedKernels:
    rows = [*core, *rest]
    measured = np.array([row.quiet for row in core])
    weights = np.array([row.weight for row in core])
    x = solve(Problem(model.times, measured, model.start, model.spread, weights))
    again = [_refit(model, core, weights, x, np.random.default_rng((seed, turn))) for turn in range(bootstraps)]
    points = _points(model)
    intervals = {
        name: _interval(_value(name, x[at]), [_value(name, each[at]) for each in again], int(points[at]))
        for name, at in model.names.items()
    }
    kernels = with_rest(_table(model, x, Corrections(), library), rest)
    calls = [row.call for row in rows]
    calculated = np.array([kernels.time(call).seconds for call in calls])
    corrections = correct(calls, np.array([row.quiet for row in rows]) / calculated)
    return FittedKernels(replace(kernels, corrections=corrections), intervals, (*core, *rest))


def parted(rows: Sequence[Timed]) -> tuple[list[Timed], list[Timed]]:
    """(calls that tell of caches and memory, because their function was timed at many sizes in that format; the others)."""
    many: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (entry_of(row.call), row.call.dtype)
        many[key] = many.get(key, 0) + 1
    telling = [many[entry_of(row.call), row.call.dtype] for row in rows if _tells(row.call)]
    enough = max(FEW, min(CORE, max(telling, default=CORE)))  # where none was timed at more, the most that there are
    core = [
        row
        for row in rows
        if row.call.product is not None or (_tells(row.call) and many[entry_of(row.call), row.call.dtype] >= enough)
    ]
    chosen = {id(row) for row in core}
    return (core, [row for row in rows if id(row) not in chosen]) if core else (list(rows), [])


def _tells(call: LibraryCall) -> bool:
    """Whether sizes of a call tell of caches and memory."""
    return call.product is None and call.function not in ALONE


def with_rest(kernels: MeasuredFunctions, rows: Sequence[Timed]) -> MeasuredFunctions:
    """The table with functions that were timed at few sizes: what a call and an element take, with memory as it was fitted."""
    entries: dict[str, list[Timed]] = {}
    for row in rows:
        entries.setdefault(entry_of(row.call), []).append(row)
    functions = dict(kernels.functions)
    for entry, timed_rows in entries.items():
        before = kernels.functions.get(entry, Function(counts=(math.inf, 0.0)))
        functions[entry] = _alone(kernels, entry, before, timed_rows)
    return replace(kernels, functions=with_plain(functions), forms=_forms(functions))


def _alone(kernels: MeasuredFunctions, entry: str, earlier: Function, rows: Sequence[Timed]) -> Function:
    """A function from its own rows; what is known of it already stays."""
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
    start = np.log([guessed.get(name) or _first(matrix[:, at], measured) for at, name in enumerate(names)])
    spread = np.array([(AT_CALLS if name == "call" else AT_ELEMENTS) if name in expected else 3.0 for name in names])
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


def _expected(kernels: MeasuredFunctions, rows: Sequence[Timed]) -> dict[str, float]:
    """Seconds of a call, and of an element by number format, as functions that were measured and take alike, or another CPU, say.

    One size does not say what of its time is the call and what its elements; a call's start differs less between functions.
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
    """The number of a call's `call`, `row`, or elements of a number format."""
    if name == "call":
        return 1.0
    if name == "row":
        return call.rows if call.rows > 1 else 0.0
    return work_of(call) if call.dtype == name else 0.0


def _first(amounts: Floats, measured: Floats) -> float:
    """A first guess of an element's time: of the largest call."""
    return float(max(np.min(measured[amounts > 0] / amounts[amounts > 0]), 1e-12))


def among_others(fitted: FittedKernels, measurements: Measurements, draws: int = BOOTSTRAPS, seed: int = 0) -> FittedKernels:
    """The table with the slowdown of a call's start after other calls, from the mixed cases; 1 where none were measured."""
    rows, draw = list(measurements.of(op="mixed")), np.random.default_rng(seed)
    if not rows:
        return fitted
    values, again = [], []
    for row in rows:
        side = row.params.get("side", 1)
        times = [fitted.kernels.time(call) for call in mixed_calls(int(side) if isinstance(side, int) else 1)
                 if not fitted.kernels.unknown(call)]  # fmt: skip
        starts, rest = sum(time_.call * time_.ratio for time_ in times), sum(each.body for each in times)
        ratios = [(quiet(draw.choice(row.seconds, len(row.seconds)).tolist()) - rest) / starts for _ in range(draws)]
        values.append(max((row.quiet - rest) / starts, 1.0))
        again.append([max(ratio, 1.0) for ratio in ratios])
    value = float(median(values))
    interval = _interval(value, [float(each) for each in np.median(np.array(again), axis=0)], len(rows))
    spread = Interval(value, min(interval.low, *values), max(interval.high, *values), len(rows))
    intervals = {**fitted.intervals, ("among_others",): spread}
    return replace(fitted, kernels=replace(fitted.kernels, among_others=value), intervals=intervals)


def page_faults(fitted: FittedKernels, measurements: Measurements) -> FittedKernels:
    """The table with the time of touching a 4 KiB page for the first time, beyond the rate of large pages; 0 if not measured."""
    rate = fitted.kernels.pages
    times = [
        max(row.quiet / met - size / met / (rate or math.inf), 0.0)
        for row in measurements.of("allocation", "mapped")
        if row.params.get("pages") == "small"
        and isinstance(size := row.params.get("bytes"), int)
        and (met := min(row.faults, default=0.0)) >= size / (2 * SMALL)
    ]
    if not times:
        return fitted
    value = float(median(times))
    spread = Interval(value, min(times), max(times), len(times))
    return replace(fitted, kernels=replace(fitted.kernels, fault=value), intervals={**fitted.intervals, ("fault",): spread})


@cache
def mixed_calls(side: int) -> tuple[LibraryCall, ...]:
    """The calls of the case `mixed`."""
    from hwsim_calibrate.kernels import mixed_step
    from hwsim_calibrate.recording.patching import calls_of

    return tuple(calls_of(partial(mixed_step, side)))


def _refit(model: Model, rows: Sequence[Timed], weights: Floats, x: Floats, draw: np.random.Generator) -> Floats:
    measured = np.array([quiet(draw.choice(row.seconds, len(row.seconds)).tolist()) for row in rows])
    drawn = weights * draw.exponential(1.0, len(rows))
    return solve(Problem(model.times, measured, model.start, model.spread, drawn), x, steps=12)


def _value(name: Name, x: float) -> float:
    """A number of the table; what overlaps is no more than all."""
    value = float(np.exp(x))
    return min(value, 1.0) if name == ("overlap",) else value


def _points(model: Model) -> Floats:
    """Number of calls with a noticeable part of their time from each number."""
    times, slopes = model.times(model.start)
    return np.asarray((slopes / times[:, None] > 0.01).sum(0), np.float64)


def _interval(value: float, again: Sequence[float], points: int) -> Interval:
    if not again:
        return Interval(value, value, value, points)
    low, high = np.quantile(again, [0.025, 0.975])
    return Interval(value, min(float(low), value), max(float(high), value), points)


# ---- numbers to a table ----


def _table(model: Model, x: Floats, corrections: Corrections, library: str) -> MeasuredFunctions:
    values = {name: float(np.exp(x[at])) for name, at in model.names.items()}
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
    finite = {role: 1.0 / rate for role, rate in rates.items() if rate > NEVER}
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
        at = ("functions", entry)
        functions[entry] = Function(
            call=values[*at, "call"],
            each={name[3]: value for name, value in values.items() if name[:2] == at and name[2] == "each"},
            row=values.get((*at, "row"), 0.0),
            log=entry.split()[0] in SORTED,
            counts=(min(sizes), max(sizes)),
        )
    return functions


def with_plain(functions: Mapping[str, Function]) -> dict[str, Function]:
    """The table with a plain entry for each function; if not measured, of the form with the largest size."""
    table = dict(functions)
    for entry, function in functions.items():
        name, _, form = entry.partition(" ")
        if form and name not in functions and (name not in table or table[name].counts[1] < function.counts[1]):
            table[name] = function
    return dict(sorted(table.items()))


def _forms(functions: Mapping[str, Function]) -> dict[str, Form]:
    """Additional cost of a form, over all functions that were measured with and without it."""
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
    """The formula alone."""
    return replace(kernels, corrections=Corrections())
