"""Kernels of multi-head latent attention: all heads share one latent vector of keys and values, and only this vector is cached.

Matrices of a layer with hidden size h, a heads, head widths n (no position), r (rotary) and v (value), latent rank c, and query
rank q:

    down   h x (q + c + r)           replicated on every GPU of a tensor-parallel group, as are the norms of both vectors
    up     q x a (n + r), c x a (n + v)

Prefill computes keys and values of all heads from the latent vectors: attention of a heads of widths n + r and v. Decode reads
only the latent vectors: each head's query is projected to the latent space, so that a head reads c + r numbers and returns c.
These projections use the `up` matrices, with the same FLOP and bytes for one token.

The indexer has separate keys. Each query of its heads is multiplied with the keys of all tokens, and attention reads the tokens
with the `chosen` highest sums.

**Source**: DeepSeek-AI, "DeepSeek-V2", arXiv:2405.04434, section 2.1; DeepSeek-V3.2, 2025 (indexer).
**Error**: attention of DeepSeek-V3's sizes: see `docs/validation/components.md`; other sizes, and the indexer, are not validated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from hwsim.devices import AttentionCall, Work
from hwsim.models.architectures.layer_parts import Indexer, Latent
from hwsim.models.architectures.slices import MicrobatchSlice, memory_kernel, product, with_fp8_casts
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.layer import Kernel
from hwsim.units import BYTES


def maps(model: Transformer, latent: Latent, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the projections to queries and the cached latent vector, and from it to keys and values of the new tokens."""
    t, w, rows, h = part.tensor, part.width, part.rows, model.hidden
    vectors = latent.cached + (latent.query_rank or 0)
    yield from with_fp8_casts(product("latent-down", rows, vectors, h, part, narrow=True), part)
    normed = rows * (vectors - latent.rotary) * w
    yield memory_kernel("latent-norm", normed, normed, part.dtype)
    depth = latent.query_rank or h
    yield from with_fp8_casts(product("latent-queries", rows, model.queries // t, depth, part, narrow=True), part)
    wide = model.heads // t * (latent.plain + latent.values)
    yield from with_fp8_casts(product("latent-up", rows, wide, latent.rank, part, narrow=True), part)
    turned = rows * (model.heads // t + 1) * latent.rotary * w
    yield memory_kernel("rotary", turned, turned, part.dtype)
    if latent.indexer is not None:
        indexer = latent.indexer
        yield product("indexer-queries", rows, indexer.heads * indexer.width, depth, part)
        yield product("indexer-key", rows, indexer.width + indexer.heads, h, part)


def attention(model: Transformer, latent: Latent, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the attention kernels over the context."""
    if latent.indexer is not None:
        yield from _indexing(model, latent.indexer, part)
    decoding = part.cache and part.tokens == 1
    cached = part.context - part.tokens
    if cached > 0 and not decoding:  # keys and values of cached tokens are recomputed
        wide = model.heads // part.tensor * (latent.plain + latent.values)
        yield product("cached-up", part.sequences * cached, wide, latent.rank, part, kind="attention", narrow=True)
    call = call_of(model, latent, part, decoding=decoding)
    q, result = (latent.cached, latent.rank) if decoding else (latent.key, latent.values)
    heads = part.rows * call.heads
    work = Work(flop=call.flop / part.ring, reads=heads * q * part.width + call.keys / part.ring,
                writes=heads * result * part.width, dtype=part.dtype, mix="matmul", attention=call)  # fmt: skip
    yield Kernel("attention", "attention", work)


def call_of(model: Transformer, latent: Latent, part: MicrobatchSlice, *, decoding: bool) -> AttentionCall:
    """Return the call of fused attention.

    >>> from hwsim.models.library import load_transformer
    >>> model = load_transformer("deepseek-v3")
    >>> step = call_of(model, model.latent, MicrobatchSlice(1, 1, 4096, cache=True), decoding=True)
    >>> step.keys == 4096 * 576 * 2, step.flop == 4096 * 128 * 2 * (576 + 512)
    (True, True)
    """
    heads = max(1, model.heads // part.tensor)
    call = AttentionCall(
        sequences=part.sequences / part.ring,
        queries=part.tokens,
        cached=part.context - part.tokens,
        heads=heads,
        kv_heads=heads,
        head=(latent.key + latent.values) / 2,
        width=part.width,
        kv_width=part.width,
        causal=float(model.causal),
        window=0 if latent.indexer is None else latent.indexer.chosen,
        written=float(part.cache),
    )
    if not decoding:
        return call
    return dataclasses.replace(call, kv_heads=1, head=latent.cached / 2, kv_width=BYTES[part.stored],
                               latent=2.0 * (latent.cached + latent.rank))  # fmt: skip


def _indexing(model: Transformer, indexer: Indexer, part: MicrobatchSlice) -> Iterator[Kernel]:
    """Yield the indexer kernels: all head queries with all token keys, in 8 bits, then the selection of the highest sums."""
    seen = part.context if part.tokens == 1 or not model.causal else part.context - (part.tokens - 1) / 2
    pairs = part.sequences * part.tokens * seen / part.ring
    scores = product("indexer", part.tokens * indexer.heads, part.context, indexer.width, part, part.sequences, "attention")
    keys = part.sequences * part.context * (indexer.width + 4.0)
    yield dataclasses.replace(
        scores,
        work=dataclasses.replace(scores.work, flop=2.0 * pairs * indexer.heads * indexer.width, product=None,
                                 reads=keys + part.rows * indexer.heads * indexer.width, writes=4.0 * pairs),
    )  # fmt: skip
    yield memory_kernel("choosing", 4.0 * pairs, 4.0 * part.rows * indexer.chosen, part.dtype, "attention")
