"""The comparison of a run with a recording as text and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hwsim.comparing.say import signed_time
from hwsim.formats import format_quantity, format_share, percent
from hwsim.ticks import FEMTO
from hwsim.views.interval.say import EXACT, TITLE, range_text, relative_range
from hwsim.views.kit import warning_lines
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.lines import LABEL, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_middle

if TYPE_CHECKING:
    from hwsim.comparing.recorded.against import AgainstTrace, CategoryTimes, ComparedOps
    from hwsim.comparing.recorded.compared_run import ComparedRun, OpTime

OPS: Final = 10
GPUS: Final = 16  # limit of rows in the table of GPUs
NAME: Final = 44  # characters of a name
SOME: Final = 0.2  # share of the critical path with stated times, from which on the interval mentions it
NOTES: Final = 4
MANY: Final = 9.95  # number of ops from which on it is rounded to a whole number


def text(both: AgainstTrace, *, every: bool = False) -> str:
    """Return the comparison as text; every: all rows."""
    return "\n".join(_lines(both, every=every)) + "\n" + warning_lines.text(both.warnings)


def _lines(both: AgainstTrace, *, every: bool) -> Iterator[str]:
    sides = tuple(zip(both.words, (both.first, both.second), strict=True))
    is_run = both.second.how == "simulated"
    yield from wrap_lines("simulated against recorded" if is_run else "two recordings", 0)
    yield ""
    of_step = " per step" if max(side.steps for _, side in sides) > 1 else ""
    times = ", ".join(f"{word} {format_quantity(side.step_s, 's')}" for word, side in sides)
    yield from labelled_lines("error" if is_run else "change", f"{percent(both.error, '+.1f')}: {times}{of_step}", LABEL)
    sure = both.second.interval
    if is_run and sure is not None and sure.half > 0 and both.is_stated:
        yield from labelled_lines(TITLE, f"not applicable: {format_share(sure.stated)} of the critical path is an input", LABEL)
    elif is_run and sure is not None and sure.half > EXACT:
        at_step = replace(sure, value=both.second.step_s)
        inputs = f"; {format_share(sure.stated)} of the critical path is an input" if sure.stated >= SOME else ""
        where = f"; the recorded time is {'inside' if both.is_inside else 'outside'}"
        yield from labelled_lines(TITLE, f"{range_text(at_step)} ({relative_range(at_step)}){where}{inputs}", LABEL)
    for word, side in sides:
        yield from labelled_lines(word, side.title, LABEL)
    if of_step:
        yield from labelled_lines("steps", ", ".join(f"{word} {side.steps:,}" for word, side in sides), LABEL)
    yield from _table(both, "critical path", both.causes)
    if both.of_gpu:
        counts = " and ".join(map(str, dict.fromkeys(side.gpus for _, side in sides)))
        is_host = not any(device.is_gpu for device in both.first.devices)
        yield from _table(both, "host" if is_host else "GPU" if counts == "1" else f"average of {counts} GPUs", both.of_gpu)
    if max(len(side.devices) for _, side in sides) > 1:
        yield from _gpus(both, every=every)
    yield from _work(both, "kind of work", both.families)
    named = [pair for pair in both.ops if pair.error is not None]
    if named:
        yield from _work(both, "op", named if every else named[:OPS])
        if len(named) > OPS and not every:
            yield f"  {len(named) - OPS} more ops with a smaller difference (-v)"
    yield from _unmatched(both, every=every)
    notes = list(dict.fromkeys([*both.first.notes, *both.second.notes]))
    yield from [""] if notes else []
    for note in notes[: None if every else NOTES]:
        yield from labelled_lines("ignored", note, LABEL)
    if len(notes) > NOTES and not every:
        yield from labelled_lines("", f"{len(notes) - NOTES} more (-v)", LABEL)


def _table(both: AgainstTrace, title: str, rows: Sequence[CategoryTimes]) -> Iterator[str]:
    firsts, seconds = [row.first for row in rows], [row.second for row in rows]
    firsts.append(both.first.makespan_fs / both.first.steps)
    seconds.append(both.second.makespan_fs / both.second.steps)
    yield ""
    yield from align_columns([
        Column(title, [*(row.where.words for row in rows), "total"], right=False),
        Column(both.words[0], [_time(first) for first in firsts]),
        Column(both.words[1], [_time(second) for second in seconds]),
        Column("difference", [signed_time(after - before) for before, after in zip(firsts, seconds, strict=True)]),
    ])  # fmt: skip


def _time(time_fs: float) -> str:
    return format_quantity(time_fs / FEMTO, "s") if time_fs else "-"


def _gpus(both: AgainstTrace, *, every: bool) -> Iterator[str]:
    """Yield the table of GPUs of both runs."""
    sides = (both.first, both.second)
    places = [row.where for row in both.of_gpu]
    rows: list[tuple[str, str, Any, int]] = []
    for index in range(max(len(side.devices) for side in sides)):
        for word, side in zip(both.words, sides, strict=True):
            if index < len(side.devices):
                rows.append((side.devices[index].name, word, side.devices[index].spent, side.steps))
    shown = rows if every else rows[:GPUS]
    yield ""
    yield from align_columns([
        Column("GPU", [name for name, *_ in shown], right=False),
        Column("", [word for _, word, *_ in shown], right=False),
        *(Column(where.words, [_time(spent[where] / steps) for _, _, spent, steps in shown]) for where in places),
    ])  # fmt: skip
    if len(rows) > len(shown):
        yield f"  {len(rows) - len(shown)} more rows (-v)"


def _work(both: AgainstTrace, title: str, pairs: Sequence[ComparedOps]) -> Iterator[str]:
    yield ""
    yield from align_columns([
        Column(title, [cut_middle(pair.name, NAME) for pair in pairs], right=False),
        Column("count", [_counts(pair) for pair in pairs]),
        *(Column(word, [_seconds(op) for op in ops]) for word, ops in _columns(both, pairs)),
        Column("change" if both.second.how == "recorded" else "error", [_part(pair) for pair in pairs]),
    ])  # fmt: skip


def _columns(both: AgainstTrace, pairs: Sequence[ComparedOps]) -> list[tuple[str, list[OpTime | None]]]:
    return [(both.words[0], [pair.first for pair in pairs]), (both.words[1], [pair.second for pair in pairs])]


def _part(pair: ComparedOps) -> str:
    return "-" if pair.error is None else percent(pair.error, "+.1f")


def _counts(pair: ComparedOps) -> str:
    """Return the executions of an op per GPU and step; both numbers if they differ."""
    first, second = _count(pair.first), _count(pair.second)
    return first if first == second else f"{first}, {second}"


def _count(op: OpTime | None) -> str:
    if op is None:
        return "-"
    return f"{op.times:,.0f}" if op.times >= MANY or op.times.is_integer() else f"{op.times:.2g}"


def _seconds(op: OpTime | None) -> str:
    return "-" if op is None else format_quantity(op.total_s, "s")


def _unmatched(both: AgainstTrace, *, every: bool) -> Iterator[str]:
    """Yield the ops that only one run has, with their share of its op time."""
    for word, index in ((both.words[0], 0), (both.words[1], 1)):
        ops = [op for pair in both.ops if pair.error is None and (op := (pair.first, pair.second)[index]) is not None]
        every_op = [op for pair in both.ops if (op := (pair.first, pair.second)[index]) is not None]
        total = math.fsum(op.total_s for op in every_op)
        if not ops or total <= 0:
            continue
        ops.sort(key=lambda op: -op.total_s)
        shown = ops if every else ops[:3]
        names = "; ".join(f"{cut_middle(op.name, NAME)} {format_quantity(op.total_s, 's')}" for op in shown)
        more = f" and {len(ops) - len(shown)} more (-v)" if len(ops) > len(shown) else ""
        part = percent(math.fsum(op.total_s for op in ops) / total, ".0f")
        yield from labelled_lines(f"only {word}", f"{len(ops):,} op names, {part} of the op time: {names}{more}", LABEL)


def as_dict(both: AgainstTrace) -> dict[str, Any]:
    """Return the JSON document, with times per step (s), and op times per GPU and step (s)."""
    return {
        "hwsim": "compare-trace/2",
        "first": _side(both.first),
        "second": _side(both.second),
        "error": both.error,
        "inside_interval": both.is_inside,
        "causes": [_row(row) for row in both.causes],
        "gpu": [_row(row) for row in both.of_gpu],
        "work": [_pair(pair) for pair in both.families],
        "ops": [_pair(pair) for pair in both.ops],
        "warnings": warning_lines.as_dicts(both.warnings),
    }


def _side(side: ComparedRun) -> dict[str, Any]:
    sure = side.interval
    return {
        **select_attributes(side, "how", "title", "makespan_s", "makespan_fs", "steps", "step_s", "gpus"),
        "interval": None if sure is None else select_attributes(sure, "level", "case", low_s="low", high_s="high"),
        "devices": [
            {"name": device.name, "places_fs": {where.words: time for where, time in device.spent.items()}}
            for device in side.devices
        ],
        "path_fs": {where.words: time for where, time in side.path.items()},
        "omitted": list(side.notes),
    }


def _row(row: CategoryTimes) -> dict[str, Any]:
    return {"place": row.where.words, "first_s": row.first / FEMTO, "second_s": row.second / FEMTO}


def _pair(pair: ComparedOps) -> dict[str, Any]:
    return {
        "name": pair.name,
        "first": _op(pair.first),
        "second": _op(pair.second),
        "error": pair.error,
    }


def _op(op: OpTime | None) -> dict[str, Any] | None:
    return None if op is None else select_attributes(op, "family", "times", "total_s", "wait_s")
