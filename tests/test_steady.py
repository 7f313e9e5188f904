"""A loop written out from few iterations is the loop simulated in full, op by op."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.engine import Deadlock, simulate
from hwsim.engine.long_loops import FIRST, LONG, play_steady
from hwsim.graph.opgraph import OpGraph, Pool, Queue
from hwsim.results.timeline import Steady, Timeline
from tests.engine_graphs import LINK, NS, graph_of, transfer
from tests.strategies import graphs, make_block


def plain(timeline: Timeline) -> list[object]:
    return [getattr(timeline, name).tolist() for name in ("start", "end", "granted")]


def steady(graph: OpGraph) -> tuple[Timeline, Steady]:
    timeline, found = play_steady(graph, simulate)
    assert found is not None
    return timeline, found


@settings(max_examples=60, deadline=None)
@given(graph=graphs(), times=st.integers(LONG, LONG + 40), which=st.integers(0, 5))
def test_what_is_written_out_is_what_a_full_run_gives(graph: OpGraph, times: int, which: int) -> None:
    number = which % len(graph.blocks)
    paired = (graph.ties[:, 4] == 2) & ((graph.ties[:, 0] == number) | (graph.ties[:, 2] == number))
    blocks = [replace(block, times=times) if at == number else block for at, block in enumerate(graph.blocks)]
    looped = replace(graph, blocks=tuple(blocks), ties=graph.ties[~paired])
    try:
        whole = simulate(looped)
    except Deadlock:
        return
    timeline, _ = steady(looped)
    assert plain(timeline) == plain(whole)
    if timeline.alone == whole.alone:  # in few iterations some capacities can be shown not to bind
        assert timeline.flow_class.tolist() == whole.flow_class.tolist()
        assert [list(course) for course in timeline.paces] == [list(course) for course in whole.paces]


def pumped(times: int) -> OpGraph:
    """Copies and steps on a link and a pool that a second, slower loop shares."""
    copies = make_block(
        [0, -1], time=[0, 7 * NS], queue=[0, 1], edges=[(0, 1, 0), (1, 0, 2)], take=[-1, 0], give=[-1, 0], times=times
    )
    others = make_block(
        [1, -1], time=[0, 3 * NS], queue=[2, 3], edges=[(0, 1, 0), (1, 0, 1)], take=[-1, 0], give=[-1, 0], times=times
    )
    last = make_block([0], time=[5])
    queues = [Queue(name, "") for name in "abcd"]
    ties = [(0, 1, 2, 0, 0), (1, 1, 2, 0, 0), (0, 0, 1, 0, 2)]
    costs = [transfer(10), transfer(4)]
    return graph_of(copies, others, last, costs=costs, capacities=[LINK], queues=queues, pools=[Pool("server", 1)], ties=ties)


@pytest.mark.parametrize("times", [LONG, 100, 1001])
def test_two_loops_side_by_side_repeat_together(times: int) -> None:
    timeline, found = steady(pumped(times))
    assert found.period > 0
    assert found.simulated < times
    assert plain(timeline) == plain(simulate(pumped(times)))


def test_a_loop_of_a_million_iterations_is_simulated_in_a_few() -> None:
    loop = make_block([0], edges=[(0, 0, 1)], times=10**6)
    timeline, found = steady(graph_of(loop, costs=[transfer(10)], capacities=[LINK]))
    assert (found.simulated, found.period) == (FIRST, 10 * NS)
    assert timeline.makespan_fs == 10**7 * NS
    assert str(found) == "16 of 1,000,000 iterations simulated; 4 in a row were the same to the femtosecond, one every 10.0 ns"


def test_a_queue_that_keeps_growing_is_simulated_in_full() -> None:
    loop = make_block([-1, -1], time=[1, 2], queue=[0, 1], edges=[(0, 1, 0)], times=100)
    timeline, found = steady(graph_of(loop, queues=[Queue("host", ""), Queue("device", "")]))
    assert (found.simulated, found.period) == (100, 0)
    assert "never repeated" in found.why or "under way" in found.why
    assert timeline.makespan_fs == 201


def test_no_more_iterations_are_under_way_than_there_are() -> None:
    loop = make_block([-1, -1], time=[1, 10**6], queue=[0, 1], edges=[(0, 1, 0)], times=100)
    _, found = steady(graph_of(loop, queues=[Queue("host", ""), Queue("device", "")]))
    assert found.why == "up to 100 iterations are under way at once"


def test_short_loops_are_not_worth_it() -> None:
    assert play_steady(graph_of(make_block([-1], time=[1], times=LONG - 1)), simulate)[1] is None
