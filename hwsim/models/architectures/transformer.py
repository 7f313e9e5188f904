"""A transformer by its dimensions: parameters, operations and memory for each token.

    hwsim: model/1
    kind: transformer
    layers: 32
    hidden: 4096
    heads: 32
    kv_heads: 8
    ffn: 14336
    gated: true
    vocab: 128256

Parameters of a layer, h hidden, d the width of a head, a heads and k key-value heads, f the feed-forward width, g 2 where it
is gated and else 1, e experts:

    attention = h (a + 2 k) d + a d h            feed-forward = e (g + 1) h f      (+ h e for the router)

and biases, norms and embeddings as the file says.

**Source**: Vaswani et al., "Attention is all you need", 2017; parameter counts as the models' authors publish them.
**Error**: none: the counts of the models in `workloads/models` are the published ones to the last parameter, where published.
**Range**: decoders and encoders of equal layers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem

Positions = Literal["learned", "rotary", "alibi", "none"]
Norm = Literal["layernorm", "rmsnorm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """Layers of attention and feed-forward networks over a vocabulary."""

    kind: ClassVar[str] = "transformer"

    layers: int = field("blocks of attention and feed-forward", minimum=1)
    hidden: int = field("width of the stream between blocks", minimum=1)
    heads: int = field("attention heads", minimum=1)
    kv_heads: int | None = field("heads of keys and values; as many as heads if left out", default=None, minimum=1)
    head: int | None = field("width of a head; hidden / heads if left out", default=None, minimum=1)
    ffn: int | None = field("width of the feed-forward network; 4 x hidden if left out", default=None, minimum=1)
    gated: bool = field("the feed-forward network has a gate (SwiGLU): three matrices in place of two", default=False)
    vocab: int = field("entries of the embedding table, padding included", minimum=1)
    tied: bool = field("the output matrix is the embedding table", default=True)
    sequence: int = field("tokens of the longest sequence", default=2048, minimum=1)
    positions: Positions = field("how a token knows its place", default="learned")
    places: int | None = field("rows of the table of learned positions; `sequence` if left out", default=None, minimum=1)
    norm: Norm = field("kind of norm", default="layernorm")
    bias: bool = field("linear layers and norms have biases", default=True)
    final_norm: bool = field("a norm after the last block", default=True)
    embedding_norm: bool = field("a norm after the embedding", default=False)
    token_types: int = field("rows of a table of token types (BERT: 2)", default=0, minimum=0)
    pooler: bool = field("a square matrix over the first token (BERT)", default=False)
    causal: bool = field("a token sees only those before it", default=True)
    dropout: bool = field("trained with dropout after attention and feed-forward", default=False)
    experts: int = field("feed-forward networks a token may go to; 1: no router", default=1, minimum=1)
    top_k: int = field("experts that each token goes to", default=1, minimum=1)
    window: int | None = field("tokens that one sees at most, itself included (sliding window); all if left out", default=None,
                               minimum=1)  # fmt: skip
    full_every: int | None = field("every so many layers sees all tokens, the others a window; none does if left out",
                                   default=None, minimum=2)  # fmt: skip
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        if self.head is None and self.hidden % self.heads:
            yield "heads", f"{self.heads} heads do not divide a hidden width of {self.hidden}", "say `head:`, or other numbers"
        if self.heads % self.of_kv_heads:
            yield "kv_heads", f"{self.of_kv_heads} heads of keys and values do not divide {self.heads} heads", None
        if self.top_k > self.experts:
            yield "top_k", f"a token cannot go to {self.top_k} of {self.experts} experts", None
        if self.full_every is not None and self.window is None:
            yield "full_every", "says nothing without a window: every layer sees all tokens", "window: 4096"
        if self.full_every is not None and self.full_every > self.layers:
            yield "full_every", f"no layer of {self.layers} sees all tokens", "leave it out"
        if self.window is not None and not self.causal:
            yield "window", "is of tokens before the one that looks; here each sees those after it, too", "causal: true"

    # ---- dimensions that follow ----

    @property
    def of_kv_heads(self) -> int:
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def of_head(self) -> int:
        return self.hidden // self.heads if self.head is None else self.head

    @property
    def of_ffn(self) -> int:
        return 4 * self.hidden if self.ffn is None else self.ffn

    @property
    def queries(self) -> int:
        """Width of the queries, and of what attention returns."""
        return self.heads * self.of_head

    @property
    def keys(self) -> int:
        """Width of the keys, and of the values."""
        return self.of_kv_heads * self.of_head

    @property
    def gates(self) -> int:
        """Matrices from hidden to ffn: 2 with a gate."""
        return 2 if self.gated else 1

    @property
    def windows(self) -> tuple[tuple[float, int], ...]:
        """Windows of attention: (part of the layers, tokens that are seen at most; 0: any number).

        >>> Transformer(layers=48, hidden=64, heads=4, vocab=100, window=1024, full_every=6).windows
        ((0.8333333333333334, 1024), (0.16666666666666666, 0))
        """
        if self.window is None:
            return ((1.0, 0),)
        if self.full_every is None:
            return ((1.0, self.window),)
        full = self.layers // self.full_every
        return ((self.layers - full) / self.layers, self.window), (full / self.layers, 0)

    # ---- parameters ----

    @property
    def attention_parameters(self) -> int:
        """Parameters of the attention of one layer, without its norm."""
        wide = self.queries + 2 * self.keys
        return self.hidden * (wide + self.queries) + (wide + self.hidden if self.bias else 0)

    @property
    def expert_parameters(self) -> int:
        """Parameters of one feed-forward network."""
        f, g = self.of_ffn, self.gates
        return (g + 1) * self.hidden * f + (g * f + self.hidden if self.bias else 0)

    @property
    def router_parameters(self) -> int:
        return self.hidden * self.experts if self.experts > 1 else 0

    @property
    def norm_parameters(self) -> int:
        """Parameters of one norm: a scale, and a shift where there are biases."""
        return self.hidden * (2 if self.norm == "layernorm" and self.bias else 1)

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer with all of its experts."""
        return (
            self.attention_parameters + self.experts * self.expert_parameters + self.router_parameters + 2 * self.norm_parameters
        )

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the tables before the first layer."""
        places = (self.places or self.sequence) if self.positions == "learned" else 0
        norm = self.norm_parameters if self.embedding_norm else 0
        return (self.vocab + places + self.token_types) * self.hidden + norm

    @property
    def head_parameters(self) -> int:
        """Parameters after the last layer, without the embedding table."""
        pooler = self.hidden * self.hidden + (self.hidden if self.bias else 0) if self.pooler else 0
        untied = 0 if self.tied else self.vocab * self.hidden
        return (self.norm_parameters if self.final_norm else 0) + untied + pooler

    @property
    def parameters(self) -> int:
        """Parameters of the model.

        >>> gpt2 = Transformer(layers=12, hidden=768, heads=12, vocab=50257, sequence=1024)
        >>> gpt2.parameters
        124439808
        """
        return self.embedding_parameters + self.layers * self.layer_parameters + self.head_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that a token meets: `top_k` of the experts."""
        return self.parameters - self.layers * (self.experts - self.top_k) * self.expert_parameters

    # ---- for each token ----

    def forward_flop(self, sequence: int, *, causal: bool = False) -> float:
        """FLOP of a token through all layers and the output matrix, in sequences of `sequence` tokens.

        causal: count only the half of the attention scores that a causal mask leaves; the literature counts all of them.

        >>> gpt = Transformer(layers=96, hidden=12288, heads=96, vocab=51200, bias=False)
        >>> h, l, s, v = 12288, 96, 2048, 51200
        >>> round(gpt.forward_flop(s) / (24 * l * h**2 * (1 + s / (6 * h) + v / (12 * l * h))), 12)  # Narayanan et al. 2021
        1.0
        """
        linear = self.hidden * (2 * self.queries + 2 * self.keys)
        linear += self.top_k * (self.gates + 1) * self.hidden * self.of_ffn + self.router_parameters
        scores = math.fsum(
            share
            * 2
            * self.queries
            * (min(window, sequence) if 0 < window < sequence else sequence * (0.5 if causal and self.causal else 1.0))
            for share, window in self.windows
        )
        return 2.0 * (self.layers * (linear + scores) + self.vocab * self.hidden)

    def training_flop(self, sequence: int) -> float:
        """FLOP of a token in a step: forward, and twice that backward."""
        return 3.0 * self.forward_flop(sequence)

    def kv_bytes(self, width: float = 2.0) -> float:
        """Bytes that a token leaves in the KV cache.

        >>> Transformer(layers=80, hidden=8192, heads=64, kv_heads=8, vocab=128256).kv_bytes()
        327680.0
        """
        return 2.0 * self.layers * self.keys * width
