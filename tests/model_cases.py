"""Clusters and transformers that tests of models share."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from hwsim import api
from hwsim.devices import Gpu
from hwsim.models import Cluster, Framework, Kernel, MicrobatchSlice, ParallelPlan, TrainingStep, Transformer, estimate
from hwsim.models.inference import served_slice


def prefill(
    sequences: int, tokens: int, cached: int = 0, *, tp: int = 1, dtype: str = "bf16", attention: Any = "flash"
) -> MicrobatchSlice:
    """The part of a prefill on a GPU; `cached` tokens of each sequence have their keys and values already."""
    return served_slice(sequences, tokens, tokens + cached, tp, dtype, attention)


def decode(sequences: int, context: int, *, tp: int = 1) -> MicrobatchSlice:
    """The part of a step of decoding on a GPU: one token of each sequence, which looks at `context` tokens."""
    return served_slice(sequences, 1, context, tp, "bf16", "flash")


NODES = """
hwsim: machine/1
class: ideal
parts: {node: {kind: machine, use: dgx-a100, count: 2, parts: {gpu: {use: a100-sxm-80gb}}}}
links: [{name: fabric, topology: fat-tree, of: "node*.nic*", kind: infiniband, use: hdr200, rails: 8, leaf_ports: 40}]
"""


@cache
def nodes() -> Cluster:
    """DGX A100 as a cluster, without the machine."""
    gpu = api.load_machine("hwsim: machine/1\nclass: ideal\nparts: {it: {kind: gpu, use: a100-sxm-80gb}}\n").device("it").model
    assert isinstance(gpu, Gpu)
    return Cluster(gpu, 16, 8, {2: 225e9, 4: 225e9, 8: 225e9}, 8 * 24.8e9, 24.8e9)


def gpus(count: int) -> Cluster:
    return replace(nodes(), gpus=count, per_node=min(count, 8))


def small(**more: Any) -> Transformer:
    sizes: dict[str, Any] = {"layers": 8, "hidden": 1024, "heads": 16, "vocab": 32000, "sequence": 1024}
    return Transformer(**{**sizes, **more})


def run(model: Transformer, plan: ParallelPlan, count: int, framework: Framework | None = None) -> TrainingStep:
    return estimate(model, plan, gpus(count), framework or Framework())


def products(kernels: tuple[Kernel, ...]) -> float:
    return sum(kernel.work.flop * kernel.times for kernel in kernels)
