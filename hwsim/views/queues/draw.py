"""How full the buffers of a pipeline were over time, as a figure: empty ones starve, full ones wait for the next stage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.graph.opgraph import Floats
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO
from hwsim.views.explain.starving import Buffered, buffers
from hwsim.views.kit.figure import COLOURS, figure_bytes, figure_title, time_scale
from hwsim.views.memory.draw import thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Final = 12  # buffers drawn


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same result, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    found = buffers(result.timeline)
    shown = found[:ROWS]
    with figure_bytes(suffix, height=1.4 + 1.7 * max(len(shown), 1)) as (figure, buffer):
        axes = figure.subplots(max(len(shown), 1), 1, sharex=True, squeeze=False)[:, 0]
        if not shown:
            axes[0].set_axis_off()
            axes[0].text(0.5, 0.5, "the workload has no pipeline of several stages", ha="center", transform=axes[0].transAxes)
        for each, one in zip(axes, shown, strict=False):
            _draw(each, one, result)
        axes[-1].set_xlabel(f"time ({time_scale(result.makespan_s)[1]})")
        hidden = len(found) - len(shown)
        more = f"; {hidden} more not shown" if hidden else ""
        title = f"{result.workload} on {result.machine}: batches ready between stages{more}"
        figure.suptitle(figure_title(title, result.settings), fontsize="medium")
    return (buffer.getvalue(),)


def _draw(axes: Axes, one: Buffered, result: Result) -> None:
    scale, _ = time_scale(result.makespan_s)
    time: Floats = np.append(one.time.astype(np.float64) / FEMTO, result.makespan_s)
    level: Floats = np.append(one.level, one.level[-1:]).astype(np.float64)
    time, level = thinned(time, level)
    colour = COLOURS[0]
    axes.step(time / scale, level, where="post", color=colour, linewidth=0.7)
    axes.fill_between(time / scale, level, step="post", color=colour, alpha=0.25, linewidth=0)
    axes.axhline(one.room, color=COLOURS[5], linestyle="--", linewidth=1)
    axes.set_ylim(0, max(one.room, level.max(initial=1.0)) * 1.1)
    axes.set_xlim(0, result.makespan_s / scale or 1)
    whose = "" if one.program == "main" else f"{one.program}: "
    axes.set_title(f"{whose}{one.before} -> {one.then}: room for {one.room}", fontsize="small", loc="left")
    axes.set_ylabel("batches")
    axes.spines[["top", "right"]].set_visible(False)
