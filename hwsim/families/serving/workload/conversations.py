"""Prompts with common beginnings: shared system prompts, and multi-turn conversations with a growing context.

shared: {tokens: 800, groups: 12, skew: 1}      prompts of a group begin with the same 800 tokens, followed by `prompt` own ones
shared: {distinct: 44}                          44 distinct prompts, which requests repeat
sessions: {turns: {uniform: [2, 8]}, think: {exponential: 20 s}}

The prompt of a turn is the whole conversation so far, questions and answers, followed by `prompt` new tokens. The next turn
arrives after the answer and a think time. With `sessions`, the arrival process starts conversations instead of single requests.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field as dataclass_field
from typing import Final

import numpy as np

from hwsim.records import dataclass
from hwsim.spec import Place, Problem, field, place_field
from hwsim.units import Seconds
from hwsim.workload.load.draws import Constant, RandomDraws, Uniform
from hwsim.workload.load.keys import CountDraw, TimeDraw, distribution_of
from hwsim.workload.load.numbers import stream, zipf_probabilities

PIECE: Final = 16  # tokens: granularity at which prompts are compared
TURNS: Final = 1 << 20  # maximum turns of a conversation
_GROUP, _PROMPT, _SESSION = (kind << 60 for kind in (1, 2, 3))  # high bits, so that ids of different kinds never collide
_LONGEST: Final = 1 << 28  # upper bound of the pieces of a prompt


@dataclass(frozen=True, slots=True)
class SharedKeys:
    """Tokens that prompts have in common: shared system prompts, or entire prompts that are repeated."""

    tokens: int | CountDraw = field(
        "number of shared tokens at the beginning of each prompt of a group; the tokens of `prompt` follow them",
        default=0, minimum=0, example="800",
    )  # fmt: skip
    groups: int = field("number of groups, each with its own shared tokens; every request belongs to a random group", default=1,
                        minimum=1, maximum=10_000_000)  # fmt: skip
    skew: float = field(
        "skew of popularity: the n-th group has a share of requests proportional to n^-skew (Zipf); 0: equal shares",
        default=0.0, minimum=0.0,
    )  # fmt: skip
    distinct: int | None = field("number of distinct prompts, which requests repeat at random (default: all prompts differ)",
                                 default=None, minimum=1, example="44")  # fmt: skip
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting."""
        if isinstance(self.tokens, CountDraw):
            yield from (("tokens", message, hint) for _, message, hint in self.tokens.problems())
        elif not self.tokens and self.distinct is None:
            yield "", "no tokens are shared: expected `tokens` or `distinct`", "tokens: 800, groups: 12"


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """Multi-turn conversations: the prompt of each request contains all earlier turns and their answers."""

    turns: int | CountDraw = field("number of requests (turns) in a conversation", minimum=1, example="{uniform: [2, 8]}")
    think: Seconds | TimeDraw | None = field(
        "think time from the end of an answer to the next turn (default: 0)", default=None, example="{exponential: 20 s}"
    )
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting."""
        for key, value in (("turns", self.turns), ("think", self.think)):
            if isinstance(value, CountDraw | TimeDraw):
                yield from ((key, message, hint) for _, message, hint in value.problems())


@dataclass(slots=True)
class Beginnings:
    """Shared beginnings of prompts: their lengths, and ids of pieces by which equal beginnings are recognized.

    Args:
        keys: keys of the file.
        lengths: shared tokens of each group.
        shares: cumulative share of requests of the groups.
        group: random numbers that choose the group of a request.
        prompt: random numbers that choose the prompt of a request; None: all prompts differ.
    """

    keys: SharedKeys
    lengths: tuple[int, ...]
    shares: tuple[float, ...]
    group: RandomDraws
    prompt: RandomDraws | None
    _starts: dict[int, tuple[int, ...]] = dataclass_field(default_factory=dict)

    @classmethod
    def of(cls, keys: SharedKeys, seed: int) -> Beginnings:
        """Return the beginnings that the keys describe."""
        lengths_drawn = RandomDraws(stream(seed, "shared", "tokens"), distribution_of(keys.tokens)).many(0, keys.groups)
        lengths = tuple(max(0, round(tokens)) for tokens in lengths_drawn.tolist())
        shares = tuple(np.cumsum(zipf_probabilities(keys.groups, keys.skew)).tolist())  # count
        prompt = (
            None if keys.distinct is None else RandomDraws(stream(seed, "shared", "prompt"), Uniform(0.0, float(keys.distinct)))
        )
        return cls(keys, lengths, shares, RandomDraws(stream(seed, "shared", "group"), Uniform(0.0, 1.0)), prompt)

    def source(self, number: int) -> int:
        """Return the number of the request whose prompt this request repeats; its own number without `distinct`."""
        return number if self.prompt is None else min(int(self.prompt.at(number)), (self.keys.distinct or 1) - 1)

    def early(self, number: int) -> int:
        """Return the shared tokens at the beginning of a request's prompt."""
        return self.lengths[self._group(number)]

    def _group(self, number: int) -> int:
        return min(bisect_right(self.shares, self.group.at(self.source(number))), self.keys.groups - 1)

    def at(self, number: int, tokens: int) -> tuple[int, tuple[int, ...]]:
        """Return (shared tokens, ids of pieces) of a request with `tokens` own prompt tokens."""
        group = self._group(number)
        early, ids = self.lengths[group], self._starts.get(group)
        if ids is None:
            ids = self._starts[group] = tuple(_GROUP + group * _LONGEST + piece for piece in range(early // PIECE))
        if self.prompt is not None:
            first = _PROMPT + self.source(number) * _LONGEST
            ids += tuple(first + piece for piece in range(len(ids), (early + tokens) // PIECE))
        return early, ids


def turns_of(keys: SessionKeys, seed: int, session: int) -> int:
    """Return the number of turns of a conversation."""
    return min(TURNS, max(1, round(RandomDraws(stream(seed, "turns"), distribution_of(keys.turns)).at(session))))


def pieces(session: int, early: int, start: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    """Return the ids of the whole pieces in the first `tokens` of a conversation.

    Args:
        session: number of the conversation.
        early: shared tokens at its beginning.
        start: ids of the pieces of the shared tokens.
        tokens: number of tokens.

    >>> pieces(0, 32, (7, 8), 70)[:2], len(pieces(0, 32, (7, 8), 70))
    ((7, 8), 4)
    """
    first = _SESSION + session * _LONGEST
    shared = start[: early // PIECE]
    return (*shared, *(first + piece for piece in range(len(shared), tokens // PIECE)))


def think_times(keys: SessionKeys, seed: int) -> RandomDraws:
    """Return the think times (s) before each turn except the first."""
    return RandomDraws(stream(seed, "think"), Constant(0.0) if keys.think is None else distribution_of(keys.think))
