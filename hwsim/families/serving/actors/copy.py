"""One copy of a model as its server runs it: what waits, what is read in part, what is answered, and the blocks they hold.

    run = copy.next(now)                what the next iteration does, and how many in a row do the same
    copy.done(run, end)                 they have ended

No time passes here, and nothing is random. `next` decides as the server does at the end of an iteration; who plays it says how
long it takes. Iterations that only write answers are equal until one ends, blocks run out, or a request is seen that may join.
A run of them is one decision (see `alone`), or each is a decision (see `clocked`); both come to the same.

A request that comes at `at` is seen by the decisions after that instant, one iteration later where the server schedules ahead.
An instant later is a femtosecond, so for a request that comes just as an iteration ends the order of the two makes no
difference. An idle copy sees what comes at that instant.

An answer that wants a block when none is free takes the blocks of the request that joined last, answering or half read. That
request waits at the head of the line. It reads its prompt and its tokens again, but for what the cache still has of them.

**Source**: vllm 0.19.0, v1/core/sched/scheduler.py; sglang 0.5.9, srt/managers/schedule_policy.py and schedule_batch.py;
TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/scheduler.py; Yu et al., "Orca", OSDI 2022; Agrawal et al., OSDI 2024 (chunks).
"""

from __future__ import annotations

import heapq
from functools import partial
from typing import Final

from hwsim.families.serving.actors.batch import Batch
from hwsim.families.serving.actors.blocks import most_within
from hwsim.families.serving.actors.prefixes import Found
from hwsim.families.serving.actors.replica import DoesNotFit
from hwsim.families.serving.actors.run import Run, Sequence
from hwsim.families.serving.results.accounting import ADAPTER, Refusal
from hwsim.records import dataclass

AGAIN: Final = 16  # iterations after which a request that a ratio refused is looked at again


@dataclass(slots=True)
class Copy(Batch):
    """A copy, and what its server decides.

    Args:
        seen: until when requests had come that the latest iteration could be decided upon; door: that may join it.
        is_open: a request that comes now may join as soon as it is seen; the one that waits is not refused.
    """

    seen: int = -1
    door: int = -1
    is_open: bool = False
    _closed: bool = False
    _refusal: Refusal = ""

    # ------------------------------------------------------------ what the next iteration does

    def next(self, instant: int) -> Run | None:
        """The next iterations; None if there is nothing to do."""
        settings, before, idle = self.settings, self.put_off, not (self.answers or self.partial)
        if idle and not (self.waiting or self.loaded):
            return None
        seen = instant if idle else instant - 1
        if idle or self.iterations % settings.look == 0:
            self.door = self.seen if settings.ahead and not idle else seen
        self.seen = seen
        mixes = settings.prompts == "beside"
        wanted = self._makes_room(instant) if mixes and self.answers else 0
        parts: list[tuple[Sequence, int]] = []
        self._closed = False
        if self.partial or self.waiting or self.loaded:
            parts = self._parts(instant, wanted)
        elif self._refusal:
            self._refuse("")
        if not parts:
            if not mixes and self.answers:
                self._makes_room(instant)
            answers = self.answers
            if not answers:
                return self._nothing(instant, before)
            run = Run(self.iterations, instant, seen, parts, answers, self.context + answers, answers)
            run.most = self._most() if mixes or self.put_off == before else 1  # who made room may join again
            if self.slots is not None and self.slots.is_due:
                run.most = 1
            line = self.first_line(self.door) if self.loaded else self.waiting
            self.is_open = (
                answers + len(self.partial) < settings.sequences
                and (self._closed or not (line and line[0].at <= self.door))
                and (answers * settings.verified < settings.budget if mixes else settings.prompts == "before")
            )
            return run
        answers = self.answers if mixes else 0
        run = Run(self.iterations, instant, seen, parts, answers, self.context + answers if answers else 0, answers)
        if self.slots is not None:
            run.fetched, self.slots.coming = self.slots.coming, 0
        for sequence, tokens in parts:
            run.ended += sequence.read + tokens >= sequence.to_read
        if answers:
            self.pool.take(self.growth.wanted(1))
        return run

    def cut(self, run: Run, at: int) -> None:
        """Let a run end before the iteration that a request can join which comes at this instant."""
        if at <= self.door and self._closed:
            at = min((each.at for each in (*self.waiting, *self.loaded) if each.at > self.door), default=run.end)
        if run.count > 1 and (self.is_open or (self.loaded and self.loaded[-1].at >= at)):
            run.count = min(run.count, run.sees(at, self.settings.ahead, self.settings.look))

    def _nothing(self, instant: int, before: int) -> Run | None:
        """Another decision, if the last requests under way were put off; else no request has come yet."""
        if self.put_off > before:
            return self.next(instant)
        if self.loading:
            return None
        if (line := self.first_line(self.door)) and line[0].at <= instant:
            raise DoesNotFit(f"a request of {line[0].to_read:,} tokens does not fit into {self.pool.blocks:,} blocks")
        return None

    def _undecided(self) -> int:
        """Iterations until an answer ends, prompts that wait are looked at, or a ratio is."""
        most = self._ends[0][0] - self.count
        if self._closed and self._groups is not None:
            most = min(most, self._groups.turn(self.iterations))
        return min(most, self._hold - self.iterations) if self._hold > self.iterations else most

    def _most(self) -> int:
        """Iterations until a decision is due, or blocks run out."""
        most, free = self._ends[0][0] - self.count, self.pool.free
        if self._closed or self._hold > self.iterations:
            most = self._undecided()
        if (most // self.settings.block + 1) * self.answers > free and self.growth.wanted(most) > free:
            most = most_within(self.growth.wanted, free, most)
        return most

    def _makes_room(self, instant: int) -> int:
        """Blocks that the answers want now; the last that joined make room for them."""
        while (wanted := self.growth.wanted(1)) > self.pool.free:
            self._puts_off(self._last(), instant)
        return wanted

    def _parts(self, instant: int, wanted: int) -> list[tuple[Sequence, int]]:
        """Parts of prompts that are read: of those under way, then of those that join. Their blocks are taken."""
        settings, pool, need = self.settings, self.pool, self.growth.need
        left = settings.budget - (self.answers * settings.verified if settings.prompts == "beside" else 0)
        longest = left // settings.groups  # a prompt is read by one group of GPUs
        parts: list[tuple[Sequence, int]] = []
        for sequence in list(self.partial):
            tokens = min(left, longest, sequence.to_read - sequence.read)
            if tokens <= 0 or sequence not in self.partial:
                continue
            blocks = max(0, need(sequence.read + tokens) - sequence.blocks)
            while blocks > pool.free - wanted and self._last() is not sequence:
                self._puts_off(self._last(), instant)
            if blocks > pool.free - wanted:
                self._puts_off(sequence, instant)
                continue
            self.cache.grows(sequence, need(sequence.read + tokens))
            left -= tokens
            parts.append((sequence, tokens))
        if not (self.waiting or self.loaded) or left <= 0 or len(parts) < len(self.partial):
            self._refuse("")
            return parts
        if settings.prompts == "alone" and self.answers:
            self._refuse("seats")
            return parts
        groups = self._groups
        if groups is not None and not groups.opens(
            (*self.loaded, *self.waiting) if self.loaded else self.waiting, self.door, self.iterations
        ):
            self._closed = True
            self._refuse("")
            return parts
        self._joined(parts, left, longest, wanted, instant)
        return parts

    def _joined(self, parts: list[tuple[Sequence, int]], left: int, longest: int, wanted: int, instant: int) -> None:
        settings, promised = self.settings, 0
        need, cache, door = self.growth.need, self.cache, self.door
        while (line := self.first_line(door)) and (sequence := line[0]).at <= door:
            if self.answers + len(self.partial) >= settings.sequences:
                return self._refuse("seats")
            if left <= 0:
                return self._refuse("")
            if self._hold > self.iterations:
                return self._refuse("room")
            is_loaded = line is self.loaded
            if self.slots is not None and not is_loaded and not self.slots.has(sequence):
                self.slots.holds(line.popleft(), instant)
                self.log.holds(instant, sequence.number)
                continue
            reused = cache.found(sequence) if not is_loaded else Found(sequence.blocks, sequence.keys, 0)
            read = sequence.read if is_loaded else cache.spared(sequence, reused.blocks) if reused.blocks else 0
            rest = sequence.to_read - read
            tokens = min(left, longest, rest)
            if not settings.chunked and tokens < rest and not reused.below:
                if parts or (settings.prompts == "beside" and self.answers):
                    if self.lower is not None:  # a piece that leaves for a tier can be brought back: it is looked at each time
                        self._hold = self.iterations + 1
                    return self._refuse("")
                tokens = rest
            blocks = max(0, need(sequence.to_read) - reused.blocks)
            if not self._fits(sequence, blocks + reused.stale, rest, wanted, promised):
                if settings.admit == "ratio" and not self.is_idle:
                    self._hold = (self.iterations // AGAIN + 1) * AGAIN
                return self._refuse("room")
            line.popleft()
            if self.slots is not None and not is_loaded:
                self.slots.takes(sequence, instant)
            if reused.below:
                self._asks(sequence, reused, need(sequence.to_read), instant)
                continue
            promised += min(sequence.output - sequence.written, settings.promise[3]) + rest - tokens
            if not is_loaded:
                cache.begins(sequence, reused)
                sequence.read = sequence.cached = read
            cache.grows(sequence, need(read + tokens))
            left -= tokens
            self._promises.counts(sequence, 1)
            self._order.append((sequence, sequence.put_off))
            self.partial.append(sequence)
            parts.append((sequence, tokens))
            self.log.begins(instant, (sequence.number,), sequence.cached)
        return self._refuse("")

    def _refuse(self, why: Refusal) -> None:
        if why != self._refusal:
            self._refusal = why
            self.log.refuses(self.number, why)

    def _fits(self, sequence: Sequence, blocks: int, rest: int, wanted: int, promised: int) -> bool:
        """Whether a request joins, as far as the cache goes."""
        settings, free = self.settings, self.pool.free - wanted
        if self.is_idle:
            return blocks <= free
        if blocks > free - int(settings.spare * self.pool.blocks):
            return False
        return self._promises.allow(sequence, rest, free, self.pool.blocks, self.count, promised)

    # ------------------------------------------------------------ iterations that have ended

    def done(self, run: Run, end: int) -> list[Sequence]:
        """Note that the iterations of a run have ended; the requests that are answered, in order."""
        count, answers, parts, log, settings, growth = run.count, run.answers, run.parts, self.log, self.settings, self.growth
        pool, later, begin, first, until = self.pool, list[int](), run.begin, 0, None
        self.iterations += count
        if answers:
            wanted = growth.wanted(1)
            if count > 1:
                later = growth.later(count)
                wanted += sum(later)  # integers
            if not parts and wanted > run.taken:
                pool.take(wanted - run.taken)
            growth.grow(count)
            self.count += count
            self.context += answers * count
            if settings.admit == "ratio":
                self._promises.writes(answers * count)
        if count > 1:
            if (self.waiting and self.waiting[-1].at > self.door) or (self.loaded and self.loaded[-1].at > self.door):
                begin, first = self._came(run, end)
                until = partial(run.until, first, begin)
            self.seen = run.start(count - 1) - 1
            if settings.look > 1:
                self.door = run.looked(settings.ahead, settings.look, self.door)
        spent = run.spent(first, count, begin, end)
        if parts:
            prompts, all_tokens = spent[0], run.tokens
            for sequence, tokens in parts:
                log.reads(sequence.number, prompts * tokens // all_tokens)
        log.meters[self.number].iterated(begin, end, spent, until)
        log.iterated(
            self.number, run.begin, end, answers, answers + len(parts), pool.blocks - pool.free,
            count, run.first if count > 1 else end - begin, run.slope, later,
        )  # fmt: skip
        over: list[Sequence] = []
        for sequence, tokens in parts:
            self._reads(sequence, tokens, end, over)
        ends, instant = self._ends, self.count
        while ends and (ends[0][0] <= instant or ends[0][3].put_off != ends[0][2]):
            _, _, put_off, sequence = heapq.heappop(ends)
            if sequence.put_off == put_off:
                length = self._stops(sequence)
                self._promises.counts(sequence, -1)
                if self.settings.prefixes and (len(sequence.ids) - 1) * sequence.span >= sequence.prompt:
                    self.cache.shares(sequence, length)  # the next turn of a conversation has its answer, too
                self._gives(sequence)
                over.append(sequence)
        if over:
            self._hold = 0
            log.ends(end, [sequence.number for sequence in over], self.settings.out)
            if len(self._order) > 4 * (self.answers + len(self.partial)) + 64:
                self._order = [row for row in self._order if row[0].put_off == row[1] and not row[0].is_over]
        if self.slots is not None and (back := self.slots.returns()):
            for sequence in back:
                log.frees(end, sequence.number, ADAPTER)
            self.waiting.extendleft(reversed(back))
        return over

    def _came(self, run: Run, end: int) -> tuple[int, int]:
        """Note a run up to the iteration from which on a request waits for a place; the beginning and number of what is left.

        A request waits for the iteration under way, and then for those after it; for a place, once it is seen and there is none.
        """
        settings = self.settings
        if self.answers + len(self.partial) < settings.sequences and settings.prompts != "alone":
            return run.begin, 0
        first = min((at for at in self.after(self.door) if at < end), default=end)
        number = run.sees(first, settings.ahead, settings.look)
        if number >= run.count:
            return run.begin, 0
        begin = run.start(number)
        self.log.meters[self.number].iterated(
            run.begin, begin, run.spent(0, number, run.begin, begin), partial(run.until, 0, run.begin)
        )
        self._refuse("seats")
        return begin, number

    def catches_up(self, run: Run, instant: int) -> None:
        """Take the blocks of those iterations of a run that have ended, so that its cache is as it is at that instant."""
        ended = min(run.count, run.after(instant)) - 1
        if ended > 0 and not run.parts:
            wanted = self.growth.wanted(ended) - run.taken
            self.pool.take(wanted)
            run.taken += wanted

    def _reads(self, sequence: Sequence, tokens: int, end: int, over: list[Sequence]) -> None:
        """A part of a prompt is read."""
        sequence.read += tokens
        if sequence.ids and self.settings.prefixes:
            self.cache.shares(sequence)
        if sequence.read < sequence.to_read:
            return
        self.partial.remove(sequence)
        sequence.written += bool(sequence.output)
        self._promises.writes(1)
        self.log.writes(end, (sequence.number,), self.settings.out)
        if sequence.written >= sequence.output:
            self._promises.counts(sequence, -1)
            sequence.joined = self.count
            self._gives(sequence)
            over.append(sequence)
            return
        self._starts(sequence)
