"""A study as a figure: lines over numbers, bars over names; PNG, SVG or PDF by the suffix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity
from hwsim.views.kit.figure import DASHES, INK, LEGEND, MARKERS, PAPER, SOFT, figure_bytes, legend_below, open_axes, write_title
from hwsim.views.kit.table import size_text
from hwsim.views.sweep.curves import BITS, Curves, logarithmic, scaled
from hwsim.views.sweep.figure_labels import HATCHES, bands, bar_legend, colour, name_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

HIGH: Final = 50.0  # largest / smallest value above which the axis is logarithmic
LETTERS: Final = 108  # width of the axis (characters), three between two labels
TICKS: Final = 12  # largest number of labelled values


def render(curves: Curves, suffix: str = ".png") -> Iterable[bytes]:
    """Return the figure as bytes; same curves, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    with figure_bytes(suffix, height=4.3) as (figure, buffer):
        axes = figure.add_subplot()
        scale = _lines(axes, curves) if curves.numbers else _bars(axes, curves)
        _dress(axes, curves, scale)
        legend_below(
            figure, bands(axes, curves) if curves.numbers else bar_legend(curves), "" if curves.numbers else curves.legend
        )
        write_title(figure, curves.title, curves.below)
        if curves.numbers:
            name_lines(figure, axes, curves, scale[0])
    return (buffer.getvalue(),)


def _lines(axes: Axes, curves: Curves) -> tuple[float, str]:
    apart, (across, symbol) = curves.has_own_units, curves.across_by
    time = scaled(curves.every, curves.measure_unit)
    order = curves.order
    x = [curves.numbers[place] / across for place in order]
    for number, line in enumerate(curves.lines):
        y = [math.nan if (value := line.values[place]) is None else value / time[0] for place in order]
        mark, dash, width = (MARKERS[number], DASHES[number % len(DASHES)], 2.2) if number < LEGEND else (".", "-", 1.0)
        order_drawn = 3 if number < LEGEND else 2
        axes.plot(x, y, color=_shade(curves, number), marker=mark, linestyle=dash, linewidth=width, zorder=order_drawn)
    if curves.perfect:
        axes.plot(x, [curves.perfect[place] / time[0] for place in order], color=SOFT, linestyle=":", zorder=2)
    if logarithmic(curves.numbers):
        axes.set_xscale("log")
    if (len(x) <= TICKS and _even(x)) or logarithmic(x):
        texts = [_marked(value, curves.unit, curves.binary) if apart else f"{value:.10g}" for value in x]
        every = math.ceil(len(x) / min(TICKS, LETTERS / (3 + max(map(len, texts)))))
        axes.set_xticks(x[::every], texts[::every])
        axes.xaxis.minorticks_off()
    elif apart:
        _with_units(axes.xaxis, curves.unit, 1.0, binary=curves.binary)
    scale = ", logarithmic" if axes.get_xscale() == "log" else ""
    axes.set_xlabel(f"{curves.across} ({symbol}){scale}" if symbol else curves.across + scale)
    if len(curves.lines) == 1 and len(x) <= TICKS:
        values = [curves.lines[0].values[place] for place in order]
        for number, (position, value) in enumerate(zip(x, values, strict=True)):
            if value is not None:
                falls = number + 1 < len(values) and value > 1.05 * (values[number + 1] or value)
                text = (
                    _short(value / time[0])
                    if time[1] or not curves.measure_unit
                    else _marked(value, curves.measure_unit, binary=False)
                )
                axes.annotate(
                    text,
                    (position, value / time[0]),
                    (9 if falls else 0, 5 if falls else 9),
                    textcoords="offset points",
                    ha="left" if falls else "center",
                    fontsize=12,
                    fontweight="bold",
                )
    return time


def _bars(axes: Axes, curves: Curves) -> tuple[float, str]:
    time = scaled(curves.every, curves.measure_unit)
    width = 0.8 / max(len(curves.lines), 1)
    for number, line in enumerate(curves.lines):
        places = [place for place, value in enumerate(line.values) if value is not None]
        heights = [value / time[0] for value in line.values if value is not None]
        left = (number - (len(curves.lines) - 1) / 2) * width
        axes.bar([place + left for place in places], heights, width, color=colour(number), edgecolor=PAPER, linewidth=0.8,
                 hatch=HATCHES[number % len(HATCHES)], zorder=3)  # fmt: skip
        if len(curves.lines) == 1:
            for place, height in zip(places, heights, strict=True):
                axes.annotate(_short(height), (place, height), (0, 3), textcoords="offset points", ha="center", fontweight="bold")
    crowded = sum(map(len, curves.names)) > 80  # integers
    axes.set_xticks(range(len(curves.names)), [name if len(name) <= 30 else name[:27] + "..." for name in curves.names])
    axes.tick_params("x", rotation=30 if crowded else 0)
    axes.set_xlabel(curves.across)
    return time


def _short(value: float) -> str:
    """Return the label of a point.

    >>> _short(16912.0), _short(0.1234)
    ('16,912', '0.123')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _dress(axes: Axes, curves: Curves, time: tuple[float, str]) -> None:
    values, name = curves.every, curves.measure
    least = 2.0 if axes.get_xscale() == "log" else HIGH  # on two logarithmic axes, a proportional law is a straight line
    if curves.numbers and values and 0 < min(values) * least < max(values):
        axes.set_yscale("log", subs=(2, 5))
        _with_units(axes.yaxis, curves.measure_unit or "1", time[0])
        axes.yaxis.set_minor_formatter(axes.yaxis.get_major_formatter())
        axes.set_ylabel(f"{name}, logarithmic")
    else:
        axes.set_ylim(0, max(values, default=0.0) / time[0] * 1.12 or 1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.set_ylabel(time[1] if time[1].endswith(name) else f"{name} ({time[1]})" if time[1] else name)
    open_axes(axes, "y")


def _shade(curves: Curves, number: int) -> str:
    return INK if len(curves.lines) == 1 else colour(number)


def _even(x: Sequence[float]) -> bool:
    """Return whether the labels of these sorted values do not overlap."""
    return all(high - low > (x[-1] - x[0]) / (2 * TICKS) for low, high in pairwise(x))


def _with_units(axis: Axis, unit: str, scale: float, *, binary: bool = False) -> None:
    """Label each tick with its own unit."""
    axis.set_major_formatter(lambda value, _: _marked(value * scale, unit, binary, 1))


def _marked(value: float, unit: str, binary: bool, digits: int = 3) -> str:
    """Return the label of a tick; a size in KiB, MiB, ... if the values are."""
    if unit == BITS:
        return format_quantity(value, "B/s", digits).replace("B", "b")
    return size_text(value) if binary and unit == "B" else format_quantity(value, unit, digits)
