"""GPUs made up from the library's parts come back out of the suite's rows, and their machine files simulate."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.devices import Gpu, MatmulShape, Work
from hwsim.devices.gpu_matmul import Alignment, Tiling, fastest_tile_plan
from hwsim.devices.gpu_matmul import Chip as GpuChip
from hwsim.devices.gpu_memory import Launch
from hwsim_calibrate.fit import fit
from hwsim_calibrate.fit.gpu import FittedGpu, fit_gpu
from hwsim_calibrate.fit.gpu_products import NAMES, Chip, MatmulModel, TimedMatmul
from hwsim_calibrate.fit.gpu_rows import machine_of
from hwsim_calibrate.store import Measurements
from tests.calibrate_cases import made_up, made_up_gpu

PARTS = (
    ("h100-sxm", "fp16", 5),
    ("v100-sxm2-16gb", "fp32", 3),
    pytest.param("a100-sxm-80gb", "fp16", 4, marks=pytest.mark.slow),
    pytest.param("t4", "fp16", 3, marks=pytest.mark.slow),
)


@cache
def fitted_to(part: str, dtype: str, gen: int) -> FittedGpu:
    """The fit of rows with 2 % of noise."""
    return fit_gpu(made_up_gpu(part, products=(dtype,), gen=gen), "made up")


def gpu_of(fitted: FittedGpu) -> Gpu:
    model = machine_of(fitted.part, fitted.link).devices["gpu"].model
    assert isinstance(model, Gpu)
    return model


@pytest.mark.parametrize(("part", "dtype", "gen"), PARTS)
def test_a_gpu_comes_back_from_its_rows(part: str, dtype: str, gen: int) -> None:
    truth, fitted = gpu_of(FittedGpu({"kind": "gpu", "use": part})), fitted_to(part, dtype, gen)
    found, tiling = gpu_of(fitted), truth.matmul[dtype]
    assert found.sms == truth.sms
    assert found.memory.size == pytest.approx(truth.memory.size, rel=1e-3)
    assert found.flop[dtype] == pytest.approx(truth.flop[dtype] * truth.efficiency.matmul * tiling.efficiency, rel=0.03)
    for kind in ("fp32", "int32"):
        peak = (truth.vector or truth.flop).get(kind) or truth.vector.get("fp32") or truth.flop["fp32"]
        assert found.vector[kind] == pytest.approx(peak * truth.efficiency.vector, rel=0.06)  # one row
    assert found.matmul[dtype].splits == tiling.splits
    assert found.matmul[dtype].start == pytest.approx(tiling.start, rel=0.05, abs=1e-7)
    for key in ("prologue", "loads"):  # what one of them lacks the others make up for
        assert getattr(found.matmul[dtype], key) == pytest.approx(getattr(tiling, key), rel=0.12)
    for key in ("read", "copy", "write"):
        rate = truth.memory.bandwidth * getattr(truth.sustained, key)
        assert found.memory.bandwidth * getattr(found.sustained, key) == pytest.approx(rate, rel=0.03)
    if isinstance(truth.launch, Launch):
        assert isinstance(found.launch, Launch)
        assert found.launch.stream == pytest.approx(truth.launch.stream, rel=0.03)
        assert found.launch.graph == pytest.approx(truth.launch.graph, rel=0.05)
    assert found.copies.setup == pytest.approx(1.45e-6, rel=0.03)
    assert found.copies.fetch == pytest.approx(600e-9, rel=0.12)
    assert found.copies.pageable == pytest.approx(9e9, rel=0.03)
    assert found.copies.local_setup == pytest.approx(4.8e-6, rel=0.03)
    assert fitted.link["gen"] == gen
    assert float(fitted.link["efficiency"]["value"].split()[0]) == pytest.approx(85, rel=0.03)
    assert fitted.link["two_way"]["value"] == pytest.approx(1.6, rel=0.04)


def test_a_measured_gpu_reaches_its_rates_without_a_class() -> None:
    fitted = fitted_to("h100-sxm", "fp16", 5)
    content = {
        "hwsim": "machine/1",
        "parts": {
            "cpu": {"kind": "cpu", "cores": 1, "flop": {"fp64": "1 GFLOP/s"}, "memory": {"bandwidth": "1 GB/s"}},
            "gpu": fitted.part,
        },
    }
    model = load_machine(content).devices["gpu"].model
    assert isinstance(model, Gpu)
    assert (model.efficiency.vector, model.efficiency.matmul) == (1.0, 1.0)


@pytest.mark.parametrize(("part", "dtype", "gen"), PARTS)
def test_rows_held_out_are_predicted(part: str, dtype: str, gen: int) -> None:
    errors = fitted_to(part, dtype, gen).heldout
    products = errors[f"matmuls {dtype}"]
    assert len(products.cases) >= 20
    assert products.median <= 0.035
    assert products.p90 <= 0.08
    for group in ("memory", "host copies, pinned", "host copies, pageable", "device copies"):
        assert errors[group].median <= 0.05, group


def test_the_fit_s_products_are_the_simulator_s() -> None:
    shapes = [
        (1, 4096, 4096, True),
        (300, 17, 4097, False),
        (4096, 4096, 4096, False),
        (64, 65536, 64, False),
        (2000, 999, 8, True),
    ]
    works = [
        Work(flop=2.0 * m * k * n, reads=2.0 * k * (m + n), product=MatmulShape(m, n, k, 1, stored)) for m, k, n, stored in shapes
    ]
    tiling = Tiling(
        smallest=32, largest=32768, splits=16, prologue=121, edge=16, lost=0.4, loads=2 * 8e14 / 132 / 127, transposed=0.8,
        adding=2e-6, alignment=Alignment(between=0.9, below=0.4),
    )  # fmt: skip
    value = {name: getattr(tiling, name, 0.0) for name in NAMES} | {
        "balance": 127.0,
        "rate": 8e14,
        "start": 1e-9,
        "between": 0.9,
        "below": 0.4,
    }
    model = MatmulModel([TimedMatmul(work, 1.0, 1e-6) for work in works], Chip(132, 3e12, 0.0), (32, 32768, 16))
    tiles = GpuChip(132, 8e14, 3e12)
    cuts = [
        fastest_tile_plan(work.product, (2.0, 2.0), tiling, tiles, 1e-6).time + 1e-9 for work in works if work.product is not None
    ]
    assert model.times(np.log([value[name] for name in NAMES]))[0].tolist() == pytest.approx(cuts, rel=1e-9)


def test_what_the_driver_does_not_tell_is_left_out() -> None:
    rows = made_up_gpu("t4", products=("fp32",)).rows
    fitted = fit_gpu(Measurements({"gpu": {"name": "made up"}}, rows), "made up")
    assert not {"sms", "matmul"} & set(fitted.part)
    assert "size" not in fitted.part["memory"]
    assert "bandwidth" in fitted.link
    assert gpu_of(fitted).flop["fp32"] > 0


def test_without_a_gpu_there_is_none() -> None:
    assert fit_gpu(Measurements({}, ()), "nothing") == FittedGpu()


def test_a_machine_with_a_gpu_simulates_and_tells_its_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = made_up_gpu(products=("fp16",), gen=5)
    both = replace(made_up(), rows=(*made_up().rows, *gpu.rows), environment={**made_up().environment, **gpu.environment})
    monkeypatch.setattr(
        "hwsim_calibrate.fit.fit_gpu", lambda given, *_: fitted_to("h100-sxm", "fp16", 5) if given is both else None
    )
    fitted = fit(both, name="made up")
    product = {"device": "gpu", "m": 8192, "n": 8192, "k": 8192, "dtype": "fp16"}
    program = [{"copy": {"from": "cpu", "to": "gpu", "bytes": "1 GB"}}, {"matmul": product}]
    run = hwsim.simulate(fitted.yaml(), {"hwsim": "workload/1", "name": "step", "program": program})
    assert run.makespan_s == pytest.approx(1e9 / (0.85 * 0.96 * 63e9), rel=0.1)
    assert "matmuls fp16" in fitted.gpu
    assert "held-out cases" in fitted.machine["parts"]["gpu"]["notes"]
