"""Names of the lines and bars of a study, and background tints by bottleneck."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from hwsim.views.kit.figure import COLOURS, LEGEND, OTHER, PAPER, SOFT, line_names, push_apart
from hwsim.views.sweep.curves import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HATCHES: Final = ("", "//", "\\\\", "..")
BANDS: Final = 4  # number of ranges with different bottlenecks from which there are no tints


def name_lines(figure: Figure, axes: Axes, curves: Curves, scale: float) -> None:
    """Write the names at the ends of the lines, and the quantity that distinguishes them above."""
    order = curves.order
    ends: list[tuple[float, str, str]] = []
    for number, line in enumerate(curves.lines[:LEGEND] if len(curves.lines) > 1 else ()):
        last = next((line.values[place] for place in reversed(order) if line.values[place] is not None), None)
        if last is not None:
            ends.append((last / scale, line.label, colour(number)))
    if curves.perfect:
        ends.append((curves.perfect[order[-1]] / scale, "linear scaling", SOFT))
    figure.draw_without_rendering()  # computes the sizes
    push_apart(axes, line_names(axes, ends, 8))
    more = f"\n{len(curves.lines) - LEGEND} others" if len(curves.lines) > LEGEND else ""
    if len(curves.lines) > 1:
        axes.annotate(
            f"{curves.legend}{more}",
            (1.0, 1.0),
            (8, 4),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=11,
            color=SOFT,
            va="bottom",
            annotation_clip=False,
        )


def bands(axes: Axes, curves: Curves) -> list[Any]:
    """Tint the background by the bottleneck at each value; return the legend of the tints."""
    from matplotlib.patches import Patch

    order = curves.order
    limits = [curves.limits[place] for place in order] if curves.limits else []
    changes = [index for index, (low, high) in enumerate(pairwise(limits), 1) if low != high]
    if not changes or len(changes) >= BANDS or "" in limits:
        return []
    x = [curves.numbers[place] / curves.across_by[0] for place in order]
    low, high = axes.get_xlim()
    middle = [
        math.sqrt(x[change - 1] * x[change]) if axes.get_xscale() == "log" else (x[change - 1] + x[change]) / 2
        for change in changes
    ]
    names = list(dict.fromkeys(limits))
    tint: dict[str, dict[str, Any]] = {
        name: {"facecolor": COLOURS[number], "alpha": 0.16, "linewidth": 0} for number, name in enumerate(names)
    }
    for number, (start, end, index) in enumerate(zip([low, *middle], [*middle, high], [0, *changes], strict=True)):
        axes.axvspan(start, end, zorder=0, **tint[limits[index]])
        if number:
            axes.axvline(start, color=SOFT, linewidth=1, linestyle="--", zorder=1)
    axes.set_xlim(low, high)
    return [Patch(label=f"bottleneck: {name}", **tint[name]) for name in names]


def bar_legend(curves: Curves) -> list[Any]:
    """Return the legend of bars of several kinds."""
    from matplotlib.patches import Patch

    if len(curves.lines) < 2:
        return []
    shown = enumerate(curves.lines[:LEGEND])
    handles = [
        Patch(facecolor=colour(i), edgecolor=PAPER, hatch=HATCHES[i % len(HATCHES)], label=line.label) for i, line in shown
    ]
    if len(curves.lines) > LEGEND:
        handles.append(Patch(facecolor=OTHER, label=f"{len(curves.lines) - LEGEND} others"))
    return handles


def colour(number: int) -> str:
    """Return the colour of a line or bar; grey beyond the legend."""
    return COLOURS[number] if number < LEGEND else OTHER
