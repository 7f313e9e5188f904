"""Ops that actors issue during a run, with labels, queues and costs that are registered once.

Every submitted graph must be flattened and compiled. An actor that issues thousands of short chains of the same kinds of ops
(such as successive batches of requests) registers labels, queues and costs once, and then refers to them by number.
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
    """An issued op, with the numbers of its registered label, queue and cost.

    Args:
        size: factor on the amounts of the cost.
        time: duration before the latency of the cost (fs).
        clock: cost whose clock scales `time`; -1: none.
    """

    label: int
    queue: int
    cost: int = -1
    size: float = 1.0
    time: int = 0
    clock: int = -1


class _RegisteredCost(NamedTuple):
    """A registered cost.

    Args:
        latency: latency (fs).
        body: subsequent time without contention (s).
        flow: class of the demand; None: no demand.
        start: part of the latency that scales with a changing clock (fs).
        started: class of this part.
    """

    latency: int
    body: float
    flow: FlowClass | None
    start: int
    started: FlowClass | None


class IssuedOps:
    """The ops issued since the last submitted graph, with the tables of all issued ops."""

    def __init__(self, capacities: Sequence[Capacity], changing: frozenset[str] = frozenset()) -> None:
        """Create empty tables; `changing`: capacities whose speed changes."""
        self.changing = changing
        self._capacities = tuple(capacities)
        self._rates = rates_of(capacities)
        self._numbers = {capacity.name: number for number, capacity in enumerate(capacities)}
        self.labels: list[Label] = []
        self.queues: list[Queue] = []
        self.costs: list[Cost] = []
        self.known: list[_RegisteredCost] = []
        self._ops: list[IssuedOp] = []
        self._edges: list[tuple[int, int, int]] = []
        self._base = 0

    def __len__(self) -> int:
        return len(self._ops)

    def cost(self, cost: Cost) -> int:
        """Register a cost; return its number."""
        demand = cost.demand
        self.costs.append(cost)
        started = start_class(demand, self._numbers, self.changing)
        start = 0 if started is None else ticks.femtoseconds(demand.start * demand.latency)
        latency = ticks.femtoseconds(demand.latency)
        self.known.append(_RegisteredCost(latency, demand.body(self._rates), self.flow(cost), start, started))
        return len(self.costs) - 1

    def flow(self, cost: Cost) -> FlowClass | None:
        """Return the class of a cost's demand; None without a demand."""
        demand = cost.demand
        class_ = flow_class(demand, self._rates, self._numbers, self.changing)
        return class_ if demand.amounts or demand.holds or demand.crowd or class_.clocks else None

    def start(self, op: IssuedOp) -> tuple[int, int]:
        """Return (cost, start-up time in fs that scales with a changing clock) of an op; the time is 0 without such a clock."""
        if op.clock >= 0 and self.known[op.clock].started is not None:
            return op.clock, op.time
        return op.cost, 0 if op.cost < 0 else self.known[op.cost].start

    def times(self, op: IssuedOp) -> tuple[int, int]:
        """Return (time before start-up and flow, time of the flow without contention) of an op (fs)."""
        fixed = op.time - self.start(op)[1]
        if op.cost < 0:
            return fixed, 0
        cost = self.known[op.cost]
        return fixed + cost.latency, ticks.femtoseconds(cost.body * op.size)

    def append(self, base: int, ops: Sequence[IssuedOp], after: Sequence[int]) -> None:
        """Record a chain of ops.

        Args:
            base: number of the first op in the run.
            after: numbers of preceding ops; ops before the last submitted graph are ignored.
        """
        if not self._ops:
            self._base = base
        first = len(self._ops)
        self._ops += ops
        self._edges += [(op - self._base, first, 0) for op in after if op >= self._base]
        self._edges += [(index, index + 1, 0) for index in range(first, len(self._ops) - 1)]

    def label(self, label: Label) -> int:
        """Register a label; return its number."""
        self.labels.append(label)
        return len(self.labels) - 1

    def queue(self, queue: Queue) -> int:
        """Register a queue; return its number."""
        self.queues.append(queue)
        return len(self.queues) - 1

    def clear(self) -> None:
        """Remove the recorded ops, but not the registered tables."""
        self._ops, self._edges = [], []

    def take(self) -> FlatGraph:
        """Return the recorded ops as a flat graph, and remove them."""
        graph = self.graph()
        self.clear()
        return flatten(graph)

    def graph(self) -> OpGraph:
        """Return the recorded ops as a graph."""
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
