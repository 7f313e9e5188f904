"""A collective whose steps repeat, written out send by send in columns.

In a course each step waits for the step before it as the next one does. So `hwsim.workload.stepping.steps` writes the first two
steps of each course, and all later steps are the second one, moved on. Predecessors that others imply are left out: a send waits
for an arrival only if none of its other predecessors has, and a rank leaves after the sends that no send of its own waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from hwsim.graph.builder import GraphBuilder
from hwsim.workload.statements import Course, SendColumns, Sends, Step
from hwsim.workload.stepping import Turn, steps

_SEEN: Final = 2  # steps of a course that are looked at


def columns(sends: Sends, turns: Sequence[Turn], builder: GraphBuilder) -> SendColumns:
    """All sends. turns: one for each course."""
    seen = steps([_seen(*each) for each in zip(turns, sends.courses, strict=True)], sends.pieces)
    full = np.empty(len(seen), np.int32)  # by send seen its place among all; of a second step, the place in the last one
    firsts: list[int] = []  # sends seen that are in the first step of a course
    stretches = list(_stretches(turns, sends))
    count = sum(each.many * each.width for each in stretches)  # integers
    total = sum(each.many * sum(len(row.after) for row in each.of(seen)) for each in stretches)  # integers
    label, cost, edges = np.empty(count, np.int32), np.empty(count, np.int32), np.zeros((total, 3), np.int32)  # a run has fewer
    base = number = done = 0
    for stretch in stretches:
        low, width, many, course, is_first = stretch
        rows = stretch.of(seen)
        firsts += range(low, low + width) if is_first else ()
        full[low : low + width] = np.arange(width) + (base + (many - 1) * width)
        names = [f"{sends.name}: step {number + each}" for each in range(many)]
        labels = builder.label_grid(names, sends.kind, _devices(course), sends.program)
        label[base : base + many * width].reshape(many, width)[:] = labels[:, [row.label for row in rows]]
        cost[base : base + many * width].reshape(many, width)[:] = [row.cost for row in rows]
        pairs = sorted((earlier, place) for place, row in enumerate(rows) for earlier in row.after)
        before, after = np.array(pairs, np.int32).reshape(-1, 2).T
        before = full[before] if is_first else before + (base - low)
        shifted = np.arange(many, dtype=np.int32)[:, None] * width
        written = edges[done : done + many * len(pairs)].reshape(many, len(pairs), 3)
        np.add(shifted, before, out=written[:, :, 0])
        np.add(shifted, after + base, out=written[:, :, 1])
        base, number, done = base + many * width, number + many, done + many * len(pairs)
    return SendColumns(
        label=label,
        cost=cost,
        edges=edges,
        begins=tuple((int(full[place]), ranks) for place in firsts if (ranks := _awaited(seen, place))),
        ends={rank: tuple(full[places].tolist()) for rank, places in _last(seen).items()},
    )


class _Stretch(NamedTuple):
    """A step that is seen, `width` sends from `low` on, and how many steps of its course are like it."""

    low: int
    width: int
    many: int
    course: Course
    is_first: bool

    def of(self, seen: Sequence[Step]) -> Sequence[Step]:
        return seen[self.low : self.low + self.width]


def _stretches(turns: Sequence[Turn], sends: Sends) -> Iterator[_Stretch]:
    low = 0
    for turn, course in zip(turns, sends.courses, strict=True):
        width = len(turn.ways) * sends.pieces
        for step in range(min(turn.times, _SEEN)):
            yield _Stretch(low, width, 1 if step == 0 else turn.times - 1, course, step == 0)
            low += width


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
