"""A comparison as a page for a browser: which is better and how sure, why, and what each change contributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hwsim.comparing.comparison import Comparison
from hwsim.comparing.say import provenance, sentence, signed_time
from hwsim.comparing.sides import Side, Spent
from hwsim.formats import format_quantity
from hwsim.ticks import FEMTO
from hwsim.views.interval.say import EXACT, range_text
from hwsim.views.report import page
from hwsim.views.report.sections import Cell, Column, Lines, Page, Section, Table, Waterfall

OPS: Final = 40
UNSAID: Final = Cell("", "")


def render(both: Comparison) -> Iterable[bytes]:
    """The page as chunks of an HTML file; same comparison, same bytes."""
    return page.written(of_comparison(both))


def of_comparison(both: Comparison) -> Page:
    """The page as data."""
    sides = [_said(letter, side) for letter, side in (("A", both.first), ("B", both.second))]
    title = f"A: {both.first.workload} on {both.first.machine}; B: {both.second.workload} on {both.second.machine}"
    if both.is_unlike:
        sides.append(f"Known alike: {provenance(both)}")
    return Page(title, sentence(both), sides, [str(each) for each in both.warnings], list(_sections(both)))


def _said(letter: str, side: Side) -> str:
    sure = side.interval
    within = f" ({range_text(sure)}, {sure.level} %)" if sure is not None and sure.half > EXACT else ""
    settings = ", ".join(f"{path}={value}" for path, value in side.settings)
    set_to = f", set {settings}" if settings else ""
    return f"{letter}: {side.workload} on {side.machine}{set_to}: {format_quantity(side.makespan_s, 's')}{within}"


def _sections(both: Comparison) -> Iterator[Section]:
    if both.steps is not None and both.measure is not None and both.steps.steps:
        unit, shown = both.steps.unit, both.measure.shown
        changes = [
            (f"{step.change.name}: {step.change.before} -> {step.change.after}", step.share * unit,
             f"{'-' if step.share < 0 else '+'} {shown(abs(step.share) * unit)}")
            for step in both.steps.steps
        ]  # fmt: skip
        first, last = both.steps.first * unit, both.steps.last * unit
        note = f"Each share is a mean over orders of the changes ({both.steps.evaluations} runs): their order does not matter."
        title = f"What changed, and what it contributes to {both.measure.title}"
        yield Waterfall(title, ("A", first, shown(first)), changes, ("B", last, shown(last)), note)
        if both.steps.without:
            yield Lines("Changed without any effect", [", ".join(change.name for change in both.steps.without)])
    yield _causes(both)
    yield _ops(both)


def _causes(both: Comparison) -> Table:
    per = f", per {both.unit}" if both.unit else ""
    columns = [Column(f"cause{per}"), Column("case"), *(Column(name, right=True) for name in ("A", "B", "B - A"))]
    rows = []
    for row in both.causes:
        first, second = row.first_fs / both.amounts[0], row.second_fs / both.amounts[1]
        rows.append(
            (Cell(row.name), Cell(row.group), _time(first), _time(second), Cell(signed_time(second - first), second - first))
        )
    return Table("Why, along the critical paths", columns, rows, note="Times of a column add up to the time of its run.")


def _ops(both: Comparison) -> Table:
    columns = [Column("op"), *(Column(name, right=True) for name in ("times A", "times B", "each A", "each B"))]
    rows = [
        (Cell(pair.name), _count(pair.first), _count(pair.second), _each(pair.first), _each(pair.second))
        for pair in both.ops[:OPS]
    ]
    more = len(both.ops) - len(rows)
    return Table("Ops, those that differ most first", columns, rows, note=f"{more} more differ less." if more > 0 else "")


def _time(time_fs: float) -> Cell:
    return Cell(format_quantity(time_fs / FEMTO, "s"), time_fs) if time_fs else UNSAID


def _count(op: Spent | None) -> Cell:
    return UNSAID if op is None else Cell(f"{op.times:,}", op.times)


def _each(op: Spent | None) -> Cell:
    return UNSAID if op is None or not op.times else Cell(format_quantity(op.each_s, "s"), op.each_s)


__all__ = ["of_comparison", "render"]
