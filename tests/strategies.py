"""Op graphs for hypothesis: small, full of ties, acyclic by construction; and the same graph written in another order."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from hwsim.demand import Capacity, Cost, Demand
from hwsim.graph.opgraph import EVERY, LAST, PAIRED, Block, Ints, Label, OpGraph, Pool, Queue

FS = 1e-15
T = TypeVar("T")

# A few fs, so that every rounding shows and ties abound; and numbers of every size.
short = st.integers(1, 12).map(lambda count: count * FS)
long = st.floats(1e-14, 1e-3)
spans = st.one_of(short, short, long)
rates = st.sampled_from([1.0, 1.0, 2.0, 3.0, 16e9])
shares = st.sampled_from([1.0, 1.0, 1.0, 0.3, 7.0])


def ints(values: Sequence[int]) -> Ints:
    return np.array(values, np.int64)


def rows(values: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(values, np.int64).reshape(-1, width)


def make_block(
    cost: Sequence[int],
    *,
    size: Sequence[float] | None = None,
    time: Sequence[int] | None = None,
    queue: Sequence[int] | None = None,
    insert: Sequence[int] | None = None,
    take: Sequence[int] | None = None,
    give: Sequence[int] | None = None,
    label: Sequence[int] | None = None,
    edges: Sequence[Sequence[int]] = (),
    times: int = 1,
) -> Block:
    """A block from lists; what is left out is "none" for every op."""
    count = len(cost)
    none = [-1] * count
    return Block(
        label=ints(label or [0] * count),
        cost=ints(cost),
        size=np.array(size or [1.0] * count, np.float64),
        time=ints(time or [0] * count),
        queue=ints(queue or none),
        insert=ints(insert or none),
        take=ints(take or none),
        give=ints(give or none),
        edges=rows(edges, 3),
        times=times,
    )


@st.composite
def demands(draw: st.DrawFn, capacities: Sequence[Capacity], may_hold: bool) -> Demand:
    """A demand on some of the capacities; at most one of them held, by a fraction that leaves room."""
    least = draw(st.sampled_from([0, 1, 1, 1, 2]))
    names = draw(st.lists(st.sampled_from(capacities), min_size=min(least, len(capacities)), max_size=3, unique=True))
    holds: tuple[tuple[str, float], ...] = ()
    if may_hold and names and draw(st.booleans()):
        holds = ((names.pop().name, draw(st.sampled_from([0.1, 0.05, 1 / 3]))),)
    return Demand(
        latency=draw(st.one_of(st.just(0.0), st.just(0.0), spans)),
        amounts=tuple(sorted((name.name, draw(spans) * name.rate) for name in names)),
        floor=draw(st.one_of(st.just(0.0), spans)),
        holds=holds,
        share=draw(shares),
    )


@st.composite
def blocks(draw: st.DrawFn, costs: int, queues: Sequence[Queue], pools: int, most: int = 6) -> Block:
    """A body whose edges all lead to higher op numbers."""
    count = draw(st.integers(1, most))

    def each(values: st.SearchStrategy[T]) -> list[T]:
        return draw(st.lists(values, min_size=count, max_size=count))

    queue = each(st.integers(-1, len(queues) - 1))
    take, give, edges = [-1] * count, [-1] * count, []
    for pool in range(pools):
        for _ in range(draw(st.integers(0, 3))):
            first = draw(st.integers(0, count - 1))
            last = draw(st.integers(first, min(count - 1, first + 2)))
            if take[first] < 0 and give[last] < 0:
                take[first], give[last] = pool, pool
                if last > first:
                    edges.append((first, last, 0))
    for _ in range(draw(st.integers(0, 2 * count))):
        lag = draw(st.sampled_from([0, 0, 0, 1, 2, 3]))
        first, last = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        if lag or first < last:
            edges.append((first, last, lag))
    insert = []
    for op, line in enumerate(queue):
        depth = queues[line].depth if line >= 0 else None
        before = [other for other in range(op) if queue[other] == line]
        lowest = 0 if depth is None or len(before) < depth else before[-depth] + 1
        wanted = line >= 0 and lowest < op and draw(st.booleans())
        insert.append(draw(st.integers(lowest, op - 1)) if wanted else -1)
        if insert[-1] >= 0:
            edges.append((insert[-1], op, 0))
    return make_block(
        each(st.one_of(st.integers(0, costs - 1), st.integers(-1, costs - 1))),
        size=each(st.sampled_from([1.0, 1.0, 1.0, 2.0, 0.5, 0.0])),
        time=each(st.sampled_from([0, 0, 0, 1, 2, 5, 1000])),
        queue=queue,
        insert=insert,
        take=take,
        give=give,
        edges=edges,
        times=draw(st.integers(1, 4)),
    )


@st.composite
def crowds(draw: st.DrawFn, costs: int) -> Block:
    """Many identical ops at once: multiplicity."""
    count = draw(st.integers(2, 9))
    return make_block([draw(st.integers(0, costs - 1))] * count, time=[draw(st.sampled_from([0, 3]))] * count)


@st.composite
def ties(draw: st.DrawFn, bodies: Sequence[Block]) -> list[tuple[int, int, int, int, int]]:
    """Edges between blocks, from earlier to later ones."""
    found = []
    for _ in range(draw(st.integers(0, 3)) if len(bodies) > 1 else 0):
        before = draw(st.integers(0, len(bodies) - 2))
        after = draw(st.integers(before + 1, len(bodies) - 1))
        modes = [LAST, EVERY, PAIRED] if bodies[before].times == bodies[after].times else [LAST, EVERY]
        op, then = (draw(st.integers(0, len(bodies[number]) - 1)) for number in (before, after))
        found.append((before, op, after, then, draw(st.sampled_from(modes))))
    return found


@dataclass(frozen=True)
class Tables:
    """What several graphs of one run have in common."""

    capacities: tuple[Capacity, ...]
    pools: tuple[Pool, ...]
    costs: tuple[Cost, ...]


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    capacities = tuple(Capacity(f"c{number}", draw(rates)) for number in range(draw(st.sampled_from([1, 1, 2, 2, 3, 4]))))
    pools = tuple(Pool(f"p{number}", draw(st.integers(1, 3))) for number in range(draw(st.integers(0, 2))))
    kinds = draw(st.lists(demands(capacities, may_hold=True), min_size=1, max_size=4))
    if draw(st.booleans()):  # one that draws just as another does, and differs in what else there is
        kinds.append(replace(draw(st.sampled_from(kinds)), floor=draw(spans), latency=0.0))
        kinds.append(replace(kinds[-1], holds=()))
    if draw(st.booleans()):  # what goes at a clock, of a capacity that they draw from or of another
        kinds = [draw(clocked(kind, capacities)) for kind in kinds]
    if draw(st.booleans()):  # one that all draw from as they do from the first
        twin = Capacity("twin", 2 * capacities[0].rate)
        capacities, kinds = (*capacities, twin), [_with_twin(kind, capacities[0].name) for kind in kinds]
    return Tables(capacities, pools, tuple(Cost(kind) for kind in kinds))


@st.composite
def clocked(draw: st.DrawFn, kind: Demand, capacities: Sequence[Capacity]) -> Demand:
    """The demand with parts of its floor and its latency that go at the speed of capacities."""
    parts = st.sampled_from([0.0, 0.25, 1 / 3, 1.0])
    named = draw(st.lists(st.sampled_from(capacities), min_size=1, max_size=2, unique=True))
    return replace(kind, clocks=tuple((capacity.name, draw(parts)) for capacity in named), start=draw(parts))


def _with_twin(demand: Demand, name: str) -> Demand:
    """The demand with twice the amount of `twin` that it has of a capacity, and as much of it held."""
    amounts = [("twin", 2 * amount) for capacity, amount in demand.amounts if capacity == name]
    holds = [("twin", part) for capacity, part in demand.holds if capacity == name]
    return replace(demand, amounts=(*demand.amounts, *amounts), holds=(*demand.holds, *holds))


@st.composite
def graphs(draw: st.DrawFn, common: Tables | None = None) -> OpGraph:
    """Queues with and without depth, pools, contention, several blocks, lags, ties of all modes, multiplicity."""
    common = common or draw(tables())
    depths = draw(st.lists(st.sampled_from([None, 1, 2, 3]), max_size=3))
    queues = tuple(Queue(f"q{number}", "", depth) for number, depth in enumerate(depths))
    costs = len(common.costs)
    bodies = draw(st.lists(blocks(costs, queues, len(common.pools)), min_size=1, max_size=3))
    if draw(st.booleans()):
        bodies.append(draw(crowds(costs)))
    return OpGraph(
        blocks=tuple(bodies),
        labels=(Label("op", "op", "device"),),
        costs=common.costs,
        capacities=common.capacities,
        queues=queues,
        pools=common.pools,
        ties=rows(draw(ties(bodies)), 5),
    )


@st.composite
def networks(draw: st.DrawFn) -> OpGraph:
    """Transfers along a line of links, a few links each: what one does is felt by those far away."""
    count = draw(st.integers(3, 8))
    names = [f"c{number}" for number in range(count)]
    kinds = []
    for _ in range(draw(st.integers(3, 12))):
        first = draw(st.integers(0, count - 1))
        crossed = names[first : first + draw(st.integers(1, 3))]
        kinds.append(Demand(amounts=tuple((name, 1.0) for name in crossed), share=draw(shares)))
    sizes = draw(st.lists(st.integers(1, 50).map(float), min_size=len(kinds), max_size=len(kinds)))
    begins = draw(st.lists(st.sampled_from([0, 0, 0, 5, 20]), min_size=len(kinds), max_size=len(kinds)))
    return OpGraph(
        blocks=(make_block(range(len(kinds)), size=sizes, time=begins),),
        labels=(Label("op", "op", "device"),),
        costs=tuple(Cost(kind) for kind in kinds),
        capacities=tuple(Capacity(name, draw(st.sampled_from([1e15, 2e15, 3e15])), "B") for name in names),
    )


def renumber(column: Ints, order: Sequence[int]) -> Ints:
    """Indices into a table whose entry `order[i]` has become entry i."""
    place = {old: new for new, old in enumerate(order)} | {-1: -1}
    return ints([place[int(one)] for one in column])


@st.composite
def rewritten(draw: st.DrawFn, graph: OpGraph) -> OpGraph:
    """The same graph with its tables and edge lists in another order.  Ops keep their numbers, which decide ties."""

    def order(table: Sized) -> list[int]:
        return draw(st.permutations(range(len(table))))

    capacities, costs, queues, pools = (order(table) for table in (graph.capacities, graph.costs, graph.queues, graph.pools))
    bodies = tuple(
        replace(
            block,
            cost=renumber(block.cost, costs),
            queue=renumber(block.queue, queues),
            take=renumber(block.take, pools),
            give=renumber(block.give, pools),
            edges=block.edges[order(block.edges)],
        )
        for block in graph.blocks
    )
    return replace(
        graph,
        blocks=bodies,
        costs=tuple(graph.costs[old] for old in costs),
        capacities=tuple(graph.capacities[old] for old in capacities),
        queues=tuple(graph.queues[old] for old in queues),
        pools=tuple(graph.pools[old] for old in pools),
        ties=graph.ties[order(graph.ties)],
    )
