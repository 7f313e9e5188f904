"""Boxes and lines of a drawing, and their places: a row for each kind of device, each device below its links upwards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final

from hwsim.formats import natural
from hwsim.records import dataclass

GAP: Final = 1.0  # from the middle of one part to the next
ROW: Final = 1.25
HEIGHT: Final = 0.42  # of a box

# rows from top to bottom: (-2, -level) networks, (-1, 0) NICs and disks, (0, 0) CPUs, (0, n) switches, ...
Rank = tuple[int, int]


@dataclass(slots=True)
class Box:
    """One or several devices. Middle x, row y and width in inches."""

    key: str
    label: str
    kind: str
    rank: Rank
    scope: str
    devices: list[str]
    x: float = 0.0
    y: float = 0.0
    width: float = 0.84


@dataclass(frozen=True, slots=True)
class Line:
    """A connection between two boxes (of one box: between machines drawn as one); its bandwidth in each direction, B/s."""

    a: str
    b: str
    kind: str
    label: str
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Frame:
    """A machine inside the machine: its label and edges."""

    label: str
    left: float
    right: float
    bottom: float
    top: float


@dataclass(slots=True)
class Drawing:
    """Boxes by key, lines and frames; `round` if the boxes stand on a circle."""

    boxes: dict[str, Box]
    lines: list[Line]
    frames: list[Frame] = field(default_factory=list)
    round: bool = False


def place(inside: Sequence[Box], near: Mapping[str, Sequence[str]], boxes: Mapping[str, Box]) -> None:
    """Place one machine: first the fullest row of CPUs or GPUs, then the rows next to it, outwards."""
    ranks = sorted({box.rank for box in inside})
    rows = {rank: sorted((box for box in inside if box.rank == rank), key=lambda box: natural(box.key)) for rank in ranks}
    base = max(ranks, key=lambda rank: (rank[0] >= 1, len(rows[rank])))
    placed: set[str] = set()
    for at, box in enumerate(rows[base]):
        box.width = _width(box)
        box.x = at * max(GAP, max(_width(each) for each in rows[base]) + 0.16)
        placed.add(box.key)
    at = ranks.index(base)
    for rank in [
        *reversed([rank for rank in ranks[:at] if rank[0] >= 0]),
        *ranks[at + 1 :],
        *[r for r in ranks[:at] if r[0] < 0],
    ]:
        place_row(rows[rank], near, boxes, placed=placed)
        placed |= {box.key for box in rows[rank]}


def place_row(
    row: Sequence[Box],
    near: Mapping[str, Sequence[str]],
    boxes: Mapping[str, Box],
    *,
    placed: set[str] | None = None,
    rows_below: Rank | None = None,
) -> None:
    """Place each box in the middle of its neighbours, as far as there is room; a switch is as wide as its neighbours."""
    wanted: list[tuple[float, Box]] = []
    every = [box.x for box in boxes.values() if (placed is None or box.key in placed) and box not in row]
    centre = (min(every) + max(every)) / 2 if every else 0.0
    for box in row:
        others = [
            boxes[name].x
            for name in near.get(box.key, ())
            if (name in placed if placed is not None else rows_below is not None and boxes[name].rank > rows_below)
        ]
        middle = (min(others) + max(others)) / 2 if others else centre
        box.width = _width(box)
        if box.kind == "switch" and others:
            box.width = max(box.width, max(others) - min(others) + 0.5)
        wanted.append((middle, box))
    if (
        rows_below is not None and len(row) > 1 and max(at for at, _ in wanted) - min(at for at, _ in wanted) < len(row) * GAP
    ):  # spines of one network
        step = min((max(every) - min(every)) / len(row), 4 * GAP)
        ordered = sorted(row, key=lambda box: natural(box.key))
        wanted = [(centre + (at - (len(row) - 1) / 2) * step, box) for at, box in enumerate(ordered)]
    wanted.sort(key=lambda each: (each[0], natural(each[1].key)))
    overlap = any(b.width / 2 + a.width / 2 + 0.1 > right - left for (left, a), (right, b) in pairwise(wanted))
    if overlap and all(box.kind == "switch" for box in row):
        for box in row:
            box.width = _width(box)  # bars that would overlap become boxes
    _spread(wanted)


def _spread(wanted: Sequence[tuple[float, Box]]) -> None:
    """Place boxes in order, as near to the wanted places as their widths allow: pooled neighbours share their deviation."""
    pools: list[tuple[float, int]] = []  # (mean of wanted - offset, members)
    offset, offsets = 0.0, []
    for at, (middle, box) in enumerate(wanted):
        if at:
            offset += (wanted[at - 1][1].width + box.width) / 2 + 0.16
        offsets.append(offset)
        pools.append((middle - offset, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (b, m), (a, n) = pools.pop(), pools.pop()
            pools.append(((a * n + b * m) / (n + m), n + m))
    starts = [start for start, members in pools for _ in range(members)]
    for (_, box), start, off in zip(wanted, starts, offsets, strict=True):
        box.x = start + off


def narrow_what_is_passed(drawing: Drawing) -> None:
    """Make a box of a bar at which a line to another row would seem to end."""
    for line in drawing.lines:
        a, b = sorted((drawing.boxes[line.a], drawing.boxes[line.b]), key=lambda box: box.y)
        narrow = min(a, b, key=lambda box: box.width)
        for box in drawing.boxes.values():
            if box.kind == "switch" and a.y < box.y < b.y and abs(narrow.x - box.x) < box.width / 2 + 0.05:
                box.width = _width(box)


def _width(box: Box) -> float:
    return max(0.72, 0.2 + 0.075 * len(box.label))


def line_shape(drawing: Drawing, line: Line) -> str:
    """Shape of a line between boxes of one row: "straight" if nothing is between them, else "arc"; "" between rows.

    "stub" is a line between machines that are drawn as one.
    """
    a, b = drawing.boxes[line.a], drawing.boxes[line.b]
    if line.a == line.b:
        return "stub"
    if a.rank != b.rank or drawing.round:
        return ""
    row = [box for box in drawing.boxes.values() if box.rank == a.rank]
    between = [box for box in row if min(a.x, b.x) < box.x < max(a.x, b.x)]
    mates = sum(1 for other in drawing.lines if drawing.boxes[other.a].rank == drawing.boxes[other.b].rank == a.rank)
    return "straight" if not between and mates < len(row) else "arc"


def arc_depth(a: Box, b: Box) -> float:
    """Depth of an arc below its row."""
    return 0.3 + 0.28 * math.pow(abs(a.x - b.x), 0.85) + HEIGHT / 2


def feet(drawing: Drawing, line: Line) -> tuple[float, float]:
    """Ends of an arc along its boxes: short arcs are outside, so that no two arcs of a box cross."""
    places = []
    first, last = sorted((drawing.boxes[line.a], drawing.boxes[line.b]), key=lambda box: box.x)
    for box, far in ((first, last), (last, first)):
        reached = {
            end.x
            for each in drawing.lines
            if box.key in (each.a, each.b) and line_shape(drawing, each) == "arc"
            for end in [drawing.boxes[each.b if each.a == box.key else each.a]]
        }
        left = sorted((x for x in reached if x < box.x), reverse=True)
        order = [*left, *sorted((x for x in reached if x > box.x), reverse=True)]
        room = (box.width - 0.12) / len(order)
        places.append(box.x - box.width / 2 + 0.06 + room * (order.index(far.x) + 0.5))
    return places[0], places[1]
