"""Graphs without arbitration are longest paths."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import engine
from hwsim.demand import Cost, Demand
from hwsim.engine import Deadlock, Driver, simulate
from hwsim.engine.compile import compile_flat
from hwsim.engine.longest_paths import is_in_order, longest_path
from hwsim.graph import equality
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import OpGraph, Pool, Queue
from hwsim.results.timeline import Timeline
from tests.engine_graphs import LINK, graph_of, transfer, transfers
from tests.reference_engine import play
from tests.strategies import graphs, ints, make_block

CASES = settings(max_examples=80, deadline=None)


def without_arbitration(graph: OpGraph) -> OpGraph:
    """The same ops and edges, but no pools, and nothing of what the ops draw is shared."""
    alone = tuple(Cost(Demand(latency=cost.demand.latency, floor=cost.demand.floor)) for cost in graph.costs)
    bodies = tuple(
        replace(block, take=ints([-1] * len(block)), give=ints([-1] * len(block))) if len(block) else block
        for block in graph.blocks
    )
    return replace(graph, blocks=bodies, costs=alone, pools=())


def replayed(graph: OpGraph) -> Timeline:
    driver = Driver(graph.capacities, graph.pools, closed=True)
    driver.submit(graph)
    return driver.run()


def columns(timeline: Timeline) -> list[object]:
    """All that a timeline says."""
    times = [timeline.start.tolist(), timeline.end.tolist(), timeline.start.dtype, timeline.end.dtype]
    return [
        *times,
        timeline.granted.tolist(),
        timeline.flow_class.tolist(),
        list(timeline.paces),
        timeline.alone,
        timeline.solves,
    ]


@CASES
@given(graphs().map(without_arbitration))
def test_the_longest_path_is_the_replay_bit_for_bit(graph: OpGraph) -> None:
    flat = flatten(graph)
    compiled = compile_flat(flat)
    assert is_in_order(flat, compiled)
    found = longest_path(flat, compiled)
    assert columns(found) == columns(replayed(graph))
    reference = play(graph)
    assert (found.start.tolist(), found.end.tolist()) == (reference.start, reference.end)


@CASES
@given(st.data())
def test_edges_may_lead_to_lower_numbers(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    order = data.draw(st.permutations(range(count)))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = [
        (order[first], order[last], 0) for first, last in data.draw(st.lists(pairs, max_size=20) if count > 1 else st.just([]))
    ]
    time = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    graph = graph_of(make_block([-1] * count, time=time, edges=edges))
    assert columns(simulate(graph)) == columns(replayed(graph))


def test_what_arbitrates_is_no_longest_path() -> None:
    pool = graph_of(make_block([-1, -1], time=[3, 4], take=[0, 0], give=[0, 0]), pools=[Pool("server", 1)])
    for graph in (pool, transfers(10, 20)):
        flat = flatten(graph)
        assert not is_in_order(flat, compile_flat(flat))
        assert columns(simulate(graph)) == columns(replayed(graph))


def test_a_capacity_that_cannot_bind_arbitrates_nothing() -> None:
    body = make_block([0, 0], queue=[0, 0])
    graph = graph_of(body, costs=[transfer(10)], capacities=[LINK], queues=[Queue("copies", "link")])
    flat = flatten(graph)
    assert is_in_order(flat, compile_flat(flat))
    assert columns(simulate(graph)) == columns(replayed(graph))


def test_an_in_order_graph_needs_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "Driver", None)
    assert simulate(graph_of(make_block([-1, -1], time=[3, 4], edges=[(0, 1, 0)]))).makespan_fs == 7


def test_a_circle_is_said_as_the_replay_says_it() -> None:
    graph = graph_of(make_block([-1] * 4, time=[1, 2, 3, 4], edges=[(0, 1, 0), (1, 2, 0), (2, 1, 0), (2, 3, 0)]))
    with pytest.raises(Deadlock, match=r"second on gpu0|first on gpu0") as alone:
        simulate(graph)
    with pytest.raises(Deadlock) as clocked:
        simulate(graph, which="simpy")
    assert str(alone.value) == str(clocked.value)


@pytest.mark.parametrize("step", [2**60, 2**61, 2**62])
def test_times_beyond_an_int64_are_python_s_integers(step: int) -> None:
    graph = graph_of(make_block([-1] * 9, time=[step] * 9, edges=[(op, op + 1, 0) for op in range(8)]))
    found = simulate(graph)
    assert found.end.tolist() == [step * (op + 1) for op in range(9)]
    assert columns(found) == columns(replayed(graph))


# ---------------------------------------------------------------- the same graph


def test_other_times_edges_queues_or_pools_make_another_graph() -> None:
    one = graph_of(make_block([-1, -1], time=[3, 4], edges=[(0, 1, 0)], queue=[0, 0]), queues=[Queue("q", "")])
    faster = replace(one, blocks=(replace(one.blocks[0], time=ints([1, 1])),))
    assert equality.is_same(one, replace(one))
    others = [
        faster,
        replace(one, queues=(Queue("q", "", 1),)),
        replace(one, pools=(Pool("p", 1),)),
        replace(one, blocks=()),
        replace(one, blocks=(replace(one.blocks[0], edges=one.blocks[0].edges[:0]),)),
        replace(one, blocks=(replace(one.blocks[0], times=2),)),
        replace(one, blocks=(*one.blocks, *one.blocks)),
    ]
    assert not any(equality.is_same(one, other) for other in others)
