"""Many flows, and tasks with transfers between them, on the links of a star: CPU time of a simulation, the graph being made.

Drawn as in SimGrid's benchmarks: flows of 0.1 to 100 MB between random hosts, all started together; tasks of 1 to 10 ms on
random hosts of 64 which they share fluidly, each with up to three inputs of 1 to 10 MB from tasks shortly before it.
The fat-tree is one of 8 leaves with 64 hosts each and 32 spines; the receiver's number chooses the spine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache

import numpy as np

from hwsim.demand import Capacity, Cost, Demand
from hwsim.engine import fast, simulate
from hwsim.graph.opgraph import Block, Label, OpGraph

LINK, SPEED, HOP = 12.5e9, 1e9, 1e-6  # B/s, FLOP/s, s
HOSTS, WORKERS, NEAR = 512, 64, 100
UNDER_LEAF, SPINES = 64, 32


def drawn(count: int, seed: int = 1) -> list[tuple[int, int, float]]:
    """So many flows between 512 hosts: from, to, bytes."""
    rng = np.random.default_rng(seed)
    source, step, size = rng.integers(0, HOSTS, count), rng.integers(1, HOSTS, count), rng.integers(1, 1000, count) * 1e5
    return list(zip(source.tolist(), ((source + step) % HOSTS).tolist(), size.tolist(), strict=True))


def flows(count: int, seed: int = 1, fabric: str = "star") -> OpGraph:
    """Those flows over the links of a star or a fat-tree."""
    found = drawn(count, seed)
    costs = [_transfer(source, target) if fabric == "star" else _over_spine(source, target) for source, target, _ in found]
    links = sorted({name for cost in costs for name, _ in cost.amounts})
    return _graph(np.arange(count), np.array([size for _, _, size in found]), np.empty((0, 3), np.int64), costs, links)


def _over_spine(source: int, target: int) -> Demand:
    """As `_transfer`, between leaves over a spine."""
    here, there, spine = source // UNDER_LEAF, target // UNDER_LEAF, target % SPINES
    if here == there:
        return _transfer(source, target)
    links = (f"up{source}", f"leaf{here}-spine{spine}", f"spine{spine}-leaf{there}", f"down{target}")
    return Demand(4 * HOP, tuple(map(_byte, sorted(links))))


def tasks(count: int, seed: int = 1) -> OpGraph:
    """So many tasks, and about one and a half times as many transfers."""
    rng = np.random.default_rng(seed)
    host = rng.integers(0, WORKERS, count)
    target = np.repeat(np.arange(count), rng.integers(0, 4, count))
    source = target - rng.integers(1, NEAR + 1, target.size)
    source, target = source[source >= 0], target[source >= 0]
    crosses = host[source] != host[target]
    moved = np.flatnonzero(crosses)
    transfer = count + np.arange(moved.size)
    pairs = np.concatenate(
        [
            np.stack([source[~crosses], target[~crosses]], axis=1),
            np.stack([source[moved], transfer], axis=1),
            np.stack([transfer, target[moved]], axis=1),
        ]
    )
    costs = [
        *(Demand(amounts=((f"host{one}", 1.0),)) for one in range(WORKERS)),
        *(_transfer(one, other) for one in range(WORKERS) for other in range(WORKERS)),
    ]
    cost = np.concatenate([host, WORKERS + host[source[moved]] * WORKERS + host[target[moved]]])
    size = np.concatenate([rng.integers(100, 1000, count) * 1e4, rng.integers(100, 1000, moved.size) * 1e4])
    links = [f"{way}{one}" for way in ("up", "down") for one in range(WORKERS)]
    edges = np.column_stack([pairs, np.zeros(len(pairs), np.int64)])
    return _graph(cost, size, edges, costs, links, [f"host{one}" for one in range(WORKERS)])


def as_lines(graph: OpGraph) -> Iterator[str]:
    """The tasks and transfers of such a graph, for SimGrid."""
    block = graph.blocks[0]
    for cost, size in zip(block.cost.tolist(), block.size.tolist(), strict=True):
        source, target = divmod(cost - WORKERS, WORKERS)
        yield f"task {cost} {size:.0f}\n" if cost < WORKERS else f"move {source} {target} {size:.0f}\n"
    for before, after in dict.fromkeys(map(tuple, block.edges[:, :2].tolist())):  # SimGrid takes each once
        yield f"edge {before} {after}\n"


def _transfer(source: int, target: int) -> Demand:
    """One byte; an op's size says how many."""
    return Demand(2 * HOP, (_byte(f"down{target}"), _byte(f"up{source}")))


@cache
def _byte(link: str) -> tuple[str, float]:
    """A byte over a link; equal ones are one object, as in graphs that are lowered from files."""
    return link, 1.0


def _graph(cost, size, edges, costs, links, hosts=()) -> OpGraph:  # type: ignore[no-untyped-def]
    none = np.full(len(cost), -1)
    block = Block(
        label=np.zeros(len(cost), np.int64),
        cost=cost,
        size=size.astype(np.float64),
        time=np.zeros(len(cost), np.int64),
        queue=none,
        insert=none,
        take=none,
        give=none,
        edges=edges,
    )
    capacities = [*(Capacity(name, LINK, "B") for name in links), *(Capacity(name, SPEED, "FLOP") for name in hosts)]
    return OpGraph((block,), (Label("op", "op", ""),), tuple(Cost(one) for one in costs), tuple(capacities))


def seconds(graph: OpGraph, choice: fast.Choice) -> float:
    """CPU time of a simulation; compiled code is loaded."""
    begin = time.process_time()
    simulate(graph, fast=choice)
    return time.process_time() - begin
