"""CPUs: cores, instructions, NUMA domains and lines that cores share; then what we know of some."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hwsim.demand import Cost
from hwsim.devices import Accesses, CannotCompute, Cpu, Sockets, Work
from hwsim.devices.cache import CacheLevel, Caches, Tlb
from hwsim.devices.cores import BoostClock, Coherence, Core, Instructions, Numa, fill
from hwsim.devices.roofline import Efficiency, LocalMemory
from hwsim.devices.work import MatmulShape, Mix
from published.parts import part
from tests.test_devices import NAME, alone, check

clocks = st.floats(1e9, 5e9)
speeds = st.floats(1e9, 1e12)
costs = st.floats(0.0, 3.0)
amounts = st.one_of(st.just(0.0), st.floats(1.0, 1e15))
shares = st.floats(0.0, 1.0)


@st.composite
def levels(draw: st.DrawFn) -> dict[str, CacheLevel]:
    size, time = 2.0 ** draw(st.integers(12, 16)), draw(st.floats(1e-10, 2e-9))
    found = {}
    for name in ("L1", "L2", "L3")[: draw(st.integers(1, 3))]:
        found[name] = CacheLevel(
            size=size,
            latency=time,
            bandwidth=draw(speeds),
            together=draw(st.one_of(st.none(), speeds)),
            write_cost=draw(costs),
            shared_by=draw(st.integers(1, 8)),
            ways=draw(st.sampled_from((0, 4, 16))),
        )
        size, time = size * draw(st.sampled_from((8, 16, 64))), time + draw(st.floats(0, 2e-8))
    return found


caches = st.builds(
    Caches,
    levels=levels(),
    tlbs=st.sampled_from(({}, {"L1": Tlb(entries=64, miss=2e-9), "L2": Tlb(entries=1024, walk=3e-9)})),
    overlap=st.booleans(),
    write_allocate=st.booleans(),
    in_flight=st.floats(1.0, 16.0),
)
numas = st.builds(
    Numa,
    domains=st.integers(1, 4),
    efficiency=st.floats(0.3, 1.0),
    knee=st.one_of(st.none(), st.floats(1.0, 10.0)),
    write_cost=costs,
    core_write_cost=costs,
    remote_latency=st.floats(1e-8, 3e-7),
    remote_bandwidth=st.one_of(st.none(), speeds),
)
coherences = st.builds(
    Coherence,
    cluster=st.floats(1e-9, 1e-7),
    cluster_cores=st.one_of(st.none(), st.integers(1, 8)),
    across=st.one_of(st.none(), st.floats(1e-9, 3e-7)),
    sockets=st.one_of(st.none(), st.floats(1e-9, 5e-7)),
)


@st.composite
def cpus(draw: st.DrawFn) -> Cpu:
    cores, clock = draw(st.integers(4, 64)), draw(clocks)
    isa = {
        "scalar": Instructions(pipes=2, boost=(BoostClock(1, clock * draw(st.floats(1.0, 2.0))),)),
        "avx2": Instructions(2, 256, fma=True),
    }
    core = Core(isa=isa, ipc=draw(st.floats(0.5, 4)), mispredict=draw(st.floats(1, 30)), threads=2, smt=draw(st.floats(1, 2)))
    return Cpu(
        cores=cores,
        clock=clock,
        core=core,
        memory=LocalMemory(bandwidth=draw(speeds), latency=draw(st.floats(1e-8, 3e-7))),
        core_bandwidth=draw(st.one_of(st.none(), speeds)),
        caches=draw(st.one_of(st.none(), caches)),
        numa=draw(st.one_of(st.just(Numa(remote_latency=1e-7)), numas)),
        coherence=draw(coherences),
    )


works = st.builds(
    Work,
    flop=amounts,
    reads=amounts,
    writes=amounts,
    isa=st.sampled_from(("", "scalar", "avx2")),
    instructions=amounts,
    branches=amounts,
    mispredicted=shares,
    threads=st.integers(1, 2),
    remote=shares,
    working_set=st.one_of(st.none(), st.floats(1.0, 1e10)),
)
patterns: Any = st.sampled_from(("sequential", "strided", "random", "dependent"))
lookups = st.builds(
    Accesses,
    count=amounts,
    size=st.sampled_from((1.0, 8.0, 64.0, 100.0)),
    pattern=patterns,
    stride=st.sampled_from((0.0, 8.0, 64.0, 256.0, 4096.0)),
    offset=st.sampled_from((0.0, 4.0)),
    working_set=st.one_of(st.none(), st.floats(1.0, 1e10)),
    write=shares,
    chains=st.integers(1, 4),
    remote=shares,
)


# ---- laws ----


@given(cpus(), works)
def test_costs_are_finite_and_their_derivation_adds_up(cpu: Cpu, work: Work) -> None:
    assert list(cpu.problems()) == []
    check(cpu.compute(NAME, work), cpu.capacities(NAME))


@given(cpus(), lookups)
def test_costs_of_accesses_are_finite_and_their_derivation_adds_up(cpu: Cpu, accesses: Accesses) -> None:
    cost = cpu.access(NAME, accesses)
    check(cost, cpu.capacities(NAME))
    assert cost.requests is not None
    assert cost.requests.count == accesses.count


@given(cpus(), works, amounts, st.sampled_from(("flop", "reads", "writes", "instructions", "branches")))
def test_more_work_is_never_faster(cpu: Cpu, work: Work, more: float, what: str) -> None:
    larger = replace(work, **{what: getattr(work, what) + more})
    assert alone(cpu, cpu.compute(NAME, larger)) >= alone(cpu, cpu.compute(NAME, work)) * (1 - 1e-12)


@given(cpus(), works, st.floats(1, 100))
def test_a_larger_working_set_is_never_faster(cpu: Cpu, work: Work, times: float) -> None:
    assume(work.working_set is not None)
    larger = replace(work, working_set=(work.working_set or 0.0) * times)
    assert alone(cpu, cpu.compute(NAME, larger)) >= alone(cpu, cpu.compute(NAME, work)) * (1 - 1e-12)


@given(cpus(), works, st.data())
def test_more_cores_are_never_slower(cpu: Cpu, work: Work, data: st.DataObject) -> None:
    few = data.draw(st.integers(1, cpu.cores))
    many = data.draw(st.integers(few, cpu.cores))
    slower, faster = (alone(cpu, cpu.compute(NAME, replace(work, cores=cores))) for cores in (few, many))
    assert faster <= slower * (1 + 1e-9)


@given(cpus(), works, st.floats(1, 10), st.sampled_from(("memory", "caches", "penalty", "domains")))
def test_a_better_cpu_is_never_slower(cpu: Cpu, work: Work, factor: float, what: str) -> None:
    better = improved(cpu, factor, what)
    assert alone(better, better.compute(NAME, work)) <= alone(cpu, cpu.compute(NAME, work)) * (1 + 1e-9)


@given(cpus(), lookups, st.floats(1, 10), st.sampled_from(("memory", "caches", "latency")))
def test_a_better_cpu_never_takes_longer_for_accesses(cpu: Cpu, accesses: Accesses, factor: float, what: str) -> None:
    better = improved(cpu, factor, what)
    assert alone(better, better.access(NAME, accesses)) <= alone(cpu, cpu.access(NAME, accesses)) * (1 + 1e-9)


def improved(cpu: Cpu, factor: float, what: str) -> Cpu:
    """The cpu with one thing so many times better."""
    memory = cpu.memory
    match what:
        case "memory":
            return replace(cpu, memory=replace(memory, bandwidth=memory.bandwidth * factor))
        case "latency":
            return replace(cpu, memory=replace(memory, latency=memory.latency / factor))
        case "penalty":
            return replace(cpu, core=replace(cpu.core or Core(), mispredict=(cpu.core or Core()).mispredict / factor))
        case "domains":
            return replace(cpu, numa=replace(cpu.numa, domains=1)) if cpu.numa else cpu
    if cpu.caches is None:
        return cpu
    last = list(cpu.caches.levels)[-1]
    grown = replace(cpu.caches.levels[last], size=cpu.caches.levels[last].size * factor)
    return replace(cpu, caches=replace(cpu.caches, levels={**cpu.caches.levels, last: grown}))


@given(cpus(), lookups, amounts)
def test_more_accesses_are_never_faster(cpu: Cpu, accesses: Accesses, more: float) -> None:
    larger = replace(accesses, count=accesses.count + more)
    assert alone(cpu, cpu.access(NAME, larger)) >= alone(cpu, cpu.access(NAME, accesses)) * (1 - 1e-12)


@given(cpus(), lookups, st.data())
def test_accesses_by_more_cores_are_never_slower(cpu: Cpu, accesses: Accesses, data: st.DataObject) -> None:
    few = data.draw(st.integers(1, cpu.cores))
    many = data.draw(st.integers(few, cpu.cores))
    slower, faster = (alone(cpu, cpu.access(NAME, replace(accesses, cores=cores))) for cores in (few, many))
    assert faster <= slower * (1 + 1e-9)


@given(cpus(), works, st.integers(2, 4))
def test_sockets_together_take_what_one_takes_for_its_part(cpu: Cpu, work: Work, n: int) -> None:
    if cpu.caches is not None and any(cpu.cores % level.shared_by for level in cpu.caches.levels.values()):
        cpu = replace(cpu, caches=None)
    if cpu.numa is not None:
        cpu, work = (cpu if cpu.cores % cpu.numa.domains == 0 else replace(cpu, numa=None)), replace(work, remote=0.0)
    sockets = Sockets(cpu, tuple(f"cpu{index}" for index in range(n)))
    cost = sockets.compute(NAME, work)
    check(cost, sockets.capacities(NAME))
    names = ("flop", "reads", "writes", "instructions", "branches")
    own = replace(work, **{name: getattr(work, name) / n for name in names}, remote=0.0)
    own = replace(own, working_set=None if work.working_set is None else work.working_set / n)
    assert alone(sockets, cost) == pytest.approx(alone(cpu, cpu.compute(NAME, own)), rel=1e-6)


@given(cpus(), lookups, st.integers(2, 4))
def test_accesses_and_increments_of_sockets_add_up(cpu: Cpu, accesses: Accesses, n: int) -> None:
    sockets = Sockets(cpu, tuple(f"cpu{index}" for index in range(n)))
    check(sockets.access(NAME, accesses), sockets.capacities(NAME))
    check(sockets.increment(NAME, 1e6, None, shared=True), sockets.capacities(NAME))


def test_two_sockets_serve_twice_the_random_accesses() -> None:
    cpu = part(Cpu, "epyc-7763")
    both = Sockets(cpu, ("cpu0", "cpu1"))
    one, two = (
        next(
            term.seconds
            for term in model.access(NAME, Accesses(count=1e9, pattern="random")).why
            if term.label == "random access"
        )
        for model in (cpu, both)
    )
    assert one / two == pytest.approx(2.0)


# ---- domains ----


@given(numas, st.integers(1, 128), speeds, st.one_of(st.none(), speeds), costs, costs, st.data())
def test_bandwidth_grows_with_the_cores_up_to_what_the_domains_have(
    numa: Numa, cores: int, memory: float, core: float | None, read: float, written: float, data: st.DataObject
) -> None:
    few = data.draw(st.integers(1, cores))
    many = data.draw(st.integers(few, cores))
    (slower, _), (faster, domains) = (numa.seconds(n, cores, read, written, memory, core) for n in (few, many))
    assert faster <= slower * (1 + 1e-9)
    assert sum(domains) == many
    assert faster >= (read + numa.write_cost * written) / (memory * numa.efficiency) * (1 - 1e-9) - 1e-300


@given(st.integers(1, 256), st.integers(1, 8), st.data())
def test_every_busy_core_is_in_one_domain(cores: int, domains: int, data: st.DataObject) -> None:
    used = data.draw(st.integers(1, cores))
    filled = fill(used, cores, domains)
    assert sum(filled) == used
    assert len(filled) <= domains
    assert max(filled) <= math.ceil(cores / domains)


def test_a_second_domain_that_is_hardly_used_does_not_add_its_whole_bandwidth() -> None:
    two = Numa(domains=2)
    full, little = (n / two.seconds(n, 20, n, 0.0, 100e9, 20e9)[0] for n in (10, 11))
    assert full == pytest.approx(50e9)
    assert little == pytest.approx(55e9)  # not 50 + 20: the first ten cores still take their time


# ---- cores ----


@pytest.mark.parametrize(
    ("name", "isa", "dtype", "peak"),
    [
        ("i7-6700k", "avx2", "fp32", 4 * 4.0e9 * 32),
        ("i7-6700k", "sse", "fp64", 4 * 4.0e9 * 8),
        ("xeon-6148", "avx512", "fp64", 20 * 2.2e9 * 32),
        ("xeon-6148", "avx2", "fp64", 20 * 2.6e9 * 16),
        ("epyc-7452", "avx2", "fp64", 32 * 2.35e9 * 16),
        ("cortex-a77", "neon", "fp32", 4 * 2.42e9 * 16),
        ("a64fx", "sve", "fp64", 48 * 2.2e9 * 32),
    ],
)
def test_a_peak_is_lanes_times_pipes_times_clock(name: str, isa: str, dtype: str, peak: float) -> None:
    cpu = replace(part(Cpu, name), efficiency=Efficiency())
    assert cpu.peak(dtype, isa=isa)[1] == pytest.approx(peak)
    assert alone(cpu, cpu.compute(NAME, Work(flop=peak, dtype=dtype, isa=isa))) == pytest.approx(1.0)


def test_few_busy_cores_run_faster_each() -> None:
    cpu = replace(part(Cpu, "core-i9-9900k"), efficiency=Efficiency())
    assert cpu.clock_of("avx2", 1) == pytest.approx(5.0e9)
    assert cpu.clock_of("avx2", 8) == pytest.approx(3.6e9)
    assert alone(cpu, cpu.compute(NAME, Work(flop=5e9 * 32, cores=1))) == pytest.approx(1.0)


@pytest.mark.parametrize(("mix", "seconds"), [("matmul", 2.0), ("vector", 1.0)])
def test_only_products_copy_their_blocks(mix: Mix, seconds: float) -> None:
    """18 / 3 x (1 / 18 + 1 / 18 + 1 / 18) of the arithmetic besides."""
    cpu = Cpu(cores=1, memory=LocalMemory(1e12), flop={"fp32": 1e9}, packing=18.0)
    assert alone(cpu, cpu.compute(NAME, Work(flop=1e9, mix=mix, product=MatmulShape(18, 18, 18)))) == pytest.approx(seconds)


def test_a_branch_guessed_wrong_costs_its_cycles() -> None:
    cpu = replace(part(Cpu, "i7-6700k"), core=Core(ipc=2.0, mispredict=16, threads=2, smt=1.25))
    work = Work(instructions=8e9, branches=1e9, mispredicted=0.1, cores=1)
    flop = replace(cpu, flop={"fp32": 1e12})
    assert alone(flop, flop.compute(NAME, work)) == pytest.approx((8e9 / 2 + 1e8 * 16) / 4e9)
    assert alone(flop, flop.compute(NAME, replace(work, threads=2))) == pytest.approx((8e9 / 2.5 + 1e8 * 16) / 4e9)


def test_a_branch_guessed_wrong_takes_about_what_the_table_of_latencies_says() -> None:
    cpu = part(Cpu, "xeon-e5-2690v4")
    assert cpu.core is not None
    assert cpu.core.mispredict / (cpu.clock or 0.0) == pytest.approx(6e-9, rel=0.2)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda cpu: cpu.compute(NAME, Work(flop=1, isa="avx512")), "no avx512 instructions"),
        (lambda cpu: cpu.compute(NAME, Work(instructions=1)), "no rate of instructions per cycle"),
        (lambda cpu: cpu.compute(NAME, Work(branches=1, mispredicted=0.5)), "branch misprediction penalty"),
        (lambda cpu: cpu.access(NAME, Accesses(count=1, cores=9)), "4 cores, not 9"),
        (lambda cpu: cpu.increment(NAME, 1, 2, shared=True), "has no time for an increment"),
    ],
)
def test_what_a_cpu_does_not_say_is_asked_for(ask: Callable[[Cpu], Cost], message: str) -> None:
    with pytest.raises(CannotCompute, match=message) as caught:
        ask(Cpu(cores=4, memory=LocalMemory(40e9), flop={"fp32": 400e9}))
    assert caught.value.hint


# ---- lines that cores share ----


@given(coherences, st.integers(1, 64), st.integers(1, 2), st.integers(1, 2))
def test_pairs_of_every_kind_are_all_pairs(coherence: Coherence, cores: int, sockets: int, threads: int) -> None:
    assume(cores * sockets * threads > 1)
    pairs = coherence.pairs(cores, sockets, threads)
    assert math.fsum(part for part, _ in pairs) == pytest.approx(1.0)
    assert (
        coherence.transfer(cores * sockets, cores * sockets, sockets) <= max(delay for _, delay in pairs) * (1 + 1e-9)
        or cores * sockets == 1
    )


def test_cores_of_two_sockets_hand_a_line_across() -> None:
    cpu = Cpu(cores=2, clock=4e9, memory=LocalMemory(40e9), core=Core(), coherence=Coherence(cluster=50e-9, sockets=200e-9))
    both = Sockets(cpu, ("cpu0", "cpu1"))
    assert alone(both, both.increment(NAME, 1e6, 2, shared=True)) == pytest.approx(2e6 * 50e-9)
    assert alone(both, both.increment(NAME, 1e6, 4, shared=True)) == pytest.approx(4e6 * (4 * 50e-9 + 8 * 200e-9) / 12)


# ---- starvation ----


@pytest.mark.parametrize(("numa", "seconds"), [(None, 1.0), (Numa(domains=2, efficiency=0.8), 1.25), (Numa(efficiency=0.5), 2.0)])
def test_traffic_takes_longer_by_what_the_domains_do_not_sustain(numa: Numa | None, seconds: float) -> None:
    """100 GB over a memory of 100 GB/s, by all cores: alone, and as what others have to share with it."""
    cpu = Cpu(cores=8, memory=LocalMemory(100e9), flop={"fp32": 10e12}, numa=numa)
    cost = cpu.compute(NAME, Work(flop=1.0, reads=100e9))
    assert alone(cpu, cost) == dict(cost.demand.amounts)[f"{NAME}.memory"] == pytest.approx(seconds)
