"""Does an iteration repeat the one before, so that all later ones will?

An iteration depends on the past only through the latest ops of each queue, name and value. If two
iterations in a row wrote the same ops, and left the same past behind (relative to themselves, or in
absolute terms for what lies before the loop), then the next will be the same again: induction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from hwsim.records import dataclass
from hwsim.workload.thread import Freed, Ref, Snapshot

Row = tuple[int, int, float, int, int, int]  # label, cost, size, time, queue, insert


@dataclass(slots=True)
class Chunk:
    """A stretch of ops: rows, the iteration and the predecessors of each, and the buffers that lose their names in it."""

    rows: list[Row] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    after: list[tuple[Ref, ...]] = field(default_factory=list)
    freed: list[Freed] = field(default_factory=list)


def is_steady(one: Chunk, two: Chunk, before: Snapshot, now: Snapshot, here: int, first: int) -> bool:
    """Whether chunk `here` (two) repeats chunk `here - 1` (one); before, now: what each left behind.

    first: chunk of the loop's first iteration.
    """
    return one.rows == two.rows and _same_past(before, now, here, first) and _same_edges(one, two, here)


def _same_past(before: Snapshot, after: Snapshot, chunk_number: int, first: int) -> bool:
    if before.keys() != after.keys():
        return False
    for key, (chunk, position) in after.items():
        was = before[key]
        shifted = was == (chunk - 1, position) and chunk > first
        unchanged = was == (chunk, position) and chunk < chunk_number - 1
        if not (shifted or unchanged):
            return False
    return True


def _same_edges(first: Chunk, second: Chunk, chunk_number: int) -> bool:
    """Inside the iteration the same; from before the loop nothing new, and only what a queue hands on to later iterations."""
    for row, early, late in zip(second.rows, first.after, second.after, strict=True):
        if _within(early, chunk_number - 1) != _within(late, chunk_number):
            return False
        outside = {ref for ref in late if ref[0] < chunk_number - 1}
        if outside and (row[4] < 0 or not outside <= set(early)):
            return False
    return True


def _within(refs: Iterable[Ref], chunk: int) -> set[int]:
    return {position for number, position in refs if number == chunk}
