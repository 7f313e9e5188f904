"""Collectives by size as text, JSON (`hwsim: collectives/1`) or a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from hwsim import invariants
from hwsim.units import format_quantity
from hwsim.views.kit.figure import COLOURS, figure_bytes
from hwsim.views.kit.table import size_text
from hwsim.views.kit.title import figure_title
from hwsim.views.kit.warned import as_dicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hwsim.spec import Warning
    from hwsim.views.collectives.find import Measured, Row

AUTO: Final = "auto"
WIDTH: Final = 110
APART: Final = 10.0  # points between labels
INK: Final = "#333333"
LINES: Final = tuple(each for each in COLOURS if each not in ("#F0E442", "#F2CF7F", "#000000"))  # dark enough for thin lines
STYLES: Final = ("-", "--", ":", "-.")


@invariants.guarded
def text(found: Measured, machine: str) -> str:
    """The table of one algorithm as nccl-tests have it; of several, their busbw side by side."""
    head = f"{found.operation} among {_among(found.devices)}  on  {machine}"
    out = [head, f"  {_told(found)}", ""]
    if len(found.algorithms) == 1:
        out += _one(found)
    else:
        out += _beside(found)
    if found.library == "nccl" and any(name.startswith("ps-") for name in found.algorithms):
        out += ["  ps-*: links at their rates; what NCCL takes is not theirs"]
    for name, why in found.cannot:
        out += textwrap.wrap(f"not {name}: {why}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(line.rstrip() for line in out) + "\n"


def as_dict(found: Measured, machine: str, warnings: Sequence[Warning] = ()) -> dict[str, Any]:
    """Everything as dicts and lists: bytes, seconds, bytes per second."""
    return {
        "hwsim": "collectives/1",
        "machine": machine,
        "operation": found.operation,
        "devices": list(found.devices),
        "library": found.library or None,
        "rows": [_row(row) for row in found.rows],
        "cannot": [{"algorithm": name, "reason": why} for name, why in found.cannot],
        "warnings": as_dicts(warnings),
    }


def document(found: Measured, machine: str, warnings: Sequence[Warning] = ()) -> str:
    """The same as JSON, keys sorted."""
    return invariants.document(as_dict(found, machine, warnings))


def render(found: Measured, machine: str, suffix: str = ".png", settings: Iterable[tuple[str, str]] = ()) -> Iterable[bytes]:
    """A figure: busbw against size, both logarithmic, a line for each algorithm with its name at its end.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    with figure_bytes(suffix, width=10, height=6) as (figure, buffer):
        axes = figure.add_subplot()
        ends = [_line(axes, found, names, at) for at, names in enumerate(_alike(found))]
        drawn = [row for row in found.rows if row.busbw > 0 and row.size > 0]
        sizes = sorted({row.size for row in drawn})
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlim(sizes[0] / 1.1, sizes[-1] * 1.1)
        ticks = [size for size in sizes if math.log2(size).is_integer()] or sizes
        shown = ticks[:: max(1, len(ticks) // 9)]
        axes.set_xticks(shown, [size_text(size) for size in shown])
        axes.minorticks_off()
        low, high = (
            math.floor(math.log10(min(row.busbw for row in drawn))),
            math.ceil(math.log10(max(row.busbw for row in drawn))),
        )
        decades = [10.0**power for power in range(low, max(high, low + 1) + 1)]
        axes.set_yticks(decades, [format_quantity(each, "B/s") for each in decades])
        axes.set_ylim(min(row.busbw for row in drawn) / 1.3, max(row.busbw for row in drawn) * 1.6)
        axes.grid(axis="both", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.set_xlabel("size")
        axes.set_ylabel("busbw")
        axes.set_title(
            figure_title(f"{machine}: {found.operation} among {len(found.devices)} devices", settings),
            fontsize="medium",
            loc="left",
        )
        figure.draw_without_rendering()  # where the labels are is known only now
        _names(axes, ends)
        if AUTO in found.algorithms:
            _changes(axes, found.of(AUTO))
    return (buffer.getvalue(),)


# ---- text ----


def _among(devices: Sequence[str]) -> str:
    return ", ".join(devices) if len(devices) < 5 else f"{len(devices)} devices, {devices[0]} to {devices[-1]}"


def _told(found: Measured) -> str:
    if not found.library:
        return "the machine names no library: links at their rates"
    what = {"nccl": "NCCL as measured", "mpi": "MPI as measured", "overheads": "overheads as given"}
    return f"{what[found.library]}: `collectives` of the machine's file"


def _one(found: Measured) -> Iterator[str]:
    yield f"  {'size':>10}  {'time':>9}  {'algbw':>10}  {'busbw':>10}  algorithm"
    for row in found.rows:
        said = row.algorithm if row.choice is None else str(row.choice)
        time = format_quantity(row.seconds, "s")
        yield f"  {size_text(row.size):>10}  {time:>9}  {_rate(row.algbw):>10}  {_rate(row.busbw):>10}  {said}"


def _beside(found: Measured) -> Iterator[str]:
    """Blocks of as many columns as fit."""
    moves = any(row.busbw > 0 for row in found.rows)
    yield "  busbw in GB/s, the fastest of each size with a *" if moves else "  time in us, the fastest of each size with a *"
    best = {size: min(row.seconds for row in found.rows if row.size == size) for size in found.sizes}
    rows = {(row.size, row.algorithm): row for row in found.rows}
    for block in _blocks(found.algorithms):
        yield ""
        yield f"  {'size':>10}" + "".join(f"  {name:>{_width(name)}}" for name in block)
        for size in found.sizes:
            cells = [_cell(rows.get((size, name)), best[size], moves) for name in block]
            yield f"  {size_text(size):>10}" + "".join(
                f"  {cell:>{_width(name)}}" for cell, name in zip(cells, block, strict=True)
            )


def _width(name: str) -> int:
    return max(7, len(name))


def _blocks(names: Sequence[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for name in names:
        if block and 12 + sum(2 + _width(each) for each in (*block, name)) > WIDTH:  # whole
            yield block
            block = []
        block.append(name)
    if block:
        yield block


def _cell(row: Row | None, best: float, moves: bool) -> str:
    if row is None:
        return ""
    value = row.busbw / 1e9 if moves else row.seconds * 1e6
    return f"{value:.3g}" + ("*" if row.seconds <= best * (1 + 1e-9) else " ")


def _rate(value: float) -> str:
    return format_quantity(value, "B/s") if value > 0 else ""


def _row(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bytes": row.size,
        "algorithm": row.algorithm,
        "time_s": row.seconds,
        "algbw": row.algbw,
        "busbw": row.busbw,
    }
    if row.choice is not None:
        found |= {
            "chosen": row.choice.name,
            "channels": row.choice.channels,
            "next_best": row.choice.runner_up,
            "next_best_s": row.choice.runner_up_seconds,
        }
    return found


# ---- figure ----


def _alike(found: Measured) -> list[list[str]]:
    """Algorithms that take the same at every size are one line; auto is its own."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for name in found.algorithms:
        key = (AUTO,) if name == AUTO else tuple(f"{row.size:g} {row.busbw:.4g}" for row in found.of(name))
        lines.setdefault(key, []).append(name)
    return list(lines.values())


def _line(axes: Axes, found: Measured, names: Sequence[str], at: int) -> tuple[str, str, float, float]:
    """Draws it; (names, colour, x, y) of its end."""
    name = names[0]
    rows = [row for row in found.of(name) if row.busbw > 0 and row.size > 0]
    colour = INK if name == AUTO else LINES[at % len(LINES)]
    style = "-" if name == AUTO else STYLES[at // len(LINES) % len(STYLES)]
    if not rows:
        return "", colour, 1.0, 0.0
    mark = "o" if len(rows) == 1 or name == AUTO else ""
    axes.plot([row.size for row in rows], [row.busbw for row in rows], color=colour, linestyle=style, marker=mark, markersize=3,
              linewidth=2.4 if name == AUTO else 1.4, zorder=3 if name == AUTO else 2)  # fmt: skip
    return "\n".join(textwrap.wrap(", ".join(names), 34)), colour, rows[-1].size, rows[-1].busbw


def _names(axes: Axes, ends: Sequence[tuple[str, str, float, float]]) -> None:
    """Names at the ends of the lines, pushed apart."""
    figure = axes.get_figure()
    to_points = 72.0 / (figure.dpi if figure is not None else 100.0)
    above = math.inf  # the lower edge of the label before
    for name, colour, x, y in sorted((each for each in ends if each[3] > 0), key=lambda each: -each[3]):
        true = float(axes.transData.transform((x, y))[1]) * to_points
        half = APART * (1 + name.count("\n")) / 2
        place = min(true, above - half)
        above = place - half
        axes.annotate(
            name, (1.0, y), (6, place - true), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8,
            color=colour, va="center", ha="left", annotation_clip=False,
        )  # fmt: skip


def _changes(axes: Axes, rows: Sequence[Row]) -> None:
    """What auto chose, where it changes."""
    known = [row for row in rows if row.choice is not None and row.busbw > 0 and row.size > 0]
    places = [0, *(at for at, (before, row) in enumerate(pairwise(known), 1) if _chosen(before) != _chosen(row))]
    for at in places if known else ():
        row = known[at]
        axes.annotate(
            _chosen(row), (row.size, row.busbw), (9, -11), textcoords="offset points", fontsize=8, ha="left", color=INK,
            fontweight="bold",
        )  # fmt: skip


def _chosen(row: Row) -> str:
    return "" if row.choice is None else row.choice.name
