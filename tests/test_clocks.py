"""What goes at a device's speed and draws nothing: floors, starts of kernels, threads of a CPU; and what does not: links."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import hwsim
from hwsim.demand import Capacity, Cost, Demand
from hwsim.engine import simulate
from hwsim.graph.opgraph import Change, Label, OpGraph
from hwsim.machine import Machine
from hwsim.prepare import load_machine
from hwsim.results.timeline import Timeline
from tests.strategies import make_block

MS = 10**12  # fs
LAPTOP = "d2l-laptop"
SERVER = "dgx-h100"
OPS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "all cores": (LAPTOP, "cpu", {"compute": {"device": "cpu", "flop": "100 GFLOP"}}),
    "one core": (LAPTOP, "cpu", {"compute": {"device": "cpu", "flop": "1 GFLOP", "cores": 1}}),
    "bytes of one core": (LAPTOP, "cpu", {"compute": {"device": "cpu", "bytes": "1 GB", "cores": 1}}),
    "random numbers": (LAPTOP, "cpu", {"random": {"device": "cpu", "count": 1000000}}),
    "a known time": (LAPTOP, "cpu", {"busy": {"device": "cpu", "time": "1 ms", "times": 10, "workers": 3}}),
    "accesses": (SERVER, "cpu0", {"access": {"device": "cpu0", "count": 1000, "bytes": "8 B", "pattern": "dependent",
                                             "working_set": "1 GB", "cores": 1}}),
    "increments": (SERVER, "cpu0", {"increment": {"device": "cpu0", "times": 1000, "cores": 4, "line": "shared"}}),
    "two sockets": (SERVER, "cpu*", {"compute": {"device": "cpu", "flop": "1 GFLOP", "cores": 3}}),
    "a small kernel": (SERVER, "gpu0", {"matmul": {"device": "gpu0", "m": 256, "n": 256, "k": 256, "dtype": "fp16"}}),
    "a large kernel": (SERVER, "gpu0", {"matmul": {"device": "gpu0", "m": 8192, "n": 8192, "k": 8192, "dtype": "fp16"}}),
    "a kernel of nothing": (SERVER, "gpu0", {"elementwise": {"device": "gpu0", "count": 10}}),
    "attention": (SERVER, "gpu0", {"attention": {"device": "gpu0", "batch": 8, "cached": 4096, "heads": 32, "head": 128}}),
    "a convolution": (SERVER, "gpu0", {"convolution": {"device": "gpu0", "batch": 8, "channels": [3, 16], "size": [32, 32],
                                                       "kernel": 5, "pass": "backward"}}),
}  # fmt: skip


def run(machine: str | Machine, *ops: dict[str, Any], events: list[dict[str, Any]] | None = None, **keys: Any) -> hwsim.Result:
    workload = {"hwsim": "workload/1", "program": list(ops), **keys}
    return hwsim.simulate(machine, workload | ({"events": events} if events else {}))


def slow(part: str, speed: str, at: str = "0 s") -> list[dict[str, Any]]:
    return [{"at": at, "part": part, "speed": speed}]


@pytest.mark.parametrize("name", OPS)
def test_a_device_at_a_speed_takes_as_long_as_its_inverse_says(name: str) -> None:
    machine, part, op = OPS[name]
    alone = run(machine, op).timeline.makespan_fs
    for speed, factor in (("100 %", 1.0), ("80 %", 1.25), ("25 %", 4.0)):
        assert run(machine, op, events=slow(part, speed)).timeline.makespan_fs == pytest.approx(factor * alone, abs=5)
    assert run(machine, op, events=slow(part, "25 %", "1 h")).timeline.makespan_fs == alone
    middle = run(machine, op, events=slow(part, "50 %", f"{alone / 2e15} s"))
    assert middle.timeline.makespan_fs == pytest.approx(1.5 * alone, abs=5)


def test_what_has_run_keeps_its_speed() -> None:
    """4 ms at full speed, 4 ms at half, 1 ms of nothing, then the 4 ms that are left."""
    events = [{"at": "4 ms", "part": "cpu", "speed": "50 %", "for": "4 ms"}, {"at": "8 ms", "part": "cpu", "down": "1 ms"}]
    busy = run(LAPTOP, {"busy": {"device": "cpu", "time": "10 ms"}}, events=events)
    assert busy.timeline.makespan_fs == 13 * MS


# ---- the engine alone ----


def play(*demands: Demand, changes: tuple[Change, ...]) -> Timeline:
    graph = OpGraph(
        blocks=(make_block(range(len(demands))),),
        labels=(Label("op", "op", "device"),),
        costs=tuple(Cost(demand) for demand in demands),
        capacities=(Capacity("gpu.compute", 1.0), Capacity("other.compute", 1.0), Capacity("link", 1e9, "B")),
    )
    every = [simulate(graph, changes=changes, which=which) for which in ("auto", "simpy")]
    assert every[0].end.tolist() == every[1].end.tolist()
    return every[0]


@pytest.mark.parametrize("speed", [0.8, 0.5])
def test_kernels_and_exchanges_one_after_another_are_slower_by_the_kernels(speed: float) -> None:
    demand = Demand(amounts=(("gpu.compute", 8e-3), ("link", 1e5)), floor=10e-3, clocks=(("gpu.compute", 0.8),))
    ended = play(demand, changes=(Change(0, "gpu.compute", speed),)).makespan_fs
    assert ended == pytest.approx((2 + 8 / speed) * MS, abs=2)


def test_of_several_devices_the_slowest_counts_by_its_own_part() -> None:
    demand = Demand(floor=10e-3, clocks=(("gpu.compute", 0.8), ("other.compute", 0.5)))
    ended = play(demand, changes=(Change(0, "other.compute", 0.5),)).makespan_fs
    assert ended == pytest.approx(12 * MS, abs=2)  # 2 ms + max(8 ms, 5 ms / 0.5)


def test_a_start_goes_at_the_clock_and_the_rest_of_the_latency_does_not() -> None:
    demand = Demand(latency=10e-3, floor=4e-3, clocks=(("gpu.compute", 1.0),), start=0.6)
    timeline = play(demand, changes=(Change(0, "gpu.compute", 0.5), Change(10 * MS, "gpu.compute", 1.0)))
    # 4 ms of latency, 6 ms at half speed, 3 ms more of the start, and the floor
    assert timeline.drawing_since().tolist() == [13 * MS]
    assert timeline.makespan_fs == 17 * MS


def test_a_pure_start_ends_when_it_is_over() -> None:
    demand = Demand(latency=4e-3, clocks=(("gpu.compute", 1.0),), start=1.0)
    assert play(demand, changes=(Change(2 * MS, "gpu.compute", 0.25),)).makespan_fs == 10 * MS


# ---- machines ----

IDEAL = """hwsim: machine/1
class: ideal
name: a host, a GPU, a slot
parts:
  cpu: {{kind: cpu, cores: 4, overhead: {host} us, flop: {{fp32: {flop} GFLOP/s}}, memory: {{bandwidth: {memory} GB/s}}}}
  gpu: {{kind: gpu, launch: {launch} us, flop: {{fp32: {peak} TFLOP/s}}, memory: {{bandwidth: {hbm} GB/s}}}}
links: [{{name: slot, between: [cpu, gpu], kind: direct, bandwidth: 10 GB/s, latency: 20 us}}]
"""
MIXED: tuple[dict[str, Any], ...] = (
    {"compute": {"name": "one", "device": "cpu", "flop": "1 GFLOP", "cores": 1, "queue": "a"}},
    {"compute": {"name": "three", "device": "cpu", "flop": "5 GFLOP", "cores": 3, "queue": "b"}},
    {"compute": {"name": "more", "device": "cpu", "bytes": "100 MB", "cores": 2, "queue": "c"}},
    {"copy": {"from": "cpu", "to": "gpu", "bytes": "1 MB", "writes": "x"}},
    {"compute": {"name": "kernel", "device": "gpu", "flop": "1 GFLOP", "reads": "x"}},
    {"elementwise": {"device": "gpu", "count": 100000, "reads": "x"}},
)


def ideal(cpu: float = 1.0, gpu: float = 1.0) -> Machine:
    return load_machine(
        IDEAL.format(
            host=10 / cpu, flop=100 * cpu, memory=50 * cpu, launch=5 / gpu, peak=2 * gpu, hbm=800 * gpu
        )
    )  # fmt: skip


@pytest.mark.parametrize(("part", "cpu", "gpu"), [("cpu", 0.5, 1.0), ("gpu", 1.0, 0.25)])
def test_a_part_that_is_slow_all_the_time_is_a_part_with_half_of_its_numbers(part: str, cpu: float, gpu: float) -> None:
    slower, event = run(ideal(cpu, gpu), *MIXED), run(ideal(), *MIXED, events=slow(part, f"{100 * min(cpu, gpu)} %"))
    ends = [result.timeline.end.astype(float) for result in (slower, event)]
    assert ends[1] == pytest.approx(ends[0], rel=1e-9)


def test_the_latency_of_a_link_stays_and_a_kernel_s_start_does_not() -> None:
    copy = {"copy": {"from": "cpu", "to": "gpu", "bytes": "1 MB", "writes": "x"}}
    kernel = {"compute": {"device": "gpu", "flop": "2 GFLOP", "reads": "x"}}
    fast, late = (run(ideal(), copy, kernel, events=slow("gpu", speed)).makespan_s for speed in ("100 %", "50 %"))
    assert fast == pytest.approx(120e-6 + 5e-6 + 1e-3)
    assert late == pytest.approx(120e-6 + 10e-6 + 2e-3)


def test_a_slower_part_never_ends_earlier() -> None:
    for part in ("cpu", "gpu"):
        times = [run(ideal(), *MIXED, events=slow(part, f"{speed} %")).makespan_s for speed in (100, 90, 60, 30, 10)]
        assert all(first <= second for first, second in pairwise(times))


def test_the_front_end_goes_at_the_speed_of_its_cpu() -> None:
    """Ten kernels of 5 us behind a dispatch of 10 us each, which takes 20 us."""
    kernels = {"repeat": {"times": 10, "do": [{"compute": {"device": "gpu", "flop": "1 FLOP"}}]}}
    runtime = {"dispatch": "10 us", "return": "0 s"}
    times = [run(ideal(), kernels, events=slow("cpu", speed), runtime=runtime).makespan_s for speed in ("100 %", "50 %")]
    assert times == pytest.approx([105e-6, 205e-6])


# ---- served models and services ----


def test_a_served_model_waits_longer_for_a_slow_host() -> None:
    infer = {"model": "gpt2", "device": "gpu0", "framework": "vllm", "requests": 1, "arrivals": {"every": "1 s"}, "prompt": 50,
             "output": 20, "dtype": "fp16"}  # fmt: skip
    none, half, quarter = (
        hwsim.simulate(SERVER, {"hwsim": "workload/1", "infer": infer, "events": slow("cpu0", speed)}).makespan_s
        for speed in ("100 %", "50 %", "25 %")
    )
    assert half > none + 20 * 0.1e-3
    assert quarter - none == pytest.approx(3 * (half - none))


def test_a_service_on_a_slow_cpu_is_a_service_with_more_to_do() -> None:
    def answers(time: str, speed: str) -> Any:
        services = {
            "users": {"arrivals": {"poisson": "300 1/s"}, "request": [{"ask": {"service": "web"}}]},
            "web": {"device": "cpu", "workers": 8, "request": [{"busy": {"time": time}}]},
        }
        workload = {"hwsim": "workload/1", "services": services, "for": "2 s", "events": slow("cpu", speed)}
        run = hwsim.simulate(LAPTOP, workload)
        assert run.services is not None
        latency = run.services.answers[0].latency
        return latency and (latency.count, latency.mean, latency.percentiles)

    assert answers("5 ms", "50 %") == answers("10 ms", "100 %")
