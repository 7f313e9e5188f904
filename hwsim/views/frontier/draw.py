"""Options as points over two quantities, the frontier filled; PNG, SVG or PDF by the file's suffix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.views.kit.figure import COLOURS, LEGEND, OTHER, figure_bytes

MARKERS = "osD^v<>Pp*hX"


@dataclass(frozen=True, slots=True)
class Axis:
    """A quantity and its unit."""

    title: str
    unit: str


@dataclass(frozen=True, slots=True)
class Cloud:
    """Options of one kind: (across, up, on the frontier)."""

    name: str
    points: tuple[tuple[float, float, bool], ...]


@dataclass(frozen=True, slots=True)
class Scatter:
    """A figure as data."""

    title: str
    across: Axis
    up: Axis
    legend: str
    clouds: tuple[Cloud, ...]


def render(scatter: Scatter, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same points, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    with figure_bytes(suffix, width=9, height=5) as (figure, buffer):
        axes = figure.add_subplot()
        for number, cloud in enumerate(scatter.clouds):
            colour, marker = (COLOURS[number], MARKERS[number]) if number < LEGEND else (OTHER, ".")
            for filled in (False, True):
                some = [(x, y) for x, y, front in cloud.points if front == filled]
                style: dict[str, Any] = {"color": colour} if filled else {"facecolors": "none", "edgecolors": colour}
                axes.scatter([x for x, _ in some], [y for _, y in some], marker=marker, s=28, zorder=3, **style)
        front = sorted((x, y) for cloud in scatter.clouds for x, y, is_front in cloud.points if is_front)
        axes.plot([x for x, _ in front], [y for _, y in front], color="#999999", linewidth=1.0, zorder=2)
        _dress(axes, scatter)
    return (buffer.getvalue(),)


def _dress(axes: Any, scatter: Scatter) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter

    for axis, shown in ((axes.xaxis, scatter.across), (axes.yaxis, scatter.up)):
        axis.set_major_formatter(FuncFormatter(lambda value, _, unit=shown.unit: _marked(value, unit)))
    axes.set_xlabel(scatter.across.title)
    axes.set_ylabel(scatter.up.title)
    axes.set_title(scatter.title, fontsize="medium")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, color="#E5E5E5", linewidth=0.8, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    handles: list[Line2D] = []
    for number, cloud in enumerate(scatter.clouds[:LEGEND]):
        handles.append(Line2D([], [], linestyle="", marker=MARKERS[number], color=COLOURS[number], label=cloud.name or "option"))
    handles.append(Line2D([], [], linestyle="", marker="o", markerfacecolor="none", color="#555555", label="not on the frontier"))
    axes.legend(handles=handles, title=scatter.legend, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small",
                frameon=False)  # fmt: skip


def _marked(value: float, unit: str) -> str:
    """A mark on an axis."""
    if unit == "USD":
        return f"{value / 1e6:.4g} M USD" if value >= 1e6 else f"{value:,.0f} USD"
    return f"{value:,.0f}" if unit == "1" and value >= 100 else format_quantity(value, unit)
