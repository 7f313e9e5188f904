"""What each op asks of a machine, and where it runs."""

from __future__ import annotations

from typing import Any

import pytest

from hwsim.api import load_machine
from hwsim.machine import Machine
from hwsim.ops import OPS, CannotPlace, LoweredOp, Scope
from hwsim.spec import Mistakes, decode, read_text

MACHINE = """
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 4, flop: {fp32: 400 GFLOP/s}, random: 100e6 1/s, memory: {size: 16 GB, bandwidth: 40 GB/s}}
  gpu: {kind: gpu, count: 2, flop: {fp32: 10 TFLOP/s, fp16: 100 TFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}
  disk: {kind: disk, read: 2 GB/s, write: 1 GB/s}
links:
  - {between: [cpu, gpu*], kind: direct, bandwidth: 10 GB/s, latency: 1 us}
  - {between: [gpu0, gpu1], kind: direct, bandwidth: 50 GB/s, latency: 1 us}
"""


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load_machine(MACHINE)


def place(machine: Machine, kind: str, keys: str, **scope: Any) -> LoweredOp:
    mistakes = Mistakes()
    cls: Any = OPS[kind]
    op = decode(read_text(keys), cls, mistakes)
    mistakes.raise_if_any()
    placed: LoweredOp = op.lower(Scope(machine, host="cpu", **scope))
    return placed


def seconds(machine: Machine, placed: LoweredOp) -> float:
    return placed.time if placed.cost is None else placed.cost.demand.alone(machine.rates())


@pytest.mark.parametrize(
    ("kind", "keys", "where", "expected"),
    [
        ("compute", "{device: gpu0, flop: 1 TFLOP, bytes: 10 GB}", "gpu0.compute", 0.1),
        ("compute", "{device: gpu0, flop: 1 TFLOP, bytes: 500 GB}", "gpu0.compute", 0.5),
        ("compute", "{device: gpu0, flop: 1 TFLOP, dtype: fp16}", "gpu0.compute", 0.01),
        ("matmul", "{device: gpu1, m: 1000, n: 2000, k: 5000}", "gpu1.compute", 2e-3),
        ("matmul", "{device: gpu1, m: 1, n: 1000, k: 1000, batch: 10}", "gpu1.compute", 10 * 1_002_000 * 4 / 1e12),
        ("elementwise", "{device: gpu0, count: 1e9}", "gpu0.compute", 8e-3),
        ("elementwise", "{device: gpu0, shape: [1000, 1000, 1000], inputs: 2, dtype: fp16}", "gpu0.compute", 6e-3),
        ("elementwise", "{device: gpu0, count: 1e9, flop_each: 1000}", "gpu0.compute", 0.1),
        ("softmax", "{device: gpu0, shape: [1000, 1000, 1000]}", "gpu0.compute", 8e-3),
        ("softmax", "{device: gpu0, count: 1e9, passes: 2}", "gpu0.compute", 12e-3),
        ("layernorm", "{device: gpu0, count: 1e9, dtype: fp16}", "gpu0.compute", 4e-3),
        ("layernorm", "{device: gpu0, count: 1e9, dtype: fp16, passes: 2}", "gpu0.compute", 6e-3),
        ("reduce", "{device: cpu, shape: 1e9}", "cpu.compute", 0.1),
        ("random", "{device: cpu, count: 4e8}", "cpu.compute", 1.0),
        ("busy", "{device: cpu, time: 6 ms, times: 64}", "cpu.compute", 0.384),
        ("busy", "{device: gpu1, time: 6 ms, queue: other}", "gpu1.other", 0.006),
        ("busy", "{device: disk, time: 1 ms}", "disk.compute", 0.001),
        ("copy", "{from: cpu, to: gpu0, bytes: 10 GB}", "gpu0.h2d", 1 + 1e-6),
        ("copy", "{from: gpu1, to: cpu, bytes: 10 GB}", "gpu1.d2h", 1 + 1e-6),
        ("copy", "{from: gpu1, to: cpu, bytes: 10 GB, queue: compute}", "gpu1.compute", 1 + 1e-6),
        ("copy", "{from: gpu1, to: gpu0, bytes: 50 GB}", "gpu1.p2p", 1 + 1e-6),
        ("copy", "{from: cpu, to: cpu, bytes: 20 GB}", "cpu.copy", 1.0),
        ("read", "{from: disk, bytes: 1 GB, times: 4}", "disk.read", 2.0),
        ("write", "{to: disk, bytes: 1 GB}", "disk.write", 1.0),
        ("send", "{from: gpu0, to: gpu1, bytes: 5 GB}", "gpu0.send", 0.1 + 1e-6),
    ],
)
def test_an_op_alone_takes_what_its_formula_says(machine: Machine, kind: str, keys: str, where: str, expected: float) -> None:
    placed = place(machine, kind, keys)
    assert f"{placed.device}.{placed.queue}" == where
    assert seconds(machine, placed) == pytest.approx(expected, rel=1e-9)


def test_self_is_where_ops_of_each_run(machine: Machine) -> None:
    assert place(machine, "matmul", "{m: 1, n: 1, k: 1}", own="gpu1").device == "gpu1"
    assert place(machine, "busy", "{time: 1 s}", own="gpu1").device == "gpu1"
    assert place(machine, "send", "{to: gpu0, bytes: 1 B}", own="gpu1").device == "gpu1"


def test_pieces_share_the_work_and_each_pays_the_latency(machine: Machine) -> None:
    placed = place(machine, "compute", "{device: gpu0, flop: 1 TFLOP, pieces: 8}")
    assert (placed.pieces, placed.size) == (8, 0.125)


@pytest.mark.parametrize(
    ("kind", "keys", "message"),
    [
        ("matmul", "{m: 1, n: 1, k: 1}", "needs a `device`"),
        ("matmul", "{device: disk, m: 1, n: 1, k: 1}", "expected a cpu or a gpu"),
        ("elementwise", "{device: cpu}", "`count` or `shape`"),
        ("elementwise", "{device: cpu, count: 1, shape: [1]}", "expected either `count` or `shape`"),
        ("send", "{to: gpu0, bytes: 1 B}", "requires `from`"),
    ],
)
def test_an_op_that_fits_no_device_says_so(machine: Machine, kind: str, keys: str, message: str) -> None:
    with pytest.raises(CannotPlace, match=message):
        place(machine, kind, keys)


@pytest.mark.parametrize(("device", "capacity", "rate"), [("cpu", "cpu.memory", 40e9), ("gpu0", "gpu0.memory", 1e12)])
def test_a_copy_of_a_part_to_itself_reads_and_writes_its_memory(
    machine: Machine, device: str, capacity: str, rate: float
) -> None:
    """A memory has one bandwidth for both: n bytes are read and n written, as by an op that makes n new bytes of n."""
    copied = place(machine, "copy", f"{{from: {device}, to: {device}, bytes: 4 GB}}")
    made = place(machine, "elementwise", f"{{device: {device}, count: 1e9}}")
    assert dict(copied.cost.demand.amounts)[capacity] == dict(made.cost.demand.amounts)[capacity]
    assert seconds(machine, copied) == seconds(machine, made) == pytest.approx(8e9 / rate)
