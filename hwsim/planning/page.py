"""The answer to a plan as an HTML page: the best option, all other options with their reasons, and the sources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hwsim.families_interface import SummaryLine
from hwsim.formats import percent
from hwsim.planning.answer import PlanAnswer, values_text
from hwsim.planning.figure import figure
from hwsim.planning.options import PlanOption
from hwsim.planning.ordering import frontier_axes
from hwsim.planning.plan_text import columns, facts, heading
from hwsim.planning.reasons import relative_miss
from hwsim.views.frontier.draw import render as drawn
from hwsim.views.report import page
from hwsim.views.report.sections import (
    BarSection,
    Cell,
    FigureSection,
    Lines,
    Page,
    ReportBar,
    ReportColumn,
    Section,
    TableSection,
)

ROWS: Final = 300
HEAD: Final = frozenset({"best", "closest", "parallel plan", "tied with", "ruled out"})


def render(answer: PlanAnswer) -> Iterable[bytes]:
    """Return the page as chunks of an HTML file; equal answers give equal bytes."""
    return page.written(of_answer(answer))


def of_answer(answer: PlanAnswer) -> Page:
    """The page as data."""
    lines = list(facts(answer))
    above = [f"{fact.label.capitalize()}: {fact.text}" for fact in lines if fact.label in HEAD]
    return Page(heading(answer), _sentence(answer), above, (), list(_sections(answer, lines)))


def _sentence(answer: PlanAnswer) -> str:
    """Return a sentence on the best option, its objective and its interval."""
    best = answer.best
    if best is None:
        return "No option meets the requirements"
    amounts = []
    for quantity, _ in frontier_axes(answer.question)[:1]:
        amount, shown = best.numbers.get(quantity.key), quantity.measure.shown
        if amount is not None:
            sure = f" ({quantity.measure.between(amount.low, amount.high)}, 90 %)" if amount.high > amount.low else ""
            amounts.append(f"{quantity.title} {shown(amount.value)}{sure}")
    return ": ".join([values_text(best.point.shown) or "as the files are", *amounts])


def _sections(answer: PlanAnswer, lines: Sequence[SummaryLine]) -> Iterator[Section]:
    yield Lines(
        "Summary", [f"{fact.label}: {fact.text}" if fact.label else fact.text for fact in lines if fact.label not in HEAD]
    )
    if len(answer.of_each) > 1:
        yield _table(answer, "Best of each", answer.of_each)
        yield from _ranges(answer)
    if len(answer.options) > 1:
        axes, scatter = [quantity.title for quantity, _ in frontier_axes(answer.question)], figure(answer)
        title = (
            f"Pareto frontier: {', '.join(axes)}"
            if len(axes) > 1
            else f"Options that meet the requirements: {scatter.up.title} over {scatter.across.title}"
        )
        yield FigureSection(
            title, b"".join(drawn(scatter, ".svg")), "options that meet the requirements, with the Pareto frontier"
        )
        yield _table(answer, "Options that meet the requirements", answer.options[:ROWS], marked=answer.frontier)
    if answer.groups:
        yield _reasons(answer)


def _ranges(answer: PlanAnswer) -> Iterator[Section]:
    """Return the objective of the best option of each type with its interval, and the margin before another option is ahead."""
    quantity = frontier_axes(answer.question)[0][0]
    measured = [(pick, amount) for pick in answer.of_each if (amount := pick.numbers.get(quantity.key)) is not None]
    measured = [(pick, amount) for pick, amount in measured if math.isfinite(amount.high)]
    if len(measured) < 2 or answer.question.objectives[0].most:
        return
    shown = quantity.measure.shown
    bars = [ReportBar(values_text(pick.point.shown), amount.low, amount.high, shown(amount.value)) for pick, amount in measured]
    (first, best), (second, near) = sorted(measured, key=lambda pair: pair[1].value)[:2]
    note = ""
    if best.value > 0:
        more = percent(near.value / best.value - 1, "+.0f")
        crossed = f"{quantity.title} of {values_text(first.point.shown)} is {more}"
        note = f"Break-even: if {crossed}, {values_text(second.point.shown)} is as good."
    yield BarSection(
        f"{quantity.title[:1].upper()}{quantity.title[1:]}, 90 % interval", bars, centre=best.value, note=note, shown=shown
    )


def _table(answer: PlanAnswer, title: str, options: Sequence[PlanOption], marked: Sequence[PlanOption] = ()) -> TableSection:
    made = columns(answer, options)
    front = {option.point.number for option in marked}
    rows = [
        [Cell(*column.cells[place]) for column in made]
        for place in range(len(options))
    ]  # fmt: skip
    stand_out = frozenset(place for place, option in enumerate(options) if option.point.number in front)
    note = "Marked: Pareto frontier, no other option is better in every axis." if stand_out else ""
    return TableSection(title, [ReportColumn(column.heading, column.right) for column in made], rows, stand_out, note)


def _reasons(answer: PlanAnswer) -> TableSection:
    names = [ReportColumn("options", right=True), ReportColumn("closest miss"), ReportColumn("requirement"),
    ReportColumn("value"),
             ReportColumn("off by", right=True), ReportColumn("what would meet it")]  # fmt: skip
    rows = [
        (
            Cell(f"{len(group.numbers):,}", len(group.numbers)),
            Cell(group.nearest_where),
            Cell(group.reason.constraint),
            Cell(group.reason.text),
            Cell("", "") if group.reason.needed is None else Cell(relative_miss(group.reason.excess, 1), group.reason.excess),
            Cell(group.reason.lift),
        )
        for group in answer.groups
    ]
    return TableSection(f"Rejected ({len(answer.rejected):,})", names, rows)


__all__ = ["of_answer", "render"]
