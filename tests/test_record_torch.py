"""Recordings of PyTorch: statements from facts, without it; a script recorded, where it is installed."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hwsim
from hwsim.devices.kernels import Kernels, ProductTime, Tier
from hwsim.devices.work import Call, Product, shaped_call
from hwsim.importers.recording import Facts
from hwsim_calibrate.calls import call_of
from hwsim_calibrate.fit.kernels import fit_kernels, timed
from hwsim_calibrate.fit.model import Capacities, product_of
from hwsim_calibrate.recording.torch_calls import facts_of, free, statement_of
from hwsim_calibrate.store import Amounts, Measurements, Row
from hwsim_calibrate.suites import Scope
from hwsim_calibrate.suites import torch as suite
from hwsim_calibrate.torch_cases import call_of_case, facts_of_case

STEP = Path(__file__).parent / "data" / "recorded" / "mlp.yaml"
IMAGES = "float32:2x16x32x32 float32:32x16x3x3 None [2,2] [1,1] [1,1] False [0,0] 1"
SCOPE = Scope(ExitStack())
WITH_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.mark.parametrize(
    ("op", "inputs", "function", "form", "product"),
    [
        ("mm", "float32:8x16 float32:16x4", "matmul", "", (8, 4, 16, 1)),
        ("mm", "float32:8x16/t float32:16x4", "matmul", "a", (8, 4, 16, 1)),
        ("addmm", "float32:4 float32:8x16 float32:16x4/t 1 1", "matmul", "b bias", (8, 4, 16, 1)),
        ("bmm", "float32:3x8x16 float32:3x16x4", "matmul", "batched", (8, 4, 16, 3)),
        ("convolution", IMAGES, "convolution", "forward 3x3 strided", (512, 32, 144, 1)),
        ("_scaled_dot_product_flash_attention_for_cpu", "float32:2x4x9x8/h float32:2x4x9x8/h float32:2x4x9x8/h 0.0 True",
         "attention", "causal", (9, 9, 8, 8)),
    ],
)  # fmt: skip
def test_an_operator_is_the_call_of_a_product(op: str, inputs: str, function: str, form: str, product: tuple[int, ...]) -> None:
    call = call_of_case(op, inputs)
    assert call is not None
    assert call.product is not None
    assert (call.function, call.form, call.library, call.cores) == (function, form, "torch", 1)
    assert call.point == product


@pytest.mark.parametrize(
    ("op", "inputs", "form", "rows"),
    [
        ("add.Tensor", "float32:8x16 float32:8x16 1", "", 1),
        ("add.Tensor", "float32:8x16 float32:16 1", "row", 8),
        ("mul.Tensor", "float32:8x16 float32:8x1", "column", 8),
        ("add.Tensor", "float32:8x16 float32:8x16/t 1", "across", 8),
        ("clone", "float32:2x4x9x8/h 0", "strided", 72),
        ("clone", "float32:2x4x9x8/h None", "", 1),
        ("sum.dim_IntList", "float32:8x16 [0] True None", "columns", 8),
        ("sum.dim_IntList", "float32:8x16 [1] True None", "rows", 8),
        ("gelu", "float32:8x16 'tanh'", "tanh", 1),
    ],
)
def test_how_operands_lie_is_in_the_form(op: str, inputs: str, form: str, rows: float) -> None:
    call = call_of_case(op, inputs)
    assert call is not None
    assert (call.form, call.rows) == (form, rows)


def test_in_place_and_after_others() -> None:
    plain, later = call_of_case("mul_.Tensor", "float32:1000 1.0"), call_of_case("mul_.Tensor", "float32:1000 1.0", 1_000_000)
    assert plain is not None
    assert later is not None
    assert (plain.into, plain.idle, later.idle > 1e6) == ("self", 0.0, True)
    assert all(operand.since is not None and operand.since > 1e6 for operand in later.operands)


def test_what_is_not_known_has_a_reason() -> None:
    assert statement_of("mine::fast_thing", Facts(shapes=((8,),), dtypes=("float32",)))[2] == "no such operator is known"


def test_every_case_of_the_suite_is_a_call_that_a_fit_knows() -> None:
    cases = list(suite.cases(SCOPE))
    assert len({case.name for case in cases}) == len(cases) > 900
    for case in cases[::7]:
        row = Row("torch", case.name, case.op, case.params, Amounts(), (1e-6,))
        assert call_of(row) is not None, case.name


def test_the_suite_has_no_shape_of_the_models() -> None:
    """Products of the recorded step: none is measured."""
    of_step = {(96, 1200, 784), (96, 600, 1200), (1200, 784, 96), (600, 1200, 96), (96, 1200, 600)}
    calls = [_call(case) for case in suite.cases(SCOPE)]
    measured = {call.point[:3] for call in calls if call is not None and call.product is not None}
    assert not of_step & measured


def _call(case: Any) -> Call | None:
    return call_of_case(case.op, str(case.params["inputs"]))


def test_code_that_was_not_called_for_long_takes_time_to_come() -> None:
    levels = {"L2": Tier(beyond=32e3), "memory": Tier(beyond=32e6)}
    kernels = Kernels(levels=levels, code={"L2": 1e-6, "memory": 20e-6}, products={"fp32": ProductTime(flop=1e11)})
    calls = [Call(function="matmul", dtype="fp32", product=Product(2, 2, 2), idle=idle) for idle in (0.0, 1e6, 1e9)]
    soon, later, latest = (kernels.time(call).call for call in calls)
    assert soon == 0.0
    assert later == pytest.approx(1e-6, rel=0.01)
    assert latest == pytest.approx(20e-6, rel=0.01)


def test_products_of_a_function_have_times_of_their_own() -> None:
    times = {"fp32": ProductTime(flop=1e11), "convolution forward fp32": ProductTime(flop=1e10)}
    kernels = Kernels(products=times)
    shape = Product(100, 100, 100)
    call = shaped_call("convolution", shape, dtype="fp32", reads=1.0, writes=1.0, form="forward 3x3")
    assert product_of(call) == "convolution forward 3x3 fp32"
    assert kernels.time(call).compute == pytest.approx(2e6 / 1e10)
    assert kernels.unknown(shaped_call("attention", shape, dtype="fp32", reads=1.0, writes=1.0)) == "attention of fp32"


def test_a_fit_finds_code_and_products() -> None:
    rows = []
    for op, inputs, after in _cases():
        call = call_of_case(op, inputs, after)
        assert call is not None
        truth = 3e-6 + (5e-6 if after else 0.0) + (2 * call.count / 5e10 if call.product else call.count * 1e-10)
        params: dict[str, Any] = {"inputs": inputs} | ({"after": after} if after else {})
        rows.append(Row("torch", f"{op} {inputs} {after}", op, params, Amounts(), (truth,) * 3))
    measured = timed(Measurements({}, tuple(rows)), ("torch",))
    fitted = fit_kernels(measured, Capacities({"L2": 48e3, "L3": 1e6, "memory": 3e7}), bootstraps=1).kernels
    for row in measured:
        assert fitted.time(row.call).seconds == pytest.approx(row.quiet, rel=0.2), row.case
    assert sum(fitted.code.values()) > 3e-6


def _cases() -> list[tuple[str, str, int]]:
    sizes = (256, 4096, 65_536, 262_144, 1_000_000)
    products = ((16, 16, 16), (64, 64, 64), (128, 256, 64), (256, 256, 256), (512, 128, 512), (1024, 256, 64))
    return [
        *(("relu", f"float32:{n}", 0) for n in sizes),
        *(("mm", f"float32:{m}x{k} float32:{k}x{n}", 0) for m, k, n in products),
        *(("relu", "float32:256", 10 << 20) for _ in range(3)),
    ]


# ---- a recording that was made before ----


def test_a_recorded_step_runs_on_a_cpu_and_on_a_gpu() -> None:
    on_cpu = hwsim.simulate("laptop", STEP)
    on_gpu = hwsim.simulate("gpu-workstation", STEP, set={"device": "gpu0"})
    assert on_cpu.makespan_s > on_gpu.makespan_s > 0
    assert on_cpu.interval.low < on_cpu.makespan_s < on_cpu.interval.high


def test_a_recording_of_numpy_runs_on_a_gpu(tmp_path: Path) -> None:
    text = (
        "hwsim: workload/1\nname: x\nlet: {device: cpu}\nruntime: {blocks: all}\nprogram:\n  each: $device\n  do:\n"
        "  - matmul: {m: 64, n: 64, k: 64, dtype: fp64, cores: 1, among_others: true}\n"
        "  - access: {function: take, pattern: random, count: 100, bytes: 8 B, working_set: 1 MB, cores: 1}\n"
    )
    assert hwsim.simulate("gpu-workstation", text, set={"device": "gpu0"}).makespan_s > 0


# ---- with PyTorch ----


@WITH_TORCH
def test_a_script_is_recorded_with_its_gradients_and_optimizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hwsim.cli import main

    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(
        "import torch\nimport numpy as np\nnet = torch.nn.Linear(8, 4)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "x = torch.from_numpy(np.ones((5, 8), np.float32))\nfor _ in range(6):\n    opt.zero_grad()\n"
        "    net(x).relu().sum().backward()\n    opt.step()\n"
    )
    done = CliRunner().invoke(main, ["record", "train.py", "--runs", "2"])
    assert done.exit_code == 0, done.stderr
    text = Path("train.yaml").read_text()
    assert all(word in text for word in ("addmm@", "threshold_backward@", "mm@", "repeat:", "library: torch", "PyTorch"))
    assert hwsim.simulate("laptop", "train.yaml").makespan_s > 0


@WITH_TORCH
def test_a_model_without_memory_is_recorded_by_its_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hwsim_calibrate.recording.script import record_script

    script = tmp_path / "big.py"
    script.write_text(
        "import torch\nnet = torch.nn.Linear(40_000, 50_000)\nnet(torch.ones(64, 40_000)).sum().backward()\n", encoding="utf-8"
    )
    found = record_script(script, fake=True)
    products = [step.op.keys for step in found.steps if step.op.kind == "matmul"]
    assert {(each["m"], each["n"], each["k"]) for each in products} >= {(64, 50_000, 40_000), (50_000, 40_000, 64)}
    assert found.fake
    assert found.dispatch == 0.0


@WITH_TORCH
def test_facts_of_a_call_stand_in_the_order_of_its_schema() -> None:
    import torch

    func = torch.ops.aten.addmm.default
    facts = facts_of(func, (torch.ones(4), torch.ones(2, 3), torch.ones(4, 3).t()), {})
    assert facts == facts_of_case("float32:4 float32:2x3 float32:3x4/t 1 1")
    assert free(torch.ops.aten.t.default)
    assert not free(func)
