"""Inference time in closed form: one pass (a prefill, a decode step, a batch of images), and a batch served.

    pass         = layers forward + head (last token of each sequence) + tensor-parallel collectives + host
    first token  = a prefill of all prompts at once, plus the server's time for a request before and after it
    next tokens  = one decode step each: the average of the first and the last step, as a step is linear in the context length
                   except for tile effects

A decode step reads all weights and the keys and values of every sequence once. It is memory-bound until the batch reaches the
ratio of peak FLOP/s to memory bandwidth.

**Error**: of single passes, see `docs/validation/models.md`.
**Range**: all sequences of a batch are equal and start together; no continuous batching, no chunked prefill. Between passes, the
host time of the framework's server passes, if its file states it. A server with continuous batching is close to a pass with the
same total tokens and total context.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from hwsim.devices import Gpu
from hwsim.models.architectures import FeedForwardNetwork, Transformer
from hwsim.models.architectures import transformer_layers as blocks
from hwsim.models.architectures.layer_parts import QuantizedWeights
from hwsim.models.architectures.slices import Attention, MicrobatchSlice
from hwsim.models.architectures.unit_layers import layers_of
from hwsim.models.architectures.units import size
from hwsim.models.cluster import Cluster
from hwsim.models.framework import Framework, Software
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Layer
from hwsim.models.memory import Footprint, batch_memory, cache_room, serving_memory
from hwsim.models.plan import WrongPlan, uneven_widths
from hwsim.models.server import HostTimes
from hwsim.models.step import Seconds, by_kind, seconds_by
from hwsim.records import dataclass

Phase = Literal["prefill", "decode"]


@dataclass(frozen=True, slots=True)
class InferencePass:
    """One pass over a batch.

    Args:
        seconds: time from the first to the last kernel, plus host time (s).
        shares: time of each kind of work (s).
        memory: weights, keys and values after the pass.
        verdict: whether the memory suffices.
    """

    seconds: float
    shares: Mapping[str, float]
    memory: Footprint
    verdict: str


def served_slice(
    sequences: int,
    tokens: int,
    context: int,
    tp: int,
    dtype: str,
    attention: Attention,
    gpu: Gpu | None = None,
    quantised: QuantizedWeights | None = None,
) -> MicrobatchSlice:
    """Return the part of a server's pass on a GPU: `tokens` new tokens of each sequence, which attend to `context` tokens.

    With fp8, weights, KV cache and matmuls are in 8 bits and the rest in 16 bits (bf16 if the GPU has it), as in real servers.
    Quantized weights are read in their own format. They are computed in it if it is fp8 or nvfp4 and the GPU supports it, else in
    `dtype`.
    """
    if dtype != "fp8":
        part = MicrobatchSlice(sequences, tokens, context, tp, dtype=dtype, attention=attention, cache=True)
    else:
        activations = "bf16" if gpu is None or "bf16" in gpu.flop else "fp16"
        part = MicrobatchSlice(
            sequences, tokens, context, tp, dtype=activations, products=dtype, attention=attention, cache=True, kept=dtype
        )
    return part if quantised is None or gpu is None else _quantized_slice(part, quantised, gpu)


def _quantized_slice(part: MicrobatchSlice, quantised: QuantizedWeights, gpu: Gpu) -> MicrobatchSlice:
    """Return the part with weights, keys and values in the checkpoint's formats."""
    part = replace(part, kept=part.kept or quantised.cache or "")
    forms = {
        "mxfp4": ("mxfp4-mxfp8", "mxfp4-weights"),
        "nvfp4": ("nvfp4",),
        "int4": ("int4-weights",),
        "fp8": () if quantised.group else ("fp8",),
    }.get(quantised.format, ())
    routed = next((form for form in forms if any(name.endswith(f" {form}") for name in gpu.experts)), "")
    if quantised.of == "experts" or routed:
        part = replace(part, routed=routed, weight_of_experts=quantised.width)
    if quantised.of == "experts" or part.products:
        return part
    if quantised.format == "fp8" and "fp8" in gpu.flop:
        return replace(part, products="fp8", variant="fp8-block" if quantised.group else "")
    if quantised.format == "nvfp4" and "fp4" in gpu.flop:
        return replace(part, products="fp4", weight=quantised.width)
    return replace(part, weight=quantised.width, weight_of_experts=quantised.width)


def experts_by(model: Transformer, gpu: Gpu, dtype: str, library: str) -> str:
    """Return the library kernel that runs a served model's experts, as named in a GPU's `experts`; "" without experts."""
    part = served_slice(1, 1, 1, 1, dtype, "flash", gpu, model.quantised)
    of_layers = (kernel.work.experts for kind in model.kinds if kind.experts > 1 for kernel in blocks.experts(kind, part))
    call = next(filter(None, of_layers), None)
    return "" if call is None else f"{library} {call.kernel.partition(' ')[2]}"


def formats(model: Transformer, gpu: Gpu, dtype: str) -> str | None:
    """Return the formats of a checkpoint's weights, matmuls and KV cache as text; None if all of them are `dtype`."""
    if model.quantised is None:
        return None
    part, form = served_slice(1, 1, 1, 1, dtype, "flash", gpu, model.quantised), model.quantised.format
    of_experts = model.quantised.of == "experts"
    if not of_experts and part.products == form:
        computed = f"computed in {form}"
    elif not of_experts and part.products:
        computed = f"read and computed in {part.products}, as --dtype says"
    elif not of_experts and part.products == "fp4":
        computed = "computed in fp4"
    elif part.routed:
        computed = f"computed by kernels of {part.routed}" + ("" if of_experts else f", outside the experts in {part.dtype}")
    else:
        computed = f"assumed: read so, and computed in {part.products or part.dtype}"
    parts = "experts" if of_experts else "linear maps of the layers"
    kept = f"; keys and values in {part.stored}" if part.stored != dtype else ""
    return f"{parts} in {form}, {computed}; the rest in {dtype}{kept}: as the checkpoint has them"


def one_pass(
    model: Transformer, part: MicrobatchSlice, cluster: Cluster, framework: Framework, times: KernelTimes | None = None
) -> InferencePass:
    """Return a pass of a batch in all layers, on the GPUs of one tensor-parallel group.

    Raises:
        WrongPlan: the group size does not divide heads or widths, or exceeds the GPUs.
    """
    mistakes = []
    if model.heads % part.tensor:
        mistakes.append(("tp", f"tp {part.tensor} does not divide {model.heads} heads"))
    else:
        mistakes += dict.fromkeys(uneven_widths(model, part.tensor))
    if part.tensor > cluster.gpus:
        mistakes.append(("tp", f"tp {part.tensor}, but there are {cluster.gpus} GPUs"))
    if mistakes:
        raise WrongPlan(tuple(mistakes))
    times = times or KernelTimes(cluster.gpu, framework)
    shares = forward_shares(
        pass_layers(model, part),
        seconds_by(times, lambda exchange: cluster.reduced(exchange.size, part.tensor, framework.all_reduce)),
    )
    if framework.step > 0:
        shares["host"] = framework.step
    kept = part.sequences * model.cached(part.context) if model.causal else 0.0  # an encoder has no KV cache
    memory = serving_memory(model, part.tensor, kept,
                            part.stored if model.kept("") == "" else part.dtype)  # fmt: skip
    return InferencePass(math.fsum(shares.values()), shares, memory, memory.verdict(cluster.gpu.memory.size))


def batch_pass(network: FeedForwardNetwork, batch: int, dtype: str, times: KernelTimes, software: Software) -> InferencePass:
    """Return the pass of a batch of examples in a CNN or MLP, on one GPU."""
    layers = layers_of(network, batch, dtype, training=False)
    shares = forward_shares(layers, seconds_by(times, lambda _: 0.0))
    issued = sum(len(layer.forward) for layer in layers)
    waited = software.issuing(dtype, issued, batch * size(network.input)) - math.fsum(shares.values())
    shares["host"] = software.waits + max(0.0, waited)
    memory = batch_memory(network, layers, dtype)
    return InferencePass(math.fsum(shares.values()), shares, memory, memory.verdict(times.gpu.memory.size))


def forward_shares(layers: Sequence[Layer], seconds: Seconds) -> dict[str, float]:
    """Return the seconds of each kind of work of some layers' forward pass."""
    shares: dict[str, float] = {}
    for layer in layers:
        for kind, share in by_kind(layer.forward, seconds).items():
            shares[kind] = shares.get(kind, 0.0) + layer.times * share
    return shares


def pass_layers(model: Transformer, part: MicrobatchSlice) -> tuple[Layer, ...]:
    """Return the layers of a pass: embedding, blocks, and the head for the last token of each sequence."""
    last = replace(part, tokens=1, context=1) if model.causal else None
    head = () if last is None else blocks.output(model, last, training=False)
    return (
        Layer("embedding", blocks.embedding(model, part)),
        *(
            replace(blocks.served_block(kind, part, blocks.block_name(number)), times=kind.layers)
            for number, kind in enumerate(model.kinds)
        ),
        Layer("head", head),
    )


@dataclass(frozen=True, slots=True)
class ServedBatch:
    """A batch served by one tensor-parallel group.

    Args:
        first: the prefill.
        steps: the first and the last decode step; None for prefill only.
        waits: server time of a request before its first and after its last kernel (s); 0 for prefill only.
        seconds: time of the prefill, or of the average decode step (s).
        total: time until the last token (s).
        memory: memory at the end.
        verdict: whether the memory suffices.
        capacity: KV cache capacity in tokens, over all layers.
        held: KV cache capacity in sequences.
        replicas: replicas on the cluster.
        formats: data types of weights, matmuls and cache as text; None for a model that is not quantized.
    """

    phase: Phase
    tp: int
    batch: int
    prompt: int
    output: int
    dtype: str
    first: InferencePass
    steps: tuple[InferencePass, InferencePass] | None
    waits: float
    seconds: float
    total: float
    memory: Footprint
    verdict: str
    capacity: int | None
    held: int | None
    replicas: int
    formats: str | None = None

    @property
    def ttft(self) -> float:
        """Time to first token (s)."""
        return self.first.seconds + self.waits

    @property
    def shares(self) -> dict[str, float]:
        """Time of each kind of work of the phase (s)."""
        if self.steps is None:
            return dict(self.first.shares)
        begin, end = self.steps
        return {name: (begin.shares.get(name, 0.0) + seconds) / 2 for name, seconds in end.shares.items()}

    @property
    def tokens_per_second(self) -> float:
        """Throughput of one group (tokens/s): prompt tokens in prefill, output tokens in decode."""
        return self.batch * (self.prompt if self.steps is None else 1) / self.seconds


def serve(
    model: Transformer,
    cluster: Cluster,
    framework: Framework,
    *,
    phase: Phase,
    tp: int,
    batch: int,
    prompt: int,
    output: int,
    dtype: str,
    times: KernelTimes | None = None,
) -> ServedBatch:
    """Return the service of a batch of prompts of `prompt` tokens, each followed by `output` tokens.

    Args:
        times: kernel times of earlier estimates, on the same GPU with the same framework.

    Raises:
        WrongPlan: the group size does not divide heads or widths, or exceeds the GPUs.
    """
    times = times or KernelTimes(cluster.gpu, framework)
    host = framework.server.host or HostTimes()
    beside = (host.step or 0.0) + batch * (host.each or 0.0)
    waits = (host.api or 0.0) + (host.out or 0.0) if phase == "decode" else 0.0

    def passes(tokens: int, context: int) -> InferencePass:
        part = served_slice(batch, tokens, context, tp, dtype, framework.attention, cluster.gpu, model.quantised)
        kernels = one_pass(model, part, cluster, framework, times)
        shares = {**kernels.shares, "host": kernels.shares.get("host", 0.0) + beside} if beside else kernels.shares
        return replace(kernels, seconds=math.fsum(shares.values()), shares=shares)

    first = passes(prompt, prompt)
    steps, seconds, total = None, first.seconds, waits + first.seconds
    if phase == "decode":
        begin, end = passes(1, prompt + 1), passes(1, prompt + output)
        steps = begin, end
        seconds = (begin.seconds + end.seconds) / 2
        total += (output - 1) * seconds  # the prefill emits the first token
    size, length = cluster.gpu.memory.size, model.cached(prompt + (output if steps else 0))
    memory = serving_memory(model, tp, batch * length if model.causal else 0.0, dtype)
    _, capacity = cache_room(model, tp, size, dtype, framework.server.on(size, cluster.gpu.generation))
    return ServedBatch(
        phase=phase,
        tp=tp,
        batch=batch,
        prompt=prompt,
        output=output if steps else 0,
        dtype=dtype,
        first=first,
        steps=steps,
        waits=waits,
        seconds=seconds,
        total=total,
        memory=memory,
        verdict=memory.verdict(size),
        capacity=capacity,
        held=None if capacity is None else int(capacity // length),
        replicas=max(1, cluster.gpus // tp),
        formats=formats(model, cluster.gpu, dtype),
    )
