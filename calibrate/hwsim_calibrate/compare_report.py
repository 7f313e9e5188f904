"""A comparison as a table, JSON and a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hwsim.formats import format_quantity, percent, precise
from hwsim.results import invariants
from hwsim.views.kit import warned
from hwsim.views.kit.figure import (
    COLOURS,
    GRID,
    MARKERS,
    SOFT,
    about,
    decades,
    figure_bytes,
    legend_below,
    titled,
)  # fmt: skip
from hwsim_calibrate.compare import STANDINGS, Comparison, OpError

SHOWN: Final = 20  # rows of the table
REASONS: Final = 4  # reasons listed


@invariants.guarded
def text(compared: Comparison, *, every: bool = False) -> str:
    """A row per function and line of the script, the total, and how times are known; `every`: a row per op."""
    rows = compared.ops if every else grouped(compared.ops)
    shown = rows if every else rows[:SHOWN]
    width = max([len("op"), *(len(row.name) for row in shown)])
    lines = [f"{compared.workload} on {compared.machine}: predicted against measured ({compared.clock} time)", ""]
    lines.append(f"{'op':<{width}}  {'times':>6}{'measured':>11}{'predicted':>11}{'error':>9}{'of the error':>14}   known by")
    lines += [_line(row, width, compared.missed) for row in shown]
    if len(shown) < len(rows):
        lines.append(f"and {len(rows) - len(shown)} more (--all)")
    total = f"{_time(compared.measured):>11}{_time(compared.predicted):>11}{percent(compared.error, '>+7.1f')}"
    lines += [f"{'total':<{width}}  {sum(row.times for row in compared.ops):>6}{total}", ""]
    lines.append(f"uncalibrated: {percent(compared.uncalibrated)} of the measured time{_reasons(compared)}")
    if (formula := compared.part("formula")) > 0:
        measuring = f"{compared.machine} has no measured functions for it (hwsim calibrate makes them)"
        lines.append(f"by formula: {percent(formula)}; {measuring}")
    if (far := compared.part("extrapolated")) > 0:
        lines.append(f"extrapolated: {percent(far)}, at sizes far from any that was measured")
    if compared.outside > 0:
        lines.append(f"outside of recorded calls: {_time(compared.outside)} of the script, which is not predicted")
    return "\n".join([*lines, *compared.notes]) + "\n" + warned.text(compared.warnings, "")


def grouped(ops: Sequence[OpError]) -> list[OpError]:
    """Ops of one function, line and standing as one row (`subtract@5`, `subtract@5.2`, ...), the largest error first."""
    groups: dict[tuple[str, str, str], list[OpError]] = {}
    for op in ops:
        groups.setdefault((op.function, op.line, op.standing), []).append(op)
    return sorted((_group(members) for members in groups.values()), key=lambda row: (-row.missed, row.name))


def _group(ops: Sequence[OpError]) -> OpError:
    first = min(ops, key=lambda op: (len(op.name), op.name))
    return OpError(
        name=first.name if len(ops) == 1 else f"{first.name} and {len(ops) - 1} like it",
        function=first.function,
        line=first.line,
        times=sum(op.times for op in ops),
        measured=math.fsum(op.measured for op in ops),
        predicted=math.fsum(op.predicted for op in ops),
        missed=math.fsum(op.missed for op in ops),
        standing=first.standing,
        why=first.why,
    )


def _line(row: OpError, width: int, missed: float) -> str:
    error = percent(row.error, ">+7.1f") if abs(row.error) < 100 else f"{'x ' + format(row.error + 1, '.3g'):>9}"
    share = percent(row.missed / missed) if missed > 0 else "-"
    times = f"{row.times:>6}{_time(row.measured):>11}{_time(row.predicted):>11}"
    return f"{row.name:<{width}}  {times}{error}{share:>14}   {row.standing}"


def _reasons(compared: Comparison) -> str:
    reasons = [*dict.fromkeys(op.why or op.function for op in compared.ops if op.standing in ("uncalibrated", "recorded"))]
    return f" ({'; '.join(reasons[:REASONS])}{'; ...' if len(reasons) > REASONS else ''})" if reasons else ""


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s", 3)


def document(compared: Comparison) -> str:
    """All numbers as JSON, keys sorted; times in seconds, shares as fractions."""
    return invariants.document({
        "hwsim": "comparison/1",
        "machine": compared.machine,
        "workload": compared.workload,
        "clock": compared.clock,
        "measured_s": compared.measured,
        "predicted_s": compared.predicted,
        "error": compared.error,
        "missed_s": compared.missed,
        "outside_s": compared.outside,
        "uncalibrated": compared.uncalibrated,
        "known_by": {standing: compared.part(standing) for standing in STANDINGS},
        "notes": list(compared.notes),
        "warnings": warned.as_dicts(compared.warnings),
        "ops": [_as_dict(op, compared.missed) for op in compared.ops],
    })  # fmt: skip


def _as_dict(op: OpError, missed: float) -> dict[str, Any]:
    return {
        "name": op.name,
        "function": op.function,
        "line": op.line,
        "times": op.times,
        "measured_s": op.measured,
        "predicted_s": op.predicted,
        "error": op.error,
        "share_of_error": op.missed / missed if missed > 0 else 0.0,
        "known_by": op.standing,
        "why": op.why,
    }


def render(compared: Comparison, suffix: str) -> Iterable[bytes]:
    """A figure: each op's predicted time over its measured time, of one execution, both logarithmic.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    with figure_bytes(suffix, width=7, height=6) as (figure, buffer):
        axes = figure.subplots()
        points = [(op.standing, op.measured / op.times, op.predicted / op.times) for op in compared.ops if op.times]
        drawn = [point for point in points if min(point[1:]) > 0]
        seconds = [value for _, *pair in drawn for value in pair] or [1e-6, 1.0]
        low, high = 10 ** math.floor(math.log10(min(seconds))), 10 ** math.ceil(math.log10(max(seconds) * 1.01))
        axes.fill_between([low, high], [low / 1.25, high / 1.25], [low * 1.25, high * 1.25], color=GRID, alpha=0.5, zorder=0)
        axes.plot([low, high], [low, high], color=SOFT, linewidth=1)
        for standing, colour, mark in zip(STANDINGS, COLOURS, MARKERS, strict=False):
            chosen = [point[1:] for point in drawn if point[0] == standing]
            if chosen:
                across, up = zip(*chosen, strict=True)
                axes.scatter(across, up, s=30, color=colour, marker=mark, label=f"known by {standing}")
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
        for axis in (axes.xaxis, axes.yaxis):
            decades(axis, lambda value: precise(value, "s"))
        axes.set(xlabel="measured, one call", ylabel="predicted, one call")
        legend_below(figure, axes.get_legend_handles_labels()[0])
        near = sum(abs(math.log(up / across)) <= math.log(1.25) for _, across, up in drawn)  # count
        below = about(compared.workload, compared.machine, compared.settings, "grey: within 25 %")
        titled(figure, f"{near} of {len(drawn)} ops are predicted within 25 %", below)
    yield buffer.getvalue()
