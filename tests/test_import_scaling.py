"""Recordings on other numbers of ranks: data parallel copies, products divided among GPUs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwsim.importers.answers import answer
from hwsim.importers.predicting import predict
from hwsim.importers.recording import Recording
from hwsim.importers.replay import explain
from hwsim.importers.scaling import CannotScale, scaled
from hwsim.importers.tensor import split
from hwsim.prepare import load_machine
from tests.test_import_predict import op, recording

MACHINE = """hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, flop: {fp32: 1 TFLOP/s}, cores: 8, memory: {bandwidth: 100 GB/s}}
  gpu: {kind: gpu, count: 8, flop: {fp32: 10 TFLOP/s}, memory: {bandwidth: 1 TB/s}}
  switch: {kind: switch}
links:
  - {between: ["gpu*", switch], kind: nvlink, gen: 3, links: 12}
  - {between: [cpu, "gpu*"], kind: pcie, gen: 4, lanes: 16}
"""
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
WIDTH, INNER, TOKENS, HEADS = 2048, 8192, 4096, 16


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    path = tmp_path / "machine.yaml"
    path.write_text(MACHINE)
    return load_machine(path)


def trained(tmp_path: Path, products: list[float], group: list[int] | None = None, kind: str = "allreduce") -> Recording:
    """Ranks that each compute for that many us, and then exchange 25 million numbers."""
    ranks = group or list(range(len(products)))
    said = {"Collective name": kind, "In msg nelems": 25_000_000, "Out msg nelems": 25_000_000, "Group size": len(ranks),
            "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": str(ranks)}  # fmt: skip
    events = []
    for took in products:
        compute = op("mine::work", 100, [("work", 110, took)])
        exchange = op("record_param_comms", 200, [(NCCL, 120 + took, 6000 - took)], **said)
        exchange[-1]["args"] |= said
        events.append([*compute, *exchange])
    return recording(tmp_path, *events)


def test_new_ranks_are_like_recorded_ones_in_turn_and_wait_for_the_slowest(tmp_path: Path, machine: Any) -> None:
    run = explain(trained(tmp_path, [1000, 3000]))
    more = scaled(run, 8)
    assert [rank.number for rank in more.replay.recording.ranks] == list(range(8))
    assert more.assumed == ("rank r computes what rank r modulo 2 of the recording did, on a GPU of its own",)
    found = predict(more.replay, machine)
    body, graph = found.graph.blocks[0], found.graph
    work = [time for time, label in zip(body.time, body.label, strict=True) if graph.labels[label].name == "work"]
    assert work == [1e12, 3e12] * 4
    (row,) = [row for row in found.rows if row.kind == "collectives"]
    assert (row.name, row.count, row.how) == ("allreduce among 8", 8, "predicted")
    exchange = row.time / 8
    assert exchange == pytest.approx(2 * 7 / 8 * 100e6 / 300e9, rel=0.3)  # a ring of eight over NVLink 3
    assert answer(found).makespan.value == pytest.approx(3110e-6 + exchange, rel=0.05)


def test_as_many_ranks_as_recorded_are_the_recording(tmp_path: Path, machine: Any) -> None:
    run = explain(trained(tmp_path, [1000, 3000]))
    same = predict(scaled(run, 2).replay, machine)
    assert same.graph.blocks[0].time.tolist() == predict(run, machine).graph.blocks[0].time.tolist()


def test_what_a_recording_does_not_tell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotScale, match="no rule for fewer, 1"):
        scaled(explain(trained(tmp_path, [1000, 3000])), 1)
    with pytest.raises(CannotScale, match=r"a group \(0, 1\) of 2 of 4 ranks"):
        scaled(explain(trained(tmp_path, [1000, 1000, 1000, 1000], [0, 1])), 8)
    with pytest.raises(CannotScale, match="a send between two ranks"):
        scaled(explain(trained(tmp_path, [1000, 1000], kind="send")), 8)
    with pytest.raises(CannotScale, match="no norm tells the width"):
        split(explain(trained(tmp_path, [1000, 3000])), 2)


def transformer(tmp_path: Path, heads: int = HEADS) -> Recording:
    """One layer forward, and the gradients of its last product."""
    head = WIDTH // heads
    query = [1, heads, TOKENS, head]
    calls: list[tuple[str, Any]] = [
        ("aten::native_layer_norm", [[1, TOKENS, WIDTH], [], [WIDTH], [WIDTH], []]),
        ("aten::addmm", [[3 * WIDTH], [TOKENS, WIDTH], [WIDTH, 3 * WIDTH], [], []]),
        ("aten::_scaled_dot_product_flash_attention", [query, query, query, [], [], []]),
        ("aten::addmm", [[WIDTH], [TOKENS, WIDTH], [WIDTH, WIDTH], [], []]),
        ("aten::add", [[1, TOKENS, WIDTH], [1, TOKENS, WIDTH], []]),
        ("aten::native_layer_norm", [[1, TOKENS, WIDTH], [], [WIDTH], [WIDTH], []]),
        ("aten::addmm", [[INNER], [TOKENS, WIDTH], [WIDTH, INNER], [], []]),
        ("aten::gelu", [[1, TOKENS, INNER], []]),
        ("aten::addmm", [[WIDTH], [TOKENS, INNER], [INNER, WIDTH], [], []]),
    ]
    events = []
    for number, (name, dims) in enumerate(calls):
        events += op(name, 100 + 30 * number, [("kernel", 1000 * (number + 1), 900)], dims)
    backward = op("aten::mm", 600, [("kernel", 12_000, 900)], [[TOKENS, INNER], [INNER, WIDTH]])
    node = {"ph": "X", "cat": "cpu_op", "name": "AddmmBackward0", "pid": 1, "tid": 1, "ts": 590, "dur": 60, "args": {}}
    return recording(tmp_path, [*events, node, *backward])


def test_products_are_divided_by_columns_and_rows_and_summed_once_a_half(tmp_path: Path, machine: Any) -> None:
    run = explain(transformer(tmp_path))
    half = split(run, 4)
    rank = half.replay.recording.ranks[0]
    shapes = [rank.facts[number].shapes for number in rank.slices.facts[rank.slices.what == 0].tolist() if number >= 0]
    products = [shape[1:3] for shape in shapes if shape is not None and len(shape) == 5 and shape[2] and len(shape[2]) == 2]
    assert products == [
        ((TOKENS, WIDTH), (WIDTH, 3 * WIDTH // 4)),
        ((TOKENS, WIDTH // 4), (WIDTH // 4, WIDTH)),
        ((TOKENS, WIDTH), (WIDTH, INNER // 4)),
        ((TOKENS, INNER // 4), (INNER // 4, WIDTH)),
    ]
    assert ((1, TOKENS, INNER // 4), ()) in shapes
    found, whole = predict(half.replay, machine, divided=half), predict(run, machine)
    time = {row.name: row.time for row in found.rows}
    alone = {row.name: row.time for row in whole.rows}
    assert time["addmm"] == pytest.approx(alone["addmm"] / 4, rel=1e-3)
    assert time["native_layer_norm"] == pytest.approx(alone["native_layer_norm"])
    (summed,) = [row for row in found.rows if row.name == "allreduce of activations among 4"]
    assert summed.count == 3  # of both halves forward, and of the input's gradients of one
    size = TOKENS * WIDTH * 4.0
    assert summed.time == pytest.approx(3 * 2 * 3 / 4 * size / 300e9, rel=0.3)


def test_what_does_not_divide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotScale, match="does not divide by 3"):
        split(explain(transformer(tmp_path)), 3)
    with pytest.raises(CannotScale, match="does not divide"):
        split(explain(transformer(tmp_path, heads=24 // 3)), 3)
