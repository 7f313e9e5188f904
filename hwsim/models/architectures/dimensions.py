"""The dimensions of a transformer, as its file writes them, and widths that follow from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from hwsim.models.architectures.entries import MOST_LAYERS
from hwsim.models.architectures.layer_parts import Biased, Latent, Patches, Quantised, Run, biases
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field

Positions = Literal["learned", "rotary", "alibi", "none"]
Norm = Literal["layernorm", "rmsnorm"]
QkNorm = Literal["none", "head", "whole"]
Cached = Literal["all", "window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """Dimensions in the file of a transformer, and widths of a layer that follow from them."""

    layers: int = field("blocks of attention and feed-forward", minimum=1, maximum=MOST_LAYERS)
    hidden: int = field("width of the stream between blocks", minimum=1)
    heads: int = field("attention heads", minimum=1)
    kv_heads: int | None = field("heads of keys and values; as many as heads if left out", default=None, minimum=1)
    head: int | None = field("width of a head; hidden / heads if left out", default=None, minimum=1)
    ffn: int | None = field("width of the feed-forward network; 4 x hidden if left out", default=None, minimum=1)
    gated: bool = field("the feed-forward network has a gate (SwiGLU): three matrices in place of two", default=False)
    vocab: int = field("entries of the embedding table, padding included; 0: it reads patches", minimum=0)
    tied: bool = field("the output matrix is the embedding table", default=True)
    sequence: int = field("tokens of the longest sequence", default=2048, minimum=1)
    positions: Positions = field("how a token knows its place", default="learned")
    places: int | None = field("rows of the table of learned positions; `sequence` if left out", default=None, minimum=1)
    norm: Norm = field("kind of norm", default="layernorm")
    norms: int = field("of a layer: before attention and feed-forward network; 4: and after them; 1: both read the same",
                       default=2, minimum=1, maximum=8)  # fmt: skip
    bias: bool | tuple[Biased, ...] = field("linear layers and norms have biases; or which of them have one", default=True)
    qk_norm: QkNorm = field("norms of queries and keys: of each head, or of all numbers of all heads", default="none")
    sinks: bool = field("each head has a learnt score that takes a part of what it looks at", default=False)
    final_norm: bool = field("a norm after the last block", default=True)
    embedding_norm: bool = field("a norm after the embedding", default=False)
    token_types: int = field("rows of a table of token types (BERT: 2)", default=0, minimum=0)
    pooler: bool = field("a square matrix over the first token (BERT)", default=False)
    causal: bool = field("a token sees only those before it", default=True)
    dropout: bool = field("trained with dropout after attention and feed-forward", default=False)
    experts: int = field("feed-forward networks a token may go to; 1: no router", default=1, minimum=1)
    top_k: int = field("experts that each token goes to", default=1, minimum=1)
    shared: int = field(
        "width of a feed-forward network beside the experts, which every token goes through", default=0, minimum=0
    )
    shared_gate: bool = field("a number for each token, computed of it, scales what comes of that", default=False)
    shared_values: bool = field("keys are the values, too: one map less", default=False)
    latent: Latent | None = field("keys and values come from one vector for all heads (MLA); heads of their own if left out",
                                  default=None)  # fmt: skip
    window: int | None = field("tokens that one sees at most, itself included (sliding window); all if left out", default=None,
                               minimum=1)  # fmt: skip
    cache: Cached = field("what a server keeps of layers with a window: all tokens, or those of the window", default="all")
    runs: tuple[Run, ...] = field("layers that differ, in order, again and again until all have one", default=())
    patches: Patches | None = field("an image is cut into squares, in place of words (ViT)", default=None)
    classes: int = field("of a linear map of the first token", default=0, minimum=0)
    quantised: Quantised | None = field("weights that a server keeps in a narrower format", default=None)
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def of_kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def of_head(self) -> int:
        """Numbers of a head's query."""
        if self.latent is not None:
            return self.latent.key
        return self.hidden // self.heads if self.head is None else self.head

    @property
    def of_ffn(self) -> int:
        return 4 * self.hidden if self.ffn is None else self.ffn

    @property
    def queries(self) -> int:
        """Width of the queries."""
        return self.heads * (self.of_head if self.latent is None else self.latent.key)

    @property
    def attended(self) -> int:
        """Width of what attention returns."""
        return self.queries if self.latent is None else self.heads * self.latent.values

    @property
    def keys(self) -> int:
        """Width of the keys."""
        return self.of_kv_heads * self.of_head if self.latent is None else self.queries

    @property
    def values(self) -> int:
        """Width of the values."""
        return self.keys if self.latent is None else self.attended

    @property
    def biased(self) -> frozenset[Biased]:
        """Parts that have biases."""
        return biases(self.bias)

    @property
    def gates(self) -> int:
        """Matrices from hidden to ffn: 2 with a gate."""
        return 2 if self.gated else 1

    @property
    def seen(self) -> int:
        """Tokens that a token sees at most in attention; 0: any number."""
        if self.latent is not None and self.latent.indexer is not None:
            return self.latent.indexer.chosen
        return self.window or 0
