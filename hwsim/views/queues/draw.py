"""Batches in the buffers of a pipeline over time as a figure: an empty buffer starves the next stage, a full one waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from hwsim.results.result import Result
from hwsim.views.explain.starving import Buffered, buffers
from hwsim.views.kit.figure import COLOURS
from hwsim.views.kit.panels import panels, step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Final = 12  # buffers drawn


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """A panel for each buffer (see `panels`)."""

    def draw(axes: Axes, buffer: Buffered) -> None:
        level = step(axes, result, buffer.time, buffer.level, 1.0, 0.7)
        axes.axhline(buffer.room, color=COLOURS[5], linestyle="--", linewidth=1)
        axes.set_ylim(0, max(buffer.room, level.max(initial=1.0)) * 1.1)
        program = "" if buffer.program == "main" else f"{buffer.program}: "
        axes.set_title(f"{program}{buffer.before} -> {buffer.then}: room for {buffer.room}", fontsize="small", loc="left")
        axes.set_ylabel("batches")

    names = ("batches ready between stages", "", "the workload has no pipeline of several stages")
    return panels(result, suffix, buffers(result.timeline), draw, most=ROWS, heights=(1.4, 1.7), names=names)
