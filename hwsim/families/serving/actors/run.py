"""Requests in service, and runs of iterations that do the same to them."""

from __future__ import annotations

import math
from dataclasses import field

from hwsim.families.serving.actors.prefixes import Key, Pieces
from hwsim.families.serving.results.accounting import Spent
from hwsim.families.serving.workload.requests import Request
from hwsim.records import dataclass


@dataclass(slots=True, eq=False)
class Sequence:
    """A request in service.

    Args:
        number: its place among the requests; at: when it stands in the line, fs.
        ids: names of the pieces of its prompt, each of `span` tokens, that others may have in common with it.
        to_read: tokens that the cache has to hold before it writes the next one; read: tokens that it held then.
        written: tokens of its answer, up to `joined`; joined: steps of decoding of its copy when it began to answer.
        hit: blocks that were there when it joined; kept: blocks that it shares; own: blocks that it does not.
        put_off: times it lost its blocks; group: of data-parallel attention. listed: (size of a block, the pieces of its prompt).
        after: (op, its end in fs) of the answer that it waited for, or of its arrival; (-1, 0) if neither is written.
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
        """Blocks of the cache that it has, as far as its prompt goes."""
        return self.hit + self.kept + self.own

    @classmethod
    def of(cls, number: int, request: Request, at: int) -> Sequence:
        """A request that stands in the line from `at` on."""
        return cls(number, request.prompt, request.output, at, request.ids, request.span, request.prompt)

    def pieces(self, block: int, tokens: int = 0) -> list[tuple[Key, int]]:
        """(key, whole blocks) of the pieces of its prompt, or of this many tokens; a piece that they cut short is another.

        >>> Sequence(0, 40, 1, 0, ids=(7, 8, 9), span=16).pieces(8)
        [((7, 2), 2), ((8, 2), 2), ((9, 1), 1)]
        """
        span, tokens = self.span, tokens or self.prompt
        whole, each = min(tokens // span, len(self.ids)) if span % block == 0 else 0, span // block
        made = [((piece, each), each) for piece in self.ids[:whole]]
        before = whole * each
        for number, piece in enumerate(self.ids[whole:], whole + 1):
            blocks = min(number * span, tokens) // block
            if blocks > before:
                made.append(((piece, blocks - before), blocks - before))
            before = blocks
            if number * span >= tokens:
                break
        return made


@dataclass(slots=True, eq=False)
class Run:
    """Iterations that do the same, one after another.

    Args:
        index: iterations of the copy before; begin: of the first, fs; seen: until when requests had come that it could have.
        parts: prompts and the tokens of them that are read (of one iteration only).
        answers: sequences that each write a token an iteration; context: tokens that they look at, all together, in the first.
        part: tokens beyond `context`, in parts of the mean that an iteration writes; none where it writes one.
        ended: sequences that write a token in the first.
        most: iterations that are alike; count: iterations that it has.
        first: fs of the first, of its host, kernels and network; slope: more of the kernels for each after it.
        fetched: adapters that are loaded before it. taken: blocks of the cache that its answers have so far.
        answered: fs that its answers would take without the prompts. low: the knot before its mean context; -1: not known.
        padded: tokens of each group that the exchanges of an iteration pass.
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
        """Tokens of prompts that are read."""
        parts = self.parts
        return parts[0][1] if len(parts) == 1 else sum([tokens for _, tokens in parts])  # integers

    @property
    def rows(self) -> int:
        """Tokens of each iteration."""
        return self.answers + self.tokens

    @property
    def read(self) -> tuple[tuple[int, int], ...]:
        """(tokens read now, tokens read before) of each prompt."""
        return tuple([(tokens, sequence.read) for sequence, tokens in self.parts])

    def spent(self, first: int, last: int, begin: int, end: int) -> Spent:
        """Time of some of its iterations by its use; what others on its devices and links took is known at their end."""
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
        """fs of the kernels of all its iterations."""
        return self.count * self.kernels + self.slope * (self.count * (self.count - 1) // 2)

    def start(self, number: int) -> int:
        """When the iteration begins that many after the first."""
        return self.begin + number * self.first + self.slope * (number * (number - 1) // 2)

    @property
    def end(self) -> int:
        """When the last of its iterations ends."""
        count = self.count
        return self.begin + count * self.first + self.slope * (count * (count - 1) // 2)

    def after(self, instant: int) -> int:
        """The first of its iterations that begins after an instant.

        >>> run = Run(0, 100, 100, [], 1, 1, first=10, slope=2)
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

    def sees(self, at: int, ahead: int, look: int) -> int:
        """The first of its iterations, but the first one, that a request can join that comes at this instant."""
        number = max(1, self.after(at) + ahead)
        return number + -(self.index + number) % look

    def until(self, first: int, begin: int, instant: int) -> tuple[int, Spent]:
        """The end of its iteration under way just before an instant, and what all went to from the first one on, at `begin`."""
        number = self.after(instant - 1)
        end = self.start(number)
        return end, self.spent(first, number, begin, end)

    def looked(self, ahead: int, look: int, door: int) -> int:
        """Until when requests had come at its last look for them, one in `look` iterations; `door` if there was none."""
        number = (self.index + self.count - 1) // look * look - self.index
        if number <= 0:
            return door
        return self.seen if number == ahead else self.start(number - ahead) - 1
