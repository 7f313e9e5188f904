"""Bars as a figure: a waterfall between two values, or a tornado around a value."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.views.kit.figure import (
    COLOURS,
    INK,
    OTHER,
    PAPER,
    WAITING,
    figure_bytes,
    legend_below,
    text_width,
    time_scale,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

MORE: Final = COLOURS[5]  # colour of an increase
LESS: Final = COLOURS[2]  # colour of a decrease
NAME: Final = 34  # line width of the name of a bar (characters)


@dataclass(frozen=True, slots=True)
class FigureBar:
    """A bar between two values.

    Args:
        name: name.
        start, end: values.
        whole: whether it is a total of a waterfall, drawn from 0.
    """

    name: str
    start: float
    end: float
    whole: bool = False


@dataclass(frozen=True, slots=True)
class BarFigure:
    """Bars in SI units, from top to bottom.

    Args:
        title: title.
        quantity, unit: quantity and unit of the axis.
        bars: bars.
        centre: central value of a tornado; None for a waterfall.
        below: line below the title, with the names of the runs.
        legend: whether to show the direction of the effect in a tornado.
    """

    title: str
    quantity: str
    unit: str
    bars: tuple[FigureBar, ...]
    centre: float | None = None
    below: str = ""
    legend: bool = True


def render(bars: BarFigure, suffix: str = ".png") -> Iterable[bytes]:
    """Return the figure as bytes; same bars, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    largest = max((max(abs(bar.start), abs(bar.end)) for bar in bars.bars), default=1.0)
    scale, unit = time_scale(largest) if bars.unit == "s" else (0.01, "%") if bars.unit == "%" else (1.0, bars.unit)
    with figure_bytes(suffix, height=0.9 + 0.42 * max(len(bars.bars), 2)) as (figure, buffer):
        names = ["\n".join(textwrap.wrap(bar.name, NAME)) for bar in bars.bars]
        lines = max((name.count("\n") + 1 for name in names), default=1)
        figure.set_figheight(0.9 + max(0.42, 0.23 * lines) * max(len(bars.bars), 2))
        axes = figure.subplots()
        for number, bar in enumerate(bars.bars):
            low, high = sorted((bar.start, bar.end))
            colour = OTHER if bar.whole else MORE if bar.end > bar.start else LESS
            axes.barh(number, (high - low) / scale, left=low / scale, height=0.7, **_look(colour))
            axes.text(high / scale, number, f" {_label(bar, bars)}", va="center", fontsize=12)
        if bars.centre is None:
            for number, bar in enumerate(bars.bars[:-1]):
                axes.plot([bar.end / scale] * 2, [number + 0.35, number + 0.65], color=INK, linewidth=1)
        else:
            axes.axvline(bars.centre / scale, color=INK, linewidth=1.2)
        axes.set_yticks(range(len(bars.bars)), names)
        axes.set_ylim(max(len(bars.bars), 1) - 0.5, -0.5)
        _make_room(axes, [end for bar in bars.bars for end in (bar.start / scale, bar.end / scale)], bars)
        axes.set_xlabel(f"{bars.quantity} ({unit})" if unit not in ("", "1") else bars.quantity)
        axes.locator_params(axis="x", nbins=5)
        legend_below(figure, _legend(bars) if bars.centre is not None and bars.legend else [])
        write_title(figure, bars.title, bars.below)
    return (buffer.getvalue(),)


def _make_room(axes: Axes, ends: Sequence[float], bars: BarFigure) -> None:
    """Set the limits of the axis with space for the labels at the ends of the bars."""
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if bars.centre is None:
        low = min(0.0, low)
    figure: Any = axes.get_figure()
    longest = max((text_width(figure, _label(bar, bars), 12.0) for bar in bars.bars), default=0.0)
    part = min(0.6, (longest + 8.0) / (72.0 * 0.6 * figure.get_figwidth()))  # fraction of the axes
    span = (high - low) or abs(high) or 1.0
    axes.set_xlim(low - (0.03 * span if bars.centre is not None or low < 0 else 0.0), high + span * part / (1.0 - part))


def _look(colour: str) -> dict[str, Any]:
    return {"facecolor": PAPER, "edgecolor": colour, "hatch": WAITING} if colour == LESS else {"facecolor": colour}


def _legend(bars: BarFigure) -> list[Patch]:
    """Return the legend of a tornado: whether the answer increases or decreases with the input."""
    from matplotlib.patches import Patch

    words = ((MORE, "increases with the input"), (LESS, "decreases as the input increases"))
    drawn = {MORE if bar.end > bar.start else LESS for bar in bars.bars}
    return [Patch(label=text, **_look(colour)) for colour, text in words if colour in drawn]


def _label(bar: FigureBar, bars: BarFigure) -> str:
    if bars.centre is not None:
        return f"{format_quantity(bar.start, bars.unit)} to {format_quantity(bar.end, bars.unit)}"
    if bar.whole:
        return format_quantity(bar.end, bars.unit)
    return f"{'+' if bar.end > bar.start else '-'} {format_quantity(abs(bar.end - bar.start), bars.unit)}"
