"""Collectives by size as a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity
from hwsim.views.collectives.find import AUTO, Measured, Row
from hwsim.views.kit.figure import COLOURS, INK, figure_bytes, figure_title, line_names, open_axes, push_apart
from hwsim.views.kit.table import size_text
from hwsim.views.kit.view import Heading, Unshowable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

APART: Final = 10.0  # points between labels
FAINT: Final = ("#F0E442", "#F2CF7F", "#000000")  # too light for thin lines; black is for auto
LINES: Final = tuple(colour for colour in COLOURS if colour not in FAINT)
STYLES: Final = ("-", "--", ":", "-.")


def figure(measured: Measured, heading: Heading, suffix: str) -> Iterable[bytes]:
    """The busbw against size, both logarithmic, a line for each algorithm with its name at its end.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
        Unshowable: there is no bandwidth to draw.
    """
    if not any(row.busbw > 0 for row in measured.rows):
        raise Unshowable(f"a {measured.operation} moves no bytes that could be drawn")
    with figure_bytes(suffix, width=10, height=6) as (canvas, buffer):
        axes = canvas.add_subplot()
        ends = [_line(axes, measured, names, at) for at, names in enumerate(_alike(measured))]
        drawn = [row for row in measured.rows if row.busbw > 0 and row.size > 0]
        sizes = sorted({row.size for row in drawn})
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlim(sizes[0] / 1.1, sizes[-1] * 1.1)
        ticks = [size for size in sizes if math.log2(size).is_integer()] or sizes
        shown = ticks[:: max(1, len(ticks) // 9)]
        axes.set_xticks(shown, [size_text(size) for size in shown])
        axes.minorticks_off()
        least, most = min(row.busbw for row in drawn), max(row.busbw for row in drawn)
        low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
        decades = [10.0**power for power in range(low, max(high, low + 1) + 1)]
        axes.set_yticks(decades, [format_quantity(rate, "B/s") for rate in decades])
        axes.set_ylim(least / 1.3, most * 1.6)
        open_axes(axes)
        axes.set_xlabel("size")
        axes.set_ylabel("busbw")
        title = f"{heading.machine}: {measured.operation} among {len(measured.devices)} devices"
        axes.set_title(figure_title(title, heading.settings), fontsize="medium", loc="left")
        canvas.draw_without_rendering()  # where the labels are is known only now
        push_apart(axes, line_names(axes, [end for end in ends if end[0] > 0], 6), APART)
        if AUTO in measured.algorithms:
            _changes(axes, measured.of(AUTO))
    return (buffer.getvalue(),)


def _alike(measured: Measured) -> list[list[str]]:
    """Algorithms that take the same at every size are one line; auto is its own."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for name in measured.algorithms:
        key = (AUTO,) if name == AUTO else tuple(f"{row.size:g} {row.busbw:.4g}" for row in measured.of(name))
        lines.setdefault(key, []).append(name)
    return list(lines.values())


def _line(axes: Axes, measured: Measured, names: Sequence[str], at: int) -> tuple[float, str, str]:
    """Draw a line; return the height of its end, its names and its colour."""
    name = names[0]
    rows = [row for row in measured.of(name) if row.busbw > 0 and row.size > 0]
    colour = INK if name == AUTO else LINES[at % len(LINES)]
    style = "-" if name == AUTO else STYLES[at // len(LINES) % len(STYLES)]
    if not rows:
        return 0.0, "", colour
    mark = "o" if len(rows) == 1 or name == AUTO else ""
    axes.plot([row.size for row in rows], [row.busbw for row in rows], color=colour, linestyle=style, marker=mark, markersize=3,
              linewidth=2.4 if name == AUTO else 1.4, zorder=3 if name == AUTO else 2)  # fmt: skip
    return rows[-1].busbw, "\n".join(textwrap.wrap(", ".join(names), 34)), colour


def _changes(axes: Axes, rows: Sequence[Row]) -> None:
    """Name the choice of auto wherever it changes."""
    chosen = [row for row in rows if row.choice is not None and row.busbw > 0 and row.size > 0]
    places = [0, *(at for at, (before, row) in enumerate(pairwise(chosen), 1) if _chosen(before) != _chosen(row))]
    for at in places if chosen else ():
        row = chosen[at]
        axes.annotate(
            _chosen(row), (row.size, row.busbw), (9, -11), textcoords="offset points", fontsize=8, ha="left", color=INK,
            fontweight="bold",
        )  # fmt: skip


def _chosen(row: Row) -> str:
    return "" if row.choice is None else row.choice.name
