"""Layers of a transformer on one GPU, for one micro-batch: embedding, blocks, head.

The linear maps are matrix products, split over `tensor` GPUs. A product of m x n x k becomes two backward: m x k x n for its
input and k x n x m for its weights. Attention is `plain` or `flash`:

    plain   two batched products, with the scores written to memory between them
    flash   one kernel that keeps the scores on the chip and recomputes them backward: 2.5 times the forward work

Everything else moves bytes: `passes` over arrays of tokens x width.

**Source**: Vaswani et al. 2017; Shoeybi et al., "Megatron-LM", arXiv:1909.08053 (tensor parallel); Korthikanti et al.,
arXiv:2205.05198 (sequence parallel); Dao, "FlashAttention-2", arXiv:2307.08691 (2.5).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Final, Literal

from hwsim.devices import Attended, Product, Work
from hwsim.devices.gpu_attention import LIBRARIES
from hwsim.devices.gpu_experts import experts_call
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.layer import Exchange, Item, Kernel, Kind, Layer
from hwsim.records import dataclass
from hwsim.units import BYTES

Attention = Literal["plain", "flash"]

FLASH_BACKWARD: Final = 2.5  # of the forward work: five products in place of two
FORWARD_PASSES: Final = 6.0  # over the scores of plain attention: scale and mask, softmax, dropout, each read and written
BACKWARD_PASSES: Final = 8.0
NARROW: Final = "fp8-block"  # weights of experts in 8 bits: the published ones have a scale for each block


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a micro-batch on one GPU.

    Args:
        sequences: sequences of the micro-batch.
        tokens: tokens of each sequence that are computed: all of them, or the one that is decoded.
        context: tokens that each of them looks at, itself included, where it sees all.
        tensor: GPUs that a layer's matrices are split over.
        sharded: norms and residuals are split over them as well (sequence parallel).
        expert: GPUs that a layer's experts are split over.
        ring: GPUs that each sequence is split over (context parallel).
        dtype: number format of activations; products: of matrix products, if another.
        cache: keys and values are written to a cache, as a server does; kept: their number format there, if another.
    """

    sequences: int
    tokens: int
    context: int
    tensor: int = 1
    sharded: bool = False
    expert: int = 1
    ring: int = 1
    dtype: str = "bf16"
    products: str = ""
    attention: Attention = "flash"
    cache: bool = False
    kept: str = ""

    @property
    def stored(self) -> str:
        """Number format of weights and of the cache of a server."""
        return self.kept or self.dtype

    @property
    def rows(self) -> int:
        """Tokens of the micro-batch on this GPU."""
        return max(1, self.sequences * self.tokens // self.ring)

    @property
    def width(self) -> float:
        return BYTES[self.dtype]


def product(name: str, rows: int, columns: int, depth: int, part: Slice, batch: int = 1, kind: Kind = "matmul") -> Kernel:
    """(rows x depth) by (depth x columns): a linear map of that many tokens.

    The kernel of a server that computes in 8 bits casts what comes in (a training does so apart: `casting`).
    """
    dtype = part.products or part.dtype
    casts = part.width if part.cache and part.products and kind == "matmul" else 0.0
    work = Work(
        flop=2.0 * rows * columns * depth * batch,
        reads=(rows * depth + depth * columns) * batch * BYTES[dtype],
        writes=rows * columns * batch * part.width,
        dtype=dtype,
        mix="matmul",
        product=Product(max(1, rows), max(1, columns), max(1, depth), batch, cast=casts),
    )
    return Kernel(name, kind, work)


def casting(kernel: Kernel, part: Slice) -> Iterator[Kernel]:
    """A product of a training, after both of its factors have been turned into 8-bit numbers, if it computes in them."""
    shape = kernel.work.product
    if part.products == "fp8" and not part.cache and shape is not None and kernel.work.dtype != part.dtype:
        yield cast(f"cast-{kernel.name}", (shape.m + shape.n) * shape.k * shape.batch, part)
    yield kernel


def cast(name: str, count: float, part: Slice) -> Kernel:
    """So many numbers in 8 bits: one kernel looks for the largest of an array, one scales and converts."""
    work = Work(reads=2 * count * part.width, writes=count, dtype=part.dtype, kernels=2)
    return Kernel(name, "cast", work)


def transposition(name: str, shape: Product) -> Kernel:
    """Both factors and the gradient of a product the other way round, as 8-bit matrix units read them along the depth."""
    count = (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * shape.batch
    return Kernel(name, "cast", Work(reads=float(count), writes=float(count), dtype="fp8", kernels=3))


def moving(name: str, reads: float, writes: float, dtype: str, kind: Kind = "elementwise", across: int = 0) -> Kernel:
    """A kernel that only moves bytes."""
    return Kernel(name, kind, Work(reads=reads, writes=writes, dtype=dtype), across=across)


@lru_cache(maxsize=4096)
def forward(model: Transformer, part: Slice) -> tuple[Kernel, ...]:
    """The kernels of one layer, in their order."""
    t, w, rows = part.tensor, part.width, part.rows
    h, wide = model.hidden, (model.queries + 2 * model.keys) // t
    kept = rows / (t if part.sharded else 1) * h * w  # bytes of the stream between blocks, on this GPU
    rotary = rows * (model.queries + model.keys) / t * w if model.positions == "rotary" else 0.0
    drops = 0.5 if model.dropout else 0.0  # of an array of 2 B: a mask of 1 B
    kernels = [
        moving("norm", kept, kept, part.dtype, across=h),
        *casting(product("qkv", rows, wide, h, part), part),
    ]
    if rotary:
        kernels.append(moving("rotary", rotary, rotary, part.dtype))
    kernels += list(attention(model, part))
    kernels += [
        *casting(product("projection", rows, h, model.queries // t, part), part),
        moving("residual", 2 * kept, (1 + drops) * kept, part.dtype, across=h),
        moving("norm", kept, kept, part.dtype, across=h),
        *feed_forward(model, part),
        moving("residual", 2 * kept, (1 + drops) * kept, part.dtype, across=h),
    ]
    return tuple(kernels)


def attention(model: Transformer, part: Slice) -> Iterator[Kernel]:
    """Scores, softmax, and the values they weigh."""
    t, w = part.tensor, part.width
    heads = max(1, model.heads // t)
    scores = float(part.sequences * heads * part.tokens * part.context) / part.ring
    if part.attention == "flash":
        for share, window in model.windows:
            yield Kernel("attention", "attention", _fused(model, part, scores, window), share)
        return
    batch = part.sequences * heads
    yield product("scores", part.tokens, part.context, model.of_head, part, batch, "attention")
    passes = FORWARD_PASSES if model.dropout else FORWARD_PASSES - 2.0
    yield moving("softmax", passes / 2 * scores * w, passes / 2 * scores * w, part.dtype, "attention")
    yield product("values", part.tokens, model.of_head, part.context, part, batch, "attention")


def _fused(model: Transformer, part: Slice, scores: float, window: int) -> Work:
    """Attention in one kernel; each token sees `window` tokens at most (0: any number)."""
    t, w = part.tensor, part.width
    call = Attended(
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


def feed_forward(model: Transformer, part: Slice) -> Iterator[Kernel]:
    """Up, activation, down; with experts, their router and the kernel of those on this GPU."""
    t, w, rows, h = part.tensor, part.width, part.rows, model.hidden
    f, g = model.of_ffn // t, model.gates
    if model.experts > 1:
        yield product("router", rows, model.experts, h, part)
        yield from experts(model, part)
        return
    yield from casting(product("up", rows, g * f, h, part), part)
    yield moving("activation", g * rows * f * w, rows * f * w, part.dtype, across=f)
    yield from casting(product("down", rows, h, f, part), part)


def experts(model: Transformer, part: Slice) -> Iterator[Kernel]:
    """The experts on this GPU, to which tokens go alike: sorted, multiplied and summed in kernels of their own."""
    dtype, h, f = part.products or part.dtype, model.hidden, model.of_ffn // part.tensor
    count = max(1, model.experts // part.expert)
    top_k = min(model.top_k, count)  # of a token; where a GPU has fewer, more tokens come
    tokens = max(1, part.rows * model.top_k // top_k)
    weight = BYTES[dtype]
    kernel = f"{LIBRARIES[0]} {'bf16' if weight > 1 else NARROW}"
    call = experts_call(tokens, top_k, count, h, f, model.gates, kernel, weight=weight, width=part.width)
    weights = call.active * (call.gates + 1) * h * f
    if part.products == "fp8" and not part.cache:
        yield cast("cast-experts", call.pairs * (h + f) + weights, part)
    output = call.tokens * h * part.width
    work = Work(flop=call.flop, reads=weights * weight + output, writes=output, dtype=dtype, mix="matmul", experts=call)
    yield Kernel("experts", "matmul", work)


@lru_cache(maxsize=4096)
def backward(model: Transformer, part: Slice) -> tuple[Kernel, ...]:
    """The kernels of one layer backward, in their order, without recomputation."""
    kernels: list[Kernel] = []
    for kernel in reversed(forward(model, part)):
        kernels += _gradients(kernel, part, model)
    return tuple(kernels)


def _gradients(kernel: Kernel, part: Slice, model: Transformer) -> Iterator[Kernel]:
    """Kernels of the gradient of its input, then of its weights."""
    work, shape = kernel.work, kernel.work.product
    if shape is not None:
        if work.dtype != part.dtype and part.products:
            yield cast(f"cast-d-{kernel.name}", shape.m * shape.n * shape.batch, part)
            yield transposition(f"transpose-{kernel.name}", shape)
        for name, rows, columns, depth in (
            ("d", shape.m, shape.k, shape.n),
            ("w", shape.k, shape.n, shape.m),
        ):
            yield product(f"{name}-{kernel.name}", rows, columns, depth, part, shape.batch, kernel.kind)
    elif kernel.kind == "cast":
        return
    elif kernel.flash:
        more = dataclasses.replace(work, flop=FLASH_BACKWARD * work.flop, reads=3 * work.reads, writes=3 * work.writes)
        yield Kernel("d-attention", kernel.kind, more, kernel.times)
    elif work.experts is not None:  # of its input, and of its weights: as much again each
        if work.dtype != part.dtype and part.products:
            yield cast("cast-d-experts", work.experts.pairs * model.hidden, part)
        yield Kernel("d-experts", kernel.kind, work)
        yield Kernel("w-experts", kernel.kind, work)
    elif kernel.name == "softmax":
        factor = BACKWARD_PASSES / FORWARD_PASSES
        yield moving("d-softmax", factor * work.reads, factor * work.writes, work.dtype, kernel.kind)
    elif kernel.name == "residual":  # the gradient passes on as it is; a mask is applied to it
        yield moving("d-residual", work.reads / 2 + (work.reads / 2 if model.dropout else 0), work.reads / 2, work.dtype)
    elif kernel.name in ("norm", "activation"):  # its input, and the gradient of its output
        yield moving(f"d-{kernel.name}", work.reads + work.writes, work.reads, work.dtype)
        if kernel.name == "norm":  # added to the gradient that went around it
            yield moving("d-add", 2 * work.writes, work.writes, work.dtype)
    else:
        yield moving(f"d-{kernel.name}", work.writes, work.reads, work.dtype)


@lru_cache(maxsize=4096)
def embedding(model: Transformer, part: Slice) -> tuple[Kernel, ...]:
    """Rows of the tables, forward; backward as much again."""
    size = part.rows * model.hidden * part.width
    return (moving("embedding", 2 * size, (2 if model.embedding_norm or model.dropout else 1) * size, part.dtype),)


@lru_cache(maxsize=4096)
def output(model: Transformer, part: Slice, *, training: bool = True) -> tuple[Kernel, ...]:
    """Final norm, logits and, in training, the loss and the way back; the table is split over `tensor` GPUs."""
    rows, columns, h = part.rows, max(1, model.vocab // part.tensor), model.hidden
    half = dataclasses.replace(part, products="")
    logits = product("logits", rows, columns, h, half, kind="output")
    norm = rows * h * part.width
    kernels = [moving("final norm", norm, norm, part.dtype, "output"), logits]
    if training:
        scores = 4.0 * rows * columns  # in fp32
        kernels += [
            moving("loss", 2 * scores, scores, "fp32", "output"),
            moving("d-loss", scores, scores / 2, "fp32", "output"),
            product("d-logits", rows, h, columns, half, kind="output"),
            product("w-logits", h, columns, rows, half, kind="output"),
            moving("d-final norm", 2 * norm, norm, part.dtype, "output"),
        ]
    return tuple(kernels)


@lru_cache(maxsize=1024)
def block(
    model: Transformer,
    part: Slice,
    recompute: str = "none",
    exposed: float = 1.0,
    repeated: float = 0.0,
    *,
    stops: bool = False,
) -> Layer:
    """One block, with the exchanges of tensor, context and expert parallel.

    Args:
        recompute: what backward repeats: none, selective (attention scores), full.
        exposed: part of tensor-parallel collectives that nothing hides.
        repeated: part of the matrix products that selective recompute repeats.
        stops: full recompute does not repeat the last product, whose result backward does not need.
    """
    ahead = _with_exchanges(model, part, forward(model, part), ("projection", "down", "experts"), exposed)
    back = _with_exchanges(model, part, backward(model, part), ("d-qkv", "d-up", "d-experts"), exposed)
    again: tuple[Item, ...] = ()
    if recompute == "full":
        again = tuple(takewhile(lambda item: item.name != "down", ahead)) if stops else ahead
    elif recompute == "selective":
        scores = [kernel for kernel in forward(model, part) if kernel.kind == "attention" and not kernel.flash]
        cheap = [kernel for kernel in forward(model, part) if kernel.kind == "elementwise"] if repeated > 0 else []
        products = [kernel for kernel in forward(model, part) if kernel.kind in ("matmul", "cast")] if repeated > 0 else []
        again = (*scores, *cheap, *(dataclasses.replace(kernel, times=repeated) for kernel in products))
    experts = model.experts * model.expert_parameters
    parameters = (model.layer_parameters - experts) / part.tensor + experts / (part.tensor * part.expert)
    return Layer("block", ahead, again, back, parameters, output_bytes=part.rows * model.hidden * part.width)


def _with_exchanges(
    model: Transformer, part: Slice, kernels: tuple[Kernel, ...], after: tuple[str, ...], exposed: float
) -> tuple[Item, ...]:
    """The kernels and what the GPUs exchange between them.

    Args:
        after: kernels whose results the GPUs of a tensor-parallel group sum.
    """
    size = part.rows * model.hidden * part.width
    items: list[Item] = []
    for kernel in kernels:
        routes = part.expert > 1 and kernel.name in ("experts", "d-experts")
        tokens = Exchange("tokens", "all-to-all", "ep", size * model.top_k / (part.tensor if part.sharded else 1))
        if routes:
            items.append(tokens)
        if part.ring > 1 and kernel.flash:
            keys = 2.0 * part.sequences * part.context * max(model.keys / part.tensor, model.of_head) * part.width
            turns = 2.0 if kernel.name.startswith("d-") else 1.0
            items.append(Exchange("keys and values", "all-gather", "cp", keys, exposed=0.5, times=turns * kernel.times))
        items.append(kernel)
        if routes:
            items.append(tokens)
        if part.tensor > 1 and kernel.name in after:
            if part.sharded:
                items.append(Exchange("gather", "all-gather", "tp", size, exposed))
                items.append(Exchange("scatter", "reduce-scatter", "tp", size, exposed))
            else:
                items.append(Exchange("sum", "all-reduce", "tp", size, exposed))
    return tuple(items)


def embedding_layer(model: Transformer, part: Slice) -> Layer:
    """The tables before the first block; backward writes as much as forward reads."""
    kernels, size = embedding(model, part), part.rows * model.hidden * part.width
    return Layer("embedding", kernels, (), kernels, model.embedding_parameters / part.tensor, output_bytes=size)


def head_layer(model: Transformer, part: Slice, *, copied: bool = False) -> Layer:
    """Final norm, logits and loss; `copied`: the stage has a copy of the embedding table."""
    kernels = output(model, part)
    table = model.vocab * model.hidden if copied else 0
    return Layer("head", kernels[:3], (), kernels[3:], (model.head_parameters + table) / part.tensor)
