"""Checkpoints of a training on the machine, and what failures leave of its days."""

from __future__ import annotations

import copy
import math
from typing import Any, Final

import pytest
import yaml

from hwsim import api
from hwsim.failures import renewal
from hwsim.families.training.results import TrainingResult
from hwsim.results.training_failures import Checkpoints
from hwsim.spec import SpecError
from hwsim.views import FIGURES

MODEL: Final = {"kind": "transformer", "layers": 8, "hidden": 2048, "heads": 16, "ffn": 8192, "vocab": 32000, "sequence": 2048}
MACHINE: Final[dict[str, Any]] = yaml.safe_load("""
hwsim: machine/1
name: nodes
class: ideal
parts:
  node:
    kind: machine
    count: 2
    parts:
      cpu: {kind: cpu, cores: 32, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 200 GB/s, size: 512 GB}}
      gpu: {kind: gpu, count: 4, flop: {bf16: 300 TFLOP/s, fp32: 20 TFLOP/s}, memory: {bandwidth: 1500 GB/s, size: 80 GB}}
      nvs: {kind: switch}
      nic: {kind: nic, bandwidth: 10 GB/s}
    links:
      - {name: inner, between: [gpu*, nvs], kind: direct, bandwidth: 200 GB/s}
      - {name: slots, between: [cpu, gpu*], kind: direct, bandwidth: 20 GB/s}
      - {name: card, between: [cpu, nic], kind: direct, bandwidth: 40 GB/s}
  leaf: {kind: switch}
  store: {kind: filesystem, bandwidth: 4 GB/s}
links:
  - {name: fabric, between: [node*.nic, leaf], kind: direct, bandwidth: 10 GB/s}
  - {name: storage, between: [leaf, store], kind: direct, bandwidth: 100 GB/s}
""")


def machine(**store: Any) -> dict[str, Any]:
    made = copy.deepcopy(MACHINE)
    made["parts"]["store"] |= store
    return made


def trained(saved: dict[str, Any] | None, on: dict[str, Any] | None = None, **keys: Any) -> TrainingResult:
    train: dict[str, Any] = {"model": MODEL, "global_batch": 16, "device": ["node*.gpu*"], **keys}
    if saved is not None:
        train["checkpoint"] = saved
    run = api.simulate(on or machine(), {"hwsim": "workload/1", "train": train})
    return run.trainings[0]


def saved(keys: dict[str, Any], on: dict[str, Any] | None = None, **more: Any) -> Checkpoints:
    found = trained(keys, on, **more).saved
    assert found is not None
    return found


def test_the_state_is_14_bytes_a_parameter_with_adam_however_it_is_sharded() -> None:
    whole, *others = (saved({"every": 5}, sharding=sharding).bytes for sharding in ("none", "zero-1", "zero-3"))
    assert {whole} == {*others, saved({"every": 5}, parallel={"tp": 2, "pp": 2, "dp": 2}).bytes}
    assert saved({"every": 5}, optimizer="sgd").bytes == pytest.approx(whole * 10 / 14)
    assert saved({"every": 5}, sharding="fsdp").bytes == pytest.approx(whole * 12 / 14)
    assert saved({"every": 5, "bytes": "3 GB"}).bytes == 3e9


def test_storage_outside_of_the_machine_is_reached_over_the_cards() -> None:
    stored = ({"bandwidth": "4 GB/s"}, {"bandwidth": "1 TB/s"}, {"write": "7 s"})
    found = [saved({"every": 5, "bytes": "16 GB", **storage}).write_s for storage in stored]
    assert found == pytest.approx([4.0, 0.8, 7.0], rel=1e-6)


def test_sync_stops_for_both_and_async_for_the_copy_alone() -> None:
    """16 GB: 2 GB of each GPU over 20 GB/s to the host, and 4 s to the storage."""
    sync, later = (saved({"every": 5, "bytes": "16 GB", "mode": mode}) for mode in ("sync", "async"))
    assert sync.pause_s == pytest.approx(4.1, rel=0.01)
    assert later.pause_s == pytest.approx(0.1, rel=0.01)
    assert sync.lag_s == 0.0
    assert later.lag_s == pytest.approx(4.0, rel=0.2)


@pytest.mark.parametrize("parallel", [{"dp": "rest"}, {"tp": 2, "pp": 2, "dp": 2}])
def test_checkpoints_among_the_steps_take_their_time(parallel: dict[str, Any]) -> None:
    """Six steps, a checkpoint after every second: three of them."""
    train: dict[str, Any] = {"model": MODEL, "global_batch": 16, "device": ["node*.gpu*"], "steps": 6, "parallel": parallel}
    runs = [
        api.simulate(machine(), {"hwsim": "workload/1", "train": {**train, **more}})
        for more in ({}, {"checkpoint": {"every": 2, "bytes": "16 GB"}})
    ]
    written = [label for label in runs[1].timeline.flat.graph.labels if label.name == "checkpoint"]
    assert len(written) == 1
    saved = runs[1].trainings[0].saved
    assert saved.interval_steps == 2
    assert runs[1].makespan_s == pytest.approx(runs[0].makespan_s + 3 * saved.pause_s, rel=0.05)
    assert runs[1].trainings[0].saving_days == 0.0  # its length is not given


def test_a_write_beside_the_steps_costs_them_what_they_share() -> None:
    """Gradients go over the cards that the write uses; with cards of its own storage, they do not."""
    keys: dict[str, Any] = {"parallel": {"dp": "rest"}, "global_batch": 8}
    written = {"every": 100, "bytes": "160 GB", "mode": "async"}
    shared = saved(written, machine(bandwidth="1000 GB/s"), **keys)
    apart = saved({**written, "bandwidth": "20 GB/s", "snapshot": "1 s"}, **keys)
    assert shared.slowdown_s > 0.05
    assert apart.slowdown_s == pytest.approx(0.0, abs=1e-9)


def test_the_first_copy_of_the_model_alone_writes_longer() -> None:
    """One node of two has it: its card carries all."""
    keys = {"every": 5, "bytes": "16 GB", "sharded": False}
    alone = saved(keys, machine(bandwidth="1000 GB/s"), parallel={"tp": 4, "dp": 2})
    assert alone.write_s == pytest.approx(1.6, rel=0.01)


def test_nodes_without_a_host_write_from_their_gpus_over_all_cards() -> None:
    """A card of 10 GB/s for each of eight GPUs: 2 GB over each."""
    made = machine(bandwidth="1000 GB/s")
    inside = made["parts"]["node"]
    del inside["parts"]["cpu"], inside["links"][1:]
    inside["parts"]["nic"]["count"] = 4
    inside["links"].append({"name": "cards", "between": ["gpu*", "nic*"], "per": 1, "kind": "direct", "bandwidth": "40 GB/s"})
    made["links"][0]["between"] = ["node*.nic*", "leaf"]
    found = saved({"every": 5, "bytes": "16 GB"}, made)
    assert found.write_s == found.pause_s == pytest.approx(0.2, rel=0.01)
    with pytest.raises(SpecError, match="has no cpu"):
        trained({"every": 5, "bytes": "16 GB", "mode": "async"}, made)


# ---- failures ----

RATES: Final = {
    "parts": {"gpu": {"mtbf": "100 h"}, "host": {"of": "node", "mtbf": "400 h"}},
    "restart": {"detect": "30 s", "replace": "60 s", "start": "60 s", "load": "auto"},
    "spares": {"repair": "0 s"},
}  # fmt: skip


def test_days_with_failures_are_those_of_the_formula() -> None:
    """A failure every 11.8 h; 7.5 GB in 1.9 s."""
    training = trained({"every": "auto"}, tokens=1e12, failures=RATES)
    left, saved = training.failing, training.saved
    assert left.job.mtbf_s / 3600 == pytest.approx(1 / (8 / 100 + 2 / 400))
    expected = renewal(left.job.mtbf_s, saved.interval_s, saved.pause_s, left.goodput.down_s)
    assert left.goodput.share == pytest.approx(expected, rel=1e-4)
    best = max(renewal(left.job.mtbf_s, minutes * 6.0, saved.pause_s, left.goodput.down_s) for minutes in range(1, 1000))
    assert left.goodput.share == pytest.approx(best, rel=1e-3)
    days = training.days
    assert left.seconds / 86400 == pytest.approx(days / left.goodput.share)
    assert days < training.saving_days < left.p50_s / 86400 < left.p90_s / 86400
    assert left.failures == pytest.approx(left.seconds / left.job.mtbf_s, rel=0.05)
    assert math.fsum([left.goodput.share, *left.goodput.lost.values()]) == pytest.approx(1.0)
    assert left.goodput.down_s == pytest.approx(150 + saved.load_s)


def test_the_interval_is_whole_steps() -> None:
    training = trained({"every": "auto"}, tokens=1e12, failures=RATES)
    assert training.saved.interval_s == training.saved.interval_steps * training.step_s
    assert saved({"every": "10 min"}, tokens=1e12, failures=RATES).interval_s == pytest.approx(600.0, rel=0.01)


def test_copies_in_memory_leave_more() -> None:
    saved = {"every": "auto", "bytes": "400 GB"}
    memory = {"survives": "90 %", "write": "1 s", "load": "1 s"}
    without, with_copies = (trained({**saved, **more}, tokens=1e12, failures=RATES).failing for more in ({}, {"memory": memory}))
    assert with_copies.goodput.share > without.goodput.share
    assert 0 < with_copies.goodput.near_every_s < with_copies.goodput.every_s


def test_the_summary_and_the_document_say_it() -> None:
    train = {"model": MODEL, "global_batch": 16, "device": ["node*.gpu*"], "tokens": 1e12, "failures": "meta-llama-3",
             "checkpoint": {"every": "auto", "mode": "async"}}  # fmt: skip
    expect = {
        "machine": "nodes",
        "goodput": "at least 90 %",
        "days_with_failures": "at most 1000 day",
        "days_p90": "at most 1000 day",
    }
    run = api.simulate(machine(), {"hwsim": "workload/1", "train": train, "expect": expect})
    said = " ".join(str(run).split())
    for words in (
        "checkpoint every",
        "failures MTBF",
        "failure rates Llama 3 405B",
        "goodput",
        "lost to",
        "with failures",
        "(p90 ",
    ):
        assert words in said
    assert [verdict.status for verdict in run.verdicts] == ["met"] * 3
    document = run.to_json()["trainings"][0]
    assert document["checkpoints"]["mode"] == "async"
    assert document["failures"]["days_low"] < document["failures"]["days_mean"] < document["failures"]["days_high"]
    assert document["failures"]["goodput"] + sum(document["failures"]["lost"].values()) == pytest.approx(1.0)
    explained = str(run.explain())
    assert "time with failures" in explained
    assert "lost time by failed part" in explained


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"failures": RATES}, "would restart the training from its first step"),
        ({"checkpoint": {"every": "auto"}}, "`every: auto` needs `failures`"),
        ({"checkpoint": {"every": 0}}, "expected steps or a time, got 0"),
        ({"checkpoint": {"every": "0 s"}}, "expected a positive time, got 0 s"),
        ({"checkpoint": {"every": "epoch"}}, "`every: epoch` needs `samples`"),
        ({"checkpoint": {"every": 5, "to": "store", "write": "3 s"}}, "got to and write"),
        ({"checkpoint": {"every": 5, "to": "stor"}}, "stor"),
        ({"checkpoint": {"every": 5, "to": "node0.cpu"}}, "expected a disk"),
        ({"checkpoint": {"every": 5, "memory": {"survives": "80 %", "write": "1 s"}}}, "`memory` has no effect without"),
        ({"checkpoint": {"every": 1}, "steps": 1000}, "at most 64"),
        ({"checkpoint": {"every": 5, "mode": "async", "bytes": "2 TB"}}, "its memory of 512 GB"),
        ({"checkpoint": {"every": 5}, "failures": "llama-3-405"}, "llama-3-405"),
        ({"checkpoint": {"every": 5}, "failures": {"parts": {"tpu": {"mtbf": "1 h"}}}}, "no part with a failure rate: tpu"),
        (
            {"checkpoint": {"every": 5, "write": "20 h"}, "failures": RATES},
            "no progress: a checkpoint pauses the training for 20.0 h",
        ),
        ({"checkpoint": {"every": "100 h"}, "failures": RATES}, "the goodput is"),
    ],
)
def test_mistakes(keys: dict[str, Any], words: str) -> None:
    train = {"model": MODEL, "global_batch": 16, "device": ["node*.gpu*"], "tokens": 1e12, **keys}
    with pytest.raises(SpecError) as refused:
        api.simulate(machine(), {"hwsim": "workload/1", "train": train})
    assert words in str(refused.value)


def test_storage_must_be_named_where_there_is_none_or_several() -> None:
    train = {"model": MODEL, "global_batch": 16, "device": ["node*.gpu*"], "checkpoint": {"every": 5}}
    none, several = machine(), machine()
    del none["parts"]["store"], none["links"][1]
    several["parts"]["other"] = {"kind": "filesystem", "bandwidth": "1 GB/s"}
    for made, words in ((none, "no file system"), (several, "several file systems \\(other, store\\)")):
        with pytest.raises(SpecError, match=words):
            api.simulate(made, {"hwsim": "workload/1", "train": train})


def test_a_pipeline_has_no_best_interval() -> None:
    saved = {"every": "auto", "bytes": "1 GB", "to": "store"}
    pipeline = {"batches": 4, "checkpoint": saved, "stages": [{"busy": {"device": "node0.cpu", "time": "1 ms"}}]}
    with pytest.raises(SpecError, match="a pipeline has no failure rates"):
        api.simulate(machine(), {"hwsim": "workload/1", "pipeline": pipeline})


def test_a_stage_of_a_pipeline_has_none_of_its_own() -> None:
    train = {"model": MODEL, "device": ["node*.gpu*"], "global_batch": 16, "checkpoint": {"every": 5}}
    pipeline = {"batches": 4, "stages": [{"busy": {"device": "node0.cpu", "time": "1 ms"}}, {"train": train}]}
    with pytest.raises(SpecError, match="a stage has no `checkpoint`"):
        api.simulate(machine(), {"hwsim": "workload/1", "pipeline": pipeline})


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_one_replica_that_represents_all_sees_the_same_checkpoint(mode: str) -> None:
    """Weights that are still gathered share the links of the copy, also where the others have no ops."""
    train = {
        "model": MODEL,
        "global_batch": 16,
        "device": ["node*.gpu*"],
        "sharding": "zero-1",
        "checkpoint": {"every": 5, "mode": mode},
    }
    runs = [
        api.simulate(machine(), {"hwsim": "workload/1", "train": train}, fold=fold).trainings[0] for fold in ("always", "never")
    ]
    assert runs[0].replicas > 1
    assert runs[0].saved == runs[1].saved
    assert runs[0].step_s == runs[1].step_s


@pytest.mark.parametrize(("to", "seconds"), [("store", 6.0), ("node0.disk0", 8.0)])
def test_a_write_beside_a_job_that_reads_is_as_the_writes_of_its_nodes_one_by_one(to: str, seconds: float) -> None:
    """Two nodes and a loader each have a third of the store; of the four disks that are written, one is read as well."""
    made = machine()
    inside = made["parts"]["node"]
    inside["parts"]["disk"] = {"kind": "disk", "count": 2, "read": "1 GB/s", "write": "1 GB/s"}
    inside["links"].append({"between": ["cpu", "disk*"], "kind": "direct", "bandwidth": "4 GB/s"})
    own = to != "store"
    saved = {"every": 5, "bytes": "16 GB", "to": "disk*" if own else to}
    train = {"train": {"model": MODEL, "global_batch": 16, "device": ["node*.gpu*"], "checkpoint": saved}}
    loader = {"program": [{"repeat": {"times": 300, "do": [{"read": {"from": to, "to": "node0.cpu", "bytes": "100 MB"}}]}}]}
    disks = [f"node{node}.disk{disk}" for node in (0, 1) for disk in (0, 1)] if own else ["store"] * 2
    writes = [
        {"write": {"name": "part", "from": f"node{index * 2 // len(disks)}.cpu", "to": disk, "bytes": f"{16e9 / len(disks)} B",
                   "queue": f"{index}"}}
        for index, disk in enumerate(disks)
    ]  # fmt: skip
    trained, written = (
        api.simulate(made, {"hwsim": "workload/1", "jobs": {"one": job, "loader": loader}})
        for job in (train, {"program": writes})
    )
    beside = trained.trainings[0].saved
    assert beside.write_s == pytest.approx(seconds, rel=1e-3)
    assert max(row.end_s for row in written.ops if row.name == "part") == pytest.approx(seconds, rel=1e-3)


def test_a_network_saves_weights_and_moments() -> None:
    train: dict[str, Any] = {"model": {"kind": "mlp", "units": [784, 2560, 10]}, "global_batch": 64, "steps": 6}
    parameters = 784 * 2560 + 2560 + 2560 * 10 + 10
    plain, adam = (saved({"every": 2, "mode": "async"}, **train, optimizer=rule) for rule in ("sgd", "adam"))
    assert (plain.bytes, plain.written, adam.bytes) == (8.0 * parameters, 3, 12.0 * parameters)


def test_a_figure_has_a_bar_for_each_loss_and_the_longest_is_in_its_title() -> None:
    train = {"model": MODEL, "global_batch": 16, "device": ["node*.gpu*"], "tokens": 1e12, "failures": "meta-llama-3",
             "checkpoint": {"every": "auto"}}  # fmt: skip
    run = api.simulate(machine(), {"hwsim": "workload/1", "name": "a training", "train": train})
    failing = run.trainings[0].failing
    lost, causes = (sorted(loss, key=lambda name: -loss[name]) for loss in (failing.goodput.lost, failing.goodput.by_cause))
    drawn = b"".join(FIGURES["failures"](run, ".svg")).decode()
    places = [[drawn.index(name) for name in names] for names in (lost, causes)]
    assert places == [sorted(place) for place in places], "the largest first"
    assert "the largest loss" in drawn
    with pytest.raises(ValueError, match="no training of this run has `failures`"):
        api.simulate("d2l-laptop", "d2l/async-loop", set={"n": 2}, expect=False).plot("failures")
