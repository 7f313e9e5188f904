"""Bars as a figure: a waterfall from one value to another, or a tornado around a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.views.kit.figure import COLOURS, INK, OTHER, figure_bytes, time_scale

MORE: Final = COLOURS[5]
LESS: Final = COLOURS[2]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from one value to another; whole: one of the two ends, drawn from 0."""

    name: str
    start: float
    end: float
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars in SI units, from the top down.

    Args:
        centre: the answer, of a tornado.
    """

    title: str
    quantity: str
    unit: str
    bars: tuple[Bar, ...]
    centre: float | None = None


def waterfall(bars: Bars, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same bars, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    return _draw(bars, suffix)


def tornado(bars: Bars, suffix: str = ".png") -> Iterable[bytes]:
    """As `waterfall`, with a line at the answer; a bar runs from the answer at a number's low end to that at its high end."""
    return _draw(bars, suffix)


def _draw(bars: Bars, suffix: str) -> Iterable[bytes]:
    largest = max((max(abs(bar.start), abs(bar.end)) for bar in bars.bars), default=1.0)
    scale, unit = time_scale(largest) if bars.unit == "s" else (0.01, "%") if bars.unit == "%" else (1.0, bars.unit)
    with figure_bytes(suffix, height=1.2 + 0.3 * max(len(bars.bars), 2)) as (figure, buffer):
        axes = figure.subplots()
        for number, bar in enumerate(bars.bars):
            low, high = sorted((bar.start, bar.end))
            colour = OTHER if bar.whole else MORE if bar.end > bar.start else LESS
            axes.barh(number, (high - low) / scale, left=low / scale, color=colour)
            axes.text(high / scale, number, f" {_label(bar, bars)}", va="center", fontsize="small")
        if bars.centre is not None:
            axes.axvline(bars.centre / scale, color=INK, linewidth=1)
        axes.set_yticks(range(len(bars.bars)), [bar.name for bar in bars.bars])
        axes.set_ylim(max(len(bars.bars), 1) - 0.5, -0.5)
        axes.margins(x=0.15)
        axes.set_xlabel(f"{bars.quantity} ({unit})" if unit not in ("", "1") else bars.quantity)
        axes.spines[["top", "right"]].set_visible(False)
        figure.suptitle(bars.title, fontsize="medium")
    return (buffer.getvalue(),)


def _label(bar: Bar, bars: Bars) -> str:
    if bars.centre is not None:
        return f"{format_quantity(bar.start, bars.unit)} to {format_quantity(bar.end, bars.unit)}"
    if bar.whole:
        return format_quantity(bar.end, bars.unit)
    return f"{'+' if bar.end > bar.start else '-'} {format_quantity(abs(bar.end - bar.start), bars.unit)}"
