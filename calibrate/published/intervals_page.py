"""The page of intervals: what part of the measurements they hold, how wide they are, and which of two devices is faster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from hwsim.formats import percent
from hwsim.views.kit.figure import COLOURS, INK, figure_bytes, open_axes
from published import coverage
from published.coverage import Claims, Cover
from published.errors import WIDEST
from published.intervals import LEVELS
from published.residual import Residual

PICTURE: Final = "coverage.png"
ORDER: Final = ("known", "source left out", "device left out")
HEAD: Final = """# Intervals beside measurements

Written by `python -m published --data DIR --write`. An answer of hwsim says how far off it may be:
`1.31 s (1.24 to 1.43, 90 %)`. The widths come from [`hwsim/errors.yaml`](../../hwsim/errors.yaml): quantiles of
|ln(predicted / measured)| of rows that were left out alike, by regime (large products, small messages) and by how well the
numbers behind them are known. Here those intervals are judged: a unit (a device, a generation, a source, a fifth of the rows)
calibrates nothing of the intervals that it is judged by.

- **known**: other sizes of the device were fitted. **source left out**, **device left out**: none of its rows were seen;
  generations that were left out as a whole count as devices left out.
- **holds**: part of the rows inside the intervals of 50, 80 and 90 %. In brackets, for 90 %: the range when whole units are
  drawn anew, which is what this number of units allows to say. Rows of a unit miss together: three units say little.
- **width**: half of (high - low) over the prediction, the median over the rows. An interval that is always wide is a defect, too.
- What nothing alike was left out of (a generation without neighbours) is `outside`: no promise, at least twice the width.

![Part of the rows that intervals of 50 and 90 % hold, and their widths, by topic](coverage.png)

| topic | case | rows | units | groups | 50 % holds | 80 % | 90 % | | width, 50 % | width, 90 % |
|---|---|---|---|---|---|---|---|---|---|---|
"""
RATIOS: Final = """
## Which of two is faster

Two answers may share errors: training steps of equal work on two devices are too fast together. "B is faster, 95 %" is said
where the ratio's logarithm is beyond the half width of its interval of 90 %: sqrt(a^2 + b^2 - 2 c a b) for half widths a and b of
the two answers and a correlation c of their errors. Claims are judged on pairs of public rows of equal work; widths and
correlations come from other units and other pairs. Three of four draws of the pairs of devices give a larger correlation than the
one that is taken. Below -1 it is no correlation: a few kernels that are far off need more room than both widths together.

| topic | case | works | pairs of devices | correlation | 90 % of ratios: holds | width | claims | right |
|---|---|---|---|---|---|---|---|---|
"""


KERNELS: Final = """
## Kernels, by regime

The same for kernels of GPUs of which two and more were measured at equal shapes, most of them the nine of serving frameworks. Six
of those nine are twins (H100 and H200, B200 and B300, GB200 and GB300), between which the faster one is rarely told.

| regime | case | works | pairs of devices | correlation | 90 % of ratios: holds | width | claims | right |
|---|---|---|---|---|---|---|---|---|
"""
SERVED: Final = ("attention", "moe", "product", "product4", "product8", "weightonly")


def page(found: Sequence[Residual], folder: Path) -> str:
    """The page in Markdown; its picture is written beside it."""
    judged = coverage.judged(found)
    covers, claims = coverage.covers(judged), list(coverage.claims(judged))
    (folder / PICTURE).write_bytes(draw(covers))
    made, right = coverage.total(claims)
    out = HEAD + "".join(map(_cover, covers)) + RATIOS + "".join(map(_claims, claims))
    share = percent(right / made, ".1f") if made else "none"
    out += f"| all | | {sum(each.works for each in claims):,} | | | | | {made:,} | **{share}** |\n"
    served = [each for each in judged if each.topic in SERVED]
    return out + KERNELS + "".join(map(_claims, coverage.claims(served, apart=True)))


def _width(half: float) -> str:
    """A half width in per cent; beyond what `errors.yaml` says at most it is no promise."""
    if half > math.sinh(WIDEST):
        return f"no promise (beyond a factor of {math.exp(WIDEST):.0f})"
    return percent(half, ".2g" if half < 0.1 else ".0f")


def _cover(found: Cover) -> str:
    holds = " | ".join(percent(found.inside[level], ".0f") for level in LEVELS)
    ranged = f"({100 * found.low[0.9]:.0f} to {100 * found.high[0.9]:.0f})"
    bold = "**" if found.topic == "all" else ""
    return (
        f"| {bold}{found.topic}{bold} | {found.case} | {found.rows:,} | {found.units} | {found.groups} | {holds} | {ranged} "
        f"| {_width(found.half[0.5])} | {_width(found.half[0.9])} |\n"
    )


def _claims(found: Claims) -> str:
    right = percent(found.right / found.claims, ".1f") if found.claims else ""
    return (
        f"| {found.topic} | {found.case} | {found.works:,} | {found.pairs} | {found.alike:+.2f} | {percent(found.holds, '.0f')} "
        f"| {_width(found.half)} | {found.claims:,} | {right} |\n"
    )


def draw(found: Iterable[Cover]) -> bytes:
    """A panel a case: part of the rows held, with its range, and the median width beside it."""
    covers = [each for each in found if each.units > 1]
    panels = [[each for each in covers if each.case == case] for case in ORDER]
    with figure_bytes(".png", width=10, height=0.9 + 0.24 * sum(len(rows) + 1.6 for rows in panels)) as (figure, buffer):
        grid = figure.add_gridspec(len(panels), 2, width_ratios=(3, 2), height_ratios=[len(rows) + 1.6 for rows in panels])
        for number, (case, rows) in enumerate(zip(ORDER, panels, strict=True)):
            held, wide = figure.add_subplot(grid[number, 0]), figure.add_subplot(grid[number, 1])
            places = range(len(rows))
            for level, colour, shift in ((0.9, COLOURS[0], -0.14), (0.5, COLOURS[1], 0.14)):
                heights = [place + shift for place in places]
                low, high = ([100 * side[level] for side in ends] for ends in zip(*((r.low, r.high) for r in rows), strict=True))
                held.axvline(100 * level, color=colour, linewidth=0.8, linestyle="--")
                held.hlines(heights, low, high, color=colour, linewidth=1.6, alpha=0.6)
                held.plot([100 * row.inside[level] for row in rows], heights, "o", color=colour, markersize=4,
                          label=f"{100 * level:.0f} % intervals")  # fmt: skip
                wide.barh(heights, [100 * row.half[level] for row in rows], height=0.28, color=colour)
            names = [f"{row.topic} ({row.units} units)" for row in rows]
            for axes in (held, wide):
                axes.set_ylim(len(rows) - 0.4, -0.6)
                open_axes(axes, "x")
            held.set_yticks(list(places), names, fontsize=8, color=INK)
            wide.set_yticks([])
            held.set_xlim(0, 101)
            wide.set_xscale("log")
            wide.set_xlim(0.3, 300)
            wide.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
            wide.minorticks_off()
            held.set_title(f"{case}: rows inside the interval (%)", fontsize=9, loc="left")
            wide.set_title("median half width (%)", fontsize=9, loc="left")
            if number == 0:
                held.legend(frameon=False, fontsize=8, loc="lower left")
    return buffer.getvalue()
