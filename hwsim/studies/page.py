"""A study as an HTML page: the best row, a figure, all rows to sort, failures and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity, format_share
from hwsim.studies.curves import called, curves
from hwsim.studies.grid import value_text
from hwsim.studies.measures import measure
from hwsim.studies.text import end_text, factor, title, warning_text
from hwsim.views.interval.say import TITLE, relative_range
from hwsim.views.report import page
from hwsim.views.report.sections import Cell, FigureSection, Page, ReportColumn, Section, TableSection
from hwsim.views.sweep import draw

if TYPE_CHECKING:
    from hwsim.studies.point import StudyRow
    from hwsim.studies.table import Sweep

DRAWN: Final = 400  # maximum rows of a figure


def render(sweep: Sweep) -> Iterable[bytes]:
    """Return the page as chunks of an HTML file; equal studies give equal bytes."""
    return page.written(of_sweep(sweep))


def of_sweep(sweep: Sweep) -> Page:
    """Return the page as data."""
    lines = [f"{label}: {line}" if label else line for label, line in end_text(sweep)]
    answer, *more = lines or [f"{len(sweep.rows)} of {sweep.points} points"]
    if sweep.settings:
        more.append("Set for all points: " + ", ".join(f"{path}={value}" for path, value in sweep.settings))
    return Page(title(sweep), answer, more, list(warning_text(sweep)), list(_sections(sweep)))


def _sections(sweep: Sweep) -> Iterator[Section]:
    ran = [row for row in sweep.rows if row.makespan_s is not None]
    if 1 < len(ran) <= DRAWN:
        drawn = b"".join(draw.render(curves(sweep), ".svg"))
        yield FigureSection("Figure", drawn, f"{sweep.ranking.measure.title if sweep.ranking.measure else 'time'} of the rows")
    yield _table(sweep)


def _table(sweep: Sweep) -> TableSection:
    best = [sweep.is_conclusive and over is not None and over.value <= 1.0 for over in sweep.over_best]
    columns = [
        *(ReportColumn(called(path)) for path in sweep.paths),
        ReportColumn("time", right=True),
        ReportColumn(TITLE, right=True),
        ReportColumn(sweep.speedup_title, right=True),
        *(ReportColumn(measure(name).title, right=True) for name in sweep.measured),
        ReportColumn("bottleneck"),
        ReportColumn("warning or error"),
    ]
    rows = [tuple(_cells(sweep, row, up)) for row, up in zip(sweep.rows, sweep.speedups, strict=True)]
    shown = [place for place in range(len(columns)) if any(row[place].text for row in rows)]
    return TableSection(
        "All points",
        [columns[place] for place in shown],
        [[row[place] for place in shown] for row in rows],
        frozenset(place for place, marked in enumerate(best) if marked),
    )


def _cells(sweep: Sweep, row: StudyRow, speedup: float | None) -> Iterator[Cell]:
    for value in row.values:
        yield Cell(value_text(value), value if isinstance(value, int | float) and not isinstance(value, bool) else None)
    yield Cell("", "") if row.makespan_s is None else Cell(format_quantity(row.makespan_s, "s"), row.makespan_s)
    yield Cell("" if row.interval is None else relative_range(row.interval))
    yield Cell("", "") if speedup is None else Cell(factor(speedup), speedup)
    measured = dict(row.measures)
    for name in sweep.measured:
        yield Cell(measure(name).shown(measured[name]), measured[name]) if name in measured else Cell("", "")
    yield Cell(f"{row.bottleneck} {format_share(row.share)}" if row.share is not None else row.bottleneck)
    yield Cell(row.error or ", ".join(dict.fromkeys(warning.code for warning in row.warnings)))


__all__ = ["of_sweep", "render"]
