"""A comparison as text, as JSON, and as the bars of a figure: the answer first, then bounds and contributions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hwsim.comparing.class_defaults import UNLIKE
from hwsim.comparing.comparison import CauseTimes, Comparison, OpPair, common
from hwsim.comparing.sides import OpSum, Side
from hwsim.comparing.waterfall import Waterfall
from hwsim.formats import format_quantity
from hwsim.results.bound import ARRIVALS
from hwsim.results.interval import LEVEL
from hwsim.studies.measures import TIME, StudyMeasure
from hwsim.studies.measures import measure as measure_of
from hwsim.studies.ranking import AS_ASKED
from hwsim.ticks import FEMTO
from hwsim.views.bars.draw import BarFigure, FigureBar
from hwsim.views.interval.say import EXACT, TITLE, factor_text, relative_range
from hwsim.views.kit import warning_lines
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.figure import run_caption
from hwsim.views.kit.lines import LABEL, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_middle, free_width, wrap_column

BOUNDS: Final = 8  # rows of the table of bounds
OPS: Final = 10
NAME: Final = 44  # characters of a name
STEPS: Final = 12
LEAST_NAME: Final = 16  # smallest width of a column with continuation lines (characters)
ONE: Final = {"samples": "sample", "tokens": "token", "requests": "request", "batches": "batch", "accesses": "access"}
SMALL: Final = 5e-4  # share of the larger time; smaller rows are summed


def text(both: Comparison, *, verbose: bool = False) -> str:
    """Return the comparison as text; verbose: with all causes and the ops that differ most."""
    return "\n".join(_lines(both, verbose)) + "\n" + warning_lines.text(both.warnings)


def _lines(both: Comparison, verbose: bool) -> Iterator[str]:
    yield from wrap_lines(title(both), 0)
    yield ""
    yield from labelled_lines("answer", sentence(both), LABEL)
    if both.why and both.measure is not None and both.why != AS_ASKED and not both.not_comparable:
        yield from labelled_lines("compared by", both.why, LABEL)
    if both.is_unlike:
        yield from labelled_lines("check", provenance(both), LABEL)
    for letter, side in zip("AB", (both.first, both.second), strict=True):
        if side.settings:
            yield from labelled_lines(f"set {letter}", ", ".join(f"{path}={value}" for path, value in side.settings), LABEL)
    yield from _runs(both)
    yield from _table("critical path by bound", both.bounds, both, BOUNDS)
    if both.steps is not None:
        yield from _waterfall(both, both.steps)
    if verbose:
        yield from _table("critical path by cause", both.causes, both, len(both.causes))
        yield from _ops(both)


def title(both: Comparison) -> str:
    """Return workload and machine, with both names if they differ: `ResNet-50, on DGX A100 vs DGX H100`."""
    pairs = ((both.first.workload, both.second.workload), (both.first.machine, both.second.machine))
    workloads, machines = (" vs ".join(dict.fromkeys(pair)) for pair in pairs)
    return f"{workloads}, on {machines}"


def _runs(both: Comparison) -> Iterator[str]:
    """Return the table of runs: time, interval, and other measures."""
    sides = both.first, both.second
    letters = [
        " ".join([letter, *([side.workload] if both.first.workload != both.second.workload else []),
                  *([side.machine] if both.first.machine != both.second.machine else [])])
        for letter, side in zip("AB", sides, strict=True)
    ]  # fmt: skip
    columns = [
        Column("run", letters, right=False),
        Column(measure_of(TIME).title, [format_quantity(side.makespan_s, "s") for side in sides]),
    ]
    intervals = ["" if side.interval is None else relative_range(side.interval) for side in sides]
    if any(intervals):
        columns.append(Column(TITLE, [interval or "-" for interval in intervals]))
    if both.measure is not None and both.values is not None and both.measure.column != TIME:
        columns.append(Column(both.measure.title, [both.measure.shown(value) for value in both.values]))
    elif both.measure is None:
        columns += [Column(one.title, [one.shown(side.measures[one.column]) for side in sides]) for one in common(*sides)]
    billed = (measure_of("energy"), measure_of("cost")) if all("cost_usd" in side.bill for side in sides) else ()
    columns += [
        Column(wanted.title, [wanted.shown(side.bill[wanted.column]) for side in sides])
        for wanted in billed
        if wanted != both.measure and all(wanted.column in side.bill for side in sides)
    ]
    yield ""
    yield from align_columns(wrap_column(columns, 0, max(LEAST_NAME, free_width(columns, 0))))


def sentence(both: Comparison) -> str:
    """Return which run is better, the factor and its interval."""
    if both.measure is None or both.values is None:
        return both.why
    if both.values[0] == both.values[1]:
        return f"no difference: both have the same {both.measure.title}"
    if min(both.values) <= 0:
        return f"no ratio: {both.measure.title} of one run is 0"
    value = both.values[1] / both.values[0] if both.measure.most else both.values[0] / both.values[1]
    if both.over is None and both.not_comparable:
        return f"not comparable ({_ahead(both.measure, value)}): {both.why}"
    if both.over is None:
        return f"{_ahead(both.measure, value)} (no interval{_missing(both)})"
    if both.over.outside:
        return f"inconclusive: {_ahead(both.measure, value)}, but one run is extrapolated beyond all measurements"
    if both.over.half < EXACT:
        return f"{_ahead(both.measure, value)} (exact: no input that differs is uncertain)"
    ahead = _ahead(both.measure, both.over.value, both.over.low, both.over.high)
    return ahead if both.over.is_conclusive else f"statistically tied: {ahead}"


def provenance(both: Comparison) -> str:
    """Return the ratio with class defaults, which excludes differences due to the data of the machines."""
    if both.alike is None or both.measure is None:
        return f"{UNLIKE}; `hwsim compare` of the files adds the ratio with class defaults on both"
    return f"{_ahead(both.measure, both.alike)} with class defaults on both, inside the interval"


def _missing(both: Comparison) -> str:
    if both.is_unlike:
        return ": the machines are not modelled from equal data"
    if both.first.service or both.second.service:
        return "; --interval computes one with two more runs of each service"
    return " is available"


def _ahead(measure: StudyMeasure, value: float, low: float = 0.0, high: float = 0.0) -> str:
    """ "B is 1.31x faster than A (90 % interval 1.2–1.45x)", the better one first."""
    first, second = ("B", "A") if value >= 1 else ("A", "B")
    if value < 1:
        value, low, high = 1 / value, 1 / high if high else 0.0, 1 / low if low else 0.0
    ends = f" ({TITLE} {factor_text(low)}–{factor_text(high)}x)" if high else ""
    if measure.is_pace or measure.column == "step_s":
        return f"{first} is {factor_text(value)}x faster than {second}{ends}"
    return f"{first} has {factor_text(value)}x {'higher' if measure.most else 'lower'} {measure.title} than {second}{ends}"


def _table(heading: str, every: Sequence[CauseTimes], both: Comparison, most: int) -> Iterator[str]:
    """Yield the table of both critical paths by bound or cause, which adds up to the times of the runs."""
    rows = [row for row in every if row.first_fs or row.second_fs]
    if not rows or {row.name for row in rows} == {ARRIVALS}:  # a service keeps up: its requests set the time
        return
    totals = both.first.makespan_fs / both.amounts[0], both.second.makespan_fs / both.amounts[1]
    shown = [row for row in rows if max(_scaled(row, both)) >= SMALL * max(totals)][:most]
    shown = rows if len(rows) == len(shown) + 1 else shown
    rest = [row for row in rows if row not in shown]
    names, times = [shown_row.name for shown_row in shown], [_scaled(row, both) for row in shown]
    if rest:
        names.append(f"{len(rest)} more")
        times.append(tuple(math.fsum(_scaled(row, both)[index] for row in rest) for index in (0, 1)))
    names.append("total")
    times.append(totals)
    per = f" (per {ONE.get(both.unit, both.unit)})" if both.unit else ""
    columns = [
        Column(heading + per, names, right=False),
        Column("A", [_fs(first) for first, _ in times]),
        Column("B", [_fs(second) for _, second in times]),
        Column("change", [signed_time(second - first) for first, second in times]),
    ]
    yield ""
    yield from align_columns(wrap_column(columns, 0, max(LEAST_NAME, free_width(columns, 0))))


def _scaled(row: CauseTimes, both: Comparison) -> tuple[float, ...]:
    return row.first_fs / both.amounts[0], row.second_fs / both.amounts[1]


def _fs(time: float) -> str:
    return format_quantity(time / FEMTO, "s") if time else "-"


def signed_time(time: float) -> str:
    """Return a difference in fs as `- 84.5 ms`, or `0`; the space distinguishes it from a negative time, which is an error."""
    return f"{'-' if time < 0 else '+'} {format_quantity(abs(time) / FEMTO, 's')}" if time else "0"


def _ops(both: Comparison) -> Iterator[str]:
    """Yield the table of ops, largest difference of time on the critical path first."""
    yield ""
    if not both.first.ops or not both.second.ops:
        missing = [letter for letter, side in (("A", both.first), ("B", both.second)) if not side.ops]
        yield f"  no ops in {' and '.join(missing)}: `hwsim simulate --json --ops` writes a run with its ops"
        return
    shown = both.ops[:OPS]
    columns = [Column("op", [cut_middle(pair.name, NAME) for pair in shown], right=False)]
    if all(op.critical_path_fs is not None for side in (both.first, both.second) for op in side.ops):
        columns += [Column(f"path {letter}", [_waited(pair, index, both) for pair in shown]) for index, letter in enumerate("AB")]
    columns += [
        *(Column(f"count {letter}", [f"{op.times:,}" if op else "-" for op in ops]) for letter, ops in _of_both(shown)),
        *(Column(f"each {letter}", [format_quantity(op.mean_s, "s") if op and op.times else "-" for op in ops])
          for letter, ops in _of_both(shown)),
    ]  # fmt: skip
    yield from align_columns(columns)
    if len(both.ops) > OPS:
        yield f"  {len(both.ops) - OPS} more ops with a smaller difference (--json)"


def _of_both(pairs: Sequence[OpPair]) -> list[tuple[str, list[OpSum | None]]]:
    return [("A", [pair.first for pair in pairs]), ("B", [pair.second for pair in pairs])]


def _waited(pair: OpPair, at: int, both: Comparison) -> str:
    op = pair.first if at == 0 else pair.second
    return "-" if op is None or not op.critical_path_fs else _fs(op.critical_path_fs / both.amounts[at])


def _waterfall(both: Comparison, steps: Waterfall) -> Iterator[str]:
    assert both.measure is not None
    yield ""
    if not steps.steps and not steps.without:
        yield "  no change: the files of both runs are the same"
        return
    shown, rest = steps.steps[:STEPS], steps.steps[STEPS:]
    if shown:
        more = [f"{len(rest)} more"] if rest else []
        values = [_signed(both.measure, step.share * steps.unit) for step in shown]
        values += [_signed(both.measure, math.fsum(step.share for step in rest) * steps.unit)] if rest else []
        columns = [
            Column("contribution of each change", [*(step.change.name for step in shown), *more], right=False),
            Column(
                "A -> B", [*(f"{step.change.before} -> {step.change.after}" for step in shown), *("" for _ in more)], right=False
            ),
            Column(both.measure.title, values),
        ]
        if steps.orders:
            errors = [f"±{both.measure.shown(step.unsure * steps.unit)}" for step in shown]
            columns.append(Column("std. error", [*errors, *("" for _ in more)]))
        columns = wrap_column(columns, 0, NAME)
        yield from align_columns(wrap_column(columns, 1, max(LEAST_NAME, free_width(columns, 1))))
    if steps.without:
        yield from wrap_lines(f"no effect: {', '.join(change.name for change in steps.without)}", 2)
    if len(steps.steps) > 1:
        drawn = f", {steps.orders} sampled orders and their reverses" if steps.orders else ""
        yield f"  (Shapley values{drawn}, {steps.evaluations} runs)"


def _signed(measure: StudyMeasure, value: float) -> str:
    return f"{'-' if value < 0 else '+'} {measure.shown(abs(value))}" if value else "0"


def as_dict(both: Comparison) -> dict[str, Any]:
    """Return the JSON document; exact times are also integer femtoseconds."""
    measure = both.measure
    return {
        "hwsim": "compare/2",
        "a": _side(both.first),
        "b": _side(both.second),
        "measure": None
        if measure is None
        else {**select_attributes(measure, "title", "unit", measure="column"), "best": "highest" if measure.most else "lowest"},
        "values": None if both.values is None else dict(zip("ab", both.values, strict=True)),
        "b_over_a": None
        if both.over is None
        else {**select_attributes(both.over, "value", "low", "high", "is_conclusive"), "level": LEVEL},
        "b_over_a_class_defaults": both.alike,
        "answer": sentence(both),
        "per": both.unit or None,
        "causes": [
            select_attributes(row, "difference_fs", cause="name", case="group", a_fs="first_fs", b_fs="second_fs")
            for row in both.causes
        ],
        "bounds": [
            select_attributes(row, "difference_fs", bound="name", a_fs="first_fs", b_fs="second_fs") for row in both.bounds
        ],
        "ops": [{"name": pair.name, "a": _spent(pair.first), "b": _spent(pair.second)} for pair in both.ops],
        "waterfall": None if both.steps is None else _steps(both.steps),
        "warnings": warning_lines.as_dicts(both.warnings),
    }


def _side(side: Side) -> dict[str, Any]:
    sure = side.interval
    return {
        **select_attributes(side, "machine", "workload", "makespan_s", "makespan_fs"),
        "set": dict(side.settings),
        "interval": None if sure is None else select_attributes(sure, "level", "case", low_s="low", high_s="high"),
        "work": {work.unit: work.amount for work in side.work},
        **side.bill,
    }


def _spent(op: Any) -> dict[str, Any] | None:
    return None if op is None else select_attributes(op, "times", "total_s", "mean_s", "critical_path_fs")


def _steps(steps: Waterfall) -> dict[str, Any]:
    return {
        **select_attributes(steps, "first", "last", "unit", "evaluations", "orders"),
        "steps": [
            {
                **select_attributes(step.change, "name", "before", "after"),
                "signed_share": step.share,
                "signed_value": step.share * steps.unit,
                "standard_error": step.unsure * steps.unit,
            }
            for step in steps.steps
        ],
        "without_effect": [change.name for change in steps.without],
    }


def drawn(both: Comparison) -> BarFigure:
    """Return the bars of the figure: contributions of the changes, or bounds of the critical paths without files."""
    answer = sentence(both)
    heading = f"{answer[:1].upper()}{answer[1:]}"
    below = "\n".join(
        f"{letter}: {run_caption(side.workload, side.machine, side.settings)}"
        for letter, side in zip("AB", (both.first, both.second), strict=True)
    )
    if both.steps is not None and both.measure is not None:
        unit, quantity, symbol = both.steps.unit, both.measure.title, both.measure.unit
        first, last = both.steps.first * unit, both.steps.last * unit
        changes = [(step.change.name, step.share * unit) for step in both.steps.steps]
    else:
        quantity, symbol = f"time per {ONE.get(both.unit, both.unit)}" if both.unit else "time", "s"
        first, last = (
            side.makespan_fs / amount / FEMTO for side, amount in zip((both.first, both.second), both.amounts, strict=True)
        )
        changes = [(row.name, (_scaled(row, both)[1] - _scaled(row, both)[0]) / FEMTO) for row in both.bounds]
    bars, level = [FigureBar("A", 0.0, first, whole=True)], first
    for name, change in changes[:STEPS]:
        bars.append(FigureBar(name, level, level + change))
        level += change
    if len(changes) > STEPS:
        bars.append(FigureBar("other", level, last))
    bars.append(FigureBar("B", 0.0, last, whole=True))
    return BarFigure(heading, quantity, symbol, tuple(bars), below=below)


__all__ = ["as_dict", "drawn", "provenance", "sentence", "signed_time", "text", "title"]
