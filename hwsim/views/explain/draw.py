"""The critical path as a figure: its causes over time, and the total of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.formats import family, format_quantity, format_share
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.explain.explanation import Explanation
from hwsim.views.kit.figure import COLOURS, OTHER, figure_bytes, run_caption, time_scale, write_title
from hwsim.views.kit.spans import covered_fractions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Final = 8  # largest number of causes with their own bar; the rest is one grey bar
LAST: Final = 99  # number of the bar of all other causes
REST: Final = "other causes"
COLUMNS: Final = 360  # pixel columns of the path


def render(explanation: Explanation, suffix: str = ".png") -> Iterable[bytes]:
    """Return the figure as bytes; same result, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    result, total = explanation.run, dict[str, int]()
    for share in explanation.accounting:
        name = family(str(share.cause))
        total[name] = total.get(name, 0) + share.time_fs
    names = sorted(total, key=lambda name: (-total[name], name))[:ROWS]
    rest = sum(time for name, time in total.items() if name not in names)  # integers
    with figure_bytes(suffix, height=2.0 + 0.42 * (len(names) + 1)) as (figure, buffer):
        rows = figure.subplots(2, 1, height_ratios=[1, 0.6 * max(len(names), 2)])
        _path(rows[0], explanation, names)
        _bars(rows[1], result, [(name, total[name]) for name in names] + ([(REST, rest)] if rest else []))
        most = f": {format_share(total[names[0]] / result.timeline.makespan_fs)} is {names[0]}" if names else ""
        finding = f"Critical path ({format_quantity(result.makespan_s, 's')}){most}"
        write_title(figure, finding, run_caption(result.workload, result.machine, result.settings))
    return (buffer.getvalue(),)


def _path(axes: Axes, explanation: Explanation, names: list[str]) -> None:
    """Draw the cause of each moment in one row."""
    result = explanation.run
    scale, unit = time_scale(result.makespan_s)
    places = {name: number for number, name in enumerate(names)}
    colour_of = np.array([places.get(family(str(cause)), LAST) for cause in explanation.path.causes], np.int64)
    if len(explanation.path):
        start, end = (times.astype(np.float64) / FEMTO for times in (explanation.path.start, explanation.path.end))
        edges, bottom = np.linspace(0.0, result.makespan_s, COLUMNS + 1), np.zeros(COLUMNS)
        shades = colour_of[explanation.path.cause]
        for number in range(len(names) + 1):
            some = shades == (number if number < len(names) else LAST)
            top = bottom + covered_fractions(start[some], end[some], edges)
            axes.stairs(top, edges / scale, baseline=bottom, fill=True, color=_colour(number if number < len(names) else LAST))
            bottom = top
    axes.set_yticks([])
    axes.set_ylim(0, 1)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, result.makespan_s / scale or 1)
    axes.set_xlabel(f"time since the start ({unit})")


def _bars(axes: Axes, result: Result, rows: list[tuple[str, int]]) -> None:
    """Draw the share of the run of each cause as a bar."""
    makespan = result.timeline.makespan_fs
    for number, (name, time) in enumerate(rows):
        axes.barh(number, time / makespan, color=_colour(LAST if name == REST else number))
        label = f" {format_quantity(time / FEMTO, 's')}, {format_share(time / makespan)}"
        axes.text(time / makespan, number, label, va="center")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlim(0, 1.35)
    axes.set_xticks([])
    axes.set_frame_on(False)


def _colour(number: int) -> str:
    return COLOURS[number] if number < LAST else OTHER
