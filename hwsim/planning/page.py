"""The answer of a plan as a page for a browser: the best option, all others and why not, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hwsim.doors import Fact
from hwsim.formats import percent
from hwsim.planning.answer import Answer, where
from hwsim.planning.choosing import axes_of
from hwsim.planning.figure import figure
from hwsim.planning.options import Option
from hwsim.planning.reasons import off_by
from hwsim.planning.say import columns, facts, heading
from hwsim.views.frontier.draw import render as drawn
from hwsim.views.report import page
from hwsim.views.report.sections import Bar, Bars, Cell, Column, Lines, Page, Picture, Section, Table

ROWS: Final = 300
HEAD: Final = frozenset({"best", "best tried", "closest", "parallel plan", "tied with", "ruled out"})


def render(answer: Answer) -> Iterable[bytes]:
    """The page as chunks of an HTML file; same answer, same bytes."""
    return page.written(of_answer(answer))


def of_answer(answer: Answer) -> Page:
    """The page as data."""
    lines = list(facts(answer))
    above = [f"{fact.label.capitalize()}: {fact.text}" for fact in lines if fact.label in HEAD]
    return Page(heading(answer), _sentence(answer), above, (), list(_sections(answer, lines)))


def _sentence(answer: Answer) -> str:
    """The best option with what it was chosen by, and the range of that."""
    best = answer.best
    if best is None:
        return "No option meets the requirements"
    amounts = []
    for quantity, _ in axes_of(answer.question)[:1]:
        amount, shown = best.numbers.get(quantity.key), quantity.measure.shown
        if amount is not None:
            sure = f" ({quantity.measure.between(amount.low, amount.high)}, 90 %)" if amount.high > amount.low else ""
            amounts.append(f"{quantity.title} {shown(amount.value)}{sure}")
    return ": ".join([where(best.point.shown) or "as the files are", *amounts])


def _sections(answer: Answer, lines: Sequence[Fact]) -> Iterator[Section]:
    yield Lines(
        "Summary", [f"{fact.label}: {fact.text}" if fact.label else fact.text for fact in lines if fact.label not in HEAD]
    )
    if len(answer.of_each) > 1:
        yield _table(answer, "Best of each", answer.of_each)
        yield from _ranges(answer)
    if len(answer.options) > 1:
        axes, scatter = [quantity.title for quantity, _ in axes_of(answer.question)], figure(answer)
        title = (
            f"Pareto frontier: {', '.join(axes)}"
            if len(axes) > 1
            else f"Options that meet the requirements: {scatter.up.title} over {scatter.across.title}"
        )
        yield Picture(title, b"".join(drawn(scatter, ".svg")), "options that meet the requirements, with the Pareto frontier")
        yield _table(answer, "Options that meet the requirements", answer.options[:ROWS], marked=answer.frontier)
    if answer.groups:
        yield _reasons(answer)


def _ranges(answer: Answer) -> Iterator[Section]:
    """The objective of the best of each with its range, and how much more the best may take before another one is ahead."""
    quantity = axes_of(answer.question)[0][0]
    measured = [(each, amount) for each in answer.of_each if (amount := each.numbers.get(quantity.key)) is not None]
    measured = [(each, amount) for each, amount in measured if math.isfinite(amount.high)]
    if len(measured) < 2 or answer.question.objectives[0].most:
        return
    shown = quantity.measure.shown
    bars = [Bar(where(each.point.shown), amount.low, amount.high, shown(amount.value)) for each, amount in measured]
    (first, best), (second, near) = sorted(measured, key=lambda pair: pair[1].value)[:2]
    note = ""
    if best.value > 0:
        more = percent(near.value / best.value - 1, "+.0f")
        crossed = f"{quantity.title} of {where(first.point.shown)} is {more}"
        note = f"Break-even: if {crossed}, {where(second.point.shown)} is as good."
    yield Bars(
        f"{quantity.title[:1].upper()}{quantity.title[1:]}, 90 % interval", bars, centre=best.value, note=note, shown=shown
    )


def _table(answer: Answer, title: str, options: Sequence[Option], marked: Sequence[Option] = ()) -> Table:
    made = columns(answer, options)
    front = {each.point.number for each in marked}
    rows = [
        [Cell(*column.cells[place]) for column in made]
        for place in range(len(options))
    ]  # fmt: skip
    stand_out = frozenset(place for place, each in enumerate(options) if each.point.number in front)
    note = "Marked: Pareto frontier, no other option is better in every axis." if stand_out else ""
    return Table(title, [Column(column.heading, column.right) for column in made], rows, stand_out, note)


def _reasons(answer: Answer) -> Table:
    names = [Column("options", right=True), Column("closest miss"), Column("requirement"), Column("value"),
             Column("off by", right=True), Column("what would meet it")]  # fmt: skip
    rows = [
        (
            Cell(f"{len(group.numbers):,}", len(group.numbers)),
            Cell(group.nearest_where),
            Cell(group.reason.constraint),
            Cell(group.reason.text),
            Cell("", "") if group.reason.needed is None else Cell(off_by(group.reason.excess, 1), group.reason.excess),
            Cell(group.reason.lift),
        )
        for group in answer.groups
    ]
    return Table(f"Rejected ({len(answer.rejected):,})", names, rows)


__all__ = ["of_answer", "render"]
