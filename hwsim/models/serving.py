"""The time of one pass of inference in closed form: a prefill, a step of decoding, or an encoder.

    pass = layers x layer + embedding + output (of the last token of each sequence) + collectives of tensor parallel

A step of decoding reads all weights and the keys and values of every sequence once: it is bound by memory until the batch is
as large as the ratio of peak to bandwidth.

**Error**: see `docs/validation/models.md`.
**Range**: all sequences of a pass alike; those of a server with continuous batching are so many tokens and so much context
together, which the time depends on nearly linearly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from hwsim.models.architectures import transformer_layers as kernels
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.architectures.transformer_layers import Slice
from hwsim.models.cluster import Cluster
from hwsim.models.frameworks import Framework
from hwsim.models.layer import Kernel
from hwsim.models.memory import Footprint, serving_memory
from hwsim.models.plan import WrongPlan
from hwsim.models.speed import Speed
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a batch.

    Args:
        seconds: from its first kernel to its last; shares: what they go to.
        memory: weights, and the keys and values after it; verdict: whether they fit.
    """

    seconds: float
    shares: Mapping[str, float]
    memory: Footprint
    verdict: str


def prefill(
    sequences: int, tokens: int, cached: int = 0, *, tp: int = 1, dtype: str = "bf16", attention: kernels.Attention = "flash"
) -> Slice:
    """What a GPU has of a prefill of so many tokens, after so many whose keys and values are there."""
    return Slice(sequences, tokens, tokens + cached, tp, dtype=dtype, attention=attention)


def decode(sequences: int, context: int, *, tp: int = 1, dtype: str = "bf16", attention: kernels.Attention = "flash") -> Slice:
    """What a GPU has of a step of decoding: one token of each sequence, with so many before it."""
    return Slice(sequences, 1, context, tp, dtype=dtype, attention=attention)


def one_pass(model: Transformer, part: Slice, cluster: Cluster, framework: Framework, speed: Speed | None = None) -> Pass:
    """A pass of a batch through all layers, on the GPUs of one tensor-parallel group.

    Raises:
        WrongPlan: the heads do not come out even.
    """
    mistakes = tuple(_problems(model, part, cluster))
    if mistakes:
        raise WrongPlan(mistakes)
    speed = speed or Speed(cluster.gpu, framework)
    shares: dict[str, float] = {}
    for count, group in passed(model, part):
        for kernel in group:
            shares[kernel.kind] = shares.get(kernel.kind, 0.0) + count * speed.seconds(kernel)
    if part.tensor > 1:
        size = part.rows * model.hidden * part.width
        shares["tp"] = 2 * model.layers * cluster.reduced(size, part.tensor)
    if framework.step > 0:
        shares["host"] = framework.step
    memory = serving_memory(model, part.tensor, part.sequences * part.context, part.dtype)
    return Pass(math.fsum(shares.values()), shares, memory, memory.verdict(cluster.gpu.memory.size))


def passed(model: Transformer, part: Slice) -> tuple[tuple[int, tuple[Kernel, ...]], ...]:
    """(times, kernels): the embedding, the layers, the output."""
    last = replace(part, tokens=1, context=1) if model.causal else None
    out = () if last is None else kernels.output(model, last, training=False)
    return (1, kernels.embedding(model, part)), (model.layers, kernels.forward(model, part)), (1, out)


def _problems(model: Transformer, part: Slice, cluster: Cluster) -> list[tuple[str, str]]:
    found = []
    if model.heads % part.tensor:
        found.append(("tp", f"tp {part.tensor} does not divide {model.heads} heads"))
    if part.tensor > cluster.gpus:
        found.append(("tp", f"tp {part.tensor}, but there are {cluster.gpus} GPUs"))
    return found
