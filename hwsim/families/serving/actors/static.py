"""Replicas with static batching, which start a batch when the last one has ended; also for networks that need one pass.

Prompts are padded to the longest prompt of the batch. Every request keeps its batch slot until the longest output is complete,
even if its own tokens are output earlier. Each slot reserves blocks for the longest prompt and the longest output.
"""

from __future__ import annotations

from dataclasses import field

from hwsim.families.serving.actors.replica import Replica
from hwsim.families.serving.actors.run import IterationRun, Sequence
from hwsim.families.serving.workload.settings import ANY
from hwsim.records import dataclass


@dataclass(slots=True)
class StaticReplica(Replica):
    """A replica with static batching; methods as in `copy.Copy`.

    Args:
        under_way: requests of the batch that are not complete.
        places: number of slots of the batch; 0: idle.
        longest: tokens to which prompts are padded.
        left: iterations until the longest output is complete.
        steps: iterations of the batch so far.
        used: reserved KV-cache blocks.
        is_full: a request waits for a slot.
    """

    under_way: list[Sequence] = field(default_factory=list)
    places: int = 0
    longest: int = 0
    left: int = 0
    steps: int = 0
    used: int = 0
    is_full: bool = False

    @property
    def requests(self) -> int:
        """Number of requests, queued or running."""
        return len(self.waiting) + len(self.under_way)

    @property
    def room(self) -> float:
        """Share of KV-cache blocks that are free."""
        return 1.0 - self.used / (ANY if self.blocks is None else self.blocks)

    @property
    def is_idle(self) -> bool:
        """Whether no batch is running."""
        return not self.places

    def cut(self, run: IterationRun, instant: int) -> None:
        """Shorten a run to end before the iteration in which a request first waits for a slot; none joins a running batch."""
        if not self.is_full:
            run.count = min(run.count, max(1, run.after(instant - 1)))

    def catches_up(self, run: IterationRun, instant: int) -> None:
        """Do nothing: blocks are reserved at the start of the batch."""

    def next(self, instant: int) -> IterationRun | None:
        """Schedule the next iterations of the batch, or the prefill of the next batch."""
        self.changed.add(self.number)
        if not self.places:
            return self._first(instant)
        self.is_full = bool(self.waiting) and self.waiting[0].at <= instant
        self.log.refuses(self.number, "batch slots" if self.is_full else "")
        run = IterationRun(
            self.iterations, instant, instant, [], self.places, self.places * (self.longest + self.steps), self.places
        )
        outputs = [sequence.output - sequence.written for sequence in self.under_way]
        run.most = min(outputs, default=self.left)
        return run

    def _first(self, instant: int) -> IterationRun | None:
        longest = most = 0
        blocks_there = ANY if self.blocks is None else self.blocks
        while self.waiting and len(self.under_way) < self.settings.sequences:
            first = self.waiting[0]
            prompt, output = max(longest, first.prompt), max(most, first.output)
            if self.growth.need(prompt + output) * (len(self.under_way) + 1) > blocks_there or first.at > instant:
                break
            longest, most = prompt, output
            self.under_way.append(self.waiting.popleft())
        if not self.under_way:
            return None
        self.log.refuses(self.number, "")
        self.places, self.longest, self.left, self.steps = len(self.under_way), longest, most, 0
        self.used = self.places * self.growth.need(longest + most)
        self.log.begins(instant, [sequence.number for sequence in self.under_way])
        parts = [(sequence, longest) for sequence in self.under_way]
        return IterationRun(self.iterations, instant, instant, parts, 0, 0, self.places)

    def done(self, run: IterationRun, end: int) -> list[Sequence]:
        """Record that the iterations of a run have ended; return the completed requests, in order."""
        self.changed.add(self.number)
        self.iterations += run.count
        self.steps += run.count
        self.left -= run.count
        spent = run.spent(0, run.count, run.begin, end)
        for sequence, tokens in run.parts:
            self.log.reads(sequence.number, spent[0] * tokens // run.tokens)
        self.log.meters[self.number].iterated(run.begin, end, spent)
        self.log.iterated(
            self.number, run.begin, end, 0 if run.parts else len(self.under_way), len(self.under_way),
            self.used, run.count, run.first if run.count > 1 else end - run.begin, run.slope,
        )  # fmt: skip
        if run.parts:
            self.log.writes(end, [sequence.number for sequence in self.under_way if sequence.output], self.settings.out)
        for sequence in self.under_way:
            sequence.written += run.count if sequence.output else 0
        over = [sequence for sequence in self.under_way if sequence.written >= sequence.output]
        self.under_way = [sequence for sequence in self.under_way if sequence.written < sequence.output]
        if self.left <= 0:
            self.places = self.used = 0
        if over:
            self.log.ends(end, [sequence.number for sequence in over], self.settings.out)
        return over
