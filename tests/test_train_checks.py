"""Trainings: what a file says wrongly is said with its place, and folded trainings are those of all copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.api import simulated
from hwsim.results.activities import activities
from hwsim.results.differences import replicas_differ
from hwsim.spec import SpecError
from tests import command

MODEL = {"layers": 4, "hidden": 1024, "heads": 8, "vocab": 32000, "sequence": 1024, "positions": "rotary", "bias": False}
SMALL = "{layers: 4, hidden: 1024, heads: 8, vocab: 32000, sequence: 1024, positions: rotary, bias: false}"
CLUSTER = """hwsim: machine/1
class: ideal
name: two nodes
parts:
  node: {kind: machine, use: dgx-h100, count: 2}
  leaf: {kind: switch}
links: [{between: ["node*.nic*", leaf], kind: infiniband, use: ndr400}]
"""
RAILS = {"let.nodes": "8"}
LARGE = """hwsim: workload/1
train: {model: llama-3-70b, global_batch: 16, parallel: {tp: 8, pp: 4}, sharding: zero-1, recompute: selective, detail: stage}
"""


def training(**keys: Any) -> dict[str, Any]:
    return {"hwsim": "workload/1", "train": {"model": MODEL, "global_batch": 16, **keys}}


def written(folder: Path, text: str, name: str = "train.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# ---- what needs no machine is found without one ----


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "model: llama-3-8b\n  global_batch: 0\n  microbatch: -1\n  tokens: lots\n  sharding: zero-7\n  optimiser: adam",
            ["4:17: 0 is below", "5:15: -1 is below", "6:11: 'lots' is not", "7:13: 'zero-7' is not", "8:3: unknown key"],
        ),
        ("model: llama-3-8b", ["2:1: 'global_batch' is missing"]),
        ("model: llama-3-9b\n  global_batch: 32", ["3:10: there is no model 'llama-3-9b'"]),
        ("model: llama-3-8b\n  global_batch: 32\n  framework: megatron-cor", ["5:3: there is no framework 'megatron-cor'"]),
        ("model: llama-3-8b\n  global_batch: 32\n  framework: vllm-0.12", ["5:3: 'vllm-0.12' serves models"]),
        ("model: llama-3-8b\n  global_batch: 32\n  parallel: {tq: 2}", ["5:14: unknown key 'tq'"]),
        ("model: resnet-50\n  global_batch: 32\n  sharding: zero-1", ["5:3: `sharding` has no effect on a CNN or MLP"]),
        ("model: resnet-50\n  global_batch: 32\n  framework: pytorch-ncg", ["5:3: unknown framework 'pytorch-ncg'"]),
    ],
)
def test_check_finds_what_is_wrong_in_a_training(tmp_path: Path, keys: str, said: list[str]) -> None:
    found = command.hwsim("check", written(tmp_path, f"hwsim: workload/1\ntrain:\n  {keys}\n"), code=2)
    for message in said:
        assert f"train.yaml:{message}" in found.output, found.output


# ---- nothing is read over in silence ----


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("schedule", "interleaved", "needs several virtual stages per stage, got `chunks: 1`"),
        ("synchronise", "all-reduce", "`synchronise` has no effect on a transformer"),
        ("threads", "one", "`threads` has no effect on a transformer"),
        ("gpus", "12", "`gpus: 12` exceeds the 8 GPUs of the machine"),
    ],
)
def test_a_key_that_would_do_nothing_is_a_mistake_where_it_stands(tmp_path: Path, key: str, value: str, said: str) -> None:
    text = f"hwsim: workload/1\ntrain:\n  model: {SMALL}\n  global_batch: 16\n  {key}: {value}\n"
    with pytest.raises(SpecError) as caught:
        hwsim.simulate("dgx-h100", written(tmp_path, text))
    [mistake] = caught.value.mistakes
    assert said in mistake.message
    assert (mistake.place.line, mistake.place.column) == (5, 3)


def test_a_machine_without_gpus_is_said_where_the_training_stands(tmp_path: Path) -> None:
    text = f"hwsim: workload/1\nname: small\ntrain:\n  model: {SMALL}\n  global_batch: 16\n"
    found = command.hwsim("simulate", "d2l-laptop", written(tmp_path, text), code=2)
    assert "train.yaml:3:1: no device is named: a model is trained on GPUs, and d2l laptop has none" in found.output
    assert "cpu*" not in found.output


def test_what_does_not_fit_is_said_in_one_unit() -> None:
    found = command.hwsim("estimate", "dgx-h100", "llama-3-70b", "--tp", "8", "--global-batch", "64", code=3)
    assert "186 GB needed, 85.5 GB available on each GPU (100 GB short)" in found.output


# ---- folded trainings ----


@pytest.mark.parametrize("keys", [{"sharding": "zero-3"}, {"sharding": "zero-1", "parallel": {"tp": 2}}, {"parallel": {"pp": 2}}])
def test_a_folded_training_is_that_of_all_copies(keys: dict[str, Any]) -> None:
    few, many = (hwsim.simulate(CLUSTER, training(**keys), fold=fold) for fold in ("always", "never"))
    assert few.trainings[0].replicas == many.trainings[0].gpus // len(many.trainings[0].stages) // keys.get("parallel", {}).get(
        "tp", 1
    )
    assert many.trainings[0].replicas == 1
    assert list(replicas_differ(few.timeline, many.timeline)) == []


def test_another_run_is_not_that_of_all_copies() -> None:
    few = hwsim.simulate(CLUSTER, training(sharding="zero-3"), fold="always")
    many = hwsim.simulate(CLUSTER, training(sharding="zero-3", microbatch=1, sequence=512), fold="never")
    found = list(replicas_differ(few.timeline, many.timeline))
    assert any(difference.startswith("it takes") for difference in found)
    assert any("'forward' 0 on node0.gpu0 runs from" in difference for difference in found)


def test_fold_check_compares_the_copies_of_a_training(tmp_path: Path) -> None:
    machine = written(tmp_path, CLUSTER, "two.yaml")
    workload = written(tmp_path, f"hwsim: workload/1\ntrain: {{model: {SMALL}, global_batch: 32, sharding: zero-3}}\n")
    found = command.hwsim("simulate", machine, workload, "--fold-check", "--quiet")
    assert "ops of 16 replicas are those of the" in found.output


def test_fold_check_of_what_is_not_folded_ends_with_a_word(tmp_path: Path) -> None:
    workload = written(tmp_path, f"hwsim: workload/1\ntrain: {{model: {SMALL}, global_batch: 32, parallel: {{tp: 8}}}}\n")
    found = command.hwsim("simulate", "dgx-h100", workload, "--fold-check", "--quiet")
    assert "fold check: nothing is folded\n" in found.output


def test_ranks_of_a_training_cannot_be_asked_for_and_it_says_why(tmp_path: Path) -> None:
    workload = written(tmp_path, f"hwsim: workload/1\ntrain: {{model: {SMALL}, global_batch: 32}}\n")
    found = command.hwsim("simulate", "dgx-h100", workload, "--json", "--ops", "--rank", 9, code=2)
    assert "a training has no ranks" in found.output


def test_the_rate_of_an_op_is_the_same_folded_or_not(tmp_path: Path) -> None:
    workload = written(tmp_path, LARGE)
    few, many = (simulated("scale/rail-fat-tree", workload, set=RAILS, fold=fold) for fold in ("always", "never"))
    rows = [{row.name: row for row in activities(run).rows} for run in (few, many)]
    for name, rate in (("send activations", 37.5e9), ("send gradients back", 35.15e9)):  # some beside gradients
        folded, whole = (table[name].rates.amount for table in rows)
        assert folded == pytest.approx(whole, rel=1e-9)
        assert folded == pytest.approx(rate, rel=2e-3)


def test_a_folded_training_does_not_call_unused_what_other_copies_use() -> None:
    few, many = (hwsim.simulate(CLUSTER, training(sharding="zero-1"), fold=fold) for fold in ("always", "never"))
    unused = [run.summary(verbose=True).partition("idle: ")[2] for run in (few, many)]
    assert unused[0]
    assert unused[0] == unused[1]


# ---- beside others ----


@pytest.mark.parametrize(("gpus", "tp"), [(1, 1), (8, 1), (8, 2)])
def test_what_a_training_is_worth_by_hand(gpus: int, tp: int) -> None:
    """Six FLOP a token for each parameter of products, twelve for each of its layers' attention to a token."""
    shape: dict[str, Any] = {"layers": 4, "hidden": 1024, "heads": 8, "vocab": 32000, "positions": "rotary", "bias": False}
    train = {"model": {**shape, "sequence": 1024}, "global_batch": 8, "gpus": gpus, "tokens": 10**9, "parallel": {"tp": tp}}
    runs = [
        hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "train": train}, fold=fold, interval=False)
        for fold in ("never", "always")
    ]
    plain, folded = (run.trainings[0] for run in runs)
    tokens = 8 * 1024
    flop = 6 * tokens * (4 * 12 * 1024**2 + 32000 * 1024) + 12 * tokens * 1024 * 1024 * 4
    assert (plain.gpus, plain.count, plain.unit, plain.whole) == (gpus, tokens, "tokens", 1e9)
    assert [run.timeline.flat.graph.trainings[0].flop for run in runs] == [flop, flop]
    assert plain.mfu == pytest.approx(flop / (gpus * 989.4e12 * plain.step_s), rel=1e-9)
    assert plain.days == pytest.approx(1e9 / tokens * plain.step_s / 86400, rel=1e-9)
    assert (plain.replicas, plain.classes) == (1, ())
    assert (folded.gpus, folded.mfu, folded.step_s) == (gpus, plain.mfu, plain.step_s)
    assert folded.replicas == gpus // tp
    assert folded.classes == (((0, gpus // tp),) if gpus > 1 else ())
    late = {"learn": {"start": "2 s", "train": train}}
    later = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": late}, interval=False).trainings[0]
    assert (later.first_s, later.step_s, later.mfu) == pytest.approx((plain.first_s, plain.step_s, plain.mfu), rel=1e-9)
