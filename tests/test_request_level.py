from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.demand import Capacity, Cost, Demand, Requests
from hwsim.devices.dram import D2L, Dram
from hwsim.engine import simulate
from hwsim.families.requests import SIMULATIONS
from hwsim.families.requests.dram import DramSimulation, address, addresses, map_lines
from hwsim.families.requests.requests import RequestColumns, RequestDevice, columns, poisson, requests_of, serve, statistics
from hwsim.families.requests.simulation import RequestSimulations
from hwsim.graph.builder import GraphBuilder
from hwsim.graph.opgraph import Ints
from hwsim.spec import SpecError
from tests.command import hwsim

NO_REFRESH = replace(D2L, tRTP=7.5e-9)


class Server:
    """One server, first come first served, a known time for each: the simplest simulation."""

    def __init__(self, times: list[float]) -> None:
        self.times = deque(times)
        self.events: list[tuple[float, int, RequestColumns]] = []
        self.free = 0.0
        self.served = 0

    @property
    def counters(self) -> dict[str, float]:
        return {"served": float(self.served)}

    def units(self, address: Ints) -> tuple[Ints, str]:
        return np.zeros_like(address), "server"

    def offer(self, served: RequestColumns) -> None:
        for i, arrival in enumerate(served.at):
            self.events.append((arrival, i, served))
        self.events.sort(key=lambda event: event[0])

    def due(self) -> float:
        return max(self.events[0][0], self.free) if self.events else math.inf

    def advance(self, until: float) -> None:
        while self.due() <= until and self.events:
            start = self.due()
            at, i, served = self.events.pop(0)
            served.issued[i], served.start[i] = at, start
            served.finish[i] = self.free = start + self.times.popleft()
            served.left -= 1
            self.served += 1


# ---- queueing theory ----


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_bank_fed_at_random_waits_as_pollaczek_and_khinchine_say(load: float) -> None:
    """M/D/1: the row before has to be closed first, which overlaps with the wait."""
    one, count = replace(NO_REFRESH, banks=1, queue=10_000), 40_000
    arrivals = poisson(load / one.tRC, count, seed=5)
    served = columns(addresses(one, count, banks=1, seed=3), 64, at=arrivals)
    serve(DramSimulation(one), served)
    latency = np.array(served.finish) - np.array(served.issued)
    expected = load * one.tRC / (2 * (1 - load)) + one.latency("conflict")
    assert latency.mean() == pytest.approx(expected, rel=0.06)
    free = waited = 0.0
    for arrival in arrivals:  # the same arrivals at one server
        free = max(arrival, free)
        waited += free - arrival
        free += one.tRC
    assert latency.mean() == pytest.approx(waited / count + one.latency("conflict"), rel=2e-3)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_one_server_with_exponential_times_is_an_mm1_queue(load: float) -> None:
    count = 60_000
    served = columns([0] * count, 1, at=poisson(load, count, seed=1))
    serve(Server(np.random.default_rng(2).exponential(1.0, count).tolist()), served)
    found = statistics("it", [served], {})
    assert found.latency_mean_s == pytest.approx(1 / (1 - load), rel=0.06)
    assert found.in_flight_mean == pytest.approx(load / (1 - load), rel=0.06)  # Little's law
    assert found.latency_p95_s == pytest.approx(-math.log(0.05) / (1 - load), rel=0.08)


# ---- the DRAM simulation ----


@st.composite
def streams(draw: st.DrawFn) -> RequestColumns:
    count = draw(st.integers(1, 60))
    at = sorted(draw(st.lists(st.floats(0, 1e-6), min_size=count, max_size=count)))
    where = draw(st.lists(st.integers(0, 1 << 22), min_size=count, max_size=count))
    write = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return columns(where, draw(st.sampled_from([1, 64, 200])), at=at, write=write, depth=draw(st.sampled_from([None, 1, 4])))


def again(served: RequestColumns) -> RequestColumns:
    return replace(served)


TWO = Dram(
    rate=3.2e9, width=64, access=64, banks=16, tRCD=13.75e-9, tCL=13.75e-9, tRP=13.75e-9, tRAS=32.5e-9, tRC=46.25e-9, tRTP=7.5e-9,
    tRRD_S=2.5e-9, tRRD_L=5e-9, tFAW=21.25e-9, tCCD_S=2.5e-9, tCCD_L=5e-9, tRFC=100e-9, tREFI=400e-9, channels=2, bank_groups=4,
    turnaround=22e-9, write_batch=4, queue=8,
)  # fmt: skip


@given(streams(), st.lists(st.floats(1e-10, 1e-6), max_size=20))
@settings(max_examples=60)
def test_steps_of_any_length_end_the_same(served: RequestColumns, steps: list[float]) -> None:
    whole, stepped = again(served), again(served)
    serve(DramSimulation(TWO), whole)
    simulation, now = DramSimulation(TWO), 0.0
    simulation.offer(stepped)
    for step in steps:
        now += step
        simulation.advance(now)
    simulation.advance(math.inf)
    assert stepped.finish == whole.finish


@given(streams())
@settings(max_examples=60)
def test_every_request_ends_no_earlier_than_it_can(served: RequestColumns) -> None:
    simulation = DramSimulation(TWO)
    serve(simulation, served)
    assert served.left == 0
    assert simulation.due() == math.inf
    for arrival, issued, finish in zip(served.at, served.issued, served.finish, strict=True):
        assert arrival <= issued
        assert finish - issued >= TWO.latency("hit") * (1 - 1e-9)
    if served.depth is not None:
        ends = sorted([*[(time, 1) for time in served.issued], *[(time, 0) for time in served.finish]])
        flying = most = 0
        for _, begins in ends:
            flying += 1 if begins else -1
            most = max(most, flying)
        assert most <= served.depth


@given(streams(), streams())
@settings(max_examples=40)
def test_who_comes_later_changes_nothing_before(first: RequestColumns, second: RequestColumns) -> None:
    late = 5e-7
    second.at = [arrival + late for arrival in second.at]
    alone, beside = again(first), again(first)
    serve(DramSimulation(TWO), alone)
    simulation = DramSimulation(TWO)
    simulation.offer(beside)
    simulation.offer(second)
    simulation.advance(math.inf)
    for one, other in zip(alone.finish, beside.finish, strict=True):
        assert one == other or one >= late


def test_a_chain_takes_one_latency_each() -> None:
    served = columns(addresses(D2L, 500, seed=1), 64, depth=1)
    serve(DramSimulation(D2L), served)
    assert served.end == pytest.approx(500 * D2L.latency(), rel=0.3)  # some banks are closed, none is open at the right row
    assert served.end <= 500 * D2L.latency()


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("banks", [1, 2, 4])
def test_the_simulation_and_the_closed_form_agree_on_banks(banks: int, regular: bool) -> None:
    served = columns(addresses(D2L, 4000, banks=banks, regular=regular), 64)
    serve(DramSimulation(D2L), served)
    assert 4000 / served.end == pytest.approx(D2L.random_rate(banks, regular=regular), rel=0.06)


@given(st.integers(0, 7), st.integers(0, 31), st.integers(0, 5000), st.integers(0, 15))
def test_an_address_is_the_place_it_was_made_for(channel: int, bank: int, row: int, column: int) -> None:
    dram = replace(TWO, channels=8, pseudo_channels=2, row=1024.0)
    line = address(dram, channel, bank, row, column) // 64
    assert tuple(int(place[0]) for place in map_lines(dram, np.array([line]))) == (channel, bank, row)


def test_a_stream_of_a_real_channel_is_read_as_fast_as_the_closed_form_says() -> None:
    dram = SIMULATIONS["memory"](
        api.load_machine("hwsim: machine/1\nclass: ideal\nparts: {m: {kind: memory, use: ddr4-3200}}\n").device("m").model, "m"
    )
    served = columns([line * 64 for line in range(30_000)], 64)
    serve(dram.simulation, served)
    assert 30_000 * 64 / served.end == pytest.approx(24.3e9, rel=0.01)
    assert dram.simulation.counters["row_hits"] > 29_500
    assert dram.simulation.counters["refreshes"] >= 9


def test_writes_come_in_batches() -> None:
    served = columns(addresses(TWO, 2000, row_hit=1.0), 64, write=[i % 4 < 2 for i in range(2000)])
    simulation = DramSimulation(TWO)
    serve(simulation, served)
    assert 2000 / 2 / 4 / 3 < simulation.counters["turnarounds"] < 2000 / 4


def test_a_large_request_ends_with_its_last_access() -> None:
    served = columns([0], 6400)
    serve(DramSimulation(D2L), served)
    assert served.finish[0] == pytest.approx(D2L.latency("closed") + 99 * D2L.tBL)


# ---- in the engine ----


class Fixed(Server):
    def __init__(self, each: float) -> None:
        super().__init__([each] * 10_000)


def op_graph(*ops: tuple[str, int, float], beside: float = 0.0, one_queue: bool = False) -> Any:
    """(name, requests, own time): ops on device `d` whose requests are served, each on a queue of its own."""
    builder = GraphBuilder([Capacity.of("d", "media"), Capacity("link", 1e9, "B")])
    queue = builder.queue("all", "d") if one_queue else -1
    for name, count, time in ops:
        amounts = (("d.media", float(count)), *((("link", beside),) if beside else ()))
        cost = Cost(Demand(amounts=amounts), moved=(("d.media", count, "1"),), requests=Requests(device="d", count=count, size=1))
        builder.op(name, device="d", cost=cost, time=time, queue=queue if one_queue else builder.queue(name, "d"))
    return builder.build()


def played(graph: Any, each: float = 1.0) -> Any:
    players = RequestSimulations(graph, {"d": RequestDevice(Fixed(each), 1e6, requests_of)})
    timeline = simulate(players.graph, server=players.server)
    return timeline, players.statistics(timeline)


def ends(timeline: Any) -> list[float]:
    return [end / 1e15 for end in timeline.end.tolist()]


def test_an_op_ends_when_its_requests_have_been_served() -> None:
    timeline, [found] = played(op_graph(("a", 10, 0.0)))
    assert ends(timeline) == [10.0]
    assert (found.count, found.simulated_s, found.closed_form_s) == (10, 10.0, 10.0)
    assert found.closed_form_error == pytest.approx(0)


def test_ops_that_overlap_share_the_queue() -> None:
    timeline, _ = played(op_graph(("a", 10, 0.0), ("b", 10, 5.0)))
    assert ends(timeline) == [10.0, 20.0]
    timeline, _ = played(op_graph(("a", 10, 0.0), ("b", 10, 0.0), ("c", 1, 30.0)))
    assert sorted(ends(timeline)) == [10.0, 20.0, 31.0]


def test_ops_of_one_queue_follow_each_other() -> None:
    timeline, [found] = played(op_graph(("a", 3, 0.0), ("b", 4, 0.0), ("c", 5, 0.0), one_queue=True))
    assert ends(timeline) == [3.0, 7.0, 12.0]
    assert found.count == 12


def test_what_the_op_asks_of_others_still_takes_its_time() -> None:
    timeline, _ = played(op_graph(("a", 2, 0.0), ("b", 2, 0.0), beside=10e9))
    assert ends(timeline) == [20.0, 20.0]  # two flows share the link
    timeline, _ = played(op_graph(("a", 20, 0.0), ("b", 20, 0.0), beside=10e9))
    assert ends(timeline) == [20.0, 40.0]


def test_ops_whose_requests_are_played_use_their_device_all_the_while() -> None:
    from hwsim.results.critical import limited_by
    from hwsim.results.usage import usage

    timeline, _ = played(op_graph(("a", 10, 0.0)), each=2.0)
    [media, _] = usage(timeline)
    assert (media.busy_s, media.moved, media.utilization) == (20.0, 10.0, 1.0)
    assert str(limited_by(timeline)[0].cause) == "requests on d"


@given(st.lists(st.tuples(st.integers(1, 8), st.floats(0, 20)), min_size=1, max_size=6))
@settings(max_examples=50)
def test_the_order_of_equal_things_is_no_matter_and_a_server_is_never_idle(ops: list[tuple[int, float]]) -> None:
    timeline, _ = played(op_graph(*[(f"op{i}", count, time) for i, (count, time) in enumerate(ops)]))
    free = 0.0
    for count, time in sorted(ops, key=lambda op: op[1]):
        free = max(free, round(time * 1e15) / 1e15) + count
    assert max(ends(timeline)) == pytest.approx(free)


def test_nobody_serves_is_a_mistake_of_the_caller() -> None:
    players = RequestSimulations(op_graph(("a", 1, 0.0)), {"d": RequestDevice(Fixed(1.0), 1e6, requests_of)})
    with pytest.raises(ValueError, match="need a server"):
        simulate(players.graph)


# ---- from files and the command line ----

MACHINE = (
    "hwsim: machine/1\nclass: ideal\n"
    "parts: {mem: {kind: memory, use: ddr4-3200, channels: 2}, cpu: {kind: cpu, use: d2l-laptop-cpu}}\n"
)
ACCESS = {"device": "mem", "count": 4000, "bytes": "64 B", "pattern": "random"}


def workload(**keys: Any) -> dict[str, Any]:
    return {"hwsim": "workload/1", "program": [{"access": {**ACCESS, **keys}}]}


def test_a_part_is_played_when_asked_or_when_it_says_so() -> None:
    formula = api.simulate(MACHINE, workload())
    asked = api.simulate(MACHINE, workload(), requests="mem")
    says = api.simulate(MACHINE.replace("channels: 2", "channels: 2, fidelity: requests"), workload())
    assert formula.requests == ()
    assert asked.makespan_s == says.makespan_s
    assert asked.requests[0].count == 4000
    assert abs(asked.requests[0].closed_form_error or 1) < 0.05
    assert asked.makespan_s == pytest.approx(formula.makespan_s, rel=0.05)


@pytest.mark.parametrize(
    ("requests", "keys", "message"),
    [
        ("mem", {"count": 2e6}, "exceed the limit of 1,000,000"),
        ("mem", {"count": 1000, "bytes": "1 GB", "pattern": "sequential"}, "exceed the limit"),
        ("cpu", {}, "cpu has no DRAM timings"),
        ("disk", {}, "there is no part 'disk'"),
    ],
)
def test_what_cannot_be_played_is_said_with_what_to_do(requests: str, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        api.simulate(MACHINE, workload(**keys), requests=requests)
    assert caught.value.mistakes[0].hint or requests == "disk"


def test_an_op_without_requests_cannot_be_played() -> None:
    quiet = {"hwsim": "workload/1", "program": [{"copy": {"from": "mem", "to": "mem", "bytes": "1 MB"}}]}
    with pytest.raises(SpecError, match="no op issues single requests to mem"):
        api.simulate(MACHINE, quiet, requests="mem")


def test_the_command_line_tells_and_draws(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(MACHINE)
    (tmp_path / "w.yaml").write_text(f"hwsim: workload/1\nprogram: [{{access: {json.dumps(ACCESS)}}}]\n")
    figure = tmp_path / "latency.png"
    files = ["simulate", str(tmp_path / "m.yaml"), str(tmp_path / "w.yaml")]
    told = hwsim(*files, "--requests", "mem", "--plot", "latency", figure)
    assert "4,000 requests" in told.output
    assert "in closed form" in told.output
    assert figure.read_bytes().startswith(b"\x89PNG")
    as_json = json.loads(hwsim(*files, "--requests", "mem", "--json").output)
    assert as_json["requests"][0]["counters"]["accesses"] == 4000
    refused = hwsim(*files, "--plot", "latency", figure, code=2)
    assert "name one with --requests" in refused.output


def test_latency_grows_with_load() -> None:
    run = api.simulate(MACHINE, workload(), requests="mem", latency=True)
    points = run.curves[0].points
    assert points[0].mean_s < points[-1].mean_s / 2
    assert all(point.p50_s <= point.p95_s <= point.p99_s for point in points)
    assert len(run.curves[0].columns()["closed form"]) == len(points)
