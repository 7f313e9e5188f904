"""Boxes and lines of a drawing and their positions: a row per kind of device, each device below its uplinks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final

from hwsim.formats import natural
from hwsim.records import dataclass

GAP: Final = 1.0  # distance between the centres of two boxes (inches)
ROW: Final = 1.25  # distance between rows (inches)
HEIGHT: Final = 0.42  # height of a box (inches)

# rows from top to bottom: (-2, -level) networks, (-1, 0) NICs and disks, (0, 0) CPUs, (0, n) switches, ...
Rank = tuple[int, int]


@dataclass(slots=True)
class DeviceBox:
    """One or several devices.

    Args:
        key: key.
        label: label.
        kind: kind of the devices.
        rank: row.
        scope: machine around them.
        devices: names of the devices.
        x, y: centre (inches).
        width: width (inches).
    """

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
class TopologyEdge:
    """A connection between two boxes; with a single box, between machines drawn as one.

    Args:
        a, b: keys of the boxes.
        kind: kind of link.
        label: label.
        bandwidth: bandwidth per direction (B/s).
    """

    a: str
    b: str
    kind: str
    label: str
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Frame:
    """A nested machine.

    Args:
        label: label.
        left, right, bottom, top: edges (inches).
    """

    label: str
    left: float
    right: float
    bottom: float
    top: float


@dataclass(slots=True)
class TopologyDrawing:
    """A drawing of a machine.

    Args:
        boxes: boxes by key.
        lines: lines.
        frames: frames.
        round: whether the boxes are on a circle.
    """

    boxes: dict[str, DeviceBox]
    lines: list[TopologyEdge]
    frames: list[Frame] = field(default_factory=list)
    round: bool = False


def place(inside: Sequence[DeviceBox], near: Mapping[str, Sequence[str]], boxes: Mapping[str, DeviceBox]) -> None:
    """Place a machine: first the fullest row of CPUs or GPUs, then the rows next to it, outwards."""
    ranks = sorted({box.rank for box in inside})
    rows = {rank: sorted((box for box in inside if box.rank == rank), key=lambda box: natural(box.key)) for rank in ranks}
    base = max(ranks, key=lambda rank: (rank[0] >= 1, len(rows[rank])))
    placed: set[str] = set()
    for index, box in enumerate(rows[base]):
        box.width = _width(box)
        box.x = index * max(GAP, max(map(_width, rows[base])) + 0.16)
        placed.add(box.key)
    middle = ranks.index(base)
    above = ranks[:middle]
    for rank in [*reversed([rank for rank in above if rank[0] >= 0]), *ranks[middle + 1 :], *[r for r in above if r[0] < 0]]:
        place_row(rows[rank], near, boxes, placed=placed)
        placed |= {box.key for box in rows[rank]}


def place_row(
    row: Sequence[DeviceBox],
    near: Mapping[str, Sequence[str]],
    boxes: Mapping[str, DeviceBox],
    *,
    placed: set[str] | None = None,
    rows_below: Rank | None = None,
) -> None:
    """Centre each box on its neighbours as far as space allows; a switch spans its neighbours."""
    wanted: list[tuple[float, DeviceBox]] = []
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
    middles = [middle for middle, _ in wanted]
    if rows_below is not None and len(row) > 1 and max(middles) - min(middles) < len(row) * GAP:  # spines of one network
        step = min((max(every) - min(every)) / len(row), 4 * GAP)
        ordered = sorted(row, key=lambda box: natural(box.key))
        wanted = [(centre + (index - (len(row) - 1) / 2) * step, box) for index, box in enumerate(ordered)]
    wanted.sort(key=lambda pair: (pair[0], natural(pair[1].key)))
    overlap = any(b.width / 2 + a.width / 2 + 0.1 > right - left for (left, a), (right, b) in pairwise(wanted))
    if overlap and all(box.kind == "switch" for box in row):
        for box in row:
            box.width = _width(box)  # overlapping bars become boxes
    _spread(wanted)


def _spread(wanted: Sequence[tuple[float, DeviceBox]]) -> None:
    """Place boxes in order, as close as possible to the wanted positions; adjacent boxes in conflict share the deviation."""
    pools: list[tuple[float, int]] = []  # (mean of wanted - offset, members)
    offset, offsets = 0.0, []
    for index, (middle, box) in enumerate(wanted):
        if index:
            offset += (wanted[index - 1][1].width + box.width) / 2 + 0.16
        offsets.append(offset)
        pools.append((middle - offset, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (b, m), (a, n) = pools.pop(), pools.pop()
            pools.append(((a * n + b * m) / (n + m), n + m))
    starts = [start for start, members in pools for _ in range(members)]
    for (_, box), start, off in zip(wanted, starts, offsets, strict=True):
        box.x = start + off


def narrow_what_is_passed(drawing: TopologyDrawing) -> None:
    """Shrink a switch bar to a box if a line between other rows would seem to end at it."""
    for line in drawing.lines:
        a, b = sorted((drawing.boxes[line.a], drawing.boxes[line.b]), key=lambda box: box.y)
        narrow = min(a, b, key=lambda box: box.width)
        for box in drawing.boxes.values():
            if box.kind == "switch" and a.y < box.y < b.y and abs(narrow.x - box.x) < box.width / 2 + 0.05:
                box.width = _width(box)


def _width(box: DeviceBox) -> float:
    return max(0.72, 0.2 + 0.075 * len(box.label))


def line_shape(drawing: TopologyDrawing, line: TopologyEdge) -> str:
    """Return the shape of a line: "straight" or "arc" within a row, "" between rows.

    It is "straight" if no box is between the ends, and "stub" between machines drawn as one.
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


def arc_depth(a: DeviceBox, b: DeviceBox) -> float:
    """Return the depth of an arc below its row (inches)."""
    return 0.3 + 0.28 * math.pow(abs(a.x - b.x), 0.85) + HEIGHT / 2


def feet(drawing: TopologyDrawing, line: TopologyEdge) -> tuple[float, float]:
    """Return the ends of an arc on its boxes; shorter arcs are outside, so that no two arcs of a box cross."""
    places = []
    first, last = sorted((drawing.boxes[line.a], drawing.boxes[line.b]), key=lambda box: box.x)
    for box, far in ((first, last), (last, first)):
        reached = {
            end.x
            for arc in drawing.lines
            if box.key in (arc.a, arc.b) and line_shape(drawing, arc) == "arc"
            for end in [drawing.boxes[arc.b if arc.a == box.key else arc.a]]
        }
        left = sorted((x for x in reached if x < box.x), reverse=True)
        order = [*left, *sorted((x for x in reached if x > box.x), reverse=True)]
        room = (box.width - 0.12) / len(order)
        places.append(box.x - box.width / 2 + 0.06 + room * (order.index(far.x) + 0.5))
    return places[0], places[1]
