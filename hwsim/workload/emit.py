"""Statements of programs are written out as ops, each with the ops that it starts after.

Programs are written out iteration by iteration, but only until an iteration repeats the one before
(see `steady`); the rest of the loop is that iteration again.

Rules:
- values: `reads` wait for the last writer; `writes` make a new buffer and wait for nothing; `updates`
  wait for the last writer and for everyone who has read since.
- without a runtime, issuing is free; a wait is a join, and all that is issued after it starts after it.
- with one, each op is issued on the program's thread, then inserted into its queue (a join); only
  then does the thread go on. A wait is an op of the thread, unless all it asks for was awaited before.
- a compiled body costs the thread one call; its ops are inserted one after another, with `issue` of the thread for each.
- a value is fetched without being issued: a copy where it lies in a GPU's memory, then the return of the thread.
- a buffer is taken when its op is inserted (without a runtime, and in a compiled body: when the op starts); see
  `results.memory` for its end.
- an op of the same queue is never named as a predecessor: the queue is in order anyway. So of the
  ops of one queue only the latest ever counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Final

from hwsim.graph.opgraph import Freeing
from hwsim.records import dataclass
from hwsim.spec import SpecError
from hwsim.spec.limits import refuse_beyond
from hwsim.workload.statements import (
    Barrier,
    Call,
    Collective,
    Fetch,
    Issue,
    PlacedOp,
    Receive,
    Repeat,
    Statement,
    Wait,
)
from hwsim.workload.thread import Bound, Chunk, Freed, Ref, Row, Snapshot, Thread, is_steady

LIMIT: Final = 1_000_000  # ops of a body that is written out
_PATIENCE: Final = 8  # iterations that may differ before a loop is written out


@dataclass(frozen=True, slots=True)
class Loop:
    """Chunk `first` is the first pass of a block of `times`, chunk `first + 1` any later one.

    turns: iterations of a pass.
    """

    first: int
    times: int
    turns: int


@dataclass(frozen=True, slots=True)
class HostTime:
    """Cost of something to the threads: indices of costs (one per rank, -1 for none) and own time in fs."""

    cost: tuple[int, ...]
    time: int

    def of(self, rank: int) -> tuple[int, int]:
        """(cost, time) of a rank's op; the time is the op's own where no device is busy with it."""
        return self.cost[rank], 0 if self.cost[rank] >= 0 else self.time


@dataclass(frozen=True, slots=True)
class HostRuntime:
    """Time that the threads of a program spend on issuing an op (alone, of a layer, of a compiled body), returning from a wait,
    calling and compiling a body.  free: when its buffers are given back."""

    dispatch: HostTime
    layer: HostTime
    issue: HostTime
    back: HostTime
    call: HostTime
    compile: HostTime
    bounded: bool  # whether its queues have a depth
    free: Freeing


@dataclass(slots=True)
class _Frame:
    """A repeat that is being written out: the ops of each name, for the iterations a wait can still ask for."""

    repeat: Repeat
    iterations: list[dict[tuple[int, str], Ref]] = field(default_factory=list)

    def begin(self) -> None:
        self.iterations.append({})
        del self.iterations[: -1 - self.repeat.reach]


class Emitter:
    """Writes out the programs of one `each` (or the only program) side by side."""

    def __init__(
        self,
        hosts: Sequence[int],
        runtime: HostRuntime | None,
        shared: frozenset[str] = frozenset(),
        *,
        writes_out: bool = False,
        receives: bool = False,
    ) -> None:
        """hosts: queue of each rank's thread.  shared: barriers that other groups of programs name too.

        Args:
            writes_out: loops with shared barriers are written out, iteration by iteration.
            receives: the programs receive what they send each other.
        """
        self.chunks: list[Chunk] = [Chunk()]
        self.loops: dict[int, Loop] = {}  # by each of their two chunks
        self.barriers: dict[str, list[tuple[int, int, int]]] = {}  # name -> (chunk, arrival, release)
        self._threads = [Thread(host) for host in hosts]
        self._runtime = runtime
        self._shared = shared
        self._writes_out = writes_out
        self._receives = receives
        self._frames: list[_Frame] = []
        self._turn = 0  # number of the iteration that is being written, of the outermost loop that runs often
        self._compiled: set[int] = set()
        self._leaving: dict[int, tuple[Freed, ...]] = {}  # per rank, of an op whose last piece is still to come

    @property
    def free(self) -> Freeing:
        """When buffers are given back."""
        return self._runtime.free if self._runtime is not None else "last-use"

    def begin(self, labels: Sequence[int], time: int) -> None:
        """Before the first statement: the threads start only then (fs)."""
        for label, thread in zip(labels, self._threads, strict=True):
            if self._runtime is None:
                thread.gate = self._add((label, -1, 1.0, time, -1, -1), [])
            else:
                thread.hosted = self._add((label, -1, 1.0, time, thread.host, -1), [])

    def finish(self) -> None:
        """After the last statement: the buffers that names still mean."""
        for thread in self._threads:
            for value, bound in thread.bound.items():
                self.chunks[-1].freed.append(Freed(value, bound, thread.users(value), None))

    def run(self, body: Sequence[Statement]) -> None:
        """Write out statements that run once."""
        for statement in body:
            if isinstance(statement, Repeat):
                self._loop(statement)
            else:
                self._emit(statement)

    def shape(self, barrier: str) -> tuple[tuple[int, int], ...]:
        """(meetings in a block, times the block runs) in program order; blocks that run once are not distinguished."""
        counts: list[tuple[int, int]] = []
        for chunk, meetings in groupby(self.barriers.get(barrier, ()), key=lambda each: each[0]):
            count, loop = len(list(meetings)), self.loops.get(chunk)
            if loop is None:
                counts += [(1, 1)] * count
            elif loop.first == chunk:
                counts.append((count, loop.times))
        return tuple(counts)

    def meetings(self, barrier: str) -> int:
        """Number of times that the programs reach a barrier."""
        return sum(count * times for count, times in self.shape(barrier))

    # ---- loops

    def _loop(self, repeat: Repeat) -> None:
        if repeat.times == 0:
            return
        frame = _Frame(repeat)
        self._frames.append(frame)
        if repeat.times == 1:
            frame.begin()
            self.run(repeat.body)
        else:
            self._many(repeat, frame)
            self._turn = 0
        self._frames.pop()

    def _many(self, repeat: Repeat, frame: _Frame) -> None:
        shared = bool(repeat.barriers & self._shared)
        unroll = max(1, repeat.reach)
        _refuse_above(LIMIT, repeat, unroll)
        if shared and self._writes_out:
            _refuse_above(LIMIT, repeat, repeat.times)
            self._turns(repeat, frame, repeat.times)
            return
        self._turns(repeat, frame, repeat.times % unroll)
        copies = repeat.times // unroll
        first = len(self.chunks)
        before: Snapshot = {}
        for number in range(copies):
            chunk = self._next_chunk()
            self._turns(repeat, frame, unroll)
            after = {(rank, *key): ref for rank, thread in enumerate(self._threads) for key, ref in thread.snapshot()}
            if number and is_steady(self.chunks[chunk - 1], self.chunks[chunk], before, after, chunk, first):
                self.loops[chunk - 1] = self.loops[chunk] = Loop(chunk - 1, copies - number + 1, unroll)
                break
            before = after
            if number == _PATIENCE:  # no program is known that gets here; it is still simulated as it stands
                _refuse_above(LIMIT, repeat, repeat.times)
                self._next_chunk()
                self._turns(repeat, frame, (copies - number - 1) * unroll)
                break
        self._next_chunk()

    def _turns(self, repeat: Repeat, frame: _Frame, times: int) -> None:
        """Write out the next iterations of a loop that runs often."""
        for _ in range(times):
            self._iterate(repeat, frame, 1)
            self._turn += 1

    def _iterate(self, repeat: Repeat, frame: _Frame, times: int) -> None:
        """Write out iterations where they stand, inner repeats and all."""
        for _ in range(times):
            frame.begin()
            for statement in repeat.body:
                if not isinstance(statement, Repeat):
                    self._emit(statement)
                elif statement.times:
                    inner = _Frame(statement)
                    self._frames.append(inner)
                    self._iterate(statement, inner, statement.times)
                    self._frames.pop()

    def _next_chunk(self) -> int:
        self.chunks.append(Chunk())
        return len(self.chunks) - 1

    # ---- statements

    def _emit(self, statement: Issue | Fetch | Collective | Call | Wait | Barrier | Receive) -> None:
        match statement:
            case Issue(ops=ops):
                self._issue(ops)
            case Collective():
                self._collective(statement)
            case Fetch(ops=ops):
                for rank, (op, thread) in enumerate(zip(ops, self._threads, strict=True)):
                    self._fetch(rank, op, thread)
            case Call(number=number, labels=labels) if self._runtime is not None:
                for rank, (thread, (compiling, calling)) in enumerate(zip(self._threads, labels, strict=True)):
                    if number not in self._compiled and self._runtime.compile.time:
                        self._host(rank, thread, compiling, self._runtime.compile, ())
                    self._host(rank, thread, calling, self._runtime.call, ())
                self._compiled.add(number)
            case Wait():
                for rank, thread in enumerate(self._threads):
                    self._wait(rank, thread, self._awaited_by(rank, thread, statement), statement.labels[rank])
            case Receive():
                for rank, thread in enumerate(self._threads):
                    self._wait(rank, thread, [self._received(rank, statement)], statement.labels[rank])
            case Barrier():
                self._barrier(statement)

    def _add(self, row: Row, after: Iterable[Ref | None]) -> Ref:
        chunk = self.chunks[-1]
        chunk.rows.append(row)
        chunk.turns.append(self._turn)
        chunk.after.append(tuple(dict.fromkeys(ref for ref in after if ref is not None)))
        return len(self.chunks) - 1, len(chunk.rows) - 1

    def _issue(self, ops: tuple[PlacedOp, ...]) -> None:
        """Position by position, at each of them rank by rank."""
        refuse_beyond("ops", sum(op.pieces for op in ops))
        ranked = list(zip(range(len(ops)), ops, self._threads, strict=True))
        for piece in range(max(op.pieces for op in ops)):
            issuing = [(rank, op, thread) for rank, op, thread in ranked if piece < op.pieces]
            self._dispatch(issuing)
            for rank, op, thread in issuing:
                self._op(rank, op, thread, piece)
        for rank, op, thread in ranked:
            if op.block:
                self._wait(rank, thread, [thread.named[op.name]], op.back)

    def _dispatch(self, ranked: Sequence[tuple[int, PlacedOp, Thread]]) -> None:
        """The threads issue these, where issuing takes time, and they are inserted."""
        if self._runtime is None:
            return
        for rank, op, thread in ranked:
            if op.call < 0:
                self._host(rank, thread, op.dispatch, self._runtime.layer if op.layer else self._runtime.dispatch, ())
            elif self._runtime.issue.time:
                self._host(rank, thread, op.dispatch, self._runtime.issue, ())
        for _, op, thread in ranked:
            self._insert(op, thread)

    def _collective(self, statement: Collective) -> None:
        """Bucket by bucket: every rank arrives, the gatherings do their steps, every rank leaves."""
        ranked = list(zip(range(len(statement.ops)), statement.ops, self._threads, strict=True))
        for bucket in range(statement.buckets):
            self._dispatch(ranked)
            arrived = [self._arrive(rank, op, thread, statement, bucket) for rank, op, thread in ranked]
            last: dict[int, list[Ref]] = {}  # what each rank waits for
            for gathering in statement.gatherings:
                steps: list[Ref] = []
                for step in gathering.steps:
                    after = [*(arrived[rank] for rank in step.begins), *(steps[earlier] for earlier in step.after)]
                    steps.append(self._add((step.label, step.cost, 1.0, 0, -1, -1), after))
                    for rank in step.ends:
                        last.setdefault(rank, []).append(steps[-1])
            for rank, op, thread in ranked:
                left = self._add((op.label, -1, 1.0, 0, op.queue, -1), last.get(rank, [arrived[rank]]))
                if bucket == statement.buckets - 1:
                    self._free(op, self._leaving.pop(rank, ()), left)
                self._note(rank, op, thread, left)
        for rank, op, thread in ranked:
            if op.block:
                self._wait(rank, thread, [thread.named[op.name]], op.back)

    def _arrive(self, rank: int, op: PlacedOp, thread: Thread, statement: Collective, bucket: int) -> Ref:
        """A rank is ready for a bucket, and its queue has come to it."""
        after = [thread.gate if self._runtime is None else thread.inserted]
        if bucket == 0:
            after += [ref for ref in thread.needs(op) if self._queue(ref) != op.queue]
        if statement.overlaps:
            after += thread.pieces[statement.overlaps][bucket : bucket + 1]
        insert = -1 if self._runtime is None or thread.inserted is None else thread.inserted[1]
        ref = self._add((statement.arrivals[rank], -1, 1.0, 0, op.queue, insert), after)
        if bucket == 0:
            self._leaving[rank] = self._rename(op, thread, ref if self._runtime is None else thread.inserted)
        return ref

    def _insert(self, op: PlacedOp, thread: Thread) -> None:
        """The join at which an op enters its queue, after the thread's latest op and all insertions before."""
        last, hosted = thread.inserted, thread.hosted
        if last is not None and (hosted is None or hosted < last):  # one after another, without the thread
            together = op.call >= 0 and last[0] == len(self.chunks) - 1
            if together and self._runtime is not None and not self._runtime.bounded:
                return
            hosted = last
        thread.inserted = self._add((op.insert, -1, 1.0, 0, -1, -1), [hosted])

    def _op(self, rank: int, op: PlacedOp, thread: Thread, piece: int = 0) -> Ref:
        after = [thread.gate if self._runtime is None else thread.inserted]
        if piece == 0:
            after += [ref for ref in thread.needs(op) if self._queue(ref) != op.queue]
        insert = -1 if self._runtime is None or thread.inserted is None else thread.inserted[1]
        ref = self._add((op.label, op.cost, 1.0 / op.pieces, op.time, op.queue, insert), after)
        if piece == 0:
            leaving = self._rename(op, thread, ref if self._runtime is None or op.call >= 0 else thread.inserted)
            self._leaving[rank] = leaving
        if piece == op.pieces - 1:
            self._free(op, self._leaving.pop(rank, ()), ref)
        if op.sent and self._receives:
            thread.sent.setdefault(op.sent, []).append(ref)
        if op.pieces > 1:
            thread.pieces[op.name] = (ref,) if piece == 0 else (*thread.pieces[op.name], ref)
        self._note(rank, op, thread, ref)
        return ref

    def _note(self, rank: int, op: PlacedOp, thread: Thread, ref: Ref) -> None:
        """From now on the op's names mean this."""
        thread.issued(op, ref)
        for frame in self._frames:
            for name in op.names:
                frame.iterations[-1][rank, name] = ref

    def _rename(self, op: PlacedOp, thread: Thread, taken: Ref | None) -> tuple[Freed, ...]:
        """The names that an op writes mean new buffers from now on; those they meant until now."""
        meant = [(value, thread.bound.pop(value, None)) for value in op.writes]
        leaving = [Freed(value, bound, thread.users(value), taken) for value, bound in meant if bound is not None]
        for value, size in op.sizes:
            if taken is not None and value not in thread.bound:  # an update keeps the buffer there is
                thread.bound[value] = Bound(taken, size, op.memory, op.name, value in op.inner)
        return tuple(leaving)

    def _free(self, op: PlacedOp, leaving: Iterable[Freed], ref: Ref) -> None:
        """ref: the op itself, which may use what it replaces."""
        for each in leaving:
            reads = each.value in op.reads or each.value in op.updates
            self.chunks[-1].freed.append(replace(each, users=(*each.users, ref)) if reads else each)

    def _fetch(self, rank: int, op: PlacedOp, thread: Thread) -> None:
        if op.queue >= 0:
            if self._runtime is not None:
                self._insert(op, thread)
            wanted = [self._op(rank, op, thread)]
        else:
            wanted = list(thread.needs(op))
        thread.awaited.update(thread.not_awaited((self._queue(ref), ref) for ref in wanted))
        self._back(rank, thread, op.back, wanted)
        last = thread.gate if self._runtime is None else thread.hosted
        if op.queue < 0 and last is not None:
            self._free(op, self._rename(op, thread, last), last)
            for value in op.writes:
                thread.bound.pop(value, None)  # it is the array that was read: no memory of its own
                thread.writer[value] = last
                thread.readers.pop(value, None)

    def _host(self, rank: int, thread: Thread, label: int, spent: HostTime, after: Iterable[Ref]) -> None:
        cost, time = spent.of(rank)
        thread.hosted = self._add((label, cost, 1.0, time, thread.host, -1), [*after, thread.inserted])

    def _back(self, rank: int, thread: Thread, label: int, after: Iterable[Ref]) -> None:
        """The thread goes on after these."""
        if self._runtime is None:
            thread.gate = self._add((label, -1, 1.0, 0, -1, -1), [thread.gate, *after])
        else:
            self._host(rank, thread, label, self._runtime.back, after)

    def _awaited_by(self, rank: int, thread: Thread, wait: Wait) -> list[Ref]:
        if not wait.names:
            return list(thread.last.values())
        refs: list[Ref | None] = []
        for name in wait.names:
            if wait.back:
                frame = next(frame for frame in reversed(self._frames) if name in frame.repeat.names)
                past = frame.iterations[-1 - wait.back] if wait.back < len(frame.iterations) else {}
                refs.append(past.get((rank, name)))
            else:
                refs.append(thread.named.get(name) or thread.writer.get(name))
        return [ref for ref in refs if ref is not None]

    def _received(self, rank: int, statement: Receive) -> Ref:
        """The earliest send to a rank's device that it has not received yet."""
        sender, device = statement.senders[rank], statement.devices[rank]
        sends = self._threads[sender].sent.get(device)
        if not sends:
            source = statement.devices[sender]
            message = f"{device} receives from {source}, which has sent it nothing more before: it would wait for ever"
            raise SpecError.of(statement.place, message, "every `recv` comes after a `send` of its own in the program")
        return sends.pop(0)

    def _wait(self, rank: int, thread: Thread, wanted: Sequence[Ref], label: int) -> None:
        pending = thread.not_awaited((self._queue(ref), ref) for ref in wanted)
        if not pending:
            return
        thread.awaited.update(pending)
        self._back(rank, thread, label, pending.values())

    def _barrier(self, barrier: Barrier) -> None:
        arrival_label, release_label, *labels = barrier.labels
        before = [ref for thread in self._threads for ref in (*thread.last.values(), thread.gate, thread.hosted, thread.inserted)]
        release = arrival = self._add((arrival_label, -1, 1.0, 0, -1, -1), before)
        if barrier.name in self._shared:
            release = self._add((release_label, -1, 1.0, 0, -1, -1), [arrival])
        self.barriers.setdefault(barrier.name, []).append((arrival[0], arrival[1], release[1]))
        for rank, thread in enumerate(self._threads):
            thread.awaited.update(thread.last)
            if self._runtime is None:
                thread.gate = release
            else:
                self._host(rank, thread, labels[rank], self._runtime.back, [release])

    def _queue(self, ref: Ref) -> int:
        return self.chunks[ref[0]].rows[ref[1]][4]


def _refuse_above(limit: int, repeat: Repeat, times: int) -> None:
    if (size := times * repeat.size) > limit:
        message = f"the repeats inside this one have to be written out, and come to {size} ops; the limit is {limit}"
        hint = (
            "a repeat of many iterations belongs at the top of the program, or make the inner one a single op (`times`, `pieces`)"
        )
        raise SpecError.of(repeat.place, message, hint)
