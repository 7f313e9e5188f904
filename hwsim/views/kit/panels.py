"""A figure of stacked panels over the time of a run: step lines with filled areas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from hwsim.graph.opgraph import Floats
from hwsim.ticks import FEMTO
from hwsim.views.kit.figure import COLOURS, figure_bytes, run_caption, time_scale, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hwsim.graph.opgraph import Ints
    from hwsim.results.result import Result

POINTS: Final = 4000  # largest number of points; more are reduced to the maximum of each pixel column
Row = TypeVar("Row")


def panels(
    result: Result,
    suffix: str,
    rows: Sequence[Row],
    draw: Callable[[Axes, Row], None],
    *,
    most: int,
    heights: tuple[float, float],
    names: tuple[str, str, str],
) -> Iterable[bytes]:
    """Return the figure as bytes; same result, same bytes with the same matplotlib.

    Args:
        result: result.
        suffix: suffix of the file.
        rows: data of the panels.
        draw: function that draws a panel.
        most: largest number of panels; the others are counted below the title.
        heights: height around the panels, and of each panel (inches).
        names: title, unit of an omitted row ("" for none), and text of an empty figure.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    finding, unit, empty = names
    drawn = rows[:most]
    count = max(len(drawn), 1)
    with figure_bytes(suffix, height=heights[0] + heights[1] * count) as (figure, buffer):
        axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        if not drawn:
            axes[0].set_axis_off()
            axes[0].text(0.5, 0.5, empty, ha="center", transform=axes[0].transAxes)
        for panel, row in zip(axes, drawn, strict=False):
            draw(panel, row)
            panel.set_xlim(0, result.makespan_s / time_scale(result.makespan_s)[0] or 1)
        axes[-1].set_xlabel(f"time since the start ({time_scale(result.makespan_s)[1]})")
        hidden = f"{len(rows) - len(drawn)} more{unit} not shown" if len(rows) > len(drawn) else ""
        write_title(figure, finding, run_caption(result.workload, result.machine, result.settings, hidden))
    return (buffer.getvalue(),)


def step(axes: Axes, result: Result, time: Ints, values: Floats | Ints, unit: float, width: float) -> Floats:
    """Draw values from their times on as a step line; return the drawn values.

    Args:
        axes: axes.
        result: result.
        time: times (fs).
        values: values.
        unit: divisor of the values.
        width: line width (points).
    """
    scale, _ = time_scale(result.makespan_s)
    seconds = np.append(time.astype(np.float64) / FEMTO, result.makespan_s)
    seconds, drawn = thin_points(seconds, np.append(values, values[-1:]).astype(np.float64))
    axes.step(seconds / scale, drawn / unit, where="post", color=COLOURS[0], linewidth=width)
    axes.fill_between(seconds / scale, drawn / unit, step="post", color=COLOURS[0], alpha=0.25, linewidth=0)
    return drawn


def thin_points(time: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the largest and the last value of each pixel column if there are more points than columns."""
    if len(time) <= POINTS:
        return time, values
    end = time[-1] or 1.0
    column = np.minimum((time / end * (POINTS // 2)).astype(np.int64), POINTS // 2 - 1)  # count
    firsts = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
    lasts = np.append(firsts[1:], len(time)) - 1
    largest = np.maximum.reduceat(values, firsts)
    return np.repeat(time[firsts], 2), np.stack([largest, values[lasts]], axis=1).ravel()
