"""State of one program during emission (the latest ops of each queue, name and value), and detection of a steady loop.

An iteration depends on earlier ops only through this state. If two successive iterations emit the same ops and leave the same
state (relative to the iteration, or absolute for ops before the loop), then all later iterations are the same, by induction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Final

from hwsim.records import dataclass
from hwsim.workload.statements import PlacedOp

Ref = tuple[int, int]  # (chunk, position), in order of issue
Row = tuple[int, int, float, int, int, int, int]  # label, cost, size, time, queue, insert, pool
Snapshot = dict[tuple[object, ...], Ref]
_NEVER: Final[Ref] = (-1, -1)


def line_of_pool(pool: int) -> int:
    """Return the key of a pool in tables that are otherwise by queue."""
    return -2 - pool


@dataclass(frozen=True, slots=True)
class NamedBuffer:
    """A buffer with a name.

    Args:
        ref: op at whose start the buffer is allocated.
        bytes: size of the buffer.
        memory: device in whose memory the buffer is.
        op: name of the op that writes it.
        inner: whether the buffer is temporary in a compiled body, which frees it after its last use.
    """

    ref: Ref
    bytes: int
    memory: str
    op: str
    inner: bool = False


@dataclass(frozen=True, slots=True)
class ReleasedBuffer:
    """A buffer that loses its name.

    Args:
        value: name of the buffer.
        users: ops that use the buffer.
        renamed: op at whose start the name refers to another buffer; None: the program ends before.
    """

    value: str
    bound: NamedBuffer
    users: tuple[Ref, ...]
    renamed: Ref | None


@dataclass(slots=True)
class ThreadState:
    """The state of one program during emission."""

    host: int  # queue of the thread
    last: dict[int, Ref] = field(default_factory=dict)  # queue -> latest op; pool -> join of all its ops
    writer: dict[str, Ref] = field(default_factory=dict)
    # value -> queue -> latest reader since it was written; pool -> join of its readers
    readers: dict[str, dict[int, Ref]] = field(default_factory=dict)
    named: dict[str, Ref] = field(default_factory=dict)
    pieces: dict[str, tuple[Ref, ...]] = field(default_factory=dict)  # name -> pieces of its latest op in pieces
    awaited: dict[int, Ref] = field(default_factory=dict)  # queue or pool -> op known to have ended with all ops before
    met: dict[int, Ref] = field(default_factory=dict)  # pool -> latest op known to have ended, perhaps before earlier ones
    sent: dict[str, list[Ref]] = field(default_factory=dict)  # device -> unreceived sends to it
    bound: dict[str, NamedBuffer] = field(default_factory=dict)  # value -> its buffer, if its size is known
    gate: Ref | None = None  # predecessor of all later ops
    inserted: Ref | None = None
    hosted: Ref | None = None  # latest op of the thread itself

    def needs(self, op: PlacedOp) -> Iterator[Ref]:
        """Yield the predecessors of an op by its values and names."""
        for value in (*op.reads, *op.updates):
            if (writer := self.writer.get(value)) is not None:
                yield writer
        for value in op.updates:
            yield from self.readers.get(value, {}).values()
        for name in op.after:
            if (earlier := self.named.get(name)) is not None:
                yield earlier

    def issued(self, op: PlacedOp, ref: Ref, joined: Callable[[Ref | None], Ref]) -> None:
        """Update the state after an op was emitted.

        Args:
            joined: function from an earlier op to an op after whose end both it and the new op have ended.
        """
        line = op.queue if op.pool < 0 else line_of_pool(op.pool)
        self.last[line] = joined(self.last.get(line))
        for name in op.names:
            self.named[name] = ref
        for value in op.reads:
            readers = self.readers.setdefault(value, {})
            readers[line] = joined(readers.get(line))
        for value in (*op.writes, *op.updates):
            self.writer[value] = ref
            self.readers.pop(value, None)

    def users(self, value: str) -> tuple[Ref, ...]:
        """Return the latest op of each queue that has used a value since it was written."""
        writer = self.writer.get(value)
        return tuple(self.readers.get(value, {}).values()) + (() if writer is None else (writer,))

    def await_ops(self, wanted: Iterable[tuple[int, Ref]]) -> list[Ref]:
        """Return the ops among pairs (queue or pool, op) that are not known to have ended, and note that they have from now on.

        Of a queue, only the latest op is returned.
        """
        pending: dict[object, Ref] = {}
        for line, ref in wanted:
            if ref <= self.awaited.get(line, _NEVER):
                continue
            is_pool = line < -1
            if not is_pool or self.last.get(line) == ref:
                self.awaited[line] = ref
            if not is_pool or self.met.get(line) != ref:
                pending[ref if is_pool else line] = ref
            if is_pool:
                self.met[line] = ref
        return list(pending.values())

    def snapshot(self) -> Iterator[tuple[tuple[object, ...], Ref]]:
        """Yield the state as (key, op) pairs, for comparison with the state after another iteration."""
        for kind, table in (("last", self.last), ("awaited", self.awaited), ("met", self.met)):
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
    """A sequence of ops.

    Args:
        rows: data of each op.
        turns: iteration of each op.
        after: predecessors of each op.
        freed: buffers that lose their names in the chunk.
    """

    rows: list[Row] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    after: list[tuple[Ref, ...]] = field(default_factory=list)
    freed: list[ReleasedBuffer] = field(default_factory=list)


def is_steady(one: Chunk, two: Chunk, before: Snapshot, now: Snapshot, here: int, first: int) -> bool:
    """Return whether chunk `here` (`two`) repeats chunk `here - 1` (`one`).

    Args:
        before, now: state after each of the two chunks.
        first: chunk of the loop's first iteration.
    """
    return one.rows == two.rows and _same_past(before, now, here, first) and _same_edges(one, two, here)


def _same_past(before: Snapshot, after: Snapshot, chunk_number: int, first: int) -> bool:
    if before.keys() != after.keys():
        return False
    for key, (chunk, position) in after.items():
        earlier = before[key]
        is_shifted = earlier == (chunk - 1, position) and chunk > first
        is_unchanged = earlier == (chunk, position) and chunk < chunk_number - 1
        if not (is_shifted or is_unchanged):
            return False
    return True


def _same_edges(first: Chunk, second: Chunk, chunk_number: int) -> bool:
    """Whether edges inside the iteration are equal, and no edge from before the loop is new or leads to an op without a queue."""
    for row, early, late in zip(second.rows, first.after, second.after, strict=True):
        if _within(early, chunk_number - 1) != _within(late, chunk_number):
            return False
        outside = {ref for ref in late if ref[0] < chunk_number - 1}
        if outside and (row[4] < 0 or not outside <= set(early)):
            return False
    return True


def _within(refs: Iterable[Ref], chunk: int) -> set[int]:
    return {position for number, position in refs if number == chunk}
