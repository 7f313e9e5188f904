"""Results of importing logs: a part with intervals and sources, the residuals, and omitted information."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any, Final

from hwsim.formats import percent
from hwsim.records import dataclass
from hwsim.views.kit.lines import WIDTH, labelled_lines
from hwsim.views.kit.table import Column, align_columns
from hwsim_calibrate.fit.machine_file import quantity, text

REPEATS: Final = 0.03  # standard deviation between runs on one machine, as `measured` in hwsim/errors.yaml
TWO_SIDED: Final = 1.96  # standard deviations of a 95 % interval
MIN_RUNS: Final = 3  # from which the difference between runs is estimated
MAX_ROWS: Final = 40  # in the printed table


@dataclass(frozen=True, slots=True)
class Number:
    """A fitted number of a part in SI units.

    Args:
        value: the number.
        unit: its unit.
        points: number of rows that determine it.
        sigma: standard deviation of its logarithm from the scatter of the rows; None for a single row.
        repeats: standard deviation of the logarithm between several runs, if known.
        note: assumptions.
    """

    value: float
    unit: str
    points: int = 1
    sigma: float | None = None
    repeats: float | None = None
    note: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval from the scatter of the rows; None for a single row."""
        if self.sigma is None:
            return None
        half = math.exp(min(TWO_SIDED * self.sigma, 20.0))
        return self.value / half, self.value * half

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithm for another run."""
        return math.hypot(self.sigma or 0.0, REPEATS if self.repeats is None else self.repeats)

    def content(self) -> dict[str, Any]:
        """Return the number as the content of a file."""
        shown: dict[str, Any] = {"value": self._quantity(self.value)}
        if self.interval is not None:
            shown["ci95"] = [self._quantity(bound) for bound in self.interval]
        shown |= {"points": self.points, "spread": percent(min(self.spread, 3.0), ".2g")}
        return shown | ({"note": self.note} if self.note else {})

    def _quantity(self, value: float) -> str | float:
        if self.unit == "%":
            return percent(value, ".4g")
        return float(f"{value:.4g}") if self.unit == "1" else quantity(value, self.unit)


def number_of(values: Sequence[float], unit: str, note: str = "", *, separate_runs: bool = False) -> Number:
    """Return the median of several rows with its uncertainty.

    Args:
        values: values of the rows.
        unit: their unit.
        note: assumptions.
        separate_runs: whether each value is from its own run, so that three or more determine the difference between runs.

    >>> number_of([10.0, 10.2, 9.8], "B/s").value, number_of([7.0], "s").interval
    (10.0, None)
    """
    logs = [math.log(value) for value in values]
    if len(logs) < 2:
        return Number(values[0], unit, 1, note=note)
    deviation = stdev(logs)
    repeats = deviation if separate_runs and len(logs) >= MIN_RUNS else None
    return Number(median(values), unit, len(logs), deviation / math.sqrt(len(logs)), repeats, note)


def scale_of(pairs: Sequence[tuple[float, float]], unit: str, note: str = "") -> Number:
    """Return the geometric mean of measured / expected over some (measured, expected)."""
    logs = [math.log(measured / expected) for measured, expected in pairs]
    value = math.exp(fmean(logs))
    return Number(value, unit, len(logs), stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else None, note=note)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the logs with its measured and fitted value."""

    what: str
    unit: str
    measured: float
    fitted: float

    @property
    def error(self) -> float:
        """Relative error of the fit."""
        return self.fitted / self.measured - 1.0


@dataclass(frozen=True, slots=True)
class Result:
    """A part or workload from logs.

    Args:
        tool: name of the tool.
        keys: content of the file; a `Number` is written with its interval.
        rows: rows with residuals.
        left: omitted or assumed information, as text.
    """

    tool: str
    keys: Mapping[str, Any]
    rows: tuple[Row, ...] = ()
    left: tuple[str, ...] = ()

    def content(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {key: _plain(value) for key, value in self.keys.items()}

    def yaml(self) -> str:
        """Return the file as YAML."""
        return text(self.content())

    def numbers(self) -> dict[str, Number]:
        """Return path -> fitted number."""
        return dict(_numbers(self.keys, ""))

    def is_finite(self) -> bool:
        """Return whether all numbers are finite."""
        numbers = [
            value for number in self.numbers().values() for value in (number.value, *(number.interval or ()), number.spread)
        ]
        return all(map(math.isfinite, [*numbers, *(row.error for row in self.rows)]))

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: fit/1`."""
        return {
            "hwsim": "fit/1",
            "tool": self.tool,
            "file": self.content(),
            "numbers": {
                path: {
                    "value": number.value, "unit": number.unit, "points": number.points, "spread": number.spread,
                    "low": number.interval and number.interval[0], "high": number.interval and number.interval[1],
                }
                for path, number in self.numbers().items()
            },
            "rows": [
                {"what": row.what, "unit": row.unit, "measured": row.measured, "fitted": row.fitted, "error": row.error}
                for row in self.rows
            ],
            "left": list(self.left),
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        errors = sorted(abs(row.error) for row in self.rows)
        if errors:
            middle = percent(errors[len(errors) // 2], ".1f")
            count = f"{len(errors)} row{'s' if len(errors) > 1 else ''}"
            yield f"{self.tool}: {count}, median error {middle}, maximum {percent(errors[-1], '.1f')}"
            shown = self.rows[:MAX_ROWS]
            yield from align_columns([
                Column("row", [row.what for row in shown], right=False),
                Column("measured", [quantity(row.measured, row.unit) for row in shown]),
                Column("fitted", [quantity(row.fitted, row.unit) for row in shown]),
                Column("error", [percent(row.error, "+.1f") for row in shown]),
            ], widest=WIDTH)  # fmt: skip
            if len(shown) < len(self.rows):
                yield f"  and {len(self.rows) - len(shown)} more (--json)"
        if self.keys.get("notes"):
            yield from labelled_lines("notes", str(self.keys["notes"]))
        for sentence in self.left:
            yield from labelled_lines("omitted", sentence)


def _plain(value: Any) -> Any:
    if isinstance(value, Number):
        return value.content()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _numbers(value: Any, path: str) -> Iterator[tuple[str, Number]]:
    if isinstance(value, Number):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{path}.{key}" if path else str(key))


def part(
    tool: str, kind: str, ref: str, keys: Mapping[str, Any], *, notes: str = "", use: str = "", rows: Sequence[Row] = (),
    left: Sequence[str] = (),
) -> Result:  # fmt: skip
    """Return a part.

    Args:
        tool: name of the tool.
        kind: kind of the part.
        ref: source of the numbers.
        keys: fitted keys.
        notes: notes of the part.
        use: part that provides all other keys.
        rows: rows with residuals.
        left: omitted information.
    """
    content: dict[str, Any] = {"hwsim": "part/1", "kind": kind, **({"use": use} if use else {"name": f"measured by {tool}"})}
    content |= {"notes": notes} if notes else {}
    return Result(tool, content | {"source": "measured", "ref": ref, **keys}, tuple(rows), tuple(left))
