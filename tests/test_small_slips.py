"""Branches and factors that a slip of one character would change while every law still holds: each pinned by its own case."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.communication.flows import Task
from hwsim.communication.plan import RankGroup
from hwsim.communication.selection import _hardware
from hwsim.communication.timing import collective_sends
from hwsim.communication.tuning import PCIE, Hardware, candidates
from hwsim.devices import Gpu
from hwsim.devices.arm import Seek, SeekCurve
from hwsim.devices.convolution_speeds import units_of
from hwsim.devices.cores import Numa
from hwsim.devices.kernels import Corrections, MatmulTime, MeasuredFunctions
from hwsim.devices.roofline import CannotCompute, LocalMemory
from hwsim.devices.storage import StorageAccesses
from hwsim.devices.work import LibraryCall, MatmulShape
from hwsim.models import ParallelPlan, Transformer, load_framework
from hwsim.models.architectures.unit_layers import _linear
from hwsim.models.library import read_model
from hwsim.models.plan import Sharding, derive_plan
from hwsim.models.stages import adding_of
from hwsim.spec import SpecError, read_text
from hwsim.workload.events import Event, _steps
from hwsim.workload.thread import _same_past
from tests import command


def test_writes_take_more_of_one_core_than_reads_where_the_domain_says_so() -> None:
    domains = Numa(domains=1, core_write_cost=2.0)
    assert domains.domain(1, 1e9, 1e9, 1e12, 10e9) == pytest.approx(0.3)
    assert domains.domain(1, 2e9, 0.0, 1e12, 10e9) == pytest.approx(0.2)


def test_a_region_without_a_byte_is_refused() -> None:
    with pytest.raises(CannotCompute, match="region"):
        StorageAccesses(size=4096, region=0.0)


@pytest.mark.parametrize(("pair", "there"), [(RankGroup(2), True), (RankGroup(8), True), (RankGroup(2, (1, 1)), False)])
def test_the_switch_adds_for_two_gpus_of_a_node_but_not_for_one_of_each(pair: RankGroup, there: bool) -> None:
    machine = load_machine("dgx-h100")
    assert _hardware(machine, "gpu0", pair).nvls is there


def test_amd_hosts_take_twice_as_long_to_post_a_step_between_nodes() -> None:
    found = {}
    for cpu in ("intel", "amd"):
        hardware = Hardware("ampere", 12 * 20.0, nics=8, nic=25.0, cpu=cpu)
        rings = candidates(hardware, "reduce-scatter", RankGroup(16, (8, 8)), 1024.0)
        found[cpu] = next(ring for ring in rings if (ring.method, ring.protocol) == ("ring", "simple")).latency
    inside = 15 - 1  # steps of the ring that stay in a node
    assert found["amd"] - found["intel"] == pytest.approx(inside * (6.0 - 3.4) * 1e-6)


def test_the_nearest_measured_sizes_count_most() -> None:
    known = Corrections(width=2.0, shrink=0.0, points={"f": ((2.0, 2.0), (32.0, 8.0))})
    near, far = math.exp(-1 / 8), math.exp(-9 / 8)
    expected = math.exp((near * math.log(2.0) + far * math.log(8.0)) / (near + far))
    ratio, is_measured = known.of("f", (4.0,))
    assert ratio == pytest.approx(expected)
    assert not is_measured


def test_a_disk_of_three_cylinders_seeks_in_a_straight_line() -> None:
    assert Seek(cylinders=3, track=1e-3, average=2e-3, full=4e-3).curve() == SeekCurve(1e-3, 0.0, 1e-3, 1e-3, 1.0)


def test_a_layer_of_products_does_two_flop_a_multiplication_and_moves_its_matrices_once() -> None:
    work = _linear("fc", 2, 3, 5, "fp32").work
    assert (work.flop, work.reads, work.writes) == (2 * 2 * 3 * 5, (2 * 5 + 5 * 3) * 4, 2 * 3 * 4)


@pytest.mark.parametrize(("ratio", "units"), [(2.9, "vector"), (3.5, "volta"), (8.0, "volta")])
def test_half_precision_three_times_as_fast_is_of_matrix_units(ratio: float, units: str) -> None:
    assert units_of(Gpu(flop={"fp32": 1e12, "fp16": ratio * 1e12}, memory=LocalMemory(1e12)), "fp16") == units


@pytest.mark.parametrize(("sharding", "part"), [("zero-1", 1.0), ("zero-2", 0.25)])
def test_gradients_are_added_up_in_the_shards_that_are_kept(sharding: Sharding, part: float) -> None:
    plan = ParallelPlan(global_batch=16, sharding=sharding)
    laid = derive_plan(Transformer(layers=2, hidden=128, heads=1, vocab=1), plan, 4)
    [kernel] = adding_of(laid, replace(load_framework("megatron-core"), accumulate=10.0), 1e6)
    assert (kernel.work.reads, kernel.work.writes) == pytest.approx((6e6 * part, 4e6 * part))


def test_a_jitter_takes_its_mean_more() -> None:
    event = Event(at=0.0, part=("gpu0",), lasting=10.0, jitter=0.2, every=1e-3)
    moments, speeds = (column.tolist() for column in _steps(event, "gpu0", 10**17))
    assert (moments[0], moments[-1], speeds[-1]) == (0, 10**16, 1.0)
    work = [(until - begin) * speed for begin, until, speed in zip(moments, moments[1:], speeds, strict=False)]
    assert len(work) == pytest.approx(10_000, rel=0.02)
    assert work[:-1] == pytest.approx([1e12 / 1.2] * (len(work) - 1), rel=1e-9)
    assert 0.0 < work[-1] <= 1e12 / 1.2
    assert math.fsum(1.0 / speed - 1.0 for speed in speeds) / len(work) == pytest.approx(0.2, rel=0.05)
    assert max(speeds) <= 1.0
    early = [column.tolist() for column in _steps(event, "gpu0", 10**15)]  # as far as asked for, and the same
    assert early == [moments[: len(early[0])], speeds[: len(early[0])]]
    assert early[0][-1] < 10**15 <= moments[len(early[0])]


def test_what_the_last_chunk_left_is_not_called_unchanged() -> None:
    second: dict[tuple[object, ...], tuple[int, int]] = {("x",): (2, 0)}
    third: dict[tuple[object, ...], tuple[int, int]] = {("x",): (3, 0)}
    assert not _same_past(third, third, 4, 0)
    assert _same_past(second, second, 4, 0)
    assert _same_past(second, third, 4, 0)


def test_a_name_that_is_waited_for_in_vain_is_shown_where_it_stands(tmp_path: Path) -> None:
    text = "hwsim: workload/1\nprogram:\n  - busy: {device: cpu, time: 1 s}\n  - wait: nope\n"
    with pytest.raises(SpecError, match=r":4:11: there is no op or value called 'nope'"):
        hwsim.simulate("d2l-laptop", text)
    file = tmp_path / "workload.yaml"
    file.write_text(text, encoding="utf-8")
    said = command.hwsim("check", file, code=2)
    assert ":4:11: there is no op or value called 'nope'" in said.output


def test_only_the_first_send_of_a_collective_says_what_was_chosen() -> None:
    machine = load_machine("dgx-h100")
    costs = [send.cost for send in collective_sends(Task(machine, "all-reduce", ["gpu0", "gpu1", "gpu2"], 1e6), None)]
    assert costs[0].choice is not None
    assert all(cost.choice is None for cost in costs[1:])


def test_sizes_far_apart_weigh_by_the_square_of_the_width() -> None:
    narrow = Corrections(width=4.0, shrink=1.0, points={"f": ((2.0, 2.0),)})
    weight = math.exp(-4.0 / 32.0)
    assert narrow.of("f", (8.0,))[0] == pytest.approx(math.exp(weight * math.log(2.0) / (weight + 1.0)))


def test_a_measured_product_takes_its_arithmetic_and_its_operands() -> None:
    kernels = MeasuredFunctions(
        products={"fp64": MatmulTime(flop=1e9, left=1e-9, right=2e-9, result=4e-9, edge=8e-9, depth=16e-9)}
    )
    call = LibraryCall(function="matmul", dtype="fp64", product=MatmulShape(1, 2, 3, element=8))
    one = 2 * 6 / 1e9 + 1 * 3 * 1e-9 + 3 * 2 * 2e-9 + 1 * 2 * 4e-9 + (1 + 2) * 8e-9 + 3 * 16e-9
    assert kernels._computing(call)[1] == pytest.approx(one)


def test_gradients_are_added_up_once_a_micro_batch() -> None:
    found = {}
    for batch in ("32", "64"):
        words = f"estimate dgx-a100 gpt2-xl --global-batch {batch} --microbatch 1 --framework megatron-deepspeed --json".split()
        found[batch] = json.loads(command.hwsim(*words).stdout)["shares_s"]["accumulate"]
    assert found["64"] == pytest.approx(2 * found["32"])
    assert 0 < found["64"] < 0.1  # of a step of 0.6 s


def test_a_mistake_of_a_network_is_shown_at_its_key() -> None:
    text = "hwsim: model/1\nkind: mlp\nactivation: relu\nunits: [784]\n"
    with pytest.raises(SpecError, match=r"m.yaml:4:\d+: `units`: expected at least an input and an output width"):
        read_model(read_text(text, "m.yaml"))


def test_a_training_that_starts_late_starts_late_in_all_its_ops() -> None:
    train = {"model": "d2l-lenet", "gpus": 2, "global_batch": 64, "dtype": "fp32", "framework": "mxnet-eager"}
    for keys in (train, {"model": "gpt2", "sequence": 128, "microbatch": 1, "global_batch": 8, "framework": "megatron-core"}):
        run = hwsim.simulate(
            "p3.16xlarge", {"hwsim": "workload/1", "jobs": {"late": {"start": "1 s", "train": keys}}}, expect=False
        )
        timeline = run.timeline
        working = [op for op in range(len(timeline)) if timeline.flat.graph.labels[timeline.flat.label[op]].kind != "start"]
        assert min(int(timeline.start[op]) for op in working) >= 10**15
        alone = hwsim.simulate("p3.16xlarge", {"hwsim": "workload/1", "train": keys}, expect=False)
        assert timeline.makespan_fs == 10**15 + alone.timeline.makespan_fs


def test_a_gpu_with_two_slots_is_as_fast_as_the_wider_one() -> None:
    text = """
    hwsim: machine/1
    class: ideal
    parts: {cpu: {kind: cpu, use: d2l-server-cpu}, gpu: {kind: gpu, use: d2l-gpu}, far: {kind: switch}}
    links:
      - {name: wide, between: [cpu, gpu], kind: pcie, bandwidth: 15.75 GB/s}
      - {name: narrow, between: [gpu, far], kind: pcie, bandwidth: 4 GB/s}
    """
    assert _hardware(load_machine(text), "gpu", RankGroup(2)).inside == pytest.approx(PCIE)
