"""Animated queues: ops queued on a device, or requests at the banks of a DRAM, the chips of an SSD, the arm of a disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from hwsim.formats import format_quantity
from hwsim.results.cause import HOST
from hwsim.results.requests import RequestTimes
from hwsim.results.result import ISSUING, Result
from hwsim.ticks import FEMTO
from hwsim.views.animate.scene import FOOT, TOP, WIDTH, Knot, NothingMoves, Scene, SceneBox, Token, Words
from hwsim.views.kit.figure import run_caption

SHOWN: Final = 160  # largest number of items
UNITS: Final = 32  # largest number of columns
LEFT: Final = 24.0  # margin (px)


class QueueItem(NamedTuple):
    """An op or request that waits at a unit and is served there.

    Args:
        unit: number of the unit.
        came: arrival (s).
        start, end: start and end of service (s).
        colour: number of the colour.
    """

    unit: int
    came: float
    start: float
    end: float
    colour: int


def ops(result: Result) -> Scene:
    """Return the ops from launch to end, in the queues that the host fills.

    Raises:
        NothingMoves: no op is launched into a queue.
    """
    timeline, labels = result.timeline, result.timeline.flat.graph.labels
    flat = timeline.flat
    is_issue = (
        np.array([label.kind in (*ISSUING, *HOST) for label in labels], np.bool_)[flat.label]
        if len(timeline)
        else np.zeros(0, np.bool_)
    )
    issues = np.flatnonzero(is_issue)
    launched: dict[int, int] = {}
    for issue in issues.tolist():
        for op in _next_ops(flat.first, flat.next, issue, flat.queue):
            if not is_issue[op] and int(flat.queue[op]) >= 0:
                launched[op] = max(launched.get(op, 0), int(timeline.end[issue]))
    if not launched:
        raise NothingMoves("no op of this run is launched into a queue: the workload needs a `runtime:`, without `workers`")
    queues = sorted({int(flat.queue[op]) for op in launched})[:UNITS]
    unit = {queue: number for number, queue in enumerate(queues)}
    names = list(dict.fromkeys(labels[flat.label[op]].name for op in launched))
    items = [
        QueueItem(unit[int(flat.queue[op])], came / FEMTO, int(timeline.start[op]) / FEMTO, int(timeline.end[op]) / FEMTO,
             names.index(labels[flat.label[op]].name) % 8)
        for op, came in launched.items() if int(flat.queue[op]) in unit
    ]  # fmt: skip
    called = [flat.graph.queues[queue].name for queue in queues]
    return scene(result, items, called, "launches in one queue", names)


def _next_ops(first: np.ndarray, follow: np.ndarray, op: int, queue: np.ndarray) -> list[int]:
    """Return queued ops that wait for an op, directly or through joins without a queue."""
    reached, todo = list[int](), [op]
    while todo:
        joint = todo.pop()
        for after in follow[first[joint] : first[joint + 1]].tolist():
            if int(queue[after]) >= 0:
                reached.append(after)
            elif len(reached) + len(todo) < 64:
                todo.append(after)
    return reached


def requests(result: Result) -> Scene:
    """Return the requests of a device that is simulated request by request, each at its bank or chip.

    Raises:
        NothingMoves: no device is simulated request by request.
    """
    row = next((row for row in result.requests if row.times is not None), None)
    if row is None or row.times is None:
        raise NothingMoves("no part of this run is simulated request by request: name one with --requests")
    times: RequestTimes = row.times
    used = np.unique(times.unit)[:UNITS].tolist()
    unit = {number: index for index, number in enumerate(used)}
    columns = np.stack([times.issued, times.start, times.finish], axis=1).tolist()
    items = [
        QueueItem(unit[where], came, start, end, where % 8)
        for where, (came, start, end) in zip(times.unit.tolist(), columns, strict=True)
        if where in unit
    ]
    called = [f"{times.called} {number}" for number in used]
    return scene(result, items, called, f"requests at one {times.called} of {row.device}", ())


def scene(result: Result, items: Sequence[QueueItem], units: Sequence[str], things: str, names: Sequence[str]) -> Scene:
    """Return items stacked in columns, the next one to be served at the bottom; a stack falls as items leave."""
    ordered = sorted(items, key=lambda item: (item.came, item.end))
    shown = ordered[:SHOWN]
    begin = shown[0].came
    end = ordered[SHOWN].came if len(ordered) > SHOWN else max(item.end for item in shown)
    stacks = [sorted((item for item in shown if item.unit == number), key=lambda item: item.end) for number in range(len(units))]
    highest = max(_most(stack) for stack in stacks)
    pitch = (WIDTH - 2 * LEFT) / len(units)
    wide, high = min(46.0, 0.72 * pitch), min(26.0, (FOOT - TOP - 70.0) / (highest + 1))
    foot = FOOT - 34.0
    tokens, waits = list[Token](), list[float]()
    for number, stack in enumerate(stacks):
        x = LEFT + (number + 0.5) * pitch - wide / 2
        for place, item in enumerate(stack):
            served = _served(stack, place)
            waits.append(served - item.came)
            tokens.append(Token(_falls(stack, place, x, foot, high), wide, 0.86 * high, item.colour, (served, item.end)))
    boxes = [
        SceneBox(LEFT + (number + 0.5) * pitch - wide / 2 - 3, foot - high - 1, wide + 6, high + 4)
        for number in range(len(units))
    ]
    named = [
        Words(LEFT + (number + 0.5) * pitch, foot + 18, name, 12.0, "middle") for number, name in enumerate(_short(units, pitch))
    ]
    words = [Words(WIDTH - LEFT, TOP + 8, "pale: waiting; filled: being served", 12.0, "end", soft=True)]
    left = LEFT
    for colour, name in enumerate(names[:4]):
        boxes.append(SceneBox(left, TOP + 9, 13, 11, colour=colour))
        words.append(Words(left + 18, TOP + 19, name, 12.0))
        left += 34 + 7.4 * len(name)
    title = f"Up to {highest} {things}; longest wait {format_quantity(max(waits), 's')}"
    count = f"the first {len(shown):,} of {len(items):,}" if len(items) > len(shown) else ""
    below = run_caption(result.workload, result.machine, result.settings, count)
    return Scene(title, below, begin, end, tuple(boxes), (*named, *words), tuple(tokens), names=tuple(names[:8]))


def _falls(stack: Sequence[QueueItem], place: int, x: float, foot: float, high: float) -> tuple[Knot, ...]:
    """Return the path of an item in its stack, which is sorted by departure: it moves down when a lower item leaves."""
    item = stack[place]
    below = [other for other in stack[:place] if other.end > item.came and other.came < item.end]
    level = sum(other.came <= item.came for other in below)  # count
    changes = sorted([(other.end, -1) for other in below] + [(other.came, 1) for other in below if other.came > item.came])
    knots = [Knot(item.came, x, foot - (level + 1) * high)]
    for time_s, change in changes:
        knots.append(Knot(time_s, x, foot - (level + 1) * high))
        level += change
        knots.append(Knot(time_s, x, foot - (level + 1) * high))
    return (*knots, Knot(item.end, x, foot - (level + 1) * high))


def _served(stack: Sequence[QueueItem], place: int) -> float:
    """Return the time from which an item is the only one in service: after its start and the departure of earlier ones."""
    item = stack[place]
    ahead = [other.end for other in stack[:place] if other.end <= item.end]
    return min(item.end, max([item.start, *ahead]))


def _most(stack: Sequence[QueueItem]) -> int:
    """Return the largest number of items present at once."""
    changes = sorted([(item.came, 1) for item in stack] + [(item.end, -1) for item in stack])
    return max(np.cumsum([change for _, change in changes]).tolist(), default=0)


def _short(names: Sequence[str], pitch: float) -> list[str]:
    """Return the names in full if they fit, else their last words."""
    if all(7.2 * len(name) < pitch for name in names):
        return list(names)
    return [name.rpartition(" ")[2].rpartition(".")[2] if pitch > 14 else "" for name in names]
