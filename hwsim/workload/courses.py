"""A collective whose steps repeat, written out send by send in columns.

In a course each step waits for the step before it as the next one does. So `hwsim.workload.stepping.steps` writes the first two
steps of each course, and all later steps are the second one, moved on. Predecessors that others imply are left out: a send waits
for an arrival only if none of its other predecessors has, and a rank leaves after the sends that no send of its own waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from hwsim.graph.builder import GraphBuilder
from hwsim.workload.statements import Course, SendColumns, Sends, Step
from hwsim.workload.stepping import Turn, steps

_SEEN: Final = 2  # steps of a course that are looked at


def columns(sends: Sends, turns: Sequence[Turn], builder: GraphBuilder) -> SendColumns:
    """All sends. turns: one for each course."""
    seen = steps([_seen(*each) for each in zip(turns, sends.courses, strict=True)], sends.pieces)
    label, cost, edges = [], [], []
    full = np.empty(len(seen), np.int32)  # by send seen its place among all; of a second step, the place in the last one
    firsts: list[int] = []  # sends seen that are in the first step of a course
    low = base = number = 0
    for turn, course in zip(turns, sends.courses, strict=True):
        width = len(turn.ways) * sends.pieces
        firsts += range(low, low + width)
        for step in range(min(turn.times, _SEEN)):
            rows, many = seen[low : low + width], 1 if step == 0 else turn.times - 1
            full[low : low + width] = np.arange(width) + (base + (many - 1) * width)
            names = [f"{sends.name}: step {number + each}" for each in range(many)]
            labels = builder.label_grid(names, sends.kind, _devices(course), sends.program)
            label.append(labels[:, [row.label for row in rows]].astype(np.int32).ravel())
            cost.append(np.tile(np.array([row.cost for row in rows], np.int32), many))
            pairs = sorted((earlier, place) for place, row in enumerate(rows) for earlier in row.after)
            before, after = np.array(pairs, np.int32).reshape(-1, 2).T
            before = full[before] if step == 0 else before + (base - low)
            rows_of_edges = np.zeros((many, len(pairs), 3), np.int32)  # fits: a run has fewer sends
            rows_of_edges[:, :, :2] = np.stack([before, after + base], axis=1)
            rows_of_edges[:, :, :2] += np.arange(many, dtype=np.int32)[:, None, None] * width
            edges.append(rows_of_edges.reshape(-1, 3))
            low, base, number = low + width, base + many * width, number + many
    return SendColumns(
        label=np.concatenate(label),
        cost=np.concatenate(cost),
        edges=np.concatenate(edges),
        begins=tuple((int(full[place]), ranks) for place in firsts if (ranks := _awaited(seen, place))),
        ends={rank: tuple(full[places].tolist()) for rank, places in _last(seen).items()},
    )


def _devices(course: Course) -> tuple[str, ...]:
    return tuple(dict.fromkeys(leg.device for leg in course.legs))


def _seen(turn: Turn, course: Course) -> Turn:
    """The first steps of a turn; its sends have the place of their device for a label."""
    place = {device: number for number, device in enumerate(_devices(course))}
    ways = [replace(way, label=partial(_place, place[leg.device])) for way, leg in zip(turn.ways, course.legs, strict=True)]
    return replace(turn, ways=tuple(ways), times=min(turn.times, _SEEN))


def _place(place: int, _number: int) -> int:
    return place


def _awaited(seen: Sequence[Step], place: int) -> tuple[int, ...]:
    """Ranks whose arrival a send waits for, and none of its predecessors does."""
    implied = {rank for earlier in seen[place].after for rank in seen[earlier].begins}
    return tuple(rank for rank in seen[place].begins if rank not in implied)


def _last(seen: Sequence[Step]) -> dict[int, list[int]]:
    """By rank its sends that none of its sends waits for."""
    last: dict[int, dict[int, None]] = {}
    for place, send in enumerate(seen):
        for rank in send.ends:
            mine = last.setdefault(rank, {})
            for earlier in send.after:
                mine.pop(earlier, None)
            mine[place] = None
    return {rank: list(places) for rank, places in last.items()}
