"""One side of a comparison: the numbers of a run, or of its JSON document."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from hwsim.costs.bill import Bill, bill_of
from hwsim.costs.machine_price import PricedItem
from hwsim.formats import family, natural
from hwsim.origins import PLAIN
from hwsim.records import dataclass
from hwsim.results.activities import bounds_of
from hwsim.results.cause import HOST
from hwsim.results.critical import critical_path
from hwsim.results.errors import NORMAL, table
from hwsim.results.interval import Interval, IntervalPart
from hwsim.results.ops import Ops, weights
from hwsim.results.result import Result
from hwsim.results.work import WorkAmount, work_of
from hwsim.spec import SpecError, Warning
from hwsim.studies.measures import BILL, BUSY, PEAK, TIME, NoSuchNumber, StudyMeasure, at_path, measures, number
from hwsim.ticks import FEMTO

Group = Literal["capacity", "time", "latency", "waiting", "program"]
Served = Literal["", "model", "program"]  # kind of service
GROUPS: Final[Mapping[str, Group]] = {  # kind of a cause -> group
    "capacity": "capacity",
    "time": "time",
    "floor": "time",
    "latency": "latency",
    "dispatch": "program",
    "return": "program",
    "pool": "waiting",
    "wait": "waiting",
}
RESULT: Final = "result/2"
ROUNDED: Final = 1e-9  # relative rounding error of a time in seconds


@dataclass(frozen=True, slots=True)
class OpSum:
    """The time of an op, summed over all ranks and iterations.

    Args:
        name: name of the op.
        times: number of executions.
        total_s: total time (s).
        critical_path_fs: time on the critical path (fs); None if the path is unknown.
    """

    name: str
    times: int
    total_s: float
    critical_path_fs: int | None

    @property
    def mean_s(self) -> float:
        """Average time of one execution (s)."""
        return self.total_s / self.times if self.times else 0.0


@dataclass(frozen=True)
class Side:
    """A run to compare.

    Args:
        machine: name of the machine.
        workload: name of the workload.
        settings: (path, value) of each setting.
        makespan_fs: time of the run (fs).
        causes: (group, name, fs) on the critical path; the times add up to the makespan.
        bounds: (bound, fs) on the critical path; the causes if a document has no bounds.
        ops: ops by name; empty if a document has none.
        work: amounts of work.
        measures: measures by column.
        interval: interval of the time; None for a service, or if not computed.
        service: kind of service; "" for other runs.
        warnings: warnings of the run.
        number: function that returns a measure, or raises `NoSuchNumber`.
        range_of: function that returns the ends of a measure with its own interval (energy, carbon, cost).
        bill: energy and cost by column, if the run has prices.
        prices: prices, highest first.
    """

    machine: str
    workload: str
    settings: tuple[tuple[str, str], ...]
    makespan_fs: int
    causes: tuple[tuple[Group, str, int], ...]
    bounds: tuple[tuple[str, int], ...]
    ops: tuple[OpSum, ...]
    work: tuple[WorkAmount, ...]
    measures: Mapping[str, float]
    interval: Interval | None
    service: Served
    warnings: tuple[Warning, ...]
    number: Callable[[StudyMeasure], float]
    range_of: Callable[[StudyMeasure], tuple[float, float] | None] = lambda _: None
    bill: Mapping[str, float] = field(default_factory=dict)
    prices: tuple[PricedItem, ...] = ()

    @property
    def makespan_s(self) -> float:
        """Time of the run (s)."""
        return self.makespan_fs / FEMTO

    @cached_property
    def by_op(self) -> Mapping[str, OpSum]:
        """Ops by name."""
        return {op.name: op for op in self.ops}


def of_run(run: Result, document: Callable[[], Mapping[str, Any]]) -> Side:
    """Return the side of a run.

    Args:
        document: function that returns the JSON document of the run, for measures that only it has.
    """
    path, bill = critical_path(run.timeline), None if run.paying is None else bill_of(run)
    spent: dict[tuple[Group, str], int] = {}
    for share in path.limited_by:
        key = GROUPS[share.cause.kind], family(str(share.cause))
        spent[key] = spent.get(key, 0) + share.time_fs
    return Side(
        run.machine,
        run.workload,
        run.settings,
        run.timeline.makespan_fs,
        tuple((*key, time) for key, time in spent.items()),
        tuple((str(part.bound), part.time_fs) for part in bounds_of(run.simulated, run.devices)),
        _ops_of(run),
        work_of(run),
        dict(measures(run)),
        None if run.server or not run.sure else run.interval,
        run.server,
        run.warnings,
        lambda wanted: number(run, wanted, document),
        lambda wanted: _range_of(run, wanted),
        {} if bill is None else _billed(bill),
        () if bill is None or bill.cost is None else bill.cost.prices,
    )


def _billed(bill: Bill) -> Mapping[str, float]:
    """Return energy and cost of a run with prices."""
    cost = None if bill.cost is None else bill.cost.total
    amounts = {"energy_joules": None if bill.energy is None else bill.energy.joules, "cost_usd": cost}
    return {name: amount.value for name, amount in amounts.items() if amount is not None}


def _range_of(run: Result, wanted: StudyMeasure) -> tuple[float, float] | None:
    """Return the ends of the energy, carbon or cost of a run; None for other measures."""
    if wanted.column not in BILL:
        return None

    bill = bill_of(replace(run, sure=False))  # only errors of prices and powers, because those of the time cancel in a ratio
    amount = bill.cost.total if wanted.column == "cost_usd" and bill.cost is not None else None
    if wanted.column in ("energy_joules", "power_watts") and bill.energy is not None:
        amount = bill.energy.joules
    if wanted.column == "carbon_kg" and bill.energy is not None:
        amount = bill.energy.carbon
    return None if amount is None or amount.low <= 0 else (amount.low, amount.high)


def _ops_of(run: Result) -> tuple[OpSum, ...]:
    """Return the ops on devices, and other ops on the critical path, by name."""
    timeline, flat = run.timeline, run.timeline.flat
    labels = flat.graph.labels
    names = [_op_name(label.name, label.kind) for label in labels]
    rows = Ops(timeline)
    op_counts = weights(timeline)
    number_of = {name: place for place, name in enumerate(dict.fromkeys(names))}
    code = np.array([number_of[name] for name in names], np.int64)
    numbers = rows.numbers
    took = (timeline.end[numbers] - rows.begin[numbers]).astype(np.float64) / FEMTO * op_counts[numbers]
    codes = code[flat.label[numbers]] if len(numbers) else numbers
    counts, sums = (np.bincount(codes, weight, len(number_of)) for weight in (op_counts[numbers], took))
    waited = dict.fromkeys(number_of, 0)
    for piece in critical_path(timeline):
        waited[names[flat.label[piece.op]]] += piece.end_fs - piece.start_fs
    spent = [OpSum(name, int(counts[index]), float(sums[index]), waited[name]) for name, index in number_of.items()]
    return tuple(sorted((op for op in spent if op.times or op.critical_path_fs), key=lambda op: natural(op.name)))


def _op_name(name: str, kind: str) -> str:
    """Return the name of an op; time of the program for an op has the name of its kind.

    >>> _op_name("forward", "dispatch"), _op_name("grads: push", "compute")
    ('dispatch', 'grads')
    """
    return kind if kind in HOST else name.partition(": ")[0] or kind


def of_document(document: Mapping[str, Any], called: str) -> Side:
    """Return the side of a document of `simulate --json`.

    Args:
        called: name of the file, for messages.

    Raises:
        SpecError: the document is not a valid run.
    """
    if document.get("hwsim") != RESULT:
        raise SpecError.of(None, f"{called}: expected a run ('{RESULT}'), got `hwsim: {document.get('hwsim')}`",
                                 "hwsim simulate MACHINE WORKLOAD --json --ops > run.json")  # fmt: skip
    try:
        return _read(document)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        text = f"missing key {error}" if isinstance(error, KeyError) else f"not a valid run: {error}"
        raise SpecError.of(None, f"{called}: {text}", "write the run again with this version of hwsim") from None


def _read(document: Mapping[str, Any]) -> Side:
    makespan_fs = int(document["makespan_fs"])
    spent: dict[tuple[Group, str], int] = {}
    for row in document["limited_by"]:
        key = GROUPS[row["kind"]], family(str(row["cause"]))
        spent[key] = spent.get(key, 0) + round(float(row["time_s"]) * FEMTO)
    if spent:  # times in seconds are rounded
        longest, lost = max(spent, key=lambda key: spent[key]), makespan_fs - sum(spent.values())  # integers
        if min(spent.values()) < 0 or abs(lost) > ROUNDED * makespan_fs + len(spent):
            raise ValueError("the times of its causes do not add up to the makespan")
        spent[longest] += lost
    service: Served = "model" if document.get("serving") else "program" if document.get("services") else ""
    sure = document.get("interval")
    work = tuple(WorkAmount(str(row["unit"]), float(row["amount"]), float(row["per_s"])) for row in document["work"])
    return Side(
        str(document["machine"]),
        str(document["workload"]),
        tuple((str(path), str(value)) for path, value in document.get("set", {}).items()),
        makespan_fs,
        tuple((*key, time) for key, time in spent.items()),
        tuple((str(row["bound"]), int(row["time_fs"])) for row in document.get("bounds", ()))
        or tuple((name, time) for (_, name), time in spent.items()),
        _ops_in(document.get("ops", ())),
        work,
        {},
        interval_of(sure, float(document["makespan_s"])) if sure and not service else None,
        service,
        tuple(Warning(str(row["code"]), str(row["text"])) for row in document.get("warnings", ())),
        lambda wanted: _number_in(document, wanted, work),
    )


def _ops_in(rows: Sequence[Mapping[str, Any]]) -> tuple[OpSum, ...]:
    times: dict[str, int] = {}
    total: dict[str, list[float]] = {}
    for row in rows:
        name = _op_name(str(row["name"]), str(row["kind"]))
        times[name] = times.get(name, 0) + 1
        total.setdefault(name, []).append(float(row["duration_s"]))
        if total[name][-1] < 0:
            raise ValueError(f"op '{name}' has a negative duration")
    return tuple(OpSum(name, times[name], math.fsum(total[name]), None) for name in sorted(times, key=natural))


_IN_DOCUMENT: Final = {
    "step_s": "trainings.0.step_s",
    "mfu": "trainings.0.mfu",
    "requests_per_s": "serving.0.requests_per_s",
    "ttft_p95_s": "serving.0.ttft.p95_s",
    "tpot_p95_s": "serving.0.tpot.p95_s",
}


def _number_in(document: Mapping[str, Any], wanted: StudyMeasure, work: Sequence[WorkAmount]) -> float:
    if wanted.column == TIME:
        return float(document["makespan_s"])
    if wanted.column == PEAK and document.get("memory"):
        return float(max(device["peak_bytes"] for device in document["memory"]))
    if wanted.column.startswith(BUSY):
        name = wanted.column.removeprefix(BUSY)
        used = {row["name"]: row["utilization"] for row in document.get("capacities", ())}
        if name in used:
            return float(used[name])
    pace = next((row.per_s for row in work if f"{row.unit}_per_s" == wanted.column), None)
    if pace is not None:
        return pace
    value = at_path(document, _IN_DOCUMENT.get(wanted.column, wanted.column).split("."))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoSuchNumber(wanted.title, "use time, or the path of a number in the file: trainings.0.step_s")
    return float(value)


def interval_of(entry: Mapping[str, Any], value: float) -> Interval:
    """Return the interval in a document of `hwsim.views.interval.say.as_dict`, with the errors of this version."""
    correction = math.log(entry.get("factor", 1.0))
    below, above = math.log(value / entry["low_s"]) + correction, math.log(entry["high_s"] / value) - correction
    level = int(entry["level"])
    parts = [_part_of(row, level) for row in entry["sources"]]
    shares = [float(row["variance_share"]) for row in entry["sources"]]
    variance = max((part.variance / share for part, share in zip(parts, shares, strict=True) if share > 0), default=0.0)
    besides = math.sqrt(variance * float(entry["run_level_share"]))
    return Interval(
        value, below, above, level, entry["basis"], entry["case"], int(entry["measurements"]), int(entry["held_out"]),
        float(entry["input_share"]), besides, tuple(parts), correction, entry.get("scored", ""),
        entry.get("regime", ""),
    )  # fmt: skip


def _part_of(row: Mapping[str, Any], level: int) -> IntervalPart:
    errors_of = table()
    regime, case, time_share, sigma = (row[key] for key in ("regime", "case", "time_share", "standard_deviation"))
    errors = None if regime.startswith(PLAIN) else errors_of.errors(regime, case)
    if errors is None:
        return IntervalPart(str(row["key"]), regime, case, time_share, sigma, 0.0, NORMAL[level])
    shared = time_share * errors.shared
    scatter = math.sqrt(max(0.0, sigma**2 - shared**2))
    return IntervalPart(
        str(row["key"]), regime, case, time_share, min(shared, sigma), scatter, errors.quantile(level), errors.rows, errors.units
    )
