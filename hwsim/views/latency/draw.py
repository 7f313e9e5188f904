"""The latency numbers of a machine as a figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hwsim.formats import format_quantity, precise
from hwsim.views.kit.figure import COLOURS, figure_bytes, figure_title, open_axes
from hwsim.views.kit.view import Heading, Unshowable
from hwsim.views.latency.find import Latencies, Row
from hwsim.views.latency.say import TITLES


def figure(latencies: Latencies, heading: Heading, suffix: str) -> Iterable[bytes]:
    """A bar per row over a logarithmic axis of time, a ring where the text has its number.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
        Unshowable: there is no row to draw.
    """
    rows = latencies.rows
    if not rows:
        raise Unshowable("no part of the machine says enough for a row")
    with figure_bytes(suffix, width=9, height=1.3 + 0.25 * len(rows)) as (drawn, buffer):
        axes = drawn.add_subplot()
        places = range(len(rows))
        colours = [COLOURS[0] if row.table == "common" else COLOURS[1] for row in rows]
        least = 10 ** _below(min(min(row.seconds, row.text_s or row.seconds) for row in rows))
        most = max(max(row.seconds, row.text_s or 0.0) for row in rows)
        axes.barh(places, [row.seconds - least for row in rows], left=least, color=colours, height=0.62)
        marked = [(row.text_s, at) for at, row in enumerate(rows) if row.text_s is not None]
        if marked:
            axes.plot([x for x, _ in marked], [y for _, y in marked], "o", markersize=6, markerfacecolor="white",
                      markeredgecolor="black", markeredgewidth=1.2, linestyle="none")  # fmt: skip
        for at, row in enumerate(rows):
            end = max(row.seconds, row.text_s or 0.0)
            axes.annotate(
                format_quantity(row.seconds, "s"), (end, at), (7, 0), textcoords="offset points", va="center", fontsize=8
            )
        axes.set_xscale("log")
        axes.set_xlim(least, most * 12)
        ticks = [10.0**power for power in range(_below(least), _below(most) + 2)]
        axes.set_xticks(ticks, [precise(tick, "s") for tick in ticks])
        axes.set_yticks(places, [row.name for row in rows], fontsize=8)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        open_axes(axes, "x")
        axes.set_title(figure_title(f"{heading.machine}: latency numbers", heading.settings), fontsize="medium", loc="left")
        _legend(axes, rows, marked=bool(marked))
    return (buffer.getvalue(),)


def _legend(axes: Any, rows: tuple[Row, ...], *, marked: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    tables = [table for table in TITLES if any(row.table == table for row in rows)]
    handles: list[Any] = [Patch(color=COLOURS[list(TITLES).index(table)], label=TITLES[table]) for table in tables]
    if marked:
        ring = {"marker": "o", "color": "none", "markerfacecolor": "white", "markeredgecolor": "black"}
        handles.append(Line2D([], [], label="Dive into Deep Learning, 13.4", **ring))  # type: ignore[arg-type]
    axes.legend(handles=handles, frameon=False, fontsize="small", loc="upper right")


def _below(value: float) -> int:
    """The power of ten below."""
    return int(f"{value:e}".partition("e")[2])
