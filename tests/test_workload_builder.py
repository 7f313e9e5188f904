"""Op graphs by hand, and in words."""

from __future__ import annotations

import numpy as np
import pytest

from hwsim.demand import Capacity, Cost, Demand
from hwsim.engine import simulate
from hwsim.graph.opgraph import EVERY, PAIRED
from hwsim.workload import GraphBuilder, block


def test_equal_labels_and_costs_are_shared() -> None:
    graph = GraphBuilder([Capacity("gpu.compute", 1.0)])
    cost = Cost(Demand(amounts=(("gpu.compute", 0.5),)))
    for _ in range(3):
        graph.op("a", device="gpu", cost=cost, queue=graph.queue("q", "gpu"))
    built = graph.build()
    assert (len(built.labels), len(built.costs), len(built.queues), len(built.blocks)) == (1, 1, 3, 1)
    assert simulate(built).makespan == pytest.approx(1.5)  # three at once on one capacity


def test_edges_reach_back_and_ties_connect_blocks() -> None:
    graph = GraphBuilder()
    with graph.repeat(10):
        a = graph.op("a", time=1.0, queue=graph.queue("p"))
        b = graph.op("b", time=2.0, queue=graph.queue("q"), after=[a])
    graph.edge(b, a, lag=1)
    graph.op("c", time=1.0, after=[b])
    assert simulate(graph.build()).makespan == 31.0


def test_blocks_of_columns_stand_between_ops() -> None:
    graph = GraphBuilder()
    queue = graph.queue("stream", "gpu")
    label = graph.label("step", "busy", "gpu")
    number = graph.add(block(np.full(4, label), time=10**15, queue=queue, times=25))
    after = graph.op("after")
    graph.tie((number, 3), after, EVERY)  # type: ignore[arg-type]
    built = graph.build()
    assert built.total == 101
    assert simulate(built).makespan == 100.0


def test_paired_ties_go_iteration_by_iteration() -> None:
    graph = GraphBuilder()
    with graph.repeat(5):
        a = graph.op("a", time=1.0, queue=graph.queue("p"))
    with graph.repeat(5):
        b = graph.op("b", time=2.0, queue=graph.queue("q"))
    graph.tie(a, b, PAIRED)
    assert simulate(graph.build()).makespan == 11.0


def test_what_cannot_be_built_is_refused() -> None:
    graph = GraphBuilder()
    first = graph.op("a")
    with graph.repeat(2):
        inside = graph.op("b")
        with pytest.raises(ValueError, match="nested `repeat` is not supported"), graph.repeat(2):
            pass
    with pytest.raises(ValueError, match="inside one body"):
        graph.edge(first, inside, lag=1)
    with pytest.raises(ValueError, match="`insert` must be an op of the same body"):
        graph.op("c", insert=inside)
    with pytest.raises(ValueError, match="expected mode LAST, EVERY or PAIRED, got 7"):
        graph.tie(first, inside, 7)
    with pytest.raises(ValueError, match="0 or more, got -1"), graph.repeat(-1):
        pass
