"""Builder of op graphs, for Python users, for the lowering of workloads, and for random graphs in tests.

>>> graph = GraphBuilder()
>>> stream = graph.queue("stream", "gpu0")
>>> with graph.repeat(1000):
...     step = graph.op("step", device="gpu0", time=30e-6, queue=stream)
>>> last = graph.op("done", after=[step])
>>> graph.build().total
1001
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hwsim import ticks
from hwsim.demand import Capacity, Cost
from hwsim.graph.opgraph import (
    EVERY,
    LAST,
    PAIRED,
    BatchPipeline,
    Block,
    Buffer,
    Ints,
    Label,
    OpGraph,
    Pool,
    Queue,
    RepresentedRanks,
    TrainingRecord,
)
from hwsim.records import dataclass

T = TypeVar("T")
Edge = tuple[int, int, int]


class OpRef(NamedTuple):
    """A reference to an op: the number of its block and its position in the body."""

    block: int
    op: int


def block(
    label: ArrayLike,
    *,
    cost: ArrayLike = -1,
    size: ArrayLike = 1.0,
    time: int | Sequence[int] | Ints = 0,
    queue: ArrayLike = -1,
    insert: ArrayLike = -1,
    take: ArrayLike = -1,
    give: ArrayLike = -1,
    edges: ArrayLike = (),
    times: int = 1,
) -> Block:
    """Return a block from columns, which it does not copy; a scalar is repeated for all ops. `time` is in fs.

    >>> len(block([0, 0, 0], edges=[(0, 1, 0), (1, 2, 0)]))
    3
    """
    first = np.asarray(label, np.int64)

    def column(values: ArrayLike) -> Ints:
        return np.broadcast_to(np.asarray(values, np.int64), first.shape)

    times_fs = ticks.column([int(time)] if isinstance(time, int | np.integer) else time)
    return Block(
        label=first,
        cost=column(cost),
        size=np.broadcast_to(np.asarray(size, np.float64), first.shape),
        time=np.broadcast_to(times_fs, first.shape),
        queue=column(queue),
        insert=column(insert),
        take=column(take),
        give=column(give),
        edges=np.asarray(edges, np.int64).reshape(-1, 3),
        times=times,
    )


@dataclass(slots=True)
class _Body:
    """A block under construction, with rows (label, cost, size, time, queue, insert, take, give)."""

    times: int
    rows: list[tuple[int, int, float, int, int, int, int, int]] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def block(self) -> Block:
        label, cost, size, time, *others = zip(*self.rows, strict=True)
        queues = dict(zip(("queue", "insert", "take", "give"), others, strict=True))
        return block(label, cost=cost, size=size, time=time, **queues, edges=self.edges, times=self.times)


class GraphBuilder:
    """A builder to which ops are added in program order; `build` returns the graph.

    Ops outside `repeat` are in blocks that run once. An edge between two blocks becomes a tie.
    """

    def __init__(self, capacities: Iterable[Capacity] = ()) -> None:
        self._capacities = tuple(capacities)
        self._labels: dict[Label, int] = {}
        self._label_list: Sequence[Label] = ()  # labels in order; updated on access
        self._costs: dict[Cost, int] = {}
        self._known: dict[int, tuple[Cost, int]] = {}  # id -> cost and index; avoids slow hashing of repeated costs
        self._queues: list[Queue] = []
        self._pools: list[Pool] = []
        self._bodies: list[_Body | Block] = []
        self._open: _Body | None = None
        self._ties: list[tuple[int, int, int, int, int]] = []
        self._buffers: list[Buffer] = []
        self._alike: RepresentedRanks | None = None
        self._full: dict[int, Cost] = {}  # index -> cost of `write_out`
        self._cost_list: tuple[Cost, ...] = ()  # costs in order; updated on access
        self._lines: list[BatchPipeline] = []
        self._trainings: list[TrainingRecord] = []
        self.hidden: Container[str] = ()  # names of capacities that another represents
        self.unfolded = ""  # reason why identical ranks are not folded

    def queue(self, name: str, device: str = "", depth: int | None = None, kind: str = "") -> int:
        """Add an in-order queue, with at most `depth` inserted ops that have not ended; return its index."""
        self._queues.append(Queue(name, device, depth, kind))
        return len(self._queues) - 1

    def pool(self, name: str, servers: int, *, backend: bool = False) -> int:
        """Add a pool of servers, or of workers of a runtime (`backend`); return its index."""
        self._pools.append(Pool(name, servers, backend))
        return len(self._pools) - 1

    def label(self, name: str, kind: str = "op", device: str = "", program: str = "main") -> int:
        """Return the index of a label; equal labels have the same index."""
        return _index(self._labels, Label(name, kind, device, program))

    def cost(self, cost: Cost | None) -> int:
        """Return the index of a cost, -1 for None; equal costs have the same index."""
        if cost is None:
            return -1
        entry = self._known.get(id(cost))
        if entry is None:
            entry = self._known[id(cost)] = cost, _index(self._costs, cost)
        return entry[1]

    def label_at(self, index: int) -> Label:
        """Return the label of an index."""
        if len(self._label_list) != self.label_count():
            self._label_list = tuple(self._labels)
        return self._label_list[index]

    def cost_at(self, index: int) -> Cost:
        """Return the cost of an index."""
        if len(self._cost_list) != len(self._costs):
            self._cost_list = tuple(self._costs)
        return self._cost_list[index]

    def queue_at(self, index: int) -> Queue:
        """Return the queue of an index."""
        return self._queues[index]

    def queue_count(self) -> int:
        """Return the number of queues."""
        return len(self._queues)

    def label_count(self) -> int:
        """Return the number of labels."""
        return len(self._labels)

    def widest(self) -> int:
        """Return the maximum number of capacities that one cost draws from."""
        return max((len(cost.demand.amounts if cost.wide is None else cost.wide.numbers) for cost in self._costs), default=0)

    def write_out(self) -> None:
        """Convert all costs in columns to costs by name of the capacity."""
        self._full = {number: cost.in_full() for cost, number in self._costs.items() if cost.wide is not None}

    def stands_for(self, alike: RepresentedRanks, hidden: Container[str] = ()) -> None:
        """Set the ranks that the ops represent, if they are already folded.

        Args:
            alike: represented ranks.
            hidden: names of capacities that another capacity represents.
        """
        self._alike, self.hidden = alike, hidden

    def drawn(self) -> frozenset[str]:
        """Return the names of the capacities that costs draw from."""
        return frozenset(name for cost in self._costs for name, _ in (*cost.demand.amounts, *cost.demand.holds))

    def offer(self, capacities: Iterable[Capacity]) -> None:
        """Set the capacities of the graph."""
        self._capacities = tuple(capacities)

    def op(
        self,
        name: str,
        *,
        kind: str = "op",
        device: str = "",
        program: str = "main",
        cost: Cost | None = None,
        size: float = 1.0,
        time: float = 0.0,
        queue: int = -1,
        insert: OpRef | None = None,
        take: int = -1,
        give: int = -1,
        after: Sequence[OpRef] = (),
    ) -> OpRef:
        """Add an op at the end of the current body.

        Args:
            name, kind, device, program: label of the op.
            cost: demand of the op; None: none.
            size: factor on the demand of the cost.
            time: duration before the latency of the cost (s).
            queue: index of its queue; -1: none.
            insert: op of the same body that inserts the op into its queue.
            take, give: indices of the pools from which the op takes a server, and to which it returns one; -1: none.
            after: predecessors.
        """
        label = self.label(name, kind, device, program)
        time_fs = ticks.femtoseconds(time)
        return self.indexed(
            label, self.cost(cost), after, size=size, time=time_fs, queue=queue, insert=insert, take=take, give=give
        )

    def indexed(
        self,
        label: int,
        cost: int = -1,
        after: Sequence[OpRef] = (),
        *,
        size: float = 1.0,
        time: int = 0,
        queue: int = -1,
        insert: OpRef | None = None,
        take: int = -1,
        give: int = -1,
    ) -> OpRef:
        """Add an op like `op`, with indices of label and cost, and `time` in fs."""
        body = self._body()
        added = OpRef(len(self._bodies) - 1, len(body.rows))
        if insert is not None and insert.block != added.block:
            raise ValueError(f"'{self.label_at(label).name}': `insert` must be an op of the same body")
        body.rows.append((label, cost, size, time, queue, -1 if insert is None else insert.op, take, give))
        for before in after:
            self.edge(before, added)
        return added

    def edge(self, before: OpRef, then: OpRef, lag: int = 0) -> None:
        """Add an edge: `then` starts after the end of `before`, of `lag` iterations ago in one body, or of the last iteration."""
        if before.block != then.block:
            if lag:
                raise ValueError("`lag` is valid only for edges inside one body")
            self.tie(before, then)
            return
        body = self._bodies[before.block]
        if isinstance(body, Block):
            raise TypeError("edges of a block from columns are part of its columns")
        body.edges.append((before.op, then.op, lag))

    def tie(self, before: OpRef, then: OpRef, mode: int = LAST, *, lag: int = 0) -> None:
        """Add an edge between two blocks, of mode LAST, EVERY or PAIRED, or of a lag of 1 or more (see `OpGraph.ties`)."""
        if mode not in {LAST, EVERY, PAIRED}:
            raise ValueError(f"expected mode LAST, EVERY or PAIRED, got {mode}")
        self._ties.append((*before, *then, -lag or mode))

    def buffer(self, buffer: Buffer) -> None:
        """Add a buffer whose marks are ops of existing blocks."""
        self._buffers.append(buffer)

    def line(self, line: BatchPipeline) -> None:
        """Add a pipeline whose ops are already added."""
        self._lines.append(line)

    def training(self, training: TrainingRecord) -> None:
        """Add a training whose steps are ops of the graph."""
        self._trainings.append(training)

    def add(self, block: Block) -> int:
        """Append a block from columns (see `block`); return its number."""
        self._open = None
        self._bodies.append(block)
        return len(self._bodies) - 1

    @contextmanager
    def repeat(self, times: int) -> Iterator[None]:
        """Add the ops inside the context as one body that runs `times` times."""
        if times < 0:
            raise ValueError(f"expected a number of iterations of 0 or more, got {times}")
        if self._open is not None and self._open.times != 1:
            raise ValueError("nested `repeat` is not supported: unroll the inner one")
        self._open = _Body(times)
        self._bodies.append(self._open)
        yield
        self._open = None

    def build(self, alike: RepresentedRanks | None = None, unfolded: str = "") -> OpGraph:
        """Return the graph.

        Args:
            alike: ranks that the ops represent.
            unfolded: reason why every rank has its own ops.
        """
        renamed = [-1] * len(self._bodies)
        blocks: list[Block] = []
        for number, body in enumerate(self._bodies):
            if isinstance(body, Block) or body.rows:
                renamed[number] = len(blocks)
                blocks.append(body if isinstance(body, Block) else body.block())
        ties = [(renamed[a], op, renamed[b], then, mode) for a, op, b, then, mode in self._ties]
        return OpGraph(
            blocks=tuple(blocks),
            labels=tuple(self._labels),
            costs=tuple(self._full.get(number, cost) for cost, number in self._costs.items()),
            capacities=self._capacities,
            queues=tuple(self._queues),
            pools=tuple(self._pools),
            ties=np.array(ties, np.int64).reshape(-1, 5),
            buffers=tuple(buffer.renumbered(renamed) for buffer in self._buffers),
            alike=alike or self._alike,
            unfolded=unfolded or self.unfolded,
            lines=tuple(self._lines),
            trainings=tuple(self._trainings),
        )

    def _body(self) -> _Body:
        if self._open is None:
            self._open = _Body(1)
            self._bodies.append(self._open)
        return self._open


def _index(table: dict[T, int], value: T) -> int:
    return table.setdefault(value, len(table))


def capacities_of(machine: Mapping[str, Capacity]) -> tuple[Capacity, ...]:
    """Return the capacities in order of their names, which is independent of the order in the machine file."""
    return tuple(machine[name] for name in sorted(machine))
