"""A comparison as an HTML page: which run is better, by which factor, why, and the contribution of each change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hwsim.comparing.comparison import CauseTimes, Comparison
from hwsim.comparing.say import provenance, sentence, signed_time, title
from hwsim.comparing.sides import OpSum, Side
from hwsim.formats import format_quantity
from hwsim.ticks import FEMTO
from hwsim.views.interval.say import EXACT, TITLE, range_text
from hwsim.views.report import page
from hwsim.views.report.sections import Cell, Lines, Page, ReportColumn, Section, TableSection, WaterfallSection

OPS: Final = 40
UNSAID: Final = Cell("", "")


def render(both: Comparison) -> Iterable[bytes]:
    """Return the chunks of the HTML file; deterministic for a comparison."""
    return page.written(of_comparison(both))


def of_comparison(both: Comparison) -> Page:
    """Return the content of the page."""
    sides = [_said(letter, side) for letter, side in (("A", both.first), ("B", both.second))]
    if both.is_unlike:
        sides.append(f"Check: {provenance(both)}")
    return Page(title(both), sentence(both), sides, [str(warning) for warning in both.warnings], list(_sections(both)))


def _said(letter: str, side: Side) -> str:
    sure = side.interval
    within = f" ({TITLE} {range_text(sure)})" if sure is not None and sure.half > EXACT else ""
    settings = ", ".join(f"{path}={value}" for path, value in side.settings)
    set_to = f", set {settings}" if settings else ""
    return f"{letter}: {format_quantity(side.makespan_s, 's')}{within}; {side.workload}, on {side.machine}{set_to}"


def _sections(both: Comparison) -> Iterator[Section]:
    if both.steps is not None and both.measure is not None and both.steps.steps:
        unit, shown = both.steps.unit, both.measure.shown
        changes = [
            (f"{step.change.name}: {step.change.before} -> {step.change.after}", step.share * unit,
             f"{'-' if step.share < 0 else '+'} {shown(abs(step.share) * unit)}")
            for step in both.steps.steps
        ]  # fmt: skip
        first, last = both.steps.first * unit, both.steps.last * unit
        note = f"Shapley values from {both.steps.evaluations} runs: independent of the order of the changes."
        heading = f"Contribution of each change to {both.measure.title}"
        yield WaterfallSection(heading, ("A", first, shown(first)), changes, ("B", last, shown(last)), note)
        if both.steps.without:
            yield Lines("Changes without effect", [", ".join(change.name for change in both.steps.without)])
    yield _path("Critical path by bound", "bound by", both.bounds, both)
    yield _path("Critical path by cause", "cause", both.causes, both)
    yield _ops(both)


def _path(heading: str, column: str, every: Iterable[CauseTimes], both: Comparison) -> TableSection:
    per = f", per {both.unit}" if both.unit else ""
    columns = [ReportColumn(f"{column}{per}"), *(ReportColumn(name, right=True) for name in ("A", "B", "change"))]
    rows = []
    for row in every:
        first, second = row.first_fs / both.amounts[0], row.second_fs / both.amounts[1]
        rows.append((Cell(row.name), _time(first), _time(second), Cell(signed_time(second - first), second - first)))
    return TableSection(heading, columns, rows, note="Each column adds up to the time of its run.")


def _ops(both: Comparison) -> TableSection:
    columns = [ReportColumn("op"), *(ReportColumn(name, right=True) for name in ("count A", "count B", "each A", "each B"))]
    rows = [
        (Cell(pair.name), _count(pair.first), _count(pair.second), _each(pair.first), _each(pair.second))
        for pair in both.ops[:OPS]
    ]
    more = len(both.ops) - len(rows)
    return TableSection("Ops by difference", columns, rows, note=f"{more} more ops differ less." if more > 0 else "")


def _time(time_fs: float) -> Cell:
    return Cell(format_quantity(time_fs / FEMTO, "s"), time_fs) if time_fs else UNSAID


def _count(op: OpSum | None) -> Cell:
    return UNSAID if op is None else Cell(f"{op.times:,}", op.times)


def _each(op: OpSum | None) -> Cell:
    return UNSAID if op is None or not op.times else Cell(format_quantity(op.mean_s, "s"), op.mean_s)


__all__ = ["of_comparison", "render"]
