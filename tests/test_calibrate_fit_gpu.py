"""A GPU made up from known numbers comes back, and its machine file simulates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.devices import Gpu, Product, Work
from hwsim.devices.gpu_matmul import Alignment, Tiling, best
from hwsim.devices.gpu_matmul import Chip as GpuChip
from hwsim.devices.gpu_memory import Launch
from hwsim.devices.roofline import Efficiency
from hwsim_calibrate.fit import fit
from hwsim_calibrate.fit.gpu import gpu_part, ramp_of
from hwsim_calibrate.fit.gpu_products import NAMES, Chip, Products, Timed, fit_tiles
from hwsim_calibrate.store import Measurements
from hwsim_calibrate.suites.gpu import OBLONGS, SQUARES
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


LIBRARY = (
    ("h100-sxm", "fp16"),
    ("v100-sxm2-16gb", "fp32"),
    pytest.param("a100-sxm-80gb", "fp16", marks=pytest.mark.slow),
    pytest.param("t4", "fp16", marks=pytest.mark.slow),
)


@pytest.mark.parametrize(("part", "dtype"), LIBRARY)
def test_tiles_come_back_and_predict_products_they_were_not_fitted_to(part: str, dtype: str) -> None:
    truth = (
        load_machine({"hwsim": "machine/1", "name": "it", "parts": {"gpu": {"kind": "gpu", "use": part}}}).devices["gpu"].model
    )
    assert isinstance(truth, Gpu)
    tiling, launch = truth.matmul[dtype], truth.launch.stream if isinstance(truth.launch, Launch) else truth.launch
    width, draw = 4 if dtype == "fp32" else 2, np.random.default_rng(0)
    works = [
        Work(flop=2.0 * m * k * n, reads=float(width * k * (m + n)), writes=float(width * m * n), dtype=dtype, mix="matmul",
             product=Product(m, n, k))
        for m, k, n in [*((side, side, side) for side in SQUARES), *OBLONGS]
    ]  # fmt: skip
    memory = [truth.sustained.bytes_at_peak(work.reads, work.writes) / truth.memory.bandwidth for work in works]
    exact = [truth.compute("gpu", work).demand.alone({"gpu.compute": 1.0, "gpu.memory": 1.0}) for work in works]
    rows = [
        Timed(work, seconds * math.exp(0.02 * draw.standard_normal()), crossing)
        for work, seconds, crossing in zip(works, exact, memory, strict=True)
    ]
    assert truth.sms is not None
    chip = Chip(truth.sms, truth.memory.bandwidth, launch)
    rate, found = fit_tiles(rows, chip)
    assert rate == pytest.approx(truth.flop[dtype] * truth.efficiency.matmul * tiling.efficiency, rel=0.03)
    assert found.start == pytest.approx(tiling.start, rel=0.05, abs=1e-7)
    for key in ("prologue", "balance"):  # what one of them lacks another makes up for
        assert getattr(found, key) == pytest.approx(getattr(tiling, key), rel=0.12)
    odd = [row for row, work in zip(rows, works, strict=True) if work.product is not None and work.product.n % 2]
    even = sorted((row for row in rows if row not in odd), key=lambda row: row.work.flop)
    rate, found = fit_tiles([*even[::2], even[-1], *odd], chip)
    again = replace(truth, flop={dtype: rate}, efficiency=Efficiency(), matmul={dtype: found})
    errors = [
        abs(again.compute("gpu", row.work).demand.alone({"gpu.compute": 1.0, "gpu.memory": 1.0}) / row.seconds - 1.0)
        for row in even[1::2]
    ]
    assert np.median(errors) <= 0.035
    assert np.quantile(errors, 0.8) <= 0.06


def test_the_fit_s_products_are_the_simulator_s() -> None:
    shapes = [
        (1, 4096, 4096, True),
        (300, 17, 4097, False),
        (4096, 4096, 4096, False),
        (64, 65536, 64, False),
        (2000, 999, 8, True),
    ]
    works = [
        Work(flop=2.0 * m * k * n, reads=2.0 * k * (m + n), product=Product(m, n, k, 1, stored)) for m, k, n, stored in shapes
    ]
    tiling = Tiling(
        smallest=32, largest=32768, splits=16, prologue=121, edge=16, lost=0.4, balance=127, transposed=0.8, adding=2e-6,
        alignment=Alignment(between=0.9, below=0.4),
    )  # fmt: skip
    value = {name: getattr(tiling, name, 0.0) for name in NAMES} | {"rate": 8e14, "start": 1e-9, "between": 0.9, "below": 0.4}
    model = Products([Timed(work, 1.0, 1e-6) for work in works], Chip(132, 3e12, 0.0), (32, 32768, 16))
    tiles = GpuChip(132, 8e14, 3e12)
    cuts = [best(work.product, 2.0, tiling, tiles, 1e-6).time + 1e-9 for work in works if work.product is not None]
    assert model.times(np.log([value[name] for name in NAMES]))[0].tolist() == pytest.approx(cuts, rel=1e-9)


def test_without_a_gpu_there_is_none() -> None:
    assert gpu_part(Measurements({}, ()), "nothing") == ({}, {})


def test_a_machine_with_a_gpu_simulates() -> None:
    both = replace(made_up(), rows=(*made_up().rows, *made_up_gpu()))
    machine = fit(both, name="made up").yaml()
    product = {"device": "gpu", "m": 8192, "n": 8192, "k": 8192, "dtype": "bf16"}
    program = [{"copy": {"from": "cpu", "to": "gpu", "bytes": "1 GB"}}, {"matmul": product}]
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "name": "step", "program": program})
    assert run.makespan_s == pytest.approx(1e9 / 50e9, rel=0.1)
