"""`speculate:` several tokens of each answer are guessed, and verified in one iteration.

speculate: {tokens: 3, acceptance: 70 %}                          a layer of the model's own guesses, as EAGLE and MTP do
speculate: {tokens: 3, acceptance: [80 %, 65 %, 50 %], draft: llama-3-1b}

A guess is accepted with its chance if all before it were; the iteration then writes those and one more. How many iterations an
answer takes is drawn, guess by guess, by a hash of the seed and the request.
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

FINEST: Final = 1000  # the mean number of tokens of an iteration is a fraction with a denominator up to this
MOST: Final = 64  # guesses
LAYER, NONE = "layer", "none"


@dataclass(frozen=True, slots=True)
class SpeculateKeys:
    """Guesses of the next tokens of each answer."""

    tokens: int = field("guesses of each answer in an iteration", minimum=1, maximum=MOST)
    acceptance: tuple[Ratio, ...] = field(
        "chance that a guess is accepted if all before it were; one for all, or one for each", minimum=0.0, maximum=1.0,
        one_or_many=True, example="70 %",
    )  # fmt: skip
    draft: Tree | None = field(
        "who guesses: a model, one token after another; layer (default): one more layer like the last of the model; none: nobody"
        " on the GPU, as with n-grams of the prompt",
        default=None,
        example="llama-3-8b",
    )
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        if len(self.acceptance) not in (1, self.tokens):
            message = f"{len(self.acceptance)} chances of {self.tokens} guesses"
            yield "acceptance", message, "one for all, or one for each"


@dataclass(frozen=True)
class Speculation:
    """Guesses, as a server has them; draft: the model that makes them, none if the GPUs do nothing for it."""

    tokens: int
    chances: tuple[float, ...]
    draft: Transformer | None
    seed: int = 0
    is_layer: bool = False

    @cached_property
    def left(self) -> tuple[float, ...]:
        """Chance of each number of accepted guesses, or more, from one on."""
        return tuple(accumulate(self.chances, mul))

    @cached_property
    def mean(self) -> Fraction:
        """Tokens that an iteration writes, in the mean.

        >>> Speculation(3, (0.5, 0.5, 0.5), None).mean
        Fraction(15, 8)
        """
        return Fraction(1.0 + math.fsum(self.left)).limit_denominator(FINEST)

    def steps(self, request: int, put_off: int, tokens: int) -> int:
        """Iterations until `tokens` are written.

        >>> Speculation(2, (1.0, 1.0), None).steps(0, 0, 7), Speculation(2, (0.0, 0.0), None).steps(0, 0, 7)
        (3, 7)
        """
        if tokens <= 0:
            return 0
        key = stream(self.seed, "speculate", request, put_off)
        written = steps = 0
        while True:
            block = min(1 + tokens - written, 4096)
            drawn = uniforms(key, np.arange(steps, steps + block, dtype=np.uint64))
            many = written + np.cumsum(1 + np.searchsorted(-np.array(self.left), -drawn, "left"))
            enough = int(np.searchsorted(many, tokens, "left"))
            if enough < block:
                return steps + enough + 1
            steps, written = steps + block, int(many[-1])

    def memory(self, keys: InferKeys, dtype: str) -> tuple[float, float]:
        """Bytes of the draft on each GPU: its weights, and what a token leaves in its cache.

        A layer that guesses has its embedding and output from the model.
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
    """The guesses that a file asks for; None once its mistakes are noted."""
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
            mistakes.add(named.place, "only a model that writes tokens can guess them", "draft: layer")
            return None
        draft = written
    is_layer = named is None or named.value == LAYER
    return Speculation(keys.tokens, tuple(chances), draft, seed, is_layer)
