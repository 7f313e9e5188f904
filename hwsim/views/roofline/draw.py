"""Rooflines as a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from hwsim.units import format_share, precise
from hwsim.views.kit.figure import COLOURS, figure_bytes, figure_title
from hwsim.views.kit.view import Heading
from hwsim.views.roofline.ceilings import Ceiling
from hwsim.views.roofline.find import Roofline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation, Text

MARKERS: Final = "osD^v<>Pp*hX"
LINES: Final = ("-", "--", "-.", ":")
APART: Final = 13.0  # points between two labels, at least
DRAWN: Final = 12  # points with a marker and a line in the legend of their own
INK: Final = "#333333"


def figure(rooflines: Sequence[Roofline], heading: Heading, suffix: str) -> Iterable[bytes]:
    """A panel per device: FLOP per second over FLOP per byte, both logarithmic.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    name = f"{heading.workload} on {heading.machine}" if heading.workload else heading.machine
    rows = [5.2 + 0.2 * math.ceil(len(roofline.points) / 2) for roofline in rooflines]
    with figure_bytes(suffix, width=9, height=math.fsum(rows)) as (drawn, buffer):
        panels = drawn.subplots(len(rooflines), 1, squeeze=False, height_ratios=rows)[:, 0]
        placed = []
        for axes, roofline in zip(panels, rooflines, strict=True):
            placed.append(_panel(axes, roofline))
            axes.set_title(figure_title(f"{name}: {roofline.device}", heading.settings), fontsize="medium", loc="left")
            axes.set_title("thin dashes: sustained", fontsize="small", loc="right", color=INK)
        drawn.draw_without_rendering()  # sizes are known only now: turn the labels along their lines, push others apart
        for axes, (along, beside) in zip(panels, placed, strict=True):
            _along(axes, along)
            _apart(axes, beside)
    return (buffer.getvalue(),)


def _panel(axes: Axes, roofline: Roofline) -> tuple[list[Text], list[Annotation]]:
    """Draws it; the labels along the slopes, and those beside the ceilings, highest first."""
    compute = _distinct(roofline.compute)
    known = [each.intensity for each in roofline.points if not math.isinf(each.intensity)]
    top = max(each.peak for each, _ in compute)
    fastest = max(each.peak for each in roofline.memory)
    least = min(each.peak for each, _ in compute) / fastest / 4  # room for the names along the slopes
    low = 10.0 ** math.floor(math.log10(min([0.1, least, *(value * 0.8 for value in known)])))
    slowest = min(each.peak for each in roofline.memory)
    high = 10.0 ** math.ceil(math.log10(max([top / slowest * 2, *(value * 2 for value in known)])))
    floor = min([low * slowest, *(each.attained for each in roofline.points)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(10.0 ** math.floor(math.log10(floor)), top * 3)
    along = [_slope(axes, each, number, low, top) for number, each in enumerate(roofline.memory)]
    first = next(each.peak for each in roofline.memory if each.key == "memory")
    for each, _ in compute:
        axes.plot([each.peak / fastest, high], [each.peak, each.peak], color=INK, linewidth=1.3)
        if each.sustained < 0.97 * each.peak:
            axes.plot([each.sustained / first, high], [each.sustained] * 2, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    beside = _beside(axes, [(each.peak, f"{names}  {precise(float(f'{each.peak:.3g}'), 'FLOP/s')}") for each, names in compute])
    _points(axes, roofline, high)
    axes.set_xlabel("FLOP per byte that crosses to memory")
    axes.set_ylabel("FLOP/s")
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return along, beside


def _slope(axes: Axes, each: Ceiling, number: int, low: float, top: float) -> Text:
    """A line of one level of memory, with its name along the left end of it."""
    colour, style = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
    axes.plot([low, top / each.peak], [low * each.peak, top], color=colour, linewidth=1.8, linestyle=style)
    if each.sustained < 0.97 * each.peak:
        axes.plot([low, top / each.peak], [low * each.sustained, top * each.sustained / each.peak], color=colour, linewidth=0.8,
                  linestyle=(0, (4, 3)))  # fmt: skip
    at = low * 1.3
    return axes.text(
        at,
        at * each.peak,
        f"{each.key}  {precise(float(f'{each.peak:.3g}'), 'B/s')}",
        rotation_mode="anchor",
        fontsize=8,
        color=colour,
        fontweight="bold",
        ha="left",
        va="center_baseline",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )


def _distinct(ceilings: Sequence[Ceiling]) -> list[tuple[Ceiling, str]]:
    """Ceilings of one height as one line: (the first, all their names)."""
    found: list[tuple[Ceiling, str]] = []
    for each in ceilings:
        same = next((at for at, (drawn, _) in enumerate(found) if abs(drawn.peak / each.peak - 1) < 0.02), None)
        if same is None:
            found.append((each, each.key))
        else:
            found[same] = (found[same][0], f"{found[same][1]}, {each.key}")
    return found


def _beside(axes: Axes, labels: Sequence[tuple[float, str]]) -> list[Annotation]:
    """Labels at the right of their lines, highest first."""
    return [
        axes.annotate(
            label,
            (1.0, value),
            (8, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=8,
            color=INK,
            va="center",
            ha="left",
            annotation_clip=False,
        )
        for value, label in sorted(labels, reverse=True)
    ]


def _along(axes: Axes, labels: Sequence[Text]) -> None:
    """Turn labels to the slope of a line of constant bandwidth."""
    (x0, y0), (x1, y1) = axes.transData.transform([(1.0, 1.0), (10.0, 10.0)])
    for each in labels:
        each.set_rotation(math.degrees(math.atan2(y1 - y0, x1 - x0)))


def _apart(axes: Axes, labels: Sequence[Annotation]) -> None:
    """Push labels down from the top where lines are close."""
    figure = axes.get_figure()
    to_points = 72.0 / (figure.dpi if figure is not None else 100.0)
    above = math.inf
    for each in labels:
        true = float(axes.transData.transform((1.0, each.xy[1]))[1]) * to_points
        above = min(true, above - APART)
        each.set_position((8, above - true))


def _points(axes: Axes, roofline: Roofline, high: float) -> None:
    shown = roofline.points[:DRAWN]
    for number, each in enumerate(shown):
        inside = math.isinf(each.intensity)
        share = format_share(each.attained / roofline.roof(each))
        axes.plot(
            [high if inside else each.intensity],
            [each.attained],
            marker=MARKERS[number],
            color=COLOURS[number % 8],
            markeredgecolor="black",
            markersize=8,
            linestyle="none",
            zorder=5,
            clip_on=False,
            label=f"{each.name}: {share} of its roof" + (" (caches)" if inside else ""),
        )
    if len(roofline.points) > DRAWN:
        rest = [each for each in roofline.points[DRAWN:] if not math.isinf(each.intensity)]
        axes.plot([each.intensity for each in rest], [each.attained for each in rest], ".", color="#777777",
                  label=f"{len(roofline.points) - DRAWN} others")  # fmt: skip
    if roofline.points:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False, fontsize="small")
