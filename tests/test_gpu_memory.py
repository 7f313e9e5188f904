"""The memory of a GPU: laws of any, closed forms of some."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.demand import Cost, soft_max
from hwsim.devices import Accesses, Gpu, Work
from hwsim.devices.gpu_access import latency
from hwsim.devices.gpu_memory import (
    Hierarchy,
    Launch,
    Level1,
    Level2,
    Occupancy,
    Ramp,
    SharedReads,
    SustainedBandwidth,
    ThreadStream,
)
from hwsim.devices.roofline import LocalMemory
from hwsim.devices.work import Start
from hwsim.spec import Mistakes, decode, read_text
from hwsim.units import parse

RATES = {"gpu0.compute": 1.0, "gpu0.memory": 1.0}
MEMORY = 1e12

amounts = st.one_of(st.just(0.0), st.floats(1.0, 1e15))
more = st.floats(1.0, 100.0)
sets = st.one_of(st.none(), st.floats(1.0, 1e12))
seconds = st.floats(1e-9, 1e-5)
parts_of_peak = st.floats(0.5, 1.0)  # a copy cannot beat its reads or writes alone: 2 x the least is at least 1
shares = st.builds(SustainedBandwidth, read=parts_of_peak, copy=parts_of_peak, write=parts_of_peak)


@st.composite
def ramps(draw: st.DrawFn) -> Ramp:
    full = draw(st.floats(0.1, 2.0))
    return Ramp(full, full * draw(st.floats(1.1, 5.0)))


@st.composite
def gpus(draw: st.DrawFn) -> Gpu:
    """GPUs whose levels are each at least as fast as the next."""
    second = MEMORY * draw(st.floats(2.0, 10.0))
    far = second * draw(st.floats(0.1, 1.0))
    waits = sorted(draw(st.lists(seconds, min_size=4, max_size=4)))
    sms = draw(st.integers(1, 200))
    together = draw(st.one_of(st.none(), st.builds(SharedReads, near=st.just(second), far=st.just(far), ramp=ramps())))
    gpu = Gpu(
        flop={"fp32": 1e13},
        memory=LocalMemory(MEMORY),
        sms=sms,
        sustained=draw(shares),
        l1=Level1(
            size=draw(st.floats(1e3, 1e6)), bandwidth=20 * second / sms, latency=waits[0], ramp=draw(ramps()), chase=draw(ramps())
        ),
        l2=Level2(
            size=draw(st.floats(1e6, 1e8)),
            bandwidth=second,
            sustained=draw(shares),
            ramp=draw(ramps()),
            together=together,
            latency=waits[1],
            far=waits[2],
            miss=waits[3],
            near=draw(st.one_of(st.none(), st.floats(1e5, 1e8))),
            chase=draw(ramps()),
            near_chase=draw(ramps()),
        ),
        occupancy=draw(
            st.one_of(
                st.none(),
                st.builds(
                    Occupancy,
                    read=st.floats(waits[3], waits[3] * 3),
                    write=seconds,
                    start=seconds,
                    sharpness=st.one_of(st.just(math.inf), st.floats(1.0, 8.0)),
                    blocks=st.one_of(st.none(), st.floats(1e6, 1e10)),
                ),
            )
        ),
    )
    assert list(gpu.problems()) == []
    return gpu


@st.composite
def streams(draw: st.DrawFn) -> ThreadStream:
    return ThreadStream(
        reads=draw(amounts),
        writes=draw(amounts),
        each=draw(st.sampled_from([1.0, 4.0, 8.0, 16.0])),
        working_set=draw(sets),
        together=draw(st.booleans()),
        threads=draw(st.one_of(st.none(), st.floats(1.0, 1e6))),
        in_flight=draw(st.floats(1.0, 8.0)),
        begun=draw(amounts),
        blocks=draw(amounts),
    )


def alone(cost: Cost) -> float:
    return cost.demand.alone(RATES)


def moved(gpu: Gpu, asked: ThreadStream) -> float:
    return alone(gpu.stream("gpu0", asked))


@given(gpus(), streams())
def test_times_are_finite_and_the_derivation_adds_up(gpu: Gpu, asked: ThreadStream) -> None:
    cost = gpu.stream("gpu0", asked)
    assert math.isfinite(alone(cost))
    assert alone(cost) >= 0
    assert all(amount > 0 and math.isfinite(amount) for _, amount in cost.demand.amounts)
    assert max((term.seconds for term in cost.why), default=0.0) == pytest.approx(alone(cost), rel=1e-9)


@given(gpus(), streams())
def test_the_numbers_of_a_line_come_to_its_time(gpu: Gpu, asked: ThreadStream) -> None:
    """With the six digits that a line shows."""
    for term in gpu.stream("gpu0", asked).why:
        said = {name: parse(value).value for name, value, _ in term.inputs}
        found = eval(term.formula.replace(" x ", " * "), {"__builtins__": {}, "max": max}, said)
        assert found == pytest.approx(term.seconds, rel=1e-4, abs=1e-15), term
        assert said.get("efficiency", 1.0) <= 1.0


@given(gpus(), streams(), more, st.sampled_from(("reads", "writes", "working_set")))
def test_a_larger_stream_is_never_faster(gpu: Gpu, asked: ThreadStream, times: float, key: str) -> None:
    change: dict[str, Any] = {key: getattr(asked, key) * times} if getattr(asked, key) else {}
    assert moved(gpu, replace(asked, **change)) >= moved(gpu, asked) * (1 - 1e-9)


@given(gpus(), streams(), more)
def test_more_threads_a_larger_cache_and_a_faster_memory_are_never_slower(gpu: Gpu, asked: ThreadStream, times: float) -> None:
    assert gpu.l2 is not None
    took = moved(gpu, asked) * (1 + 1e-9)
    assert moved(replace(gpu, l2=replace(gpu.l2, size=gpu.l2.size * times)), asked) <= took
    assert moved(replace(gpu, memory=LocalMemory(gpu.memory.bandwidth * times)), asked) <= took
    for threads in (None, (asked.threads or 1.0) * times):
        assert asked.threads is None or moved(gpu, replace(asked, threads=threads)) <= took
    assert moved(gpu, replace(asked, in_flight=asked.in_flight * times)) <= took


@given(shares, amounts, amounts, st.floats(1.0, 1.5))
def test_a_memory_that_sustains_more_is_never_slower(part: SustainedBandwidth, reads: float, writes: float, times: float) -> None:
    some = part.bytes_at_peak(reads, writes)
    for better in (
        replace(part, read=min(1.0, part.read * times)),
        replace(part, copy=min(1.0, part.copy * times)),
        replace(part, write=min(1.0, part.write * times)),
    ):
        assert better.bytes_at_peak(reads, writes) <= some * (1 + 1e-12)
    assert some >= (reads + writes) * (1 - 1e-12)


@given(gpus(), st.floats(1.0, 1e12), more)
def test_a_chase_takes_longer_the_larger_its_set_and_as_long_as_memory_in_the_end(gpu: Gpu, size: float, times: float) -> None:
    parts = gpu.hierarchy
    assert parts.l1 is not None
    assert parts.l2 is not None
    assert parts.l1.latency * (1 - 1e-12) <= latency(parts, size) <= latency(parts, size * times) * (1 + 1e-12)
    assert latency(parts, None) == pytest.approx(parts.l2.miss)
    assert latency(parts, 1e-3) == pytest.approx(parts.l1.latency)


@given(gpus(), st.floats(1, 1e9), st.sampled_from(["sequential", "strided", "random", "dependent"]), sets, st.floats(0, 1))
def test_accesses_more_often_are_never_faster(
    gpu: Gpu, count: float, pattern: str, working_set: float | None, write: float
) -> None:
    asked = Accesses(count=count, size=4, stride=256, pattern=pattern, working_set=working_set, write=write)  # type: ignore[arg-type]
    some = alone(gpu.access("gpu0", asked))
    assert math.isfinite(some)
    assert alone(gpu.access("gpu0", replace(asked, count=2 * count))) >= some
    assert alone(gpu.access("gpu0", replace(asked, chains=4))) <= some


def test_uncoalesced_reads_move_whole_sectors() -> None:
    gpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12))
    for pattern, stride, size in (
        ("sequential", 0, 4),
        ("strided", 8, 8),
        ("strided", 32, 32),
        ("strided", 4096, 32),
        ("random", 0, 32),
    ):
        asked = Accesses(count=1e9, size=4, stride=stride, pattern=pattern)  # type: ignore[arg-type]
        assert alone(gpu.access("gpu0", asked)) == pytest.approx(1e9 * size / 1e12)


def test_threads_follow_littles_law_until_the_memory_is_busy() -> None:
    gpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12), occupancy=Occupancy(read=400e-9))
    few = moved(gpu, ThreadStream(reads=8e9, each=8, threads=1000))
    assert few == pytest.approx(1e9 * 400e-9 / 1000)
    assert moved(gpu, ThreadStream(reads=8e9, each=8, threads=2000)) == pytest.approx(few / 2)
    assert moved(gpu, ThreadStream(reads=8e9, each=8, threads=1000, in_flight=4)) == pytest.approx(few / 4)
    assert moved(gpu, ThreadStream(reads=8e9, each=8, threads=1e6)) == pytest.approx(8e-3)


def test_a_copy_in_the_cache_leaves_the_memory_alone() -> None:
    gpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12), l2=Level2(size=40e6, bandwidth=5e12))
    held, half, gone = (gpu.stream("gpu0", ThreadStream(reads=1e9, working_set=size)) for size in (1e6, 42e6, 1e9))
    assert held.demand.amounts == ()
    assert alone(held) == pytest.approx(1e9 / 5e12)
    assert dict(half.demand.amounts)["gpu0.memory"] == pytest.approx(0.5e-3)
    assert alone(half) == pytest.approx(0.5e-3 + 0.1e-3)
    assert alone(gone) == pytest.approx(1e-3)


def test_what_all_multiprocessors_read_leaves_the_memory_once() -> None:
    cache = Level2(size=40e6, bandwidth=5e12, together=SharedReads(near=4e12, far=2e12))
    gpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12), sms=100, l2=cache)
    cost = gpu.stream("gpu0", ThreadStream(reads=100 * 1e9, working_set=1e9, together=True))
    assert dict(cost.demand.amounts)["gpu0.memory"] == pytest.approx(1e9 / 1e12)
    assert alone(cost) == pytest.approx(100e9 / 2e12 + 1e9 / 1e12)


def test_a_random_table_lookup_waits_for_the_threads_there_are() -> None:
    gpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e13), sms=10, occupancy=Occupancy(read=500e-9, threads=1000))
    asked = Accesses(count=1e9, size=4, pattern="random")
    assert alone(gpu.access("gpu0", asked)) == pytest.approx(1e9 * 500e-9 / 10_000)


def test_a_kernel_is_started_by_stream_graph_or_host() -> None:
    gpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12), launch=Launch(stream=3e-6, graph=1e-6, host=10e-6))
    starts: dict[Start, float] = {"stream": 3e-6, "graph": 1e-6, "host": 10e-6}
    for start, seconds_ in starts.items():
        assert alone(gpu.compute("gpu0", Work(start=start))) == pytest.approx(seconds_)
    assert alone(gpu.compute("gpu0", Work(kernels=4))) == pytest.approx(12e-6)
    plain = replace(gpu, launch=3e-6)
    assert alone(plain.compute("gpu0", Work(start="graph"))) == pytest.approx(3e-6)
    assert alone(plain.compute("gpu0", Work())) == pytest.approx(3e-6)


def test_the_launch_of_a_file_is_a_time_or_a_section() -> None:
    written = {
        "2.5 us": 2.5e-6,
        "{value: 2.5 us, source: datasheet}": 2.5e-6,
        "{stream: 2.5 us, graph: 1 us}": Launch(2.5e-6, 1e-6),
    }
    for text, launch in written.items():
        mistakes = Mistakes()
        gpu = decode(
            read_text(f"flop: {{fp32: 1 TFLOP/s}}\nmemory: {{bandwidth: 1 TB/s}}\nlaunch: {text}"), Gpu, mistakes, sourced=True
        )
        mistakes.raise_if_any()
        assert gpu is not None
        assert gpu.launch == launch


def test_rounding_is_between_the_longer_time_and_the_sum() -> None:
    assert soft_max(1.0, 1.0, 1.0) == 2.0
    assert soft_max(1.0, 1.0, 1e9) == pytest.approx(1.0)
    assert soft_max(math.inf, 1.0, 2.0) == math.inf


def test_levels_in_the_wrong_order_are_said() -> None:
    memory = LocalMemory(1e12)
    slow = Gpu(
        flop={"fp32": 1e12},
        memory=memory,
        sms=2,
        l1=Level1(size=1e3, bandwidth=1e9),
        l2=Level2(size=1e6, bandwidth=1e10, latency=2e-7, miss=1e-7),
    )
    assert [key for key, _, _ in slow.problems()] == ["l2.bandwidth", "l2.miss", "l1.bandwidth"]
    copies = replace(slow, l1=None, l2=None, sustained=SustainedBandwidth(read=0.3, copy=0.9))
    assert [key for key, _, _ in copies.problems()] == ["sustained.copy"]


def test_a_chase_without_caches_takes_the_memorys_latency() -> None:
    assert latency(Hierarchy(LocalMemory(1e12, latency=3e-7)), 1e3) == 3e-7


def test_the_kernels_of_a_cuda_graph_start_as_in_one() -> None:
    machine = (
        "hwsim: machine/1\nclass: ideal\nparts:\n  cpu: {kind: cpu, use: d2l-server-cpu}\n"
        "  gpu: {kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 1 TB/s}, launch: {stream: 3 us, graph: 1 us}}\n"
        "links:\n  - {between: [cpu, gpu], kind: pcie, bandwidth: 16 GB/s}\n"
    )
    body = "[{compute: {device: gpu, flop: 1e6 FLOP}}, {compute: {device: gpu, flop: 1e6 FLOP}}]"
    took = {}
    for starts in ("stream", "graph"):
        runtime = f"{{call: 0 s, starts: {starts}}}"
        text = f"hwsim: workload/1\nruntime: {runtime}\nprogram: [{{call: {{do: {body}}}}}, {{wait: all}}]\n"
        took[starts] = api.simulate(machine, text).timeline.makespan
    assert took == pytest.approx({"stream": 2 * 4e-6, "graph": 2 * 2e-6})


def test_a_copy_waits_for_its_first_access_to_memory() -> None:
    gpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12, latency=5e-7))
    latencies = [
        gpu.stream("g", ThreadStream(reads=read, writes=written)).demand.latency for read, written in ((1e6, 1e6), (0, 1), (0, 0))
    ]
    assert latencies == [5e-7, 5e-7, 0.0]
