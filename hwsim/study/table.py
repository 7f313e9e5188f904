"""What a sweep found: a row per point, as data, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec import Warning
from hwsim.study.cells import written_warnings, written_work
from hwsim.study.curves import curves
from hwsim.study.grid import written
from hwsim.study.measures import UNITS
from hwsim.study.point import Outcome
from hwsim.study.ranking import Ranking, ranking
from hwsim.study.text import text
from hwsim.views.kit.warned import as_dicts
from hwsim.views.kit.writing import write
from hwsim.views.sweep import draw as figure

ASKED: Final = "by:"  # before the name of a column that `by` asked for
FOUND: Final = (  # columns after the varied paths
    "makespan_s", "speed_up", "work", "limited_by", "share", "warnings", "error", "fingerprint",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A point: the values of the varied paths in their order, and what came of it."""

    values: tuple[object, ...]
    outcome: Outcome

    @property
    def makespan_s(self) -> float | None:
        """Seconds; None if the point failed."""
        return self.outcome.makespan_s

    @property
    def limited_by(self) -> str:
        """What the run spent most of its time on."""
        return self.outcome.limited_by

    @property
    def share(self) -> float | None:
        """How much of its time the run spent on that."""
        return self.outcome.share

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What is right at this point but probably not meant, each with a code."""
        return self.outcome.warnings

    @property
    def error(self) -> str:
        """Why the point failed; empty if it did not."""
        return self.outcome.error


@dataclass(frozen=True)
class Sweep:
    """The rows in the order of the grid.

    machine, workload: their names.  settings: what was set at every point.  vary: the paths and their values.
    points: how many the study has; there are fewer rows if it was interrupted.
    by: the measure that was asked for, "" if none was.
    """

    machine: str
    workload: str
    settings: tuple[tuple[str, str], ...]
    vary: tuple[tuple[str, tuple[object, ...]], ...]
    points: int
    rows: tuple[Row, ...]
    by: str = ""

    @cached_property
    def ranking(self) -> Ranking:
        """By what the rows are compared, and why."""
        return ranking(self.rows, self.by)

    @property
    def paths(self) -> tuple[str, ...]:
        """The varied paths."""
        return tuple(path for path, _ in self.vary)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of `to_csv`: the varied paths, then what was found."""
        return (*self.paths, *(each if each in UNITS else f"{ASKED}{each}" for each in self.measured), *FOUND)

    @property
    def measured(self) -> tuple[str, ...]:
        """What the runs have beside their time: `step_s`, `requests_per_s`, `batches_per_s`, ..."""
        found = {name for row in self.rows for name, _ in row.outcome.measures}
        return tuple(name for name in (*UNITS, *sorted(found - UNITS.keys())) if name in found)

    @property
    def failed(self) -> tuple[Row, ...]:
        """The rows of points that could not be simulated."""
        return tuple(row for row in self.rows if row.makespan_s is None)

    @property
    def speed_ups(self) -> tuple[float | None, ...]:
        """Per row, how many times as fast as the first point that did not fail it is, by time or by work a second.

        None where a row has no such number, or it is 0.  None for all where rows are compared by something else, and while
        the first point of the grid has not been run: it may come to be the first.
        """
        asked, values = self.ranking.measure, self.ranking.values
        if asked is None or not asked.is_pace or not self.rows:
            return (None,) * len(self.rows)
        if self.rows[0].values != tuple(values[0] for _, values in self.vary):
            return (None,) * len(self.rows)
        first = next((each for each in values if each is not None), None)
        pairs = [(value, first) if asked.most else (first, value) for value in values]
        return tuple(above / below if above and below else None for above, below in pairs)

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: sweep/1`, as dicts and lists."""
        return {
            "hwsim": "sweep/1",
            "machine": self.machine,
            "workload": self.workload,
            "set": dict(self.settings),
            "vary": {path: list(values) for path, values in self.vary},
            "point_count": self.points,
            "by": self.ranking.as_dict(),
            "rows": [
                {
                    "set": dict(zip(self.paths, row.values, strict=True)),
                    "makespan_s": row.makespan_s,
                    "speed_up": speed_up,
                    "work": {each.unit: each.amount for each in row.outcome.work},
                    **({"measures": dict(row.outcome.measures)} if row.outcome.measures else {}),
                    "limited_by": row.limited_by,
                    "share": row.share,
                    "warnings": as_dicts(row.warnings),
                    "error": row.error,
                    "fingerprint": row.outcome.fingerprint,
                }
                for row, speed_up in zip(self.rows, self.speed_ups, strict=True)
            ],
        }

    def to_csv(self) -> str:
        """A line per row under a line of names.  Numbers are written so that reading them gives them back exactly."""
        buffer = io.StringIO()
        lines = csv.writer(buffer, lineterminator="\n")
        lines.writerow(self.columns)
        for row, speed_up in zip(self.rows, self.speed_ups, strict=True):
            more = dict(row.outcome.measures)
            columns = [more.get(name) for name in self.measured]
            warnings, fingerprint = written_warnings(row.warnings), row.outcome.fingerprint
            work = written_work(row.outcome.work)
            found = (*columns, row.makespan_s, speed_up, work, row.limited_by, row.share, warnings, row.error, fingerprint)
            lines.writerow([*map(written, row.values), *("" if each is None else each for each in found)])
        return buffer.getvalue()

    def plot(self, path: str | Path) -> Path:
        """Write a figure, .png, .svg or .pdf: what rows are compared by over the first path that takes numbers, a line per
        combination of the others.

        Raises:
            ValueError: another suffix.
        """
        return write(path, figure.render(curves(self), Path(path).suffix))

    def __str__(self) -> str:
        return text(self)
