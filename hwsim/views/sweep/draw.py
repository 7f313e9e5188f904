"""The numbers of a study as a figure: lines over numbers, bars over names; PNG, SVG or PDF by the file's suffix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.units import parse
from hwsim.views.kit.figure import COLOURS, LEGEND, OTHER, figure_bytes
from hwsim.views.kit.table import BINARY, size_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

TICKS: Final = 12  # most values that are all marked on the axis
WIDE: Final = 100.0  # largest / smallest above which an axis is logarithmic
FAR: Final = 1000.0  # and from which its marks have units of their own
MARKERS: Final = "osD^v<>Pp*hX"


@dataclass(frozen=True, slots=True)
class Curve:
    """The measure at each value across; None if there is none."""

    label: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """A figure as data.

    Args:
        across: quantity of the values, in `unit` (SI; empty for plain numbers).
        numbers: the values; empty if they are names.
        names: the values as texts.
        legend: quantities that distinguish the lines.
        measure: quantity that is compared, in `measure_unit` (SI; empty for plain numbers).
        binary: the values are in KiB, MiB, ...
    """

    title: str
    across: str
    unit: str
    numbers: tuple[float, ...]
    names: tuple[str, ...]
    legend: str
    lines: tuple[Curve, ...]
    measure: str = "time"
    measure_unit: str = "s"
    binary: bool = False

    @property
    def every(self) -> list[float]:
        """All values that the lines have."""
        return [each for line in self.lines for each in line.values if each is not None]


def render(curves: Curves, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same curves, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    with figure_bytes(suffix, width=9, height=5) as (figure, buffer):
        axes = figure.add_subplot()
        scale = _lines(axes, curves) if curves.numbers else _bars(axes, curves)
        _dress(axes, curves, scale)
    return (buffer.getvalue(),)


def logarithmic(values: Iterable[float]) -> bool:
    """Whether values read better on a logarithmic axis: they span more than a factor of 100, or grow by the same factor.

    >>> logarithmic([1, 2, 4, 8]), logarithmic([1, 2, 3, 4]), logarithmic([1, 1000]), logarithmic([0, 1000])
    (True, False, True, False)
    """
    ordered = sorted(set(values))
    if len(ordered) < 2 or ordered[0] <= 0:
        return False
    ratios = [high / low for low, high in pairwise(ordered)]
    return ordered[-1] / ordered[0] > WIDE or (len(ordered) > 3 and max(ratios) < min(ratios) * 1.01)


def scaled(values: Sequence[float], unit: str, *, binary: bool = False) -> tuple[float, str]:
    """A divisor and its unit: the unit in which the largest value is written.

    >>> scaled([1e9, 16e9], "B/s"), scaled([0.015], "s"), scaled([3.0], "")
    ((1000000000.0, 'GB/s'), (0.001, 'ms'), (1.0, ''))
    >>> scaled([65536.0, 131072.0], "B", binary=True)
    (1024.0, 'KiB')
    """
    if not unit or not values or max(values) <= 0:
        return 1.0, unit
    if binary and unit == "B" and max(values) >= 1024:
        return next((float(size), name) for size, name in BINARY if max(values) >= size)
    symbol = format_quantity(max(values), unit).partition(" ")[2]
    return parse(f"1 {symbol}").value, symbol


def _lines(axes: Axes, curves: Curves) -> tuple[float, str]:
    apart = curves.unit != "" and min(curves.numbers) > 0 and max(curves.numbers) / min(curves.numbers) >= FAR
    across, symbol = (1.0, "") if apart else scaled(curves.numbers, curves.unit, binary=curves.binary)
    time = scaled(curves.every, curves.measure_unit)
    order = sorted(range(len(curves.numbers)), key=lambda place: curves.numbers[place])
    x = [curves.numbers[place] / across for place in order]
    for number, line in enumerate(curves.lines):
        y = [math.nan if (value := line.values[place]) is None else value / time[0] for place in order]
        style: dict[str, Any] = {"color": _colour(number), "marker": MARKERS[number] if number < LEGEND else ".", "markersize": 5}
        axes.plot(x, y, linewidth=1.5, zorder=3 if number < LEGEND else 2, **style)
    if logarithmic(curves.numbers):
        axes.set_xscale("log")
    if len(x) <= TICKS and (logarithmic(x) or _even(x)):
        axes.set_xticks(x, [_marked(value, curves.unit, curves.binary) if apart else f"{value:.10g}" for value in x])
        axes.xaxis.set_minor_locator(_no_ticks())
    elif apart:
        _with_units(axes.xaxis, curves.unit, 1.0, binary=curves.binary)
    axes.set_xlabel(f"{curves.across} ({symbol})" if symbol else curves.across)
    return time


def _bars(axes: Axes, curves: Curves) -> tuple[float, str]:
    time = scaled(curves.every, curves.measure_unit)
    width = 0.8 / max(len(curves.lines), 1)
    for number, line in enumerate(curves.lines):
        places = [place for place, each in enumerate(line.values) if each is not None]
        heights = [each / time[0] for each in line.values if each is not None]
        left = (number - (len(curves.lines) - 1) / 2) * width
        axes.bar([place + left for place in places], heights, width, color=_colour(number), zorder=3)
    crowded = sum(map(len, curves.names)) > 80  # integers
    axes.set_xticks(range(len(curves.names)), [each if len(each) <= 30 else each[:27] + "..." for each in curves.names])
    axes.tick_params("x", rotation=30 if crowded else 0)
    axes.set_xlabel(curves.across)
    return time


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _dress(axes: Axes, curves: Curves, time: tuple[float, str]) -> None:
    values, name = curves.every, curves.measure
    if curves.numbers and values and 0 < min(values) * WIDE < max(values):
        axes.set_yscale("log")
        _with_units(axes.yaxis, curves.measure_unit or "1", time[0])
        axes.set_ylabel(name)
    else:
        axes.set_ylim(0, max(values, default=0.0) / time[0] * 1.05 or 1)
        axes.set_ylabel(f"{name} ({time[1]})" if time[1] else name)
    axes.set_title(curves.title, fontsize="medium")
    axes.grid(visible=True, color="#E5E5E5", linewidth=0.8, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    if len(curves.lines) > 1:
        _legend(axes, curves)


def _even(x: Sequence[float]) -> bool:
    """Whether no two of these sorted values are so close that their marks would touch."""
    return all(high - low > (x[-1] - x[0]) / (2 * TICKS) for low, high in pairwise(x))


def _with_units(axis: Axis, unit: str, scale: float, *, binary: bool = False) -> None:
    """Every mark with its unit: they span too much for one."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: _marked(value * scale, unit, binary, 1)))


def _marked(value: float, unit: str, binary: bool, digits: int = 3) -> str:
    """A mark on an axis; a size in KiB, MiB, ... where the values were given so."""
    return size_text(value) if binary and unit == "B" else format_quantity(value, unit, digits)


def _legend(axes: Axes, curves: Curves) -> None:
    from matplotlib.lines import Line2D

    named = curves.lines[:LEGEND]
    mark: dict[str, Any] = {"marker": "s", "linestyle": ""} if not curves.numbers else {}
    handles = [
        Line2D([], [], color=_colour(number), label=line.label, **(mark or {"marker": MARKERS[number], "markersize": 5}))
        for number, line in enumerate(named)
    ]
    if len(curves.lines) > LEGEND:
        handles.append(Line2D([], [], color=OTHER, label=f"{len(curves.lines) - LEGEND} others", **mark))
    axes.legend(
        handles=handles, title=curves.legend, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False
    )


def _colour(number: int) -> str:
    return COLOURS[number] if number < LEGEND else OTHER
