"""Figure of the batches in the buffers of a pipeline over time: empty before a starving stage, full before a slow one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.families.pipeline.starvation import BufferLevel, buffers
from hwsim.formats import format_quantity, format_share
from hwsim.results.result import Result
from hwsim.views.kit.figure import INK
from hwsim.views.kit.panels import panels, step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Final = 12  # maximum number of panels


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """Yield the figure with a panel for each buffer (see `panels`)."""

    def draw(axes: Axes, buffer: BufferLevel) -> None:
        level = step(axes, result, buffer.time, buffer.level, 1.0, 0.7)
        axes.axhline(buffer.room, color=INK, linestyle="--", linewidth=1.2)
        axes.set_ylim(0, max(buffer.room, level.max(initial=1.0)) * 1.1)
        program = "" if buffer.program == "main" else f"{buffer.program}: "
        axes.set_title(f"{program}{buffer.before} -> {buffer.then}: capacity {buffer.room}")
        axes.set_ylabel("batches")

    rows = buffers(result.timeline)
    names = (_finding(result, rows), "", "the workload has no pipeline with several stages")
    return panels(result, suffix, rows, draw, most=ROWS, heights=(0.8, 2.2), names=names)


def _finding(result: Result, rows: tuple[BufferLevel, ...]) -> str:
    if not rows:
        return "batches ready between stages"
    last, end = rows[-1], result.timeline.makespan_fs
    spans = np.diff(np.append(last.time, end).astype(np.float64))
    empty = float(spans[last.level == 0].sum()) / end if end else 0.0
    return f"The buffer before “{last.then}” is empty for {format_share(empty)} of the {format_quantity(result.makespan_s, 's')}"
