"""The critical path as a figure: which cause when, and how much of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.formats import format_quantity, format_share
from hwsim.results.cause import family
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.explain.explanation import Explanation
from hwsim.views.gantt.draw import PIXELS, merged
from hwsim.views.kit.figure import COLOURS, LEGEND, OTHER, figure_bytes, figure_title, time_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Final = LEGEND  # causes with a bar of their own; the rest is one grey bar


def render(result: Result, explanation: Explanation, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same result, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    total: dict[str, int] = {}
    for share in explanation.accounting:
        name = family(str(share.cause))
        total[name] = total.get(name, 0) + share.time_fs
    names = sorted(total, key=lambda name: (-total[name], name))[:ROWS]
    rest = sum(time for name, time in total.items() if name not in names)  # integers
    with figure_bytes(suffix, height=2.4 + 0.3 * (len(names) + 1)) as (figure, buffer):
        rows = figure.subplots(2, 1, height_ratios=[1, max(len(names), 2)])
        _path(rows[0], result, explanation, names)
        _bars(rows[1], result, [(name, total[name]) for name in names] + ([("the rest", rest)] if rest else []))
        title = figure_title(f"{result.workload} on {result.machine}: the critical path", result.settings)
        figure.suptitle(title, fontsize="medium")
    return (buffer.getvalue(),)


def _path(axes: Axes, result: Result, explanation: Explanation, names: list[str]) -> None:
    """One row: the cause of every moment."""
    scale, unit = time_scale(result.makespan_s)
    places = {name: number for number, name in enumerate(names)}
    colour_of = np.array([places.get(family(str(cause)), LEGEND) for cause in explanation.path.causes], np.int64)
    if len(explanation.path):
        start, end = (each.astype(np.float64) / FEMTO for each in (explanation.path.start, explanation.path.end))
        low, high, colour = merged(start, end, colour_of[explanation.path.cause], result.makespan_s / PIXELS)
        bars = list(zip(low / scale, (high - low) / scale, strict=True))
        axes.broken_barh(bars, (0, 1), facecolors=[_colour(each) for each in colour.tolist()], linewidth=0)
    axes.set_yticks([])
    axes.set_xlim(0, result.makespan_s / scale or 1)
    axes.set_xlabel(f"time ({unit})")


def _bars(axes: Axes, result: Result, rows: list[tuple[str, int]]) -> None:
    """A bar per cause: its part of the run."""
    makespan = result.timeline.makespan_fs
    for number, (name, time) in enumerate(rows):
        axes.barh(number, time / makespan, color=_colour(LEGEND if name == "the rest" else number))
        label = f" {format_quantity(time / FEMTO, 's')}, {format_share(time / makespan)}"
        axes.text(time / makespan, number, label, va="center", fontsize="small")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlim(0, 1.25)
    axes.set_xticks([])
    axes.set_frame_on(False)


def _colour(number: int) -> str:
    return COLOURS[number] if number < LEGEND else OTHER
