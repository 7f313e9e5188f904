"""Lanes over one axis of time, in blocks one above the other; PNG, SVG or PDF by the file's suffix.

The height of a bar is the part of its pixel that it covers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hwsim.graph.opgraph import Floats
from hwsim.records import dataclass
from hwsim.views.kit.figure import COLOURS, GRID, INK, figure_bytes, time_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP: Final = 0.6  # rows between two blocks
PIXELS: Final = 900  # places of the axis; the height of a bar is the part of its place that is covered
LEAST: Final = 0.12  # of the height, so that what is short is seen
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
    """A figure as data. end: seconds of the axis; legend: names of the colours."""

    title: str
    end: float
    legend: tuple[str, ...]
    lanes: tuple[Lane, ...]


def render(data: Lanes, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same lanes, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    with figure_bytes(suffix, height=2.0 + 0.34 * max(len(data.lanes), 3)) as (figure, buffer):
        _draw(figure.add_subplot(), data)
    return (buffer.getvalue(),)


def covered(low: Floats, high: Floats, end: float) -> tuple[Floats, Floats]:
    """(edges, parts): the part of each pixel of the axis that bars cover; bars that overlap count once.

    >>> edges, parts = covered(np.array([0.0, 0.5]), np.array([0.25, 1.0]), 1.0)
    >>> bool(abs(parts.mean() - 0.75) < 1e-12), len(edges) - len(parts)
    (True, 1)
    """
    edges = np.linspace(0.0, end or 1.0, PIXELS + 1)
    if not len(low):
        return edges, np.zeros(PIXELS)
    ends = np.maximum.accumulate(high)
    begins = np.maximum(low, np.concatenate([[0.0], ends[:-1]]))
    lengths = np.maximum(ends - begins, 0.0)
    before = np.concatenate([[0.0], np.cumsum(lengths)])
    place = np.searchsorted(begins, edges, side="right")
    last = np.maximum(place - 1, 0)
    total = before[last] + np.where(place > 0, np.clip(edges - begins[last], 0.0, lengths[last]), 0.0)
    parts: Floats = np.clip(np.diff(total) / np.diff(edges), 0.0, 1.0)
    return edges, parts


def _draw(axes: Axes, data: Lanes) -> None:
    from matplotlib.patches import Patch

    scale, unit = time_scale(data.end)
    places, at, block = list[float](), 0.0, ""
    for lane in data.lanes:
        if block and lane.block != block:
            at += GAP
            axes.axhline(at - 0.5 - GAP / 2, color=INK, linewidth=0.8)
        if lane.block != block:
            axes.text(-0.16, at - 0.5, lane.block, transform=axes.get_yaxis_transform(), fontsize="small", fontweight="bold",
                      va="top", ha="right", color=INK)  # fmt: skip
        block = lane.block
        places.append(at)
        for bars in lane.bars:
            edges, part = covered(bars.low, bars.high, data.end)
            height = np.where(part > 0, np.maximum(part, LEAST), 0.0) * TALL
            axes.stairs(at + TALL / 2 - height, edges / scale, baseline=at + TALL / 2, fill=True, color=COLOURS[bars.colour],
                        linewidth=0)  # fmt: skip
        at += 1.0
    axes.set_yticks(places, [lane.name for lane in data.lanes])
    axes.set_ylim(max(at, 1.0) - 0.4, -0.6)
    axes.set_xlim(0, data.end / scale or 1)
    axes.set_xlabel(f"time ({unit})")
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(data.title, fontsize="small", loc="left")
    used = sorted({bars.colour for lane in data.lanes for bars in lane.bars if len(bars.low)})
    patches = [Patch(facecolor=COLOURS[number], label=data.legend[number]) for number in used]
    if patches:
        axes.legend(handles=patches, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)
