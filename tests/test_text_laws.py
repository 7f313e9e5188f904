"""Laws that the founding text states: asynchrony, barriers, random numbers everywhere, few large transfers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.devices import Cpu, Gpu
from hwsim.machine import Machine
from hwsim.spec import names

MACHINES = [name for name in names("machine") if not name.startswith("scale/")]


@cache
def loaded(name: str) -> Machine:
    return api.load_machine(name)


def devices(machine: str, kind: str) -> tuple[str, ...]:
    return loaded(machine).devices_of(kind)


def first(kind: str) -> Iterator[tuple[str, str]]:
    """Machines with a device of a kind that computes, and the first of these devices."""
    for name in MACHINES:
        for device in devices(name, kind)[:1]:
            model = loaded(name).device(device).model
            if not isinstance(model, Cpu) or model.flop or model.per_cycle or (model.core is not None and model.core.isa):
                yield name, device


def test_every_machine_with_a_cpu_draws_random_numbers_and_fills_a_queue() -> None:
    for machine, cpu in first("cpu"):
        for workload, changed in (("d2l/async-matmul", {"device": cpu}), ("d2l/queue-memory", {"batches": 2, "device": cpu})):
            run = api.simulate(machine, workload, set=changed, expect=False)
            assert run.issued_s is not None, machine
            assert 0 < run.issued_s <= run.makespan_s, machine


def test_every_gpu_draws_random_numbers_no_faster_than_it_writes_them() -> None:
    for machine, gpu in first("gpu"):
        model = loaded(machine).device(gpu).model
        assert isinstance(model, Gpu)
        run = api.simulate(machine, "d2l/async-matmul-gpu", set={"gpu": gpu}, expect=False)
        drawn = next(op.duration_s for op in run.ops if op.kind == "random")
        assert drawn >= 4e6 / model.memory.bandwidth, machine
        assert run.issued_s == pytest.approx(20 * 4.5e-6), machine


def copies(machine: str, ends: tuple[str, str], size: int, times: int) -> float:
    program = [{"repeat": {"times": times, "do": [{"copy": {"from": ends[0], "to": ends[1], "bytes": f"{size} B"}}]}}]
    return api.simulate(loaded(machine), {"hwsim": "workload/1", "program": program}).makespan_s


def test_few_large_transfers_between_cpu_and_gpu_are_faster_than_many_small_ones() -> None:
    for machine, gpu in first("gpu"):
        if not devices(machine, "cpu"):
            continue  # a GPU alone has nothing to copy from
        pair = devices(machine, "cpu")[0], gpu
        for ends in (pair, pair[::-1]) if machine != "storage-client" else ():
            one, many = copies(machine, ends, 1_600_000, 1), copies(machine, ends, 16_000, 100)
            assert many > one + 99 * 1e-6, machine  # each begins after a microsecond at least


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["d2l-4gpu-pcie", "d2l-gpu-workstation", "p3.16xlarge"]), st.integers(1, 10**6), st.integers(1, 2000))
def test_many_copies_are_never_faster_than_one_of_all_their_bytes(machine: str, size: int, times: int) -> None:
    ends = devices(machine, "cpu")[0], devices(machine, "gpu")[0]
    assert copies(machine, ends, size, times) >= copies(machine, ends, size * times, 1) * (1 - 1e-9)


def barrier(**ways: int) -> float:
    return api.simulate("d2l-laptop", "d2l/barriers", set={"all": 0, **ways}, expect=False).makespan_s


def test_a_conversion_copies_and_a_sum_adds_up() -> None:
    wait, everything, convert, scalar = (barrier(**{way: 1}) for way in ("one", "all", "convert", "scalar"))
    assert wait == everything
    assert convert == pytest.approx(wait + 8e6 / 40e9)  # 4 MB read and written
    assert scalar > convert
    assert barrier(convert=1, n=100) - barrier(one=1, n=100) == pytest.approx(8e4 / 40e9)


def test_numpy_shares_what_pytorch_has_in_the_host_s_memory() -> None:
    shares = {"all": 0, "workload.runtime.use": "pytorch-eager"}
    found = [api.simulate("d2l-laptop", "d2l/barriers", set={**shares, way: 1}, expect=False) for way in ("one", "convert")]
    assert found[0].makespan_s == found[1].makespan_s


def test_waiting_for_an_intermediate_result_keeps_the_backend_busy() -> None:
    some, everything = (api.simulate("d2l-laptop", "d2l/wait-intermediate", set={"all": flag}).makespan_s for flag in (0, 1))
    assert some < everything


def test_the_front_end_is_done_long_before_the_back_end() -> None:
    run = api.simulate("d2l-laptop", "d2l/async-matmul")
    assert run.issued_s == pytest.approx(0.0015)
    assert "issued its last op after 1.50 ms" in str(run)
    free = api.simulate("d2l-laptop", "hwsim: workload/1\nprogram: [{busy: {device: cpu, time: 1 s}}]\n")
    assert free.issued_s is None
    assert "front end" not in str(free)
