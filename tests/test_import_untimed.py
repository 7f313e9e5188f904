"""Host traces without times: who works, on which GPU, and the same prediction as from a profile with times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwsim.importers.answers import answer, as_dict, text
from hwsim.importers.formats import read
from hwsim.importers.predicting import Predicted, predict
from hwsim.importers.recording import Recording
from hwsim.importers.replay import explain
from hwsim.prepare import load_machine

MACHINE = """hwsim: machine/1
class: ideal
name: two GPUs
parts:
  cpu: {kind: cpu, flop: {fp32: 1 TFLOP/s}, cores: 8, memory: {bandwidth: 100 GB/s}}
  gpu: {count: 2, kind: gpu, flop: {fp32: 10 TFLOP/s}, memory: {bandwidth: 1 TB/s}}
links:
  - {name: slot, between: [cpu, "gpu*"], kind: pcie, gen: 4, lanes: 16}
"""
SIDE = 2048
SQUARE = [SIDE, SIDE]
# (name, depth, shapes, launches): a gradient of a bias inside that of a layer, wrappers around what works, and views
OPS: list[tuple[str, int, list[list[int]], bool]] = [
    ("aten::linear", 0, [SQUARE, SQUARE], False),
    ("aten::t", 1, [SQUARE], False),
    ("aten::addmm", 1, [[SIDE], SQUARE, SQUARE], True),
    ("aten::relu_", 0, [SQUARE], False),
    ("aten::clamp_min_", 1, [SQUARE], True),
    ("aten::to", 0, [SQUARE], False),
    ("aten::zeros_like", 0, [SQUARE], False),
    ("aten::empty_like", 1, [SQUARE], False),
    ("aten::zero_", 1, [SQUARE], False),
    ("aten::fill_", 2, [SQUARE], True),
    ("aten::mm", 0, [SQUARE, SQUARE], True),
    ("aten::sum", 1, [SQUARE], True),
    ("fbgemm::lookup", 0, [SQUARE], True),
]


def tensor(shape: list[int], storage: int, device: str) -> list[Any]:
    count = 1
    for side in shape:
        count *= side
    return [storage + 1000, storage, 0, count, 4, device]


def node(number: int, parent: int, name: str, shapes: list[list[int]], device: str, **attrs: Any) -> dict[str, Any]:
    values = [tensor(shape, number * 10 + place, device) for place, shape in enumerate(shapes)]
    types = ["Tensor(float)"] * len(shapes)
    said = {"scope": 0, "tid": 1, **attrs}
    side = {"values": values, "shapes": shapes, "types": types, "strides": []}
    return {"id": number, "name": name, "ctrl_deps": parent, "inputs": side, "outputs": {"values": [], "shapes": [], "types": []},
            "attrs": [{"name": key, "type": "uint64", "value": value} for key, value in said.items()]}  # fmt: skip


def host(path: Path, *nodes: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": path.stem, "nodes": list(nodes)}))
    return path


def layer(device: str) -> list[dict[str, Any]]:
    nodes, above = [], {0: 2}
    for number, (name, depth, shapes, _) in enumerate(OPS, 10):
        nodes.append(node(number, above[depth], name, shapes, device))
        above[depth + 1] = number
    return nodes


def profile(path: Path) -> Recording:
    """The same ops as a profile with times: a kernel of 50 us for each that launches."""
    events: list[dict[str, Any]] = []
    for number, (name, depth, shapes, launches) in enumerate(OPS):
        inside = next((at for at in range(number + 1, len(OPS)) if OPS[at][1] <= depth), len(OPS)) - number
        args = {"Input Dims": shapes, "Input type": ["float"] * len(shapes)}
        slot = {"ph": "X", "pid": 1, "tid": 1}
        at = 100.0 * number
        events.append({**slot, "cat": "cpu_op", "name": name, "ts": at, "dur": 100 * inside - 1 - depth, "args": args})
        if launches:
            call = {
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "ts": at + 5,
                "dur": 4,
                "args": {"correlation": number + 1},
            }
            on_gpu = {"stream": 7, "device": 0, "correlation": number + 1}
            kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 11, "dur": 50, "args": on_gpu}
            events += [{**slot, **call}, kernel]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return read("kineto", [path])


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    path = tmp_path / "machine.yaml"
    path.write_text(MACHINE)
    return load_machine(path)


def predicted(machine: Any, *files: Path) -> Predicted:
    return predict(explain(read("host", list(files))), machine)


def test_a_file_without_times_predicts_what_the_same_ops_predict_as_a_profile(tmp_path: Path, machine: Any) -> None:
    def rows(found: Predicted) -> dict[tuple[str, str], Any]:
        return {(row.kind, row.name): (row.count, pytest.approx(row.time)) for row in found.rows if row.how == "predicted"}

    from_host = predicted(machine, host(tmp_path / "a.json", *layer("cuda:0")))
    from_profile = predict(explain(profile(tmp_path / "b.json")), machine)
    assert rows(from_host) == rows(from_profile)
    assert {name for _, name in rows(from_host)} == {"addmm", "clamp_min_", "fill_", "mm", "sum"}
    assert from_host.devices == ("gpu0",)
    assert [row.name for row in from_host.rows if row.how == "kept"] == ["fbgemm::lookup"]


def test_nothing_is_said_to_be_recorded(tmp_path: Path, machine: Any) -> None:
    step = [node(1, 0, "ProfilerStep#3", [], "cpu", scope=7), *layer("cuda:0")]
    for each in step[1:]:
        each["ctrl_deps"] = 1 if each["ctrl_deps"] == 2 else each["ctrl_deps"]
    found = answer(predicted(machine, host(tmp_path / "a.json", *step)))
    lines = "\n".join(text(found))
    assert "recorded" not in lines
    assert "ratio" not in lines
    assert "fbgemm::lookup  1: no such operator is known" in lines
    assert "launching takes the host no time" in lines
    document = as_dict(found)
    assert document["recorded_s"] is None
    assert {row["ratio"] for row in document["kinds"]} == {None}
    assert [step["predicted_s"] for step in document["steps"]] == [pytest.approx(found.makespan.value, rel=1e-3)]


def test_copies_between_host_and_gpu_take_the_link(tmp_path: Path, machine: Any) -> None:
    copy = node(10, 2, "aten::copy_", [[25_000_000], [25_000_000]], "cuda:1")
    copy["inputs"]["values"][1][5] = "cpu"
    row = next(row for row in predicted(machine, host(tmp_path / "a.json", copy)).rows if row.kind == "copies")
    assert row.time == pytest.approx(100e6 / 26e9, rel=0.2)  # PCIe 4.0 x16


def test_collectives_of_ranks_meet_though_their_files_differ(tmp_path: Path, machine: Any) -> None:
    def rank(number: int, products: int) -> Path:
        before = [node(10 + at, 2, "aten::mm", [SQUARE, SQUARE], "cuda:0") for at in range(products)]
        outer = node(50, 2, "c10d::allreduce_", [], "cuda:0")
        inner = node(51, 50, "nccl:all_reduce", [[25_000_000]], "cuda:0", scope=7)
        user = node(53, 2, "aten::mul_", [[25_000_000]], "cuda:0")
        view = node(52, 2, "aten::narrow", [[25_000_000]], "cuda:0")
        view["inputs"]["values"][0][1] = user["inputs"]["values"][0][1] = inner["inputs"]["values"][0][1]
        view["outputs"] = view["inputs"]
        return host(tmp_path / f"rank{number}.json", *before, outer, inner, view, user)

    found = predicted(machine, rank(0, 1), rank(1, 6))
    assert len(found.replay.meetings) == 1
    by_name = {row.name: row for row in found.rows}
    summed, user = by_name["allreduce among 2"], by_name["mul_"]
    assert summed.count == 2
    product = by_name["mm"].time / 7
    whole = answer(found).makespan.value
    assert whole == pytest.approx(6 * product + summed.time / 2 + user.time / 2, rel=0.02)  # it waits, and is waited for


def test_a_run_without_a_gpu_counts_nested_operators_once(tmp_path: Path, machine: Any) -> None:
    found = predicted(machine, host(tmp_path / "a.json", *layer("cpu")))
    products = [row for row in found.rows if row.kind == "matrix products" and row.how == "predicted"]
    assert sorted(row.name for row in products) == ["addmm", "mm"]
    assert sum(row.time for row in products) == pytest.approx(2 * 2 * SIDE**3 / (1e12 / 8), rel=0.05)
