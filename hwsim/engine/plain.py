"""Reference engine in SimPy: a process for each op and a resource for each pool, without optimizations.

It serves as documentation, for teaching, and to verify the fast engines: start and end of every op are equal in all engines, to
the femtosecond. `hwsim simulate --engine simpy` uses it. It takes about 40 us per op, compared with 1 us for the replay and
0.1 us for the longest path, and its time grows with the square of the number of concurrent ops.

The order of events at one instant, by SimPy's priorities:

1. SimPy's ordinary events: an op's fixed time ends, a request arrives, a part fails.
2. ROUND: due ops end, free servers are assigned to waiting ops, and ready ops start. Repeated until no op is due.
3. SOLVE: the pace of every op that shares a capacity is computed, for all ops together (`hwsim.engine.fair`).
4. TELL: the submitters of ops are notified of ended ops.

**Source**: decisions 0001 (demands), 0003 (fair sharing), 0004 (one order at one instant).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import field
from itertools import accumulate, pairwise
from typing import Final

import numpy as np
import simpy
from simpy.events import EventPriority
from simpy.resources.resource import Request

from hwsim import ticks
from hwsim.demand import Capacity, Cost
from hwsim.engine.compile import compile_flat
from hwsim.engine.fair import FULL, UNBOUND, fill
from hwsim.engine.fluid import FlowClass
from hwsim.engine.host import Host
from hwsim.engine.issued import IssuedOp
from hwsim.engine.replay import VISIT
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import OpGraph, Pool
from hwsim.records import dataclass
from hwsim.results.timeline import PaceChange, Timeline

ROUND: Final = EventPriority(2)
SOLVE: Final = EventPriority(3)
TELL: Final = EventPriority(4)

Steps = Generator[simpy.Event, None, None]  # a SimPy process


@dataclass(slots=True, eq=False)
class SimulatedOp:
    """An op of the run.

    Args:
        fixed: fixed time before the flow (fs): own time and latency of the demand.
        flow: time of the flow without contention (fs).
        flow_class: class of the demand; -1: no shared capacity.
        take, give: pool from which the op takes a server at its start, and to which it returns one at its end; -1: none.
        is_join: whether the op only waits for its predecessors and ends when it starts.
        waits_for: number of predecessors that have not ended.
        asked: cost and size, if the op is simulated request by request.
        followers: successors.
        parts: number of parts that have not ended: flow and requests.
        first: class and duration (fs) of the start-up time with a clock; None: none, or ended.
        flowing: class in which the op flows now.
        work: remaining service (pace x fs).
        start, end: start and end (fs); -1: not yet.
        granted: op whose end freed the server for which this op waited; -1: none.
    """

    number: int
    fixed: int
    flow: int
    flow_class: int
    take: int = -1
    give: int = -1
    is_join: bool = False
    waits_for: int = 0
    asked: tuple[Cost, float] | None = None
    followers: list[SimulatedOp] = field(default_factory=list)
    parts: int = 1
    first: tuple[int, int] | None = None
    flowing: int = -1
    work: int = 0
    start: int = -1
    end: int = -1
    granted: int = -1


class PlainEngine(Host):
    """A host with a SimPy process per op, equivalent to `hwsim.engine.driver.Driver`."""

    def __init__(self, capacities: Sequence[Capacity], pools: Sequence[Pool], *, limited: Collection[str] = ()) -> None:
        super().__init__(capacities, pools, limited)
        self._ops: list[SimulatedOp] = []
        self._pools = [simpy.Resource(self.env, pool.servers) for pool in pools]
        self._freed_by: list[deque[int]] = [deque() for _ in pools]  # ops whose servers went to waiting requests, in order
        self._flows: list[FlowClass] = []
        self._flow_numbers: dict[FlowClass, int] = {}
        self._pace: list[int] = []  # present pace of each class
        self._history: list[list[PaceChange]] = []
        self._room = [FULL] * len(self.capacities)
        self._ready: list[SimulatedOp] = []
        self._due: list[SimulatedOp] = []
        self._flowing: list[SimulatedOp] = []
        self._drawing: dict[int, int] = {}
        self._since = 0  # time at which `work` was last updated
        self._solves = 0
        self._timer: simpy.Event | None = None  # latest timer; earlier ones are invalid
        self._asked_for: dict[EventPriority, int] = {}  # instant of the scheduled round, solution or report
        self._waiters: dict[int, tuple[simpy.Event, set[int]]] = {}  # op -> event of its submission, and remaining ops
        self._ended: list[int] = []
        self._begun: list[SimulatedOp] = []
        self._done = self._visits = 0

    # ------------------------------------------------------------ interface of actors

    def issue(self, ops: Sequence[IssuedOp], after: Sequence[int] = ()) -> tuple[simpy.Event, int]:
        base = len(self._ops)
        chain = []
        for number, op in enumerate(ops, base):
            fixed, flow = self._issued.times(op)
            flow_class = self._classes[op.cost] if op.cost >= 0 and flow else -1
            cost, start = self._issued.start(op)
            first = (self._starts[cost], start) if start else None
            alone = fixed if flow_class >= 0 or first else fixed + flow
            chain.append(SimulatedOp(number, alone, flow, flow_class, waits_for=int(number > base), first=first))
        for before, follower in pairwise(chain):
            before.followers.append(follower)
        self._issued.append(base, ops, after)
        finished = self.env.event()
        self._waiters[chain[-1].number] = finished, {chain[-1].number}
        self._add(chain)
        return finished, chain[-1].number

    def visit(self, visitor: int, time: int, then: Callable[[int], None]) -> None:
        self._visits += 1
        ended = self.env.event()
        ended.callbacks.append(lambda _: then(int(self.env.now)))
        self._waiters[VISIT + self._visits] = ended, {VISIT + self._visits}
        self._ready.append(SimulatedOp(VISIT + self._visits, 0, time, visitor))
        self._soon(ROUND, self._round)

    def past(self, ops: Sequence[IssuedOp]) -> None:
        self._issued.append(len(self._ops), ops, ())
        self._done += len(ops)
        for op, end in zip(ops, accumulate(op.time for op in ops), strict=True):
            self._ops.append(SimulatedOp(len(self._ops), op.time, 0, -1, start=end - op.time, end=end))

    def _set_room(self, number: int, room: int) -> None:
        self._room[number] = room
        self._soon(SOLVE, self._solve)

    def finish(self, op: int) -> None:
        self._is_due(self._ops[op])

    def run(self) -> Timeline:
        self.env.run()
        return Timeline(
            flat=self._played(),
            start=ticks.column([op.start for op in self._ops]),
            end=ticks.column([op.end for op in self._ops]),
            granted=np.array([op.granted for op in self._ops], np.int64),
            flow_class=np.array([op.flow_class for op in self._ops], np.int64),  # count
            paces=tuple(tuple(history) for history in self._history),
            alone=tuple(flow.alone for flow in self._flows),
            solves=self._solves,
            played=np.array([op.number for op in self._ops if op.asked], np.int64),
            drawing=self._drawing,
        )

    def unfinished(self) -> list[int]:
        return [op.number for op in self._ops if op.end < 0]

    # ------------------------------------------------------------ submission of ops

    def _load(self, graph: OpGraph, finished: simpy.Event) -> None:
        flat = flatten(graph)
        # not closed: keep every capacity, even if it can never be full
        compiled = compile_flat(flat, closed=False, changing=self.changing)
        self._keep(flat)
        classes = [*(self._class_number(class_) for class_ in compiled.classes), -1]
        rows = zip(
            compiled.fixed.tolist(),
            compiled.flow.tolist(),
            (classes[number] for number in compiled.flow_class.tolist()),
            flat.take.tolist(),
            flat.give.tolist(),
            flat.joins().tolist(),
            flat.waits_for.tolist(),
            strict=True,
        )
        ops = [SimulatedOp(number, *row) for number, row in enumerate(rows, len(self._ops))]
        for index, (number, time) in compiled.starts.items():
            ops[index].first = classes[number], time
        for index in np.flatnonzero(compiled.played).tolist():
            ops[index].asked = flat.graph.costs[int(flat.cost[index])], float(flat.size[index])
        sources, targets = flat.edges()
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            ops[source].followers.append(ops[target])
        last = {op.number for op in ops if not op.followers}
        self._waiters.update(dict.fromkeys(last, (finished, last)))
        if not ops:
            finished.succeed()
        self._add(ops)

    def _add(self, ops: Sequence[SimulatedOp]) -> None:
        self._ops += ops
        self._ready += [op for op in ops if not op.waits_for]
        self._soon(ROUND, self._round)

    def _class_number(self, flow: FlowClass, *, passing: bool = False) -> int:  # noqa: ARG002 (every pace is recorded)
        if flow not in self._flow_numbers:
            self._flow_numbers[flow] = len(self._flows)
            self._flows.append(flow)
            self._pace.append(0)
            self._history.append([])
        return self._flow_numbers[flow]

    # ------------------------------------------------------------ process of an op

    def _life(self, op: SimulatedOp, server: Request | None) -> Steps:
        """Run a ready op: wait for a server, for the fixed time, and for the flow or its requests, until the op is due."""
        if server is not None:
            is_free = server.triggered
            yield server
            freed_by = self._freed_by[op.take]
            op.granted = freed_by.popleft() if freed_by and not is_free else -1
        op.start = int(self.env.now)
        yield self.env.timeout(op.fixed)
        if op.first is not None:
            self._flow(op, *op.first)
        else:
            yield from self._body(op)

    def _body(self, op: SimulatedOp) -> Steps:
        """Start requests and flow of an op after its fixed and start-up time."""
        if op.asked:
            op.parts = 1 + bool(op.flow)
            self._begun.append(op)
            self._soon(TELL, self._tell)
        if op.flow_class >= 0 and op.flow:
            self._flow(op, op.flow_class, op.flow)
        elif op.flow and (op.asked or op.number in self._drawing):
            yield self.env.timeout(op.flow)
            self._is_due(op)
        elif not op.asked:
            self._is_due(op)

    def _flow(self, op: SimulatedOp, flow_class: int, time: int) -> None:
        """Start the flow of an op in a class; `time`: duration without contention (fs)."""
        self._pass_time()
        op.flowing, op.work = flow_class, self._flows[flow_class].alone * time
        self._flowing.append(op)
        self._soon(SOLVE, self._solve)

    def _is_due(self, op: SimulatedOp) -> None:
        op.parts -= 1
        if not op.parts:
            self._due.append(op)
            self._soon(ROUND, self._round)

    def _round(self, _: simpy.Event) -> None:
        """End the due ops and start the ready ones, in order of op number, independent of the order of SimPy's events."""
        due, self._due = sorted(self._due, key=_number), []
        ready, self._ready = self._ready, []
        for op in due:
            ready += self._end(op)
        while joins := [op for op in ready if op.is_join]:
            ready = [op for op in ready if not op.is_join]
            for op in joins:
                op.start = int(self.env.now)
                ready += self._end(op)
        for op in due:
            if op.give >= 0:
                self._give_back(op)
        for op in sorted(ready, key=_number):
            self.env.process(self._life(op, None if op.take < 0 else self._pools[op.take].request()))

    def _give_back(self, op: SimulatedOp) -> None:
        """Return a server to its pool, which assigns it to the op that has waited longest."""
        pool, freed_by = self._pools[op.give], self._freed_by[op.give]
        if len(freed_by) < len(pool.queue):
            freed_by.append(op.number)
        pool.release(pool.users[0])

    def _end(self, op: SimulatedOp) -> list[SimulatedOp]:
        """Record the end of an op; return the successors that become ready."""
        op.end = int(self.env.now)
        self._done += op.number < VISIT
        if op.number in self._waiters:
            self._ended.append(op.number)
            self._soon(TELL, self._tell)
        freed = []
        for follower in op.followers:
            follower.waits_for -= 1
            if not follower.waits_for:
                freed.append(follower)
        return freed

    # ------------------------------------------------------------ sharing

    def _pass_time(self) -> None:
        """Subtract the service that every flowing op has received since the last change."""
        now = int(self.env.now)
        for op in self._flowing:
            op.work -= self._pace[op.flowing] * (now - self._since)
        self._since = now

    def _solve(self, _: simpy.Event) -> None:
        """Compute the pace of every active class, and set a timer for the next end of a flow."""
        self._pass_time()
        members = Counter(op.flowing for op in self._flowing)
        numbers = sorted(members)
        crowds = Counter[int]()
        for number in numbers:
            crowd = self._flows[number].crowd
            if crowd is not None:
                crowds[crowd.capacity] += members[number] * crowd.depth
        classes = [self._flows[number].now(crowds, self._room) for number in numbers]
        room = list(self._room)
        for number, class_ in zip(numbers, classes, strict=True):
            for capacity, part in class_.holds:
                room[capacity] -= members[number] * part
        paces, bounds = fill(
            [class_.alone for class_ in classes],
            [members[number] for number in numbers],
            [class_.weights for class_ in classes],
            {capacity: max(0, left) for capacity, left in enumerate(room)},
        )
        self._solves += 1
        self._pace = [0] * len(self._flows)
        bound_of = [UNBOUND] * len(self._flows)
        for number, pace, bound in zip(numbers, paces, bounds, strict=True):
            if bound == UNBOUND:
                bound = self._flows[number].held_by(pace, self._room)
            self._pace[number], bound_of[number] = pace, bound
        for history, pace, bound in zip(self._history, self._pace, bound_of, strict=True):
            if (pace, bound) != (history[-1][1:] if history else (0, UNBOUND)):
                history.append(PaceChange(int(self.env.now), pace, bound))
        left = [-(-op.work // self._pace[op.flowing]) for op in self._flowing if self._pace[op.flowing]]
        self._timer = None
        if left:
            self._timer = self.env.timeout(min(left))
            self._timer.callbacks.append(self._received)

    def _received(self, timer: simpy.Event) -> None:
        """End the flows that have received their full service, and compute new paces."""
        if timer is not self._timer:
            return
        self._pass_time()
        over = [op for op in self._flowing if op.work <= 0]
        self._flowing = [op for op in self._flowing if op.work > 0]
        for op in over:
            if op.first is None:
                self._is_due(op)
            else:
                op.first, self._drawing[op.number] = None, int(self.env.now)
                self.env.process(self._body(op))
        self._soon(SOLVE, self._solve)

    # ------------------------------------------------------------ order of events at an instant

    def _soon(self, priority: EventPriority, then: Callable[[simpy.Event], None]) -> None:
        """Schedule a round, solution or report at this instant, unless one is already scheduled."""
        if self._asked_for.get(priority) == self.env.now:
            return
        self._asked_for[priority] = int(self.env.now)

        def now(event: simpy.Event) -> None:
            del self._asked_for[priority]
            then(event)

        self._call(now, priority, int(self.env.now))

    def _tell(self, _: simpy.Event) -> None:
        """Notify the server of starting requests, and the submitters of ended ops."""
        if self.progress is not None:
            self.progress(self._done, len(self._ops))
        begun, self._begun = self._begun, []
        for op in begun:
            if self.server is None or op.asked is None:
                raise ValueError("ops that are simulated request by request need a server")
            self.server(op.number, *op.asked)
        ended, self._ended = self._ended, []
        for number in ended:
            finished, left = self._waiters.pop(number)
            left.discard(number)
            if not left:
                finished.succeed()


def _number(op: SimulatedOp) -> int:
    return op.number
