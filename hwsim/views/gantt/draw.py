"""The timeline as a figure: a row per queue, a colour per op name, waiting hatched, true widths.

Bars narrower than a pixel are drawn by pixel column: the height is the fraction of the time that they take. A long run has a
second panel with a part of it in which each op has its own bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hwsim.families_interface import family_reports
from hwsim.formats import format_quantity, format_share
from hwsim.results.activities import bounds_of
from hwsim.results.result import Result
from hwsim.views.gantt.rows import GanttRow, GanttRows, rows_of
from hwsim.views.kit.figure import (
    COLOURS,
    INK,
    OTHER,
    PAPER,
    SOFT,
    WAITING,
    figure_bytes,
    legend_below,
    run_caption,
    time_scale,
    write_title,
)  # fmt: skip
from hwsim.views.kit.spans import covered_fractions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hwsim.graph.opgraph import Floats

ROWS: Final = 48  # largest number of rows; the others are counted below the title
FEW: Final = 12  # largest number of rows with a second panel
COLUMNS: Final = 720  # pixel columns of the axis
PIECES: Final = 400  # largest number of segments drawn as bars; more are drawn by pixel column
SEEN: Final = 0.02  # least visible fraction of a pixel column
FINE: Final = 180  # pixel columns of a row with many segments
WIDE: Final = 3  # least width of a bar with an edge (pixel columns)
TALL: Final = 0.74  # height of a bar (rows)
STRETCH: Final = 24  # ops of the busiest row in the second panel
TICK: Final = 4.5  # size of the mark of an invisible bar (points)


class TimeWindow(NamedTuple):
    """A part of a run.

    Args:
        begin, end: start and end (s).
    """

    begin: float
    end: float

    @property
    def column(self) -> float:
        return (self.end - self.begin) / COLUMNS


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """Return the figure as bytes; same result, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    timeline = rows_of(result)
    shown = timeline.rows[:ROWS]
    everything = TimeWindow(0.0, result.makespan_s)
    near = closer(shown, everything) if len(shown) <= FEW else None
    pitch = 0.42 + 0.12 * any("\n" in row.name for row in shown)
    high = pitch * max(len(shown), 2) + 0.75
    with figure_bytes(suffix, height=high * (1 if near is None else 2) + 0.5) as (figure, buffer):
        panels = figure.subplots(1 if near is None else 2, 1, squeeze=False)[:, 0]
        draw(panels[0], shown, everything)
        _shares(panels[0], shown, everything)
        if near is not None:
            draw(panels[1], shown, near)
            scale, unit = time_scale(result.makespan_s)
            panels[1].set_title(
                f"{near.begin / scale:.4g} to {near.end / scale:.4g} {unit}, enlarged", fontweight="normal", color=SOFT
            )
        legend_below(figure, _legend(timeline, shown))
        hidden = f"{len(timeline.rows) - len(shown)} more rows not shown" if len(timeline.rows) > len(shown) else ""
        write_title(figure, finding(result), run_caption(result.workload, result.machine, result.settings, hidden))
    return (buffer.getvalue(),)


def finding(result: Result) -> str:
    """Return the title: the time and its main bound."""
    if own := next(filter(None, (facts.title(result) for facts in family_reports(result))), ""):
        return own
    parts = bounds_of(result.timeline, result.devices)
    text = f"{format_quantity(result.makespan_s, 's')}"
    return (
        f"{text}, {format_share(parts[0].time_fs / result.timeline.makespan_fs)} bound by {parts[0].bound.full}"
        if parts
        else text
    )


def closer(rows: Iterable[GanttRow], everything: TimeWindow) -> TimeWindow | None:
    """Return a part in the middle of a run with space for a bar per op; None if the whole run has it."""
    busiest = max(rows, key=lambda row: len(row.begin), default=None)
    if busiest is None or len(busiest.begin) <= 2 * STRETCH or not any(_is_fine(row, everything) for row in rows):
        return None
    first = (len(busiest.begin) - STRETCH) // 2
    begin, end = float(busiest.begin[first]), float(busiest.begin[first + STRETCH])
    return TimeWindow(begin, end) if end > begin else None


def _is_fine(row: GanttRow, window: TimeWindow) -> bool:
    """Return whether most bars would be too narrow to see, or there are too many."""
    there = (row.high > window.begin) & (row.low < window.end)
    wide = (row.high - row.low)[there]
    return len(wide) > PIECES or (len(wide) > 2 * STRETCH and float(np.median(wide)) < 2 * window.column)


def draw(axes: Axes, rows: Sequence[GanttRow], window: TimeWindow) -> None:
    """Draw rows in a part of the run."""
    scale, unit = time_scale(window.end)
    for place, row in enumerate(rows):
        (_columns if _is_fine(row, window) else _bars)(axes, row, place, window, scale)
    axes.set_yticks(range(len(rows)), [f"{row.name}" for row in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlim(window.begin / scale, window.end / scale or 1)
    axes.set_xlabel(f"time since the start ({unit})")
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=6)


def _bars(axes: Axes, row: GanttRow, place: int, window: TimeWindow, scale: float) -> None:
    """Draw a bar for each segment with its true width."""
    inside = (row.high > window.begin) & (row.low < window.end)
    low, high = np.maximum(row.low[inside], window.begin), np.minimum(row.high[inside], window.end)
    names, waits = row.name_of[inside], row.waits[inside]
    for name in dict.fromkeys(names.tolist()):
        for waiting in (False, True):
            some = (names == name) & (waits == waiting)
            if not some.any():
                continue
            bars = list(zip(low[some] / scale, (high - low)[some] / scale, strict=True))
            wide = float((high - low)[some].min()) > WIDE * window.column
            axes.broken_barh(bars, (place - TALL / 2, TALL), gid=f"{place}:{'waits' if waiting else 'works'}",
                             linewidth=0.8 if wide else 0.0, **_look(name, waiting=waiting))  # fmt: skip
            short = some & (high - low < window.column)
            _marks(axes, (low + high)[short] / 2 / scale, place, name)


def _marks(axes: Axes, times: Floats, place: int, name: int) -> None:
    """Draw marks above a row where ops are too short to see."""
    if len(times):
        above = np.full(len(times), place - TALL / 2 - 0.07)
        axes.plot(
            times,
            above,
            marker="v",
            linestyle="none",
            markersize=TICK,
            color=_colour(name),
            markeredgewidth=0,
            clip_on=False,
            gid="short",
        )


def _columns(axes: Axes, row: GanttRow, place: int, window: TimeWindow, scale: float) -> None:
    """Draw the fractions of each pixel column, stacked: busy first, then waiting."""
    edges = np.linspace(window.begin, window.end, FINE + 1)
    bottom: Floats = np.zeros(FINE)
    for waiting in (False, True):
        for name in sorted(set(row.name_of[row.waits == waiting].tolist())):
            some = (row.name_of == name) & (row.waits == waiting)
            part = covered_fractions(row.low[some], row.high[some], edges)
            base = place + TALL / 2 - TALL * bottom
            bottom = bottom + part
            beside = np.maximum(
                np.concatenate([[0.0], part[:-1]]), np.concatenate([part[1:], [0.0]])
            )  # the edge of a longer op is visible
            _marks(axes, ((edges[:-1] + edges[1:]) / 2 / scale)[(part > 0) & (np.maximum(part, beside) < SEEN)], place, name)
            axes.stairs(place + TALL / 2 - TALL * bottom, edges / scale, baseline=base, fill=True, linewidth=0.0,
                        gid=f"{place}:{'waits' if waiting else 'works'}", **_look(name, waiting=waiting))  # fmt: skip


def _look(name: int, *, waiting: bool) -> dict[str, Any]:
    if waiting:
        return {"facecolor": PAPER, "edgecolor": _colour(name), "hatch": WAITING}
    return {"facecolor": _colour(name), "edgecolor": PAPER}


def _colour(name: int) -> str:
    return COLOURS[name] if name < 8 else OTHER


def _shares(axes: Axes, rows: Iterable[GanttRow], everything: TimeWindow) -> None:
    """Write the busy share of each row at its end."""
    length = everything.end - everything.begin
    if length <= 0:
        return
    for place, row in enumerate(rows):
        axes.annotate(format_share(row.working_s / length), (1.0, place), (8, 0), xycoords=("axes fraction", "data"),
                      textcoords="offset points", va="center", fontweight="bold", annotation_clip=False, gid="share")  # fmt: skip
    axes.annotate("busy", (1.0, 1.0), (8, 2), xycoords="axes fraction", textcoords="offset points", fontsize=11, color=SOFT,
                  va="bottom", annotation_clip=False)  # fmt: skip


def _legend(timeline: GanttRows, rows: Sequence[GanttRow]) -> list[Any]:
    from matplotlib.patches import Patch

    drawn = {name for row in rows for name in row.name_of.tolist()}
    patches: list[Any] = [Patch(facecolor=_colour(i), label=name) for i, name in enumerate(timeline.names) if i in drawn]
    if timeline.others > 0:
        patches.append(Patch(facecolor=OTHER, label=f"{timeline.others} other ops"))
    if any(row.waits.any() for row in rows):
        patches.append(Patch(facecolor=PAPER, edgecolor=INK, hatch=WAITING, linewidth=0.8, label="waiting or communication"))
    return patches
