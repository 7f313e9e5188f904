"""A GPU made up from known numbers comes back, and its machine file simulates."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hwsim
from hwsim_calibrate.fit import fit
from hwsim_calibrate.fit.gpu import gpu_part, ramp_of
from hwsim_calibrate.store import Measurements
from tests.calibrate_cases import made_up, made_up_gpu


def test_capacities_and_rates_behind_a_cache_come_back() -> None:
    points = [(2.0 * row.params["bytes"], row.quiet) for row in made_up_gpu() if row.op == "copy"]  # type: ignore[operator]
    found = ramp_of(points)
    assert found.capacity == pytest.approx(50e6, rel=0.10)
    assert found.memory == pytest.approx(2.8e12, rel=0.05)
    assert found.l2 == pytest.approx(6e12, rel=0.05)
    assert found.start == pytest.approx(2e-6, rel=0.10)


def test_a_gpu_has_its_launches_copies_and_peaks() -> None:
    properties = {"name": "made up", "multiprocessors": 132, "memory": 80_000_000_000}
    part, link = gpu_part(Measurements({"gpu": properties}, made_up_gpu()), "made up")
    assert (part["sms"], part["memory"]["size"]) == (132, "80 GB")
    assert part["flop"]["bf16"]["value"].startswith("79")
    assert part["launch"]["stream"]["value"].startswith("1.5")
    assert set(part["launch"]) == {"stream", "host", "graph"}
    assert part["copies"]["pageable"].startswith(("11.9", "12"))
    assert link["bandwidth"]["value"].startswith(("49", "50"))


def test_without_a_gpu_there_is_none() -> None:
    assert gpu_part(Measurements({}, ()), "nothing") == ({}, {})


def test_a_machine_with_a_gpu_simulates() -> None:
    both = replace(made_up(), rows=(*made_up().rows, *made_up_gpu()))
    machine = fit(both, name="made up").yaml()
    product = {"device": "gpu", "m": 8192, "n": 8192, "k": 8192, "dtype": "bf16"}
    program = [{"copy": {"from": "cpu", "to": "gpu", "bytes": "1 GB"}}, {"matmul": product}]
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "name": "step", "program": program})
    assert run.makespan_s == pytest.approx(1e9 / 50e9, rel=0.1)
