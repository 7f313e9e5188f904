"""`speculate:` speculative decoding: several tokens of each sequence are drafted, and verified in one iteration.

speculate: {tokens: 3, acceptance: 70 %}                          draft tokens of an extra layer, as in EAGLE and MTP
speculate: {tokens: 3, acceptance: [80 %, 65 %, 50 %], draft: llama-3-1b}

A draft token is accepted with its probability if all draft tokens before it were accepted. The iteration then outputs the
accepted tokens and one more. The number of iterations of an answer is random: every draft token is drawn by a hash of the seed
and the request.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.models.architectures import Transformer
from hwsim.models.library import written_model
from hwsim.models.memory import serving_memory
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Problem, Tree, field, place_field
from hwsim.units import Ratio
from hwsim.workload.load.numbers import stream, uniforms

if TYPE_CHECKING:
    from hwsim.families.serving.workload.schema import InferKeys

FINEST: Final = 1000  # largest denominator of the mean number of tokens of an iteration
MOST: Final = 64  # maximum draft tokens of an iteration
LAYER, NONE = "layer", "none"


@dataclass(frozen=True, slots=True)
class SpeculateKeys:
    """Speculative decoding: draft tokens of each sequence and the model that makes them."""

    tokens: int = field("number of draft tokens of each sequence in an iteration", minimum=1, maximum=MOST)
    acceptance: tuple[Ratio, ...] = field(
        "probability that a draft token is accepted if all before it were: one value, or one for each draft token",
        minimum=0.0, maximum=1.0, one_or_many=True, example="70 %",
    )  # fmt: skip
    draft: Tree | None = field(
        "source of draft tokens: a draft model; `layer` (default): an extra layer like the last layer of the model; `none`: a"
        " method without GPU work, such as n-grams of the prompt", default=None, example="llama-3-8b",
    )  # fmt: skip
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting."""
        if len(self.acceptance) not in (1, self.tokens):
            message = f"{len(self.acceptance)} probabilities for {self.tokens} draft tokens: expected 1 or {self.tokens}"
            yield "acceptance", message, "acceptance: 70 %"


@dataclass(frozen=True)
class Speculation:
    """The speculative decoding of a server.

    Args:
        tokens: draft tokens of a sequence in an iteration.
        chances: probability that each is accepted if all before it were.
        draft: model that makes them; None if drafting needs no GPU.
        seed: seed of the accepted tokens.
        is_layer: the draft is an extra layer, which shares embedding and output with the model.
    """

    tokens: int
    chances: tuple[float, ...]
    draft: Transformer | None
    seed: int = 0
    is_layer: bool = False

    @cached_property
    def left(self) -> tuple[float, ...]:
        """Probabilities that at least 1, 2, ... draft tokens are accepted."""
        return tuple(accumulate(self.chances, mul))

    @cached_property
    def mean(self) -> Fraction:
        """Average number of output tokens of an iteration.

        >>> Speculation(3, (0.5, 0.5, 0.5), None).mean
        Fraction(15, 8)
        """
        return Fraction(1.0 + math.fsum(self.left)).limit_denominator(FINEST)

    def steps(self, request: int, put_off: int, tokens: int) -> int:
        """Return the number of iterations in which a request outputs `tokens` tokens, after `put_off` preemptions.

        >>> Speculation(2, (1.0, 1.0), None).steps(0, 0, 7), Speculation(2, (0.0, 0.0), None).steps(0, 0, 7)
        (3, 7)
        """
        if tokens <= 0:
            return 0
        key = stream(self.seed, "speculate", request, put_off)
        written = steps = 0
        while True:
            block = min(1 + tokens - written, 4096)
            draws = uniforms(key, np.arange(steps, steps + block, dtype=np.uint64))
            token_counts = written + np.cumsum(1 + np.searchsorted(-np.array(self.left), -draws, "left"))
            step_count = int(np.searchsorted(token_counts, tokens, "left"))
            if step_count < block:
                return steps + step_count + 1
            steps, written = steps + block, int(token_counts[-1])

    def memory(self, keys: InferKeys, dtype: str) -> tuple[float, float]:
        """Return the bytes of the draft on each GPU: (weights, KV cache of one token).

        An extra layer uses the embedding and the output layer of the model.
        """
        if self.draft is None:
            return 0.0, 0.0
        parallel, kept = keys.parallel, keys.kv or ""
        single = serving_memory(self.draft, parallel.tp, 1, dtype, groups=parallel.groups, kept=kept)
        weights = single.weights
        if self.is_layer:
            double = serving_memory(replace(self.draft, layers=2), parallel.tp, 1, dtype, groups=parallel.groups, kept=kept)
            weights = double.weights - single.weights
        return weights, single.cache


NOTHING: Final = Speculation(1, (0.0,), None)


def speculation_of(keys: SpeculateKeys, model: Transformer, seed: int, mistakes: Mistakes) -> Speculation | None:
    """Return the speculation of a file; None if it is not valid, which is noted in `mistakes`."""
    chances = keys.acceptance if len(keys.acceptance) > 1 else keys.acceptance * keys.tokens
    named = keys.draft
    draft: Transformer | None = replace(model.kinds[model.order[-1]], layers=1)
    if named is not None and named.value == NONE:
        draft = None
    elif named is not None and named.value != LAYER:
        written = written_model(named, mistakes)
        if written is None:
            return None
        if not isinstance(written, Transformer) or not written.causal:
            mistakes.add(named.place, "the draft writes no tokens: expected a causal language model", "draft: layer")
            return None
        draft = written
    is_layer = named is None or named.value == LAYER
    return Speculation(keys.tokens, tuple(chances), draft, seed, is_layer)
