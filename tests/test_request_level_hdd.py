"""Hard disk request by request: geometry, the three policies, queues whose outcome is known."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.devices.arm import Seek
from hwsim.devices.hdd import Hdd
from hwsim.families.requests.hdd import HddSimulation, Policy, hdd_play
from hwsim.families.requests.load import steady_rate
from hwsim.families.requests.requests import NoRequestSimulation, RequestColumns, columns, poisson, serve

DISK = Hdd(
    rpm=7200,
    seek=Seek(cylinders=100_000, track=1e-3, average=8e-3, full=16e-3),
    outer=250e6,
    inner=125e6,
    size=4e12,
    overhead=0.2e-3,
)
EVEN = replace(DISK, inner=250e6)  # every cylinder holds as much


def at_random(count: int, size: float = 4e12, seed: int = 1) -> list[int]:
    draw = random.Random(seed).random
    return [int(draw() * (size / 4096 - 1)) * 4096 for _ in range(count)]


def latencies(served: RequestColumns) -> list[float]:
    return [end - begin for begin, end in zip(served.issued, served.finish, strict=True)]


def rate(disk: Hdd, policy: Policy, depth: int, count: int = 2000) -> float:
    return steady_rate(serve(HddSimulation(disk, policy=policy), columns(at_random(count), 4096, depth=depth)))


def test_random_reads_one_by_one_take_what_the_closed_form_says() -> None:
    for disk in (DISK, EVEN):
        served = serve(HddSimulation(disk), columns(at_random(5000), 4096, depth=1))
        one = disk.overhead + disk.ways().mean + 4096 / disk.stretch(1.0)
        assert served.end / len(served) == pytest.approx(one, rel=0.01)


def test_reading_on_goes_at_the_rate_of_the_zone() -> None:
    size = 1 << 20
    for start, speed in ((0, DISK.rate(0.0)), (int(2e12), DISK.rate(0.5)), (int(3.9e12), DISK.rate(0.975))):
        served = serve(HddSimulation(DISK), columns([start + index * size for index in range(200)], size, depth=1))
        assert 199 * size / (served.finish[-1] - served.finish[0]) == pytest.approx(speed, rel=0.02)


def test_the_angle_turns_once_for_each_track() -> None:
    simulation = HddSimulation(DISK)
    track = DISK.rate(0.0) * DISK.turn
    cylinder, angle = simulation.place(0.5 * track)
    assert cylinder == pytest.approx(0.0, abs=0.1)
    assert angle == pytest.approx(0.5, abs=1e-6)
    assert simulation.place(DISK.size or 0.0)[0] == pytest.approx(DISK.seek.cylinders)


def test_a_turn_is_the_longest_wait_for_a_sector() -> None:
    served = serve(HddSimulation(replace(DISK, overhead=0.0)), columns(at_random(2000), 512, depth=1))
    longest = DISK.seek.seconds(100_000) + DISK.turn + 512 / 125e6
    assert max(latencies(served)) <= longest


def test_choosing_never_serves_fewer_than_the_order_of_arrival() -> None:
    for depth in (1, 4, 16, 32):
        first = rate(DISK, "fcfs", depth)
        assert rate(DISK, "clook", depth) >= 0.98 * first
        assert rate(DISK, "sptf", depth) >= 0.98 * first


def test_a_deeper_queue_never_serves_fewer_requests_a_second() -> None:
    found = [rate(DISK, "sptf", depth) for depth in (1, 2, 4, 8, 16, 32)]
    assert all(more >= 0.99 * less for less, more in pairwise(found))
    assert found[-1] > 1.5 * found[0]


def test_order_of_arrival_gains_nothing_by_depth() -> None:
    assert rate(DISK, "fcfs", 32) == pytest.approx(rate(DISK, "fcfs", 1), rel=0.02)


def test_the_drive_chooses_from_no_more_than_its_queue() -> None:
    assert rate(replace(DISK, queue=1), "sptf", 32) == pytest.approx(rate(DISK, "fcfs", 32), rel=1e-9)


def test_a_faster_drive_is_never_slower() -> None:
    slow = serve(HddSimulation(DISK, policy="fcfs"), columns(at_random(2000), 4096, depth=1)).end
    for better in (replace(DISK, rpm=10_000), replace(DISK, overhead=0.0), replace(DISK, seek=replace(DISK.seek, average=5e-3))):
        assert serve(HddSimulation(better, policy="fcfs"), columns(at_random(2000), 4096, depth=1)).end <= slow


def test_random_arrivals_in_order_are_the_queue_with_general_service() -> None:
    """M/G/1: mean wait = rate x E[S^2] / (2 (1 - load)) (Pollaczek and Khinchine)."""
    alone = latencies(serve(HddSimulation(EVEN, policy="fcfs"), columns(at_random(20_000), 4096, depth=1)))
    mean, square = sum(alone) / len(alone), sum(latency**2 for latency in alone) / len(alone)
    for load in (0.3, 0.6):
        asked = columns(at_random(20_000), 4096, at=poisson(load / mean, 20_000, seed=2))
        found = latencies(serve(HddSimulation(EVEN, policy="fcfs"), asked))
        expected = mean + load / mean * square / (2 * (1 - load))
        assert sum(found) / len(found) == pytest.approx(expected, rel=0.05)


def test_a_write_cache_answers_at_once_until_it_is_full() -> None:
    cached = replace(DISK, write_cache=True, cache=64 * 4096, interface=600e6)
    served = serve(HddSimulation(cached), columns(at_random(500), 4096, write=True, depth=4))
    found = latencies(served)
    assert max(found[:60]) < 1e-3
    assert max(found[200:]) > 1e-3
    assert served.end < serve(HddSimulation(DISK), columns(at_random(500), 4096, write=True, depth=4)).end


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.sampled_from(["fcfs", "clook", "sptf"]), st.booleans(), st.integers(1, 1 << 22))
def test_every_request_is_served_once_and_none_before_it_is_made(depth: int, policy: Policy, write: bool, size: int) -> None:
    simulation = HddSimulation(DISK, policy=policy)
    served = serve(simulation, columns(at_random(100, 3.9e12), size, write=write, depth=depth))
    assert served.left == 0
    assert simulation.counters["requests"] == 100
    assert all(0 < wait < math.inf for wait in latencies(served))


def test_the_same_requests_have_the_same_outcome_however_time_is_cut() -> None:
    whole = serve(HddSimulation(DISK), columns(at_random(200), 4096, depth=8))
    simulation, pieces = HddSimulation(DISK), columns(at_random(200), 4096, depth=8)
    simulation.offer(pieces)
    now = 0.0
    while simulation.due() < math.inf:
        simulation.advance(now)
        now += 3.1e-3
    assert pieces.finish == whole.finish


def test_a_drive_without_a_size_is_refused() -> None:
    with pytest.raises(NoRequestSimulation, match="no size"):
        hdd_play(replace(DISK, size=None))
