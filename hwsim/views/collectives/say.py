"""Collectives by size as text and JSON (`hwsim: collectives/1`)."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hwsim.formats import format_quantity
from hwsim.views.collectives.find import Measured, Row
from hwsim.views.kit.document import picked
from hwsim.views.kit.table import size_text, table
from hwsim.views.kit.view import Heading

WIDTH: Final = 110
LIBRARIES: Final = {"nccl": "NCCL as measured", "mpi": "MPI as measured", "overheads": "overheads as given", "own": "own kernels"}


def text(measured: Measured, heading: Heading, **_: object) -> str:
    """The table of one algorithm as nccl-tests have it; the busbw of several in columns."""
    devices = measured.devices
    among = ", ".join(devices) if len(devices) < 5 else f"{len(devices)} devices, {devices[0]} to {devices[-1]}"
    library = "the machine names no library: links at their rates"
    if measured.assumed:
        library = "the machine names no library: NCCL as other machines with such links have it, a default"
    elif measured.library:
        library = f"{LIBRARIES[measured.library]}: `collectives` of the machine's file"
    lines = [f"{measured.operation} among {among}  on  {heading.machine}", f"  {library}", ""]
    if len(measured.algorithms) == 1:
        rows = [("size", "time", "algbw", "busbw", "algorithm"), *map(_cells, measured.rows)]
        lines += table(rows, ">10 >9 >10 >10 <")
    else:
        lines += _columns(measured)
    if ideal := [name for name in measured.algorithms if any(row.ideal for row in measured.of(name))]:
        said = f"ideal, without measured constants, so that no star compares them: {', '.join(ideal)}"
        lines += textwrap.wrap(said, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    for name, reason in measured.cannot:
        lines += textwrap.wrap(f"not {name}: {reason}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def document(measured: Measured) -> dict[str, Any]:
    """Everything as dicts and lists: bytes, seconds, bytes per second."""
    return {
        **picked(measured, "operation", "devices"),
        "library": measured.library or None,
        "rows": [_row(row) for row in measured.rows],
        "cannot": [{"algorithm": name, "reason": reason} for name, reason in measured.cannot],
    }


def _cells(row: Row) -> tuple[str, ...]:
    algorithm = row.algorithm if row.choice is None else str(row.choice)
    rates = (format_quantity(rate, "B/s") if rate > 0 else "" for rate in (row.algbw, row.busbw))
    return size_text(row.size), format_quantity(row.seconds, "s"), *rates, algorithm


def _columns(measured: Measured) -> Iterator[str]:
    """Blocks of as many columns as fit."""
    moves = any(row.busbw > 0 for row in measured.rows)
    yield "  busbw in GB/s, the fastest of each size with a *" if moves else "  time in us, the fastest of each size with a *"
    best: dict[float, float] = {}
    for row in measured.comparable:
        best[row.size] = min(row.seconds, best.get(row.size, math.inf))
    rows = {(row.size, row.algorithm): row for row in measured.rows}
    for block in _blocks(measured.algorithms):
        yield ""
        cells = ((size_text(size), *(_cell(rows.get((size, name)), best, moves) for name in block)) for size in measured.sizes)
        yield from table([("size", *block), *cells], " ".join([">10", *(f">{_width(name)}" for name in block)]))


def _width(name: str) -> int:
    return max(7, len(name))


def _blocks(names: Sequence[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for name in names:
        if block and 12 + sum(2 + _width(each) for each in (*block, name)) > WIDTH:  # integers
            yield block
            block = []
        block.append(name)
    if block:
        yield block


def _cell(row: Row | None, best: Mapping[float, float], moves: bool) -> str:
    if row is None:
        return ""
    value = row.busbw / 1e9 if moves else row.seconds * 1e6
    is_best = not row.ideal and row.seconds <= best.get(row.size, 0.0) * (1 + 1e-9)
    return f"{value:.3g}" + ("*" if is_best else " ")


def _row(row: Row) -> dict[str, Any]:
    numbers = picked(row, "algorithm", "algbw", "busbw", "ideal", bytes="size", time_s="seconds")
    if row.choice is None:
        return numbers
    return numbers | picked(row.choice, "channels", chosen="name", next_best="runner_up", next_best_s="runner_up_seconds")
