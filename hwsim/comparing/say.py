"""A comparison as text, as JSON, and as the bars of a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from hwsim.comparing.alike import UNLIKE
from hwsim.comparing.comparison import Comparison, OpPair, Row
from hwsim.comparing.sides import Side
from hwsim.comparing.waterfall import Waterfall
from hwsim.formats import format_quantity
from hwsim.results.interval import LEVEL
from hwsim.results.ratio import Ratio
from hwsim.studies.measures import TIME, Measure
from hwsim.studies.measures import measure as measure_of
from hwsim.ticks import FEMTO
from hwsim.views.bars.draw import Bar, Bars
from hwsim.views.interval.say import EXACT, factor_text, within
from hwsim.views.kit import warned
from hwsim.views.kit.document import picked
from hwsim.views.kit.figure import about
from hwsim.views.kit.lines import WIDTH, titled
from hwsim.views.kit.table import Column, aligned, shortened

CAUSES: Final = 8  # rows of a table
OPS: Final = 10
NAME: Final = 44  # letters
CHANGE: Final = 30
STEPS: Final = 12
ONE: Final = {"samples": "sample", "tokens": "token", "requests": "request", "batches": "batch", "accesses": "access"}
SMALL: Final = 5e-4  # part of the larger time below which a row is left to "the rest"


def text(both: Comparison) -> str:
    """The comparison, ending with a newline."""
    return "\n".join(_lines(both)) + "\n" + warned.text(both.warnings)


def _lines(both: Comparison) -> Iterator[str]:
    for letter, side in (("A", both.first), ("B", both.second)):
        settings = ", ".join(f"{path}={value}" for path, value in side.settings)
        yield from titled(letter, f"{side.workload}  on  {side.machine}" + (f", set {settings}" if settings else ""))
    yield from titled("time", "; ".join(f"{letter} {_time(side)}" for letter, side in (("A", both.first), ("B", both.second))))
    if both.measure is not None and both.values is not None and both.measure.column != TIME:
        shown = [both.measure.shown(value) for value in both.values]
        yield from titled(both.measure.title, f"A {shown[0]}; B {shown[1]}")
    yield from _bills(both)
    yield from titled("answer", sentence(both))
    if both.why and both.measure is not None and both.why != "as asked for":
        yield from titled("", both.why)
    yield from titled("known alike", provenance(both)) if both.is_unlike else ()
    yield from _causes(both)
    yield from _ops(both)
    if both.steps is not None:
        yield from _waterfall(both, both.steps)


def _bills(both: Comparison) -> Iterator[str]:
    """Energy and cost of runs with prices, each unless the runs are compared by it."""
    sides = both.first, both.second
    if any("cost_usd" not in side.bill for side in sides):
        return
    for wanted in (measure_of("energy"), measure_of("cost")):
        if (both.measure is None or both.measure.column != wanted.column) and all(wanted.column in side.bill for side in sides):
            shown = [wanted.shown(side.bill[wanted.column]) for side in sides]
            yield from titled(wanted.title, f"A {shown[0]}; B {shown[1]}")


def _time(side: Side) -> str:
    sure = side.interval
    unsure = f" ({within(sure)})" if sure is not None and sure.half > EXACT else ""
    return format_quantity(side.makespan_s, "s") + unsure


def sentence(both: Comparison) -> str:
    """The answer: how many times as fast B is, and how sure that is."""
    if both.measure is None or both.values is None:
        return both.why
    if both.values[0] == both.values[1]:
        return f"both have the same {both.measure.title}"
    if min(both.values) <= 0:
        return f"no ratio: {both.measure.title} is 0 in one of them"
    most = both.measure.most
    value = both.values[1] / both.values[0] if most else both.values[0] / both.values[1]
    if both.over is None:
        return _times(both.measure, value) + "; how sure that is, nothing says" + _missing(both)
    if both.over.outside:
        unknown = f"which is {_better(both.measure)} cannot be told: one of them is outside of everything measured"
        return f"{unknown} ({_times(both.measure, value)})"
    if both.over.half < EXACT:
        return _times(both.measure, value) + ", as far as the files state: nothing that differs is unsure"
    if not both.over.is_told:
        return f"which is {_better(both.measure)} cannot be told: {_ranged(both.measure, both.over)}"
    return f"{_ranged(both.measure, both.over)}, 95 % sure"


def provenance(both: Comparison) -> str:
    """The answer if what was measured is left out: the rest is of how the machines are known, not of what they are."""
    if both.alike is None or both.measure is None:
        return "no; what that makes of the difference, `hwsim compare` of the machines' and workloads' files tells"
    return f"if what was measured of either is left to its class, {_times(both.measure, both.alike)}; the range above holds both"


def _missing(both: Comparison) -> str:
    if both.is_unlike:
        return f": {UNLIKE}"
    if both.first.service or both.second.service:
        return ": --interval finds the ends with two more runs of each service"
    return ""


def _better(measure: Measure) -> str:
    return "faster" if measure.is_pace or measure.column == "step_s" else "better"


def _times(measure: Measure, value: float, low: float = 0.0, high: float = 0.0) -> str:
    """ "B is 1.31 (1.2 to 1.45) times as fast as A", the better one first."""
    first, second = ("B", "A") if value >= 1 else ("A", "B")
    if value < 1:
        value, low, high = 1 / value, 1 / high if high else 0.0, 1 / low if low else 0.0
    factor = f"{factor_text(value)} ({factor_text(low)} to {factor_text(high)})" if high else factor_text(value)
    if _better(measure) == "faster":
        return f"{first} is {factor} times as fast as {second}"
    if measure.most:
        return f"{first} has {factor} times the {measure.title} of {second}"
    return f"{second} has {factor} times the {measure.title} of {first}"


def _ranged(measure: Measure, over: Ratio) -> str:
    return _times(measure, over.value, over.low, over.high)


def _causes(both: Comparison) -> Iterator[str]:
    rows = [row for row in both.causes if row.first_fs or row.second_fs]
    if not rows:
        return
    per = f", per {ONE.get(both.unit, both.unit)}" if both.unit else ""
    largest = max(both.first.makespan_fs / both.amounts[0], both.second.makespan_fs / both.amounts[1])
    shown = [row for row in rows if max(_scaled(row, both)) >= SMALL * largest][:CAUSES]
    rest = [row for row in rows if row not in shown]
    names = [shortened(row.name, NAME) for row in shown]
    times = [_scaled(row, both) for row in shown]
    groups: list[str] = [row.group for row in shown]
    if rest:
        names.append(f"{len(rest)} more")
        groups.append("")
        times.append(tuple(math.fsum(_scaled(row, both)[at] for row in rest) for at in (0, 1)))
    names.append("all")
    groups.append("")
    times.append((both.first.makespan_fs / both.amounts[0], both.second.makespan_fs / both.amounts[1]))
    yield ""
    yield from aligned([
        Column(f"why{per}", names, right=False),
        Column("case", groups, right=False),
        Column("A", [_fs(first) for first, _ in times]),
        Column("B", [_fs(second) for _, second in times]),
        Column("B - A", [signed_time(second - first) for first, second in times]),
    ], widest=WIDTH)  # fmt: skip


def _scaled(row: Row, both: Comparison) -> tuple[float, ...]:
    return row.first_fs / both.amounts[0], row.second_fs / both.amounts[1]


def _fs(time: float) -> str:
    return format_quantity(time / FEMTO, "s") if time else "-"


def signed_time(time: float) -> str:
    """A difference in fs, `- 84.5 ms`; 0 for none."""
    return f"{'-' if time < 0 else '+'} {format_quantity(abs(time) / FEMTO, 's')}" if time else "0"


def _ops(both: Comparison) -> Iterator[str]:
    pairs = both.ops
    if not both.first.ops or not both.second.ops:
        missing = [letter for letter, side in (("A", both.first), ("B", both.second)) if not side.ops]
        yield ""
        yield f"  no table by op: {' and '.join(missing)} has no ops; `hwsim simulate --json --ops` writes them"
        return
    has_path = all(op.waited_fs is not None for side in (both.first, both.second) for op in side.ops)
    shown = pairs[:OPS]
    yield ""
    yield from aligned([
        Column("op", [shortened(pair.name, NAME) for pair in shown], right=False),
        *(
            [
                Column("waited A", [_waited(pair, 0, both) for pair in shown]),
                Column("waited B", [_waited(pair, 1, both) for pair in shown]),
            ]
            if has_path
            else []
        ),
        Column("times A", [f"{pair.first.times:,}" if pair.first else "-" for pair in shown]),
        Column("times B", [f"{pair.second.times:,}" if pair.second else "-" for pair in shown]),
        Column("each A", [_each(pair, 0) for pair in shown]),
        Column("each B", [_each(pair, 1) for pair in shown]),
    ], widest=WIDTH)  # fmt: skip
    if len(pairs) > OPS:
        yield f"  and {len(pairs) - OPS} more ops, which differ less"


def _waited(pair: OpPair, at: int, both: Comparison) -> str:
    op = pair.first if at == 0 else pair.second
    return "-" if op is None or not op.waited_fs else _fs(op.waited_fs / both.amounts[at])


def _each(pair: OpPair, at: int) -> str:
    op = pair.first if at == 0 else pair.second
    return format_quantity(op.each_s, "s") if op is not None and op.times else "-"


def _waterfall(both: Comparison, steps: Waterfall) -> Iterator[str]:
    assert both.measure is not None
    yield ""
    if not steps.steps and not steps.without:
        yield "  no change of the files: both are the same"
        return
    shown, rest = steps.steps[:STEPS], steps.steps[STEPS:]
    names = ["A", *(shortened(step.change.name, NAME) for step in shown), *([f"{len(rest)} more"] if rest else []), "B"]
    changes = [
        "",
        *(shortened(f"{step.change.before} -> {step.change.after}", CHANGE if steps.orders else NAME) for step in shown),
        *([""] if rest else []),
        "",
    ]
    values = [both.measure.shown(steps.first * steps.unit)]
    values += [_signed(both.measure, step.share * steps.unit) for step in shown]
    values += [_signed(both.measure, math.fsum(step.share for step in rest) * steps.unit)] if rest else []
    values.append(both.measure.shown(steps.last * steps.unit))
    columns = [Column("what changed", names, right=False), Column("from -> to", changes, right=False)]
    columns.append(Column(both.measure.title, values))
    if steps.orders:
        marks = ["", *(f"+-{both.measure.shown(step.unsure * steps.unit)}" for step in shown), *([""] if rest else []), ""]
        columns.append(Column("of orders", marks))
    yield from aligned(columns, widest=WIDTH)
    if steps.without:
        yield from _wrapped(f"without any effect: {', '.join(change.name for change in steps.without)}")
    if len(steps.steps) > 1:
        over = "all orders of the changes" if not steps.orders else f"{steps.orders} orders, each with its reverse"
        runs = f"each share is the mean over {over} ({steps.evaluations} runs)"
        yield from _wrapped(f"{runs}, so that their order does not matter; they add up exactly")


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)


def _signed(measure: Measure, value: float) -> str:
    return ("- " if value < 0 else "+ ") + measure.shown(abs(value)) if value else "0"


def as_dict(both: Comparison) -> dict[str, Any]:
    """The document; exact times are also integer femtoseconds."""
    measure = both.measure
    return {
        "hwsim": "compare/1",
        "a": _side(both.first),
        "b": _side(both.second),
        "by": None
        if measure is None
        else {**picked(measure, "title", "unit", measure="column"), "best": "highest" if measure.most else "lowest"},
        "values": None if both.values is None else dict(zip("ab", both.values, strict=True)),
        "b_over_a": None if both.over is None else {**picked(both.over, "value", "low", "high", told="is_told"), "level": LEVEL},
        "b_over_a_known_alike": both.alike,
        "answer": sentence(both),
        "per": both.unit or None,
        "causes": [
            picked(row, "difference_fs", cause="name", case="group", a_fs="first_fs", b_fs="second_fs") for row in both.causes
        ],
        "ops": [{"name": pair.name, "a": _spent(pair.first), "b": _spent(pair.second)} for pair in both.ops],
        "waterfall": None if both.steps is None else _steps(both.steps),
        "warnings": warned.as_dicts(both.warnings),
    }


def _side(side: Side) -> dict[str, Any]:
    sure = side.interval
    return {
        **picked(side, "machine", "workload", "makespan_s", "makespan_fs"),
        "set": dict(side.settings),
        "interval": None if sure is None else picked(sure, "level", "case", low_s="low", high_s="high"),
        "work": {work.unit: work.amount for work in side.work},
        **side.bill,
    }


def _spent(op: Any) -> dict[str, Any] | None:
    return None if op is None else picked(op, "times", "total_s", "each_s", "waited_fs")


def _steps(steps: Waterfall) -> dict[str, Any]:
    return {
        **picked(steps, "first", "last", "unit", "evaluations", "orders"),
        "steps": [
            {
                **picked(step.change, "name", "before", "after"),
                "signed_share": step.share,
                "signed_value": step.share * steps.unit,
                "standard_error": step.unsure * steps.unit,
            }
            for step in steps.steps
        ],
        "without_effect": [change.name for change in steps.without],
    }


def drawn(both: Comparison) -> Bars:
    """The bars of the figure: the waterfall, or the causes if there is none."""
    title = sentence(both)
    title = f"{title[:1].upper()}{title[1:]}"
    below = "\n".join(
        f"{letter}: {about(side.workload, side.machine, side.settings)}"
        for letter, side in zip("AB", (both.first, both.second), strict=True)
    )
    if both.steps is not None and both.measure is not None:
        unit = both.steps.unit
        bars = [Bar("A", 0.0, both.steps.first * unit, whole=True)]
        at = both.steps.first
        for step in both.steps.steps[:STEPS]:
            bars.append(Bar(step.change.name, at * unit, (at + step.share) * unit))
            at += step.share
        if at != both.steps.last:
            bars.append(Bar("the rest", at * unit, both.steps.last * unit))
        bars.append(Bar("B", 0.0, both.steps.last * unit, whole=True))
        return Bars(title, both.measure.title, both.measure.unit, tuple(bars), below=below)
    amounts = [amount * FEMTO for amount in both.amounts]
    bars, level = [Bar("A", 0.0, both.first.makespan_fs / amounts[0], whole=True)], both.first.makespan_fs / amounts[0]
    for row in both.causes[:STEPS]:
        after = level + row.second_fs / amounts[1] - row.first_fs / amounts[0]
        bars.append(Bar(row.name, level, after))
        level = after
    last = both.second.makespan_fs / amounts[1]
    if len(both.causes) > STEPS:
        bars.append(Bar("the rest", level, last))
    bars.append(Bar("B", 0.0, last, whole=True))
    return Bars(title, f"time per {ONE.get(both.unit, both.unit)}" if both.unit else "time", "s", tuple(bars), below=below)


__all__ = ["as_dict", "drawn", "sentence", "signed_time", "text"]
