from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpy import Event

from hwsim.demand import Capacity, Cost, Demand
from hwsim.engine import Deadlock, Driver, simulate
from hwsim.opgraph import EVERY, LAST, PAIRED, Block, Label, OpGraph, Pool, Queue
from hwsim.results.timeline import FEMTO, Timeline
from tests.reference_engine import play
from tests.strategies import FS, demands, graphs, make_block, rates, rows, tables

CASES = settings(max_examples=3000 if os.environ.get("HWSIM_THOROUGH") else 100, deadline=None)

Actions = Generator[Event, None, None]

NS, US = 10**6, 10**9  # fs
LABELS = (Label("first", "op", "gpu0"), Label("second", "op", "gpu0"), Label("third", "op", "gpu0"))
LINK = Capacity("link", 1e9, "B")
LOOP = Label("op", "op", "")


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


# ---------------------------------------------------------------- one op


@CASES
@given(st.data())
def test_an_op_alone_takes_its_latency_and_its_slowest_amount_or_its_floor(data: st.DataObject) -> None:
    capacities = [Capacity(f"c{number}", data.draw(rates)) for number in range(3)]
    demand = data.draw(demands(capacities, may_hold=True))
    size = data.draw(st.sampled_from([1.0, 3.0, 0.5]))
    graph = graph_of(make_block([0], size=[size]), costs=[demand], capacities=capacities)
    speed = {one.name: Fraction(one.rate) for one in capacities}
    body = max([Fraction(demand.floor), *(Fraction(amount) / speed[name] for name, amount in demand.amounts)])
    expected = (Fraction(demand.latency) + body * Fraction(size)) * FEMTO
    for timeline in (simulate(graph), play_open(graph)):
        assert abs(timeline.makespan_fs - expected) <= 1 + expected * Fraction(1, 2**51)


@given(st.integers(0, 60), st.integers(0, 10), st.integers(0, 60), st.integers(1, 60))
@settings(max_examples=50, deadline=None)
def test_own_time_latency_and_body_add_up(time: int, latency: int, floor: int, amount: int) -> None:
    demand = Demand(latency * FS, (("c", amount * FS),), floor * FS)
    graph = graph_of(make_block([0], time=[time]), costs=[demand], capacities=[Capacity("c", 1.0)])
    assert play_open(graph).makespan_fs == simulate(graph).makespan_fs == time + latency + max(floor, amount)


# ---------------------------------------------------------------- several


@CASES
@given(st.data())
def test_ops_that_only_share_capacities_take_between_the_longest_and_the_sum(data: st.DataObject) -> None:
    common = data.draw(tables())
    chosen = data.draw(st.lists(st.integers(0, len(common.costs) - 1), min_size=1, max_size=8))
    kinds = [cost.demand for cost in common.costs]
    kinds = [Demand(one.latency, one.amounts, one.floor, (), one.share) for one in kinds]
    together = simulate(graph_of(make_block(chosen), costs=kinds, capacities=common.capacities))
    parts = [simulate(graph_of(make_block([one]), costs=kinds, capacities=common.capacities)).makespan_fs for one in chosen]
    assert max(parts) <= together.makespan_fs
    # each op's shares are rounded down to 2**-64: a few fs a change of rates, and a fs for each end
    assert together.makespan_fs <= sum(parts) * (1 + 1e-15) + 2 * len(chosen)


def longest_path(durations: Sequence[int], queues: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[int]:
    ends: list[int] = []
    last: dict[int, int] = {}
    for op, duration in enumerate(durations):
        begin = max([0, last.get(queues[op], 0), *(ends[source] for source, target in edges if target == op)])
        ends.append(begin + duration)
        if queues[op] >= 0:
            last[queues[op]] = ends[op]
    return ends


@CASES
@given(st.data())
def test_queues_without_contention_are_a_longest_path(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    durations = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    queues = data.draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = data.draw(st.lists(pairs, max_size=20)) if count > 1 else []
    lines = [Queue(f"q{number}", "") for number in range(3)]
    body = make_block([-1] * count, time=durations, queue=queues, edges=[(*pair, 0) for pair in edges])
    assert simulate(graph_of(body, queues=lines)).end.tolist() == longest_path(durations, queues, edges)


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
                    one.label,
                    one.cost,
                    one.size,
                    one.time,
                    np.where(one.queue < 0, -1, one.queue + len(parts[0].queues)),
                    one.insert,
                    one.take,
                    one.give,
                    one.edges,
                    one.times,
                )
                for one in parts[1].blocks
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


SEEDED = """
import json
from hypothesis import Phase, given, seed, settings
from tests.strategies import graphs
from hwsim.engine import Driver

found = []

@seed(7)
@settings(max_examples=40, deadline=None, database=None, phases=[Phase.generate])
@given(graphs())
def collect(graph):
    driver = Driver(graph.capacities, graph.pools)
    driver.submit(graph)
    timeline = driver.run()
    found.append([timeline.end.tolist(), timeline.granted.tolist(), [list(map(tuple, one)) for one in timeline.paces]])

collect()
print(json.dumps(found))
"""


def test_the_hash_seed_changes_nothing(root: Path) -> None:
    found = []
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", SEEDED], env={**os.environ, "PYTHONHASHSEED": seed}, cwd=root, capture_output=True, check=True
        )
        found.append(json.loads(run.stdout))
    assert len(found[0]) >= 40
    assert found[0] == found[1]


# ---------------------------------------------------------------- sharing by hand


def test_two_equal_transfers_take_twice_as_long() -> None:
    assert simulate(transfers(1000, 1000)).end.tolist() == [2000 * NS] * 2


def test_a_short_transfer_leaves_the_rest_to_the_long_one() -> None:
    # 100 and 300 bytes: half each until 200 ns, when 200 bytes are left to go alone
    assert simulate(transfers(100, 300)).end.tolist() == [200 * NS, 400 * NS]


def test_the_pace_is_held_back_together() -> None:
    # a kernel that needs compute 1 and memory 0.3 beside a stream that needs compute 0.05 and memory 1
    # shares are time x bandwidth: equal paces p, 1.3 p = 1
    kernel = Demand(amounts=(("compute", 1.0), ("memory", 0.3)))
    stream = Demand(amounts=(("compute", 0.05), ("memory", 1.0)))
    capacities = [Capacity("compute", 1.0), Capacity("memory", 1.0)]
    timeline = simulate(graph_of(make_block([0, 1]), costs=[kernel, stream], capacities=capacities))
    assert timeline.makespan == pytest.approx(1.3, rel=1e-15)


def test_a_change_travels_along_a_chain_of_full_links() -> None:
    # flows cross neighbouring links, each three times as wide as the one before: a flow gets what the one
    # before it leaves.  What ends at the near end of the chain is felt at the far end, at that instant
    count = 7
    links = [Capacity(f"link{number}", 1e9 * 3**number, "B") for number in range(count)]
    crossing = [(f"link{number}", f"link{number + 1}") for number in range(count - 1)]
    kinds = [Demand(amounts=tuple((name, 1.0) for name in names)) for names in [("link0",), ("link0",), *crossing]]
    graph = graph_of(make_block(range(len(kinds)), size=[10, 400, *[100_000] * len(crossing)]), costs=kinds, capacities=links)
    assert simulate(graph).end.tolist() == play(graph).end
    paces = simulate(graph).paces
    at = simulate(graph).end[0]
    assert [number for number, history in enumerate(paces) if any(pace.start == at for pace in history)] == [*range(len(paces))]


def test_demands_that_draw_alike_and_differ_in_their_floor_keep_their_own_pace() -> None:
    # 10 bytes in no less than 100 ns beside 10 bytes as fast as they go: the link has 0.9 left for those
    slow = Demand(amounts=(("link", 10.0),), floor=100e-9, share=10.0)
    for costs in ([slow, transfer(10)], [transfer(10), slow]):
        graph = graph_of(make_block([0, 1]), costs=costs, capacities=[LINK])
        for timeline in (simulate(graph), play_open(graph)):
            assert sorted(timeline.end.tolist()) == [11_111_112, 100 * NS]


def test_what_a_demand_holds_is_not_there_for_others() -> None:
    holder = Demand(floor=10e-9, holds=(("link", 0.75),))
    graph = graph_of(make_block([0, 1]), costs=[holder, transfer(10)], capacities=[LINK])
    # a quarter of the link for 10 ns, all of it for the other 7.5 bytes
    assert simulate(graph).end.tolist() == [10 * NS, 17_500_000]


def test_a_hold_makes_a_class_of_its_own() -> None:
    # alike but for what they hold: if they were one class, both or neither would be counted as holding
    plain, holding = (
        Demand(floor=10e-9, amounts=(("x", 1e-9),)),
        Demand(floor=10e-9, amounts=(("x", 1e-9),), holds=(("link", 0.5),)),
    )
    graph = graph_of(make_block([0, 1, 2]), costs=[plain, holding, transfer(10)], capacities=[LINK, Capacity("x", 1.0)])
    for timeline in (simulate(graph), play_open(graph)):
        assert timeline.end.tolist() == play(graph).end == [10 * NS, 10 * NS, 15 * NS]


# ---------------------------------------------------------------- queues of bounded depth


def issue_and_run(depth: int | None, issue: int, run: int, times: int) -> int:
    """A host thread issues (in `issue` ns) and inserts; a backend queue runs (`run` ns).  Makespan in ns."""
    body = make_block(
        [-1, -1, -1],
        time=[issue * NS, 0, run * NS],
        queue=[0, 0, 1],
        insert=[-1, -1, 1],
        edges=[(0, 1, 0), (1, 2, 0)],
        times=times,
    )
    return simulate(graph_of(body, queues=[Queue("host", "cpu"), Queue("stream", "gpu0", depth)])).makespan_fs // NS


@pytest.mark.parametrize("depth", [None, 1, 2, 7])
def test_issuing_overlaps_running_at_any_depth_when_the_insertion_follows_the_issue(depth: int | None) -> None:
    # the next op is issued while this one runs; only its insertion waits: 30 us an op, not 42
    assert issue_and_run(depth, 12_000, 30_000, 1000) == 12_000 + 30_000 * 1000


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_at_most_depth_ops_are_inserted_and_not_ended(depth: int) -> None:
    body = make_block([-1, -1], time=[1, 100], queue=[0, 1], insert=[-1, 0], edges=[(0, 1, 0)], times=9)
    timeline = simulate(graph_of(body, queues=[Queue("host", "cpu"), Queue("stream", "gpu0", depth)]))
    inserted, ended = timeline.end[0::2].tolist(), timeline.end[1::2].tolist()
    begun = timeline.start[0::2].tolist()
    assert all(begun[op] >= ended[op - depth] for op in range(depth, 9))
    # one more would fit at no earlier moment: the bound is met, and not undercut
    most = max(sum(begin <= now < end for begin, end in zip(begun, ended, strict=True)) for now in inserted)
    assert most == depth


def test_a_serial_host_waits_for_each_op_when_the_issue_itself_inserts() -> None:
    # issue and insertion in one op: depth 1 is then no overlap at all, 42 us an op
    body = make_block([-1, -1], time=[12 * US, 30 * US], queue=[0, 1], insert=[-1, 0], edges=[(0, 1, 0)], times=1000)
    timeline = simulate(graph_of(body, queues=[Queue("host", "cpu"), Queue("stream", "gpu0", 1)]))
    assert timeline.makespan_fs == 42 * US * 1000


def test_a_queue_keeps_program_order_and_a_pool_the_order_of_readiness() -> None:
    # A waits until 10 and takes 4; B is ready at 0 and takes 5
    time, edges = [10, 4, 5], [(0, 1, 0)]
    in_order = make_block([-1] * 3, time=time, edges=edges, queue=[-1, 0, 0])
    as_ready = make_block([-1] * 3, time=time, edges=edges, take=[-1, 0, 0], give=[-1, 0, 0])
    assert simulate(graph_of(in_order, queues=[Queue("stream", "gpu0")])).makespan_fs == 19
    assert simulate(graph_of(as_ready, pools=[Pool("servers", 1)])).makespan_fs == 14


# ---------------------------------------------------------------- pools and joins


def test_a_pool_serves_by_readiness_then_by_op_number() -> None:
    # 0 holds the server until 10; 3 is ready at 1, the others at 2
    body = make_block(
        [-1] * 6,
        time=[10, 5, 5, 5, 1, 2],
        take=[0, 0, 0, 0, -1, -1],
        give=[0, 0, 0, 0, -1, -1],
        edges=[(4, 3, 0), (5, 1, 0), (5, 2, 0)],
    )
    timeline = simulate(graph_of(body, pools=[Pool("server", 1)]))
    assert timeline.start.tolist() == [0, 15, 20, 10, 0, 0]
    assert timeline.granted.tolist() == [-1, 3, 1, 0, -1, -1]


def test_a_server_taken_by_one_op_and_given_back_by_another_is_busy_in_between() -> None:
    body = make_block([-1, -1, -1], time=[3, 4, 5], take=[0, -1, 0], give=[-1, 0, 0], edges=[(0, 1, 0)])
    assert simulate(graph_of(body, pools=[Pool("buffer", 1)])).start.tolist() == [0, 3, 7]


def test_who_waits_is_served_before_who_becomes_ready_at_that_instant() -> None:
    # at 10 op 0 ends: 3 has waited since 1; 1 becomes ready at 10, with a lower number
    body = make_block([-1] * 4, time=[10, 5, 1, 5], take=[0, 0, -1, 0], give=[0, 0, -1, 0], edges=[(0, 1, 0), (2, 3, 0)])
    assert simulate(graph_of(body, pools=[Pool("server", 1)])).start.tolist() == [0, 15, 0, 10]


@pytest.mark.parametrize("closed", [True, False])
def test_servers_freed_at_one_instant_go_to_who_waits_in_the_order_of_the_ops_that_free_them(closed: bool) -> None:
    # op 0 flows, op 1 has a fixed time; both end at 1 ns, and who is granted by whom is not a matter of which is which
    flows = Demand(amounts=(("c", 0.4e-9),), floor=1e-9)
    body = make_block([0, -1, -1, -1], time=[0, NS, 5, 5], take=[0] * 4, give=[0] * 4)
    driver = Driver([Capacity("c", 1.0)], [Pool("servers", 2)], closed=closed)
    driver.submit(graph_of(body, costs=[flows], capacities=driver.capacities, pools=driver.pools))
    assert driver.run().granted.tolist() == [-1, -1, 0, 1]


def test_joins_in_front_of_ops_change_no_order() -> None:
    # the same race for a server, with a chain of joins in front of the op with the lowest number
    plain = make_block(
        [-1] * 4, time=[10, 5, 5, 5], take=[-1, 0, 0, 0], give=[-1, 0, 0, 0], edges=[(0, 1, 0), (0, 2, 0), (0, 3, 0)]
    )
    joined = make_block(
        [-1] * 6,
        time=[10, 5, 5, 5, 0, 0],
        take=[-1, 0, 0, 0, -1, -1],
        give=[-1, 0, 0, 0, -1, -1],
        edges=[(0, 4, 0), (4, 5, 0), (5, 1, 0), (0, 2, 0), (0, 3, 0)],
    )
    server = [Pool("server", 1)]
    assert simulate(graph_of(joined, pools=server)).end.tolist()[:4] == simulate(graph_of(plain, pools=server)).end.tolist()


def test_a_queued_op_of_no_length_is_no_join() -> None:
    # it ends in the next round of the instant: the op behind it is late for the server
    body = make_block(
        [-1] * 4,
        time=[10, 0, 5, 5],
        queue=[-1, 0, -1, -1],
        take=[-1, -1, 0, 0],
        give=[-1, -1, 0, 0],
        edges=[(0, 1, 0), (1, 2, 0), (0, 3, 0)],
    )
    timeline = simulate(graph_of(body, queues=[Queue("stream", "gpu0")], pools=[Pool("server", 1)]))
    assert timeline.start.tolist() == [0, 10, 15, 10]


# ---------------------------------------------------------------- blocks


def test_lags_reach_back_over_iterations() -> None:
    # an op of 5, each after the one two iterations before: pairs run together
    body = make_block([-1], time=[5], edges=[(0, 0, 2)], times=6)
    assert simulate(graph_of(body)).start.tolist() == [0, 0, 5, 5, 10, 10]


@pytest.mark.parametrize(("mode", "starts"), [(LAST, [15, 15, 15]), (EVERY, [15, 15, 15]), (PAIRED, [5, 10, 15])])
def test_ties_connect_blocks(mode: int, starts: list[int]) -> None:
    chain = make_block([-1], time=[5], edges=[(0, 0, 1)], times=3)
    after = make_block([-1], time=[1], edges=[(0, 0, 1)] if mode != PAIRED else [], times=3)
    timeline = simulate(graph_of(chain, after, ties=[(0, 0, 1, 0, mode)]))
    first = timeline.start.tolist()[3]
    assert first == starts[0]
    if mode == PAIRED:
        assert timeline.start.tolist()[3:] == starts


@pytest.mark.parametrize(("mode", "start"), [(LAST, 5), (EVERY, 55)])
def test_a_tie_to_the_last_iteration_lets_the_others_be(mode: int, start: int) -> None:
    # the first of two independent iterations is held up until 50, the last one is not
    slow, twice, after = make_block([-1], time=[50]), make_block([-1], time=[5], times=2), make_block([-1], time=[1])
    timeline = simulate(graph_of(slow, twice, after, ties=[(0, 0, 1, 0, LAST), (1, 0, 2, 0, mode)]))
    assert timeline.start.tolist() == [0, 50, 0, start]


# ---------------------------------------------------------------- capacities that change


def run_with(graph: OpGraph, *changes: tuple[int, float]) -> Timeline:
    """Play a graph while its link is limited at (fs) to (fraction)."""

    def changing(driver: Driver) -> Actions:
        for at, fraction in changes:
            yield driver.env.timeout(at - driver.env.now)
            driver.limit("link", fraction)

    return simulate(graph, actors=[changing])


def test_half_a_capacity_from_midway_makes_the_rest_take_twice_as_long() -> None:
    assert run_with(transfers(1000), (400 * NS, 0.5)).end.tolist() == [1600 * NS]
    assert run_with(transfers(1000, 1000), (400 * NS, 0.5)).end.tolist() == [3600 * NS] * 2


def test_a_capacity_that_comes_back_is_used_at_once() -> None:
    assert run_with(transfers(1000), (400 * NS, 0.5), (600 * NS, 1.0)).end.tolist() == [1100 * NS]


def test_no_capacity_stalls_and_resumes() -> None:
    assert run_with(transfers(1000), (400 * NS, 0.0), (5000 * NS, 1.0)).end.tolist() == [5600 * NS]
    assert run_with(transfers(100, 300), (100 * NS, 0.0), (200 * NS, 1.0)).end.tolist() == [300 * NS, 500 * NS]


def test_a_limit_at_the_start_and_one_that_changes_nothing() -> None:
    assert run_with(transfers(1000), (0, 0.25)).end.tolist() == [4000 * NS]
    assert run_with(transfers(1000), (300 * NS, 1.0), (300 * NS, 1.0)).end.tolist() == [1000 * NS]


def test_a_limit_at_the_very_end_is_too_late() -> None:
    assert run_with(transfers(1000), (1000 * NS, 0.0)).end.tolist() == [1000 * NS]


def test_a_stall_that_never_ends_is_a_deadlock_that_names_the_ops() -> None:
    with pytest.raises(Deadlock, match="first on gpu0"):
        run_with(transfers(1000), (400 * NS, 0.0))


def test_a_closed_run_refuses_to_change_and_a_limit_is_a_fraction() -> None:
    graph = transfers(1000)
    with pytest.raises(ValueError, match="closed"):
        Driver(graph.capacities, (), closed=True).limit("link", 0.5)
    with pytest.raises(ValueError, match="0 to 1"):
        Driver(graph.capacities, ()).limit("link", 1.5)


# ---------------------------------------------------------------- graphs that cannot finish


def test_a_cycle_is_named_op_by_op() -> None:
    body = make_block([-1] * 3, label=[0, 1, 2], time=[5] * 3, edges=[(0, 1, 0), (1, 2, 0), (2, 1, 0)])
    with pytest.raises(Deadlock, match=r"second on gpu0 -> third on gpu0 -> second on gpu0|third.* -> second.* -> third"):
        simulate(graph_of(body))


def test_a_cycle_is_found_beside_ops_that_wait_for_a_server() -> None:
    body = make_block([-1] * 4, label=[0, 0, 1, 2], time=[5] * 4, take=[0, 0, -1, -1], edges=[(1, 2, 0), (2, 3, 0), (3, 2, 0)])
    with pytest.raises(Deadlock, match=r"circle: (second on gpu0 -> third|third on gpu0 -> second)"):
        simulate(graph_of(body, pools=[Pool("server", 1)]))


def test_a_server_that_is_never_given_back_is_a_deadlock_that_names_who_waits() -> None:
    body = make_block([-1, -1], label=[0, 1], time=[5, 5], take=[0, 0])
    with pytest.raises(Deadlock, match="second on gpu0"):
        simulate(graph_of(body, pools=[Pool("server", 1)]))


def test_a_submitted_cycle_never_reports_its_end() -> None:
    graph = graph_of(make_block([-1, -1], time=[5, 5], edges=[(0, 1, 0), (1, 0, 0)]))
    driver = Driver((), ())
    finished = driver.submit(graph)
    driver.run()
    assert not finished.triggered
    assert driver.unfinished() == [0, 1]


def test_paired_blocks_run_equally_often() -> None:
    chain, other = make_block([-1], time=[5], times=3), make_block([-1], time=[5])
    with pytest.raises(ValueError, match="equally often"):
        simulate(graph_of(chain, other, ties=[(0, 0, 1, 0, PAIRED)]))


@pytest.mark.parametrize(
    "demand",
    [
        Demand(amounts=(("link", 0.0),)),
        Demand(amounts=(("link", -1.0),)),
        Demand(amounts=(("link", float("nan")),)),
        Demand(amounts=(("link", 1.0), ("link", 2.0))),
        Demand(amounts=(("link", 1.0),), holds=(("link", 0.5),)),
        Demand(holds=(("link", 1.0),), floor=1.0),
        Demand(floor=float("inf")),
        Demand(latency=-1.0),
        Demand(share=0.0),
    ],
    ids=str,
)
def test_demands_that_mean_nothing_are_refused(demand: Demand) -> None:
    with pytest.raises(ValueError, match="a demand"):
        simulate(graph_of(make_block([0]), costs=[demand], capacities=[LINK]))


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


def test_a_denormal_floor_or_amount_takes_no_part_in_the_sharing() -> None:
    light = Demand(amounts=(("flop", 5e-324),), floor=1e-3, share=1.0)
    idle = Demand(amounts=(("flop", 1e9),), floor=1e-320, share=1e6)
    graph = graph_of(make_block([0, 1]), costs=[light, idle], capacities=[Capacity("flop", 1e12)])
    assert simulate(graph).end.tolist() == play_open(graph).end.tolist() == [10**12] * 2


def test_many_orders_of_magnitude_between_two_demands() -> None:
    graph = transfers(1e-3, 1e12)
    end = simulate(graph).end.tolist()
    assert end == [2 * 10**3, 1000 * FEMTO + 10**3]


@pytest.mark.parametrize("hours", [2, 3, 1000])
def test_hours_are_as_exact_as_seconds(hours: int) -> None:
    span = hours * 3600 * FEMTO
    body = make_block([0, 1, 2], edges=[(0, 1, 0), (0, 2, 0)])
    graph = graph_of(body, costs=[Demand(latency=hours * 3600.0), transfer(100), transfer(300)], capacities=[LINK])
    timeline = simulate(graph)
    assert timeline.end.tolist() == [span, span + 200 * NS, span + 400 * NS]
    assert timeline.makespan_fs == span + 400 * NS


def test_a_sum_of_long_times_does_not_wrap() -> None:
    graph = graph_of(make_block([0], time=[7200 * FEMTO]), costs=[Demand(latency=2160.0, floor=3000.0)])
    assert simulate(graph).end.tolist() == [(7200 + 2160 + 3000) * FEMTO]


def test_a_long_chain_passes_the_range_of_64_bits() -> None:
    graph = graph_of(make_block([-1], time=[3600 * FEMTO + 1], edges=[(0, 0, 1)], times=5))
    assert simulate(graph).end.tolist() == [(3600 * FEMTO + 1) * count for count in range(1, 6)]


def test_an_empty_graph_ends_at_once() -> None:
    assert simulate(graph_of()).makespan_fs == 0
    driver = Driver((), ())
    finished = driver.submit(graph_of())
    driver.run()
    assert finished.processed


# ---------------------------------------------------------------- SimPy


def test_a_process_wakes_when_its_graph_ends_and_its_answer_starts_at_that_instant() -> None:
    graph = transfers(100, 300)
    seen: list[tuple[str, int]] = []

    def answering(driver: Driver) -> Actions:
        yield driver.submit(graph)
        seen.append(("ended", int(driver.env.now)))
        yield driver.submit(graph)
        seen.append(("answered", int(driver.env.now)))

    driver = Driver(graph.capacities, graph.pools)
    driver.env.process(answering(driver))
    timeline = driver.run()
    assert timeline.start.tolist() == [0, 0, 400 * NS, 400 * NS]
    assert timeline.end.tolist() == [200 * NS, 400 * NS, 600 * NS, 800 * NS]
    assert seen == [("ended", 400 * NS), ("answered", 800 * NS)]


def test_a_process_that_answers_shares_with_what_still_runs() -> None:
    short, long = transfers(100), transfers(300)

    def answering(driver: Driver) -> Actions:
        yield driver.submit(short)
        yield driver.submit(short)

    timeline = simulate_open(long, answering)
    # 300 bytes beside 100 and then 100: all at half the link, and 100 bytes alone
    assert timeline.end.tolist() == [500 * NS, 200 * NS, 400 * NS]


def simulate_open(graph: OpGraph, *actors: object) -> Timeline:
    """Like simulate, for graphs over the same link whose tables differ."""
    driver = Driver(graph.capacities, graph.pools)
    driver.submit(graph)
    for actor in actors:
        assert callable(actor)
        driver.env.process(actor(driver))
    return driver.run()


def test_processes_see_their_own_time_while_graphs_run() -> None:
    graph = transfers(1000)
    ticks: list[int] = []

    def ticking(driver: Driver) -> Actions:
        for _ in range(5):
            yield driver.env.timeout(300 * NS)
            ticks.append(int(driver.env.now))

    assert simulate(graph, actors=[ticking]).end.tolist() == [1000 * NS]
    assert ticks == [300 * NS * count for count in range(1, 6)]


def test_two_processes_that_wait_for_the_same_instant_both_wake_at_it() -> None:
    seen: list[tuple[int, int]] = []

    def waiting(number: int, size: float) -> object:
        def process(driver: Driver) -> Actions:
            yield driver.submit(transfers(size))
            seen.append((number, int(driver.env.now)))

        return process

    simulate_open(graph_of(capacities=[LINK]), waiting(0, 100), waiting(1, 100), waiting(2, 300))
    assert seen == [(0, 300 * NS), (1, 300 * NS), (2, 500 * NS)]


def test_what_simpy_does_at_an_instant_comes_before_its_first_round() -> None:
    # op 2 wants the server in the second round of instant 10; what is submitted at 10, in the first
    body = make_block(
        [-1] * 3, time=[10, 0, 5], queue=[-1, 0, -1], take=[0, -1, 0], give=[0, -1, 0], edges=[(0, 1, 0), (1, 2, 0)]
    )
    graph = graph_of(body, queues=[Queue("stream", "gpu0")], pools=[Pool("server", 1)])
    late = graph_of(make_block([-1], time=[5], take=[0], give=[0]), pools=graph.pools)
    driver = Driver((), graph.pools)
    driver.submit(graph)
    driver.submit(late, 10)
    assert driver.run().start.tolist() == [0, 10, 15, 10]


def test_graphs_of_other_machines_are_refused() -> None:
    driver = Driver((LINK,), ())
    with pytest.raises(ValueError, match="capacities and pools"):
        driver.submit(graph_of())


def test_progress_is_told_up_to_the_last_op() -> None:
    told: list[tuple[int, int]] = []
    graph = graph_of(make_block([-1], time=[1], edges=[(0, 0, 1)], times=120_000))
    simulate(graph, progress=lambda done, known: told.append((done, known)))
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[-1] == (120_000, 120_000)


def test_identical_demands_are_one_class_however_many() -> None:
    timeline = simulate(graph_of(make_block([0] * 500), costs=[transfer(10)], capacities=[LINK]))
    assert timeline.end.tolist() == [5000 * NS] * 500
    assert len(timeline.paces) == 1
    assert timeline.solves == 1
