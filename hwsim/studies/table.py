"""The rows of a study, and what they are compared by: as data, text, JSON, CSV and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from hwsim.records import dataclass
from hwsim.results.ratio import Ratio, ratio
from hwsim.studies import csv_file
from hwsim.studies.cells import PathColumn, column
from hwsim.studies.measures import UNITS
from hwsim.studies.point import StudyRow
from hwsim.studies.ranking import Ranking, ranking
from hwsim.views.kit.answer_forms import FigureAnswer
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.file_output import write


@dataclass(frozen=True)
class Sweep(FigureAnswer):
    """The rows in the order of the grid.

    Args:
        machine, workload: their names.
        settings: paths and values that were set at every point.
        vary: the paths and their values.
        points: points of the study; there are fewer rows if it was interrupted.
        by: the measure that was requested; "" if none was.
    """

    machine: str
    workload: str
    settings: tuple[tuple[str, str], ...]
    vary: tuple[tuple[str, tuple[object, ...]], ...]
    points: int
    rows: tuple[StudyRow, ...]
    by: str = ""
    COLUMNS: ClassVar = (
        "set", "makespan_s", "interval.low_s", "interval.high_s", "speed_up", "measures", "bottleneck", "share", "error",
    )  # fmt: skip

    @cached_property
    def ranking(self) -> Ranking:
        """The measure that the rows are compared by, and why."""
        return ranking(self.rows, self.by)

    @property
    def paths(self) -> tuple[str, ...]:
        """The varied paths."""
        return tuple(path for path, _ in self.vary)

    @cached_property
    def varied(self) -> tuple[PathColumn, ...]:
        """Columns of the varied paths in tables: numbers in SI where all values of a path are."""
        return tuple(column(path, values) for path, values in self.vary)

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of `to_csv`: the varied paths, then the results."""
        return (*(each.heading for each in self.varied), *map(csv_file.heading, self.measured), *csv_file.LAST)

    @property
    def measured(self) -> tuple[str, ...]:
        """Measures of the runs in addition to their time: `step_s`, `requests_per_s`, `batches_per_s`, ..."""
        names = {name for row in self.rows for name, _ in row.measures}
        return tuple(name for name in (*UNITS, *sorted(names - UNITS.keys())) if name in names)

    @property
    def failed(self) -> tuple[StudyRow, ...]:
        """The rows of points that could not be simulated."""
        return tuple(row for row in self.rows if row.makespan_s is None)

    @property
    def speed_ups(self) -> tuple[float | None, ...]:
        """Speedup of each row over the first point that did not fail, by time or by work a second.

        None where a row has no such number, or it is 0. None for all rows if they are compared by something else, and while
        the first point of the grid has not been run, because it may still become the first.
        """
        measure, values = self.ranking.measure, self.ranking.values
        if measure is None or not measure.is_pace or not self.rows:
            return (None,) * len(self.rows)
        if self.rows[0].values != tuple(values[0] for _, values in self.vary):
            return (None,) * len(self.rows)
        first = next((value for value in values if value is not None), None)
        pairs = [(value, first) if measure.most else (first, value) for value in values]
        return tuple(above / below if above and below else None for above, below in pairs)

    @cached_property
    def over_best(self) -> tuple[Ratio | None, ...]:
        """Time of each row over the fastest one, with the interval of the ratio; None where time does not compare them."""
        paces = [pace for pace in self._paces if pace]
        return self._over(self._paces.index(max(paces))) if paces else (None,) * len(self.rows)  # the first of equals

    @cached_property
    def over_first(self) -> tuple[Ratio | None, ...]:
        """The same over the first row that did not fail."""
        place = next((place for place, pace in enumerate(self._paces) if pace), None)
        return (None,) * len(self.rows) if place is None else self._over(place)

    @property
    def is_told(self) -> bool:
        """Whether nothing leaves open which row is the fastest; rows as fast as it are no others."""
        return all(over is None or over.value <= 1.0 + 1e-9 or over.is_told for over in self.over_best)

    @cached_property
    def _paces(self) -> tuple[float, ...]:
        """How fast each row is, 0 where nothing tells."""
        measure = self.ranking.measure
        if measure is None or not measure.is_pace:
            return (0.0,) * len(self.rows)
        return tuple((value if measure.most else 1 / value) if value else 0.0 for value in self.ranking.values)

    def _over(self, place: int) -> tuple[Ratio | None, ...]:
        first, pace = self.rows[place].interval, self._paces[place]
        if first is None:
            return (None,) * len(self.rows)
        return tuple(
            None if row.interval is None or not its else ratio(row.interval.of(pace / its), first.of(1.0))
            for row, its in zip(self.rows, self._paces, strict=True)
        )

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: sweep/1`, as dicts and lists."""
        return {
            "hwsim": "sweep/1",
            **select_attributes(self, "machine", "workload"),
            "set": dict(self.settings),
            "vary": {path: list(values) for path, values in self.vary},
            "point_count": self.points,
            "by": self.ranking.as_dict(),
            "rows": list(self.documents()),
        }

    def documents(self) -> Iterator[dict[str, Any]]:
        """Each row as a dict, as it stands in JSON."""
        for row, speed_up, over in zip(self.rows, self.speed_ups, self.over_best, strict=True):
            sure = row.interval
            yield {
                "set": dict(zip(self.paths, row.values, strict=True)),
                "makespan_s": row.makespan_s,
                "interval": None if sure is None else select_attributes(sure, "level", "case", low_s="low", high_s="high"),
                "speed_up": speed_up,
                "over_best": None if over is None else select_attributes(over, "value", "low", "high", told="is_told"),
                "work": {work.unit: work.amount for work in row.work},
                **({"measures": dict(row.measures)} if row.measures else {}),
                "bottleneck": row.bottleneck,
                "share": row.share,
                "warnings": [warning.as_dict() for warning in row.warnings],
                "error": row.error,
            }

    def to_csv(self) -> str:
        """A line per row under a line of headings; numbers are written so that reading them back is exact."""
        return csv_file.to_csv(self.varied, self.measured, zip(self.rows, self.speed_ups, strict=True))

    def figure(self, suffix: str) -> Iterable[bytes]:
        """The measure over the first path that takes numbers; each combination of the other paths is a line."""
        from hwsim.studies.curves import curves
        from hwsim.views.sweep import draw

        return draw.render(curves(self), suffix)

    def report(self, path: str | Path) -> Path:
        """Write a page for a browser: the best row, all rows to sort, a figure; nothing else is needed."""
        from hwsim.studies.page import render

        return write(path, render(self))

    def __str__(self) -> str:
        from hwsim.studies.text import text

        return text(self)
