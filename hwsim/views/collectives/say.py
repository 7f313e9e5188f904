"""Collectives by size as text and JSON (`hwsim: collectives/2`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hwsim.demand import Choice
from hwsim.formats import format_change, format_count, format_quantity
from hwsim.views.collectives.find import CollectiveRow, CollectiveTimes
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.lines import WIDTH, wrap_lines
from hwsim.views.kit.table import Column, align_columns, size_text, table
from hwsim.views.kit.view import Heading

LIBRARIES: Final = {  # basis of the times by kind of library
    "nccl": "NCCL, measured constants of this machine",
    "mpi": "MPI, measured constants of this machine",
    "overheads": "overheads of the machine's file",
    "own": "custom kernels, measured constants of this machine",
}
ASSUMED: Final = "NCCL, constants of other machines with such links (class default)"
NO_LIBRARY: Final = "no library: links at their rates, without software overhead"
NAMES: Final = {"ll": "LL", "ll128": "LL128", "nvls": "NVLS", "nvls-tree": "NVLS tree", "simple": "Simple"}  # names in NCCL
HALF: Final = 0.5


def text(measured: CollectiveTimes, heading: Heading, **_: object) -> str:
    """Return the table of one algorithm in the format of nccl-tests, or the busbw of several in columns."""
    devices = measured.devices
    among = ", ".join(devices) if len(devices) < 5 else f"{len(devices)} devices ({devices[0]} to {devices[-1]})"
    lines = [f"{measured.operation}, {among}, on {heading.machine}", f"  {basis(measured)}", ""]
    lines += _rows(measured) if len(measured.algorithms) == 1 else _columns(measured)
    if ideal := [name for name in measured.algorithms if any(row.ideal for row in measured.of(name))]:
        lines += wrap_lines(f"ideal, without measured constants, so not compared: {', '.join(ideal)}", 2)
    for name, reason in measured.cannot:
        lines += wrap_lines(f"{name} is not available: {reason}", 2)
    return "\n".join(lines) + "\n"


def basis(measured: CollectiveTimes) -> str:
    """Return the library and the source of its constants; without a library, the overheads that the times include."""
    if measured.library:
        return ASSUMED if measured.assumed else LIBRARIES[measured.library]
    return NO_LIBRARY + "; auto: with NCCL's latencies" * any(row.choice and row.choice.channels > 0 for row in measured.rows)


def _rows(measured: CollectiveTimes) -> Iterator[str]:
    """Yield a row per size in the format of nccl-tests: one unit per column."""
    rows = measured.rows
    chosen = [row.choice for row in rows]
    parts = [[row.algorithm] if choice is None else choice.name.split(", ") for row, choice in zip(rows, chosen, strict=True)]
    channels = [str(choice.channels) if choice is not None and choice.channels else "" for choice in chosen]
    moves = any(row.busbw > 0 for row in rows)
    columns = [
        Column("size", [size_text(row.size) for row in rows]),
        Column("time (us)", [_number(row.seconds * 1e6) for row in rows]),
        *([Column("algbw (GB/s)", [_number(row.algbw / 1e9) for row in rows])] if moves else []),
        *([Column("busbw (GB/s)", [_number(row.busbw / 1e9) for row in rows])] if moves else []),
        Column("algorithm", [_named(names[0]) for names in parts], right=False),
        Column("protocol", [_named(", ".join(names[1:])) for names in parts], right=False),
        Column("channels", channels),
        Column("runner-up", [_second(choice) for choice in chosen], right=False),
    ]
    yield from align_columns([column for column in columns if any(column.cells)])
    if moves:
        most = max(rows, key=lambda row: row.busbw)
        half = next(row for row in rows if row.busbw >= HALF * most.busbw)
        yield ""
        peak = f"peak busbw {format_quantity(most.busbw, 'B/s')}, half of it from {size_text(half.size)}"
        yield f"  {peak}; {size_text(rows[0].size)} takes {format_quantity(rows[0].seconds, 's')}"
    if any(choice is not None and choice.runner_up and choice.runner_up_seconds < choice.seconds for choice in chosen):
        yield "  a negative runner-up is faster: the library's own cost model chooses the slower one"


def _second(choice: Choice | None) -> str:
    """Return the runner-up with its extra time."""
    if choice is None or not choice.runner_up:
        return ""
    slower = format_change(choice.runner_up_seconds / choice.seconds - 1 if choice.seconds > 0 else 0.0)
    return f"{' '.join(map(_named, choice.runner_up.split(', ')))} {slower}"


def _named(name: str) -> str:
    return NAMES.get(name, name)


def _number(value: float) -> str:
    """Return a number without a unit.

    >>> _number(16.123), _number(4071.2), _number(0.0637), _number(63_912.0)
    ('16.1', '4,070', '0.0637', '63,900')
    """
    return format_count(value)


def document(measured: CollectiveTimes) -> dict[str, Any]:
    """Return the rows as dicts and lists: B, s, B/s."""
    return {
        **select_attributes(measured, "operation", "devices"),
        "library": measured.library or None,
        "rows": [_row(row) for row in measured.rows],
        "unsupported": [{"algorithm": name, "reason": reason} for name, reason in measured.cannot],
    }


def _columns(measured: CollectiveTimes) -> Iterator[str]:
    """Yield blocks of as many columns as fit."""
    moves = any(row.busbw > 0 for row in measured.rows)
    yield "  busbw (GB/s); * marks the fastest of each size" if moves else "  time (us); * marks the fastest of each size"
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
        if block and 12 + sum(2 + _width(column) for column in (*block, name)) > WIDTH:  # integers
            yield block
            block = []
        block.append(name)
    if block:
        yield block


def _cell(row: CollectiveRow | None, best: Mapping[float, float], moves: bool) -> str:
    if row is None:
        return ""
    value = row.busbw / 1e9 if moves else row.seconds * 1e6
    is_best = not row.ideal and row.seconds <= best.get(row.size, 0.0) * (1 + 1e-9)
    return f"{value:.3g}" + ("*" if is_best else " ")


def _row(row: CollectiveRow) -> dict[str, Any]:
    numbers = select_attributes(row, "algorithm", "algbw", "busbw", "ideal", bytes="size", time_s="seconds")
    if row.choice is None:
        return numbers
    return numbers | select_attributes(
        row.choice, "channels", chosen="name", runner_up="runner_up", runner_up_s="runner_up_seconds"
    )
