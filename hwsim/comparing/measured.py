"""Compare a run with a table of measured op times.

A table is CSV with a header line, or JSON. Its columns are `op`, `time` (of one execution) or `total` (of all executions), as
`12.3 ms` or in seconds, and optionally `times`, the number of executions. The row `makespan` is the whole run.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from hwsim.api import Run
from hwsim.comparing.parameters import Files
from hwsim.comparing.run_comparison import run_files
from hwsim.comparing.sides import Side, of_document, of_run
from hwsim.formats import format_quantity, percent
from hwsim.records import dataclass
from hwsim.results.cause import binding
from hwsim.results.coverage import MEASURED, mark_of
from hwsim.spec import Mistakes, Place, Warning, did_you_mean
from hwsim.spec.packed import read_json
from hwsim.spec.tree import unprintable
from hwsim.units import TIME, UnitError, parse_as
from hwsim.views.bars import draw
from hwsim.views.bars.draw import BarFigure, FigureBar
from hwsim.views.interval.say import EXACT, TITLE, range_text, relative_range
from hwsim.views.kit import warning_lines
from hwsim.views.kit.answer_forms import FigureAnswer
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.figure import run_caption
from hwsim.views.kit.lines import LABEL, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_middle
from hwsim.workload import sources

WHOLE: Final = "makespan"  # name of the row of the whole run
NAMES: Final = ("op", "name")
EACH: Final = ("time", "time_s", "each", "each_s")
TOTAL: Final = ("total", "total_s")
TIMES: Final = ("times", "count")
COLUMNS: Final = "op, and time (of one execution) or total (of all executions); optionally count"
SHOWN: Final = 20
FEW: Final = 3  # number of ops without a measurement that are named
NAME: Final = 40  # characters of a name


@dataclass(frozen=True, slots=True)
class MeasuredOp:
    """A row of the table: time of one execution or of all (s), and the number of executions if known."""

    name: str
    each_s: float | None
    total_s: float | None
    times: int | None
    place: Place


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """The measured and predicted time of an op, for all its executions (s)."""

    name: str
    times: int
    measured_s: float
    predicted_s: float
    known_by: str

    @property
    def error(self) -> float:
        """Relative error: (predicted - measured) / measured."""
        return self.predicted_s / self.measured_s - 1.0

    @property
    def missed_s(self) -> float:
        """Absolute error (s)."""
        return abs(self.predicted_s - self.measured_s)


@dataclass(frozen=True)
class AgainstTable(FigureAnswer):
    """A run and its measurements, largest error first.

    Args:
        side: the run.
        ops: measured and predicted times.
        whole_s: measured time of the whole run (s); None if not in the table.
        missing: ops of the run with a duration that are not in the table.
        warnings: warnings of the run.
    """

    side: Side
    ops: tuple[MeasuredPair, ...]
    whole_s: float | None
    missing: tuple[str, ...]
    warnings: tuple[Warning, ...]
    TABLE: ClassVar = "ops"

    @cached_property
    def missed_s(self) -> float:
        """Sum of the absolute errors of all ops (s)."""
        return math.fsum(op.missed_s for op in self.ops)

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: comparison/2`."""
        measured, predicted = self._sums
        return {
            "hwsim": "comparison/2",
            **select_attributes(self.side, "machine", "workload", "makespan_s"),
            "measured_s": measured,
            "predicted_s": predicted,
            "error": predicted / measured - 1.0 if measured else 0.0,
            "missed_s": self.missed_s,
            "measured_makespan_s": self.whole_s,
            "inside_interval": self._is_inside(),
            "not_measured": list(self.missing),
            "warnings": warning_lines.as_dicts(self.warnings),
            "ops": [
                {
                    **select_attributes(op, "name", "times", "measured_s", "predicted_s", "error", "known_by"),
                    "share_of_error": op.missed_s / self.missed_s if self.missed_s else 0.0,
                }
                for op in self.ops
            ],
        }

    @property
    def _sums(self) -> tuple[float, float]:
        """Measured and predicted time of all ops (s)."""
        return math.fsum(op.measured_s for op in self.ops), math.fsum(op.predicted_s for op in self.ops)

    def _is_inside(self) -> bool | None:
        sure = self.side.interval
        return None if sure is None or self.whole_s is None else sure.low <= self.whole_s <= sure.high

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Render a bar from measured to predicted time for each op."""
        bars = tuple(FigureBar(op.name, op.measured_s, op.predicted_s) for op in self.ops[:SHOWN])
        title = "Measured to predicted time of each op"
        if self.whole_s:
            error = percent(self.side.makespan_s / self.whole_s - 1, "+.1f")
            title = f"The prediction is {error} off the measured {format_quantity(self.whole_s, 's')}"
        below = run_caption(self.side.workload, self.side.machine, self.side.settings)
        return draw.render(BarFigure(title, "total time of an op", "s", bars, below=below), suffix)

    def text(self, *, every: bool = False) -> str:
        """Return the errors of the run and of each op; every: all ops."""
        return "\n".join(self._lines(every=every)) + "\n" + warning_lines.text(self.warnings)

    def __str__(self) -> str:
        return self.text()

    def _lines(self, *, every: bool) -> Iterator[str]:
        yield from wrap_lines(f"{self.side.workload}, on {self.side.machine}: predicted against measured", 0)
        yield ""
        measured, predicted = self._sums if self.whole_s is None else (self.whole_s, self.side.makespan_s)
        if measured:
            times = f"predicted {format_quantity(predicted, 's')}, measured {format_quantity(measured, 's')}"
            of_ops = ", all ops together" if self.whole_s is None else ""
            yield from labelled_lines("error", f"{percent(predicted / measured - 1, '+.1f')}: {times}{of_ops}", LABEL)
        sure = self.side.interval
        if sure is not None and sure.half > EXACT:
            inside = self._is_inside()
            where = "" if inside is None else f"; the measured time is {'inside' if inside else 'outside'}"
            yield from labelled_lines(TITLE, f"{range_text(sure)} ({relative_range(sure)}){where}", LABEL)
        shown = self.ops if every else self.ops[:SHOWN]
        if shown:
            yield ""
            yield from align_columns([
                Column("op", [cut_middle(op.name, NAME) for op in shown], right=False),
                Column("count", [f"{op.times:,}" for op in shown]),
                Column("measured", [format_quantity(op.measured_s, "s") for op in shown]),
                Column("predicted", [format_quantity(op.predicted_s, "s") for op in shown]),
                Column("error", [percent(op.error, "+.1f") for op in shown]),
                Column("share of error", [percent(op.missed_s / self.missed_s) if self.missed_s else "-" for op in shown]),
                Column("source", [op.known_by or "-" for op in shown], right=False),
            ])  # fmt: skip
        if len(shown) < len(self.ops):
            yield f"  {len(self.ops) - len(shown)} more with a smaller error (-v)"
        if self.missing:
            named = self.missing if every else self.missing[:FEW]
            more = f" and {len(self.missing) - len(named)} more (-v)" if len(named) < len(self.missing) else ""
            yield from wrap_lines(f"{len(self.missing)} simulated ops have no measurement: {', '.join(named)}{more}", 2)


def read_table(path: Path) -> tuple[MeasuredOp, ...]:
    """Read a table of measurements.

    Raises:
        SpecError: the table has errors; with their lines.
    """
    mistakes = Mistakes()
    rows = list(_of_csv(path, mistakes) if path.name.endswith(".csv") else _of_json(path, mistakes))
    timed: list[MeasuredOp] = []
    for row, place in rows:
        op = _measured(row, place, mistakes)
        if op is not None and any(op.name == other.name for other in timed):
            mistakes.add(place, f"op '{op.name}' has two rows", "use one row per op")
        elif op is not None:
            timed.append(op)
    if not rows and not len(mistakes):
        mistakes.add(Place(str(path), 1, 1), "no measurements", f"expected columns: {COLUMNS}")
    mistakes.raise_if_any()
    return tuple(timed)


def _of_csv(path: Path, mistakes: Mistakes) -> Iterator[tuple[dict[str, Any], Place]]:
    for row, place in csv_rows(path, mistakes, [NAMES, (*EACH, *TOTAL)], COLUMNS):
        yield {name.casefold(): cell for name, cell in row.items()}, place


def csv_rows(
    path: Path, mistakes: Mistakes, needed: Sequence[Sequence[str]], columns: str
) -> Iterator[tuple[dict[str, str], Place]]:
    """Yield the non-empty cells of each row by the name of their column, with the place of the row.

    Args:
        path: CSV file with a header line.
        mistakes: list of mistakes.
        needed: for each required column its accepted names, in lower case.
        columns: expected columns, for messages.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.reader(file, strict=True)
            lines = _printable(table)
            header = [name.strip() for name in next(lines, [])]
            known = {name.casefold() for name in header}
            if missing := [names[0] for names in needed if known.isdisjoint(names)]:
                mistakes.add(Place(str(path), 1, 1), f"no column `{missing[0]}`", f"expected columns: {columns}")
                return
            for line in lines:
                place = Place(str(path), table.line_num, 1)
                if not any(cell.strip() for cell in line):
                    continue
                if len(line) != len(header):
                    mistakes.add(place, f"expected {len(header)} columns, got {len(line)}")
                    continue
                yield {name: cell.strip() for name, cell in zip(header, line, strict=True) if cell.strip()}, place
    except (csv.Error, UnicodeDecodeError) as error:
        mistakes.add(Place(str(path), 0, 0), f"not valid CSV: {error}")


def _printable(lines: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the rows of a CSV file; raise csv.Error for control characters."""
    for line in lines:
        if (bad := unprintable("".join(line))) is not None:
            raise csv.Error(f"the control character U+{ord(bad):04X} does not belong in a text")
        yield line


def _of_json(path: Path, mistakes: Mistakes) -> Iterator[tuple[dict[str, Any], Place]]:
    content, place = read_json(path), Place(str(path), 1, 1)
    if isinstance(content, Mapping) and isinstance(content.get("ops"), list):
        content = content["ops"]
    if isinstance(content, Mapping):
        yield from (({"op": name, "time": time}, place) for name, time in content.items())
    elif isinstance(content, list) and all(isinstance(row, Mapping) for row in content):
        yield from (({str(key).casefold(): value for key, value in row.items()}, place) for row in content)
    else:
        mistakes.add(place, "not a table of measurements", 'expected {"op": "1.2 ms", ...} or a list of rows with ' + COLUMNS)


def _measured(row: Mapping[str, Any], place: Place, mistakes: Mistakes) -> MeasuredOp | None:
    name = next((str(row[key]) for key in NAMES if key in row), "")
    if not name:
        mistakes.add(place, "the row has no op name", f"expected columns: {COLUMNS}")
        return None
    one_s, total_s = (_seconds(row, keys, name, place, mistakes) for keys in (EACH, TOTAL))
    times = next((row[key] for key in TIMES if key in row), None)
    if times is not None:
        try:
            times = int(str(times))
        except ValueError:
            times = 0
        if times < 1:
            mistakes.add(place, f"count of '{name}': expected a whole number above 0")
            return None
    if one_s is None and total_s is None:
        if not any(key in row for key in (*EACH, *TOTAL)):
            mistakes.add(place, f"op '{name}' has no time", f"expected columns: {COLUMNS}")
        return None
    return MeasuredOp(name, one_s, total_s, times, place)


def _seconds(row: Mapping[str, Any], keys: Sequence[str], name: str, place: Place, mistakes: Mistakes) -> float | None:
    key = next((key for key in keys if key in row), None)
    if key is None:
        return None
    value = row[key]
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        try:
            seconds = parse_as(str(value), TIME)
        except UnitError as error:
            mistakes.add(place, f"'{name}': {error.message}", error.hint or "for example 12.3 ms, or a number of seconds")
            return None
    if not math.isfinite(seconds) or seconds <= 0:
        mistakes.add(place, f"measured time of '{name}': expected a time above 0, got {value}")
        return None
    return seconds


def against(
    given: Mapping[str, Any], called: str, rows: Sequence[MeasuredOp], settings: Mapping[str, object] | None = None
) -> AgainstTable:
    """Compare a run with measurements.

    Args:
        given: `run` (JSON of a run), or `machine` and `workload` to simulate.
        called: name of the file, for messages.
        rows: measurements.
        settings: settings of the simulation.

    Raises:
        SpecError: an op is not in the run.
    """
    sources_of: Mapping[str, str] = {}
    if "run" in given:
        side = of_document(given["run"], called)
    else:
        files = Files(*sources.with_settings(given["machine"], given["workload"], settings or {}))
        run = run_files(files, interval=True)
        side, sources_of = of_run(run, run.to_json), _known_by(run)
    ops = side.by_op
    timed = [row for row in rows if row.name != WHOLE]
    mistakes = Mistakes()
    for row in timed:
        if row.name not in ops:
            hint = (
                did_you_mean(row.name, ops) if ops else "write the run with its ops: hwsim simulate MACHINE WORKLOAD --json --ops"
            )
            mistakes.add(row.place, f"the run has no op '{row.name}'", hint)
        elif row.times is not None and row.total_s is not None and row.times != ops[row.name].times:
            mistakes.add(row.place, f"op '{row.name}': {row.times:,} executions measured, {ops[row.name].times:,} simulated",
                          "use `time`, the time of one execution")  # fmt: skip
    mistakes.raise_if_any()
    pairs = []
    for row in timed:
        op = ops[row.name]
        measured = row.total_s if row.total_s is not None else (row.each_s or 0.0) * op.times
        pairs.append(MeasuredPair(row.name, op.times, measured, op.total_s, sources_of.get(row.name, "")))
    whole_s = next((row.total_s if row.each_s is None else row.each_s for row in rows if row.name == WHOLE), None)
    names = {row.name for row in timed}
    missing = tuple(op.name for op in side.ops if op.total_s and op.name not in names)
    pairs.sort(key=lambda pair: (-pair.missed_s, pair.name))
    return AgainstTable(side, tuple(pairs), whole_s, missing, side.warnings)


def _known_by(run: Run) -> dict[str, str]:
    """Return the source of the time of each op: measured function, stated time or formula."""
    flat = run.timeline.flat
    marks: dict[str, str] = {}
    for label, cost in dict.fromkeys(zip(flat.label.tolist(), flat.cost.tolist(), strict=True)):
        if cost >= 0:
            line = binding(flat.graph.costs[cost])
            stated = "stated" if line is not None and line.kind == "stated" else "formula"
            name = flat.graph.labels[label].name.partition(": ")[0]
            marks.setdefault(name, mark_of(flat.graph.costs[cost])[0].replace(MEASURED, "measured") or stated)
    return marks
