"""One closed form for every model: as long as the two that were there before it, to the last digits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from hwsim import api
from hwsim.models import Cluster, ParallelPlan, cluster_of, estimate, load_framework, load_network, load_transformer
from hwsim.models.framework import SOFTWARE
from hwsim.models.inference import batch_pass, serve
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Layer
from hwsim.models.memory import stage_parameters
from hwsim.models.plan import derive_plan
from hwsim.models.stages import stage_of
from hwsim.spec import tree_of
from published.cnn_training import data_parallel_step

BEFORE: Final[Mapping[str, Any]] = json.loads((Path(__file__).parent / "golden" / "estimates.json").read_text())
NODES: Final = """
hwsim: machine/1
class: ideal
parts: {node: {kind: machine, use: dgx-a100, count: 4}}
links: [{name: fabric, topology: fat-tree, of: "node*.nic*", kind: infiniband, use: hdr200, rails: 8, leaf_ports: 40}]
"""


@cache
def cluster(name: str) -> Cluster:
    return cluster_of(api.load_machine(NODES if name.startswith("4 x") else name))


def named(row: Mapping[str, Any]) -> str:
    return f"{row['model']} on {row['machine']}"


def equal(before: Mapping[str, Any], seconds: float, shares: Mapping[str, float]) -> None:
    assert seconds == pytest.approx(before["seconds"], rel=1e-12)
    if before["shares"]:
        assert dict(shares) == pytest.approx({"dp": 0.0, **before["shares"]} if "dp" in shares else before["shares"], rel=1e-12)


@pytest.mark.parametrize("row", BEFORE["training"], ids=named)
def test_a_step_of_a_transformer_takes_as_long(row: Mapping[str, Any]) -> None:
    plan: dict[str, Any] = {key: tuple(value) if key == "order" else value for key, value in row["plan"].items()}
    model = load_transformer(row["model"])
    model = replace(model, layers=row.get("layers", model.layers))
    step = estimate(model, ParallelPlan(**plan), cluster(row["machine"]), load_framework(row["framework"]))
    equal(row, step.seconds, step.shares)
    assert (step.mfu, step.hfu) == pytest.approx((row["mfu"], row["hfu"]), rel=1e-12)
    assert step.memory.total == pytest.approx(row["memory"], rel=1e-12)


@pytest.mark.parametrize("row", BEFORE["networks"], ids=named)
def test_a_step_of_a_network_takes_as_long(row: Mapping[str, Any]) -> None:
    machine, software, gpus = cluster(row["machine"]), SOFTWARE[row["framework"]], row["gpus"]
    times = KernelTimes(machine.gpu, software.kernels)
    exchange = (lambda size: machine.seconds("all-reduce", size, gpus)) if gpus > 1 else None
    step = data_parallel_step(load_network(row["model"]), row["batch"], row["dtype"], times, software, gpus, exchange)
    equal({**row, "shares": {kind: share for kind, share in row["shares"].items() if kind != "dp" or gpus > 1}}, step.seconds,
          step.shares)  # fmt: skip


@pytest.mark.parametrize("row", BEFORE["images"], ids=named)
def test_a_batch_of_images_takes_as_long(row: Mapping[str, Any]) -> None:
    software = SOFTWARE[row["framework"]]
    times = KernelTimes(cluster(row["machine"]).gpu, software.kernels)
    found = batch_pass(load_network(row["model"]), row["batch"], row["dtype"], times, software)
    equal(row, found.seconds, found.shares)


@pytest.mark.parametrize("row", BEFORE["serving"], ids=named)
def test_a_batch_of_tokens_takes_as_long(row: Mapping[str, Any]) -> None:
    keys = {key: row[key] for key in ("phase", "tp", "batch", "prompt", "output", "dtype")}
    framework = load_framework("vllm")
    framework = replace(framework, server=replace(framework.server, host=None))  # before it counted
    served = serve(load_transformer(row["model"]), cluster(row["machine"]), framework, **keys)
    equal(row, served.seconds, served.shares)
    assert served.total == pytest.approx(row["total"], rel=1e-12)


@pytest.mark.parametrize(("name", "plan"), [("llama-2-7b", {"tp": 4, "pp": 2}), ("mixtral-8x7b", {"tp": 2, "ep": 2, "pp": 2})])
def test_the_parameters_of_a_stage_are_those_of_its_layers(name: str, plan: dict[str, int]) -> None:
    laid = derive_plan(load_transformer(name), ParallelPlan(global_batch=64, **plan), 16)  # type: ignore[arg-type]
    for number in range(laid.plan.pp):
        layers: tuple[Layer, ...] = stage_of(laid, load_framework("megatron-core"), number).layers
        expected = stage_parameters(laid.transformer, laid.plan, number)
        assert sum(layer.times * layer.parameters for layer in layers) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "dp", "pp", "batch", "microbatch", "framework"),
    [
        ("resnet-50", 8, 1, 512, 64, "pytorch-ngc"),
        ("vgg-16", 4, 1, 128, 32, "tensorflow-xla"),
        ("mlp-mnist", 8, 1, 2048, 256, "none"),
        ("resnet-50", 4, 2, 512, 16, "pytorch-ngc"),
        ("vgg-16", 2, 4, 256, 16, "mxnet-ngc"),
        ("inception-v3", 1, 2, 64, 8, "none"),
    ],
)
def test_a_network_is_simulated_within_a_tenth_of_its_estimate(
    model: str, dp: int, pp: int, batch: int, microbatch: int, framework: str
) -> None:
    """Copies, stages, and both."""
    train = {"model": model, "gpus": dp * pp, "global_batch": batch, "microbatch": microbatch, "framework": framework}
    run = api.simulate("p3.16xlarge", tree_of({"hwsim": "workload/1", "train": {**train, "parallel": {"dp": dp, "pp": pp}}}))
    plan = ParallelPlan(dp=dp, pp=pp, global_batch=batch, microbatch=microbatch, dtype="fp32", optimizer="sgd")
    step = estimate(load_network(model), plan, replace(cluster("p3.16xlarge"), gpus=dp * pp), SOFTWARE[framework])
    assert step.seconds == pytest.approx(batch / run.trainings[0].rate, rel=0.1)
    assert step.memory.total == pytest.approx(max(gpu.peak for gpu in run.memory if gpu.device.startswith("gpu")), rel=1e-6)
