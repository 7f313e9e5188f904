"""Rooflines as a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_share, precise
from hwsim.views.kit.figure import (
    COLOURS,
    DASHES,
    INK,
    MARKERS,
    PAPER,
    SOFT,
    decades,
    figure_bytes,
    legend_below,
    line_names,
    open_axes,
    push_apart,
    run_caption,
    write_title,
)  # fmt: skip
from hwsim.views.kit.view import Heading
from hwsim.views.roofline.ceilings import Ceiling
from hwsim.views.roofline.find import DeviceRoofline, RooflinePoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation, Text

DRAWN: Final = 12  # largest number of points with their own marker and legend entry


def figure(rooflines: Sequence[DeviceRoofline], heading: Heading, suffix: str) -> Iterable[bytes]:
    """Draw FLOP/s over FLOP/B, both logarithmic, with a panel per device.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    points = max(len(roofline.points) for roofline in rooflines)
    with figure_bytes(suffix, height=4.6 * len(rooflines) + 0.24 * min(points, DRAWN)) as (drawn, buffer):
        panels = drawn.subplots(len(rooflines), 1, squeeze=False)[:, 0]
        placed = []
        for axes, roofline in zip(panels, rooflines, strict=True):
            placed.append(_panel(axes, roofline))
            axes.set_title(roofline.device if len(rooflines) > 1 else "")
        handles = [line for axes in panels for line in axes.lines if not str(line.get_label()).startswith("_")]
        legend_below(drawn, handles)
        write_title(
            drawn,
            _finding(rooflines[0]),
            run_caption(heading.workload, heading.machine, heading.settings, "thin dashes: sustained"),
        )
        drawn.draw_without_rendering()  # computes the sizes that the labels need
        for axes, (slopes, names) in zip(panels, placed, strict=True):
            _turn(axes, slopes)
            push_apart(axes, names)
    return (buffer.getvalue(),)


def _finding(roofline: DeviceRoofline) -> str:
    """Return the fraction of the roofline that the longest op attains; without a workload, the ridge point."""
    if roofline.points:
        point = _by_time(roofline)[0]
        share = format_share(point.attained / roofline.roof(point))
        return f"{point.name} attains {share} of its roofline on {roofline.device}"
    most = max(level.peak for level in roofline.compute)
    ridge = most / roofline.bandwidth
    return f"{roofline.device}: {precise(float(f'{most:.3g}'), 'FLOP/s')}, ridge point at {ridge:,.0f} FLOP/B"


def _by_time(roofline: DeviceRoofline) -> list[RooflinePoint]:
    """Return the ops, those with the most time first."""
    return sorted(roofline.points, key=lambda point: -point.count * point.seconds)


def _panel(axes: Axes, roofline: DeviceRoofline) -> tuple[list[Text], list[Annotation]]:
    """Draw a roofline; return the labels of the slopes, and the names of the ceilings, highest first."""
    compute = _distinct(roofline.compute)
    intensities = [level.intensity for level in roofline.points if not math.isinf(level.intensity)]
    top = max(level.peak for level, _ in compute)
    fastest = max(level.peak for level in roofline.memory)
    least = min(level.peak for level, _ in compute) / fastest / 4  # space for the labels of the slopes
    low = 10.0 ** math.floor(math.log10(min([0.1, least, *(value * 0.8 for value in intensities)])))
    slowest = min(level.peak for level in roofline.memory)
    high = 10.0 ** math.ceil(math.log10(max([top / slowest * 2, *(value * 2 for value in intensities)])))
    floor = min([low * slowest, *(level.attained for level in roofline.points)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    decades(axes.xaxis, lambda value: f"{value:,.10g}")
    decades(axes.yaxis, lambda value: precise(value, "FLOP/s"))
    axes.set_xlim(low, high)
    axes.set_ylim(10.0 ** math.floor(math.log10(floor)), top * 3)
    slopes = [_slope(axes, level, number, low, top) for number, level in enumerate(roofline.memory)]
    first = roofline.bandwidth
    for level, _ in compute:
        axes.plot([level.peak / fastest, high], [level.peak, level.peak], color=INK, linewidth=1.8)
        if level.sustained < 0.97 * level.peak:
            axes.plot(
                [level.sustained / first, high],
                [level.sustained] * 2,
                color=INK,
                linewidth=0.8,
                linestyle=(0, (4, 3)),
            )
    heights = [(level.peak, f"{name}  {precise(float(f'{level.peak:.3g}'), 'FLOP/s')}", INK) for level, name in compute]
    names = line_names(axes, heights, 8)
    _points(axes, roofline, high)
    axes.set_xlabel("arithmetic intensity (FLOP per byte of memory traffic)")
    open_axes(axes, corner=True)
    return slopes, names


def _slope(axes: Axes, level: Ceiling, number: int, low: float, top: float) -> Text:
    """Draw one level of memory; return its label."""
    colour, style = COLOURS[number % 8], DASHES[number % len(DASHES)]
    axes.plot([low, top / level.peak], [low * level.peak, top], color=colour, linewidth=1.8, linestyle=style)
    if level.sustained < 0.97 * level.peak:
        ends = [low * level.sustained, top * level.sustained / level.peak]
        axes.plot([low, top / level.peak], ends, color=colour, linewidth=0.8, linestyle=(0, (4, 3)))
    x = low * 1.3
    return axes.text(
        x,
        x * level.peak,
        f"{level.key}  {precise(float(f'{level.peak:.3g}'), 'B/s')}",
        rotation_mode="anchor",
        fontsize=11,
        color=colour,
        fontweight="bold",
        ha="left",
        va="center_baseline",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
    )


def _distinct(ceilings: Sequence[Ceiling]) -> list[tuple[Ceiling, str]]:
    """Return (ceiling, all names) of each height; ceilings of equal height share a line."""
    lines: list[tuple[Ceiling, str]] = []
    for ceiling in ceilings:
        same = next((index for index, (drawn, _) in enumerate(lines) if abs(drawn.peak / ceiling.peak - 1) < 0.02), None)
        if same is None:
            lines.append((ceiling, ceiling.key))
        else:
            lines[same] = (lines[same][0], f"{lines[same][1]}, {ceiling.key}")
    return lines


def _turn(axes: Axes, labels: Sequence[Text]) -> None:
    """Rotate labels to the slope of a line of constant bandwidth."""
    (x0, y0), (x1, y1) = axes.transData.transform([(1.0, 1.0), (10.0, 10.0)])
    for label in labels:
        label.set_rotation(math.degrees(math.atan2(y1 - y0, x1 - x0)))


def _points(axes: Axes, roofline: DeviceRoofline, high: float) -> None:
    points = _by_time(roofline)
    shown = points[:DRAWN]
    for number, point in enumerate(shown):
        inside = math.isinf(point.intensity)
        share = format_share(point.attained / roofline.roof(point))
        axes.plot(
            [high if inside else point.intensity],
            [point.attained],
            marker=MARKERS[number],
            color=COLOURS[number % 8],
            markeredgecolor=INK,
            markersize=10,
            linestyle="none",
            zorder=5,
            clip_on=False,
            label=f"{point.name}: {share} of its roofline" + (" (in caches)" if inside else ""),
        )
    if len(points) > DRAWN:
        rest = [point for point in points[DRAWN:] if not math.isinf(point.intensity)]
        axes.plot([point.intensity for point in rest], [point.attained for point in rest], ".", color=SOFT,
                  label=f"{len(points) - DRAWN} more ops")  # fmt: skip
