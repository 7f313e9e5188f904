"""Devices: what must hold for every one, then what we know of some."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.demand import Capacity, Cost
from hwsim.devices import CannotCompute, Cpu, Device, Gpu, Memory, Nic, Sockets, Switch, Work
from hwsim.devices.disk import Disk
from hwsim.devices.roofline import WIDER, Efficiency, LocalMemory, source_of
from hwsim.devices.storage import StorageAccesses
from hwsim.devices.work import Mix
from hwsim.origins import GIVEN, IDEAL, Origin

positive = st.floats(1e-3, 1e18)
speeds = st.floats(1e6, 1e16)
amounts = st.one_of(st.just(0.0), st.floats(1.0, 1e18))
ratios = st.floats(0.01, 1.0)
latencies = st.one_of(st.just(0.0), st.floats(1e-9, 1.0))
memories = st.builds(LocalMemory, bandwidth=speeds, latency=latencies)
efficiencies = st.builds(Efficiency, matmul=ratios, vector=ratios)
peaks = st.fixed_dictionaries({"fp32": speeds}, optional={"fp16": speeds, "fp64": speeds})
cpus = st.builds(
    Cpu,
    cores=st.integers(1, 256),
    memory=memories,
    flop=peaks,
    efficiency=efficiencies,
    overhead=latencies,
    random=speeds,
    core_bandwidth=st.one_of(st.none(), speeds),
)
gpus = st.builds(Gpu, flop=peaks, memory=memories, efficiency=efficiencies, launch=latencies, random=speeds)
computing: st.SearchStrategy[Cpu | Gpu] = st.one_of(cpus, gpus)
mixes: st.SearchStrategy[Mix] = st.sampled_from(["matmul", "vector", "reduce", "random"])
NAME = "node0.it"
SSD = {"read_bandwidth": 3e9, "latency": 100e-6, "iops": 500e3, "queue": 64}


def rates(capacities: Sequence[Capacity]) -> dict[str, float]:
    return {capacity.name: capacity.rate for capacity in capacities}


def alone(device: Device | Sockets, cost: Cost) -> float:
    return cost.demand.alone(rates(device.capacities(NAME)))


def compute(
    device: Cpu | Gpu | Sockets, flop: float, traffic: float = 0.0, mix: Mix = "matmul", cores: int | None = None
) -> Cost:
    return device.compute(NAME, Work(flop=flop, reads=traffic, dtype="fp32", mix=mix, cores=cores))


def check(cost: Cost, capacities: Sequence[Capacity]) -> None:
    """What the engine relies on, of any cost."""
    demand, known = cost.demand, rates(capacities)
    assert all(amount > 0 and math.isfinite(amount) and name in known for name, amount in demand.amounts)
    assert [name for name, _ in demand.amounts] == sorted(name for name, _ in demand.amounts)
    assert {name for name, _, _ in cost.moved} <= {name for name, _ in demand.amounts}
    assert math.isfinite(demand.share)
    assert demand.share > 0
    assert math.isfinite(demand.floor)
    assert demand.floor >= 0
    assert demand.latency >= 0
    explained = sum(term.seconds for term in cost.why if term.kind == "latency")
    explained += max((term.seconds for term in cost.why if term.kind != "latency"), default=0.0)
    assert explained == pytest.approx(demand.alone(known), rel=1e-9)


@given(computing, amounts, amounts, mixes)
def test_costs_are_finite_and_their_derivation_adds_up(device: Cpu | Gpu, flop: float, traffic: float, mix: Mix) -> None:
    check(compute(device, flop, traffic, mix), device.capacities(NAME))


@given(computing, amounts, amounts, amounts, amounts, mixes)
def test_more_work_is_never_faster(
    device: Cpu | Gpu, flop: float, traffic: float, more: float, bytes_more: float, mix: Mix
) -> None:
    some = alone(device, compute(device, flop, traffic, mix))
    assert alone(device, compute(device, flop + more, traffic + bytes_more, mix)) >= some * (1 - 1e-12)


@given(cpus, positive)
def test_all_cores_stated_are_all_cores_unstated(cpu: Cpu, flop: float) -> None:
    assert compute(cpu, flop, flop, cores=cpu.cores).demand == compute(cpu, flop, flop).demand


@given(computing, st.floats(0, 1e6))
def test_busy_alone_takes_its_time_exactly(device: Cpu | Gpu, seconds: float) -> None:
    cost = device.busy(NAME, seconds)
    check(cost, device.capacities(NAME))
    assert alone(device, cost) == seconds


@pytest.mark.parametrize(
    ("keys", "asked", "seconds"),
    [
        ({"read_bandwidth": 200e6, "latency": 0.01}, StorageAccesses(size=0, times=100, access="random", depth=32), 1.0),
        (SSD, StorageAccesses(size=4096, times=1e5, access="random"), 1e5 * (100e-6 + 4096 / 3e9)),
        (SSD, StorageAccesses(size=4096, times=1e5, access="random", depth=64), 1e5 / 500e3),
        (SSD, StorageAccesses(size=4096, times=1e5, access="random", depth=64, sync=True), 1e5 * (100e-6 + 4096 / 3e9)),
        (SSD, StorageAccesses(size=6e9, times=2, access="sequential", depth=64), 100e-6 + 4.0),
    ],
)
def test_a_disk_reads_within_latency_queue_bandwidth_and_accesses_a_second(
    keys: dict[str, Any], asked: StorageAccesses, seconds: float
) -> None:
    disk = Disk(**keys)
    assert alone(disk, disk.serve(NAME, "read", asked)) == pytest.approx(seconds)


def test_writes_that_displace_reads_draw_as_many_accesses() -> None:
    disk = Disk(read_bandwidth=3e9, latency=0.0, iops=500e3, write_iops=100e3, queue=64)
    cost = disk.serve(NAME, "write", StorageAccesses(size=4096, times=1000, access="random", depth=64))
    assert dict(cost.demand.amounts)[f"{NAME}.iops"] == pytest.approx(5000)


def test_peak_times_efficiency_is_reached_and_two_products_side_by_side_share_it() -> None:
    gpu = Gpu(flop={"fp16": 100e12}, memory=LocalMemory(1e12), efficiency=Efficiency(matmul=0.6))
    cost = gpu.compute("gpu0", Work(flop=60e12, reads=1e9, dtype="fp16", mix="matmul"))
    assert dict(cost.demand.amounts) == pytest.approx({"gpu0.compute": 1.0, "gpu0.memory": 1e-3})
    assert cost.moved == (("gpu0.compute", 60e12, "FLOP"), ("gpu0.memory", 1e9, "B"))


def test_one_core_of_four_takes_four_times_as_long() -> None:
    cpu = Cpu(cores=4, memory=LocalMemory(40e9), flop={"fp32": 400e9})
    assert alone(cpu, compute(cpu, 400e9)) == pytest.approx(1.0)
    assert alone(cpu, compute(cpu, 400e9, cores=1)) == pytest.approx(4.0)
    assert dict(compute(cpu, 400e9, cores=1).demand.amounts)[f"{NAME}.cores"] == pytest.approx(4.0)


def test_one_core_alone_does_not_reach_the_memory_bandwidth() -> None:
    cpu = Cpu(cores=4, memory=LocalMemory(40e9), flop={"fp32": 400e9}, core_bandwidth=15e9)
    assert alone(cpu, compute(cpu, 0, 40e9, "vector", cores=1)) == pytest.approx(40 / 15)
    assert alone(cpu, compute(cpu, 0, 40e9, "vector")) == pytest.approx(1.0)


def test_clock_times_flop_per_cycle_is_a_peak() -> None:
    cpu = Cpu(cores=4, memory=LocalMemory(40e9), clock=2e9, per_cycle={"fp32": 32})
    assert cpu.peak("fp32")[1] == pytest.approx(256e9)


def test_a_type_without_units_runs_in_the_next_wider_one() -> None:
    gpu = Gpu(flop={"fp32": 10e12, "fp16": 100e12}, memory=LocalMemory(1e12))
    for dtype, seconds in {"fp32": 1.0, "tf32": 1.0, "bf16": 1.0, "fp16": 0.1, "fp8": 0.1, "fp4": 0.1}.items():
        cost = gpu.compute("gpu0", Work(flop=10e12, reads=0, dtype=dtype, mix="matmul"))
        assert cost.demand.alone({"gpu0.compute": 1}) == pytest.approx(seconds)
    _, peak, _ = gpu.compute("gpu0", Work(flop=1, reads=0, dtype="fp8", mix="matmul")).why[0].inputs
    assert "fp8 computed in fp16" in str(peak[2])
    assert all(wider not in WIDER or WIDER[wider] != dtype for dtype, wider in WIDER.items())


def test_the_vector_peak_counts_only_outside_matrix_products() -> None:
    gpu = Gpu(flop={"fp16": 100e12}, vector={"fp16": 10e12}, memory=LocalMemory(1e12))
    seconds = [
        gpu.compute("gpu0", Work(flop=1e12, reads=0, dtype="fp16", mix=mix)).demand.amounts[0][1]
        for mix in ("matmul", "vector", "reduce")
    ]
    assert seconds == pytest.approx([0.01, 0.1, 0.1])


def test_what_a_device_cannot_compute_is_said_with_what_it_can() -> None:
    gpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12))
    with pytest.raises(CannotCompute, match="gpu0 has no peak for int8") as caught:
        gpu.compute("gpu0", Work(flop=1, reads=0, dtype="int8", mix="matmul"))
    assert caught.value.hint is not None
    assert "fp32" in caught.value.hint
    with pytest.raises(CannotCompute, match="4 cores, not 5"):
        compute(Cpu(cores=4, memory=LocalMemory(1e9), flop={"fp32": 1e9}), 1, cores=5)


def test_random_numbers_have_a_rate_by_class_that_says_it_is_no_measurement_of_it() -> None:
    gpu, cpu = Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12)), Cpu(cores=4, memory=LocalMemory(1e12), flop={"fp32": 1e9})
    drawn = gpu.compute("gpu0", Work(flop=1e9, dtype="fp64", mix="random"))
    assert dict(drawn.demand.amounts)["gpu0.compute"] == pytest.approx(1e9 * 100 / 1e12)
    assert any("guess" in str(source) for _, _, source in drawn.why[0].inputs)
    own = dataclasses.replace(gpu, random=1e9).compute("gpu0", Work(flop=1e9, mix="random"))
    assert dict(own.demand.amounts)["gpu0.compute"] == pytest.approx(1.0)
    core = cpu.compute("cpu", Work(flop=32.5e6, mix="random", cores=1))
    assert dict(core.demand.amounts)["cpu.cores"] == pytest.approx(1.0)
    assert any("elsewhere" in str(source) for _, _, source in core.why[0].inputs)


@pytest.mark.parametrize(
    ("device", "keys"),
    [
        (Cpu(cores=1, memory=LocalMemory(1e9)), ["flop"]),
        (Cpu(cores=1, memory=LocalMemory(1e9), flop={"fp32": 1e9}, clock=1e9), ["clock"]),
        (Cpu(cores=1, memory=LocalMemory(1e9), per_cycle={"fp32": 8}), ["per_cycle"]),
        (Cpu(cores=1, memory=LocalMemory(1e9), flop={"fp32": 1e9}, clock=1e9, per_cycle={"fp32": 8}), ["flop.fp32"]),
        (Gpu(flop={"float32": 1e9}, memory=LocalMemory(1e9)), ["flop.float32"]),
        (Gpu(flop={}, memory=LocalMemory(1e9)), ["flop"]),
        (Disk(read_bandwidth=1e9, write_iops=1e3), ["write_iops"]),
        (Memory(bandwidth=1e9), []),
        (Nic(bandwidth=1e9), []),
        (Switch(), []),
    ],
)
def test_keys_without_effect_or_sense_are_named(device: Device, keys: list[str]) -> None:
    assert [key for key, _, _ in device.problems()] == keys


def test_a_source_is_that_of_the_number_or_a_default() -> None:
    sources = {"memory.bandwidth": Origin("datasheet", "X")}
    assert str(source_of(sources, "memory.bandwidth")) == "datasheet, X"
    assert source_of(sources, "efficiency.matmul") == IDEAL
    assert source_of({}, "launch") == GIVEN
