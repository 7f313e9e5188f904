"""Folded is unfolded, to the femtosecond: library workloads, and trainings of copies alike or nearly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.results.differences import differences, replicas_differ
from hwsim.spec import find, names
from hwsim.workload.lower import Folding

MACHINE = re.compile(r"expect:\s*(?:\{|\n\s+)machine:\s*([\w./-]+)")
PAIRS = [
    (said.group(1), name) for name in names("workload") if (said := MACHINE.search(Path(find("workload", name)).read_text()))
]
QUICK = ("bert-large", "d2l/bucketed-overlap", "d2l/hybridize", "d2l/queue-memory", "d2l/slow-gpu", "scale/tp8-dp")
LARGE = ("scale/mlp-dp", "llama3-8b-serving", "imagenet-epoch")


def simulated(machine: Any, workload: Any, fold: Folding = "auto") -> hwsim.Run:
    """A run, whatever is expected of it."""
    try:
        return hwsim.simulate(machine, workload, expect=False, fold=fold)
    except hwsim.OutOfMemory as failed:
        return failed.run


def is_folded(run: hwsim.Run) -> bool:
    return run.timeline.flat.graph.alike is not None or any(training.replicas > 1 for training in run.trainings)


def fold_differs(machine: Any, workload: Any) -> list[str]:
    """What folding changes."""
    return timelines_differ(simulated(machine, workload, "always"), simulated(machine, workload, "never"))


def timelines_differ(few: hwsim.Run, many: hwsim.Run) -> list[str]:
    """In what a run that may be folded differs from the run with all ranks."""
    if not is_folded(few):
        return [] if few.timeline.makespan_fs == many.timeline.makespan_fs else ["unfolded runs differ"]
    told = any(training.replicas > 1 for training in few.trainings)
    return list((replicas_differ if told else differences)(few.timeline, many.timeline))


def test_the_library_is_found() -> None:
    assert len(PAIRS) > 40
    assert {name for _, name in PAIRS} > {*QUICK, *LARGE}


@pytest.mark.parametrize(("machine", "workload"), [pair for pair in PAIRS if pair[1] in QUICK])
def test_library_workloads_fold_and_repeat_exactly(machine: str, workload: str) -> None:
    assert fold_differs(machine, workload) == []


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "workload"), [pair for pair in PAIRS if pair[1] not in QUICK])
def test_all_library_workloads_fold_and_repeat_exactly(machine: str, workload: str) -> None:
    assert fold_differs(machine, workload) == []


# ---- trainings ----

MODEL = {"layers": 4, "hidden": 1024, "heads": 8, "vocab": 32000, "sequence": 1024, "positions": "rotary", "bias": False}


def cluster(*nodes: tuple[int, str, str], gpu: str = "a100-sxm-40gb") -> str:
    """Nodes of (GPUs, rate of the links between them, rate of the card), on one switch."""
    text, links = "hwsim: machine/1\nclass: ideal\nname: cluster\nparts:\n  leaf: {kind: switch}\n", "links:\n"
    for index, (gpus, inside, card) in enumerate(nodes):
        star, count = ("*", f", count: {gpus}") if gpus > 1 else ("", "")
        text += f"""  n{index}:
    kind: machine
    parts:
      cpu: {{kind: cpu, cores: 16, flop: {{fp32: 500 GFLOP/s}}, memory: {{bandwidth: 100 GB/s}}}}
      gpu: {{kind: gpu, use: {gpu}{count}}}
      nvs: {{kind: switch}}
      nic: {{kind: nic, bandwidth: {card}, latency: 1 us}}
    links:
      - {{name: nv, between: [nvs, gpu{star}], kind: direct, bandwidth: {inside}, latency: 1 us}}
      - {{name: slot, between: [cpu, gpu{star}], kind: direct, bandwidth: 16 GB/s, latency: 1 us}}
      - {{name: card, between: [cpu, nic], kind: direct, bandwidth: 32 GB/s, latency: 1 us}}
"""
        links += f"  - {{name: f{index}, between: [n{index}.nic, leaf], kind: direct, bandwidth: {card}, latency: 1 us}}\n"
    return text + links


def training(**keys: Any) -> dict[str, Any]:
    return {"hwsim": "workload/1", "train": {"model": MODEL, "global_batch": 64, "framework": "torchtitan", **keys}}


FAST, SLOW_INSIDE, SLOW_CARD = (4, "100 GB/s", "25 GB/s"), (4, "50 GB/s", "25 GB/s"), (4, "100 GB/s", "12.5 GB/s")


@pytest.mark.parametrize(
    ("machine", "keys"),
    [
        (
            "dgx-a100",
            {"microbatch": 1, "global_batch": 1536, "steps": 1, "parallel": {"tp": 2}},
        ),  # layers are a matter of the plan
        (cluster(FAST), {"parallel": {"cp": 2}, "sharding": "zero-3"}),  # exposed and hidden exchanges on the same links
        (cluster(FAST, FAST), {"parallel": {"tp": 2, "order": ["dp", "tp", "pp"]}, "detail": "stage"}),  # one card for four
        (cluster(FAST, FAST), {"parallel": {"tp": 2, "pp": 2}, "sharding": "zero-1", "recompute": "full"}),
    ],
)
def test_copies_that_are_alike_fold_exactly(machine: str, keys: dict[str, Any]) -> None:
    assert is_folded(simulated(machine, training(**keys), "always"))
    assert fold_differs(machine, training(**keys)) == []


@pytest.mark.parametrize(
    ("machine", "keys", "why"),
    [
        (cluster(FAST, SLOW_INSIDE), {"parallel": {"tp": 4}}, "has another path"),
        (cluster(FAST, SLOW_CARD), {"parallel": {"tp": 2, "pp": 2, "order": ["tp", "dp", "pp"]}}, ""),
        (cluster(FAST, FAST, SLOW_CARD, FAST), {"parallel": {"pp": 2, "order": ["tp", "pp", "dp"]}}, ""),
        (
            cluster(FAST, (2, "100 GB/s", "25 GB/s"), FAST),
            {"parallel": {"tp": 2}, "global_batch": 60},
            "different numbers of the GPUs",
        ),
    ],
)
def test_copies_that_differ_are_all_simulated(machine: str, keys: dict[str, Any], why: str) -> None:
    run = simulated(machine, training(**keys), "always")
    if why:
        assert why in run.timeline.flat.graph.unfolded
        assert not is_folded(run)
    assert fold_differs(machine, training(**keys)) == []


@pytest.mark.parametrize(
    ("keys", "why"), [({"threads": "one"}, "one host thread"), ({"parallel": {"tp": 2}}, "split over several"), ({}, "")]
)
def test_copies_of_a_network_stand_for_all_only_where_they_are_alike(
    monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], why: str
) -> None:
    monkeypatch.setattr("hwsim.families.training.workload.lowering.GPUS", 3)
    workload = {"hwsim": "workload/1", "train": {"model": "d2l-lenet", "global_batch": 64, "steps": 1, **keys}}
    few = simulated(cluster(FAST), workload)
    assert is_folded(few) is not bool(why)
    assert why in few.timeline.flat.graph.unfolded
    assert fold_differs(cluster(FAST), workload) == []
