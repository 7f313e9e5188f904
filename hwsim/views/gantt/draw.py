"""The timeline as a figure: a row per queue, a colour per op name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hwsim.formats import format_quantity
from hwsim.graph.opgraph import Floats, Ints
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.kit.figure import COLOURS, LEGEND, OTHER, figure_bytes, figure_title, time_scale
from hwsim.views.kit.lanes import Lane, lanes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Final = 64  # lanes drawn; the rest is counted in the title
BARS: Final = 5000  # more of them are merged where they are closer than a pixel
PIXELS: Final = 2000
SEEN: Final = 700  # bars of this part of the figure's width are a pixel wide at least
NARROW: Final = 4  # pixels
PLAIN: Final[Mapping[str, Any]] = {"linewidth": 0, "antialiased": False}
EDGED: Final[Mapping[str, Any]] = {"linewidth": 0.4, "edgecolor": "white"}


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same result, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    rows = lanes(result)
    shown = rows[:ROWS]
    with figure_bytes(suffix, height=1.6 + 0.3 * max(len(shown), 3)) as (figure, buffer):
        _draw(figure.add_subplot(), result, shown, hidden=len(rows) - len(shown))
    return (buffer.getvalue(),)


def _draw(axes: Axes, result: Result, rows: tuple[Lane, ...], hidden: int) -> None:
    timeline = result.timeline
    names = _names(result)
    of_label = np.array([names.get(label.name, LEGEND) for label in timeline.flat.graph.labels], np.int64)
    scale, unit = time_scale(result.makespan_s)
    many = sum(len(lane.ops) for lane in rows) > BARS
    pixel, seen = result.makespan_s / PIXELS, result.makespan_s / SEEN
    for row, lane in enumerate(rows):
        start = result.ops.begin[lane.ops].astype(np.float64) / FEMTO
        end = timeline.end[lane.ops].astype(np.float64) / FEMTO
        colour = of_label[timeline.flat.label[lane.ops]]
        low, high, colour = merged(start, end, colour, pixel if many else 0.0)
        narrow = high - low < NARROW * pixel  # a white edge would hide such a bar, and so would a longer one drawn after it
        low, high = visible(low, high, seen, result.makespan_s)
        for some, edge in ((~narrow, PLAIN if many else EDGED), (narrow, PLAIN)):
            bars = list(zip(low[some] / scale, (high - low)[some] / scale, strict=True))
            shades = [_colour(each) for each in colour[some].tolist()]
            axes.broken_barh(bars, (row - 0.4, 0.8), facecolors=shades, **edge)
        _waiting(axes, result, lane, row, scale, 0.0 if many else NARROW * pixel)
    axes.set_yticks(range(len(rows)), [_row(lane) for lane in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlim(0, result.makespan_s / scale or 1)
    axes.set_xlabel(f"time ({unit})")
    more = f"; {hidden} more rows not shown" if hidden else ""
    title = f"{result.workload} on {result.machine}: {format_quantity(result.makespan_s, 's')}{more}"
    axes.set_title(figure_title(title, result.settings), fontsize="medium")
    _legend(axes, names, result)


def _waiting(axes: Axes, result: Result, lane: Lane, row: int, scale: float, least: float) -> None:
    """White stripes over the part of a collective in which its rank waits for others; not where a bar is a few pixels."""
    waited = result.ops.waiting[lane.ops].astype(np.float64) / FEMTO
    shown = waited > max(least, 0.0)
    if not shown.any() or int(shown.sum()) > BARS:
        return
    begin = result.ops.begin[lane.ops][shown].astype(np.float64) / FEMTO
    bars = list(zip(begin / scale, waited[shown] / scale, strict=True))
    axes.broken_barh(bars, (row - 0.4, 0.8), facecolors="none", edgecolor="white", hatch="///", linewidth=0.0)


def _row(lane: Lane) -> str:
    return lane.name if lane.name.startswith(lane.device) else f"{lane.device}  {lane.name}"


def _names(result: Result) -> dict[str, int]:
    """A colour number for the names that take most of the time, longest first."""
    timeline = result.timeline
    ops = result.ops.numbers
    took = (timeline.end[ops] - result.ops.begin[ops]).astype(np.float64)
    total: dict[str, float] = {}
    per_label = np.bincount(timeline.flat.label[ops], weights=took, minlength=len(timeline.flat.graph.labels))
    for label, spent in zip(timeline.flat.graph.labels, per_label.tolist(), strict=True):
        if label.device:
            total[label.name] = total.get(label.name, 0.0) + spent
    longest = sorted(total, key=lambda name: (-total[name], name))[:LEGEND]
    return {name: number for number, name in enumerate(longest)}


def merged(start: Floats, end: Floats, colour: Ints, pixel: float) -> tuple[Floats, Floats, Ints]:
    """Neighbours of one colour with less than a pixel between them become one bar, and what is hidden by it vanishes."""
    if not len(start) or not pixel:
        return start, end, colour
    column = np.floor(start / pixel)
    starts_pixel = np.concatenate([[True], column[1:] != column[:-1]])
    wide = end - start >= pixel
    keep = starts_pixel | wide  # of the short bars in one pixel, the first stands for all
    low, high, shade = start[keep], np.maximum(end[keep], start[keep] + pixel), colour[keep]
    heads = np.concatenate([[True], (low[1:] - high[:-1] > pixel) | (shade[1:] != shade[:-1])])
    firsts = np.flatnonzero(heads)
    return low[firsts], np.maximum.reduceat(high, firsts), shade[firsts]


def visible(low: Floats, high: Floats, least: float, end: float) -> tuple[Floats, Floats]:
    """Bars of at least this width: what is not a pixel wide is drawn or not, as it falls; twice that at the figure's frame."""
    low = np.minimum(low, max(0.0, end - 2 * least))
    return low, np.minimum(np.maximum(high, np.maximum(low, least) + least), end)


def _colour(number: int) -> str:
    return COLOURS[number] if number < LEGEND else OTHER


def _legend(axes: Axes, names: dict[str, int], result: Result) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=_colour(number), label=name) for name, number in names.items()]
    every = {label.name for label in result.timeline.flat.graph.labels if label.device}
    if len(every) > len(names):
        patches.append(Patch(facecolor=OTHER, label=f"{len(every) - len(names)} others"))
    if len(result.ops) and bool((result.ops.waiting > 0).any()):
        patches.append(Patch(facecolor=OTHER, edgecolor="white", hatch="///", label="waiting for others", linewidth=0.0))
    if patches:
        axes.legend(handles=patches, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)
