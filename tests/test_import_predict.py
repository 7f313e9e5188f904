"""Recordings on another machine: kernels by shapes, copies by links, collectives by the machine's library."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hwsim.importers.answers import answer, text
from hwsim.importers.formats import read
from hwsim.importers.predicting import Predicted, predict
from hwsim.importers.rank_placement import WrongMachine
from hwsim.importers.recording import Recording
from hwsim.importers.replay import explain
from hwsim.importers.saved import save
from hwsim.models.library import load_network
from hwsim.prepare import load_machine
from hwsim.spec import SpecError
from scripts.network_shapes import OtherModel, shaped

MACHINE = """hwsim: machine/1
class: ideal
name: two unlike GPUs
parts:
  cpu: {kind: cpu, flop: {fp32: 1 TFLOP/s}, cores: 8, memory: {bandwidth: 100 GB/s}}
  gpu0: {kind: gpu, flop: {fp32: 10 TFLOP/s}, memory: {bandwidth: 1 TB/s}}
  gpu1: {kind: gpu, flop: {fp32: 5 TFLOP/s}, memory: {bandwidth: 500 GB/s}}
links:
  - {name: slot, between: [cpu, "gpu*"], kind: pcie, gen: 4, lanes: 16}
"""
SIDE = 4096
PRODUCT = 2 * SIDE**3 / 10e12  # seconds on gpu0


def recording(tmp_path: Path, *ranks: list[dict[str, Any]]) -> Recording:
    """A recording of the events of each rank."""
    files = []
    for number, events in enumerate(ranks):
        path = tmp_path / f"rank{number}.json"
        info = {"rank": number, "world_size": len(ranks), "backend": "nccl"}
        path.write_text(json.dumps({"distributedInfo": info, "schemaVersion": 1, "traceEvents": events}))
        files.append(path)
    return read("kineto", files)


def op(name: str, at: float, kernels: list[tuple[str, float, float]], dims: Any = None, **more: Any) -> list[dict[str, Any]]:
    """An operator of 20 us at that time (us) with its kernels (name, start, duration)."""
    args: dict[str, Any] = {} if dims is None else {"Input Dims": dims, "Input type": ["float"] * len(dims)}
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 20, "args": args | more}]
    for place, (kernel, start, duration) in enumerate(kernels):
        link = int(at * 10) + place + 1
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "dur": 4}
        events.append({**call, "ts": at + 2 + 5 * place, "args": {"correlation": link}})
        on_gpu = {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": start, "dur": duration}
        events.append({**on_gpu, "args": {"stream": 7, "device": 0, "correlation": link}})
    return events


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    path = tmp_path / "machine.yaml"
    path.write_text(MACHINE)
    return load_machine(path)


def times(found: Predicted, name: str) -> list[float]:
    """Seconds of the GPU ops with this name, in order."""
    body, graph = found.graph.blocks[0], found.graph
    return [time * 1e-15 for time, label in zip(body.time.tolist(), body.label.tolist(), strict=True)
            if name in graph.labels[label].name and graph.labels[label].kind in ("kernel", "copy", "collective")]  # fmt: skip


def test_kernels_of_one_operator_share_its_time_as_they_were_recorded(tmp_path: Path, machine: Any) -> None:
    events = op("aten::mm", 100, [("gemm", 110, 3000), ("splitK", 3120, 1000)], [[SIDE, SIDE], [SIDE, SIDE]])
    found = predict(explain(recording(tmp_path, events)), machine)
    assert times(found, "gemm") == pytest.approx([0.75 * PRODUCT], rel=1e-6)
    assert times(found, "splitK") == pytest.approx([0.25 * PRODUCT], rel=1e-6)
    assert [(row.name, row.how, row.count) for row in found.rows if row.kind == "matrix products"] == [("mm", "predicted", 1)]


def test_each_rank_is_on_its_own_gpu(tmp_path: Path, machine: Any) -> None:
    events = op("aten::mm", 100, [("gemm", 110, 3000)], [[SIDE, SIDE], [SIDE, SIDE]])
    found = predict(explain(recording(tmp_path, events, events)), machine)
    assert times(found, "gemm") == pytest.approx([PRODUCT, 2 * PRODUCT], rel=1e-6)
    with pytest.raises(WrongMachine, match="3 ranks use a GPU each, and the machine has 2 GPUs"):
        predict(explain(recording(tmp_path, events, events, events)), machine)


def test_kernels_without_shapes_keep_their_time_and_are_listed(tmp_path: Path, machine: Any) -> None:
    events = [*op("mine::fused", 100, [("mystery", 110, 500)], [[8, 8]]), *op("aten::add_", 200, [("vectorized", 700, 300)])]
    found = predict(explain(recording(tmp_path, events)), machine)
    assert times(found, "mystery") == pytest.approx([500e-6])
    kept = {(row.name, row.why): row.recorded for row in found.rows if row.how == "kept"}
    assert kept == {
        ("mine::fused", "operator not supported"): pytest.approx(500e-6),
        ("add_", "no shapes in the file"): pytest.approx(300e-6),
    }
    lines = "\n".join(text(answer(found)))
    assert "not predicted: 800 us, 100 % of the time of GPU ops" in lines
    assert "operator not supported: mine::fused 500 us" in lines


def test_a_shapeless_operator_inside_one_with_shapes_is_part_of_it(tmp_path: Path, machine: Any) -> None:
    outer = op("aten::mm", 100, [("gemm", 300, 3000)], [[SIDE, SIDE], [SIDE, SIDE]])
    inner = op("aten::fill_", 110, [("fill", 250, 20)])
    inner[0]["dur"] = 8
    outer[0]["dur"] = 60
    outer[1]["ts"] = 130
    found = predict(explain(recording(tmp_path, [*outer, *inner])), machine)
    assert times(found, "gemm")[0] + times(found, "fill")[0] == pytest.approx(PRODUCT, rel=1e-6)


def test_copies_take_the_links(tmp_path: Path, machine: Any) -> None:
    events = op("aten::copy_", 100, [("x", 110, 50)], [[1000], [1000]])
    copy = {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)"}
    events[-1] |= copy
    events[-1]["args"]["bytes"] = 100_000_000
    found = predict(explain(recording(tmp_path, events)), machine)
    assert times(found, "HtoD")[0] == pytest.approx(100e6 / 26e9, rel=0.2)  # PCIe 4.0 x16 without its headers


def test_short_kernels_and_copies_are_like_nothing_that_was_measured(tmp_path: Path, machine: Any) -> None:
    copy = op("aten::copy_", 300, [("x", 310, 1)], [[8], [8]])
    copy[-1] |= {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)"}
    copy[-1]["args"]["bytes"] = 32
    short = [
        *op("aten::mm", 100, [("gemm", 110, 3)], [[16, 16], [16, 16]]),
        *op("aten::mul", 200, [("mul", 210, 2)], [[16], [16]]),
        *copy,
    ]
    found = predict(explain(recording(tmp_path, short)), load_machine("p3.16xlarge"))
    rows = {row.kind: row for row in found.rows if row.how == "predicted"}
    assert set(rows) == {"matrix products", "elementwise", "copies"}
    assert {doubt.case for row in rows.values() for doubt in row.doubts} == {"outside"}
    assert all(row.doubts for row in rows.values())


def test_collectives_wait_as_the_replay_says_and_move_bytes_as_the_machine_does(tmp_path: Path, machine: Any) -> None:
    def rank(at: float) -> list[dict[str, Any]]:
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        compute = op("aten::mm", 100, [("gemm", 110, 3000)], [[SIDE, SIDE], [SIDE, SIDE]])
        said = {"Collective name": "allreduce", "In msg nelems": 25_000_000, "Out msg nelems": 25_000_000, "Group size": 2,
                "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}  # fmt: skip
        events = op("record_param_comms", 200, [(name, at, 5000 + 4000 - at)], **said)
        events[-1]["args"] |= said
        return [*compute, *events]

    found = predict(explain(recording(tmp_path, rank(3200), rank(3900))), machine)
    transfer = times(found, "AllReduce")
    assert transfer[0] == pytest.approx(transfer[1])
    assert transfer[0] == pytest.approx(100e6 / 26e9, rel=0.2)  # two ranks: the array once in each direction
    whole = answer(found)
    assert whole.makespan.value == pytest.approx(2 * PRODUCT + transfer[0], rel=0.05)  # it waits for the slower GPU
    assert {row.name for row in found.rows if row.kind == "collectives"} == {"allreduce among 2"}


def test_a_run_without_a_gpu_is_refused(tmp_path: Path, machine: Any) -> None:
    events = op("aten::mm", 100, [], [[1024, 1024], [1024, 1024]])
    with pytest.raises(WrongMachine, match="no rank uses a GPU"):
        predict(explain(recording(tmp_path, events)), machine)


@pytest.mark.parametrize(("length", "share", "is_ranged"), [(40.0, 0.05, True), (90_000.0, 0.8, False)])
def test_a_run_that_the_host_sets_has_no_range(
    length: float, share: float, *, is_ranged: bool, tmp_path: Path, machine: Any
) -> None:
    kernels = op("aten::mm", 0.0, [("gemm", 10.0, 2000.0)], [[4096, 4096], [4096, 4096]])
    host = {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": 100.0, "dur": length,
            "args": {"External id": 99}}  # fmt: skip
    found = answer(predict(explain(recording(tmp_path, [*kernels, host])), machine))
    stated = sum(found.stated.values())
    assert (stated > share) == (not is_ranged)
    assert (found.range is not None) == is_ranged
    said = "\n".join(text(found))
    assert ("not applicable: most times are recorded" in said) == (not is_ranged)
    if not is_ranged:
        assert max(found.stated, key=lambda name: found.stated[name]) == "host threads"
        assert "host threads" in said
        assert "run            90.1 ms, recorded" in said


@pytest.mark.slow
def test_shapes_of_a_network_are_found_in_a_run_without_any(reference_data: Path) -> None:
    path = reference_data / "traces" / "gpu" / "param_RTX2080Ti_resnet.json.gz"
    if not path.exists():
        pytest.skip("no such trace")
    run = read("kineto", [path])
    with pytest.raises(OtherModel, match="another model was run"):
        shaped(run, load_network("resnet-50"), 128)
    known, given = shaped(run, load_network("resnet-18"), 128)
    assert given.steps == 30
    found = answer(predict(explain(known), load_machine("workstation")))
    assert found.gpu.recorded == pytest.approx(4.734, rel=1e-3)
    assert abs(found.gpu.time / found.gpu.recorded - 1) < 0.25
    assert found.gpu.range.low < found.gpu.recorded < found.gpu.range.high
    within = {kind.name: abs((kind.ratio or 1.0) - 1) for kind in found.kinds}
    assert within["convolutions"] < 0.25
    assert within["norms"] < 0.25
    assert within["elementwise"] < 0.05


def test_a_step_of_hours_is_no_op_graph_s_file(tmp_path: Path, machine: Any) -> None:
    events = op("aten::mm", 0.0, [("gemm", 10.0, 100.0)], dims=[[2_000_000, 1_000_000], [1_000_000, 100_000]])
    found = predict(explain(recording(tmp_path, events)), machine)
    assert times(found, "gemm") == pytest.approx([2 * 2e6 * 1e6 * 1e5 / 10e12], rel=0.01)  # 11 h: more fs than an int64
    with pytest.raises(SpecError, match="simulate the workload itself"):
        save(replace(explain(recording(tmp_path, events)), graph=found.graph), tmp_path / "step.npz")
