"""The scheduler of one replica with continuous batching: queue, chunked prefill, decode, preemption and KV-cache blocks.

    run = copy.next(now)                schedule the next iteration, and the number of equal iterations after it
    copy.done(run, end)                 record that these iterations have ended

The scheduler has no clock and is not random. `next` makes the decisions of the server between two iterations; the caller decides
how long an iteration takes. Iterations without prefill are equal until a request completes, blocks run out, or a visible request
may join. Such a run can be one decision (see `alone`) or one decision per iteration (see `clocked`), with the same result.

A decision sees the requests queued before its instant. If the server schedules ahead, a request joins one iteration later. Time
is counted in whole femtoseconds, so the order of an arrival and the end of an iteration at the same instant does not matter. An
idle replica also sees requests queued at that very instant.

If a request in decode needs a block and none is free, the running request that joined last is preempted: it loses its blocks and
returns to the head of the queue. It later recomputes its prompt and output tokens, except those still in the prefix cache.

**Source**: vllm 0.19.0, v1/core/sched/scheduler.py; sglang 0.5.9, srt/managers/schedule_policy.py and schedule_batch.py;
TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/scheduler.py; Yu et al., "Orca", OSDI 2022; Agrawal et al., OSDI 2024 (chunks).
"""

from __future__ import annotations

import heapq
from functools import partial
from typing import Final

from hwsim.families.serving.actors.batch import ReplicaBatch
from hwsim.families.serving.actors.blocks import max_iterations_within
from hwsim.families.serving.actors.prefix_cache import PrefixHits
from hwsim.families.serving.actors.replica import DoesNotFit
from hwsim.families.serving.actors.run import IterationRun, Sequence
from hwsim.families.serving.results.accounting import ADAPTER_WAIT, Refusal
from hwsim.records import dataclass

AGAIN: Final = 16  # iterations between attempts of a request refused by `admit: ratio`


@dataclass(slots=True)
class ContinuousReplica(ReplicaBatch):
    """A replica with continuous batching.

    Args:
        seen: latest queueing time (fs) that the last decision could see.
        door: latest queueing time (fs) of a request that may join the running iteration.
        is_open: a request that arrives now may join at the next decision, because no earlier one was refused.
    """

    seen: int = -1
    door: int = -1
    is_open: bool = False
    _closed: bool = False
    _refusal: Refusal = ""

    # ------------------------------------------------------------ scheduling of the next iteration

    def next(self, instant: int) -> IterationRun | None:
        """Schedule the next iterations; None if no request can run."""
        self.changed.add(self.number)
        settings, before, idle = self.settings, self.put_off, not (self.answers or self.partial)
        if idle and not (self.waiting or self.loaded):
            return None
        seen = instant if idle else instant - 1
        if idle or self.iterations % settings.look == 0:
            self.door = self.seen if settings.ahead and not idle else seen
        self.seen = seen
        mixes = settings.prompts == "beside"
        wanted = self._preempt_for_decode(instant) if mixes and self.answers else 0
        parts: list[tuple[Sequence, int]] = []
        self._closed = False
        if self.partial or self.waiting or self.loaded:
            parts = self._prefill_chunks(instant, wanted)
        elif self._refusal:
            self._refuse("")
        if not parts:
            if not mixes and self.answers:
                self._preempt_for_decode(instant)
            answers = self.answers
            if not answers:
                return self._nothing(instant, before)
            run = IterationRun(self.iterations, instant, seen, parts, answers, self.context + answers, answers)
            run.most = self._most() if mixes or self.put_off == before else 1  # a preempted request may join again
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
        run = IterationRun(self.iterations, instant, seen, parts, answers, self.context + answers if answers else 0, answers)
        if self.slots is not None:
            run.fetched, self.slots.coming = self.slots.coming, 0
        for sequence, tokens in parts:
            run.ended += sequence.read + tokens >= sequence.to_read
        if answers:
            self.pool.take(self.growth.wanted(1))
        return run

    def cut(self, run: IterationRun, instant: int) -> None:
        """Shorten a run to end before the iteration that a request queued at this instant can join."""
        if instant <= self.door and self._closed:
            instant = min((sequence.at for sequence in (*self.waiting, *self.loaded) if sequence.at > self.door), default=run.end)
        if run.count > 1 and (self.is_open or (self.loaded and self.loaded[-1].at >= instant)):
            run.count = min(run.count, run.sees(instant, self.settings.ahead, self.settings.look))

    def _nothing(self, instant: int, before: int) -> IterationRun | None:
        """Schedule again if the last running requests were preempted; otherwise no request can run yet."""
        if self.put_off > before:
            return self.next(instant)
        if self.loading:
            return None
        if (line := self.first_line(self.door)) and line[0].at <= instant:
            raise DoesNotFit(f"a request of {line[0].to_read:,} tokens does not fit into {self.pool.blocks:,} blocks")
        return None

    def _undecided(self) -> int:
        """Return the number of iterations until a request completes, or until a request that was not admitted is tried again."""
        most = self._ends[0][0] - self.count
        if self._closed and self._groups is not None:
            most = min(most, self._groups.turn(self.iterations))
        return min(most, self._hold - self.iterations) if self._hold > self.iterations else most

    def _most(self) -> int:
        """Return the iterations until a decision is due or blocks run out."""
        most, free = self._ends[0][0] - self.count, self.pool.free
        if self._closed or self._hold > self.iterations:
            most = self._undecided()
        if (most // self.settings.block + 1) * self.answers > free and self.growth.wanted(most) > free:
            most = max_iterations_within(self.growth.wanted, free, most)
        return most

    def _preempt_for_decode(self, instant: int) -> int:
        """Return the new blocks that decode needs now, after preemption of the last requests if blocks run out."""
        while (wanted := self.growth.wanted(1)) > self.pool.free:
            self._puts_off(self._last(), instant)
        return wanted

    def _prefill_chunks(self, instant: int, wanted: int) -> list[tuple[Sequence, int]]:
        """Return the prefill chunks of the iteration, of running requests and then of new ones, and allocate their blocks."""
        settings, pool, need = self.settings, self.pool, self.growth.need
        left = settings.budget - (self.answers * settings.verified if settings.prompts == "beside" else 0)
        longest = left // settings.groups  # one group of GPUs computes the prefill of a prompt
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
            self._refuse("batch slots")
            return parts
        groups = self._groups
        if groups is not None and not groups.opens(
            (*self.loaded, *self.waiting) if self.loaded else self.waiting, self.door, self.iterations
        ):
            self._closed = True
            self._refuse("")
            return parts
        self._admit(parts, left, longest, wanted, instant)
        return parts

    def _admit(self, parts: list[tuple[Sequence, int]], left: int, longest: int, wanted: int, instant: int) -> None:
        settings, promised = self.settings, 0
        need, cache, door = self.growth.need, self.cache, self.door
        while (line := self.first_line(door)) and (sequence := line[0]).at <= door:
            if self.answers + len(self.partial) >= settings.sequences:
                return self._refuse("batch slots")
            if left <= 0:
                return self._refuse("")
            if self._hold > self.iterations:
                return self._refuse("KV cache")
            is_loaded = line is self.loaded
            if self.slots is not None and not is_loaded and not self.slots.has(sequence):
                self.slots.holds(line.popleft(), instant)
                self.log.holds(instant, sequence.number)
                continue
            reused = cache.found(sequence) if not is_loaded else PrefixHits(sequence.blocks, sequence.keys, 0)
            read = sequence.read if is_loaded else cache.spared(sequence, reused.blocks) if reused.blocks else 0
            rest = sequence.to_read - read
            tokens = min(left, longest, rest)
            if not settings.chunked and tokens < rest and not reused.below:
                if parts or (settings.prompts == "beside" and self.answers):
                    if self.lower is not None:  # a block evicted to a tier can be loaded again, so retry at once
                        self._hold = self.iterations + 1
                    return self._refuse("")
                tokens = rest
            blocks = max(0, need(sequence.to_read) - reused.blocks)
            if not self._fits(sequence, blocks + reused.stale, rest, wanted, promised):
                if settings.admit == "ratio" and not self.is_idle:
                    self._hold = (self.iterations // AGAIN + 1) * AGAIN
                return self._refuse("KV cache")
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
        """Whether the KV cache has room for one more request."""
        settings, free = self.settings, self.pool.free - wanted
        if self.is_idle:
            return blocks <= free
        if blocks > free - int(settings.spare * self.pool.blocks):
            return False
        return self._promises.allow(sequence, rest, free, self.pool.blocks, self.count, promised)

    # ------------------------------------------------------------ completed iterations

    def done(self, run: IterationRun, end: int) -> list[Sequence]:
        """Record that the iterations of a run have ended; return the completed requests, in order."""
        self.changed.add(self.number)
        count, answers, parts, log, settings, growth = run.count, run.answers, run.parts, self.log, self.settings, self.growth
        pool, begin, first, until = self.pool, run.begin, 0, None
        later: list[int] = []
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
                begin, first = self._record_slot_wait(run, end)
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
                    self.cache.shares(sequence, length)  # the prompt of the next turn contains this answer
                self._gives(sequence)
                over.append(sequence)
        if over:
            self._hold = 0
            log.ends(end, [sequence.number for sequence in over], self.settings.out)
            if len(self._order) > 4 * (self.answers + len(self.partial)) + 64:
                self._order = [row for row in self._order if row[0].put_off == row[1] and not row[0].is_over]
        if self.slots is not None and (back := self.slots.returns()):
            for sequence in back:
                log.frees(end, sequence.number, ADAPTER_WAIT)
            self.waiting.extendleft(reversed(back))
        return over

    def _record_slot_wait(self, run: IterationRun, end: int) -> tuple[int, int]:
        """Record a run up to the iteration in which a request first waits for a batch slot; return (start, index) of the rest.

        A new request first waits for the running iteration, and then, once it is seen and all slots are taken, for a batch slot.
        """
        settings = self.settings
        if self.answers + len(self.partial) < settings.sequences and settings.prompts != "alone":
            return run.begin, 0
        first = min((instant for instant in self.after(self.door) if instant < end), default=end)
        number = run.sees(first, settings.ahead, settings.look)
        if number >= run.count:
            return run.begin, 0
        begin = run.start(number)
        self.log.meters[self.number].iterated(
            run.begin, begin, run.spent(0, number, run.begin, begin), partial(run.until, 0, run.begin)
        )
        self._refuse("batch slots")
        return begin, number

    def catches_up(self, run: IterationRun, instant: int) -> None:
        """Allocate the blocks of the iterations of a run that have ended, so that the cache shows its state at this instant."""
        ended = min(run.count, run.after(instant)) - 1
        if ended > 0 and not run.parts:
            wanted = self.growth.wanted(ended) - run.taken
            self.pool.take(wanted)
            run.taken += wanted
            self.changed.add(self.number)

    def _reads(self, sequence: Sequence, tokens: int, end: int, over: list[Sequence]) -> None:
        """Record a prefill chunk."""
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
