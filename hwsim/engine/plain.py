"""The engine written out in SimPy: a process for each op, a resource for each pool, and no shortcut.

It is there to be read, to be shown in class, and to prove the fast engines: whatever plays a run, start and end of every op are
equal to this file's, to the femtosecond. `hwsim simulate --engine simpy` uses it. It takes about 40 us an op, where the replay
takes 1 us and the longest path 0.1 us, and its time grows with the square of the ops in flight together.

The order of events at one instant, by SimPy's priorities:

1. SimPy's ordinary events: an op's fixed time is over, a request arrives, a part fails.
2. ROUND: ops that are due end, servers of pools go to the ops that wait for them, ops that became ready start. Repeated until
   no op is due any more.
3. SOLVE: the pace of every op that shares a capacity is worked out anew, for all at once (`hwsim.engine.fair`).
4. TELL: the submitters of ops learn which of them have ended.

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
from hwsim.engine.issued import Issued, IssuedOp
from hwsim.engine.replay import VISIT
from hwsim.graph.flat import FlatGraph, concatenate, flatten
from hwsim.graph.opgraph import Label, OpGraph, Pool, Queue
from hwsim.records import dataclass
from hwsim.results.timeline import PaceChange, Timeline

ROUND: Final = EventPriority(2)
SOLVE: Final = EventPriority(3)
TELL: Final = EventPriority(4)

Steps = Generator[simpy.Event, None, None]  # the life of a SimPy process
Progress = Callable[[int, int], None]  # ops done, ops known
Server = Callable[[int, Cost, float], None]  # an op whose requests are simulated, its cost, its size: begins now


@dataclass(slots=True, eq=False)
class Op:
    """One op of the run.

    Args:
        fixed: fs that pass before it shares anything: its own time and its demand's latency.
        flow: fs that the rest takes alone.
        flow_class: class of its demand, -1 if it shares nothing.
        take, give: pool that gives it a server at its start, pool that gets one back at its end; -1 for none.
        is_join: whether it only waits for others, and ends as soon as it starts.
        is_served: whether a server simulates its requests one by one.
        waits_for: ops that have yet to end before it may start.
        followers: ops that wait for it.
        parts: what has yet to end before it ends: its flow, its requests.
        first: class and fs of what comes before its flow and goes at a clock; None once that is over, or if there is none.
        flowing: the class in which it flows now.
        work: pace x fs that it has yet to receive.
    """

    number: int
    fixed: int
    flow: int
    flow_class: int
    take: int = -1
    give: int = -1
    is_join: bool = False
    is_served: bool = False
    waits_for: int = 0
    followers: list[Op] = field(default_factory=list)
    parts: int = 1
    first: tuple[int, int] | None = None
    flowing: int = -1
    work: int = 0
    start: int = -1
    end: int = -1
    granted: int = -1


class PlainEngine:
    """A run. Actors (SimPy processes) use it as they use `hwsim.engine.driver.Driver`."""

    def __init__(self, capacities: Sequence[Capacity], pools: Sequence[Pool], *, limited: Collection[str] = ()) -> None:
        """limited: capacities that change, whose clocks are followed."""
        self.env = simpy.Environment(initial_time=0)
        self.capacities = tuple(capacities)
        self.pools = tuple(pools)
        self.progress: Progress | None = None
        self.server: Server | None = None
        self._numbers = {capacity.name: number for number, capacity in enumerate(self.capacities)}
        self._ops: list[Op] = []
        self._flats: list[FlatGraph] = []
        self.changing = frozenset(limited)
        self._issued = Issued(self.capacities, self.changing)
        self._issued_classes: list[int] = []
        self._issued_starts: list[int] = []
        self._pools = [simpy.Resource(self.env, pool.servers) for pool in pools]
        self._freed_by: list[deque[int]] = [deque() for _ in pools]  # ops whose servers go to the requests in line, in order
        self._classes: list[FlowClass] = []
        self._class_numbers: dict[FlowClass, int] = {}
        self._pace: list[int] = []  # of each class, now
        self._history: list[list[PaceChange]] = []
        self._room = [FULL] * len(self.capacities)
        self._ready: list[Op] = []
        self._due: list[Op] = []
        self._flowing: list[Op] = []
        self._drawing: dict[int, int] = {}
        self._since = 0  # when `work` was last brought up to date
        self._solves = 0
        self._timer: simpy.Event | None = None  # the latest one; earlier ones are out of date
        self._called: dict[EventPriority, int] = {}  # the instant for which a round, solution or report is already asked for
        self._waiters: dict[int, tuple[simpy.Event, set[int]]] = {}  # op -> who waits for it, and the ops that are waited for
        self._ended: list[int] = []
        self._begun: list[Op] = []
        self._done = self._visits = 0

    # ------------------------------------------------------------ what actors call

    def submit(self, graph: OpGraph, at: int | None = None) -> simpy.Event:
        """Start a graph now, or at a later time (fs); an event that succeeds when its last op has ended."""
        if graph.capacities != self.capacities or graph.pools != self.pools:
            raise ValueError("a submitted graph must use the capacities and pools of its run")
        finished = self.env.event()
        if at is None or at <= self.env.now:
            self._load(graph, finished)
        else:
            self.env.process(self._load_later(graph, finished, at))
        return finished

    def label(self, label: Label) -> int:
        """Register a label of issued ops; its number."""
        return self._issued.label(label)

    def queue(self, queue: Queue) -> int:
        """Register a queue of issued ops; its number."""
        return self._issued.queue(queue)

    def cost(self, cost: Cost) -> int:
        """Register a cost of issued ops; its number."""
        number = self._issued.cost(cost)
        flow = self._issued.known[number].flow
        self._issued_classes.append(-1 if flow is None else self._class_number(flow))
        start = self._issued.known[number].started
        self._issued_starts.append(-1 if start is None else self._class_number(start))
        return number

    def issue(self, ops: Sequence[IssuedOp], after: Sequence[int] = ()) -> tuple[simpy.Event, int]:
        """Start a chain of ops now; an event that succeeds when the last has ended, and that op's number."""
        base = len(self._ops)
        chain = []
        for number, op in enumerate(ops, base):
            fixed, flow = self._issued.times(op)
            flow_class = self._issued_classes[op.cost] if op.cost >= 0 and flow else -1
            cost, start = self._issued.start(op)
            first = (self._issued_starts[cost], start) if start else None
            alone = fixed if flow_class >= 0 or first else fixed + flow
            chain.append(Op(number, alone, flow, flow_class, waits_for=int(number > base), first=first))
        for before, after_it in pairwise(chain):
            before.followers.append(after_it)
        self._issued.append(base, ops, after)
        finished = self.env.event()
        self._waiters[chain[-1].number] = finished, {chain[-1].number}
        self._add(chain)
        return finished, chain[-1].number

    def visitor(self, cost: Cost) -> int:
        """Make a cost known of work that is not kept; its number. What draws on nothing has none."""
        flow = self._issued.flow(cost)
        assert flow is not None
        return self._class_number(flow)

    def visit(self, visitor: int, time: int, then: Callable[[int], None]) -> None:
        """Begin work now that alone takes `time` fs. It becomes no op: `then` is called with the time at which it ended."""
        self._visits += 1
        ended = self.env.event()
        ended.callbacks.append(lambda _: then(int(self.env.now)))
        self._waiters[VISIT + self._visits] = ended, {VISIT + self._visits}
        self._ready.append(Op(VISIT + self._visits, 0, time, visitor))
        self._call(ROUND, self._round)

    def past(self, ops: Sequence[IssuedOp]) -> None:
        """Keep a chain of ops of no cost that began at 0 and is over now."""
        self._issued.append(len(self._ops), ops, ())
        self._done += len(ops)
        for op, end in zip(ops, accumulate(op.time for op in ops), strict=True):
            self._ops.append(Op(len(self._ops), op.time, 0, -1, start=end - op.time, end=end))

    def limit(self, capacity: str, fraction: float) -> None:
        """Limit a capacity to a fraction of its rate from now on (0: a failure; 1: all of it)."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"a capacity runs at 0 to 1 of its rate, not at {fraction}")
        number = self._numbers[capacity]
        self._room[number] = int(fraction * 2**53) * FULL >> 53
        self._call(SOLVE, self._solve)

    def finish(self, op: int) -> None:
        """Note that the requests of an op that the server has have all been served now."""
        self._is_due(self._ops[op])

    def run(self) -> Timeline:
        """Play until nothing is due any more."""
        self.env.run()
        if len(self._issued):
            self._flats.append(self._issued.take())
        return Timeline(
            flat=concatenate(self._flats),
            start=ticks.column([op.start for op in self._ops]),
            end=ticks.column([op.end for op in self._ops]),
            granted=np.array([op.granted for op in self._ops], np.int64),
            flow_class=np.array([op.flow_class for op in self._ops], np.int64),  # count
            paces=tuple(tuple(history) for history in self._history),
            alone=tuple(one.alone for one in self._classes),
            solves=self._solves,
            played=np.array([op.number for op in self._ops if op.is_served], np.int64),
            drawing=self._drawing,
        )

    def unfinished(self) -> list[int]:
        """Ops that never ended."""
        return [op.number for op in self._ops if op.end < 0]

    # ------------------------------------------------------------ ops come into the run

    def _load_later(self, graph: OpGraph, finished: simpy.Event, at: int) -> Steps:
        yield self.env.timeout(at - self.env.now)
        self._load(graph, finished)

    def _load(self, graph: OpGraph, finished: simpy.Event) -> None:
        flat = flatten(graph)
        # not closed: every capacity is kept, also those that can never be full
        compiled = compile_flat(flat, closed=False, changing=self.changing)
        if len(self._issued):
            self._flats.append(self._issued.take())
        self._flats.append(flat)
        classes = [*(self._class_number(one) for one in compiled.classes), -1]
        rows = zip(
            compiled.fixed.tolist(),
            compiled.flow.tolist(),
            (classes[number] for number in compiled.flow_class.tolist()),
            flat.take.tolist(),
            flat.give.tolist(),
            flat.joins().tolist(),
            compiled.played.tolist(),
            flat.waits_for.tolist(),
            strict=True,
        )
        ops = [Op(number, *row) for number, row in enumerate(rows, len(self._ops))]
        for place, (number, time) in compiled.starts.items():
            ops[place].first = classes[number], time
        sources, targets = flat.edges()
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            ops[source].followers.append(ops[target])
        last = {op.number for op in ops if not op.followers}
        self._waiters.update(dict.fromkeys(last, (finished, last)))
        if not ops:
            finished.succeed()
        self._add(ops)

    def _add(self, ops: Sequence[Op]) -> None:
        self._ops += ops
        self._ready += [op for op in ops if not op.waits_for]
        self._call(ROUND, self._round)

    def _class_number(self, flow_class: FlowClass) -> int:
        if flow_class not in self._class_numbers:
            self._class_numbers[flow_class] = len(self._classes)
            self._classes.append(flow_class)
            self._pace.append(0)
            self._history.append([])
        return self._class_numbers[flow_class]

    # ------------------------------------------------------------ the life of an op

    def _life(self, op: Op, server: Request | None) -> Steps:
        """A ready op: it gets its server, passes its fixed time, then shares capacities or is served, until it is due."""
        if server is not None:
            at_once = server.triggered
            yield server
            freed_by = self._freed_by[op.take]
            op.granted = freed_by.popleft() if freed_by and not at_once else -1
        op.start = int(self.env.now)
        yield self.env.timeout(op.fixed)
        if op.first is not None:
            self._flow(op, *op.first)
        else:
            yield from self._body(op)

    def _body(self, op: Op) -> Steps:
        """Let an op be served and flow, once its fixed time and its start are over."""
        if op.is_served:
            op.parts = 1 + bool(op.flow)
            self._begun.append(op)
            self._call(TELL, self._tell)
        if op.flow_class >= 0 and op.flow:
            self._flow(op, op.flow_class, op.flow)
        elif op.flow and (op.is_served or op.number in self._drawing):
            yield self.env.timeout(op.flow)
            self._is_due(op)
        elif not op.is_served:
            self._is_due(op)

    def _flow(self, op: Op, flow_class: int, time: int) -> None:
        """Let an op flow in a class; alone it would take this time."""
        self._pass_time()
        op.flowing, op.work = flow_class, self._classes[flow_class].alone * time
        self._flowing.append(op)
        self._call(SOLVE, self._solve)

    def _is_due(self, op: Op) -> None:
        op.parts -= 1
        if not op.parts:
            self._due.append(op)
            self._call(ROUND, self._round)

    def _round(self, _: simpy.Event) -> None:
        """End what is due and start what thereby may: once, in the order of op numbers, whatever order SimPy's events had."""
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

    def _give_back(self, op: Op) -> None:
        """Give a server back to its pool, which hands it to the op that has waited longest."""
        pool, freed_by = self._pools[op.give], self._freed_by[op.give]
        if len(freed_by) < len(pool.queue):
            freed_by.append(op.number)
        pool.release(pool.users[0])

    def _end(self, op: Op) -> list[Op]:
        """Note the op's end; the ops that waited for nothing else."""
        op.end = int(self.env.now)
        self._done += op.number < VISIT
        if op.number in self._waiters:
            self._ended.append(op.number)
            self._call(TELL, self._tell)
        freed = []
        for follower in op.followers:
            follower.waits_for -= 1
            if not follower.waits_for:
                freed.append(follower)
        return freed

    # ------------------------------------------------------------ sharing

    def _pass_time(self) -> None:
        """Take off what every flowing op has received since the last change."""
        now = int(self.env.now)
        for op in self._flowing:
            op.work -= self._pace[op.flowing] * (now - self._since)
        self._since = now

    def _solve(self, _: simpy.Event) -> None:
        """Work out the pace of every class in flight, and set a timer for the next op that will have received its all."""
        self._pass_time()
        members = Counter(op.flowing for op in self._flowing)
        numbers = sorted(members)
        crowds = Counter[int]()
        for number in numbers:
            crowd = self._classes[number].crowd
            if crowd is not None:
                crowds[crowd.capacity] += members[number] * crowd.depth
        classes = [self._classes[number].now(crowds, self._room) for number in numbers]
        room = list(self._room)
        for number, one in zip(numbers, classes, strict=True):
            for capacity, part in one.holds:
                room[capacity] -= members[number] * part
        paces, bounds = fill(
            [one.alone for one in classes],
            [members[number] for number in numbers],
            [one.weights for one in classes],
            {capacity: max(0, left) for capacity, left in enumerate(room)},
        )
        self._solves += 1
        self._pace = [0] * len(self._classes)
        bound_of = [UNBOUND] * len(self._classes)
        for number, pace, bound in zip(numbers, paces, bounds, strict=True):
            if bound == UNBOUND:
                bound = self._classes[number].held_by(pace, self._room)
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
        """Ops that have received their all are due; the pace of the others may change."""
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
        self._call(SOLVE, self._solve)

    # ------------------------------------------------------------ the order of an instant

    def _call(self, priority: EventPriority, then: Callable[[simpy.Event], None]) -> None:
        """Have a round, a solution or a report at this instant, after all that comes before it; one is enough."""
        if self._called.get(priority) == self.env.now:
            return
        self._called[priority] = int(self.env.now)
        event = self.env.event()
        event._ok, event._value = True, None  # noqa: SLF001  (an event born triggered, as SimPy's Timeout is)

        def now(event: simpy.Event) -> None:
            del self._called[priority]
            then(event)

        event.callbacks.append(now)
        self.env.schedule(event, priority)

    def _tell(self, _: simpy.Event) -> None:
        """Tell the server of ops whose requests begin, and the waiters of ops that ended."""
        if self.progress is not None:
            self.progress(self._done, len(self._ops))
        begun, self._begun = self._begun, []
        for op in begun:
            if self.server is None:
                raise ValueError("ops whose requests are simulated need a server")
            self.server(op.number, self._ops_cost(op), self._ops_size(op))
        ended, self._ended = self._ended, []
        for number in ended:
            finished, left = self._waiters.pop(number)
            left.discard(number)
            if not left:
                finished.succeed()

    def _ops_cost(self, op: Op) -> Cost:
        flat, place = self._place(op)
        return flat.graph.costs[int(flat.cost[place])]

    def _ops_size(self, op: Op) -> float:
        flat, place = self._place(op)
        return float(flat.size[place])

    def _place(self, op: Op) -> tuple[FlatGraph, int]:
        """The graph an op came with, and its place there."""
        place = op.number
        for flat in self._flats:
            if place < len(flat):
                return flat, place
            place -= len(flat)
        raise IndexError(f"op {op.number} came with no graph")


def _number(op: Op) -> int:
    return op.number
