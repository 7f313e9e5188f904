"""Predicted against measured, op by op: a table, JSON, a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from hwsim import invariants
from hwsim.records import dataclass
from hwsim.spec import Warning
from hwsim.units import format_quantity, percent
from hwsim.views.kit import warned
from hwsim.views.kit.figure import COLOURS, figure_bytes
from hwsim.views.kit.title import figure_title

SHOWN: Final = 20
STANDINGS: Final = ("measured", "extrapolated", "formula", "uncalibrated", "recorded")


class Row(Protocol):
    """An op: seconds of all its executions; standing: how well the time is known."""

    @property
    def name(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def line(self) -> str: ...
    @property
    def times(self) -> int: ...
    @property
    def measured(self) -> float: ...
    @property
    def predicted(self) -> float: ...
    @property
    def standing(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def off(self) -> float: ...
    @property
    def error(self) -> float: ...


class Compared(Protocol):
    """All ops, those that miss most first."""

    @property
    def machine(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def ops(self) -> Sequence[Row]: ...
    @property
    def clock(self) -> str: ...
    @property
    def outside(self) -> float: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def settings(self) -> Sequence[tuple[str, str]]: ...
    @property
    def warnings(self) -> Sequence[Warning]: ...
    @property
    def measured(self) -> float: ...
    @property
    def predicted(self) -> float: ...
    @property
    def error(self) -> float: ...
    @property
    def missed(self) -> float: ...
    @property
    def uncalibrated(self) -> float: ...

    def part(self, *standings: str) -> float: ...


@invariants.guarded
def text(found: Compared, *, every: bool = False) -> str:
    """A line per function and line of the script, the total, and how much of it was never measured; `every`: a line per op."""
    rows = found.ops if every else grouped(found.ops)
    shown = rows if every else rows[:SHOWN]
    wide = max([len("op"), *(len(each.name) for each in shown)])
    lines = [f"{found.workload} on {found.machine}: predicted against measured ({found.clock} time)", ""]
    lines.append(f"{'op':<{wide}}  {'times':>6}{'measured':>11}{'predicted':>11}{'error':>9}{'of the error':>14}   known by")
    lines += [_line(each, wide, found.missed) for each in shown]
    if len(shown) < len(rows):
        lines.append(f"and {len(rows) - len(shown)} more (--all)")
    total = f"{_time(found.measured):>11}{_time(found.predicted):>11}{100 * found.error:>+7.1f} %"
    lines += [f"{'total':<{wide}}  {sum(each.times for each in found.ops):>6}{total}", ""]
    lines.append(f"uncalibrated: {percent(found.uncalibrated)} of the measured time{_names(found)}")
    if (formula := found.part("formula")) > 0:
        lines.append(
            f"by formula: {percent(formula)}; {found.machine} has no measured functions for it (hwsim calibrate makes them)"
        )
    if (far := found.part("extrapolated")) > 0:
        lines.append(f"extrapolated: {percent(far)}, at sizes far from any that was measured")
    if found.outside > 0:
        lines.append(f"outside of recorded calls: {_time(found.outside)} of the script, which is not predicted")
    return "\n".join([*lines, *found.notes]) + "\n" + warned.text(found.warnings, "")


@dataclass(frozen=True, slots=True)
class Group:
    """Statements of one function and line that are known equally well: `subtract@5`, `subtract@5.2`, ..."""

    name: str
    function: str
    line: str
    times: int
    measured: float
    predicted: float
    standing: str
    why: str
    missed: float  # seconds by which its statements are off, one by one

    @property
    def off(self) -> float:
        return self.predicted - self.measured

    @property
    def error(self) -> float:
        return self.off / self.measured if self.measured > 0 else 0.0


def grouped(ops: Sequence[Row]) -> list[Group]:
    """By function, line and standing, those that miss most first."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for each in ops:
        found.setdefault((each.function, each.line, each.standing), []).append(each)
    groups = [_group(each) for each in found.values()]
    return sorted(groups, key=lambda each: (-each.missed, each.name))


def _group(rows: Sequence[Row]) -> Group:
    first = min(rows, key=lambda each: (len(each.name), each.name))
    return Group(
        name=first.name if len(rows) == 1 else f"{first.name} and {len(rows) - 1} like it",
        function=first.function,
        line=first.line,
        times=sum(each.times for each in rows),
        measured=math.fsum(each.measured for each in rows),
        predicted=math.fsum(each.predicted for each in rows),
        standing=first.standing,
        why=first.why,
        missed=math.fsum(abs(each.off) for each in rows),
    )


def _line(each: Row | Group, wide: int, missed: float) -> str:
    error = f"{100 * each.error:>+7.1f} %" if abs(each.error) < 100 else f"{'x ' + format(each.error + 1, '.3g'):>9}"
    share = percent((each.missed if isinstance(each, Group) else abs(each.off)) / missed) if missed > 0 else "-"
    times = f"{each.times:>6}{_time(each.measured):>11}{_time(each.predicted):>11}"
    return f"{each.name:<{wide}}  {times}{error}{share:>14}   {each.standing}"


def _names(found: Compared) -> str:
    reasons = dict.fromkeys(each.why or each.function for each in found.ops if each.standing in ("uncalibrated", "recorded"))
    return f" ({'; '.join(list(reasons)[:4])}{'; ...' if len(reasons) > 4 else ''})" if reasons else ""


def document(found: Compared) -> str:
    """All numbers as JSON, keys sorted."""
    return invariants.document(as_dict(found))


def as_dict(found: Compared) -> dict[str, Any]:
    """As dicts and lists; times in seconds, shares as fractions."""
    return {
        "hwsim": "comparison/1",
        "machine": found.machine,
        "workload": found.workload,
        "clock": found.clock,
        "measured_s": found.measured,
        "predicted_s": found.predicted,
        "error": found.error,
        "missed_s": found.missed,
        "outside_s": found.outside,
        "uncalibrated": found.uncalibrated,
        "known_by": {standing: found.part(standing) for standing in STANDINGS},
        "notes": list(found.notes),
        "warnings": warned.as_dicts(found.warnings),
        "ops": [
            {
                "name": each.name,
                "function": each.function,
                "line": each.line,
                "times": each.times,
                "measured_s": each.measured,
                "predicted_s": each.predicted,
                "error": each.error,
                "share_of_error": abs(each.off) / found.missed if found.missed > 0 else 0.0,
                "known_by": each.standing,
                "why": each.why,
            }
            for each in found.ops
        ],
    }


def render(found: Compared, suffix: str) -> Iterable[bytes]:
    """A figure: every op's predicted time over its measured time, of one execution, both logarithmic.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    with figure_bytes(suffix, width=7, height=6) as (figure, buffer):
        axes = figure.subplots()
        points = [(each.standing, each.measured / each.times, each.predicted / each.times) for each in found.ops if each.times]
        drawn = [point for point in points if min(point[1:]) > 0]
        every = [value for _, *pair in drawn for value in pair] or [1e-6, 1.0]
        low, high = 10 ** math.floor(math.log10(min(every))), 10 ** math.ceil(math.log10(max(every) * 1.01))
        axes.fill_between([low, high], [low / 1.25, high / 1.25], [low * 1.25, high * 1.25], color="#eeeeee", zorder=0)
        axes.plot([low, high], [low, high], color="#999999", linewidth=1)
        colours = list(COLOURS)
        for number, standing in enumerate(STANDINGS):
            chosen = [point for point in drawn if point[0] == standing]
            if chosen:
                across, up = [one for _, one, _ in chosen], [two for _, _, two in chosen]
                axes.scatter(across, up, s=18, color=colours[number % len(colours)], label=standing)
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
        axes.set(
            xlabel="measured, s for one call",
            ylabel="predicted, s",
            title=figure_title(f"{found.workload} on {found.machine}", found.settings),
        )
        axes.text(0.98, 0.02, "grey: within 25 %", transform=axes.transAxes, ha="right", color="#777777", fontsize="small")
        if drawn:
            axes.legend(frameon=False, loc="upper left", title="known by")
    yield buffer.getvalue()


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s", 3)
