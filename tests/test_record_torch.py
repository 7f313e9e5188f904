"""Recordings of PyTorch: statements from facts, without it; a script recorded, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import hwsim
from hwsim.importers.recording import SliceFacts
from hwsim_calibrate.recording.tape import NoOp
from hwsim_calibrate.recording.torch_calls import facts_of, is_free, statement_of
from tests import command

STEP = Path(__file__).parent / "data" / "recorded" / "mlp.yaml"
WITH_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.mark.parametrize(
    ("name", "shapes", "op"),
    [
        ("mm", ((8, 16), (16, 4)), {"matmul": {"m": 8, "n": 4, "k": 16, "dtype": "fp32"}}),
        ("add_.Tensor", ((8, 16), (8, 16)), {"elementwise": {"count": 128, "inputs": 2, "dtype": "fp32", "flop_each": 1}}),
    ],
)
def test_an_operator_is_the_op_that_its_shapes_make_it(
    name: str, shapes: tuple[tuple[int, ...], ...], op: dict[str, object]
) -> None:
    kind, keys = statement_of(f"aten::{name}", SliceFacts(shapes=shapes, dtypes=("float32",) * len(shapes)))
    assert {kind: keys} == op
    program = [{kind: {"device": device, **keys}} for device in ("cpu", "gpu0")]
    assert hwsim.simulate("gpu-workstation", {"hwsim": "workload/1", "program": program}).makespan_s > 0
    with pytest.raises(NoOp, match="operator not supported"):
        statement_of("mine::fast_thing", SliceFacts(shapes=((8,),), dtypes=("float32",)))


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

    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(
        "import torch\nimport numpy as np\nnet = torch.nn.Linear(8, 4)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "x = torch.from_numpy(np.ones((5, 8), np.float32))\nfor _ in range(6):\n    opt.zero_grad()\n"
        "    net(x).relu().sum().backward()\n    opt.step()\n"
    )
    command.hwsim("record", "train.py", "--runs", "2")
    text = Path("train.yaml").read_text()
    assert all(word in text for word in ("addmm@", "threshold_backward@", "mm@", "repeat:", "PyTorch"))
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
    assert {(product["m"], product["n"], product["k"]) for product in products} >= {(64, 50_000, 40_000), (50_000, 40_000, 64)}
    assert found.fake
    assert found.dispatch == 0.0


@WITH_TORCH
def test_facts_of_a_call_stand_in_the_order_of_its_schema() -> None:
    import torch

    func = torch.ops.aten.addmm.default
    facts = facts_of(func, (torch.ones(4), torch.ones(2, 3), torch.ones(4, 3).t()), {})
    assert facts == SliceFacts(((4,), (2, 3), (3, 4), (), ()), ("float32",) * 3 + ("", ""), ((1,), (3, 1), (1, 3), (), ()),
                          ("", "", "", "1", "1"))  # fmt: skip
    assert is_free(torch.ops.aten.t.default)
    assert not is_free(func)
