"""Flat op graph: blocks unrolled, with queues and their depths as edges, the input of the event simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hwsim import ticks
from hwsim.graph.opgraph import LAST, PAIRED, Block, Floats, Ints, OpGraph
from hwsim.records import dataclass
from hwsim.spec.memo import MANY, memo_table, memoize_result

FEW: Final = 1 << 16  # ops up to which columns are stored in full


@dataclass(frozen=True, slots=True)
class FlatGraph:
    """A graph of every op of every iteration, with successor lists in CSR form."""

    graph: OpGraph
    label: Ints
    cost: Ints
    size: Floats
    time: Ints
    queue: Ints
    take: Ints
    give: Ints
    iteration: Ints
    first: Ints  # successors of op i: next[first[i]:first[i + 1]]
    next: Ints
    waits_for: Ints  # number of predecessors

    def __len__(self) -> int:
        return len(self.label)

    def joins(self) -> NDArray[np.bool_]:
        """Return a mask of the joins: ops that only wait for their predecessors."""
        is_join: NDArray[np.bool_] = (self.queue < 0) & (self.take < 0) & (self.give < 0) & (self.cost < 0) & (self.time == 0)
        return is_join

    def edges(self, begin: int = 0, end: int | None = None) -> tuple[Ints, Ints]:
        """Return the edges as columns (from, to), of all ops or of the ops from `begin` to `end`."""
        if begin == 0 and (end is None or end >= len(self)):
            return memoize_result("edges", (self.first, self.next), lambda: self._edges(0, None), rows=len(self.next))
        return self._edges(begin, end)

    def _edges(self, begin: int, end: int | None) -> tuple[Ints, Ints]:
        first = self.first[begin : None if end is None else end + 1]
        source = np.repeat(np.arange(begin, begin + len(first) - 1, dtype=np.int32), np.diff(first))
        return source, self.next[first[0] : first[-1]]


def flatten(graph: OpGraph) -> FlatGraph:
    """Unroll the blocks and convert queues and their depths to edges.

    Runs that share a memo store also share the edges of successive graphs that differ only in times.
    """
    latest: dict[str, FlatGraph] = {} if (table := memo_table("flat")) is None else table
    if latest:
        from hwsim.graph.equality import is_variant

    def column(name: str, kind: DTypeLike | None = np.int32) -> NDArray[Any]:
        return _joined([_tiled(getattr(block, name), block.times) for block in graph.blocks], kind)

    queue, before = column("queue"), latest.get("")
    same = before is not None and is_variant(before.graph, graph)
    flat = FlatGraph(
        graph=graph,
        label=column("label"),
        cost=column("cost"),
        size=column("size", np.float64),
        time=column("time", None),  # fs; may exceed 64 bits
        queue=queue,
        take=column("take"),
        give=column("give"),
        iteration=_joined([block.iteration for block in graph.blocks], np.int32),
        **({name: getattr(before, name) for name in ("first", "next", "waits_for")} if same else _edges_of(graph, queue)),
    )
    if len(flat.next) <= MANY:
        latest[""] = flat
    return flat


def _edges_of(graph: OpGraph, queue: Ints) -> dict[str, Ints]:
    """Return the columns of the edges."""
    bases = np.concatenate([[0], np.cumsum([block.total for block in graph.blocks])]).astype(np.int64)
    sources: list[Ints] = []
    targets: list[Ints] = []
    for block, base in zip(graph.blocks, bases[:-1], strict=True):
        _expand_edges(block, int(base), sources, targets)
    for row in graph.ties.tolist():
        _expand_tie(graph, bases, row, sources, targets)
    _lower_queues(graph, queue, sources, targets)
    total = int(bases[-1])
    source, target = (np.concatenate([np.empty(0, np.int32), *parts], dtype=np.int32) for parts in (sources, targets))
    sources.clear()
    targets.clear()
    order = np.argsort(source, kind="stable")
    first = np.zeros(total + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=total), out=first[1:])
    return {"first": first, "next": target[order], "waits_for": np.bincount(target, minlength=total).astype(np.int32)}


def _joined(parts: Sequence[NDArray[Any]], kind: DTypeLike | None = None) -> NDArray[Any]:
    """Concatenate columns; a long column of equal numbers, such as times of many sends, is stored as one number."""
    column = np.concatenate([np.empty(0, np.int64 if kind is None else kind), *parts], dtype=kind)
    if len(column) > FEW and any(part.strides == (0,) for part in parts) and (column == column[0]).all():
        return np.broadcast_to(column[0], column.shape)
    return column


def _tiled(values: NDArray[Any], times: int) -> NDArray[Any]:
    """Repeat the values; `np.tile` takes ten times as long for short columns."""
    if times == 1:
        return values
    rows = np.empty((times, len(values)), values.dtype)
    rows[:] = values
    return rows.ravel()


def _expand_edges(block: Block, base: int, sources: list[Ints], targets: list[Ints]) -> None:
    if block.times == 1:
        rows = block.edges if not block.edges[:, 2].any() else block.edges[block.edges[:, 2] == 0]
        sources.append(rows[:, 0] + base)
        targets.append(rows[:, 1] + base)
        return
    n = len(block)
    lags = ticks.distinct(block.edges[:, 2])
    for lag in lags[lags < block.times].tolist():
        rows = block.edges[block.edges[:, 2] == lag]
        start = (np.arange(lag, block.times, dtype=np.int64) * n + base)[:, None]
        sources.append((start - lag * n + rows[:, 0]).ravel())
        targets.append((start + rows[:, 1]).ravel())


def _expand_tie(graph: OpGraph, bases: Ints, row: Sequence[int], sources: list[Ints], targets: list[Ints]) -> None:
    before, op, after, then, mode = row
    block, following = graph.blocks[before], graph.blocks[after]
    if not (block.times and following.times):
        return
    if mode == PAIRED and block.times != following.times:
        raise ValueError(f"paired blocks must run equally often, got {block.times} and {following.times} times")
    if mode < 0:
        lag = -mode
        late = np.arange(max(0, lag - block.times), min(lag, following.times), dtype=np.int64)
        sources.append(bases[before] + (late + block.times - lag) * len(block) + op)
        targets.append(bases[after] + late * len(following) + then)
        return
    iterations = np.arange(block.times - 1 if mode == LAST else 0, block.times, dtype=np.int64)
    sources.append(bases[before] + iterations * len(block) + op)
    targets.append(bases[after] + then + (iterations * len(following) if mode == PAIRED else np.zeros_like(iterations)))


def inserting_ops(graph: OpGraph) -> Ints:
    """Return, for each op of the flat graph, the op that inserts it into its queue; -1: none."""
    columns = []
    base = 0
    for block in graph.blocks:
        starts = base + np.repeat(np.arange(block.times, dtype=np.int64) * len(block), len(block))
        base += block.total
        positions = _tiled(block.insert, block.times)
        columns.append(np.where(positions < 0, -1, starts + positions))
    return np.concatenate([np.empty(0, np.int64), *columns])


def _lower_queues(graph: OpGraph, queue: Ints, sources: list[Ints], targets: list[Ints]) -> None:
    """Add edges for program order, and from the end of op i - depth to the insertion of op i."""
    queued = np.flatnonzero(queue >= 0)
    order = queued[ticks.order(queue[queued])]
    ordered = queue[order]
    same = ordered[1:] == ordered[:-1]
    sources.append(order[:-1][same])
    targets.append(order[1:][same])
    if all(queue_.depth is None for queue_ in graph.queues):
        return
    insert = inserting_ops(graph)
    for number, depth in enumerate(queue_.depth for queue_ in graph.queues):
        if depth is not None:
            ops = order[np.searchsorted(ordered, number) : np.searchsorted(ordered, number, side="right")]
            late = ops[depth:]
            inserted = insert[late] >= 0
            sources.append(ops[: late.size][inserted])
            targets.append(insert[late][inserted])


def concatenate(flats: Sequence[FlatGraph]) -> FlatGraph:
    """Return several flat graphs over the same capacities and pools as one, with new numbers of ops, labels, costs and queues."""
    if len(flats) == 1:
        return flats[0]
    graphs = [flat.graph for flat in flats]

    def shifted(column: str, sizes: Sequence[int]) -> Ints:
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        columns = [getattr(flat, column) for flat in flats]
        parts = [np.where(indices < 0, indices, indices + offset) for indices, offset in zip(columns, offsets, strict=False)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def plain(column: str) -> Ints:
        return np.concatenate([np.empty(0, np.int64), *(getattr(flat, column) for flat in flats)])

    edges = [len(flat.next) for flat in flats]
    starts = np.concatenate([[0], np.cumsum([len(graph.blocks) for graph in graphs])]).tolist()
    first_of = {
        table: np.cumsum([0, *(len(getattr(graph, table)) for graph in graphs)]).tolist()
        for table in ("labels", "costs", "queues")
    }
    tied = [
        graph.ties + np.array([start, 0, start, 0, 0], np.int64)  # counts of blocks
        for start, graph in zip(starts, graphs, strict=False)
    ]
    numbers = [range(start, start + len(graph.blocks)) for start, graph in zip(starts, graphs, strict=False)]
    return FlatGraph(
        graph=OpGraph(
            blocks=tuple(
                _renumbered(block, *firsts)
                for graph, *firsts in zip(graphs, *first_of.values(), strict=False)
                for block in graph.blocks
            ),
            labels=tuple(label for graph in graphs for label in graph.labels),
            costs=tuple(cost for graph in graphs for cost in graph.costs),
            capacities=graphs[0].capacities if graphs else (),
            queues=tuple(queue for graph in graphs for queue in graph.queues),
            pools=graphs[0].pools if graphs else (),
            ties=np.concatenate([np.empty((0, 5), np.int64), *tied]),
            buffers=tuple(
                buffer.renumbered(range_) for range_, graph in zip(numbers, graphs, strict=True) for buffer in graph.buffers
            ),
            lines=tuple(line for graph in graphs for line in graph.lines),
            trainings=tuple(
                training.renumbered(first)
                for first, graph in zip(first_of["costs"], graphs, strict=False)
                for training in graph.trainings
            ),
        ),
        label=shifted("label", [len(graph.labels) for graph in graphs]),
        cost=shifted("cost", [len(graph.costs) for graph in graphs]),
        size=plain("size").astype(np.float64),
        time=plain("time"),
        queue=shifted("queue", [len(graph.queues) for graph in graphs]),
        take=plain("take"),
        give=plain("give"),
        iteration=plain("iteration"),
        first=np.concatenate([[0], *(flat.first[1:] + sum(edges[:n]) for n, flat in enumerate(flats))]).astype(  # integers
            np.int64
        ),  # integers
        next=shifted("next", [len(flat) for flat in flats]),
        waits_for=plain("waits_for"),
    )


def _renumbered(block: Block, label: int, cost: int, queue: int) -> Block:
    """Increase the label, cost and queue indices of a block by these numbers."""
    return replace(
        block,
        label=block.label + label,
        cost=np.where(block.cost < 0, block.cost, block.cost + cost),
        queue=np.where(block.queue < 0, block.queue, block.queue + queue),
    )
