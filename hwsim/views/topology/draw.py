"""A machine as a figure: devices in rows by kind, links as lines whose width grows with their bandwidth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from hwsim import links
from hwsim.formats import format_quantity
from hwsim.views.kit.figure import COLOURS, INK, PAPER, SOFT, figure_bytes, legend_below, run_caption, write_title
from hwsim.views.kit.view import Heading
from hwsim.views.topology.find import MachineTopology
from hwsim.views.topology.layout import arrange
from hwsim.views.topology.rows import HEIGHT, DeviceBox, TopologyDrawing, TopologyEdge, arc_depth, feet, line_shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PALETTE: Final = dict(zip(("blue", "orange", "green", "purple", "sky", "red", "yellow", "black"), COLOURS, strict=False))
_FILLS: Final = {"cpu": COLOURS[1], "gpu": COLOURS[2], "switch": COLOURS[7], "nic": COLOURS[3], "memory": COLOURS[4]}
_LEGEND: Final = 10


def figure(topology: MachineTopology, heading: Heading, suffix: str) -> Iterable[bytes]:
    """Return the figure as bytes; same machine, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    drawing = arrange(topology.machine)
    left, right, bottom, top = _extent(drawing)
    legend = _legend(drawing)
    width, height = max(right - left, 6.0), top - bottom
    with figure_bytes(suffix, width=width + 0.2, height=height + 0.3 + 0.24 * len(legend)) as (canvas, buffer):
        axes = canvas.add_subplot()
        axes.set_axis_off()
        middle = (left + right) / 2
        axes.set_xlim(middle - width / 2, middle + width / 2)
        axes.set_ylim(bottom, top)
        axes.set_aspect("equal")
        _draw(axes, drawing)
        if legend:
            from matplotlib.lines import Line2D

            handles = [Line2D([], [], color=_colour(line), linewidth=_thick(drawing, line), label=text) for text, line in legend]
            legend_below(canvas, handles)
        write_title(canvas, _finding(topology), run_caption("", heading.machine, heading.settings))
    return (buffer.getvalue(),)


def _finding(topology: MachineTopology) -> str:
    """Return the number of devices and the bisection bandwidth."""
    devices: dict[str, int] = {}
    for device in topology.machine.devices.values():
        devices[device.kind] = devices.get(device.kind, 0) + 1
    shown = ", ".join(
        f"{count} {kind.upper()}{'s' if count > 1 else ''}"
        for kind, count in sorted(devices.items())
        if kind in ("cpu", "gpu", "nic")
    )
    narrowest = next(iter(topology.bisections), None)
    half = f": bisection bandwidth {format_quantity(narrowest.bandwidth, 'B/s')}" if narrowest is not None else ""
    return f"{shown or topology.machine.name}{half}"


def _extent(drawing: TopologyDrawing) -> tuple[float, float, float, float]:
    boxes = drawing.boxes.values()
    left = min([box.x - box.width / 2 for box in boxes] + [frame.left for frame in drawing.frames])
    right = max([box.x + box.width / 2 for box in boxes] + [frame.right for frame in drawing.frames])
    bottom = min([box.y for box in boxes] + [frame.bottom for frame in drawing.frames] + [_lowest(drawing)])
    top = max([box.y for box in boxes] + [frame.top for frame in drawing.frames])
    return left - 0.2, right + 0.2, bottom - 0.35, top + 0.35


def _lowest(drawing: TopologyDrawing) -> float:
    """Return the lowest point of the arcs."""
    depths = [
        min(drawing.boxes[line.a].y, drawing.boxes[line.b].y) - arc_depth(drawing.boxes[line.a], drawing.boxes[line.b])
        for line in drawing.lines
        if line_shape(drawing, line) == "arc"
    ]
    return min(depths, default=0.0)


def _legend(drawing: TopologyDrawing) -> list[tuple[str, TopologyEdge]]:
    """Return a line of each kind and bandwidth, widest first."""
    alike: dict[tuple[str, float], TopologyEdge] = {}
    for line in drawing.lines:
        alike.setdefault((line.label, round(line.bandwidth)), line)
    ordered = sorted(alike.values(), key=lambda line: (-line.bandwidth, line.label))[:_LEGEND]
    return [(f"{line.label}: {format_quantity(line.bandwidth, 'B/s')} each way", line) for line in ordered]


def _thick(drawing: TopologyDrawing, line: TopologyEdge) -> float:
    widest = max(other.bandwidth for other in drawing.lines)
    crowd = min(1.0, 40 / len(drawing.lines)) if drawing.round else 1.0
    return max(0.3, (0.8 + 4.2 * math.sqrt(line.bandwidth / widest)) * crowd)


def _colour(line: TopologyEdge) -> str:
    return _PALETTE[links.KINDS[line.kind].colour]


def _fill(kind: str) -> tuple[float, float, float]:
    """Return a pale tint of the colour of a kind of device."""
    from matplotlib.colors import to_rgb

    tint, paper = to_rgb(_FILLS.get(kind, PAPER)), to_rgb(PAPER)
    red, green, blue = (0.22 * a + 0.78 * b for a, b in zip(tint, paper, strict=True))
    return red, green, blue


def _draw(axes: Axes, drawing: TopologyDrawing) -> None:
    from matplotlib.patches import FancyBboxPatch

    def rounded(corner: tuple[float, float], width: float, height: float, radius: float, **look: Any) -> None:
        axes.add_patch(FancyBboxPatch(corner, width, height, boxstyle=f"round,pad=0,rounding_size={radius}", **look))

    for frame in drawing.frames:
        size = frame.right - frame.left, frame.top - frame.bottom
        rounded((frame.left, frame.bottom), *size, 0.12, facecolor="none", edgecolor=SOFT, zorder=0)
        axes.text(frame.left + 0.14, frame.bottom + 0.1, frame.label, ha="left", va="bottom", color=SOFT)
    for line in sorted(drawing.lines, key=lambda line: -line.bandwidth):
        _draw_line(axes, drawing, line)
    for box in drawing.boxes.values():
        height = HEIGHT if box.label else box.width
        corner = box.x - box.width / 2, box.y - height / 2
        rounded(corner, box.width, height, 0.06, facecolor=_fill(box.kind), edgecolor=INK, linewidth=0.8, zorder=3)
        axes.text(box.x, box.y, box.label, ha="center", va="center", fontsize=8.5, zorder=4, color=INK)


def _draw_line(axes: Axes, drawing: TopologyDrawing, line: TopologyEdge) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    a, b = drawing.boxes[line.a], drawing.boxes[line.b]
    colour, thick = _colour(line), _thick(drawing, line)
    shape = line_shape(drawing, line)
    if shape == "stub":
        axes.plot([a.x, a.x], [a.y, a.y + 0.45], linestyle=(0, (2, 1)), color=colour, linewidth=thick, zorder=2)
        axes.text(a.x + 0.06, a.y + 0.42, "to others", fontsize="x-small", va="top", color=SOFT)
    elif shape == "arc":
        start, end = feet(drawing, line)
        low = min(a.y, b.y) - HEIGHT / 2 - (arc_depth(a, b) - HEIGHT / 2) * 4 / 3
        path = Path([(start, a.y), (start, low), (end, low), (end, a.y)], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        axes.add_patch(PathPatch(path, facecolor="none", edgecolor=colour, linewidth=thick, capstyle="butt", zorder=2))
    else:
        xa, xb = (a.x, b.x) if drawing.round or shape == "straight" else _upright(a, b)
        axes.plot([xa, xb], [a.y, b.y], color=colour, linewidth=thick, solid_capstyle="butt", zorder=2)


def _upright(a: DeviceBox, b: DeviceBox) -> tuple[float, float]:
    """Return the ends of a line between two boxes of different rows, vertical if they overlap."""
    low = max(a.x - a.width / 2, b.x - b.width / 2) + 0.1
    high = min(a.x + a.width / 2, b.x + b.width / 2) - 0.1
    if low <= high:
        narrow = a if a.width <= b.width else b
        x = min(max(narrow.x, low), high)
        return x, x
    return min(max(b.x, a.x - a.width / 2 + 0.1), a.x + a.width / 2 - 0.1), min(
        max(a.x, b.x - b.width / 2 + 0.1), b.x + b.width / 2 - 0.1
    )
