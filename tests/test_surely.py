"""How sure an answer is: two ways to one number agree, ranges hold what is not known, and what cannot be is no answer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

import hwsim
from hwsim.api import load_machine, load_workload
from hwsim.origins import CASES
from hwsim.planning import plan
from hwsim.results.errors import table
from hwsim.workload.number_formats import wider_formats

TRAIN = {"model": "gpt2-medium", "sequence": 1024, "microbatch": 1, "global_batch": 32, "dtype": "fp16", "recompute": "full"}


def training(folder: Path, **keys: Any) -> Path:
    """A workload that trains a small model."""
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"hwsim": "workload/1", "train": TRAIN | keys}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("machine", "gpus"), [("l40s-8", 8), ("g4dn.12xlarge", 4), ("gpu-workstation", 2)])
@pytest.mark.parametrize("keys", ["tp", "fsdp", "zero-1"])
def test_estimates_over_pcie_are_what_a_simulation_finds(tmp_path: Path, machine: str, gpus: int, keys: str) -> None:
    path = training(tmp_path, **({"parallel": {"tp": gpus}} if keys == "tp" else {"sharding": keys}))
    simulated = hwsim.simulate(machine, path, expect=False).trainings[0].step_s
    assert hwsim.estimate(machine, path).seconds == pytest.approx(simulated, rel=0.05)


def test_exchanges_that_nobody_measured_make_a_step_unsure(tmp_path: Path) -> None:
    interval = hwsim.simulate("l40s-8", training(tmp_path, sharding="fsdp"), expect=False).interval
    assert interval.stated < 0.02  # the file states no time
    assert interval.case == "generation"
    parts = math.sqrt(math.fsum(part.variance for part in interval.parts))
    widest = max(interval.parts, key=lambda part: part.variance)
    assert widest.regime == "pcie/large"
    assert interval.half == pytest.approx(widest.quantile * parts, rel=1e-3)
    assert interval.half > 1.5 * 0.3


def test_what_is_not_known_of_a_device_is_common_to_its_kernels() -> None:
    known = table().errors("infer/decode", "known")
    outside = table().errors("infer/decode", "outside")
    assert outside.shared**2 >= outside.sigma**2 - known.scatter**2 - 1e-3


def test_wider_errors_keep_their_scatter() -> None:
    errors = table().errors("infer/prefill", "known")
    wide = errors.widened(2.0)
    assert wide.scatter == errors.scatter
    assert wide.sigma == pytest.approx(2.0 * errors.sigma)


def test_replicas_share_the_requests_of_a_program(tmp_path: Path) -> None:
    shop = tmp_path / "shop.yaml"
    service = {
        "device": "cpu",
        "arrivals": {"poisson": "50000 1/s"},
        "workers": 64,
        "request": [{"busy": {"name": "work", "time": "1 ms"}}],
    }
    shop.write_text(yaml.safe_dump({"hwsim": "workload/1", "services": {"shop": service}, "requests": 2000}), encoding="utf-8")
    question = {"hwsim": "plan/1", "machine": "web-server", "workload": str(shop), "vary": {"replicas": "1..8"},
                "require": ["latency_p99 at most 20 ms"], "minimise": "power"}  # fmt: skip
    answer = plan(question)
    assert answer.best.point.replicas == 2  # 32 cores do 32,000 a second
    assert answer.best.numbers["latency_p99"].value < 0.02


@pytest.mark.parametrize(
    ("machine", "dtype", "warned"), [("p3.16xlarge", "fp8", 1), ("p3.16xlarge", "fp16", 0), ("dgx-h100", "fp8", 0)]
)
def test_a_format_that_the_gpu_lacks_is_said(tmp_path: Path, machine: str, dtype: str, warned: int) -> None:
    path = training(tmp_path, dtype=dtype)
    for warnings in (hwsim.simulate(machine, path, expect=False).warnings, hwsim.estimate(machine, path).warnings):
        assert sum(warning.code == "unsupported-format" for warning in warnings) == warned


MIXED = """\
hwsim: machine/1
parts:
  cpu: {kind: cpu, use: xeon-8480}
  old: {kind: gpu, use: v100-sxm2-16gb, count: 2}
  new: {kind: gpu, use: h100-sxm, count: 2}
  psw: {kind: switch}
links:
  - {between: [old*, psw], kind: pcie, gen: 3, lanes: 16}
  - {between: [new*, psw], kind: pcie, gen: 4, lanes: 16}
  - {between: [cpu, psw], kind: pcie, gen: 4, lanes: 16}
"""


@pytest.mark.parametrize(
    ("devices", "said"), [("old*", "the gpu does not support fp8"), ("new*", ""), (["new*", "old*"], "old0 does not support fp8")]
)
def test_a_format_that_some_of_the_own_gpus_lack_is_said(devices: Any, said: str) -> None:
    """Other GPUs of the machine, which have it, do not matter."""
    infer = {
        "model": "gpt2",
        "dtype": "fp8",
        "device": devices,
        "parallel": {"dp": "rest"},
        "requests": 2,
        "output": 3,
        "prompt": 9,
    }
    machine = load_machine(MIXED)
    warnings = list(wider_formats(load_workload({"hwsim": "workload/1", "infer": infer}), machine))
    assert [said in warning.text for warning in warnings] == ([True] if said else [])


def test_slow_exchanges_of_a_served_model_make_its_times_as_unsure(tmp_path: Path) -> None:
    path = tmp_path / "serve.yaml"
    infer = {
        "model": "llama-3-8b",
        "parallel": {"tp": 8},
        "arrivals": {"poisson": "1 1/s"},
        "requests": 10,
        "prompt": 1000,
        "output": 20,
    }
    path.write_text(yaml.safe_dump({"hwsim": "workload/1", "infer": infer}), encoding="utf-8")
    slow, fast = (hwsim.simulate(machine, path).serving[0].case for machine in ("l40s-8", "dgx-h100"))
    assert CASES.index(slow) >= CASES.index("generation") > CASES.index(fast)
