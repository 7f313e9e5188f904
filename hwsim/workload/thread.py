"""State of one program at a point of it: the latest ops of each queue, name and value; and whether a loop repeats.

An iteration depends on the past only through the latest ops of each queue, name and value. If two iterations in a row wrote the
same ops, and left the same past behind (relative to themselves, or in absolute terms for what lies before the loop), then the
next will be the same again: induction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from hwsim.records import dataclass
from hwsim.workload.statements import PlacedOp

Ref = tuple[int, int]  # (chunk, position): in the order of issue
Row = tuple[int, int, float, int, int, int]  # label, cost, size, time, queue, insert
Snapshot = dict[tuple[object, ...], Ref]
_NEVER: Final[Ref] = (-1, -1)


@dataclass(frozen=True, slots=True)
class Bound:
    """The buffer a name means: taken when `ref` starts, `bytes` of `memory`, made by the op called `op`; `inner`: of a
    compiled body, which gives it back at its last use."""

    ref: Ref
    bytes: int
    memory: str
    op: str
    inner: bool = False


@dataclass(frozen=True, slots=True)
class Freed:
    """A buffer that its name no longer means once `renamed` starts (None: the program ended before), and who used it."""

    value: str
    bound: Bound
    users: tuple[Ref, ...]
    renamed: Ref | None


@dataclass(slots=True)
class Thread:
    """One program as it is written out."""

    host: int  # its queue
    last: dict[int, Ref] = field(default_factory=dict)  # queue -> latest op
    writer: dict[str, Ref] = field(default_factory=dict)
    readers: dict[str, dict[int, Ref]] = field(default_factory=dict)  # value -> queue -> latest reader since it was written
    named: dict[str, Ref] = field(default_factory=dict)
    pieces: dict[str, tuple[Ref, ...]] = field(default_factory=dict)  # of the latest op of a name that came in pieces
    awaited: dict[int, Ref] = field(default_factory=dict)  # queue -> latest op known to have ended
    sent: dict[str, list[Ref]] = field(default_factory=dict)  # device -> sends to it that were not received yet
    bound: dict[str, Bound] = field(default_factory=dict)  # value -> its buffer, where its size is known
    gate: Ref | None = None  # what all later ops start after
    inserted: Ref | None = None
    hosted: Ref | None = None  # latest op of the thread itself

    def needs(self, op: PlacedOp) -> Iterator[Ref]:
        """Ops that an op starts after, by its values and names."""
        for value in (*op.reads, *op.updates):
            if (writer := self.writer.get(value)) is not None:
                yield writer
        for value in op.updates:
            yield from self.readers.get(value, {}).values()
        for name in op.after:
            if (earlier := self.named.get(name)) is not None:
                yield earlier

    def issued(self, op: PlacedOp, ref: Ref) -> None:
        """Take note of an op just written."""
        self.last[op.queue] = ref
        for name in op.names:
            self.named[name] = ref
        for value in op.reads:
            self.readers.setdefault(value, {})[op.queue] = ref
        for value in (*op.writes, *op.updates):
            self.writer[value] = ref
            self.readers.pop(value, None)

    def users(self, value: str) -> tuple[Ref, ...]:
        """The latest op of each queue that has read or written a value since it was made."""
        writer = self.writer.get(value)
        return tuple(self.readers.get(value, {}).values()) + (() if writer is None else (writer,))

    def not_awaited(self, wanted: Iterable[tuple[int, Ref]]) -> dict[int, Ref]:
        """Latest op for each queue among (queue, op), where this program does not know to have ended."""
        pending: dict[int, Ref] = {}
        for queue, ref in wanted:
            if ref > max(self.awaited.get(queue, _NEVER), pending.get(queue, _NEVER)):
                pending[queue] = ref
        return pending

    def snapshot(self) -> Iterator[tuple[tuple[object, ...], Ref]]:
        """The whole state by key, to be compared with the state after another iteration."""
        for kind, table in (("last", self.last), ("awaited", self.awaited)):
            for queue, ref in table.items():
                yield (kind, queue), ref
        for kind, names in (("writer", self.writer), ("named", self.named)):
            for name, ref in names.items():
                yield (kind, name), ref
        for name, bound in self.bound.items():
            yield ("bound", name), bound.ref
        for name, pieces in self.pieces.items():
            for number, ref in enumerate(pieces):
                yield ("piece", name, number), ref
        for device, sends in self.sent.items():
            for number, ref in enumerate(sends):
                yield ("sent", device, number), ref
        for value, readers in self.readers.items():
            for queue, ref in readers.items():
                yield ("reader", value, queue), ref
        for kind, ref_of_kind in (("gate", self.gate), ("inserted", self.inserted), ("hosted", self.hosted)):
            if ref_of_kind is not None:
                yield (kind,), ref_of_kind


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
