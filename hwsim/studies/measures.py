"""Measures of a run: the columns of a study, and any other number of a result by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hwsim.families_interface import FAMILIES, family_reports, quantities
from hwsim.formats import counted, format_quantity
from hwsim.records import dataclass
from hwsim.results.expect import HOURS, seconds_of
from hwsim.results.result import Result
from hwsim.spec import Mistakes, Place, did_you_mean
from hwsim.units import RATIO, Dimension
from hwsim.units import TIME as SECONDS

UNITS: Final = {
    "step_s": ("step", "s"),
    "tokens_per_s": ("tokens/s", "1"),
    "samples_per_s": ("samples/s", "1"),
    "mfu": ("MFU", "%"),
    "ttft_p95_s": ("TTFT p95", "s"),
    "tpot_p95_s": ("TPOT p95", "s"),
    "latency_p50_s": ("p50", "s"),
    "latency_p99_s": ("p99", "s"),
    "requests_per_s": ("requests/s", "1"),
    "goodput_per_s": ("goodput/s", "1"),
    "batches_per_s": ("batches/s", "1"),
    "busy": ("GPU busy", "%"),
}  # column -> (its title in the table, unit)
BILL: Final = {  # column -> title, unit, required options
    "energy_joules": ("energy", "J", "parts with `power:`"),
    "power_watts": ("power", "W", "parts with `power:`"),
    "carbon_kg": ("carbon", "kg", "the carbon of a grid: --site grid=400 g/kWh, or a list of prices that says it"),
    "cost_usd": ("cost", "USD", "a price of every part: --prices FILE, or --prices library"),
}
SERVICE: Final = "requests_per_s"  # a column of services only
TIME: Final = "makespan_s"
PEAK: Final = "peak_memory_bytes"
BUSY: Final = "busy:"
_NAMES: Final[Mapping[str, str]] = {  # alias -> column
    **{title.casefold(): column for column, (title, _) in UNITS.items()},
    **{column.removesuffix("_s"): column for column in UNITS if not column.endswith("_per_s")},
    **{column: column for column in UNITS},
    **{title: column for column, (title, _, _) in BILL.items()},
    **{column: column for column in BILL},
    "time": TIME,
    "makespan": TIME,
    TIME: TIME,
    "peak memory": PEAK,
    "peak_memory": PEAK,
    PEAK: PEAK,
}
_DOCUMENT: Final = frozenset(
    {
        "calibrated",
        "cost",
        "per_unit",
        "energy",
        "entire_training",
        "bounds",
        "capacities",
        "collectives",
        "events",
        "expect",
        "fold",
        "interval",
        "issued_s",
        "jobs",
        "latency_curves",
        "limited_by",
        "makespan_fs",
        "memory",
        "op_count",
        "requests",
        *(family.rows for family in FAMILIES.values() if family.rows),
    }
)  # first keys of `simulate --json` under which there are numbers
_UNITS: Final = (("_per_s", "1"), ("_fs", "1"), ("_s", "s"), ("_bytes", "B"), ("utilization", "%"), ("share", "%"), ("mfu", "%"))
_MOST: Final = ("_per_s", "/s", "rate", "utilization", "mfu", "busy", "computing")


class NoSuchNumber(LookupError):
    """An error for a number that a result does not have; `hint` lists those that it has."""

    def __init__(self, name: str, hint: str, message: str = "") -> None:
        super().__init__(message or f"this run has no measure '{name}'")
        self.hint = hint


@dataclass(frozen=True, slots=True)
class StudyMeasure:
    """A measure by which rows are compared.

    Args:
        column: name in CSV and JSON.
        title: name in tables.
        unit: SI unit; "h" for GPU-hours.
        most: whether larger is better.
    """

    column: str
    title: str
    unit: str
    most: bool

    @property
    def is_pace(self) -> bool:
        """Whether the ratio of two values is a speed-up: a time of the same work, or a throughput."""
        return self.column == TIME or self.title.endswith("/s")

    def shown(self, value: float | None) -> str:
        """Return a value as a table cell.

        >>> measure("mfu").shown(0.371), measure("step").shown(0.2), measure("requests/s").shown(3.94), measure("mfu").shown(None)
        ('37.1 %', '200 ms', '3.94', '-')
        """
        if value is None:
            return "-"
        if self.unit == "1":
            return counted(value)
        return format_quantity(seconds_of(self.column, value), self.unit)


def measure(name: str) -> StudyMeasure:
    """Return the measure with this name or column.

    >>> measure("samples/s").column, measure("TTFT p95").column, measure("memory.0.peak_bytes").unit
    ('samples_per_s', 'ttft_p95_s', 'B')
    """
    column = _NAMES.get(name.strip().casefold(), name.strip())
    if column == TIME:
        return StudyMeasure(TIME, "time", "s", most=False)
    if column == PEAK:
        return StudyMeasure(PEAK, "peak memory", "B", most=False)
    if column in UNITS:
        title, unit = UNITS[column]
        return StudyMeasure(column, title, unit, most=_is_most(column))
    if column in BILL:
        title, unit, _ = BILL[column]
        return StudyMeasure(column, title, unit, most=False)
    if column.startswith(BUSY):
        return StudyMeasure(column, column, "%", most=True)
    unit = next((unit for end, unit in _UNITS if column.endswith(end)), "1")
    if (dimension := _expected(column)) is not None:
        unit = "h" if column.rpartition(".")[2] in HOURS else "s" if dimension is SECONDS else "%" if dimension is RATIO else "1"
        return StudyMeasure(column, column, unit, most=_is_most(column) or column.endswith("goodput"))
    return StudyMeasure(column, column, unit, most=_is_most(column))


def refuse_unknown(name: str, place: Place | None, mistakes: Mistakes) -> None:
    """Add a mistake for a name that cannot be a measure.

    >>> mistakes = Mistakes()
    >>> for name in ("mfu", "busy:gpu0.compute", "memory.gpu0.peak_bytes", "tokens/sec"):
    ...     refuse_unknown(name, None, mistakes)
    >>> [mistake.message for mistake in mistakes]
    ["unknown measure 'tokens/sec'"]
    """
    column = measure(name).column
    is_known = column in _NAMES.values() or _expected(column) is not None
    if is_known or column.startswith(BUSY) or column.split(".")[0] in _DOCUMENT:
        return
    titles = [measure(name).title for name in dict.fromkeys(_NAMES.values())]
    near = did_you_mean(name, titles) or ""
    listed = f"known: {', '.join(titles)}, busy:CAPACITY, or the path of a number in `simulate --json`"
    mistakes.add(place, f"unknown measure '{name}'", listed if not near or near.startswith("known") else f"{near} {listed}")


def throughput(unit: str) -> StudyMeasure:
    """Return the throughput measure of a unit of work.

    >>> throughput("FLOP").title, throughput("samples").column
    ('FLOP/s', 'samples_per_s')
    """
    column = measure(f"{unit}/s")
    if column.column in UNITS:
        return column
    return StudyMeasure(f"{unit.casefold()}_per_s", f"{unit}/s", f"{unit}/s" if unit in ("FLOP", "B") else "1", most=True)


def measures(result: Result) -> tuple[tuple[str, float], ...]:
    """Yield (column, value in SI units) of the first training, service and pipeline, in the order of `UNITS`."""
    values = dict(pair for report in family_reports(result) for pair in report.measures(result))
    return tuple((name, values[name]) for name in UNITS if name in values)


def number(result: Result, wanted: StudyMeasure, document: Callable[[], Mapping[str, Any]]) -> float:
    """Return the value of a measure.

    Args:
        result: the run.
        wanted: the measure.
        document: function that returns the JSON document of `simulate --json`, for paths into it.

    Raises:
        NoSuchNumber: the result has no such number.
    """
    values = {TIME: result.makespan_s, **dict(measures(result))}
    if result.memory:
        values[PEAK] = float(max(device.peak for device in result.memory))
    if wanted.column in values:
        return values[wanted.column]
    if wanted.column in BILL:
        return _billed(result, wanted)
    if wanted.column in UNITS and any(report.grows(result) for report in family_reports(result)):
        raise NoSuchNumber(
            wanted.title, "use a lower arrival rate", f"overloaded: {wanted.title} keeps growing, so there is no steady state"
        )
    if wanted.column.startswith(BUSY):
        return _utilization(result, wanted.column)
    if _expected(wanted.column) is not None:
        for told in result.told.values():
            if (value := told.expected().get(wanted.column)) is not None:
                return value
    value = at_path(document(), wanted.column.split("."))
    if isinstance(value, bool) or not isinstance(value, int | float):
        titles = [measure(column).title for column in values]
        hint = did_you_mean(wanted.title, titles) or ""
        listed = f"known: {', '.join(titles)}, busy:CAPACITY, or the path of a number in `simulate --json`: {TIME}"
        raise NoSuchNumber(wanted.title, listed if not hint or hint.startswith("known") else f"{hint} {listed}")
    return float(value)


def _expected(column: str) -> Dimension | None:
    """Return the dimension of an `expect:` quantity; None for other names."""
    return None if column.split(".", maxsplit=1)[0] in _DOCUMENT else quantities().get(column.rpartition(".")[2])


def _utilization(result: Result, column: str) -> float:
    """Return the share of the time in which a capacity is busy; a folded device is as busy as its representative.

    Raises:
        NoSuchNumber: the capacity does not exist.
    """
    name = column.removeprefix(BUSY)
    used = {usage.capacity: usage.utilization for usage in result.usage}
    alike = result.simulated.flat.graph.alike
    for first, names in () if alike is None else alike.members.items():
        if name in names and first in used:
            return used[first]
    if name not in used:
        raise NoSuchNumber(column, did_you_mean(name, used) or "a capacity of `simulate --json`: busy:gpu0.compute")
    return used[name]


def _billed(result: Result, wanted: StudyMeasure) -> float:
    """Return energy, carbon or cost of a run.
    Raises:
        NoSuchNumber: a part has no power or no price.
    """
    from hwsim.costs.bill import bill_of

    bill = bill_of(result)
    energy, cost = bill.energy, bill.cost
    value: float | None = None
    if wanted.column == "cost_usd":
        value = None if cost is None or cost.total is None else cost.total.value
        missing = () if cost is None else cost.missing
    else:
        missing = () if energy is None else energy.missing
        if energy is not None and energy.complete:
            carbon = None if energy.carbon is None else energy.carbon.value
            value = {"energy_joules": energy.joules.value, "power_watts": energy.watts, "carbon_kg": carbon}[wanted.column]
    if value is None:
        named = f"no data for {', '.join(missing[:4])}: it" if missing else "it"
        raise NoSuchNumber(wanted.title, f"{named} requires {BILL[wanted.column][2]}")
    return value


def at_path(inside: Any, steps: Sequence[str]) -> Any:
    """Return the value at a path of keys, list indices or element names; names may contain dots."""
    if not steps:
        return inside
    for length in range(len(steps), 0, -1):
        step, rest = ".".join(steps[:length]), steps[length:]
        if isinstance(inside, Mapping) and step in inside:
            return at_path(inside[step], rest)
        if isinstance(inside, list):
            for place, element in enumerate(inside):
                names = [element.get(key) for key in ("name", "device", "cause")] if isinstance(element, Mapping) else []
                if step in (*names, str(place)):
                    return at_path(element, rest)
    return None


def _is_most(name: str) -> bool:
    return name.endswith(_MOST)
