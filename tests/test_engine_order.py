from __future__ import annotations

import pytest

from hwsim.demand import Capacity, Demand
from hwsim.engine import Driver, simulate
from hwsim.graph.opgraph import Pool, Queue
from tests.engine_graphs import NS, graph_of
from tests.strategies import make_block

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


@pytest.mark.parametrize("closed", [True, False])
def test_servers_freed_at_one_instant_go_to_who_waits_in_the_order_of_the_ops_that_free_them(closed: bool) -> None:
    # op 0 flows, op 1 has a fixed time; both end at 1 ns, and who is granted by whom is not a matter of which is which
    flows = Demand(amounts=(("c", 0.4e-9),), floor=1e-9)
    body = make_block([0, -1, -1, -1], time=[0, NS, 5, 5], take=[0] * 4, give=[0] * 4)
    driver = Driver([Capacity("c", 1.0)], [Pool("servers", 2)], closed=closed)
    driver.submit(graph_of(body, costs=[flows], capacities=driver.capacities, pools=driver.pools))
    assert driver.run().granted.tolist() == [-1, -1, 0, 1]


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
