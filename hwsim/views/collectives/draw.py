"""Bus bandwidth of collectives by size as a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity
from hwsim.views.collectives.find import AUTO, CollectiveRow, CollectiveTimes
from hwsim.views.collectives.say import basis
from hwsim.views.kit.figure import (
    COLOURS,
    DASHES,
    INK,
    SOFT,
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
IDEAL: Final = "grey: ideal, without measured constants, so not comparable with the others"


def figure(measured: CollectiveTimes, heading: Heading, suffix: str) -> Iterable[bytes]:
    """Draw busbw against size, both logarithmic, with a named line per algorithm.

    Only as many lines as there are styles are drawn, those with the highest busbw; the caption names the others. Ideal algorithms
    are grey, because they are not comparable with a measured library.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
        Unshowable: there is no bandwidth to draw.
    """
    sure, ideal = ranked_lines(measured)
    styles = [*zip(sure, LINES, DASHES * 2, strict=False), *zip(ideal, [SOFT] * len(DASHES), DASHES, strict=False)]
    rest = [*chain.from_iterable(sure[len(LINES) :] + ideal[len(DASHES) :])]
    drawn = [row for row in measured.rows if row.busbw > 0 and row.algorithm not in rest]
    if not drawn:
        raise Unshowable(f"a {measured.operation} has no bandwidth to draw")
    with figure_bytes(suffix, height=5) as (canvas, buffer):
        axes = canvas.add_subplot()
        ends = [_line(axes, measured.of(names[0]), names, colour, dash) for names, colour, dash in styles]
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
        name = f"{best.algorithm} ({best.choice.name})" if best.choice is not None else best.algorithm
        finding = f"{measured.operation}: peak busbw {format_quantity(best.busbw, 'B/s')} with {name}"
        among = f"{measured.operation} among {len(measured.devices)} devices"
        notes = f"\n{IDEAL}" * bool(ideal) + f"\nnot drawn (lower peak): {', '.join(rest)}" * bool(rest)
        write_title(canvas, finding, run_caption(among, heading.machine, heading.settings, basis(measured)) + notes)
        canvas.draw_without_rendering()  # computes the positions of the labels
        push_apart(axes, line_names(axes, ends, 6))
        if AUTO in measured.algorithms:
            _changes(axes, measured.of(AUTO))
    return (buffer.getvalue(),)


def ranked_lines(measured: CollectiveTimes) -> tuple[list[list[str]], list[list[str]]]:
    """Return the algorithms by line, auto first, then by peak busbw: lines that are compared, and ideal ones.

    Algorithms with equal times at every size share a line.
    """
    lines: dict[tuple[str, ...], list[str]] = {}
    peaks = {name: max((row.busbw for row in measured.of(name)), default=0.0) for name in measured.algorithms}
    for name in sorted(measured.algorithms, key=lambda name: (name != AUTO, -peaks[name])):
        lines.setdefault(tuple(f"{row.size:g} {row.busbw:.4g}" for row in measured.of(name)), []).append(name)
    ranked = [names for names in lines.values() if peaks[names[0]] > 0]
    compared = {row.algorithm for row in measured.comparable}
    return [names for names in ranked if names[0] in compared], [names for names in ranked if names[0] not in compared]


def _line(axes: Axes, rows: Sequence[CollectiveRow], names: Sequence[str], colour: str, dash: str) -> tuple[float, str, str]:
    """Draw a line; return the height of its end, its names and its colour."""
    shown = [(row.size, row.busbw) for row in rows if row.busbw > 0]
    colour, width, mark = (INK, 3.0, "o") if names[0] == AUTO else (colour, 1.8, "o" * (len(shown) == 1))
    axes.plot(*zip(*shown, strict=True), color=colour, linestyle=dash, marker=mark, markersize=5, linewidth=width, zorder=width)
    return shown[-1][1], "\n".join(textwrap.wrap(", ".join(names), 26)), colour


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
