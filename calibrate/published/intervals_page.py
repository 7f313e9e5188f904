"""The page of intervals: coverage and width of the predicted intervals, and claims about the faster of two devices."""

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
from published.parts import declared
from published.residual import Residual
from published.summary import TOPICS_SHOWN

PICTURE: Final = "coverage.png"
ORDER: Final = ("interpolated", "held-out source", "held-out device")
HEAD: Final[str] = declared("intervals_page")["head"]
RATIOS: Final[str] = declared("intervals_page")["ratios"]


KERNELS: Final[str] = declared("intervals_page")["kernels"]
SERVED: Final = ("attention", "moe", "product", "product4", "product8", "weightonly")


def page(found: Sequence[Residual], folder: Path) -> str:
    """Return the page in Markdown, and write its picture into the folder."""
    judged = coverage.judged(found)
    covers, claims = coverage.covers(judged), list(coverage.claims(judged))
    (folder / PICTURE).write_bytes(draw(covers))
    made, right = coverage.total(claims)
    lead = ", ".join(f"{cover.case} {percent(cover.inside[0.9], '.0f')}" for cover in covers if cover.topic == "all")
    out = (
        HEAD.format(lead=f"**Measured rows inside the 90 % interval: {lead}.**")
        + "".join(map(_cover, covers))
        + RATIOS
        + "".join(map(_claims, claims))
    )
    share = percent(right / made, ".1f") if made else "none"
    out += f"| total | | {sum(claim.works for claim in claims):,} | | | | | {made:,} | **{share}** |\n"
    served = [part for part in judged if part.topic in SERVED]
    return out + KERNELS + "".join(map(_claims, coverage.claims(served, apart=True)))


def _quantity(topic: str) -> str:
    kind, _, regime = topic.partition("/")
    return ", ".join(filter(None, (TOPICS_SHOWN.get(kind, kind), regime)))


def _width(half: float) -> str:
    """Return a half width in per cent, or a note if it reaches the maximum of `errors.yaml`."""
    if half > math.sinh(WIDEST):
        return f"above a factor of {math.exp(WIDEST):.0f}"
    return percent(half, ".2g" if half < 0.1 else ".0f")


def _cover(found: Cover) -> str:
    holds = " | ".join(percent(found.inside[level], ".0f") for level in LEVELS)
    ranged = f"{100 * found.low[0.9]:.0f} to {100 * found.high[0.9]:.0f} %"
    bold = "**" if found.topic == "all" else ""
    return (
        f"| {bold}{_quantity(found.topic)}{bold} | {found.case} | {found.rows:,} | {found.units} | {found.groups} "
        f"| {holds} | {ranged} | {_width(found.half[0.5])} | {_width(found.half[0.9])} |\n"
    )


def _claims(found: Claims) -> str:
    right = percent(found.right / found.claims, ".1f") if found.claims else ""
    return (
        f"| {_quantity(found.topic)} | {found.case} | {found.works:,} | {found.pairs} | {found.alike:+.2f} "
        f"| {percent(found.holds, '.0f')} | {_width(found.half)} | {found.claims:,} | {right} |\n"
    )


def draw(found: Iterable[Cover]) -> bytes:
    """Return a figure with one panel per case: coverage with its range, and median width."""
    covers = [cover for cover in found if cover.units > 1]
    panels = [[cover for cover in covers if cover.case == case] for case in ORDER]
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
            names = [f"{_quantity(row.topic)} ({row.units} units)" for row in rows]
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
            held.set_title(f"{case}: coverage (% of rows)", fontsize=9, loc="left")
            wide.set_title("median width (% of the prediction)", fontsize=9, loc="left")
            if number == 0:
                held.legend(frameon=False, fontsize=8, loc="lower left")
    return buffer.getvalue()
