"""Many flows, and tasks with transfers between them, on the links of a star: CPU time of a simulation, the graph being made.

Drawn as in SimGrid's benchmarks: flows of 0.1 to 100 MB between random hosts, all started together; tasks of 1 to 10 ms on
random hosts of 64 which they share fluidly, each with up to three inputs of 1 to 10 MB from tasks shortly before it.
"""

from __future__ import annotations

import time

import numpy as np

from hwsim.demand import Capacity, Cost, Demand
from hwsim.engine import fast, simulate
from hwsim.opgraph import Block, Label, OpGraph

LINK, SPEED, HOP = 12.5e9, 1e9, 1e-6  # B/s, FLOP/s, s
HOSTS, WORKERS, NEAR = 512, 64, 100


def flows(count: int, seed: int = 1) -> OpGraph:
    """So many flows between 512 hosts."""
    rng = np.random.default_rng(seed)
    ends = [(source, (source + step) % HOSTS) for source, step in zip(*_draws(rng, count), strict=True)]
    costs = [_transfer(source, target) for source, target in ends]
    links = [f"{way}{host}" for way in ("up", "down") for host in range(HOSTS)]
    return _graph(np.arange(count), rng.integers(1, 1000, count) * 1e5, np.empty((0, 3), np.int64), costs, links)


def _draws(rng: np.random.Generator, count: int) -> tuple[list[int], list[int]]:
    return rng.integers(0, HOSTS, count).tolist(), rng.integers(1, HOSTS, count).tolist()


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


def _transfer(source: int, target: int) -> Demand:
    """One byte; an op's size says how many."""
    return Demand(2 * HOP, tuple(sorted(((f"up{source}", 1.0), (f"down{target}", 1.0)))))


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
