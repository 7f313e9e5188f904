"""A transformer defined by its dimensions: parameters, FLOP and memory per token.

    hwsim: model/1
    kind: transformer
    layers: 32
    hidden: 4096
    heads: 32
    kv_heads: 8
    ffn: 14336
    gated: true
    vocab: 128256

Parameters of a layer with hidden size h, head width d, a heads, k KV heads, feed-forward width f, g = 2 if gated and else 1, and
e experts:

    attention = h (a + 2 k) d + a d h            feed-forward = e (g + 1) h f      (+ h e for the router)

plus biases, norms and embeddings according to the file. Layers may differ: each entry of `runs` overrides dimensions, and the
list repeats until all layers are assigned. Each layer kind is a transformer with equal layers (`kinds`).

    layers: 61
    experts: 256
    ffn: 2048
    runs: [{layers: 3, experts: 1, ffn: 18432}, {layers: 58}]

**Source**: Vaswani et al., "Attention is all you need", 2017; parameter counts as published by the models' authors.
**Error**: none: the parameter counts of `workloads/models` equal the published ones, where published.
**Range**: decoders, or encoders, with one stack of layers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar

from hwsim.models.architectures.dimensions import Dimensions
from hwsim.models.architectures.layer_parts import Biased, Latent, LayerRun, count_consecutive, equivalent_cached_tokens, order_of
from hwsim.records import dataclass
from hwsim.spec.mistakes import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer(Dimensions):
    """A transformer: layers of attention and feed-forward networks over a vocabulary."""

    kind: ClassVar[str] = "transformer"

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting."""
        if self.patches is not None:
            yield from self.patches.problems()
            if self.sequence != self.patches.tokens:
                message = (
                    f"`sequence`: expected {self.patches.tokens} (patches and extra tokens of an image), got {self.sequence}"
                )
                yield "sequence", message, f"sequence: {self.patches.tokens}"
        if (self.vocab == 0) != (self.patches is not None):
            yield "vocab", "expected either `vocab` (text) or `patches` (images), and `vocab: 0` with patches", None
        if self.runs:
            yield from self._run_problems()
        else:
            yield from self.problems_of_layers()
        if self.cache == "window" and not any(kind.window is not None for kind in self.kinds):
            yield "cache", "`cache: window` requires a layer with a window", "window: 4096"

    def problems_of_layers(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting of equal layers."""
        if self.latent is not None:
            yield from self._latent_problems(self.latent)
        elif self.head is None and self.hidden % self.heads:
            yield (
                "heads",
                f"{self.heads} heads do not divide a hidden size of {self.hidden}",
                "`head: 128` sets the head width explicitly",
            )
        if self.heads % self.of_kv_heads:
            yield "kv_heads", f"{self.of_kv_heads} KV heads do not divide {self.heads} attention heads", None
        if self.top_k > self.experts:
            yield "top_k", f"`top_k` {self.top_k} exceeds the number of experts ({self.experts})", None
        if self.shared and self.experts == 1:
            yield "shared", "`shared` (the shared expert) requires `experts` above 1", "`ffn` sets the width of a dense layer"
        if self.shared_gate and not self.shared:
            yield "shared_gate", "`shared_gate` requires a shared expert", "shared: 1408"
        if self.window is not None and not self.causal:
            yield "window", "`window` requires causal attention", "causal: true"

    def _run_problems(self) -> Iterator[Problem]:
        """Yield the problems of all layer kinds, each once."""
        layer_count = sum(run.layers for run in self.runs)  # integers
        if layer_count > self.layers:
            yield "runs", f"`runs` have {layer_count} layers, but the model has only {self.layers}", None
            return
        problems = dict[Problem, None]()
        for kind in self.kinds:
            problems |= dict.fromkeys(kind.problems_of_layers())
        yield from problems

    def _latent_problems(self, latent: Latent) -> Iterator[Problem]:
        for key in ("kv_heads", "head"):
            if getattr(self, key) is not None:
                yield (
                    key,
                    f"`{key}` is not allowed with latent attention, whose heads are `plain` + `rotary` wide",
                    f"remove `{key}`",
                )
        if self.window is not None or self.shared_values or self.qk_norm != "none" or self.sinks:
            yield "latent", "`latent` cannot be combined with `window`, `sinks`, `qk_norm` or `shared_values`", None
        if latent.indexer is not None and latent.query_rank is None:
            yield "latent", "`latent.indexer` requires latent queries (`query_rank`)", "query_rank: 1536"

    # ---- kinds of layers ----

    @property
    def kinds(self) -> tuple[Transformer, ...]:
        """One transformer per layer kind, with the number of its layers; the model itself if all layers are equal.

        >>> dense = LayerRun(layers=1, experts=1, ffn=64)
        >>> model = Transformer(layers=4, hidden=8, heads=2, vocab=9, experts=8, runs=(dense, LayerRun(layers=3)))
        >>> [(kind.layers, kind.experts, kind.of_ffn) for kind in model.kinds], model.order
        ([(1, 1, 64), (3, 8, 32)], (0, 1, 1, 1))
        """
        return _kinds(self)[0] if self.runs else (self,)

    @property
    def order(self) -> tuple[int, ...]:
        """Kind of each layer, as an index into `kinds`."""
        return _kinds(self)[1] if self.runs else (0,) * self.layers

    def between(self, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """Return (kind, count) of consecutive equal layers from `first` to before `last`."""
        if not self.runs:
            return ((0, last - first),) if last > first else ()
        return count_consecutive(self.order[first:last])

    # ---- parameters ----

    @property
    def attention_weights(self) -> int:
        """Parameters of the attention matrices of one layer."""
        if self.latent is not None:
            norms = self.latent.rank + (self.latent.query_rank or 0)
            return self.latent.down(self.hidden) - norms + self.latent.up(self.hidden, self.heads) + self.attended * self.hidden
        return self.hidden * (self.queries + self.keys + (0 if self.shared_values else self.values) + self.attended)

    @property
    def attention_parameters(self) -> int:
        """Parameters of the attention of one layer, without its norm."""
        values = 0 if self.shared_values else self.values
        widths: dict[Biased, int] = {"q": self.queries, "k": self.keys, "v": values, "projection": self.hidden}
        if self.latent is not None:
            widths = {"q": self.latent.query_rank or 0, "k": self.latent.cached, "projection": self.hidden}
        inner = 0 if self.latent is None else self.latent.rank + (self.latent.query_rank or 0)
        if self.qk_norm != "none":
            inner = 2 * self.of_head if self.qk_norm == "head" else self.queries + self.keys
        sinks = self.heads if self.sinks else 0
        return self.attention_weights + inner + sinks + sum(width for part, width in widths.items() if part in self.biased)

    @property
    def expert_weights(self) -> int:
        """Parameters of the matrices of one feed-forward network or expert."""
        return (self.gates + 1) * self.hidden * self.of_ffn

    @property
    def expert_parameters(self) -> int:
        """Parameters of one feed-forward network or expert."""
        return self.expert_weights + (self.gates * self.of_ffn + self.hidden if "ffn" in self.biased else 0)

    @property
    def shared_parameters(self) -> int:
        """Parameters of the shared expert."""
        if not self.shared:
            return 0
        return (self.gates + 1) * self.hidden * self.shared + (self.hidden if self.shared_gate else 0)

    @property
    def router_parameters(self) -> int:
        """Parameters of the router."""
        return (self.hidden + ("router" in self.biased)) * self.experts if self.experts > 1 else 0

    @property
    def norm_parameters(self) -> int:
        """Parameters of one norm: a scale, and a shift if norms have biases."""
        return self.hidden * (2 if self.norm == "layernorm" and "norm" in self.biased else 1)

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer with all of its experts; the rounded average if layers differ."""
        if self.runs:
            return round(self.all_layers / self.layers)
        feed_forward = self.experts * self.expert_parameters + self.router_parameters + self.shared_parameters
        return self.attention_parameters + feed_forward + self.norms * self.norm_parameters

    @property
    def all_layers(self) -> int:
        """Parameters of all layers."""
        return sum(kind.layers * kind.layer_parameters for kind in self.kinds)  # integers

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding tables, or of the patch projection."""
        places = (self.places or self.sequence) if self.positions == "learned" else 0
        norm = self.norm_parameters if self.embedding_norm else 0
        cut = 0 if self.patches is None else self.hidden * (self.patches.numbers + 1 + self.patches.extra)
        return (self.vocab + places + self.token_types) * self.hidden + norm + cut

    @property
    def head_parameters(self) -> int:
        """Parameters after the last layer, without the embedding table."""
        pooler = self.hidden * self.hidden + (self.hidden if "pooler" in self.biased else 0) if self.pooler else 0
        untied = 0 if self.tied else self.vocab * self.hidden
        last = (self.vocab if "output" in self.biased else 0) + self.classes * (self.hidden + 1)
        return (self.norm_parameters if self.final_norm else 0) + untied + pooler + last

    @property
    def parameters(self) -> int:
        """Parameters of the model.

        >>> gpt2 = Transformer(layers=12, hidden=768, heads=12, vocab=50257, sequence=1024)
        >>> gpt2.parameters
        124439808
        """
        return self.embedding_parameters + self.all_layers + self.head_parameters

    @property
    def active_parameters(self) -> int:
        """Active parameters per token: `top_k` of the experts."""
        idle = sum(kind.layers * (kind.experts - kind.top_k) * kind.expert_parameters for kind in self.kinds)  # integers
        return self.parameters - idle

    @property
    def whole(self) -> int:
        """Parameters of a layer that each tensor-parallel GPU replicates."""
        return 0 if self.latent is None else self.latent.down(self.hidden)

    def weight_bytes(self, width: float) -> float:
        """Return the bytes of a server's weights, with `width` bytes per weight that is not quantized.

        >>> from hwsim.models.architectures.layer_parts import QuantizedWeights
        >>> model = Transformer(layers=1, hidden=64, heads=1, vocab=100, quantised=QuantizedWeights(format="mxfp4", group=32))
        >>> model.weight_bytes(2.0) == 2 * (model.parameters - 12 * 64**2) + (0.5 + 1 / 32) * 12 * 64**2
        True
        """
        if self.quantised is None:
            return self.parameters * width
        narrow = sum(kind.layers * kind.narrow for kind in self.kinds)  # integers
        return (self.parameters - narrow) * width + narrow * self.quantised.width

    def kept(self, dtype: str) -> str:
        """Return the data type of keys and values of a server that computes in `dtype`."""
        return dtype if self.quantised is None or self.quantised.cache is None else self.quantised.cache

    @property
    def narrow(self) -> int:
        """Quantized weights of one layer."""
        if self.quantised is None or (self.quantised.of == "experts" and self.experts == 1):
            return 0
        experts = self.experts * self.expert_weights
        if self.quantised.of == "experts":
            return experts
        return experts + self.attention_weights + (self.gates + 1) * self.hidden * self.shared

    # ---- for each token ----

    def forward_flop(self, sequence: int, *, causal: bool = False) -> float:
        """Return the FLOP of a token in all layers and the output matrix, for sequences of `sequence` tokens.

        Args:
            causal: count only the half of the attention scores that a causal mask leaves; the literature counts all of them.

        >>> gpt = Transformer(layers=96, hidden=12288, heads=96, vocab=51200, bias=False)
        >>> h, l, s, v = 12288, 96, 2048, 51200
        >>> round(gpt.forward_flop(s) / (24 * l * h**2 * (1 + s / (6 * h) + v / (12 * l * h))), 12)  # Narayanan et al. 2021
        1.0
        """
        return 2.0 * (math.fsum(kind.layers * kind.layer_flop(sequence, causal=causal) for kind in self.kinds) + self.outer_flop)

    def layer_flop(self, sequence: int, *, causal: bool = False) -> float:
        """Return the multiplications of a token in one layer; as `forward_flop`."""
        linear = self.attention_weights
        linear += self.top_k * (self.gates + 1) * self.hidden * self.of_ffn + (
            self.hidden * self.experts if self.experts > 1 else 0
        )
        linear += (self.gates + 1) * self.hidden * self.shared
        seen = self.seen if 0 < self.seen < sequence else sequence * (0.5 if causal and self.causal else 1.0)
        scores = (self.queries + self.attended) * seen
        indexer = None if self.latent is None else self.latent.indexer
        if indexer is not None:
            scores += indexer.heads * indexer.width * sequence * (0.5 if causal and self.causal else 1.0)
        return linear + scores

    @property
    def outer_flop(self) -> int:
        """Multiplications of a token outside the layers: output matrix, or patch projection."""
        return self.vocab * self.hidden if self.patches is None else self.patches.numbers * self.hidden

    def training_flop(self, sequence: int) -> float:
        """Return the FLOP of a token in a training step: forward, and twice the forward FLOP for backward."""
        return 3.0 * self.forward_flop(sequence)

    def kv_bytes(self, width: float = 2.0) -> float:
        """Return the KV cache bytes per token, over all layers.

        >>> Transformer(layers=80, hidden=8192, heads=64, kv_heads=8, vocab=128256).kv_bytes()
        327680.0
        """
        return math.fsum(kind.layers * kind.layer_cache(width) for kind in self.kinds)

    def layer_cache(self, width: float) -> float:
        """Return the KV cache bytes per token of one layer: keys and values, or a latent vector and an indexer key.

        >>> latent = Latent(rank=512, query_rank=1536, plain=128, rotary=64, values=128)
        >>> Transformer(layers=61, hidden=7168, heads=128, vocab=129280, latent=latent).layer_cache(2.0)
        1152.0
        """
        if self.latent is None:
            return 2.0 * self.keys * width
        indexer = self.latent.indexer
        return self.latent.cached * width + (0.0 if indexer is None else indexer.width + 4.0)  # indexer key: 8 bits and a scale

    @property
    def caching(self) -> tuple[tuple[float, int], ...]:
        """(share of a token's cache bytes, maximum tokens cached per sequence; 0: all) of each layer kind."""
        total = self.kv_bytes()
        return tuple(
            (kind.layers * kind.layer_cache(2.0) / total, kind.seen if self.cache == "window" else 0) for kind in self.kinds
        )

    def cached(self, tokens: int) -> float:
        """Return the tokens over all layers that occupy as much cache as `tokens` of a sequence; fewer if windows limit it."""
        return float(tokens) if self.cache == "all" else equivalent_cached_tokens(tokens, self.caching)


@lru_cache(maxsize=256)
def _kinds(model: Transformer) -> tuple[tuple[Transformer, ...], tuple[int, ...]]:
    """Return the distinct layer kinds, and the kind of each layer."""
    made: list[Transformer] = []
    places: list[int] = []
    for run in model.runs:
        kind = _run_model(model, run)
        if kind not in made:
            made.append(kind)
        places.append(made.index(kind))
    order = [places[run] for run in order_of(model.runs, model.layers)]
    used = [kind for kind in range(len(made)) if kind in order]  # runs beyond the last layer are unused
    kinds = tuple(dataclasses.replace(made[kind], layers=order.count(kind)) for kind in used)
    return kinds, tuple(used.index(kind) for kind in order)


def _run_model(model: Transformer, run: LayerRun) -> Transformer:
    """Return a model in which every layer equals the layers of a run."""
    stated = {key.name: getattr(run, key.name) for key in dataclasses.fields(run) if key.name != "layers"}
    changed = {key: value for key, value in stated.items() if value is not None}
    if "window" in changed:
        changed["window"] = changed["window"] or None
    if run.experts == 1:
        changed = {"top_k": 1, "shared": 0, "shared_gate": False, **changed}
    return dataclasses.replace(model, runs=(), layers=1, **changed)
