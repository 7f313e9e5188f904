"""The latency numbers of a machine as a figure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from hwsim.formats import format_quantity, precise
from hwsim.views.kit.figure import COLOURS, INK, PAPER, decades, figure_bytes, legend_below, open_axes, run_caption, write_title
from hwsim.views.kit.view import Heading, Unshowable
from hwsim.views.latency.find import LatencyNumbers, LatencyRow
from hwsim.views.latency.say import TITLES


def figure(latencies: LatencyNumbers, heading: Heading, suffix: str) -> Iterable[bytes]:
    """Draw a bar per row over a logarithmic time axis, with a ring at the number of the text.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
        Unshowable: there is no row to draw.
    """
    rows = latencies.rows
    if not rows:
        raise Unshowable("the machine defines no latency that could be drawn")
    with figure_bytes(suffix, height=0.8 + 0.34 * len(rows)) as (drawn, buffer):
        axes = drawn.add_subplot()
        places = range(len(rows))
        colours = [COLOURS[0] if row.table == "common" else COLOURS[1] for row in rows]
        least = 10.0 ** math.floor(math.log10(min(min(row.seconds, row.text_s or row.seconds) for row in rows)))
        most = max(max(row.seconds, row.text_s or 0.0) for row in rows)
        bars = axes.barh(places, [row.seconds - least for row in rows], left=least, color=colours, height=0.62)
        for bar, row in zip(bars, rows, strict=True):
            bar.set_hatch("" if row.table == "common" else "//")
            bar.set_edgecolor(PAPER)
        marked = [(row.text_s, index) for index, row in enumerate(rows) if row.text_s is not None]
        if marked:
            axes.plot([x for x, _ in marked], [y for _, y in marked], "o", markersize=8, markerfacecolor=PAPER,
                      markeredgecolor=INK, markeredgewidth=1.2, linestyle="none")  # fmt: skip
        for index, row in enumerate(rows):
            end = max(row.seconds, row.text_s or 0.0)
            axes.annotate(
                format_quantity(row.seconds, "s"), (end, index), (7, 0), textcoords="offset points", va="center", fontsize=12
            )
        axes.set_xscale("log")
        axes.set_xlim(least, most * 12)
        decades(axes.xaxis, lambda tick: precise(tick, "s"))
        axes.set_yticks(places, [row.name for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        open_axes(axes, "x")
        axes.spines["left"].set_visible(False)
        legend_below(drawn, _legend(rows, marked=bool(marked)))
        quick, slow = min(rows, key=lambda row: row.seconds), max(rows, key=lambda row: row.seconds)
        low, high = (f"{format_quantity(row.seconds, 's')} ({row.name})" for row in (quick, slow))
        write_title(drawn, f"Latency from {low} to {high}", run_caption("latency numbers", heading.machine, heading.settings))
    return (buffer.getvalue(),)


def _legend(rows: tuple[LatencyRow, ...], *, marked: bool) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    tables = [table for table in TITLES if any(row.table == table for row in rows)]
    handles: list[Any] = [
        Patch(facecolor=COLOURS[index], edgecolor=PAPER, hatch="//" if index else "", label=TITLES[table])
        for table in tables
        for index in (list(TITLES).index(table),)
    ]
    if marked:
        ring = {"marker": "o", "color": "none", "markerfacecolor": PAPER, "markeredgecolor": INK}
        handles.append(Line2D([], [], label="Dive into Deep Learning, 13.4", **ring))  # type: ignore[arg-type]
    return handles
