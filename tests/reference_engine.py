"""The engine's semantics again, naively: one SimPy process per op, every active demand by itself.

No classes, no components, no pruning, no lazy heaps.  Two priorities make instants canonical:
SimPy's ordinary events of an instant come first, then rounds until nothing new is due, then
one solution of all rates.  Slow on purpose; what it says is what `hwsim.engine` must say, bit for bit.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy
from simpy.events import EventPriority

from hwsim.engine.compile import flow_class
from hwsim.engine.fair import FULL
from hwsim.opgraph import LAST, PAIRED, FlatGraph, OpGraph, flatten
from hwsim.results.timeline import FEMTO

ROUND, SOLVE = EventPriority(2), EventPriority(3)

Steps = Generator[simpy.Event, Any, None]


@dataclass
class Flow:
    """One demand in flight."""

    op: int
    alone: int
    weights: dict[int, int]
    holds: dict[int, int]
    work: int  # pace x fs still to be received
    pace: int = 0


@dataclass(frozen=True)
class Played:
    """Start and end (fs, -1: never) of every op, and whose end let it into its pool."""

    start: list[int]
    end: list[int]
    granted: list[int]


def edges(graph: OpGraph) -> list[tuple[int, int]]:
    """(from, to) of all iterations, by definition: edges, ties, program order, depths."""
    number: dict[tuple[int, int, int], int] = {}  # (block, iteration, position) -> op
    for block, body in enumerate(graph.blocks):
        for iteration in range(body.times):
            for position in range(len(body)):
                number[block, iteration, position] = len(number)
    found = []
    lines: list[list[tuple[int, int]]] = [[] for _ in graph.queues]  # (op, who inserts it)
    for (block, iteration, position), op in number.items():
        body = graph.blocks[block]
        for source, target, lag in body.edges.tolist():
            if target == position and lag <= iteration:
                found.append((number[block, iteration - lag, source], op))
        if body.queue[position] >= 0:
            inserter = int(body.insert[position])
            lines[body.queue[position]].append((op, -1 if inserter < 0 else number[block, iteration, inserter]))
    for before, source, after, target, mode in graph.ties.tolist():
        times = graph.blocks[before].times
        found += [
            (number[before, iteration, source], number[after, iteration if mode == PAIRED else 0, target])
            for iteration in range(times)
            if mode != LAST or iteration == times - 1
        ]
    for queue, line in zip(graph.queues, lines, strict=True):
        for place, (op, inserter) in enumerate(line):
            if place:
                found.append((line[place - 1][0], op))
            if queue.depth is not None and place >= queue.depth and inserter >= 0:
                found.append((line[place - queue.depth][0], inserter))
    return sorted(found)


def paces(flows: Sequence[Flow], room: Sequence[int]) -> list[int]:
    """Progressive filling from its definition: all paces rise together until their own limit or a full capacity."""
    held = [sum(flow.holds.get(capacity, 0) for flow in flows) for capacity in range(len(room))]
    settled: dict[int, int] = {}
    while len(settled) < len(flows):
        rising = [number for number in range(len(flows)) if number not in settled]
        levels: dict[int, int] = {}
        for capacity in range(len(room)):
            load = sum(flows[number].weights.get(capacity, 0) for number in rising)
            taken = sum(pace * flows[number].weights.get(capacity, 0) for number, pace in settled.items())
            if load:
                levels[capacity] = (max(0, room[capacity] - held[capacity]) - taken) // load
        slowest = min(rising, key=lambda number: flows[number].alone)
        level = min(levels.values(), default=flows[slowest].alone)
        if flows[slowest].alone <= level:
            settled[slowest] = flows[slowest].alone
            continue
        full = {capacity for capacity, reached in levels.items() if reached == level}
        settled.update({number: level for number in rising if full & flows[number].weights.keys()})
    return [settled[number] for number in range(len(flows))]


@dataclass
class Reference:
    """A run: `play` puts graphs and limits into it."""

    servers: list[int]
    room: list[int]
    env: simpy.Environment = field(default_factory=lambda: simpy.Environment(initial_time=0))
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    granted: list[int] = field(default_factory=list)
    go: list[simpy.Event] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    take: list[int] = field(default_factory=list)
    give: list[int] = field(default_factory=list)
    join: list[bool] = field(default_factory=list)
    waiting: list[list[int]] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    due: list[int] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    since: int = 0
    stale: bool = False
    calls: dict[int, int] = field(default_factory=dict)  # priority -> the instant it is already asked for
    timer: int = 0

    def load(self, flat: FlatGraph) -> None:
        rates = {capacity.name: capacity.rate for capacity in flat.graph.capacities}
        numbers = {capacity.name: number for number, capacity in enumerate(flat.graph.capacities)}
        base = len(self.start)
        for op in range(len(flat)):
            self.start.append(-1)
            self.end.append(-1)
            self.granted.append(-1)
            self.go.append(self.env.event())
            self.missing.append(0)
            self.after.append([])
            self.take.append(int(flat.take[op]))
            self.give.append(int(flat.give[op]))
            bare = flat.queue[op] < 0 and flat.take[op] < 0 and flat.give[op] < 0
            self.join.append(bool(bare and flat.cost[op] < 0 and flat.time[op] == 0))
            fixed, flow = int(flat.time[op]), None
            if flat.cost[op] >= 0:
                demand = flat.graph.costs[int(flat.cost[op])].demand
                fixed += round(demand.latency * FEMTO)
                alone = round(demand.body(rates) * float(flat.size[op]) * FEMTO)
                one = flow_class(demand, rates, numbers)
                flow = Flow(base + op, one.alone, dict(one.weights), dict(one.holds), one.alone * alone) if alone else None
            self.env.process(self.op(base + op, fixed, flow))
        for source, target in edges(flat.graph):
            self.after[base + source].append(base + target)
            self.missing[base + target] += 1
        self.ready += [op for op in range(base, len(self.start)) if not self.missing[op]]
        self.call(ROUND)

    def op(self, number: int, fixed: int, flow: Flow | None) -> Steps:
        """The life of an op: wait to be started, pass the fixed time, flow, be due."""
        yield self.go[number]
        yield self.env.timeout(fixed)
        if flow is None:
            self.due.append(number)
            self.call(ROUND)
        else:
            self.pass_time()
            self.flows.append(flow)
            self.call(SOLVE)

    def call(self, priority: EventPriority) -> None:
        """Have a round, or a solution, later at this instant (one is enough)."""
        if self.calls.get(priority) == self.env.now:
            return
        self.calls[priority] = int(self.env.now)
        event = self.env.event()
        event._ok, event._value = True, None
        event.callbacks.append(self.round if priority == ROUND else self.solve)
        self.env.schedule(event, priority)

    def round(self, _: simpy.Event) -> None:
        """Retire, join, hand servers over, start."""
        del self.calls[ROUND]
        now = int(self.env.now)
        retired, self.due = sorted(self.due), []
        ready, self.ready = self.ready, []
        for op in retired:
            ready += self.finish(op)
        while any(self.join[op] for op in ready):
            joined = [op for op in ready if self.join[op]]
            ready = [op for op in ready if not self.join[op]]
            for op in joined:
                self.start[op] = now
                ready += self.finish(op)
        for op in retired:
            pool = self.give[op]
            if pool < 0:
                continue
            if self.waiting[pool]:
                heir = self.waiting[pool].pop(0)
                self.granted[heir] = op
                self.begin(heir)
            else:
                self.servers[pool] += 1
        for op in sorted(ready):
            pool = self.take[op]
            if pool >= 0 and not self.servers[pool]:
                self.waiting[pool].append(op)
                continue
            if pool >= 0:
                self.servers[pool] -= 1
            self.begin(op)

    def begin(self, op: int) -> None:
        self.start[op] = int(self.env.now)
        self.go[op].succeed()

    def finish(self, op: int) -> list[int]:
        """The op has ended; who waited for it alone."""
        self.end[op] = int(self.env.now)
        freed = []
        for later in self.after[op]:
            self.missing[later] -= 1
            if not self.missing[later]:
                freed.append(later)
        return freed

    def pass_time(self) -> None:
        """Give every demand in flight what it has earned until now."""
        for flow in self.flows:
            flow.work -= flow.pace * (int(self.env.now) - self.since)
        self.since = int(self.env.now)

    def solve(self, _: simpy.Event) -> None:
        """Once per instant, when all is quiet: the rates of every demand in flight, and the next that ends."""
        del self.calls[SOLVE]
        self.pass_time()
        for flow, pace in zip(self.flows, paces(self.flows, self.room), strict=True):
            flow.pace = pace
        self.timer += 1
        left = [-(-flow.work // flow.pace) for flow in self.flows if flow.pace]
        if left:
            self.env.process(self.wake(min(left), self.timer))

    def wake(self, time: int, timer: int) -> Steps:
        yield self.env.timeout(time)
        if timer != self.timer:
            return
        self.pass_time()
        self.due += [flow.op for flow in self.flows if flow.work <= 0]
        self.flows = [flow for flow in self.flows if flow.work > 0]
        self.call(ROUND)
        self.call(SOLVE)

    def submit_later(self, flat: FlatGraph, at: int) -> Steps:
        yield self.env.timeout(at)
        self.load(flat)

    def limit_later(self, capacity: int, at: int, fraction: float) -> Steps:
        yield self.env.timeout(at)
        self.room[capacity] = int(fraction * 2**53) * FULL >> 53
        self.call(SOLVE)


def play(
    graph: OpGraph,
    *,
    later: Sequence[tuple[int, OpGraph]] = (),
    limits: Sequence[tuple[int, int, float]] = (),
) -> Played:
    """Play a graph from 0, others from (fs, graph) on, while capacities change at (fs, number, fraction)."""
    run = Reference([pool.servers for pool in graph.pools], [FULL] * len(graph.capacities), waiting=[[] for _ in graph.pools])
    run.load(flatten(graph))
    for at, other in later:
        run.env.process(run.submit_later(flatten(other), at))
    for at, capacity, fraction in limits:
        run.env.process(run.limit_later(capacity, at, fraction))
    run.env.run()
    return Played(run.start, run.end, run.granted)
