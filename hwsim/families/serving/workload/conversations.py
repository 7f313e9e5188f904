"""Prompts that begin alike: system prompts, and conversations of several turns whose context grows.

shared: {tokens: 800, groups: 12, skew: 1}      prompts of a group begin with the same 800 tokens, which `prompt` comes after
shared: {distinct: 44}                          there are 44 prompts; requests repeat them
sessions: {turns: {uniform: [2, 8]}, think: {exponential: 20 s}}

The prompt of a turn is everything before it, question and answer alike, and then `prompt` new tokens. The next turn comes when
the answer is read and thought about. What arrives, or what a client begins, is then a conversation.
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
from hwsim.workload.load.draws import Constant, Draws, Uniform
from hwsim.workload.load.keys import CountDraw, TimeDraw, distribution_of
from hwsim.workload.load.numbers import falling, stream

PIECE: Final = 16  # tokens of a piece that prompts may have in common
TURNS: Final = 1 << 20  # of a conversation, at most
_GROUP, _PROMPT, _SESSION = (kind << 60 for kind in (1, 2, 3))  # bits that keep the pieces of each kind apart
_LONGEST: Final = 1 << 28  # pieces of a prompt, fewer than this


@dataclass(frozen=True, slots=True)
class SharedKeys:
    """The beginnings that prompts have in common: system prompts, or whole prompts that come again."""

    tokens: int | CountDraw = field(
        "of the beginning of each group, before the tokens of `prompt`", default=0, minimum=0, example="800"
    )
    groups: int = field("so many beginnings; a request has one of them at random", default=1, minimum=1, maximum=10_000_000)
    skew: float = field(
        "of the groups: the share of the n-th falls as n to the power of -skew; 0: all alike", default=0.0, minimum=0.0
    )
    distinct: int | None = field("only so many prompts; requests repeat them at random", default=None, minimum=1, example="44")
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        if isinstance(self.tokens, CountDraw):
            yield from (("tokens", message, hint) for _, message, hint in self.tokens.problems())
        elif not self.tokens and self.distinct is None:
            yield "", "nothing is shared", "tokens: 800, groups: 12; or distinct: 44"


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """Conversations: several requests one after another, each with all that was said before."""

    turns: int | CountDraw = field("requests of a conversation", minimum=1, example="{uniform: [2, 8]}")
    think: Seconds | TimeDraw | None = field(
        "from an answer to the next turn (default: none)", default=None, example="{exponential: 20 s}"
    )
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        for key, value in (("turns", self.turns), ("think", self.think)):
            if isinstance(value, CountDraw | TimeDraw):
                yield from ((key, message, hint) for _, message, hint in value.problems())


@dataclass(slots=True)
class Beginnings:
    """The beginning of each prompt: tokens that come before its own, and the ids of pieces that others have, too."""

    keys: SharedKeys
    lengths: tuple[int, ...]
    shares: tuple[float, ...]
    group: Draws
    prompt: Draws | None
    _starts: dict[int, tuple[int, ...]] = dataclass_field(default_factory=dict)

    @classmethod
    def of(cls, keys: SharedKeys, seed: int) -> Beginnings:
        """As the keys have it."""
        drawn = Draws(stream(seed, "shared", "tokens"), distribution_of(keys.tokens)).many(0, keys.groups)
        lengths = tuple(max(0, round(tokens)) for tokens in drawn.tolist())
        shares = tuple(np.cumsum(falling(keys.groups, keys.skew)).tolist())  # count
        prompt = None if keys.distinct is None else Draws(stream(seed, "shared", "prompt"), Uniform(0.0, float(keys.distinct)))
        return cls(keys, lengths, shares, Draws(stream(seed, "shared", "group"), Uniform(0.0, 1.0)), prompt)

    def source(self, number: int) -> int:
        """The request whose prompt this one repeats: itself, unless there are only some prompts."""
        return number if self.prompt is None else min(int(self.prompt.at(number)), (self.keys.distinct or 1) - 1)

    def early(self, number: int) -> int:
        """Tokens before its own of a request."""
        return self.lengths[self._group(number)]

    def _group(self, number: int) -> int:
        return min(bisect_right(self.shares, self.group.at(self.source(number))), self.keys.groups - 1)

    def at(self, number: int, tokens: int) -> tuple[int, tuple[int, ...]]:
        """(tokens before its own, ids) of a request whose own prompt has these tokens."""
        group = self._group(number)
        early, ids = self.lengths[group], self._starts.get(group)
        if ids is None:
            ids = self._starts[group] = tuple(_GROUP + group * _LONGEST + piece for piece in range(early // PIECE))
        if self.prompt is not None:
            first = _PROMPT + self.source(number) * _LONGEST
            ids += tuple(first + piece for piece in range(len(ids), (early + tokens) // PIECE))
        return early, ids


def turns_of(keys: SessionKeys, seed: int, session: int) -> int:
    """Requests of a conversation."""
    return min(TURNS, max(1, round(Draws(stream(seed, "turns"), distribution_of(keys.turns)).at(session))))


def pieces(session: int, early: int, start: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    """Ids of the whole pieces of the first tokens of a conversation that begins with a shared one.

    >>> pieces(0, 32, (7, 8), 70)[:2], len(pieces(0, 32, (7, 8), 70))
    ((7, 8), 4)
    """
    first = _SESSION + session * _LONGEST
    shared = start[: early // PIECE]
    return (*shared, *(first + piece for piece in range(len(shared), tokens // PIECE)))


def thinking(keys: SessionKeys, seed: int) -> Draws:
    """Seconds before each turn but the first."""
    return Draws(stream(seed, "think"), Constant(0.0) if keys.think is None else distribution_of(keys.think))
