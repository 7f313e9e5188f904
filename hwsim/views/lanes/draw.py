"""Lanes over one axis of time, in blocks one above the other; PNG, SVG or PDF by the file's suffix.

The height of a bar is the part of its pixel that it covers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hwsim.graph.opgraph import Floats
from hwsim.records import dataclass
from hwsim.views.kit.figure import COLOURS, INK, PAPER, WAITING, figure_bytes, legend_below, open_axes, time_scale, titled
from hwsim.views.kit.spans import covered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

GAP: Final = 0.6  # rows between two blocks
PIXELS: Final = 900  # places of the axis; the height of a bar is the part of its place that is covered
TALL: Final = 0.8  # of a row


class Bars(NamedTuple):
    """Bars of one colour in order of time, from `low` to `high` (seconds)."""

    colour: int
    low: Floats
    high: Floats


class Lane(NamedTuple):
    """A row: the block that it stands in, its name, and its bars."""

    block: str
    name: str
    bars: tuple[Bars, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """A figure as data.

    Args:
        title: what it shows, with its number; below: the runs.
        end: seconds of the axis; legend: names of the colours; waiting: number of the one that is hatched.
    """

    title: str
    end: float
    legend: tuple[str, ...]
    lanes: tuple[Lane, ...]
    below: str = ""
    waiting: int = -1


def render(data: Lanes, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same lanes, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    with figure_bytes(suffix, height=1.2 + 0.42 * max(len(data.lanes), 3)) as (figure, buffer):
        _draw(figure.add_subplot(), data)
        legend_below(figure, _legend(data))
        titled(figure, data.title, data.below)
    return (buffer.getvalue(),)


def _draw(axes: Axes, data: Lanes) -> None:
    scale, unit = time_scale(data.end)
    edges = np.linspace(0.0, data.end or 1.0, PIXELS + 1)
    places, at, block = list[float](), 0.0, ""
    for lane in data.lanes:
        if lane.block != block:
            at += GAP if block else 0.0
            axes.text(0, at - 0.5, lane.block, transform=axes.get_yaxis_transform(), fontweight="bold", va="bottom", color=INK)
            at += GAP
        block = lane.block
        places.append(at)
        bottom: Floats = np.zeros(PIXELS)
        for bars in lane.bars:
            top = np.minimum(bottom + covered(bars.low, bars.high, edges), 1.0)
            axes.stairs(at + TALL * (0.5 - top), edges / scale, baseline=at + TALL * (0.5 - bottom), fill=True, linewidth=0,
                        **_look(data, bars.colour))  # fmt: skip
            bottom = top
        at += 1.0
    axes.set_yticks(places, [lane.name for lane in data.lanes])
    axes.set_ylim(max(at, 1.0) - 0.4, -0.6)
    axes.set_xlim(0, data.end / scale or 1)
    axes.set_xlabel(f"time ({unit})")
    open_axes(axes, "x")


def _look(data: Lanes, colour: int) -> dict[str, Any]:
    if colour == data.waiting:
        return {"facecolor": PAPER, "edgecolor": COLOURS[colour], "hatch": WAITING}
    return {"facecolor": COLOURS[colour]}


def _legend(data: Lanes) -> list[Patch]:
    from matplotlib.patches import Patch

    used = sorted({bars.colour for lane in data.lanes for bars in lane.bars if len(bars.low)})
    return [Patch(label=data.legend[number], **_look(data, number)) for number in used]
