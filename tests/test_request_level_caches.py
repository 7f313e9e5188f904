"""Caches access by access: against stack distances, and where the outcome is known exactly."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.devices.cache import CacheLevel, Caches, Tlb
from hwsim.devices.cores import Coherence
from hwsim.families.requests.caches import CacheSimulation
from hwsim.families.requests.requests import RequestColumns, columns, poisson, serve

L1 = CacheLevel(size=32 * 1024.0, latency=1e-9, ways=8)
L2 = CacheLevel(size=256 * 1024.0, latency=4e-9, ways=4)
L3 = CacheLevel(size=8.0 * 2**20, latency=12e-9, ways=16, shared_by=4)
THREE = Caches(levels={"L1": L1, "L2": L2, "L3": L3})
LINES = st.lists(st.integers(0, 40), min_size=1, max_size=300)


def hits_of_stack_distances(lines: Sequence[int], ways: int, sets: int = 1) -> int:
    """A hit is a line that fewer than `ways` other lines of its set were asked for since (Mattson et al.)."""
    found = 0
    for index, line in enumerate(lines):
        before = [other for other in range(index) if lines[other] == line]
        if before:
            between = {other for other in lines[before[-1] + 1 : index] if other % sets == line % sets}
            found += len(between) < ways
    return found


def play(
    simulation: CacheSimulation,
    addresses: Sequence[int],
    *,
    write: bool = False,
    core: Sequence[int] | int = 0,
    depth: int = 1,
    size: int = 8,
) -> RequestColumns:
    return serve(simulation, columns(addresses, size, write=write, core=core, depth=depth))


@settings(max_examples=60, deadline=None)
@given(LINES, st.integers(1, 16))
def test_hits_of_a_fully_associative_cache_are_those_of_stack_distances(lines: list[int], ways: int) -> None:
    simulation = CacheSimulation(Caches(levels={"L1": CacheLevel(size=64.0 * ways, latency=1e-9)}), prefetch="none")
    play(simulation, [line * 64 for line in lines])
    assert simulation.counters["L1_hits"] == hits_of_stack_distances(lines, ways)


@settings(max_examples=60, deadline=None)
@given(LINES, st.integers(1, 4), st.sampled_from([1, 2, 4, 8]))
def test_hits_of_a_set_associative_cache_are_those_of_stack_distances_in_its_sets(lines: list[int], ways: int, sets: int) -> None:
    simulation = CacheSimulation(
        Caches(levels={"L1": CacheLevel(size=64.0 * ways * sets, latency=1e-9, ways=ways)}), prefetch="none"
    )
    play(simulation, [line * 64 for line in lines])
    assert simulation.counters["L1_hits"] == hits_of_stack_distances(lines, ways, sets)


def test_a_working_set_shows_its_level_in_the_time_of_an_access() -> None:
    for size, expected in ((16, 1e-9), (128, 4e-9), (4096, 12e-9)):
        order = list(range(size * 1024 // 64))
        random.Random(1).shuffle(order)
        simulation = CacheSimulation(THREE, memory=80e-9, prefetch="none")
        play(simulation, [line * 64 for line in order])
        again = serve(simulation, columns([line * 64 for line in order], 8, depth=1, at=1.0))
        assert (again.end - 1.0) / len(order) == pytest.approx(expected, rel=0.05)


def test_misaligned_accesses_touch_two_lines() -> None:
    whole, split = CacheSimulation(THREE), CacheSimulation(THREE)
    play(whole, [index * 64 for index in range(100)], size=64)
    play(split, [line * 64 + 32 for line in range(100)], size=64)
    assert whole.counters["lines"] == 100
    assert split.counters["lines"] == 200


def test_a_prefetcher_hides_most_of_the_memory_from_a_stream_and_nothing_from_a_chain() -> None:
    stream = [index * 8 for index in range(20_000)]
    order = list(range(20_000))
    random.Random(2).shuffle(order)
    chain = [page * 4096 for page in order]
    without, ahead = CacheSimulation(THREE, prefetch="none"), CacheSimulation(THREE, prefetch="stream")
    assert play(ahead, stream).end < 0.3 * play(without, stream).end
    assert play(CacheSimulation(THREE), chain).end == pytest.approx(
        play(CacheSimulation(THREE, prefetch="none"), chain).end, rel=0.01
    )


def test_backwards_is_as_fast_as_forwards() -> None:
    forward = play(CacheSimulation(THREE), [index * 8 for index in range(20_000)])
    backward = play(CacheSimulation(THREE), [word * 8 for word in reversed(range(20_000))])
    assert backward.end == pytest.approx(forward.end, rel=0.05)


def counting(cores: int, apart: int, times: int = 2000) -> tuple[float, CacheSimulation]:
    """Each core writes its own counter `times` times; counters lie `apart` bytes from each other."""
    simulation = CacheSimulation(THREE, cores=4, coherence=Coherence(cluster=20e-9))
    owners = [index % cores for index in range(times * cores)]
    return play(simulation, [core * apart for core in owners], write=True, core=owners, depth=cores).end, simulation


def test_false_sharing_is_slower_than_one_core_alone_and_padding_mends_it() -> None:
    alone, _ = counting(1, 8)
    for cores in (2, 4):
        shared, simulation = counting(cores, 8)
        apart, _ = counting(cores, 64)
        assert shared == pytest.approx(cores * 2000 * 20e-9, rel=0.02)  # the line goes from core to core, one after another
        assert simulation.counters["transfers"] == pytest.approx(cores * 2000, rel=0.01)
        assert apart < 1.1 * alone < shared


def test_a_line_that_is_only_read_is_never_moved_between_cores() -> None:
    simulation = CacheSimulation(THREE, cores=4)
    play(simulation, [0] * 4000, core=[index % 4 for index in range(4000)], depth=4)
    assert simulation.counters["transfers"] == 0
    assert simulation.counters["memory_reads"] <= 4


def test_a_core_sees_what_another_wrote_by_fetching_it_from_there() -> None:
    simulation = CacheSimulation(THREE, cores=2, coherence=Coherence(cluster=50e-9))
    play(simulation, [0], write=True, core=0)
    read = serve(simulation, columns([0], 8, core=1, at=1e-3))
    assert read.finish[0] - 1e-3 == pytest.approx(50e-9)
    again = serve(simulation, columns([0], 8, core=1, at=2e-3))
    assert again.finish[0] - 2e-3 == pytest.approx(1e-9)


def test_lines_written_leave_for_the_memory_once() -> None:
    simulation = CacheSimulation(Caches(levels={"L1": CacheLevel(size=64.0 * 8, latency=1e-9)}), prefetch="none")
    play(simulation, [index * 64 for index in range(100)], write=True)
    assert simulation.counters["write_backs"] == 100 - 8


def test_a_victim_level_adds_its_size() -> None:
    small = CacheLevel(size=64.0 * 8, latency=1e-9)
    behind = Caches(levels={"L1": small, "L2": CacheLevel(size=64.0 * 8, latency=4e-9, victim=True)})
    copying = Caches(levels={"L1": small, "L2": CacheLevel(size=64.0 * 8, latency=4e-9)})
    circle = [line * 64 for line in range(12)] * 10
    simulations = [CacheSimulation(caches, prefetch="none") for caches in (behind, copying)]
    for simulation in simulations:
        play(simulation, circle)
    assert simulations[0].counters["memory_reads"] == 12
    assert simulations[1].counters["memory_reads"] == 120


def test_pages_beyond_the_tlb_cost_a_miss() -> None:
    caches = Caches(levels={"L1": L1}, tlbs={"first": Tlb(entries=16, miss=7e-9)})
    within, beyond = (CacheSimulation(caches, prefetch="none") for _ in range(2))
    play(within, [page * 4096 for page in range(16)] * 10)
    play(beyond, [page * 4096 for page in range(17)] * 10)
    assert within.counters["tlb_misses"] == 16
    assert beyond.counters["tlb_misses"] == 170


def test_random_arrivals_at_the_memory_are_the_queue_with_constant_service() -> None:
    """M/D/1: mean wait = rho / (2 (1 - rho)) x service (Pollaczek and Khinchine)."""
    service, count = 64 / 10e9, 20_000
    for load in (0.4, 0.8):
        simulation = CacheSimulation(Caches(levels={"L1": L1}), memory=80e-9, bandwidth=10e9, prefetch="none")
        asked = columns([index * 4096 for index in range(count)], 8, at=poisson(load / service, count, seed=4))
        served = serve(simulation, asked)
        mean = sum(end - start for start, end in zip(served.issued, served.finish, strict=True)) / count
        assert mean - 80e-9 == pytest.approx(service * load / (2 * (1 - load)), rel=0.08)


def test_more_misses_under_way_never_take_longer() -> None:
    chain = [index * 4096 for index in range(5000)]
    found = [play(CacheSimulation(THREE, bandwidth=20e9), chain, depth=depth).end for depth in (1, 2, 4, 10, 40)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(5000 * 80e-9, rel=0.01)
    assert found[-1] >= 5000 * 64 / 20e9


@settings(max_examples=25, deadline=None)
@given(LINES, st.integers(1, 4), st.integers(1, 8), st.randoms(use_true_random=False))
def test_every_access_is_served_whatever_the_cores_do(lines: list[int], cores: int, depth: int, dice: random.Random) -> None:
    simulation = CacheSimulation(THREE, cores=4, coherence=Coherence(cluster=20e-9))
    served = columns(
        [line * 16 for line in lines],
        8,
        core=[dice.randrange(cores) for _ in lines],
        write=[dice.random() < 0.4 for _ in lines],
        depth=depth,
    )
    serve(simulation, served)
    assert served.left == 0
    assert all(0 < end < math.inf for end in served.finish)
    assert simulation.counters["accesses"] == len(lines)


def test_the_same_accesses_have_the_same_outcome_however_time_is_cut() -> None:
    dice = random.Random(9)
    addresses, owners = [dice.randrange(1 << 16) for _ in range(2000)], [dice.randrange(4) for _ in range(2000)]
    writes = [dice.random() < 0.3 for _ in range(2000)]
    whole, pieces = (columns(addresses, 8, core=owners, write=writes, depth=8) for _ in range(2))
    serve(CacheSimulation(THREE, cores=4), whole)
    simulation = CacheSimulation(THREE, cores=4)
    simulation.offer(pieces)
    now = 0.0
    while simulation.due() < math.inf:
        simulation.advance(now)
        now += 33e-9
    assert pieces.finish == pytest.approx(whole.finish)
