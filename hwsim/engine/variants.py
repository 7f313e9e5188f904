"""Variants of one in-order graph (the same ops, edges and queues; other costs, sizes and times) played together.

Their timelines are longest paths over the same edges, so one pass serves them all: each op is a row of numbers, one per
variant. Ops are worked through level by level (a level: the ops with equally many edges on the longest way to them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.engine.compile import Active, Compiled, compile_flat
from hwsim.engine.inorder import is_forward, is_in_order, timeline_of, wrapped
from hwsim.graph.flat import FlatGraph, flatten
from hwsim.graph.opgraph import Ints, OpGraph
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline

BATCH_BYTES: Final = 2**26  # of the ends of the variants that are worked out together
FEWEST: Final = 16  # variants worked out together, however large the graph

_SHAPE: Final = ("queue", "insert", "take", "give", "edges")
_TIMES: Final = ("label", "cost", "size", "time")


def together(graphs: Iterable[OpGraph]) -> Iterator[tuple[OpGraph, Timeline | None]]:
    """Each graph with its timeline, in their order; None for one that is not in order, or no variant of its neighbour."""
    batch: list[OpGraph] = []
    plan: Plan | None = None
    for graph in graphs:
        alike = bool(batch) and is_variant(batch[0], graph)
        if batch and not (alike and 8 * len(batch) * graph.total < max(BATCH_BYTES, 8 * FEWEST * graph.total)):
            plan = plan or _plan(batch)
            yield from zip(batch, _played(plan, batch), strict=True)
            batch, plan = [], plan if alike else None
        batch.append(graph)
    yield from zip(batch, _played(plan or _plan(batch), batch), strict=True)


def is_variant(first: OpGraph, second: OpGraph) -> bool:
    """Whether both have the same ops, edges, queues and pools, so that only times can differ."""
    if len(first.blocks) != len(second.blocks) or first.queues != second.queues or first.pools != second.pools:
        return False
    if not _same(first.ties, second.ties):
        return False
    return all(
        mine is its or (mine.times == its.times and all(_same(getattr(mine, column), getattr(its, column)) for column in _SHAPE))
        for mine, its in zip(first.blocks, second.blocks, strict=True)
    )


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return one is other or np.array_equal(one, other)


@dataclass(frozen=True, slots=True)
class Plan:
    """The edges of a graph, its ops renumbered level by level.

    Args:
        place: new number of every op.
        levels: per level but the first, its ops (begin, end) and its predecessors (begin, end) in `before`.
        split: place in `before` at which the predecessors of each op begin.
    """

    flat: FlatGraph
    active: Active | None
    place: Ints
    levels: tuple[tuple[int, int, int, int], ...]
    before: Ints
    split: Ints


def _plan(graphs: Sequence[OpGraph]) -> Plan | None:
    """None if there is nothing to share, or if the ops cannot be put in order."""
    if len(graphs) < 2:
        return None
    flat = flatten(graphs[0])
    level = None if (flat.take >= 0).any() else _level(flat)
    if level is None:
        return None
    order = np.argsort(level, kind="stable")
    place = np.empty(len(flat), np.int64)
    place[order] = np.arange(len(flat))
    sources, targets = flat.edges()
    before = place[sources][np.argsort(place[targets], kind="stable")]
    split = np.concatenate([[0], np.cumsum(flat.waits_for[order])])
    bounds = np.cumsum(np.bincount(level)).tolist()
    levels = tuple((begin, end, int(split[begin]), int(split[end])) for begin, end in pairwise(bounds))
    return Plan(flat, compile_flat(flat).active, place, levels, before, split)


def _level(flat: FlatGraph) -> Ints | None:
    """Number of edges on the longest path to each op; None if ops wait for each other."""
    first, follow, missing = flat.first.tolist(), flat.next.tolist(), flat.waits_for.tolist()
    order: Sequence[int] = range(len(flat))
    if not is_forward(flat):
        order = ready = np.flatnonzero(flat.waits_for == 0).tolist()
        for op in ready:  # grows meanwhile
            for after in follow[first[op] : first[op + 1]]:
                missing[after] -= 1
                if not missing[after]:
                    ready.append(after)
        if len(ready) < len(flat):
            return None
    level = [0] * len(flat)
    for op in order:
        least = level[op] + 1
        for after in follow[first[op] : first[op + 1]]:
            if level[after] < least:
                level[after] = least
    return np.array(level, np.int64)


def _played(plan: Plan | None, graphs: Sequence[OpGraph]) -> list[Timeline | None]:
    """Timelines; None where arbitration, or a time beyond an int64, forbids it."""
    timelines: list[Timeline | None] = [None] * len(graphs)
    if plan is None:
        return timelines
    flats = [with_times(plan.flat, graph) for graph in graphs]
    compiled: list[Compiled] = [compile_flat(each, active=plan.active if each.cost is plan.flat.cost else None) for each in flats]
    alike = [n for n, variant in enumerate(compiled) if is_in_order(flats[n], variant) and variant.fixed.dtype != object]
    end = np.empty((len(plan.flat), len(alike)), np.int64)
    for column, n in enumerate(alike):
        end[plan.place, column] = compiled[n].fixed
    _sweep(plan, end)
    for n, ended, is_wrong in zip(alike, np.ascontiguousarray(end.T), wrapped(end).tolist(), strict=True):
        if is_wrong:
            continue
        ends = ended[plan.place]
        timelines[n] = timeline_of(flats[n], compiled[n], ends - compiled[n].fixed, ends)
    return timelines


def with_times(flat: FlatGraph, graph: OpGraph) -> FlatGraph:
    """The flat graph of a variant."""
    columns = {}
    for column in _TIMES:
        pairs = [(getattr(mine, column), getattr(its, column)) for mine, its in zip(flat.graph.blocks, graph.blocks, strict=True)]
        if not all(_same(mine, its) for mine, its in pairs):
            tiled = np.concatenate([np.tile(its, block.times) for (_, its), block in zip(pairs, graph.blocks, strict=True)])
            columns[column] = tiled if column == "time" else tiled.astype(getattr(flat, column).dtype, copy=False)  # may be wide
    return replace(flat, graph=graph, **columns)


def _sweep(plan: Plan, end: NDArray[np.int64]) -> None:
    """Add to the time of every op, a row of `end`, the last end of its predecessors."""
    rows = list(end)
    alone = plan.before.tolist()
    for first, last, begin, stop in plan.levels:
        if last - first == 1:
            latest = rows[alone[begin]]
            for before in alone[begin + 1 : stop]:
                latest = np.maximum(latest, rows[before])
            np.add(rows[first], latest, out=rows[first])
        else:
            gathered = end.take(plan.before[begin:stop], axis=0)
            level = end[first:last]
            np.add(level, np.maximum.reduceat(gathered, plan.split[first:last] - begin, axis=0), out=level)
