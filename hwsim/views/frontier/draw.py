"""Options as points over two quantities, with the Pareto frontier filled; PNG, SVG or PDF by the suffix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.views.kit.figure import COLOURS, LEGEND, MARKERS, OTHER, SOFT, figure_bytes, legend_below, open_axes, write_title
from hwsim.views.sweep.curves import scaled


@dataclass(frozen=True, slots=True)
class ScatterAxis:
    """A quantity and its unit.

    Args:
        title: quantity.
        unit: unit.
    """

    title: str
    unit: str


@dataclass(frozen=True, slots=True)
class Cloud:
    """Options of one kind.

    Args:
        name: name of the kind.
        points: (x, y, whether on the frontier) of each option.
    """

    name: str
    points: tuple[tuple[float, float, bool], ...]


@dataclass(frozen=True, slots=True)
class Scatter:
    """A scatter plot of options.

    Args:
        title: title.
        across, up: horizontal and vertical axis.
        legend: title of the legend.
        clouds: options by kind.
        below: line below the title.
    """

    title: str
    across: ScatterAxis
    up: ScatterAxis
    legend: str
    clouds: tuple[Cloud, ...]
    below: str = ""


def render(scatter: Scatter, suffix: str = ".png") -> Iterable[bytes]:
    """Return the figure as bytes; same points, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    with figure_bytes(suffix, height=4.4) as (figure, buffer):
        axes = figure.add_subplot()
        for number, cloud in enumerate(scatter.clouds):
            colour, marker = (COLOURS[number], MARKERS[number]) if number < LEGEND else (OTHER, ".")
            for filled in (False, True):
                some = [(x, y) for x, y, front in cloud.points if front == filled]
                style: dict[str, Any] = {"color": colour} if filled else {"facecolors": "none", "edgecolors": colour}
                axes.scatter([x for x, _ in some], [y for _, y in some], marker=marker, s=48, zorder=3, **style)
        front = sorted((x, y) for cloud in scatter.clouds for x, y, is_front in cloud.points if is_front)
        axes.plot([x for x, _ in front], [y for _, y in front], color=SOFT, linewidth=1.4, zorder=2)
        legend_below(figure, _dress(axes, scatter), scatter.legend)
        write_title(figure, scatter.title, scatter.below)
    return (buffer.getvalue(),)


def _dress(axes: Any, scatter: Scatter) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis, shown in ((axes.xaxis, scatter.across), (axes.yaxis, scatter.up)):
        axis.set_major_formatter(FuncFormatter(lambda value, _, unit=shown.unit: _marked(value, unit)))
    axes.set_xlabel(scatter.across.title)
    axes.set_ylabel(scatter.up.title)
    axes.set_ylim(bottom=0)
    open_axes(axes, corner=True)
    for axis, shown in ((axes.xaxis, scatter.across), (axes.yaxis, scatter.up)):
        low, high = sorted(axis.get_view_interval())
        by = scaled([high], "" if shown.unit in ("1", "USD") else shown.unit)[0]  # ticks are round in the displayed unit
        marks = MaxNLocator(6, integer=shown.unit in ("", "1")).tick_values(low / by, high / by)
        axis.set_ticks([by * mark for mark in marks if low <= by * mark <= high])
    across = {x for cloud in scatter.clouds for x, _, _ in cloud.points}
    if len(across) == 1:
        axes.set_xticks(sorted(across))
    handles: list[Line2D] = []
    for number, cloud in enumerate(scatter.clouds[:LEGEND]):
        handles.append(Line2D([], [], linestyle="", marker=MARKERS[number], color=COLOURS[number], label=cloud.name or "option"))
    handles.append(Line2D([], [], linestyle="", marker="o", markerfacecolor="none", color=SOFT, label="not on the frontier"))
    return handles


def _marked(value: float, unit: str) -> str:
    """Return the label of a tick."""
    if unit == "USD":
        return f"{value / 1e6:.4g} M USD" if value >= 1e6 else f"{value:,.0f} USD"
    return f"{value:,.0f}" if unit == "1" and value >= 100 else format_quantity(value, unit)
