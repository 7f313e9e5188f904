"""Bus bandwidth of collectives by size as a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity
from hwsim.views.collectives.find import AUTO, CollectiveRow, CollectiveTimes
from hwsim.views.kit.figure import (
    COLOURS,
    DASHES,
    INK,
    decades,
    figure_bytes,
    line_names,
    open_axes,
    push_apart,
    run_caption,
    write_title,
)  # fmt: skip
from hwsim.views.kit.table import size_text
from hwsim.views.kit.view import Heading, Unshowable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES: Final = COLOURS[:7]  # further colours are too light for thin lines


def figure(measured: CollectiveTimes, heading: Heading, suffix: str) -> Iterable[bytes]:
    """Draw busbw against size, both logarithmic, with a named line per algorithm.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
        Unshowable: there is no bandwidth to draw.
    """
    if not any(row.busbw > 0 for row in measured.rows):
        raise Unshowable(f"a {measured.operation} has no bandwidth to draw")
    with figure_bytes(suffix, height=5) as (canvas, buffer):
        axes = canvas.add_subplot()
        ends = [_line(axes, measured, names, index) for index, names in enumerate(_alike(measured))]
        drawn = [row for row in measured.rows if row.busbw > 0 and row.size > 0]
        sizes = sorted({row.size for row in drawn})
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlim(sizes[0] / 1.1, sizes[-1] * 1.1)
        ticks = [size for size in sizes if math.log2(size).is_integer()] or sizes
        shown = ticks[:: max(1, len(ticks) // 6)]
        axes.set_xticks(shown, [size_text(size) for size in shown])
        axes.minorticks_off()
        least, most = min(row.busbw for row in drawn), max(row.busbw for row in drawn)
        decades(axes.yaxis, lambda rate: format_quantity(rate, "B/s"))
        axes.set_ylim(least / 2.2, most * 1.6)
        open_axes(axes)
        axes.set_xlabel("message size")
        axes.set_ylabel("bus bandwidth (busbw)")
        best = max((row for row in measured.comparable if row.busbw > 0), key=lambda row: row.busbw, default=drawn[0])
        fastest = f"peak busbw {format_quantity(best.busbw, 'B/s')} with {_chosen(best) or best.algorithm}"
        finding = f"{measured.operation} among {len(measured.devices)} devices: {fastest}"
        write_title(canvas, finding, run_caption(f"{measured.operation} by size", heading.machine, heading.settings))
        canvas.draw_without_rendering()  # computes the positions of the labels
        push_apart(axes, line_names(axes, [end for end in ends if end[0] > 0], 6))
        if AUTO in measured.algorithms:
            _changes(axes, measured.of(AUTO))
    return (buffer.getvalue(),)


def _alike(measured: CollectiveTimes) -> list[list[str]]:
    """Return the algorithms by line; algorithms with equal times at every size share a line, except auto."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for name in measured.algorithms:
        key = (AUTO,) if name == AUTO else tuple(f"{row.size:g} {row.busbw:.4g}" for row in measured.of(name))
        lines.setdefault(key, []).append(name)
    return list(lines.values())


def _line(axes: Axes, measured: CollectiveTimes, names: Sequence[str], index: int) -> tuple[float, str, str]:
    """Draw a line; return the height of its end, its names and its colour."""
    name = names[0]
    rows = [row for row in measured.of(name) if row.busbw > 0 and row.size > 0]
    colour = INK if name == AUTO else LINES[index % len(LINES)]
    style = "-" if name == AUTO else DASHES[(index + index // len(LINES)) % len(DASHES)]
    if not rows:
        return 0.0, "", colour
    mark = "o" if len(rows) == 1 or name == AUTO else ""
    axes.plot([row.size for row in rows], [row.busbw for row in rows], color=colour, linestyle=style, marker=mark, markersize=5,
              linewidth=3 if name == AUTO else 1.8, zorder=3 if name == AUTO else 2)  # fmt: skip
    return rows[-1].busbw, "\n".join(textwrap.wrap(", ".join(names), 26)), colour


def _changes(axes: Axes, rows: Sequence[CollectiveRow]) -> None:
    """Annotate the choice of auto wherever it changes."""
    chosen = [row for row in rows if row.choice is not None and row.busbw > 0 and row.size > 0]
    places = [0, *(index for index, (before, row) in enumerate(pairwise(chosen), 1) if _chosen(before) != _chosen(row))]
    for place in places if chosen else ():
        row = chosen[place]
        axes.annotate(
            _chosen(row), (row.size, row.busbw), (9, -14), textcoords="offset points", fontsize=11, ha="left", color=INK,
            fontweight="bold",
        )  # fmt: skip


def _chosen(row: CollectiveRow) -> str:
    return "" if row.choice is None else row.choice.name
