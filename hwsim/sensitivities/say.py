"""A sensitivity as text, as JSON, and as the bars of a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from hwsim.formats import percent
from hwsim.results.interval import LEVEL
from hwsim.sensitivities.answer import Sensitivity, Worth
from hwsim.sensitivities.tornado import Bar
from hwsim.views.bars import draw
from hwsim.views.interval.say import EXACT, factor_text, rough, sides
from hwsim.views.kit import warned
from hwsim.views.kit.document import picked
from hwsim.views.kit.figure import about
from hwsim.views.kit.lines import WIDTH, titled
from hwsim.views.kit.table import Column, aligned, shortened

ROWS: Final = 12
NAME: Final = 37  # letters
RANGE: Final = 19
BY: Final = 13
SMALL: Final = 1e-3  # part of the answer that a bar moves it, below which it has no row
FIRST: Final = 3  # errors that are proposed to be measured
WORTH: Final = 0.02  # share of the variance below which nothing is gained
WAYS: Final = {"purchase": "to buy", "on_demand": "to rent by the hour"}


def text(answer: Sensitivity) -> str:
    """The sensitivity, ending with a newline."""
    return "\n".join(_lines(answer)) + "\n" + warned.text(answer.warnings)


def _lines(answer: Sensitivity) -> Iterator[str]:
    for letter, (workload, machine), changes in zip("AB", answer.titles, answer.settings, strict=False):
        yield from titled(letter if answer.is_choice else "run", f"{workload}  on  {machine}")
        if changes:
            yield from titled("set", ", ".join(f"{path}={value}" for path, value in changes))
    values = [answer.measure.shown(value) for value in answer.values]
    shown = f"A {values[0]}; B {values[1]}" if answer.is_choice else values[0]
    yield from titled(answer.measure.title, shown + ("" if answer.is_choice else _range(answer)))
    if answer.is_choice:
        yield from titled("answer", sentence(answer))
    yield from _tornado(answer)
    yield from _first(answer)
    yield from _order(answer)


def sentence(answer: Sensitivity) -> str:
    """The answer: how many times as good B is, and how probably that is wrong."""
    better, factor = ("B", answer.answer) if answer.answer >= 1 else ("A", 1 / answer.answer)
    ends = ""
    if answer.over is not None and answer.over.half > EXACT:
        low, high = (answer.over.low, answer.over.high) if better == "B" else (1 / answer.over.high, 1 / answer.over.low)
        ends = f" ({low:.3g} to {high:.3g})"
    how = "as fast" if answer.measure.is_pace or answer.measure.column == "step_s" else f"as good by {answer.measure.title}"
    ahead = f"{better} is {factor_text(factor)}{ends} times {how}"
    if answer.wrong is None:
        return f"{ahead}; nothing says how sure that is"
    if answer.is_outside:
        return f"{ahead}; one of them is outside of everything measured, so that the choice is a guess"
    return f"{ahead}; the choice of {better} is wrong with {_probability(answer.wrong)}"


def _probability(part: float) -> str:
    return "<0.1 %" if part < 5e-4 else percent(part, ".0f" if part >= 0.0995 else ".2g")


def _range(answer: Sensitivity) -> str:
    if answer.half is None:
        return "; nothing says how sure that is"
    if answer.half < EXACT:
        return "; nothing of it is unsure"
    return f", 9 of 10 within {answer.measure.shown(answer.ends[0])} to {answer.measure.shown(answer.ends[1])}"


def _shown(answer: Sensitivity, value: float) -> str:
    return f"{value:.3g}" if answer.is_choice else answer.measure.shown(value)


def _tornado(answer: Sensitivity) -> Iterator[str]:
    large = [bar for bar in answer.bars if bar.swing >= SMALL * answer.answer]
    bars = large[:ROWS]
    yield ""
    if not bars:
        yield "  no unsure number moves the answer by 0.1 %"
    else:
        title = "B over A" if answer.is_choice else answer.measure.title
        yield f"  {title} with each unsure number at the ends of its range"
        yield from aligned([
            Column("what is unsure", [shortened(bar.name, NAME) for bar in bars], right=False),
            Column("range", [shortened(bar.range, RANGE) for bar in bars], right=False),
            Column("by", [shortened(bar.source, BY) for bar in bars], right=False),
            Column("at low", [_end(answer, bar, "low") for bar in bars]),
            Column("at high", [_end(answer, bar, "high") for bar in bars]),
        ], widest=WIDTH)  # fmt: skip
    if len(answer.bars) > len(bars):
        yield f"  and {len(answer.bars) - len(bars)} more, which move it less"
    notes = []
    if any(not bar.is_counted for bar in bars):
        stands = "* the error of a model, or of a number that is less sure, stands for this one in the interval"
        notes.append(f"{stands}: to measure this one alone would not narrow it")
    if answer.idle:
        notes.append(f"{answer.idle} other unsure numbers move nothing; they were tried together, part by part")
    for note in notes:
        yield from textwrap.wrap(note, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _end(answer: Sensitivity, bar: Bar, end: str) -> str:
    value = bar.at_low if end == "low" else bar.at_high
    return ("refused" if bar.refused == end else _shown(answer, value)) + ("" if bar.is_counted else " *")


def _first(answer: Sensitivity) -> Iterator[str]:
    """Errors worth to be measured."""
    shown = [doubt for doubt in answer.doubts if doubt.share >= WORTH][:FIRST]
    if not shown or answer.half is None or answer.half < EXACT:
        return
    yield ""
    columns = [
        Column("measure first", [shortened(doubt.name, 52) for doubt in shown], right=False),
        Column("of the doubt", [percent(doubt.share, ".0f") for doubt in shown]),
        Column("leaves", [_around(answer, doubt.half / answer.half) for doubt in shown]),
    ]
    if answer.wrong is not None:
        columns.append(Column("wrong choice", [_probability(doubt.wrong or 0.0) for doubt in shown]))
    yield from aligned(columns, widest=WIDTH)
    yield f"  now {_around(answer)}" + (
        f", and a wrong choice in {_probability(answer.wrong)}" if answer.wrong is not None else ""
    )


def _around(answer: Sensitivity, part: float = 1.0) -> str:
    """The ends of the interval with this part of its half width, as changes of the answer."""
    return sides(*((end / answer.answer) ** part for end in answer.ends))


def _order(answer: Sensitivity) -> Iterator[str]:
    """Values and prices at which the order of the options changes."""
    if not answer.is_choice:
        return
    lines = [f"the order changes if B's {each.name} is {each.written}, {_off(each.factor)}" for each in answer.breaks]
    if answer.unbroken:
        lines.append(f"no value from a quarter to four times changes it: {', '.join(f'B {name}' for name in answer.unbroken)}")
    lines += [_priced(answer, each) for each in answer.worth]
    if not answer.worth and answer.over is not None and answer.measure.is_pace:
        ends = f" ({answer.over.low:.3g} to {answer.over.high:.3g})" if answer.over.half > EXACT else ""
        lines.append(f"for the same money a unit of work, B may cost {answer.answer:.3g}{ends} times what A costs")
    if answer.unpriced:
        lines.append(f"without a price: {', '.join(answer.unpriced)}")
    if lines:
        yield ""
    for line in lines:
        yield from textwrap.wrap(line, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _off(factor: float) -> str:
    """A factor as a change.

    >>> _off(1.2), _off(0.75)
    ('20 % more', '25 % less')
    """
    return f"{rough(abs(factor - 1))} {'more' if factor > 1 else 'less'}"


def _priced(answer: Sensitivity, worth: Worth) -> str:
    scale, unit = (3600.0, "USD/h") if worth.way == "on_demand" else (1.0, "USD")
    prices = [f"{float(f'{each.value * scale:.3g}'):,.{0 if each.value * scale >= 100 else 2}f} {unit}" for each in worth.prices]
    ratio = worth.prices[1].value / worth.prices[0].value
    cheaper = "B" if worth.factor > 1 else "A"
    half = math.hypot(answer.half or 0.0, *(math.log(each.high / each.low) / 2 for each in worth.prices if each.low > 0))
    sure = "" if half < EXACT else f", {'95 % sure' if abs(math.log(worth.factor)) > half else 'which cannot be told'}"
    costs = f"{WAYS[worth.way]}, A costs {prices[0]} and B {prices[1]}, {ratio:.3g} times as much"
    return f"{costs}: work is cheaper on {cheaper}{sure}; at {_off(worth.factor)} for B the order changes"


def as_dict(answer: Sensitivity) -> dict[str, Any]:
    """The document."""
    return {
        "hwsim": "sensitivity/1",
        "options": [
            {"workload": workload, "machine": machine, "set": dict(changes)}
            for (workload, machine), changes in zip(answer.titles, answer.settings, strict=True)
        ],
        "by": picked(answer.measure, "title", "unit", measure="column"),
        "values": list(answer.values),
        "answer": answer.answer,
        "interval": None if answer.half is None else {"level": LEVEL, "low": answer.ends[0], "high": answer.ends[1]},
        "outside": answer.is_outside,
        "wrong_choice": answer.wrong,
        "bars": [
            {
                **picked(bar, "name", "at_low", "at_high", "range", "source", "refused", counted="is_counted"),
                "set": [dict([setting]) for setting in bar.settings],
            }
            for bar in answer.bars
        ],
        "measure_first": [
            picked(doubt, "name", "share", half_if_known="half", wrong_choice_if_known="wrong") for doubt in answer.doubts
        ],
        "break_even": [picked(each, "name", "factor", "written") for each in answer.breaks],
        "no_break_even": list(answer.unbroken),
        "prices": [
            {
                "way": each.way,
                **{
                    f"{letter}_usd": picked(price, "value", "low", "high")
                    for letter, price in zip("ab", each.prices, strict=True)
                },
                "break_even_factor": each.factor,
            }
            for each in answer.worth
        ],
        "without_price": list(answer.unpriced),
        "numbers_without_effect": answer.idle,
        "runs": answer.runs,
        "warnings": warned.as_dicts(answer.warnings),
    }


def drawn(answer: Sensitivity) -> draw.Bars:
    """The bars of the figure."""
    runs = [about(*title, changes) for title, changes in zip(answer.titles, answer.settings, strict=True)]
    below = "\n".join(f"{letter}: {run}" for letter, run in zip("AB", runs, strict=True)) if answer.is_choice else runs[0]
    bars = tuple(draw.Bar(f"{bar.name}  {bar.range}", bar.at_low, bar.at_high) for bar in answer.bars[:ROWS])
    most = f"; most of all it hangs on {answer.bars[0].name}" if bars else ""
    if answer.is_choice:
        title, quantity, unit = sentence(answer), "how many times as good B is", "1"
    else:
        title, quantity, unit = (
            f"{answer.measure.shown(answer.values[0])}{_range(answer)}{most}",
            answer.measure.title,
            answer.measure.unit,
        )
    return draw.Bars(title, quantity, unit, bars, answer.answer, below)


__all__ = ["as_dict", "drawn", "sentence", "text"]
