"""A sensitivity as text, as JSON, and as the bars of a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from hwsim.formats import percent
from hwsim.results.interval import LEVEL
from hwsim.sensitivities.answer import BreakEvenPrice, Sensitivity
from hwsim.sensitivities.tornado import TornadoBar
from hwsim.views.bars import draw
from hwsim.views.interval.say import EXACT, INPUTS, TITLE, factor_text, rough, sides
from hwsim.views.kit import warning_lines
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.figure import run_caption
from hwsim.views.kit.lines import LABEL, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns, free_width, wrap_column

ROWS: Final = 8  # of the tornado; -v: all
DRAWN: Final = 12  # bars of the figure
NAME: Final = 24  # smallest width of the names (characters); longer names are wrapped
SMALL: Final = 1e-3  # relative effect; smaller bars have no row
FIRST: Final = 3  # number of proposed measurements
WORTH: Final = 0.02  # share of the variance; smaller errors are not worth a measurement
HALF: Final = 6  # blocks on each side of the tornado
COVERED: Final = "* part of a model error above: measuring this input alone does not narrow the interval"
WAYS: Final = {"purchase": "to buy", "on_demand": "to rent"}


def text(answer: Sensitivity, *, verbose: bool = False) -> str:
    """Return the analysis as text; verbose: all inputs with an effect."""
    return "\n".join(_lines(answer, verbose)) + "\n" + warning_lines.text(answer.warnings)


def _lines(answer: Sensitivity, verbose: bool) -> Iterator[str]:
    workloads, machines = (tuple(dict.fromkeys(names)) for names in zip(*answer.titles, strict=True))
    yield from wrap_lines(f"{' vs '.join(workloads)}, on {' vs '.join(machines)}", 0)
    yield ""
    values = [answer.measure.shown(value) for value in answer.values]
    if answer.is_choice:
        yield from labelled_lines("answer", sentence(answer), LABEL)
        differing = [name for name, names in ((0, workloads), (1, machines)) if len(names) > 1]
        for letter, value, title in zip("AB", values, answer.titles, strict=True):
            yield from labelled_lines(letter, f"{value:<9} {', on '.join(title[name] for name in differing)}".rstrip(), LABEL)
    else:
        yield from labelled_lines(answer.measure.title, values[0], LABEL)
        yield from labelled_lines(TITLE, _range(answer), LABEL)
    for letter, changes in zip("AB", answer.settings, strict=False):
        if changes:
            changed = ", ".join(f"{path}={value}" for path, value in changes)
            yield from labelled_lines(f"set {letter}" if answer.is_choice else "set", changed, LABEL)
    yield from _first(answer)
    yield from _tornado(answer, verbose)
    yield from _order(answer)


def sentence(answer: Sensitivity) -> str:
    """Return which option is better, the factor, and the probability of a wrong choice."""
    better, worse, factor = ("B", "A", answer.answer) if answer.answer >= 1 else ("A", "B", 1 / answer.answer)
    ends = ""
    if answer.over is not None and answer.over.half > EXACT:
        low, high = (answer.over.low, answer.over.high) if better == "B" else (1 / answer.over.high, 1 / answer.over.low)
        ends = f" ({TITLE} {low:.3g}–{high:.3g}x)"
    is_pace = answer.measure.is_pace or answer.measure.column == "step_s"
    ahead = (
        f"{better} is {factor_text(factor)}x {f'faster than {worse}' if is_pace else f'better in {answer.measure.title}'}{ends}"
    )
    if answer.wrong is None:
        return f"{ahead}; no interval is available for {answer.measure.title}"
    if answer.is_outside:
        return f"inconclusive: {ahead}, but one option is extrapolated beyond all measurements"
    return f"{ahead}, wrong with a probability of {_probability(answer.wrong)}"


def _probability(part: float) -> str:
    return "<0.1 %" if part < 1e-3 else percent(part, ".0f" if part >= 0.0995 else ".2g")


def _range(answer: Sensitivity) -> str:
    if answer.half is None:
        return f"not available for {answer.measure.title}"
    if answer.half < EXACT:
        return INPUTS
    return f"{answer.measure.shown(answer.ends[0])} to {answer.measure.shown(answer.ends[1])} ({_around(answer)})"


def _shown(answer: Sensitivity, value: float) -> str:
    return f"{value:.3g}x" if answer.is_choice else answer.measure.shown(value)


def _tornado(answer: Sensitivity, verbose: bool) -> Iterator[str]:
    """Yield the tornado: result at both ends of each input, and a bar on each side."""
    large = [bar for bar in answer.bars if bar.swing >= SMALL * answer.answer]
    bars = answer.bars if verbose else large[:ROWS]
    yield ""
    if bars:
        farthest = max(max(bar.high - answer.answer, answer.answer - bar.low) for bar in bars)
        title = "speed of B relative to A" if answer.is_choice else answer.measure.title
        columns = [
            Column("uncertain input", [bar.name if bar.is_counted else f"{bar.name} *" for bar in bars], right=False),
            Column("range", [bar.range for bar in bars], right=False),
            Column("at low", [_end(answer, bar, "low") for bar in bars]),
            Column("at high", [_end(answer, bar, "high") for bar in bars]),
            Column("", [_drawn(bar, farthest) for bar in bars], right=False),
            Column("source (measurements)", [bar.source for bar in bars], right=False),
        ]
        yield f"  {title} at the low and high end of the range of each uncertain input:"
        yield from align_columns(wrap_column(columns, 0, max(NAME, free_width(columns, 0))))
    told = [f"{len(answer.bars) - len(bars)} more with a smaller effect (-v)"] if len(answer.bars) > len(bars) else []
    if answer.idle:
        told.append(f"{answer.idle}{' other' if bars else ''} uncertain inputs have no effect")
    yield f"  {'; '.join(told)}" if told or bars else "  no input is uncertain"
    if any(not bar.is_counted for bar in bars):
        yield f"  {COVERED}"


def _drawn(bar: TornadoBar, farthest: float) -> str:
    """Return a bar to the left and to the right of the answer."""
    low, high = (math.ceil(HALF * part / farthest - 0.5) for part in (bar.answer - bar.low, bar.high - bar.answer))
    return f"{'█' * low:>{HALF}}|{'█' * high:<{HALF}}"


def _end(answer: Sensitivity, bar: TornadoBar, end: str) -> str:
    return "refused" if bar.refused == end else _shown(answer, bar.at_low if end == "low" else bar.at_high)


def _first(answer: Sensitivity) -> Iterator[str]:
    """Yield the table of proposed measurements, with the interval that remains after each."""
    shown = [doubt for doubt in answer.doubts if doubt.share >= WORTH][:FIRST]
    if not shown or answer.half is None or answer.half < EXACT:
        return
    yield ""
    columns = [
        Column("to narrow the interval, measure", [doubt.name for doubt in shown], right=False),
        Column("share of variance", [percent(doubt.share, ".0f") for doubt in shown]),
        Column(f"interval now {_around(answer)}", [f"-> {_around(answer, doubt.half / answer.half)}" for doubt in shown]),
    ]
    if answer.wrong is not None:
        columns.append(Column("wrong choice", [_probability(doubt.wrong or 0.0) for doubt in shown]))
    yield from align_columns(wrap_column(columns, 0, max(NAME, free_width(columns, 0))))


def _around(answer: Sensitivity, part: float = 1.0) -> str:
    """Return the ends of the interval, scaled by a part of its half width, as relative changes."""
    return sides(*((end / answer.answer) ** part for end in answer.ends))


def _order(answer: Sensitivity) -> Iterator[str]:
    """Yield values and prices at which the order of the options changes."""
    if not answer.is_choice:
        return
    lines = [
        ("break-even", f"B's {flip.name} at {flip.written} ({_off(flip.factor)}) reverses the order") for flip in answer.breaks
    ]
    if answer.unbroken:
        lines.append(("no break-even", f"within a factor of 4: B's {', '.join(answer.unbroken)}"))
    lines += [(WAYS[price.way], _priced(answer, price)) for price in answer.worth]
    if not answer.worth and answer.over is not None and answer.measure.is_pace:
        ends = f" ({TITLE} {answer.over.low:.3g}–{answer.over.high:.3g}x)" if answer.over.half > EXACT else ""
        lines.append(("price", f"work costs the same on both if B costs {answer.answer:.3g}x as much as A{ends}"))
    if answer.unpriced:
        lines.append(("without price", ", ".join(answer.unpriced)))
    if lines:
        yield ""
    for label, line in lines:
        yield from labelled_lines(label, line, LABEL)


def _off(factor: float) -> str:
    """Return a factor as a relative change.

    >>> _off(1.2), _off(0.75)
    ('20 % higher', '25 % lower')
    """
    return f"{rough(abs(factor - 1))} {'higher' if factor > 1 else 'lower'}"


def _priced(answer: Sensitivity, worth: BreakEvenPrice) -> str:
    scale, unit = (3600.0, "USD/h") if worth.way == "on_demand" else (1.0, "USD")
    prices = [
        f"{float(f'{price.value * scale:.3g}'):,.{0 if price.value * scale >= 100 else 2}f} {unit}" for price in worth.prices
    ]
    ratio = worth.prices[1].value / worth.prices[0].value
    cheaper = "B" if worth.factor > 1 else "A"
    half = math.hypot(answer.half or 0.0, *(math.log(cost.high / cost.low) / 2 for cost in worth.prices if cost.low > 0))
    if worth.unlike:
        return f"A {prices[0]}, B {prices[1]} ({ratio:.3g}x), not comparable: {worth.unlike}"
    sure = "" if half < EXACT else " (95 % confidence)" if abs(math.log(worth.factor)) > half else " (statistically tied)"
    costs = f"A {prices[0]}, B {prices[1]} ({ratio:.3g}x): work costs less on {cheaper}{sure}"
    return f"{costs}; break-even at a {_off(worth.factor)} price of B"


def as_dict(answer: Sensitivity) -> dict[str, Any]:
    """Return the JSON document."""
    return {
        "hwsim": "sensitivity/2",
        "options": [
            {"workload": workload, "machine": machine, "set": dict(changes)}
            for (workload, machine), changes in zip(answer.titles, answer.settings, strict=True)
        ],
        "measure": select_attributes(answer.measure, "title", "unit", measure="column"),
        "values": list(answer.values),
        "answer": answer.answer,
        "interval": None if answer.half is None else {"level": LEVEL, "low": answer.ends[0], "high": answer.ends[1]},
        "extrapolated": answer.is_outside,
        "wrong_choice": answer.wrong,
        "bars": [
            {
                **select_attributes(bar, "name", "at_low", "at_high", "range", "source", "refused", counted="is_counted"),
                "set": [dict([setting]) for setting in bar.settings],
            }
            for bar in answer.bars
        ],
        "measure_first": [
            select_attributes(doubt, "name", "share", half_width_without="half", wrong_choice_without="wrong")
            for doubt in answer.doubts
        ],
        "break_even": [select_attributes(flip, "name", "factor", "written") for flip in answer.breaks],
        "no_break_even": list(answer.unbroken),
        "prices": [
            {
                "payment": payment.way,
                **{
                    f"{letter}_usd": select_attributes(price, "value", "low", "high")
                    for letter, price in zip("ab", payment.prices, strict=True)
                },
                "break_even_factor": payment.factor,
                "not_comparable": payment.unlike,
            }
            for payment in answer.worth
        ],
        "without_price": list(answer.unpriced),
        "numbers_without_effect": answer.idle,
        "runs": answer.runs,
        "warnings": warning_lines.as_dicts(answer.warnings),
    }


def drawn(answer: Sensitivity) -> draw.BarFigure:
    """Return the bars of the figure."""
    runs = [run_caption(*title, changes) for title, changes in zip(answer.titles, answer.settings, strict=True)]
    below = "\n".join(f"{letter}: {run}" for letter, run in zip("AB", runs, strict=True)) if answer.is_choice else runs[0]
    bars = tuple(draw.FigureBar(f"{bar.name}  {bar.range}", bar.at_low, bar.at_high) for bar in answer.bars[:DRAWN])
    if answer.is_choice:
        return draw.BarFigure(sentence(answer), "speed of B relative to A", "1", bars, answer.answer, below)
    largest = f"; largest source of uncertainty: {answer.bars[0].name}" if bars else ""
    told = f", {TITLE} {_range(answer)}" if answer.half is not None and answer.half >= EXACT else ""
    title = f"{answer.measure.shown(answer.values[0])}{told}{largest}"
    return draw.BarFigure(title, answer.measure.title, answer.measure.unit, bars, answer.answer, below)


__all__ = ["as_dict", "drawn", "sentence", "text"]
