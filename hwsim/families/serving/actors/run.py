"""Requests in a replica, and runs of equal iterations."""

from __future__ import annotations

import math
from dataclasses import field
from itertools import repeat

from hwsim.families.serving.actors.prefix_cache import Pieces
from hwsim.families.serving.actors.prefix_index import Key
from hwsim.families.serving.results.accounting import Spent
from hwsim.families.serving.workload.requests import Request
from hwsim.records import dataclass


@dataclass(slots=True, eq=False)
class Sequence:
    """A request in a replica (a sequence, in vLLM's terms).

    Args:
        number: number of the request.
        prompt, output: prompt and output tokens.
        at: time at which it was queued (fs).
        ids: ids of the pieces of its prompt, which equal prompts have in common.
        span: tokens of a piece.
        to_read: tokens that must be in the KV cache before the next output token.
        read: tokens in the KV cache at the end of prefill.
        written: output tokens at `joined`.
        joined: decode iterations of the replica when this request started decode.
        hit: prefix-cache blocks found when it joined.
        kept: blocks that it shares with others.
        own: blocks that it does not share.
        cached: prompt tokens found in the prefix cache.
        keys: keys of its cached pieces.
        put_off: number of preemptions.
        group: group of data-parallel attention.
        is_over: the request is complete.
        listed: (block size, pieces of the prompt), computed once.
        after: (op, end in fs) of the answer that it followed, or of its arrival; (-1, 0) if no op was issued.
    """

    number: int
    prompt: int
    output: int
    at: int
    ids: tuple[int, ...] = ()
    span: int = 1
    to_read: int = 0
    read: int = 0
    written: int = 0
    joined: int = 0
    hit: int = 0
    kept: int = 0
    own: int = 0
    cached: int = 0
    keys: list[Key] = field(default_factory=list)
    put_off: int = 0
    group: int = 0
    is_over: bool = False
    listed: tuple[int, Pieces] = (0, ((), 0))
    after: tuple[int, int] = (-1, 0)

    @property
    def blocks(self) -> int:
        """Number of KV-cache blocks of its prompt."""
        return self.hit + self.kept + self.own

    @classmethod
    def of(cls, number: int, request: Request, at: int) -> Sequence:
        """Return a request that is queued at `at` (fs)."""
        return cls(number, request.prompt, request.output, at, request.ids, request.span, request.prompt)

    def pieces(self, block: int, tokens: int = 0) -> list[tuple[Key, int]]:
        """Return (key, whole blocks) of the pieces in its prompt, or in this many tokens; a shortened piece has another key.

        >>> Sequence(0, 40, 1, 0, ids=(7, 8, 9), span=16).pieces(8)
        [((7, 2), 2), ((8, 2), 2), ((9, 1), 1)]
        """
        span, tokens = self.span, tokens or self.prompt
        whole, blocks_per_piece = min(tokens // span, len(self.ids)) if span % block == 0 else 0, span // block
        pieces = list(zip(zip(self.ids[:whole], repeat(blocks_per_piece)), repeat(blocks_per_piece)))
        before = whole * blocks_per_piece
        for number, piece in enumerate(self.ids[whole:], whole + 1):
            blocks = min(number * span, tokens) // block
            if blocks > before:
                pieces.append(((piece, blocks - before), blocks - before))
            before = blocks
            if number * span >= tokens:
                break
        return pieces


@dataclass(slots=True, eq=False)
class IterationRun:
    """A run of equal iterations, one after another; times in fs.

    Args:
        index: number of iterations of the replica before the run.
        begin: start of the first iteration.
        seen: latest queueing time of requests that the decision could see.
        parts: (request, tokens) of the prefill chunks; a run with prefill has one iteration.
        answers: number of sequences in decode.
        context: tokens in the KV cache of all sequences in decode, in the first iteration.
        ended: number of sequences that output a token in the first iteration.
        most: maximum number of equal iterations.
        count: number of iterations.
        first: duration of the first iteration: host, kernels and network.
        host, kernels, network: parts of this duration.
        slope: growth of the kernel time from one iteration to the next.
        answered: time of the decode alone, without the prefill.
        taken: KV-cache blocks allocated so far to the decode of this run.
        part: tokens beyond `context`, as a multiple of 1 / denominator of the mean tokens of an iteration (speculation).
        fetched: number of adapters loaded before the first iteration.
        low: knot below the mean context; -1: not known.
        padded: tokens of each group in the collectives of an iteration.
    """

    index: int
    begin: int
    seen: int
    parts: list[tuple[Sequence, int]]
    answers: int
    context: int
    ended: int = 0
    most: int = 1
    count: int = 1
    first: int = 0
    host: int = 0
    kernels: int = 0
    network: int = 0
    slope: int = 0
    answered: int = 0
    taken: int = 0
    part: int = 0
    fetched: int = 0
    low: int = -1
    padded: int = 0

    @property
    def tokens(self) -> int:
        """Prompt tokens in prefill."""
        parts = self.parts
        return parts[0][1] if len(parts) == 1 else sum([tokens for _, tokens in parts])  # integers

    @property
    def rows(self) -> int:
        """Tokens of an iteration."""
        return self.answers + self.tokens

    @property
    def read(self) -> tuple[tuple[int, int], ...]:
        """(tokens of the chunk, tokens computed before) of each prompt in prefill."""
        return tuple([(tokens, sequence.read) for sequence, tokens in self.parts])

    def spent(self, first: int, last: int, begin: int, end: int) -> Spent:
        """Return the time of iterations `first` to `last` by use; contention is the rest of `end` - `begin`."""
        count = last - first
        network, host, kernels = count * self.network, count * self.host, count * self.kernels
        if self.slope:
            kernels += self.slope * ((last * (last - 1) - first * (first - 1)) // 2)
        rest = end - begin - kernels - network - host
        if not self.parts:
            return 0, kernels, network, rest, host
        answers = min(kernels, self.answered)
        return kernels - answers, answers, network, rest, host

    @property
    def computed(self) -> int:
        """Kernel time of all iterations (fs)."""
        return self.count * self.kernels + self.slope * (self.count * (self.count - 1) // 2)

    def start(self, number: int) -> int:
        """Return the start of an iteration (fs), counted from 0."""
        return self.begin + number * self.first + self.slope * (number * (number - 1) // 2)

    @property
    def end(self) -> int:
        """End of the last iteration (fs)."""
        count = self.count
        return self.begin + count * self.first + self.slope * (count * (count - 1) // 2)

    def after(self, instant: int) -> int:
        """Return the index of the first iteration that begins after an instant.

        >>> run = IterationRun(0, 100, 100, [], 1, 1, first=10, slope=2)
        >>> [run.start(number) for number in range(4)], [run.after(at) for at in (99, 100, 109, 110, 121, 122)]
        ([100, 110, 122, 136], [0, 1, 1, 2, 2, 3])
        """
        passed = instant - self.begin
        if passed < 0:
            return 0
        if not self.slope:
            return passed // self.first + 1
        # number x (first - slope / 2) + number**2 x slope / 2 = passed
        half = self.first - self.slope / 2
        number = int((math.sqrt(half * half + 2.0 * self.slope * passed) - half) / self.slope)
        while self.start(number) > instant:
            number -= 1
        while self.start(number) <= instant:
            number += 1
        return number

    def sees(self, instant: int, ahead: int, look: int) -> int:
        """Return the index of the first iteration, from 1, that a request queued at this instant can join."""
        number = max(1, self.after(instant) + ahead)
        return number + -(self.index + number) % look

    def until(self, first: int, begin: int, instant: int) -> tuple[int, Spent]:
        """Return (end, use of the time since `begin`) of the iteration that runs just before an instant."""
        number = self.after(instant - 1)
        end = self.start(number)
        return end, self.spent(first, number, begin, end)

    def looked(self, ahead: int, look: int, door: int) -> int:
        """Return the latest queueing time visible at the last look for requests, every `look` iterations; `door` without one."""
        number = (self.index + self.count - 1) // look * look - self.index
        if number <= 0:
            return door
        return self.seen if number == ahead else self.start(number - ahead) - 1
