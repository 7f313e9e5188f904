"""The rows of a study as CSV, one line per row, with exact numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from hwsim.results.work import WorkAmount
from hwsim.studies.cells import PathColumn
from hwsim.studies.measures import UNITS
from hwsim.studies.point import StudyRow

REQUESTED: Final = "by:"  # prefix of the column that `by` requests
LAST: Final = (  # last columns, after varied paths and measures
    "makespan_s", "low_s", "high_s", "speedup", "work", "bottleneck", "share", "warnings", "error",
)  # fmt: skip


def heading(name: str) -> str:
    """Return the heading of a measure's column."""
    return name if name in UNITS else f"{REQUESTED}{name}"


def to_csv(paths: Sequence[PathColumn], measured: Sequence[str], rows: Iterable[tuple[StudyRow, float | None]]) -> str:
    """Return a heading line and one line per (row, speed-up). Parsing a printed number returns exactly the same number."""
    buffer = io.StringIO()
    lines = csv.writer(buffer, lineterminator="\n")
    lines.writerow((*(path.heading for path in paths), *map(heading, measured), *LAST))
    for row, speedup in rows:
        values = dict(row.measures)
        warnings, work = " | ".join(map(str, row.warnings)), write_work(row.work)
        ends = (None, None) if row.interval is None else (row.interval.low, row.interval.high)
        last = (row.makespan_s, *ends, speedup, work, row.bottleneck, row.share, warnings, row.error)
        cells = (*(values.get(name) for name in measured), *last)
        varied = [path.cell(value) for path, value in zip(paths, row.values, strict=True)]
        lines.writerow([*varied, *("" if cell is None else cell for cell in cells)])
    return buffer.getvalue()


def write_work(work: Sequence[WorkAmount]) -> str:
    """Return amounts of work and their rates as one cell.

    >>> write_work([WorkAmount("samples", 64.0, 12.5)])
    '64.0 samples at 12.5/s'
    """
    return " | ".join(f"{unit.amount!r} {unit.unit} at {unit.per_s!r}/s" for unit in work)
