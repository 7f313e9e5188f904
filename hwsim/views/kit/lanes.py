"""Rows of ops in a figure: one per queue; ops without a queue have as many rows per device as run concurrently."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from hwsim.formats import natural
from hwsim.graph.opgraph import Floats, Ints
from hwsim.records import dataclass
from hwsim.results.embedded_collectives import collective_fractions
from hwsim.results.result import Result


@dataclass(frozen=True)
class OpLane:
    """Ops in order of time that never overlap.

    Args:
        device: name of the device.
        name: name of the row.
        ops: op numbers.
        kind: kind of the queue; "" without a queue.
    """

    device: str
    name: str
    ops: Ints
    kind: str = ""


def lanes(result: Result) -> tuple[OpLane, ...]:
    """Return the rows by device in natural order: queues, then ops without a queue. Each op with a device is in one row."""
    timeline = result.timeline
    flat = timeline.flat
    ops, begin = result.ops.numbers, result.ops.begin
    # A transfer may be in the queue of another device than its label: the queue decides.
    devices = {name: number for number, name in enumerate(dict.fromkeys(_devices(result)))}
    of_label = np.array([devices.get(label.device, -1) for label in flat.graph.labels], np.int64)
    of_queue = np.array([*(devices[queue.device] for queue in flat.graph.queues), -1], np.int64)
    queue = flat.queue[ops]
    device = np.where(queue >= 0, of_queue[queue], of_label[flat.label[ops]])
    order = np.lexsort((ops, queue, device))
    ops, queue, device = ops[order], queue[order], device[order]
    cuts = np.flatnonzero((queue[1:] != queue[:-1]) | (device[1:] != device[:-1])) + 1
    names = list(devices)
    rows = []
    for part in np.split(np.arange(len(ops)), cuts) if len(ops) else []:
        place = names[int(device[part[0]])]
        line = int(queue[part[0]])
        members = ops[part]
        members = members[np.lexsort((members, timeline.end[members], begin[members]))]
        if line >= 0:
            rows.append(OpLane(place, flat.graph.queues[line].name, members, flat.graph.queues[line].kind))
        else:
            levels = np.array(_levels(begin[members].tolist(), timeline.end[members].tolist()), np.int64)  # count
            by_row = np.argsort(levels, kind="stable")
            firsts = np.flatnonzero(np.diff(levels[by_row])) + 1
            for number, row in enumerate(np.split(members[by_row], firsts)):
                rows.append(OpLane(place, "unqueued" if number == 0 else f"unqueued {number + 1}", row))
    return tuple(sorted(rows, key=lambda lane: (natural(lane.device), lane.name.startswith("unqueued"), natural(lane.name))))


def spent_by(result: Result, called: Sequence[str]) -> dict[str, float]:
    """Return the total time of all ops by name (fs), of names with any.

    Args:
        result: result.
        called: name in the figure of each label.
    """
    timeline, ops = result.timeline, result.ops.numbers
    labels = timeline.flat.graph.labels
    took = (timeline.end[ops] - result.ops.begin[ops]).astype(np.float64)
    per_label = np.bincount(timeline.flat.label[ops], weights=took, minlength=len(labels))
    spent: dict[str, float] = {}
    for label, name, time in zip(labels, called, per_label.tolist(), strict=True):
        if label.device and time:
            spent[name] = spent.get(name, 0.0) + time
    return spent


def inside(result: Result, ops: Ints) -> Floats:
    """Return the fraction of each op in which it waits for a collective inside it."""
    return collective_fractions(result.timeline, result.timeline.flat.graph.trainings, ops)


def _devices(result: Result) -> list[str]:
    graph = result.timeline.flat.graph
    return [*(queue.device for queue in graph.queues), *(label.device for label in graph.labels if label.device)]


def _levels(starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Return the lowest free row of each interval, in order of start."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    rows = []
    row_count = 0
    for start, end in zip(starts, ends, strict=True):
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if free:
            row = heappop(free)
        else:
            row, row_count = row_count, row_count + 1
        rows.append(row)
        heappush(busy, (end, row))
    return rows
