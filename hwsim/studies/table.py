"""The rows of a study with their ranking, as data, text, JSON, CSV and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from hwsim.records import dataclass
from hwsim.results.ratio import Ratio, ratio
from hwsim.studies import csv_file
from hwsim.studies.cells import PathColumn, column
from hwsim.studies.measures import TIME, UNITS
from hwsim.studies.point import StudyRow
from hwsim.studies.ranking import Ranking, ranking
from hwsim.views.kit.answer_forms import FigureAnswer, fragment
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.file_output import write


@dataclass(frozen=True)
class Sweep(FigureAnswer):
    """The rows of a study, in the order of its points.

    Args:
        machine: name of the machine.
        workload: name of the workload.
        settings: values that apply to every point, by path.
        vary: varied paths and their values.
        rows: finished rows.
        points: number of points; there are fewer rows after an interruption.
        by: requested measure; "" if none was requested.
    """

    machine: str
    workload: str
    settings: tuple[tuple[str, str], ...]
    vary: tuple[tuple[str, tuple[object, ...]], ...]
    points: int
    rows: tuple[StudyRow, ...]
    by: str = ""

    @cached_property
    def ranking(self) -> Ranking:
        """Measure that ranks the rows, and the reason for it."""
        return ranking(self.rows, self.by)

    @property
    def paths(self) -> tuple[str, ...]:
        """Varied paths."""
        return tuple(path for path, _ in self.vary)

    @cached_property
    def varied(self) -> tuple[PathColumn, ...]:
        """Table columns of the varied paths; numbers in SI units if all values of a path are numbers."""
        return tuple(column(path, values) for path, values in self.vary)

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of `to_csv`: the varied paths, then the results."""
        return (*(path.heading for path in self.varied), *map(csv_file.heading, self.measured), *csv_file.LAST)

    @property
    def measured(self) -> tuple[str, ...]:
        """Measures of the runs in addition to their time: `step_s`, `requests_per_s`, `batches_per_s`, ..."""
        names = {name for row in self.rows for name, _ in row.measures}
        return tuple(name for name in (*UNITS, *sorted(names - UNITS.keys())) if name in names)

    @property
    def failed(self) -> tuple[StudyRow, ...]:
        """Rows of points that could not be simulated."""
        return tuple(row for row in self.rows if row.makespan_s is None)

    @property
    def speedup_title(self) -> str:
        """Heading of `speedups` in tables: a ratio of times, or of the throughput that ranks the rows."""
        return "vs first" if self.ranking.measure and self.ranking.measure.column != TIME else "speedup"

    @property
    def speedups(self) -> tuple[float | None, ...]:
        """Speedup of each row over the first point that did not fail, by time or throughput.

        None if a row lacks the number, or if it is 0. None for all rows if another measure ranks them, and until the first
        point of the grid has run.
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
        """Time of each row / time of the fastest, with the interval of the ratio; None if time does not rank the rows."""
        paces = [pace for pace in self._paces if pace]
        return self._over(self._paces.index(max(paces))) if paces else (None,) * len(self.rows)  # the first of equals

    @cached_property
    def over_first(self) -> tuple[Ratio | None, ...]:
        """Time of each row / time of the first row that did not fail, with the interval of the ratio."""
        place = next((place for place, pace in enumerate(self._paces) if pace), None)
        return (None,) * len(self.rows) if place is None else self._over(place)

    @property
    def is_conclusive(self) -> bool:
        """Whether the fastest row is conclusive; rows with the same time count as one."""
        return all(over is None or over.value <= 1.0 + 1e-9 or over.is_conclusive for over in self.over_best)

    @cached_property
    def _paces(self) -> tuple[float, ...]:
        """Return the speed of each row; 0 if it is unknown."""
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
        """Return the document `hwsim: sweep/2`."""
        return {
            "hwsim": "sweep/2",
            **select_attributes(self, "machine", "workload"),
            "set": dict(self.settings),
            "vary": {path: list(values) for path, values in self.vary},
            "point_count": self.points,
            "ranking": self.ranking.as_dict(),
            "rows": list(self.documents()),
        }

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield each row as in the JSON document."""
        for row, speedup, over in zip(self.rows, self.speedups, self.over_best, strict=True):
            sure = row.interval
            yield {
                "set": dict(zip(self.paths, row.values, strict=True)),
                "makespan_s": row.makespan_s,
                "interval": None if sure is None else select_attributes(sure, "level", "case", low_s="low", high_s="high"),
                "speedup": speedup,
                "over_best": None if over is None else select_attributes(over, "value", "low", "high", "is_conclusive"),
                "work": {work.unit: work.amount for work in row.work},
                **({"measures": dict(row.measures)} if row.measures else {}),
                "bottleneck": row.bottleneck,
                "share": row.share,
                "warnings": [warning.as_dict() for warning in row.warnings],
                "error": row.error,
            }

    def to_csv(self) -> str:
        """Return a heading line and one line per row; parsing a printed number returns exactly the same number."""
        return csv_file.to_csv(self.varied, self.measured, zip(self.rows, self.speedups, strict=True))

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Return the figure: the measure over the first numeric path, one line per combination of the other paths."""
        from hwsim.studies.curves import curves
        from hwsim.views.sweep import draw

        return draw.render(curves(self), suffix)

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page: the best row, a figure, and all rows in a sortable table."""
        from hwsim.studies.page import render

        return write(path, render(self))

    def __str__(self) -> str:
        from hwsim.studies.text import text

        return text(self)

    def _repr_html_(self) -> str:
        from hwsim.studies.text import columns, text

        return fragment(text(self, table=False), columns(self))
