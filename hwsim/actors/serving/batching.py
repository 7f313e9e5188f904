"""The requests of an iteration: continuous batching, with or without chunks, and static batching.

continuous   requests join and leave between iterations. Without `chunk`, waiting prompts pass whole in an iteration of their
             own, before the running answers. With it, every iteration has all running answers and as much of the prompts as
             fits next to them, which keeps the time between tokens even.
static       a batch is taken when the last one has ended. Its prompts are padded to the longest, and each keeps its place
             until the longest answer is written, though its own tokens are out before.

A request joins when the cache has blocks for its prompt, first come first served. An answer that needs a block when none is
free takes the blocks of the request that joined last. That request waits at the head of the line and reads its prompt and its
tokens again (recomputation).

**Source**: Yu et al., "Orca", OSDI 2022 (iterations); Kwon et al., SOSP 2023 (blocks, recomputation, prompts first);
Agrawal et al., "Sarathi-Serve", OSDI 2024 (chunks).
"""

from __future__ import annotations

from collections import deque
from dataclasses import field
from typing import Final

from hwsim.actors.serving.cache import Cache
from hwsim.records import dataclass
from hwsim.results.accounting import Refusal
from hwsim.workload.serving.requests import Request

SPARE: Final = 0.01  # of the blocks that no prompt joins with, so that answers can go on; vLLM's `watermark`, quoted from memory


@dataclass(slots=True, eq=False)
class Sequence:
    """A request in service.

    Args:
        number: its place among the requests.
        to_read: tokens that the cache has to hold before it writes the next one; read: tokens that it holds.
        written: tokens of its answer; read_for: of them when it last began to read.
        blocks: its blocks of the cache; put_off: times it lost them.
    """

    number: int
    request: Request
    to_read: int
    read: int = 0
    written: int = 0
    read_for: int = 0
    blocks: int = 0
    put_off: int = 0

    @property
    def is_over(self) -> bool:
        """All tokens are written."""
        return self.written >= self.request.output and self.read >= self.to_read


@dataclass(frozen=True, slots=True)
class Batch:
    """One iteration.

    Args:
        prompts: (sequence, tokens it reads); answers: sequences that grow by a token.
        padded: tokens to which each prompt and context is padded; 0 if none is.
        slots: sequences that are computed, ended ones included; 0 if those are the answers.
    """

    prompts: tuple[tuple[Sequence, int], ...]
    answers: tuple[Sequence, ...]
    padded: int = 0
    slots: int = 0

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """(tokens read now, tokens read before) of each prompt, padding included."""
        if self.padded:
            return tuple((self.padded, 0) for _ in self.prompts)
        return tuple((tokens, sequence.read) for sequence, tokens in self.prompts)

    @property
    def going_on(self) -> int:
        """Sequences that grow by a token, padding included."""
        return self.slots if self.slots and self.answers else len(self.answers)

    @property
    def context(self) -> float:
        """Mean number of tokens that each answer looks at, itself included."""
        if not self.answers:
            return 0.0
        if self.padded:
            return float(self.padded)
        return sum(each.read for each in self.answers) / len(self.answers) + 1

    @property
    def ended(self) -> int:
        """Sequences that write a token."""
        return self.going_on + sum(sequence.read + tokens >= sequence.to_read for sequence, tokens in self.prompts)


@dataclass(slots=True)
class Line:
    """Waiting sequences, and running ones in the order they joined.

    Args:
        refusal: why the head of the line did not join the last iteration; "" if it did, or for want of tokens in it.
        away: (number, tokens to be read again) of sequences that were put off since they were last asked for.
    """

    cache: Cache
    most: int
    waiting: deque[Sequence] = field(default_factory=deque)
    running: list[Sequence] = field(default_factory=list)
    refusal: Refusal = ""
    away: list[tuple[int, int]] = field(default_factory=list)

    def lost_now(self) -> list[tuple[int, int]]:
        """Sequences that were put off since the last call."""
        away, self.away = self.away, []
        return away

    def add(self, sequence: Sequence) -> None:
        """Append a request."""
        self.waiting.append(sequence)

    @property
    def held(self) -> int:
        """Requests that wait or run."""
        return len(self.waiting) + len(self.running)

    def leave(self, sequence: Sequence) -> None:
        """Take an answered sequence out."""
        self.running.remove(sequence)
        self.cache.give(sequence.blocks)
        sequence.blocks = 0


@dataclass(slots=True)
class Continuous(Line):
    """chunk: tokens of an iteration; None: prompts pass whole, at most `prefill` tokens together."""

    chunk: int | None = None
    prefill: int = 8192

    def next(self) -> Batch | None:
        """The next iteration; None if there is nothing to do."""
        self.refusal = "seats" if self.waiting and len(self.running) >= self.most else ""
        if self.chunk is None:
            prompts = self._whole()
            return Batch(prompts, ()) if prompts else self._only(self._answers())
        answers = self._answers()
        return self._only(answers, self._cut(self.chunk - len(answers)))

    def done(self, batch: Batch) -> list[Sequence]:
        """Note the end of an iteration; the sequences that are answered leave and are returned."""
        for sequence, tokens in batch.prompts:
            sequence.read += tokens
            if sequence.read >= sequence.to_read:
                sequence.written += 1
        for sequence in batch.answers:
            sequence.read += 1
            sequence.to_read += 1
            sequence.written += 1
        over = [each for each in self.running if each.is_over]
        for sequence in over:
            self.leave(sequence)
        return over

    @staticmethod
    def _only(answers: tuple[Sequence, ...], prompts: tuple[tuple[Sequence, int], ...] = ()) -> Batch | None:
        return Batch(prompts, answers) if prompts or answers else None

    def _whole(self) -> tuple[tuple[Sequence, int], ...]:
        """Prompts that join now."""
        joined: list[tuple[Sequence, int]] = []
        total = 0
        while self.waiting and len(self.running) < self.most:
            tokens = self.waiting[0].to_read
            if (joined and total + tokens > self.prefill) or not self._joins(self.waiting[0]):
                break
            total += tokens
            joined.append((self.running[-1], tokens))
        return tuple(joined)

    def _cut(self, room: int) -> tuple[tuple[Sequence, int], ...]:
        """Parts of prompts: first of prompts that have begun, then of prompts that join."""
        parts: list[tuple[Sequence, int]] = []
        for sequence in self.running:
            if room > 0 and sequence.read < sequence.to_read:
                tokens = min(room, sequence.to_read - sequence.read)
                parts.append((sequence, tokens))
                room -= tokens
        while room > 0 and self.waiting and len(self.running) < self.most and self._joins(self.waiting[0]):
            sequence = self.running[-1]
            tokens = min(room, sequence.to_read)
            parts.append((sequence, tokens))
            room -= tokens
        return tuple(parts)

    def _joins(self, sequence: Sequence) -> bool:
        """Whether the cache has room for its prompt: then it runs."""
        need = self.cache.need(sequence.to_read)
        spare = int(SPARE * (self.cache.blocks or 0)) if self.running else 0
        if need > self.cache.free() - spare:
            self.refusal = "room"
            return False
        self.cache.take(need)
        sequence.blocks = need
        self.running.append(self.waiting.popleft())
        return True

    def _answers(self) -> tuple[Sequence, ...]:
        """Sequences that grow by a token, each with a block for it; the last that joined makes room."""
        answering: list[Sequence] = []
        for sequence in list(self.running):
            if sequence.blocks == 0 or sequence.read < sequence.to_read:
                continue  # put off just now, or not read yet
            if self._grows(sequence):
                answering.append(sequence)
        return tuple(answering)

    def _grows(self, sequence: Sequence) -> bool:
        more = self.cache.need(sequence.read + 1) - sequence.blocks
        while more > self.cache.free():
            last = self.running[-1]
            self._put_off(last)
            if last is sequence:
                return False
        if more > 0:
            self.cache.take(more)
            sequence.blocks += more
        return True

    def _put_off(self, sequence: Sequence) -> None:
        self.leave(sequence)
        self.away.append((sequence.number, sequence.read))
        sequence.put_off += 1
        sequence.read_for = sequence.written
        sequence.to_read = sequence.request.prompt + sequence.written
        sequence.read = 0
        self.waiting.appendleft(sequence)


@dataclass(slots=True)
class Static(Line):
    """context: longest prompt of the running batch and the tokens since; left: tokens until its longest answer ends."""

    context: int = 0
    left: int = 0
    slots: int = 0

    def next(self) -> Batch | None:
        """The next iteration of the batch, or the first of the next one."""
        self.refusal = "seats" if self.waiting and self.running else ""
        if not self.running:
            return self._first()
        self.context += 1
        self.left -= 1
        return Batch((), tuple(each for each in self.running if not each.is_over), self.context, self.slots)

    def done(self, batch: Batch) -> list[Sequence]:
        """Note the end of an iteration; return sequences whose last token is out. All leave with the batch."""
        going = [each for each in self.running if not each.is_over]
        for sequence in going:
            sequence.read = sequence.to_read if batch.prompts else sequence.read + 1
            sequence.to_read = sequence.read
            sequence.written += bool(sequence.request.output)
        over = [each for each in going if each.is_over]
        if self.left <= 0:
            for sequence in list(self.running):
                self.leave(sequence)
        return over

    def _first(self) -> Batch | None:
        longest = most = 0
        while self.waiting and len(self.running) < self.most:
            request = self.waiting[0].request
            prompt, output = max(longest, request.prompt), max(most, request.output)
            place = self.cache.need(prompt + output)
            if place * (len(self.running) + 1) > (self.cache.blocks or 1 << 60):
                self.refusal = "room"
                break
            longest, most = prompt, output
            self.running.append(self.waiting.popleft())
        if not self.running:
            return None
        for sequence in self.running:
            sequence.blocks = self.cache.need(longest + most)
            self.cache.take(sequence.blocks)
        self.context, self.left, self.slots = longest, most - 1, len(self.running)
        return Batch(tuple((each, each.to_read) for each in self.running), (), longest, self.slots)
