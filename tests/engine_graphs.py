"""Op graphs by hand, for the tests of the engine."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from simpy import Event

from hwsim.demand import Capacity, Cost, Demand
from hwsim.engine import Driver
from hwsim.graph.opgraph import Block, Label, OpGraph, Pool, Queue
from hwsim.results.timeline import Timeline
from tests.strategies import make_block, rows

Actions = Generator[Event, None, None]  # what a SimPy process yields

NS, US = 10**6, 10**9  # fs
LABELS = (Label("first", "op", "gpu0"), Label("second", "op", "gpu0"), Label("third", "op", "gpu0"))
LINK = Capacity("link", 1e9, "B")


def graph_of(
    *bodies: Block,
    costs: Sequence[Demand] = (),
    capacities: Sequence[Capacity] = (),
    queues: Sequence[Queue] = (),
    pools: Sequence[Pool] = (),
    ties: Sequence[Sequence[int]] = (),
) -> OpGraph:
    kinds = tuple(Cost(demand) for demand in costs)
    return OpGraph(bodies, LABELS, kinds, tuple(capacities), tuple(queues), tuple(pools), rows(ties, 5))


def play_open(graph: OpGraph) -> Timeline:
    driver = Driver(graph.capacities, graph.pools)
    driver.submit(graph)
    return driver.run()


def transfer(size: float) -> Demand:
    return Demand(amounts=(("link", size),), share=size)


def transfers(*sizes: float) -> OpGraph:
    """Transfers over one link of 1 byte per ns, all from 0 on."""
    return graph_of(make_block(range(len(sizes))), costs=[transfer(size) for size in sizes], capacities=[LINK])


def crossing_flows(rng: np.random.Generator, seed: int) -> OpGraph:
    """Hundreds of flows between a few hosts, of which some begin when others end; odd seeds: with shares."""
    hosts, flows = 12, 300
    ends = rng.integers(0, hosts, (flows, 2))
    shares = [1.0, 3.0] if seed % 2 else [1.0]
    kinds = [
        Demand(latency=1e-6, amounts=((f"down{target}", 1.0), (f"up{source}", 1.0)), share=float(rng.choice(shares)), floor=2e-10)
        for source, target in ends.tolist()
    ]
    links = [Capacity(f"{way}{host}", 1e10 if host % 3 else 4e9) for host in range(hosts) for way in ("up", "down")]
    return graph_of(
        make_block(
            range(flows),
            size=rng.integers(10**4, 10**7, flows).astype(float).tolist(),
            edges=[(op - 40, op, 0) for op in range(100, flows)],
        ),
        costs=kinds,
        capacities=links,
    )
