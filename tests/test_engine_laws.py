from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.demand import Capacity, Demand
from hwsim.engine import Driver, simulate
from hwsim.graph.opgraph import Block, OpGraph, Queue
from hwsim.ticks import FEMTO
from tests.engine_graphs import LINK, NS, graph_of, play_open, transfer
from tests.reference_engine import play
from tests.strategies import demands, graphs, make_block, rates, tables

CASES = settings(max_examples=3000 if os.environ.get("HWSIM_THOROUGH") else 60, deadline=None)


# ---------------------------------------------------------------- one op


@CASES
@given(st.data())
def test_an_op_alone_takes_its_latency_and_its_slowest_amount_or_its_floor(data: st.DataObject) -> None:
    capacities = [Capacity(f"c{number}", data.draw(rates)) for number in range(3)]
    demand = data.draw(demands(capacities, may_hold=True))
    size = data.draw(st.sampled_from([1.0, 3.0, 0.5]))
    graph = graph_of(make_block([0], size=[size]), costs=[demand], capacities=capacities)
    speed = {capacity.name: Fraction(capacity.rate) for capacity in capacities}
    body = max([Fraction(demand.floor), *(Fraction(amount) / speed[name] for name, amount in demand.amounts)])
    expected = (Fraction(demand.latency) + body * Fraction(size)) * FEMTO
    for timeline in (simulate(graph), play_open(graph)):
        assert abs(timeline.makespan_fs - expected) <= 1 + expected * Fraction(1, 2**51)


# ---------------------------------------------------------------- several


@CASES
@given(st.data())
def test_ops_that_only_share_capacities_take_between_the_longest_and_the_sum(data: st.DataObject) -> None:
    common = data.draw(tables())
    chosen = data.draw(st.lists(st.integers(0, len(common.costs) - 1), min_size=1, max_size=8))
    kinds = [cost.demand for cost in common.costs]
    kinds = [Demand(kind.latency, kind.amounts, kind.floor, (), kind.share) for kind in kinds]
    together = simulate(graph_of(make_block(chosen), costs=kinds, capacities=common.capacities))
    parts = [simulate(graph_of(make_block([one]), costs=kinds, capacities=common.capacities)).makespan_fs for one in chosen]
    assert max(parts) <= together.makespan_fs
    # each op's shares are rounded down to 2**-64: a few fs a change of rates, and a fs for each end
    assert together.makespan_fs <= sum(parts) * (1 + 1e-15) + 2 * len(chosen)


@CASES
@given(st.data())
def test_one_graph_is_its_parts_submitted_at_the_same_instant(data: st.DataObject) -> None:
    common = data.draw(tables())
    parts = [data.draw(graphs(common)) for _ in range(2)]
    whole = OpGraph(
        blocks=(
            *parts[0].blocks,
            *(
                Block(
                    block.label,
                    block.cost,
                    block.size,
                    block.time,
                    np.where(block.queue < 0, -1, block.queue + len(parts[0].queues)),
                    block.insert,
                    block.take,
                    block.give,
                    block.edges,
                    block.times,
                )
                for block in parts[1].blocks
            ),
        ),
        labels=parts[0].labels,
        costs=common.costs,
        capacities=common.capacities,
        queues=(*parts[0].queues, *parts[1].queues),
        pools=common.pools,
        ties=np.concatenate([parts[0].ties, parts[1].ties + len(parts[0].blocks) * np.array([1, 0, 1, 0, 0])]),
    )
    driver = Driver(common.capacities, common.pools)
    for part in parts:
        driver.submit(part)
    apart, together = driver.run(), play_open(whole)
    assert apart.start.tolist() == together.start.tolist()
    assert apart.end.tolist() == together.end.tolist()
    assert apart.granted.tolist() == together.granted.tolist()


@CASES
@given(graphs(), st.integers(0, 10**9))
def test_a_graph_submitted_later_is_the_same_later(graph: OpGraph, at: int) -> None:
    driver = Driver(graph.capacities, graph.pools)
    driver.submit(graph, at)
    late, early = driver.run(), play_open(graph)
    assert late.start.tolist() == [at + time if time >= 0 else -1 for time in early.start.tolist()]
    assert late.end.tolist() == [at + time if time >= 0 else -1 for time in early.end.tolist()]


# ---------------------------------------------------------------- sharing by hand


def test_the_pace_is_held_back_together() -> None:
    # a kernel that needs compute 1 and memory 0.3 beside a stream that needs compute 0.05 and memory 1
    # shares are time x bandwidth: equal paces p, 1.3 p = 1
    kernel = Demand(amounts=(("compute", 1.0), ("memory", 0.3)))
    stream = Demand(amounts=(("compute", 0.05), ("memory", 1.0)))
    capacities = [Capacity("compute", 1.0), Capacity("memory", 1.0)]
    timeline = simulate(graph_of(make_block([0, 1]), costs=[kernel, stream], capacities=capacities))
    assert timeline.makespan == pytest.approx(1.3, rel=1e-15)


def test_demands_that_draw_alike_and_differ_in_their_floor_keep_their_own_pace() -> None:
    # 10 bytes in no less than 100 ns beside 10 bytes as fast as they go: the link has 0.9 left for those
    slow = Demand(amounts=(("link", 10.0),), floor=100e-9, share=10.0)
    for costs in ([slow, transfer(10)], [transfer(10), slow]):
        graph = graph_of(make_block([0, 1]), costs=costs, capacities=[LINK])
        for timeline in (simulate(graph), play_open(graph)):
            assert sorted(timeline.end.tolist()) == [11_111_112, 100 * NS]


def test_a_hold_makes_a_class_of_its_own() -> None:
    # alike but for what they hold: if they were one class, both or neither would be counted as holding
    plain, holding = (
        Demand(floor=10e-9, amounts=(("x", 1e-9),)),
        Demand(floor=10e-9, amounts=(("x", 1e-9),), holds=(("link", 0.5),)),
    )
    graph = graph_of(make_block([0, 1, 2]), costs=[plain, holding, transfer(10)], capacities=[LINK, Capacity("x", 1.0)])
    for timeline in (simulate(graph), play_open(graph)):
        assert timeline.end.tolist() == play(graph).end == [10 * NS, 10 * NS, 15 * NS]


# ---------------------------------------------------------------- small and large numbers


def test_a_crumb_after_a_long_wait_ends_the_run() -> None:
    # 1e-8 FLOP at 1 TFLOP/s after 1 s: less than a float clock, or a femtosecond, can tell
    crumb = Demand(latency=1.0, amounts=(("flop", 1e-8),), share=1e-8)
    graph = graph_of(make_block([0, 0]), costs=[crumb], capacities=[Capacity("flop", 1e12)])
    for timeline in (simulate(graph), play_open(graph)):
        assert timeline.end.tolist() == [FEMTO] * 2


@pytest.mark.parametrize("share", [1.0, 160e6, 5e-324, 1e300])
def test_a_denormal_amount_beside_a_large_one(share: float) -> None:
    tiny, large = Demand(amounts=(("flop", 5e-324),), share=share), Demand(amounts=(("flop", 1e9),), share=1e9)
    body = make_block([0, 1, 0], queue=[0, 1, -1])
    graph = graph_of(body, costs=[tiny, large], capacities=[Capacity("flop", 1e12)], queues=[Queue("a", ""), Queue("b", "")])
    for timeline in (simulate(graph), play_open(graph)):
        assert timeline.end.tolist() == [0, 10**12, 0]


@pytest.mark.parametrize("hours", [2, 3, 1000])
def test_hours_are_as_exact_as_seconds(hours: int) -> None:
    span = hours * 3600 * FEMTO
    body = make_block([0, 1, 2], edges=[(0, 1, 0), (0, 2, 0)])
    graph = graph_of(body, costs=[Demand(latency=hours * 3600.0), transfer(100), transfer(300)], capacities=[LINK])
    timeline = simulate(graph)
    assert timeline.end.tolist() == [span, span + 200 * NS, span + 400 * NS]
    assert timeline.makespan_fs == span + 400 * NS


def test_a_long_chain_passes_the_range_of_64_bits() -> None:
    graph = graph_of(make_block([-1], time=[3600 * FEMTO + 1], edges=[(0, 0, 1)], times=5))
    assert simulate(graph).end.tolist() == [(3600 * FEMTO + 1) * count for count in range(1, 6)]


def test_an_empty_graph_ends_at_once() -> None:
    assert simulate(graph_of()).makespan_fs == 0
    driver = Driver((), ())
    finished = driver.submit(graph_of())
    driver.run()
    assert finished.processed
