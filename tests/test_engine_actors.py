from __future__ import annotations

import pytest

from hwsim.demand import Demand
from hwsim.engine import Deadlock, Driver, Host, PlainEngine, simulate
from hwsim.graph.opgraph import PAIRED, OpGraph, Pool, Queue
from hwsim.results.timeline import Timeline
from tests.engine_graphs import LINK, NS, Actions, graph_of, transfer, transfers
from tests.strategies import make_block

Kind = type[Driver] | type[PlainEngine]


@pytest.fixture(params=[Driver, PlainEngine], ids=["replay", "simpy"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Both engines that play actors."""
    found: Kind = request.param
    return found


# ---------------------------------------------------------------- capacities that change


def run_with(graph: OpGraph, *changes: tuple[int, float]) -> Timeline:
    """Play a graph while its link is limited at (fs) to (fraction)."""

    def changing(driver: Host) -> Actions:
        for instant, fraction in changes:
            yield driver.env.timeout(instant - driver.env.now)
            driver.limit("link", fraction)

    timeline = simulate(graph, actors=[changing])
    assert simulate(graph, actors=[changing], which="simpy").end.tolist() == timeline.end.tolist()
    return timeline


def test_half_a_capacity_from_midway_makes_the_rest_take_twice_as_long() -> None:
    assert run_with(transfers(1000), (400 * NS, 0.5)).end.tolist() == [1600 * NS]
    assert run_with(transfers(1000, 1000), (400 * NS, 0.5)).end.tolist() == [3600 * NS] * 2


def test_no_capacity_stalls_and_resumes() -> None:
    assert run_with(transfers(1000), (400 * NS, 0.0), (5000 * NS, 1.0)).end.tolist() == [5600 * NS]
    assert run_with(transfers(100, 300), (100 * NS, 0.0), (200 * NS, 1.0)).end.tolist() == [300 * NS, 500 * NS]


def test_a_limit_at_the_very_end_is_too_late() -> None:
    assert run_with(transfers(1000), (1000 * NS, 0.0)).end.tolist() == [1000 * NS]


def test_a_stall_that_never_ends_is_a_deadlock_that_names_the_ops() -> None:
    with pytest.raises(Deadlock, match="first on gpu0"):
        run_with(transfers(1000), (400 * NS, 0.0))


def test_a_closed_run_refuses_to_change_and_a_limit_is_a_fraction() -> None:
    graph = transfers(1000)
    with pytest.raises(ValueError, match="closed"):
        Driver(graph.capacities, (), closed=True).limit("link", 0.5)
    for kind in (Driver, PlainEngine):
        with pytest.raises(ValueError, match="0 to 1"):
            kind(graph.capacities, ()).limit("link", 1.5)


# ---------------------------------------------------------------- graphs that cannot finish


def test_a_cycle_is_named_op_by_op() -> None:
    body = make_block([-1] * 3, label=[0, 1, 2], time=[5] * 3, edges=[(0, 1, 0), (1, 2, 0), (2, 1, 0)])
    with pytest.raises(Deadlock, match=r"second on gpu0 -> third on gpu0 -> second on gpu0|third.* -> second.* -> third"):
        simulate(graph_of(body))


def test_a_cycle_is_found_beside_ops_that_wait_for_a_server() -> None:
    body = make_block([-1] * 4, label=[0, 0, 1, 2], time=[5] * 4, take=[0, 0, -1, -1], edges=[(1, 2, 0), (2, 3, 0), (3, 2, 0)])
    with pytest.raises(Deadlock, match=r"cycle: (second on gpu0 -> third|third on gpu0 -> second)"):
        simulate(graph_of(body, pools=[Pool("server", 1)]))


def test_a_server_that_is_never_given_back_is_a_deadlock_that_names_who_waits() -> None:
    body = make_block([-1, -1], label=[0, 1], time=[5, 5], take=[0, 0])
    with pytest.raises(Deadlock, match="second on gpu0"):
        simulate(graph_of(body, pools=[Pool("server", 1)]))


def test_a_submitted_cycle_never_reports_its_end(kind: Kind) -> None:
    graph = graph_of(make_block([-1, -1], time=[5, 5], edges=[(0, 1, 0), (1, 0, 0)]))
    driver = kind((), ())
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


# ---------------------------------------------------------------- SimPy


def test_a_process_wakes_when_its_graph_ends_and_its_answer_starts_at_that_instant(kind: Kind) -> None:
    graph = transfers(100, 300)
    seen: list[tuple[str, int]] = []

    def answering(driver: Host) -> Actions:
        yield driver.submit(graph)
        seen.append(("ended", int(driver.env.now)))
        yield driver.submit(graph)
        seen.append(("answered", int(driver.env.now)))

    driver = kind(graph.capacities, graph.pools)
    driver.env.process(answering(driver))
    timeline = driver.run()
    assert timeline.start.tolist() == [0, 0, 400 * NS, 400 * NS]
    assert timeline.end.tolist() == [200 * NS, 400 * NS, 600 * NS, 800 * NS]
    assert seen == [("ended", 400 * NS), ("answered", 800 * NS)]


def test_a_process_that_answers_shares_with_what_still_runs(kind: Kind) -> None:
    short, long = transfers(100), transfers(300)

    def answering(driver: Host) -> Actions:
        yield driver.submit(short)
        yield driver.submit(short)

    timeline = simulate_open(kind, long, answering)
    # 300 bytes beside 100 and then 100: all at half the link, and 100 bytes alone
    assert timeline.end.tolist() == [500 * NS, 200 * NS, 400 * NS]


def simulate_open(kind: Kind, graph: OpGraph, *actors: object) -> Timeline:
    """Like simulate, for graphs over the same link whose tables differ."""
    driver = kind(graph.capacities, graph.pools)
    driver.submit(graph)
    for actor in actors:
        assert callable(actor)
        driver.env.process(actor(driver))
    return driver.run()


def test_processes_see_their_own_time_while_graphs_run() -> None:
    graph = transfers(1000)
    ticks: list[int] = []

    def ticking(driver: Host) -> Actions:
        for _ in range(5):
            yield driver.env.timeout(300 * NS)
            ticks.append(int(driver.env.now))

    assert simulate(graph, actors=[ticking]).end.tolist() == [1000 * NS]
    assert ticks == [300 * NS * count for count in range(1, 6)]


def test_two_processes_that_wait_for_the_same_instant_both_wake_at_it(kind: Kind) -> None:
    seen: list[tuple[int, int]] = []

    def waiting(number: int, size: float) -> object:
        def process(driver: Host) -> Actions:
            yield driver.submit(transfers(size))
            seen.append((number, int(driver.env.now)))

        return process

    simulate_open(kind, graph_of(capacities=[LINK]), waiting(0, 100), waiting(1, 100), waiting(2, 300))
    assert seen == [(0, 300 * NS), (1, 300 * NS), (2, 500 * NS)]


def test_what_simpy_does_at_an_instant_comes_before_its_first_round(kind: Kind) -> None:
    # op 2 wants the server in the second round of instant 10; what is submitted at 10, in the first
    body = make_block(
        [-1] * 3, time=[10, 0, 5], queue=[-1, 0, -1], take=[0, -1, 0], give=[0, -1, 0], edges=[(0, 1, 0), (1, 2, 0)]
    )
    graph = graph_of(body, queues=[Queue("stream", "gpu0")], pools=[Pool("server", 1)])
    late = graph_of(make_block([-1], time=[5], take=[0], give=[0]), pools=graph.pools)
    driver = kind((), graph.pools)
    driver.submit(graph)
    driver.submit(late, 10)
    assert driver.run().start.tolist() == [0, 10, 15, 10]


def test_graphs_of_other_machines_are_refused(kind: Kind) -> None:
    driver = kind((LINK,), ())
    with pytest.raises(ValueError, match="capacities and pools"):
        driver.submit(graph_of())


def test_progress_is_told_up_to_the_last_op() -> None:
    told: list[tuple[int, int]] = []
    graph = graph_of(make_block([-1], time=[1], edges=[(0, 0, 1)], take=[0], give=[0], times=120_000), pools=[Pool("server", 1)])
    simulate(graph, progress=lambda done, known: told.append((done, known)), fast="never")
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[-1] == (120_000, 120_000)


def test_identical_demands_are_one_class_however_many() -> None:
    timeline = simulate(graph_of(make_block([0] * 500), costs=[transfer(10)], capacities=[LINK]))
    assert timeline.end.tolist() == [5000 * NS] * 500
    assert len(timeline.paces) == 1
    assert timeline.solves == 1
