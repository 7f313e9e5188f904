"""Emission of statements as ops, each with its predecessors.

Loops are unrolled iteration by iteration until an iteration repeats the previous one (see `is_steady`); that iteration then
represents the rest of the loop.

Rules:
- Values: an op waits for the last writer of its `reads`. `writes` allocate a new buffer and wait for nothing. `updates` wait for
  the last writer and for all readers since.
- Without a runtime, issuing takes no time. A wait is a join, and all ops issued later start after it.
- With a runtime, the program's thread issues each op and inserts it into its queue (a join) before the thread continues. A wait
  is an op of the thread, unless all of its ops were awaited before.
- A compiled body takes the thread one call; its ops are inserted one after another, with `issue` per op.
- A fetch is not issued: it is a copy if the value is in GPU memory, followed by the return of the thread.
- A buffer is allocated when its op is inserted (without a runtime, in a compiled body, and with `allocate: run`, when the op
  starts); see `results.memory` for its release.
- Ops of the same queue are never predecessors, because queues are in order. Only the latest op of another queue counts.
- Ops of workers are in a pool instead of a queue, so every op that they depend on is a predecessor. A join that follows an op
  and an earlier join of its pool represents all its ops until then, for `wait: all` and for values with several readers.
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
from hwsim.workload.host_runtime import HostRuntime, HostTime
from hwsim.workload.statements import (
    Barrier,
    CallStatement,
    CollectiveStatement,
    Fetch,
    Issue,
    PlacedOp,
    Receive,
    Repeat,
    Statement,
    WaitStatement,
)
from hwsim.workload.thread import Chunk, NamedBuffer, Ref, ReleasedBuffer, Snapshot, ThreadState, is_steady, line_of_pool

LIMIT: Final = 1_000_000  # ops of an unrolled body
_PATIENCE: Final = 8  # differing iterations after which a loop is unrolled completely


@dataclass(frozen=True, slots=True)
class Loop:
    """A block that runs several times: chunk `first` is its first pass, chunk `first + 1` represents all later passes.

    Args:
        times: number of passes.
        turns: iterations of the loop per pass.
    """

    first: int
    times: int
    turns: int


@dataclass(slots=True)
class _Frame:
    """A repeat during emission: the ops of each name in the iterations that a wait can still refer to."""

    repeat: Repeat
    iterations: list[dict[tuple[int, str], Ref]] = field(default_factory=list)

    def begin(self) -> None:
        self.iterations.append({})
        del self.iterations[: -1 - self.repeat.reach]


class Emitter:
    """An emitter of the programs of one `each`, or of a single program."""

    def __init__(
        self,
        hosts: Sequence[int],
        runtime: HostRuntime | None,
        shared: frozenset[str] = frozenset(),
        *,
        writes_out: bool = False,
        receives: bool = False,
    ) -> None:
        """Create an emitter without ops.

        Args:
            hosts: queue of each rank's thread.
            shared: names of barriers that other groups of programs share.
            writes_out: whether loops with shared barriers are unrolled completely.
            receives: whether the programs contain `recv`.
        """
        self.chunks: list[Chunk] = [Chunk()]
        self.loops: dict[int, Loop] = {}  # by the number of each of its two chunks
        self.barriers: dict[str, list[tuple[int, int, int]]] = {}  # name -> (chunk, arrival, release)
        self._threads = [ThreadState(host) for host in hosts]
        self._runtime = runtime
        self._shared = shared
        self._writes_out = writes_out
        self._receives = receives
        self._frames: list[_Frame] = []
        self._turn = 0  # current iteration of the outermost loop with several iterations
        self._compiled: set[int] = set()
        self._leaving: dict[
            int, tuple[ReleasedBuffer, ...]
        ] = {}  # rank -> buffers replaced by an op whose last piece is not yet emitted

    @property
    def free(self) -> Freeing:
        """Rule by which buffers are freed."""
        return self._runtime.free if self._runtime is not None else "last-use"

    def begin(self, labels: Sequence[int], time: int) -> None:
        """Delay the start of the threads to `time` (fs); call before the first statement."""
        for label, thread in zip(labels, self._threads, strict=True):
            if self._runtime is None:
                thread.gate = self._add((label, -1, 1.0, time, -1, -1), [])
            else:
                thread.hosted = self._add((label, -1, 1.0, time, thread.host, -1), [])

    def finish(self) -> None:
        """Record the buffers that still have names; call after the last statement."""
        for thread in self._threads:
            for value, bound in thread.bound.items():
                self.chunks[-1].freed.append(ReleasedBuffer(value, bound, thread.users(value), None))

    def run(self, body: Sequence[Statement]) -> None:
        """Emit statements that run once."""
        for statement in body:
            if isinstance(statement, Repeat):
                self._loop(statement)
            else:
                self._emit(statement)

    def shape(self, barrier: str) -> tuple[tuple[int, int], ...]:
        """Return (meetings per pass, passes) of each block in program order; blocks that run once count per meeting."""
        counts: list[tuple[int, int]] = []
        for chunk, meetings in groupby(self.barriers.get(barrier, ()), key=lambda meeting: meeting[0]):
            count, loop = len(list(meetings)), self.loops.get(chunk)
            if loop is None:
                counts += [(1, 1)] * count
            elif loop.first == chunk:
                counts.append((count, loop.times))
        return tuple(counts)

    def meetings(self, barrier: str) -> int:
        """Return how often the programs reach a barrier."""
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
            self._repeat(repeat, frame)
            self._turn = 0
        self._frames.pop()

    def _repeat(self, repeat: Repeat, frame: _Frame) -> None:
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
            if number == _PATIENCE:  # no program is known to need this; its simulation is still exact
                _refuse_above(LIMIT, repeat, repeat.times)
                self._next_chunk()
                self._turns(repeat, frame, (copies - number - 1) * unroll)
                break
        self._next_chunk()

    def _turns(self, repeat: Repeat, frame: _Frame, times: int) -> None:
        """Emit the next iterations of a loop and count them."""
        for _ in range(times):
            self._iterate(repeat, frame, 1)
            self._turn += 1

    def _iterate(self, repeat: Repeat, frame: _Frame, times: int) -> None:
        """Emit iterations with inner repeats unrolled."""
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

    def _emit(self, statement: Issue | Fetch | CollectiveStatement | CallStatement | WaitStatement | Barrier | Receive) -> None:
        match statement:
            case Issue(ops=ops):
                self._issue(ops)
            case CollectiveStatement():
                self._collective(statement)
            case Fetch(ops=ops):
                for rank, (op, thread) in enumerate(zip(ops, self._threads, strict=True)):
                    self._fetch(rank, op, thread)
            case CallStatement(number=number, labels=labels, nodes=nodes) if self._runtime is not None:
                for rank, (thread, (compiling, calling, launching)) in enumerate(zip(self._threads, labels, strict=True)):
                    if number not in self._compiled and self._runtime.compile.time:
                        self._host(rank, thread, compiling, self._runtime.compile, ())
                    self._host(rank, thread, calling, self._runtime.call, ())
                    if nodes:
                        self._host(rank, thread, launching, self._runtime.issue, (), nodes)
                self._compiled.add(number)
            case WaitStatement():
                for rank, thread in enumerate(self._threads):
                    self._wait(rank, thread, self._awaited_by(rank, thread, statement), statement.labels[rank])
            case Receive():
                for rank, thread in enumerate(self._threads):
                    sent = self._received(rank, statement)
                    self._wait(rank, thread, [(self._line(sent), sent)], statement.labels[rank])
            case Barrier():
                self._barrier(statement)

    def _add(self, row: tuple[int, int, float, int, int, int], after: Iterable[Ref | None], pool: int = -1) -> Ref:
        """Append an op to the current chunk, with (label, cost, size, time, queue, insert)."""
        chunk = self.chunks[-1]
        chunk.rows.append((*row, pool))
        chunk.turns.append(self._turn)
        chunk.after.append(tuple(dict.fromkeys(ref for ref in after if ref is not None)))
        return len(self.chunks) - 1, len(chunk.rows) - 1

    def _issue(self, ops: tuple[PlacedOp, ...]) -> None:
        """Emit an op of each rank, piece by piece."""
        refuse_beyond("ops", sum(op.pieces for op in ops))
        ranked = list(zip(range(len(ops)), ops, self._threads, strict=True))
        for piece in range(max(op.pieces for op in ops)):
            issuing = [(rank, op, thread) for rank, op, thread in ranked if piece < op.pieces]
            self._dispatch(issuing)
            for rank, op, thread in issuing:
                self._op(rank, op, thread, piece)
        for rank, op, thread in ranked:
            if op.block:
                self._wait(rank, thread, self._named(thread, op), op.back)

    def _dispatch(self, ranked: Sequence[tuple[int, PlacedOp, ThreadState]]) -> None:
        """Emit the issue of ops, if it takes time, and their insertion into the queues."""
        if self._runtime is None:
            return
        for rank, op, thread in ranked:
            if op.call < 0:
                self._host(rank, thread, op.dispatch, self._runtime.layer if op.layer else self._runtime.dispatch, ())
            elif op.dispatch >= 0:
                self._host(rank, thread, op.dispatch, self._runtime.issue, ())
        for _, op, thread in ranked:
            self._insert(op, thread)

    def _collective(self, statement: CollectiveStatement) -> None:
        """Emit a collective bucket by bucket: all ranks arrive, the steps run, all ranks leave."""
        ranked = list(zip(range(len(statement.ops)), statement.ops, self._threads, strict=True))
        for bucket in range(statement.buckets):
            self._dispatch(ranked)
            arrived = [self._arrive(rank, op, thread, statement, bucket) for rank, op, thread in ranked]
            last: dict[int, list[Ref]] = {}  # rank -> steps that it waits for
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
                self._wait(rank, thread, self._named(thread, op), op.back)

    def _arrive(self, rank: int, op: PlacedOp, thread: ThreadState, statement: CollectiveStatement, bucket: int) -> Ref:
        """Emit the arrival of a rank for a bucket in its queue."""
        after = [thread.gate if self._runtime is None else thread.inserted]
        if bucket == 0:
            after += [ref for ref in thread.needs(op) if self._line(ref) != op.queue]
        if statement.overlaps:
            whole = (thread.named.get(statement.overlaps),)
            after += (thread.pieces[statement.overlaps] if statement.buckets > 1 else whole)[bucket : bucket + 1]
        insert = -1 if self._runtime is None or thread.inserted is None else thread.inserted[1]
        ref = self._add((statement.arrivals[rank], -1, 1.0, 0, op.queue, insert), after)
        if bucket == 0:
            self._leaving[rank] = self._rename(op, thread, ref if self._runtime is None else thread.inserted, ref)
        return ref

    def _insert(self, op: PlacedOp, thread: ThreadState) -> None:
        """Emit the join at which an op enters its queue, after the thread's latest op and all earlier insertions."""
        last, hosted = thread.inserted, thread.hosted
        if last is not None and (hosted is None or hosted < last):  # insertions without the thread
            is_joint = op.call >= 0 and last[0] == len(self.chunks) - 1
            if is_joint and self._runtime is not None and not self._runtime.bounded:
                return
            hosted = last
        thread.inserted = self._add((op.insert, -1, 1.0, 0, -1, -1), [hosted])

    def _op(self, rank: int, op: PlacedOp, thread: ThreadState, piece: int = 0) -> Ref:
        after = [thread.gate if self._runtime is None else thread.inserted]
        if piece == 0:
            after += [ref for ref in thread.needs(op) if op.pool >= 0 or self._line(ref) != op.queue]
        elif op.pool >= 0:
            after.append(thread.pieces[op.name][-1])
        insert = -1 if self._runtime is None or thread.inserted is None else thread.inserted[1]
        ref = self._add((op.label, op.cost, 1.0 / op.pieces, op.time, op.queue, insert), after, op.pool)
        if piece == 0:
            is_inserted = self._runtime is not None and (op.call < 0 or self._runtime.late)
            named = thread.inserted if is_inserted else ref
            self._leaving[rank] = self._rename(op, thread, named, ref)
        if piece == op.pieces - 1:
            self._free(op, self._leaving.pop(rank, ()), ref)
        if op.sent and self._receives:
            thread.sent.setdefault(op.sent, []).append(ref)
        if op.pieces > 1:
            thread.pieces[op.name] = (ref,) if piece == 0 else (*thread.pieces[op.name], ref)
        self._note(rank, op, thread, ref)
        return ref

    def _note(self, rank: int, op: PlacedOp, thread: ThreadState, ref: Ref) -> None:
        """Let the names of the op refer to `ref` from now on."""
        before = self.chunks[ref[0]].after[ref[1]]

        def joined(earlier: Ref | None) -> Ref:
            """An op that ends when `earlier` and `ref` have ended; `ref` if the op itself follows the earlier one."""
            if op.pool < 0 or earlier is None or earlier in before or earlier == thread.awaited.get(line_of_pool(op.pool)):
                return ref
            return self._add((op.join, -1, 1.0, 0, -1, -1), [earlier, ref])

        thread.issued(op, ref, joined)
        for frame in self._frames:
            for name in op.names:
                frame.iterations[-1][rank, name] = ref

    def _rename(self, op: PlacedOp, thread: ThreadState, named: Ref | None, run: Ref) -> tuple[ReleasedBuffer, ...]:
        """Bind the values that an op writes to new buffers; return the buffers that they replace.

        Args:
            named: op at whose start the names refer to the new buffers.
            run: the op itself, at whose start the buffers may be allocated.
        """
        taken = run if self._runtime is not None and self._runtime.late else named
        replaced = [(value, thread.bound.pop(value, None)) for value in op.writes]
        leaving = [ReleasedBuffer(value, bound, thread.users(value), named) for value, bound in replaced if bound is not None]
        for value, size in op.sizes:
            if taken is not None and value not in thread.bound:  # an update keeps its buffer
                thread.bound[value] = NamedBuffer(taken, size, op.memory, op.name, value in op.inner)
        return tuple(leaving)

    def _free(self, op: PlacedOp, leaving: Iterable[ReleasedBuffer], ref: Ref) -> None:
        """Record replaced buffers; the op `ref` itself may use them."""
        for freed in leaving:
            reads = freed.value in op.reads or freed.value in op.updates
            self.chunks[-1].freed.append(replace(freed, users=(*freed.users, ref)) if reads else freed)

    def _fetch(self, rank: int, op: PlacedOp, thread: ThreadState) -> None:
        if op.queue >= 0:
            if self._runtime is not None:
                self._insert(op, thread)
            wanted = [self._op(rank, op, thread)]
        else:
            wanted = list(thread.needs(op))
        thread.await_ops((self._line(ref), ref) for ref in wanted)
        self._back(rank, thread, op.back, wanted)
        last = thread.gate if self._runtime is None else thread.hosted
        if op.queue < 0 and last is not None:
            self._free(op, self._rename(op, thread, last, last), last)
            for value in op.writes:
                thread.bound.pop(value, None)  # the array that was read: no additional memory
                thread.writer[value] = last
                thread.readers.pop(value, None)

    def _host(self, rank: int, thread: ThreadState, label: int, spent: HostTime, after: Iterable[Ref], times: int = 1) -> None:
        """Emit an op of the thread that takes a host time, `times` times."""
        cost, time = spent.of(rank)
        thread.hosted = self._add((label, cost, float(times), time * times, thread.host, -1), [*after, thread.inserted])

    def _back(self, rank: int, thread: ThreadState, label: int, after: Iterable[Ref]) -> None:
        """Emit the return of the thread after these ops."""
        if self._runtime is None:
            thread.gate = self._add((label, -1, 1.0, 0, -1, -1), [thread.gate, *after])
        else:
            self._host(rank, thread, label, self._runtime.back, after)

    def _awaited_by(self, rank: int, thread: ThreadState, wait: WaitStatement) -> list[tuple[int, Ref]]:
        """The ops of a wait, with their queue or pool."""
        if not wait.names:
            return list(thread.last.items())
        refs: list[Ref | None] = []
        for name in wait.names:
            if wait.back:
                frame = next(frame for frame in reversed(self._frames) if name in frame.repeat.names)
                past = frame.iterations[-1 - wait.back] if wait.back < len(frame.iterations) else {}
                refs.append(past.get((rank, name)))
            else:
                refs.append(thread.named.get(name) or thread.writer.get(name))
        return [(self._line(ref), ref) for ref in refs if ref is not None]

    def _received(self, rank: int, statement: Receive) -> Ref:
        """The earliest send to a rank's device that the rank has not yet received."""
        sender, device = statement.senders[rank], statement.devices[rank]
        sends = self._threads[sender].sent.get(device)
        if not sends:
            source = statement.devices[sender]
            message = f"deadlock: {device} receives from {source}, but no unreceived `send` precedes this `recv`"
            raise SpecError.of(statement.place, message, "write the `send` before its `recv` in the program")
        return sends.pop(0)

    def _wait(self, rank: int, thread: ThreadState, wanted: Iterable[tuple[int, Ref]], label: int) -> None:
        """Emit a wait for ops, given with their queue or pool, unless they are known to have ended."""
        if pending := thread.await_ops(wanted):
            self._back(rank, thread, label, pending)

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

    def _named(self, thread: ThreadState, op: PlacedOp) -> list[tuple[int, Ref]]:
        ref = thread.named[op.name]
        return [(self._line(ref), ref)]

    def _line(self, ref: Ref) -> int:
        """The queue of an op, or the key of its pool; -1: neither."""
        *_, queue, _, pool = self.chunks[ref[0]].rows[ref[1]]
        return queue if pool < 0 else line_of_pool(pool)


def _refuse_above(limit: int, repeat: Repeat, times: int) -> None:
    if (size := times * repeat.size) > limit:
        message = f"the nested repeats contain {size:,} ops when unrolled, more than the limit of {limit:,}"
        hint = "make the repeat with most iterations the outermost one, or use `times` or `pieces` of a single op"
        raise SpecError.of(repeat.place, message, hint)
