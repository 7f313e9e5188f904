"""Layers of a transformer on one GPU, for one micro-batch: embedding, blocks, head.

Linear layers are matmuls, split over `tensor` GPUs. The backward pass of an m x n x k matmul has two: m x k x n for its input and
k x n x m for its weights. Attention is `plain` or `flash`:

    plain   two batched matmuls, with the scores written to memory between them
    flash   one kernel that keeps the scores on chip and recomputes them in backward, with 2.5 times the forward work

All other kernels move bytes: `passes` over arrays of tokens x width.

**Source**: Vaswani et al. 2017; Shoeybi et al., "Megatron-LM", arXiv:1909.08053 (tensor parallel); Korthikanti et al.,
arXiv:2205.05198 (sequence parallel); Dao, "FlashAttention-2", arXiv:2307.08691 (2.5).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Final

from hwsim.devices import AttentionCall, Work
from hwsim.devices.gpu_attention import LIBRARIES
from hwsim.devices.gpu_experts import FORMATS, random_experts_call
from hwsim.models.architectures import latent_layers
from hwsim.models.architectures.slices import NARROW as NARROW_FORMATS
from hwsim.models.architectures.slices import MicrobatchSlice, cast, memory_kernel, product, transposition, with_fp8_casts
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.layer import Exchange, Item, Kernel, Layer
from hwsim.units import BYTES

FLASH_BACKWARD: Final = 2.5  # backward work relative to forward: five matmuls instead of two
FORWARD_PASSES: Final = 6.0  # reads and writes of the scores of plain attention: scale and mask, softmax, dropout
BACKWARD_PASSES: Final = 8.0
SUMMED: Final = ("projection", "down", "experts", "unpermute")  # kernels whose results a tensor-parallel group sums
NARROW: Final = "fp8-block"  # format of 8-bit expert weights: published ones have a scale per block


@lru_cache(maxsize=4096)
def forward(model: Transformer, part: MicrobatchSlice) -> tuple[Kernel, ...]:
    """Return the forward kernels of one layer of a model with equal layers, in order."""
    t, w, rows = part.tensor, part.width, part.rows
    h = model.hidden
    kept = rows / (t if part.sharded else 1) * h * w  # hidden-state bytes on this GPU
    drops = 0.5 if model.dropout else 0.0  # a mask of 1 B per element of 2 B
    norm = memory_kernel("norm", kept, kept, part.dtype, across=h)
    after = (norm,) if model.norms >= 4 else ()
    kernels = [
        norm,
        *(maps(model, part) if model.latent is None else latent_layers.maps(model, model.latent, part)),
        *(attention(model, part) if model.latent is None else latent_layers.attention(model, model.latent, part)),
        *with_fp8_casts(product("projection", rows, h, model.attended // t, part, narrow=True), part),
        *after,
    ]
    if model.norms > 1:  # else attention and feed-forward network share a norm and a residual add
        kernels += [memory_kernel("residual", 2 * kept, (1 + drops) * kept, part.dtype, across=h), norm]
    more = 0 if model.norms > 1 else 1
    kernels += [
        *feed_forward(model, part),
        *(norm for _ in range(model.norms - 4)),
        *after,
        memory_kernel("residual", (2 + more) * kept, (1 + drops) * kept, part.dtype, across=h),
    ]
    return tuple(kernels)


def maps(model: Transformer, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the projections to queries, keys and values, with their norms and rotary embedding."""
    t, rows = part.tensor, part.rows
    wide = model.queries + model.keys + (0 if model.shared_values else model.values)
    yield from with_fp8_casts(product("qkv", rows, wide // t, model.hidden, part, narrow=True), part)
    turned = rows * (model.queries + model.keys) / t * part.width
    if model.qk_norm == "whole" and t > 1:  # squares are summed locally, then over the GPUs
        yield memory_kernel("qk-squares", turned, 8.0 * rows, part.dtype)
    if model.qk_norm != "none":
        yield memory_kernel("qk-norm", turned, turned, part.dtype)
    if model.positions == "rotary":
        yield memory_kernel("rotary", turned, turned, part.dtype)


def attention(model: Transformer, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the attention kernels: scores, softmax, weighted values; or one fused kernel."""
    t, w = part.tensor, part.width
    heads = max(1, model.heads // t)
    scores = float(part.sequences * heads * part.tokens * part.context) / part.ring
    if part.attention == "flash":
        yield Kernel("attention", "attention", _fused_work(model, part, scores))
        return
    batch = part.sequences * heads
    yield product("scores", part.tokens, part.context, model.of_head, part, batch, "attention")
    passes = FORWARD_PASSES if model.dropout else FORWARD_PASSES - 2.0
    yield memory_kernel("softmax", passes / 2 * scores * w, passes / 2 * scores * w, part.dtype, "attention")
    yield product("values", part.tokens, model.of_head, part.context, part, batch, "attention")


def _fused_work(model: Transformer, part: MicrobatchSlice, scores: float) -> Work:
    t, w, window = part.tensor, part.width, model.seen
    call = AttentionCall(
        sequences=part.sequences / part.ring,
        queries=part.tokens,
        cached=part.context - part.tokens,
        heads=max(1, model.heads // t),
        kv_heads=max(1, model.of_kv_heads // t),
        head=model.of_head,
        width=w,
        kv_width=BYTES[part.stored],
        causal=float(model.causal),
        written=float(part.cache),
        window=window,
    )
    seen = 0.5 if model.causal and part.tokens > 1 and part.tokens == part.context else 1.0
    if model.causal and 1 < part.tokens < part.context:
        seen = (part.context - part.tokens / 2) / part.context
    if 0 < window < part.context:
        seen = call.seen / part.context
    queries = part.rows * model.queries / t
    keys = 2.0 * part.sequences * call.reach * max(model.keys / t, model.of_head) / part.ring
    return Work(flop=4.0 * scores * model.of_head * seen, reads=queries * w + keys * call.kv_width, writes=queries * w,
                dtype=part.dtype, mix="matmul", attention=call)  # fmt: skip


def feed_forward(model: Transformer, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the feed-forward kernels: up, activation, down; or router, shared expert and this GPU's experts."""
    t, w, rows, h = part.tensor, part.width, part.rows, model.hidden
    f, g = model.of_ffn // t, model.gates
    if model.experts > 1:
        yield product("router", rows, model.experts, h, dataclasses.replace(part, products="") if part.cache else part)
        if model.shared:
            yield from shared_expert_kernels(model, part)
        yield from experts(model, part) if part.cache else grouped_experts(model, part)
        return
    yield from with_fp8_casts(product("up", rows, g * f, h, part, narrow=True), part)
    yield memory_kernel("activation", g * rows * f * w, rows * f * w, part.dtype, across=f)
    yield from with_fp8_casts(product("down", rows, h, f, part, narrow=True), part)


def shared_expert_kernels(model: Transformer, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the kernels of the shared expert, whose result is added to that of the routed experts."""
    rows, h, f, g = part.rows, model.hidden, model.shared // part.tensor, model.gates
    yield from with_fp8_casts(product("shared-up", rows, g * f, h, part, narrow=True), part)
    yield memory_kernel("activation", g * rows * f * part.width, rows * f * part.width, part.dtype, across=f)
    yield from with_fp8_casts(product("shared-down", rows, h, f, part, narrow=True), part)
    if model.shared_gate:
        yield product("shared-gate", rows, 1, h, part)


def experts(model: Transformer, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the kernel of a server's experts on this GPU, which sorts, multiplies and sums random tokens."""
    h, f = model.hidden, max(1, model.of_ffn // part.of_expert)
    count = max(1, model.experts // part.expert)
    dtype = part.products or part.dtype
    weight, form = BYTES[dtype], "bf16" if BYTES[dtype] > 1 else NARROW
    if part.routed:
        (dtype, weight), form = FORMATS[part.routed], part.routed
    elif part.weight_of_experts > 0:  # read in their own format, computed in the activations' format
        dtype, weight, form = part.dtype, part.weight_of_experts, "bf16"
    kernel = f"{LIBRARIES[0]} {form}"
    call = random_experts_call(
        part.rows * part.together,
        model.top_k,
        model.experts,
        count,
        h,
        f,
        model.gates,
        kernel,
        weight=weight,
        width=part.width,
    )
    weights = call.active * (call.gates + 1) * h * f
    output = call.tokens * h * part.width
    work = Work(flop=call.flop, reads=weights * weight + output, writes=output, dtype=dtype, mix="matmul", experts=call)
    yield Kernel("experts", "matmul", work)


def grouped_experts(model: Transformer, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the kernels of the experts in a training: tokens are sorted, multiplied by one expert after another, and summed.

    Each expert of a GPU receives the same number of tokens. The kernels are those of the most loaded GPU, because the others wait
    for it. A cast is one kernel for all experts.
    """
    h, f, g, w = model.hidden, max(1, model.of_ffn // part.of_expert), model.gates, part.width
    count = max(1, model.experts // part.expert)
    pairs = part.rows * model.top_k * part.imbalance
    rows = max(1, math.ceil(pairs / count))
    yield memory_kernel("permute", pairs * h * w, pairs * h * w, part.dtype)
    for name, columns, depth in (("up", g * f, h), ("down", h, f)):
        if part.products in NARROW_FORMATS:
            yield cast(f"cast-experts-{name}", float(rows + columns) * depth * count, part)
        matmul = product(f"experts-{name}", rows, columns, depth, part, narrow=True)
        yield dataclasses.replace(matmul, times=float(count))
        if name == "up":
            yield memory_kernel("activation", g * pairs * f * w, pairs * f * w, part.dtype, across=f)
    yield memory_kernel("unpermute", pairs * h * w, pairs * h * w, part.dtype)


@lru_cache(maxsize=4096)
def backward(model: Transformer, part: MicrobatchSlice) -> tuple[Kernel, ...]:
    """Return the backward kernels of one layer, in order, without recomputation."""
    kernels: list[Kernel] = []
    for kernel in reversed(forward(model, part)):
        kernels += _gradients(kernel, part, model)
    return tuple(kernels)


def _gradients(kernel: Kernel, part: MicrobatchSlice, model: Transformer) -> Iterator[Kernel]:
    """Yield the kernels of a kernel's input gradient, then of its weight gradient."""
    work, shape = kernel.work, kernel.work.product
    if shape is not None:
        if work.dtype != part.dtype and part.products:
            yield cast(f"cast-d-{kernel.name}", shape.m * shape.n * shape.batch * kernel.times, part)
            yield transposition(f"transpose-{kernel.name}", shape, kernel.times)
        for name, rows, columns, depth in (
            ("d", shape.m, shape.k, shape.n),
            ("w", shape.k, shape.n, shape.m),
        ):
            gradient = product(f"{name}-{kernel.name}", rows, columns, depth, part, shape.batch, kernel.kind)
            yield dataclasses.replace(gradient, times=kernel.times)
    elif kernel.kind == "cast":
        return
    elif kernel.flash:
        more = dataclasses.replace(work, flop=FLASH_BACKWARD * work.flop, reads=3 * work.reads, writes=3 * work.writes)
        yield Kernel("d-attention", kernel.kind, more)
    elif kernel.name == "softmax":
        factor = BACKWARD_PASSES / FORWARD_PASSES
        yield memory_kernel("d-softmax", factor * work.reads, factor * work.writes, work.dtype, kernel.kind)
    elif kernel.name == "residual":  # the gradient is unchanged, except for the dropout mask
        yield memory_kernel("d-residual", work.reads / 2 + (work.reads / 2 if model.dropout else 0), work.reads / 2, work.dtype)
    elif kernel.name in ("norm", "activation"):  # reads input and output gradient
        yield memory_kernel(f"d-{kernel.name}", work.reads + work.writes, work.reads, work.dtype)
        if kernel.name == "norm":  # added to the gradient of the residual path
            yield memory_kernel("d-add", 2 * work.writes, work.writes, work.dtype)
    else:
        yield memory_kernel(f"d-{kernel.name}", work.writes, work.reads, work.dtype)


@lru_cache(maxsize=4096)
def embedding(model: Transformer, part: MicrobatchSlice) -> tuple[Kernel, ...]:
    """Return the kernels of the embedding, or of the patch projection; backward moves the same bytes."""
    if model.patches is not None:
        return (product("patches", part.rows, model.hidden, model.patches.numbers, part, kind="output"),)
    size = part.rows * model.hidden * part.width
    return (memory_kernel("embedding", 2 * size, (2 if model.embedding_norm or model.dropout else 1) * size, part.dtype),)


@lru_cache(maxsize=4096)
def output(model: Transformer, part: MicrobatchSlice, *, training: bool = True) -> tuple[Kernel, ...]:
    """Return the kernels of the final norm and the logits; in training also loss and backward, in a server sampling.

    The output matrix is split over `tensor` GPUs.
    """
    rows, columns, h = part.rows, max(1, (model.vocab or model.classes) // part.tensor), model.hidden
    if model.patches is not None:  # only the first token of each image
        rows = part.sequences
    half = dataclasses.replace(part, products="")
    logits = product("logits", rows, columns, h, half, kind="output")
    norm = rows * h * part.width
    kernels = [memory_kernel("final norm", norm, norm, part.dtype, "output"), logits]
    if not training and model.causal and model.vocab:  # fp32 logits of the whole vocabulary on one GPU
        name = "top-p" if model.top_p else "sampling"
        kernels.append(memory_kernel(name, 4.0 * rows * model.vocab, 4.0 * rows, part.dtype, "output"))
    if training:
        scores = 4.0 * rows * columns  # in fp32
        kernels += [
            memory_kernel("loss", 2 * scores, scores, "fp32", "output"),
            memory_kernel("d-loss", scores, scores / 2, "fp32", "output"),
            product("d-logits", rows, h, columns, half, kind="output"),
            product("w-logits", h, columns, rows, half, kind="output"),
            memory_kernel("d-final norm", 2 * norm, norm, part.dtype, "output"),
        ]
    return tuple(kernels)


@lru_cache(maxsize=1024)
def block(
    model: Transformer,
    part: MicrobatchSlice,
    recompute: str = "none",
    exposed: float = 1.0,
    repeated: float = 0.0,
    *,
    stops: bool = False,
    name: str = "block",
) -> Layer:
    """Return one block with the exchanges of tensor, context and expert parallelism.

    Args:
        recompute: work that backward repeats: none, selective (attention scores), full.
        exposed: exposed share of the tensor-parallel collectives.
        repeated: share of the matmuls that selective recompute repeats.
        stops: full recompute skips the last matmul, whose result backward does not need.
    """
    ahead = _with_exchanges(model, part, forward(model, part), SUMMED, exposed)
    back = _with_exchanges(model, part, backward(model, part), ("d-qkv", "d-latent-up", "d-up", "d-permute"), exposed)
    again: tuple[Item, ...] = ()
    if recompute == "full":
        again = tuple(takewhile(lambda item: item.name != "down", ahead)) if stops else ahead
    elif recompute == "selective":
        scores = [kernel for kernel in forward(model, part) if kernel.kind == "attention" and not kernel.flash]
        cheap = [kernel for kernel in forward(model, part) if kernel.kind == "elementwise"] if repeated > 0 else []
        products = [kernel for kernel in forward(model, part) if kernel.kind in ("matmul", "cast")] if repeated > 0 else []
        again = (*scores, *cheap, *(dataclasses.replace(kernel, times=repeated) for kernel in products))
    return Layer(name, ahead, again, back, share(model, part.tensor, part.expert),
                 output_bytes=part.rows * model.hidden * part.width)  # fmt: skip


@lru_cache(maxsize=1024)
def served_block(model: Transformer, part: MicrobatchSlice, name: str) -> Layer:
    """Return one block of a server, forward only."""
    ahead = _with_exchanges(model, part, forward(model, part), SUMMED, 1.0)
    return Layer(name, ahead, output_bytes=part.rows * model.hidden * part.width)


@lru_cache(maxsize=1024)
def share(model: Transformer, tensor: int, expert: int) -> float:
    """Return the parameters of a layer on one GPU, with matrices split over `tensor` and experts over `expert` GPUs."""
    experts, whole = model.experts * model.expert_parameters, model.whole
    spread = expert if model.experts > 1 else 1
    return (model.layer_parameters - experts - whole) / tensor + experts / (tensor * spread) + whole


def block_name(kind: int) -> str:
    """Return the name of the layers of a kind.

    >>> block_name(0), block_name(1)
    ('block', 'block 2')
    """
    return f"block {kind + 1}" if kind else "block"


def _with_exchanges(
    model: Transformer, part: MicrobatchSlice, kernels: tuple[Kernel, ...], after: tuple[str, ...], exposed: float
) -> tuple[Item, ...]:
    """Return the kernels with the exchanges between them.

    Args:
        after: names of kernels whose results a tensor-parallel group sums.
    """
    size = part.rows * model.hidden * part.width
    items: list[Item] = []
    for kernel in kernels:
        sent = size * (1 if part.flex else model.top_k) / (part.tensor if part.sharded else 1)
        copies = model.top_k if part.flex else 0
        tokens = Exchange("tokens", "all-to-all", "ep", sent, part.dispatched, copies=copies)
        if part.expert > 1 and kernel.name in ("experts", "permute", "d-unpermute"):
            items.append(dataclasses.replace(tokens, received=part.imbalance))
        if part.ring > 1 and kernel.flash:
            keys = part.sequences * part.context * max((model.keys + model.values) / part.tensor, 2 * model.of_head) * part.width
            turns = 2.0 if kernel.name.startswith("d-") else 1.0
            items.append(Exchange("keys and values", "all-gather", "cp", keys, exposed=0.5, times=turns))
        items.append(kernel)
        if part.expert > 1 and kernel.name in ("experts", "unpermute", "d-permute"):
            items.append(dataclasses.replace(tokens, sent=part.imbalance))
        if part.tensor > 1 and kernel.name in after:
            if part.sharded:
                items.append(Exchange("gather", "all-gather", "tp", size, exposed))
                items.append(Exchange("scatter", "reduce-scatter", "tp", size, exposed))
            else:
                items.append(Exchange("sum", "all-reduce", "tp", size, exposed))
    return tuple(items)


def embedding_layer(model: Transformer, part: MicrobatchSlice) -> Layer:
    """Return the layer in front of the first block; backward writes as much as forward reads."""
    kernels, size = embedding(model, part), part.rows * model.hidden * part.width
    return Layer("embedding", kernels, (), kernels, model.embedding_parameters / part.tensor, output_bytes=size)


def head_layer(model: Transformer, part: MicrobatchSlice, *, copied: bool = False) -> Layer:
    """Return the layer of final norm, logits and loss; `copied`: the stage has a copy of the embedding table."""
    kernels = output(model, part)
    table = model.vocab * model.hidden if copied else 0
    return Layer("head", kernels[:3], (), kernels[3:], (model.head_parameters + table) / part.tensor)
