"""Lanes over one time axis in stacked blocks; PNG, SVG or PDF by the suffix.

The height of a bar is the covered fraction of its pixel column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hwsim.graph.opgraph import Floats
from hwsim.records import dataclass
from hwsim.views.kit.figure import COLOURS, INK, PAPER, WAITING, figure_bytes, legend_below, open_axes, time_scale, write_title
from hwsim.views.kit.spans import covered_fractions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

GAP: Final = 0.6  # space between two blocks (rows)
PIXELS: Final = 900  # pixel columns of the axis
TALL: Final = 0.8  # height of a bar (rows)


class LaneBars(NamedTuple):
    """Bars of one colour in order of time.

    Args:
        colour: number of the colour.
        low, high: starts and ends (s).
    """

    colour: int
    low: Floats
    high: Floats


class FigureLane(NamedTuple):
    """A row of bars.

    Args:
        block: name of the block.
        name: name of the row.
        bars: bars.
    """

    block: str
    name: str
    bars: tuple[LaneBars, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """A figure of lanes.

    Args:
        title: title.
        end: end of the time axis (s).
        legend: names of the colours.
        lanes: rows.
        below: line below the title, with the names of the runs.
        waiting: number of the hatched colour; -1 for none.
    """

    title: str
    end: float
    legend: tuple[str, ...]
    lanes: tuple[FigureLane, ...]
    below: str = ""
    waiting: int = -1


def render(data: Lanes, suffix: str = ".png") -> Iterable[bytes]:
    """Return the figure as bytes; same lanes, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    with figure_bytes(suffix, height=1.2 + 0.42 * max(len(data.lanes), 3)) as (figure, buffer):
        _draw(figure.add_subplot(), data)
        legend_below(figure, _legend(data))
        write_title(figure, data.title, data.below)
    return (buffer.getvalue(),)


def _draw(axes: Axes, data: Lanes) -> None:
    scale, unit = time_scale(data.end)
    edges = np.linspace(0.0, data.end or 1.0, PIXELS + 1)
    places, y, block = list[float](), 0.0, ""
    for lane in data.lanes:
        if lane.block != block:
            y += GAP if block else 0.0
            axes.text(0, y - 0.5, lane.block, transform=axes.get_yaxis_transform(), fontweight="bold", va="bottom", color=INK)
            y += GAP
        block = lane.block
        places.append(y)
        bottom: Floats = np.zeros(PIXELS)
        for bars in lane.bars:
            top = np.minimum(bottom + covered_fractions(bars.low, bars.high, edges), 1.0)
            axes.stairs(y + TALL * (0.5 - top), edges / scale, baseline=y + TALL * (0.5 - bottom), fill=True, linewidth=0,
                        **_look(data, bars.colour))  # fmt: skip
            bottom = top
        y += 1.0
    axes.set_yticks(places, [lane.name for lane in data.lanes])
    axes.set_ylim(max(y, 1.0) - 0.4, -0.6)
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
