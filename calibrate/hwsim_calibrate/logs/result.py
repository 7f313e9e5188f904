"""Files from logs: a part's file with the interval and the source of each number, the residuals, and what no key holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any, Final

from hwsim.formats import percent
from hwsim.records import dataclass
from hwsim.views.kit.lines import WIDTH, labelled_lines
from hwsim.views.kit.table import Column, align_columns
from hwsim_calibrate.fit.writing import quantity, text

REPEATS: Final = 0.03  # one standard deviation between runs of one benchmark on one machine, as `measured` of hwsim/errors.yaml
TWO_SIDED: Final = 1.96  # standard deviations of a 95 % interval
RUNS: Final = 3  # from which on they say how far runs are apart
SHOWN: Final = 40  # rows


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a part in SI units.

    Args:
        sigma: standard deviation of its logarithm by the rows themselves; None where one row is all there is.
        points: rows that it rests on.
        repeats: standard deviation of the logarithm between runs, where several were given.
        note: what was assumed.
    """

    value: float
    unit: str
    points: int = 1
    sigma: float | None = None
    repeats: float | None = None
    note: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Interval of 95 %, by the rows; None of one row."""
        if self.sigma is None:
            return None
        half = math.exp(min(TWO_SIDED * self.sigma, 20.0))
        return self.value / half, self.value * half

    @property
    def spread(self) -> float:
        """One standard deviation of what another run would say."""
        return math.hypot(self.sigma or 0.0, REPEATS if self.repeats is None else self.repeats)

    def said(self) -> dict[str, Any]:
        """The number as a file has it."""
        shown: dict[str, Any] = {"value": self._quantity(self.value)}
        if self.interval is not None:
            shown["ci95"] = [self._quantity(each) for each in self.interval]
        shown |= {"points": self.points, "spread": percent(min(self.spread, 3.0), ".2g")}
        return shown | ({"note": self.note} if self.note else {})

    def _quantity(self, value: float) -> str | float:
        if self.unit == "%":
            return percent(value, ".4g")
        return float(f"{value:.4g}") if self.unit == "1" else quantity(value, self.unit)


def number_of(values: Sequence[float], unit: str, note: str = "", *, apart: bool = False) -> Number:
    """The number that several rows say: their median, and how far it may be off.

    Args:
        apart: each is from a run of its own, so that three or more also say how far runs are apart.

    >>> number_of([10.0, 10.2, 9.8], "B/s").value, number_of([7.0], "s").interval
    (10.0, None)
    """
    logs = [math.log(value) for value in values]
    if len(logs) < 2:
        return Number(values[0], unit, 1, note=note)
    deviation = stdev(logs)
    repeats = deviation if apart and len(logs) >= RUNS else None
    return Number(median(values), unit, len(logs), deviation / math.sqrt(len(logs)), repeats, note)


def scale_of(pairs: Sequence[tuple[float, float]], unit: str, note: str = "") -> Number:
    """The factor from `expected` to `measured` of these (measured, expected), in the mean of the logarithms."""
    logs = [math.log(measured / expected) for measured, expected in pairs]
    value = math.exp(fmean(logs))
    return Number(value, unit, len(logs), stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else None, note=note)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the logs, and what the fitted part says of it."""

    what: str
    unit: str
    measured: float
    fitted: float

    @property
    def error(self) -> float:
        """(fitted - measured) / measured."""
        return self.fitted / self.measured - 1.0


@dataclass(frozen=True, slots=True)
class Result:
    """A part or workload from logs.

    Args:
        said: content of its file; a `Number` stands for what the file says of it.
        left: what the logs say that no key of the file holds, in words.
    """

    tool: str
    said: Mapping[str, Any]
    rows: tuple[Row, ...] = ()
    left: tuple[str, ...] = ()

    def content(self) -> dict[str, Any]:
        """The content of the file."""
        return {key: _plain(value) for key, value in self.said.items()}

    def yaml(self) -> str:
        """The file."""
        return text(self.content())

    def numbers(self) -> dict[str, Number]:
        """Every fitted number by its path."""
        return dict(_numbers(self.said, ""))

    def is_finite(self) -> bool:
        """Whether all its numbers are numbers."""
        numbers = [
            value for number in self.numbers().values() for value in (number.value, *(number.interval or ()), number.spread)
        ]
        return all(map(math.isfinite, [*numbers, *(row.error for row in self.rows)]))

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: fit/1`."""
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
            yield f"{self.tool}: {count}, median error {middle}, worst {percent(errors[-1], '.1f')}"
            shown = self.rows[:SHOWN]
            yield from align_columns([
                Column("row", [row.what for row in shown], right=False),
                Column("measured", [quantity(row.measured, row.unit) for row in shown]),
                Column("fitted", [quantity(row.fitted, row.unit) for row in shown]),
                Column("error", [percent(row.error, "+.1f") for row in shown]),
            ], widest=WIDTH)  # fmt: skip
            if len(shown) < len(self.rows):
                yield f"  and {len(self.rows) - len(shown)} more (--json)"
        if self.said.get("notes"):
            yield from labelled_lines("notes", str(self.said["notes"]))
        for sentence in self.left:
            yield from labelled_lines("not in it", sentence)


def _plain(value: Any) -> Any:
    if isinstance(value, Number):
        return value.said()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _numbers(value: Any, path: str) -> Iterator[tuple[str, Number]]:
    if isinstance(value, Number):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _numbers(each, f"{path}.{key}" if path else str(key))


def part(
    tool: str, kind: str, ref: str, keys: Mapping[str, Any], *, notes: str = "", use: str = "", rows: Sequence[Row] = (),
    left: Sequence[str] = (),
) -> Result:  # fmt: skip
    """A part with these keys; use: the part that has all the others."""
    content: dict[str, Any] = {"hwsim": "part/1", "kind": kind, **({"use": use} if use else {"name": f"measured by {tool}"})}
    content |= {"notes": notes} if notes else {}
    return Result(tool, content | {"source": "measured", "ref": ref, **keys}, tuple(rows), tuple(left))
