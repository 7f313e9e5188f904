"""Positions of the parts of a machine in a drawing, and the lines between them.

    network switches, highest level on top
    NICs and disks
    CPUs
    switches below them, level by level
    GPUs
    switches between GPUs

Equal nested machines are drawn once with their number; so are devices in one place with identical links.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hwsim.formats import natural
from hwsim.machine import Machine
from hwsim.views.topology.bisection import parallel_links
from hwsim.views.topology.find import starred, starred_node
from hwsim.views.topology.rows import (
    ROW,
    DeviceBox,
    Frame,
    Rank,
    TopologyDrawing,
    TopologyEdge,
    arc_depth,
    line_shape,
    narrow_what_is_passed,
    place,
    place_row,
)
from hwsim.views.topology.say import ranges

MOST_IN_ROW: Final = 16  # largest number of boxes in a row
_LABELLED: Final = 48  # largest number of boxes with names on a circle
_LINKED: Final = ", linked to each other"


def arrange(machine: Machine) -> TopologyDrawing:
    """Return the drawing of a machine; same machine, same drawing."""
    stand_in, numbers = _stand_ins(machine)
    boxes, box_of = _boxes(machine, stand_in, numbers)
    lines = _lines(machine, boxes, box_of, stand_in)
    drawing = TopologyDrawing(boxes, lines)
    rows = {box.rank for box in boxes.values()}
    drawing.round = len(rows) == 1 and len(boxes) > 2 and len(lines) > 0
    if drawing.round:
        _on_circle(drawing)
        return drawing
    near = _near(lines)
    left = 0.0
    framed: list[tuple[str, float, float, list[DeviceBox]]] = []
    for scope in dict.fromkeys(box.scope for box in boxes.values() if box.rank[0] > -2):
        inside = [box for box in boxes.values() if box.scope == scope and box.rank[0] > -2]
        place(inside, near, boxes)
        low = min(box.x - box.width / 2 for box in inside)
        for box in inside:
            box.x += left - low
        right = max(box.x + box.width / 2 for box in inside)
        framed.append((scope, left, right, inside))
        left = right + 0.9
    for rank in sorted((rank for rank in rows if rank[0] == -2), reverse=True):
        place_row([box for box in boxes.values() if box.rank == rank], near, boxes, rows_below=rank)
    for index, rank in enumerate(sorted(rows)):
        for box in boxes.values():
            if box.rank == rank:
                box.y = -index * ROW
    narrow_what_is_passed(drawing)
    for scope, low, right, inside in framed:
        if scope:
            bottom, top = min(box.y for box in inside), max(box.y for box in inside)
            keys = {box.key for box in inside}
            arcs = [line for line in lines if line.a in keys and line.b in keys and line_shape(drawing, line) == "arc"]
            ends = [(drawing.boxes[line.a], drawing.boxes[line.b]) for line in arcs]
            bottom = min([bottom, *(a.y - arc_depth(a, b) + 0.3 for a, b in ends)])
            number = numbers[scope]
            label = starred_node(machine, scope) + (f"  × {number}" if number > 1 else "")
            drawing.frames.append(Frame(label, low - 0.25, right + 0.25, bottom - 0.68, top + 0.42))
    return drawing


def _on_circle(drawing: TopologyDrawing) -> None:
    radius = max(1.6, 0.16 * len(drawing.boxes)) if len(drawing.boxes) <= _LABELLED else 3.6
    for index, box in enumerate(drawing.boxes.values()):
        angle = math.pi / 2 - 2 * math.pi * index / len(drawing.boxes)
        box.x, box.y = radius * math.cos(angle), radius * math.sin(angle)
        box.width = max(0.5, 0.16 + 0.075 * len(box.label)) if len(drawing.boxes) <= _LABELLED else 0.1
        box.label = box.label if len(drawing.boxes) <= _LABELLED else ""


def _stand_ins(machine: Machine) -> tuple[dict[str, str], dict[str, int]]:
    """Return (representative of each nested machine, number of equal machines by representative)."""
    inside: dict[str, list[str]] = {}
    for name, device in machine.devices.items():
        if device.node:
            inside.setdefault(device.node, []).append(f"{device.kind} {name[len(device.node) + 1 :]}")
    first: dict[tuple[str, tuple[str, ...]], str] = {}
    stand_in: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for node, parts in inside.items():
        stand_in[node] = first.setdefault((starred_node(machine, node), tuple(parts)), node)
        numbers[stand_in[node]] = numbers.get(stand_in[node], 0) + 1
    return stand_in, numbers


def _boxes(
    machine: Machine, stand_in: Mapping[str, str], numbers: Mapping[str, int]
) -> tuple[dict[str, DeviceBox], dict[str, str]]:
    """Return (boxes by key, key of the box of each device)."""
    ranks = _ranks(machine)
    drawn = [name for name, device in machine.devices.items() if not device.node or stand_in[device.node] == device.node]
    several = any(number > 1 for number in numbers.values())
    near: dict[str, set[tuple[str, float]]] = {}
    for link in machine.links:
        near.setdefault(link.source, set()).add((link.target, link.bandwidth))
    crowded = {rank for rank in set(ranks.values()) if sum(ranks[name] == rank for name in drawn) > MOST_IN_ROW and rank[0] != -1}
    groups: dict[object, list[str]] = {}
    for name in drawn:
        device, rank = machine.devices[name], ranks[name]
        key: object = name
        if rank[0] == -2 and (several or rank in crowded):
            key = rank, device.family
        elif rank in crowded or rank[0] == -1:
            others = frozenset(
                (starred(machine, end) if ranks[end][0] == -2 else end, bandwidth) for end, bandwidth in near.get(name, ())
            )
            key = device.node, device.family, rank, others
        groups.setdefault(key, []).append(name)
    boxes: dict[str, DeviceBox] = {}
    box_of: dict[str, str] = {}
    for names in groups.values():
        device = machine.devices[names[0]]
        short = [name[len(device.node) + 1 :] if device.node else name for name in names]
        label = ranges(short) if len(short) <= MOST_IN_ROW else f"{device.family}  × {len(short)}"
        boxes[names[0]] = DeviceBox(names[0], label, device.kind, ranks[names[0]], device.node, names)
        box_of |= dict.fromkeys(names, names[0])
    for name, device in machine.devices.items():
        if device.node and name not in box_of:
            box_of[name] = box_of[stand_in[device.node] + name[len(device.node) :]]
    return boxes, box_of


def _ranks(machine: Machine) -> dict[str, Rank]:
    near: dict[str, list[str]] = {}
    network = set()
    for link in machine.links:
        near.setdefault(link.source, []).append(link.target)
        if link.model.network:
            network.add(link.source)
    switches = {name for name, device in machine.devices.items() if device.kind == "switch"}
    outer = {name for name in switches if name in network or (machine.nodes and not machine.devices[name].node)}
    cpus = [name for name, device in machine.devices.items() if device.kind == "cpu"]
    below = _depths(near, cpus, switches - outer)
    above = _depths(near, [name for name in machine.devices if name not in outer], outer)
    deepest = max(below.values(), default=0)
    ranks: dict[str, Rank] = {}
    for name, device in machine.devices.items():
        if name in outer:
            ranks[name] = (-2, -above.get(name, 1))
        elif name in switches:
            ranks[name] = (0, below[name]) if name in below else (2, 0)
        elif device.kind == "cpu":
            ranks[name] = (0, 0)
        elif device.kind == "gpu":
            ranks[name] = (1, deepest)
        else:
            ranks[name] = (-1, 0)
    return ranks


def _depths(near: Mapping[str, Sequence[str]], start: Sequence[str], through: set[str]) -> dict[str, int]:
    """Return the number of steps from the nearest start device to each device of `through`, over these devices only."""
    depths: dict[str, int] = {}
    front, depth = list(start), 0
    while front:
        depth += 1
        reached = (target for name in front for target in near.get(name, ()))
        front = list(dict.fromkeys(target for target in reached if target in through and target not in depths))
        depths |= dict.fromkeys(front, depth)
    return depths


def _lines(
    machine: Machine, boxes: Mapping[str, DeviceBox], box_of: Mapping[str, str], stand_in: Mapping[str, str]
) -> list[TopologyEdge]:
    lines: dict[tuple[str, str, str, float], TopologyEdge] = {}
    for link in machine.links:
        nodes = [machine.devices[end].node for end in (link.source, link.target)]
        if all(node and stand_in[node] != node for node in nodes):
            continue
        a, b = sorted((box_of[link.source], box_of[link.target]), key=natural)
        if a == b and nodes[0] == nodes[1]:  # between parts drawn as one
            boxes[a].label = boxes[a].label.removesuffix(_LINKED) + _LINKED
            continue
        count = parallel_links(link)
        label = f"{count} × {link.model.label()}" if count > 1 else link.model.label()
        lines.setdefault((a, b, label, link.bandwidth), TopologyEdge(a, b, link.kind, label, link.bandwidth))
    return list(lines.values())


def _near(lines: Iterable[TopologyEdge]) -> dict[str, list[str]]:
    near: dict[str, list[str]] = {}
    for line in lines:
        near.setdefault(line.a, []).append(line.b)
        near.setdefault(line.b, []).append(line.a)
    return near
