"""A script of cupy becomes a workload of a GPU; numpy stands in for cupy, with arrays that say they are elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

import hwsim
from hwsim_calibrate.recording.cupy import Stand
from hwsim_calibrate.recording.script import Recording, record_script
from hwsim_calibrate.recording.writing import document

SECONDS = 5e-4  # of every call, by the stand-in's events
SCRIPT = """
import cupy as cp
import numpy as np

x = cp.asarray(np.ones((64, 32), np.float32))
w = cp.ones((32, 16), cp.float32)
for _ in range(5):
    y = cp.maximum(x @ w, 0)
    y += 1
total = y.sum(axis=0)
back = cp.asnumpy(total)
z = x.T[:4] * 2
print(float(y.max()), back.shape, len(z))
"""


class Elsewhere(np.ndarray):
    """An array that says it lies in a GPU's memory."""

    @property
    def data(self) -> Any:
        owner: Any = self
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return SimpleNamespace(mem=SimpleNamespace(ptr=owner.__array_interface__["data"][0]))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {}

    def get(self) -> Any:
        return np.array(self.view(np.ndarray))

    def sum(self, axis: Any = None) -> Any:  # type: ignore[override]
        return np.asarray(np.add.reduce(self.view(np.ndarray), axis=axis)).view(Elsewhere)

    def max(self, axis: Any = None) -> Any:  # type: ignore[override]
        return np.asarray(np.maximum.reduce(self.view(np.ndarray), axis=axis)).view(Elsewhere)


class Event:
    def record(self, stream: Any) -> None:
        stream.synchronize()

    def synchronize(self) -> None:
        return None


def stand_in() -> ModuleType:
    """A module like cupy."""
    module: Any = ModuleType("cupy")

    def there(name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            return np.asarray(getattr(np, name)(*args, **options)).view(Elsewhere)

        return call

    for name in ("asarray", "ones", "maximum", "exp", "sort"):
        setattr(module, name, there(name))
    module.asnumpy = lambda array: array.get()
    module.float32, module.ndarray = np.float32, Elsewhere
    module.RawKernel = lambda _, __: lambda _, __, arrays: arrays[0].fill(7)
    module.cuda = SimpleNamespace(
        Event=Event, get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
        get_elapsed_time=lambda _, __: SECONDS * 1e3,
    )  # fmt: skip
    return module  # type: ignore[no-any-return]


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    module = stand_in()
    monkeypatch.setitem(sys.modules, "cupy", module)
    yield module
    assert sys.modules["cupy"] is module


def recorded(folder: Path, text: str = SCRIPT, runs: int = 1) -> Recording:
    script = folder / "script.py"
    script.write_text(text, encoding="utf-8")
    return record_script(script, runs=runs)


@pytest.mark.usefixtures("cupy")
def test_the_calls_of_a_gpu_are_these(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = recorded(tmp_path).steps
    assert capsys.readouterr().out == "33.0 (16,) 4\n"
    ops = [(step.name, step.op.kind) for step in steps if step.op.keys.get("count") != 0]
    turn = [("matmul", "matmul"), ("maximum", "elementwise"), ("add", "elementwise")]
    assert ops == [
        ("ones", "elementwise"), ("asarray", "copy"), ("ones", "elementwise"), *turn * 5, ("sum", "reduce"), ("asnumpy", "copy"),
        ("multiply", "elementwise"), ("max", "reduce"), ("get", "copy"),
    ]  # fmt: skip
    by = {step.name: dict(step.op.keys) for step in steps}
    assert by["matmul"] == {"m": 64, "n": 16, "k": 32, "dtype": "fp32", "device": "gpu"}
    assert by["add"] == {"shape": [64, 16], "dtype": "fp32", "inputs": 1, "into": "self", "device": "gpu"}
    assert by["asarray"] == {"from": "cpu", "to": "gpu", "bytes": "8192 B", "memory": "pageable"}
    assert by["get"] == {"from": "gpu", "to": "cpu", "bytes": "4 B", "memory": "pageable"}
    assert {step.cpu for step in steps if step.op.keys.get("device") == "gpu"} == {SECONDS}


@pytest.mark.usefixtures("cupy")
def test_its_workload_runs_on_a_machine_with_a_gpu(tmp_path: Path) -> None:
    recording = recorded(tmp_path, runs=2)
    assert recording.dispatch > 0
    text, measured = document(recording)
    workload = yaml.safe_load(text)
    assert workload["runtime"]["blocks"] == "cpu"
    assert "numpy and cupy" in workload["notes"]
    assert any("repeat" in each for each in workload["program"]["do"])
    assert sum(row["times"] for row in measured["ops"]) == len(recording.steps)
    run = hwsim.simulate("d2l-gpu-workstation", text_file(tmp_path, text), expect=False)
    assert run.makespan_s > 0
    assert any(each["busy_s"] > 0 for each in run.to_json()["capacities"] if each["name"].startswith("gpu"))


def text_file(folder: Path, text: str) -> str:
    path = folder / "workload.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.usefixtures("cupy")
def test_a_kernel_of_one_s_own_is_busy_on_the_gpu(tmp_path: Path) -> None:
    text = "import cupy\nx = cupy.ones((4, 4))\nk = cupy.RawKernel('', 'k')\nk((1,), (1,), (x,))\nassert float(x[0, 0]) == 7.0\n"
    step = next(step for step in recorded(tmp_path, text).steps if step.name == "kernel")
    assert (step.op.kind, dict(step.op.keys)) == ("busy", {"device": "gpu"})
    assert "busy: {name: kernel@4, device: gpu, time: 500 us" in document(recorded(tmp_path, text))[0]


def test_the_module_is_the_script_s_own_again(cupy: ModuleType) -> None:
    stand = Stand(cupy)
    array = stand.ones(3)
    assert (array + 1).plain.tolist() == [2, 2, 2]
    assert stand.float32 is np.float32
    assert bool(array[0] == 1)
    array[1:] = 5
    assert [float(each) for each in array] == [1, 5, 5]
