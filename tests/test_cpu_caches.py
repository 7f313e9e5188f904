"""Caches of a CPU: what they serve, how long an access takes, what strides and misalignment cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.devices import Accesses, Cpu, Sockets, Work
from hwsim.devices.accesses import crossings, lines_touched
from hwsim.devices.cache import CacheLevel, Caches, Tlb, random_share
from hwsim.devices.cores import Core, Instructions, Numa
from hwsim.devices.cpu_access import access_latency
from hwsim.devices.roofline import LocalMemory
from published.parts import part
from tests.present import present

NAME = "cpu"
KIB, MIB = 1024.0, 1024.0**2
LEVELS = {
    "L1": CacheLevel(size=32 * KIB, cycles=4, per_cycle=64),
    "L2": CacheLevel(size=1 * MIB, cycles=14, per_cycle=32),
    "L3": CacheLevel(size=8 * MIB, latency=15e-9, bandwidth=20e9, shared_by=4, together=60e9),
}
CPU = Cpu(
    cores=4,
    clock=2e9,
    memory=LocalMemory(bandwidth=40e9, latency=80e-9),
    core=Core(isa={"avx2": Instructions(2, 256, fma=True)}),
    caches=Caches(levels=LEVELS),
)


def alone(cpu: Cpu | Sockets, cost: Any) -> float:
    return float(cost.demand.alone({capacity.name: capacity.rate for capacity in cpu.capacities(NAME)}))


def work(size: float, **said: Any) -> float:
    return alone(CPU, CPU.compute(NAME, Work(reads=size, **said)))


# ---- streams ----


def test_a_working_set_is_served_by_the_level_that_holds_it() -> None:
    for size, cores, rate in ((16 * KIB, 1, 64 * 2e9), (512 * KIB, 1, 1 / (1 / 128e9 + 1 / 64e9)), (64 * MIB, 1, 40e9)):
        assert 1e12 / work(1e12, working_set=size, cores=cores) == pytest.approx(rate, rel=1e-3) or rate == 40e9
    assert 1e12 / work(1e12, working_set=64 * MIB) <= 40e9


def test_levels_that_transfer_at_the_same_time_take_the_longest_and_others_the_sum() -> None:
    caches = present(CPU.caches)
    both = replace(CPU, caches=replace(caches, overlap=True))
    size = Work(reads=1e12, working_set=512 * KIB, cores=1)
    assert alone(both, both.compute(NAME, size)) == pytest.approx(1e12 / 64e9)
    assert alone(CPU, CPU.compute(NAME, size)) == pytest.approx(1e12 / 128e9 + 1e12 / 64e9)


def test_cores_have_their_own_caches_and_share_the_last() -> None:
    assert work(4e12, working_set=2 * MIB) == pytest.approx(work(1e12, working_set=0.5 * MIB, cores=1))
    rate = 4e12 / work(4e12, working_set=6 * MIB)
    assert rate < 60e9  # the last level serves four cores with three times what it serves one


def test_a_line_that_is_written_is_read_first_unless_it_was_read_anyway() -> None:
    def moved(writes: float, in_place: float) -> float:
        cost = CPU.compute(NAME, Work(reads=writes, writes=writes, in_place=in_place))
        return next(amount for name, amount, _ in cost.moved if name == f"{NAME}.memory")

    assert moved(1e9, 0.0) == pytest.approx(3e9)
    assert moved(1e9, 1e9) == pytest.approx(2e9)


def test_writing_takes_longer_where_the_bus_has_to_turn() -> None:
    cpu = replace(CPU, numa=Numa(efficiency=0.9, write_cost=1.4))
    read, mixed = (alone(cpu, cpu.compute(NAME, load)) for load in (Work(reads=2e9), Work(reads=1e9, writes=1e9, in_place=1e9)))
    assert read == pytest.approx(2e9 / 36e9, rel=1e-3)
    assert mixed / read == pytest.approx(1.2, rel=1e-3)


def test_arithmetic_hides_behind_the_caches_or_the_other_way_round() -> None:
    much = Work(flop=1e15, reads=1e9, working_set=16 * KIB)
    assert alone(CPU, CPU.compute(NAME, much)) == pytest.approx(1e15 / (4 * 2e9 * 32))


# ---- latency ----


@given(st.floats(1, 1e12), st.floats(1, 1e9), st.integers(0, 32))
def test_a_cache_serves_no_more_than_its_part_of_random_accesses(working_set: float, size: float, ways: int) -> None:
    share = random_share(working_set, size, ways)
    assert 0.0 <= share <= 1.0
    assert share <= size / working_set * (1 + 1e-9) or share <= 1.0 < size / working_set
    assert random_share(working_set * 2, size, ways) <= share * (1 + 1e-7)  # a tail of many small terms


def test_a_cache_as_large_as_the_working_set_misses_a_tenth_for_pages_of_random_colour() -> None:
    assert random_share(MIB, MIB) == 1.0
    assert random_share(MIB, MIB, 16) == pytest.approx(1 - math.sqrt(1 / (2 * math.pi * 16)), abs=0.005)


@given(st.floats(1.0, 1e10), st.floats(1.0, 100.0), st.integers(1, 8))
def test_latency_grows_with_the_working_set_and_chains_share_it(size: float, times: float, chains: int) -> None:
    assert access_latency(CPU, size * times) >= access_latency(CPU, size) * (1 - 1e-9)
    one, many = access_latency(CPU, size), access_latency(CPU, size, chains=chains)
    assert one * (1 - 1e-9) <= many <= chains * one * (1 + 1e-9)


def test_an_access_in_order_waits_for_the_one_before_and_others_wait_together() -> None:
    caches = present(CPU.caches)
    in_order = replace(CPU, caches=replace(caches, in_flight=1))
    assert access_latency(in_order, 1e12, chains=2) == pytest.approx(2 * access_latency(in_order, 1e12))
    assert access_latency(CPU, 1e12, chains=2) < 1.01 * access_latency(CPU, 1e12)


def test_two_side_by_side_wait_for_the_slower_of_them() -> None:
    half = access_latency(CPU, 64 * KIB), access_latency(CPU, 64 * KIB, chains=2)  # one in two misses the first level
    first, second = 2e-9, 7e-9
    assert half == pytest.approx((first + 0.5 * (second - first), first + 0.75 * (second - first)))


def test_pages_beyond_the_reach_of_the_tlb_cost_a_walk() -> None:
    caches = present(CPU.caches)
    tlb = Tlb(entries=256, miss=3e-9, walk=2e-9)
    walking = replace(CPU, caches=replace(caches, tlbs={"L1": tlb}))
    more = access_latency(walking, 16 * MIB) - access_latency(CPU, 16 * MIB)
    assert tlb.reach == MIB
    assert more == pytest.approx((1 - 1 / 16) * (3e-9 + 4 * 2e-9))
    assert access_latency(walking, MIB) == access_latency(CPU, MIB)


@pytest.mark.parametrize(("size", "remote", "seconds"), [(64, 0, 46e-9), (64, 1, 70e-9), (256, 0, 75e-9), (256, 1, 120e-9)])
def test_a_broadwell_server_takes_what_the_table_of_latencies_says(size: int, remote: float, seconds: float) -> None:
    cpu = part(Cpu, "xeon-e5-2690v4")
    beyond = access_latency(cpu, size * MIB, remote=remote) - access_latency(cpu, KIB)
    assert beyond == pytest.approx(seconds, rel=0.06)


@pytest.mark.parametrize(("size", "seconds"), [(16 * KIB, 1.5e-9), (128 * KIB, 5e-9), (2 * MIB, 16e-9)])
def test_a_broadwell_core_at_its_nominal_clock_has_the_caches_of_the_table(size: float, seconds: float) -> None:
    cpu = part(Cpu, "xeon-e5-2690v4")
    nominal = replace(cpu, core=None)
    caches = present(nominal.caches)
    level = next(cache for cache in caches.levels.values() if cache.size >= size)
    assert level.time(cpu.clock or 1.0) == pytest.approx(seconds, rel=0.2)


# ---- accesses ----


def access(**said: Any) -> float:
    return alone(CPU, CPU.access(NAME, Accesses(**said)))


def test_beyond_half_a_page_no_prefetcher_helps() -> None:
    near, far = (access(count=1e6, size=8, pattern="strided", stride=stride, cores=1) for stride in (2048, 8192))
    assert near == pytest.approx(1e6 * 64 / 40e9)
    assert far == pytest.approx(1e6 * 80e-9 / 10)


def test_a_strided_array_fills_the_cache_with_lines_of_which_a_part_is_used() -> None:
    every, other = (
        access(count=1e9, size=64, pattern="strided", stride=stride, working_set=48 * KIB, cores=1) for stride in (64, 128)
    )
    assert other == pytest.approx(64e9 / 128e9)  # 24 KiB of lines lie in the first level
    assert every > other
    far = access(count=1e9, size=8, pattern="strided", stride=64, working_set=256 * KIB, cores=1)
    assert far == pytest.approx(8e9 / 128e9 + 64e9 / 64e9)  # the second level gives whole lines


def test_a_chain_of_pointers_takes_count_times_latency_and_independent_ones_overlap() -> None:
    chain = access(count=1e6, pattern="dependent", cores=1)
    assert chain == pytest.approx(1e6 * 80e-9)
    assert access(count=1e6, pattern="random", cores=1) == pytest.approx(chain / 10)
    assert access(count=1e6, pattern="dependent", cores=4) == pytest.approx(chain / 4)


@pytest.mark.parametrize(
    ("size", "step", "offset", "more"),
    [(8, 8, 0, 0), (8, 8, 1, 1 / 8), (32, 32, 16, 1 / 2), (64, 64, 32, 1), (8, 64, 56, 0), (8, 64, 57, 1), (128, 128, 0, 1)],
)
def test_a_misaligned_access_touches_a_second_line_where_it_crosses(size: int, step: int, offset: int, more: float) -> None:
    assert crossings(size, step, offset, 64) == pytest.approx(more)


@given(st.integers(1, 512), st.integers(0, 4096), st.integers(0, 63), st.sampled_from(("sequential", "strided", "random")))
def test_no_access_touches_less_than_its_bytes_or_more_than_every_line_it_lies_in(
    size: int, stride: int, offset: int, pattern: Any
) -> None:
    accesses = Accesses(count=1, size=size, pattern=pattern, stride=stride, offset=offset)
    touched = lines_touched(accesses, 64)
    assert min(size, accesses.step) / 64 <= touched * (1 + 1e-12)
    assert touched <= 1 + math.ceil((size - 1) / 64) + 1e-12


def test_a_memory_with_few_banks_limits_random_accesses() -> None:
    cpu = part(Cpu, "i7-6700k")
    dram = present(cpu.memory.dram)
    assert dram.channels == 2
    cost = cpu.access(NAME, Accesses(count=1e9, pattern="random"))
    assert any(term.label == "random access" for term in cost.why)
    assert alone(cpu, cost) >= 1e9 / dram.random_rate()


def test_remote_memory_takes_longer_and_has_its_own_rate() -> None:
    cpu = replace(CPU, numa=Numa(remote_latency=50e-9, remote_bandwidth=10e9))
    near, far = (alone(cpu, cpu.access(NAME, Accesses(count=1e6, pattern="dependent", remote=part))) for part in (0.0, 1.0))
    assert far / near == pytest.approx(130 / 80)
    assert alone(cpu, cpu.compute(NAME, Work(reads=1e9, remote=0.5))) == pytest.approx(0.5e9 / 10e9, rel=1e-3)


# ---- files ----


@pytest.mark.parametrize(
    ("caches", "key"),
    [
        (Caches(levels={}), "caches.levels"),
        (Caches(levels={"L1": CacheLevel(size=1.0, latency=1.0, cycles=1.0)}), "caches.levels.L1"),
        (Caches(levels={"L1": CacheLevel(size=2.0), "L2": CacheLevel(size=1.0)}), "caches.levels.L2"),
        (Caches(levels={"L1": CacheLevel(size=2.0, full=1.0, none=0.5)}), "caches.levels.L1.none"),
    ],
)
def test_caches_that_cannot_be_are_named(caches: Caches, key: str) -> None:
    assert [found for found, _, _ in caches.problems()] == [key]
