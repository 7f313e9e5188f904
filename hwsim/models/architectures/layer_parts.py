"""Optional parts of a transformer: latent attention, layer kinds, image patches, quantized weights.

**Source**: DeepSeek-AI, "DeepSeek-V2", arXiv:2405.04434 (latent attention), "DeepSeek-V3.2" (indexer); Rouhani et al.,
arXiv:2310.10537 (mxfp4); Dosovitskiy et al., arXiv:2010.11929 (patches).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem

Biased = Literal["q", "k", "v", "projection", "ffn", "norm", "router", "output", "pooler"]
Narrow = Literal["fp8", "int8", "int4", "mxfp4", "nvfp4"]
ALL: Final[frozenset[Biased]] = frozenset(("q", "k", "v", "projection", "ffn", "norm", "pooler"))  # of `bias: true`
# data type -> (bytes of a number, bytes of the scale of each group)
WEIGHTS: Final[dict[Narrow, tuple[float, float]]] = {
    "fp8": (1.0, 4.0),
    "int8": (1.0, 2.0),
    "int4": (0.5, 2.5),
    "mxfp4": (0.5, 1.0),
    "nvfp4": (0.5, 1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """The selection of the tokens that a query of latent attention attends to (DeepSeek-V3.2)."""

    heads: int = field("number of query heads of the indexer, projected from the latent queries", minimum=1)
    width: int = field("width of an indexer head, and of the single key of each token", minimum=1)
    chosen: int = field("number of tokens that the indexer selects for each query", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention: all heads share one latent vector of keys and values, and only this vector is cached."""

    rank: int = field("width of the latent vector of keys and values (kv_lora_rank)", minimum=1)
    query_rank: int | None = field("width of the latent vector of queries (q_lora_rank; default: queries are projected from the "
                                   "hidden state)", default=None, minimum=1)  # fmt: skip
    plain: int = field("width of a head's query and key without position (qk_nope_head_dim)", minimum=1)
    rotary: int = field("width of the rotary part of queries and of the key that all heads share (qk_rope_head_dim)", minimum=1)
    values: int = field("width of a head's value (v_head_dim)", minimum=1)
    indexer: Indexer | None = field("indexer that selects the tokens to attend to (default: all tokens)", default=None)

    @property
    def key(self) -> int:
        """Width of a head's query, and of its key."""
        return self.plain + self.rotary

    @property
    def cached(self) -> int:
        """Numbers that a token adds to the cache of a layer."""
        return self.rank + self.rotary

    def down(self, hidden: int) -> int:
        """Return the parameters that each tensor-parallel GPU replicates: down-projections to the latent vectors, and norms."""
        queries = 0 if self.query_rank is None else hidden * self.query_rank + self.query_rank
        return queries + hidden * self.cached + self.rank + self.choosing(hidden)

    def up(self, hidden: int, heads: int) -> int:
        """Return the parameters of the up-projections from the latent vectors to the heads."""
        return (self.query_rank or hidden) * heads * self.key + self.rank * heads * (self.plain + self.values)

    def choosing(self, hidden: int) -> int:
        """Return the parameters of the indexer: queries, key with its norm, head weights."""
        indexer = self.indexer
        if indexer is None:
            return 0
        queries = (self.query_rank or hidden) * indexer.heads * indexer.width
        return queries + hidden * indexer.width + 2 * indexer.width + hidden * indexer.heads


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRun:
    """Consecutive layers of one kind, with the dimensions that differ from the model's."""

    layers: int = field("number of consecutive layers", minimum=1)
    window: int | None = field("maximum tokens that a token attends to; 0: all", default=None, minimum=0)
    kv_heads: int | None = field("number of key and value heads", default=None, minimum=1)
    head: int | None = field("width of a head", default=None, minimum=1)
    ffn: int | None = field("width of the feed-forward network, or of an expert", default=None, minimum=1)
    experts: int | None = field("number of routed experts; 1: a dense layer without a router", default=None, minimum=1)
    top_k: int | None = field("experts per token", default=None, minimum=1)
    shared: int | None = field("width of the shared expert, which processes every token; 0: none", default=None, minimum=0)
    shared_values: bool | None = field("keys also serve as values", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patches:
    """An image cut into square patches, one token each, with extra tokens in front."""

    image: int = field("side of the image in pixels", minimum=1)
    side: int = field("side of a patch in pixels", minimum=1)
    channels: int = field("number of channels of a pixel", default=3, minimum=1)
    extra: int = field("number of learnt tokens in front of the patches", default=1, minimum=0)

    @property
    def tokens(self) -> int:
        """Tokens of an image: patches and extra tokens."""
        return (self.image // self.side) ** 2 + self.extra

    @property
    def numbers(self) -> int:
        """Numbers of a patch."""
        return self.channels * self.side**2

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting."""
        if self.side > self.image:
            yield "patches", f"patches of {self.side} pixels exceed an image of {self.image} pixels", None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizedWeights:
    """Weights that a server stores in a narrower format than it computes in. A training stores them in its own format."""

    format: Narrow = field("data type of the weights")
    of: Literal["linear", "experts"] = field(
        "weights that are quantized: all linear layers of the blocks, or only the experts", default="linear"
    )
    group: int | None = field("number of weights that share a scale (default: all weights of a matrix)", default=None, minimum=1)
    cache: Literal["fp8"] | None = field("data type of keys and values (default: `dtype`)", default=None)

    @property
    def width(self) -> float:
        """Bytes of a weight, including its share of a scale.

        >>> QuantizedWeights(format="mxfp4", group=32).width, QuantizedWeights(format="int4", group=128).width
        (0.53125, 0.51953125)
        """
        number, scale = WEIGHTS[self.format]
        return number + (scale / self.group if self.group else 0.0)


def order_of(runs: Sequence[LayerRun], layers: int) -> tuple[int, ...]:
    """Return the index of the run of each layer; the list of runs repeats until all layers are assigned.

    >>> order_of((LayerRun(layers=2), LayerRun(layers=1)), 7)
    (0, 0, 1, 0, 0, 1, 0)
    """
    once = [number for number, run in enumerate(runs) for _ in range(min(run.layers, layers))]
    return tuple(once[index % len(once)] for index in range(layers))


def runs_of(kinds: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return ((kind, layers) of each run of the shortest repeating pattern, layers of the pattern).

    >>> runs_of((0, 0, 1, 0, 0, 1, 0)), runs_of((0, 0, 1, 1, 1))
    ((((0, 2), (1, 1)), 3), (((0, 2), (1, 3)), 5))
    """
    period = next(
        size for size in range(1, len(kinds) + 1) if all(kinds[index] == kinds[index % size] for index in range(len(kinds)))
    )
    return count_consecutive(kinds[:period]), period


def count_consecutive(kinds: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return (kind, count) of consecutive equal kinds, in order.

    >>> count_consecutive((3, 3, 1))
    ((3, 2), (1, 1))
    """
    return tuple((kind, len(list(group))) for kind, group in groupby(kinds))


def biases(bias: bool | Collection[Biased]) -> frozenset[Biased]:
    """Return the parts with biases: all usual ones, none, or the listed ones."""
    if isinstance(bias, bool):
        return ALL if bias else frozenset()
    return frozenset(bias)


def equivalent_cached_tokens(tokens: int, shares: Sequence[tuple[float, int]]) -> float:
    """Return the tokens over all layers that occupy as much of the cache as `tokens` of a sequence.

    Args:
        shares: (share of a token's bytes, maximum tokens cached per sequence; 0: all) of each layer kind.

    >>> equivalent_cached_tokens(100, ((0.75, 20), (0.25, 0)))
    40.0
    """
    return math.fsum(share * (min(max_tokens, tokens) if max_tokens else tokens) for share, max_tokens in shares)
