"""Ops that actors issue one after another while the run goes on: columns that grow, and tables that are worked out once.

A graph submitted is flattened and compiled each time. An actor that issues thousands of short chains of the same kinds of
ops (a batch of requests after another) registers labels, queues and costs once and then names them by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.demand import Capacity, Cost, rates_of
from hwsim.engine.compile import flow_class, start_class
from hwsim.engine.fluid import FlowClass
from hwsim.graph.flat import FlatGraph, flatten
from hwsim.graph.opgraph import Block, Label, OpGraph, Queue


class IssuedOp(NamedTuple):
    """An op by the numbers of what was registered.

    time: own fs before the cost's latency. size: times the cost's amounts. clock: a cost at whose clock the own time goes, or -1.
    """

    label: int
    queue: int
    cost: int = -1
    size: float = 1.0
    time: int = 0
    clock: int = -1


class _Known(NamedTuple):
    """A cost made ready: fs of its latency, seconds of its body alone, class of its demand (None: it draws on nothing).

    start, started: fs of the latency that go at a clock whose speed changes, and their class.
    """

    latency: int
    body: float
    flow: FlowClass | None
    start: int
    started: FlowClass | None


class Issued:
    """The ops issued since the last submitted graph, and the tables of all that were."""

    def __init__(self, capacities: Sequence[Capacity], changing: frozenset[str] = frozenset()) -> None:
        """changing: capacities whose speed changes."""
        self.changing = changing
        self._capacities = tuple(capacities)
        self._rates = rates_of(capacities)
        self._numbers = {capacity.name: number for number, capacity in enumerate(capacities)}
        self.labels: list[Label] = []
        self.queues: list[Queue] = []
        self.costs: list[Cost] = []
        self.known: list[_Known] = []
        self._ops: list[IssuedOp] = []
        self._edges: list[tuple[int, int, int]] = []
        self._base = 0

    def __len__(self) -> int:
        return len(self._ops)

    def cost(self, cost: Cost) -> int:
        """Make a cost known; its number."""
        demand = cost.demand
        self.costs.append(cost)
        started = start_class(demand, self._numbers, self.changing)
        start = 0 if started is None else ticks.femtoseconds(demand.start * demand.latency)
        latency = ticks.femtoseconds(demand.latency)
        self.known.append(_Known(latency, demand.body(self._rates), self.flow(cost), start, started))
        return len(self.costs) - 1

    def flow(self, cost: Cost) -> FlowClass | None:
        """The class of a cost's demand, None if it draws on nothing."""
        demand = cost.demand
        found = flow_class(demand, self._rates, self._numbers, self.changing)
        return found if demand.amounts or demand.holds or demand.crowd or found.clocks else None

    def start(self, op: IssuedOp) -> tuple[int, int]:
        """The cost whose start an op has, and its fs, where the speed of a clock of it changes; else 0 fs."""
        if op.clock >= 0 and self.known[op.clock].started is not None:
            return op.clock, op.time
        return op.cost, 0 if op.cost < 0 else self.known[op.cost].start

    def times(self, op: IssuedOp) -> tuple[int, int]:
        """fs that pass before its start or its flow, and of its flow alone."""
        fixed = op.time - self.start(op)[1]
        if op.cost < 0:
            return fixed, 0
        cost = self.known[op.cost]
        return fixed + cost.latency, ticks.femtoseconds(cost.body * op.size)

    def append(self, base: int, ops: Sequence[IssuedOp], after: Sequence[int]) -> None:
        """Note a chain whose first op has the number `base` in the run.

        after: numbers of earlier ops that it follows; those before the last submitted graph are left out.
        """
        if not self._ops:
            self._base = base
        first = len(self._ops)
        self._ops += ops
        self._edges += [(op - self._base, first, 0) for op in after if op >= self._base]
        self._edges += [(index, index + 1, 0) for index in range(first, len(self._ops) - 1)]

    def label(self, label: Label) -> int:
        """Make a label known; its number."""
        self.labels.append(label)
        return len(self.labels) - 1

    def queue(self, queue: Queue) -> int:
        """Make a queue known; its number."""
        self.queues.append(queue)
        return len(self.queues) - 1

    def clear(self) -> None:
        """Forget the ops so far; what was made known stays."""
        self._ops, self._edges = [], []

    def take(self) -> FlatGraph:
        """The ops so far as a flat graph; none are left."""
        graph = self.graph()
        self.clear()
        return flatten(graph)

    def graph(self) -> OpGraph:
        """The ops so far."""
        columns = np.array([(op.label, op.queue, op.cost, op.time) for op in self._ops], object).reshape(-1, 4)
        label, queue, cost, time = (ticks.column(columns[:, index]) for index in range(4))
        none = np.full(len(self._ops), -1, np.int64)
        body = Block(
            label=label,
            cost=cost,
            size=np.array([op.size for op in self._ops], np.float64),
            time=time,
            queue=queue,
            insert=none,
            take=none,
            give=none,
            edges=np.array(self._edges, np.int64).reshape(-1, 3),
        )
        return OpGraph(
            blocks=(body,),
            labels=tuple(self.labels),
            costs=tuple(self.costs),
            capacities=self._capacities,
            queues=tuple(self.queues),
        )
