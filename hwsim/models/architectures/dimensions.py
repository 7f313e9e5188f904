"""The dimensions of a transformer in its file, and the widths that follow from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from hwsim.models.architectures.entries import MAX_LAYERS
from hwsim.models.architectures.layer_parts import Biased, Latent, LayerRun, Patches, QuantizedWeights, biases
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field

Positions = Literal["learned", "rotary", "alibi", "none"]
Norm = Literal["layernorm", "rmsnorm"]
QkNorm = Literal["none", "head", "whole"]
Cached = Literal["all", "window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """The dimensions in the file of a transformer, and the widths of a layer that follow from them."""

    layers: int = field("number of transformer blocks (attention and feed-forward network)", minimum=1, maximum=MAX_LAYERS)
    hidden: int = field("hidden size (width of the residual stream)", minimum=1)
    heads: int = field("attention heads", minimum=1)
    kv_heads: int | None = field("number of key and value heads (default: `heads`)", default=None, minimum=1)
    head: int | None = field("width of a head (default: `hidden` / `heads`)", default=None, minimum=1)
    ffn: int | None = field("width of the feed-forward network, or of an expert (default: 4 x `hidden`)", default=None, minimum=1)
    gated: bool = field("gated feed-forward network (SwiGLU): three matrices instead of two", default=False)
    vocab: int = field("vocabulary size: rows of the embedding table, including padding; 0: the model reads patches", minimum=0)
    tied: bool = field("the output matrix is the embedding table (tied weights)", default=True)
    sequence: int = field("maximum sequence length (tokens)", default=2048, minimum=1)
    positions: Positions = field("position encoding", default="learned")
    places: int | None = field("number of learned position embeddings (default: `sequence`)", default=None, minimum=1)
    norm: Norm = field("type of norm", default="layernorm")
    norms: int = field("norms per layer; 2: before attention and feed-forward network; 4: also after them; 1: one for both",
                       default=2, minimum=1, maximum=8)  # fmt: skip
    bias: bool | tuple[Biased, ...] = field("biases of linear layers and norms; a list: only these parts have them", default=True)
    qk_norm: QkNorm = field("norm of queries and keys: of each head; or of the whole vector of all heads", default="none")
    top_p: bool = field("the checkpoint's generation settings filter the vocabulary (top-p or top-k) before a token is drawn; of "
                        "a service, `top_p` of `infer:` replaces it", default=True)  # fmt: skip
    sinks: bool = field("attention sinks: each head has a learnt score that takes a share of the softmax", default=False)
    final_norm: bool = field("norm after the last block", default=True)
    embedding_norm: bool = field("norm after the embedding", default=False)
    token_types: int = field("number of token types, each with an embedding (BERT: 2)", default=0, minimum=0)
    pooler: bool = field("pooler: a square matrix applied to the first token (BERT)", default=False)
    causal: bool = field("causal attention: a token attends only to itself and earlier tokens", default=True)
    dropout: bool = field("training applies dropout after attention and feed-forward network", default=False)
    experts: int = field("number of routed experts of a layer; 1: a dense layer without a router", default=1, minimum=1)
    top_k: int = field("experts per token", default=1, minimum=1)
    shared: int = field("width of the shared expert, which processes every token; 0: none", default=0, minimum=0)
    shared_gate: bool = field("a gate, computed from the token, scales the output of the shared expert", default=False)
    shared_values: bool = field("keys also serve as values, which saves one projection", default=False)
    latent: Latent | None = field("multi-head latent attention (MLA): one vector yields all keys and values (default: none)",
                                  default=None)  # fmt: skip
    window: int | None = field("sliding window: maximum tokens that a token attends to, including itself (default: all)",
                               default=None, minimum=1)  # fmt: skip
    cache: Cached = field("tokens that a server caches in layers with a window: all, or only the window", default="all")
    runs: tuple[LayerRun, ...] = field("consecutive layers that differ from the model, in order; the list repeats", default=())
    patches: Patches | None = field("an image, cut into square patches, replaces the token IDs as input (ViT)", default=None)
    classes: int = field("number of classes of a linear classifier on the first token; 0: no classifier", default=0, minimum=0)
    quantised: QuantizedWeights | None = field("weights that a server stores in a narrower data type", default=None)
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def of_kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def of_head(self) -> int:
        """Width of a head's query."""
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
        """Width of the attention output."""
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
        """Parts with biases."""
        return biases(self.bias)

    @property
    def gates(self) -> int:
        """Matrices from the hidden size to the feed-forward width: 2 if gated."""
        return 2 if self.gated else 1

    @property
    def seen(self) -> int:
        """Maximum tokens that a token attends to; 0: unlimited."""
        if self.latent is not None and self.latent.indexer is not None:
            return self.latent.indexer.chosen
        return self.window or 0
