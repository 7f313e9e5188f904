"""A copy that takes a batch when the last one has ended: static batching, and networks that need one pass.

Prompts are padded to the longest, and each keeps its place until the longest answer is written, though its own tokens are out
before. Blocks are held for the longest prompt and the longest answer, in every place.
"""

from __future__ import annotations

from dataclasses import field

from hwsim.families.serving.actors.replica import Replica
from hwsim.families.serving.actors.run import Run, Sequence
from hwsim.families.serving.workload.settings import ANY
from hwsim.records import dataclass


@dataclass(slots=True)
class Static(Replica):
    """The state of a copy, as of `copy.Copy`.

    Args:
        under_way: sequences of the batch whose answers are not yet written; places: that it has; longest: tokens it is padded to.
        left: iterations until its longest answer is written. is_full: a request waits for a place.
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
        """Requests that wait or are worked on."""
        return len(self.waiting) + len(self.under_way)

    @property
    def room(self) -> float:
        """Part of the blocks that is free."""
        return 1.0 - self.used / (ANY if self.blocks is None else self.blocks)

    def cached(self, sequence: Sequence) -> int:
        """Tokens of its prompt that need not be read here."""
        del sequence
        return 0

    @property
    def is_idle(self) -> bool:
        """Nothing is worked on."""
        return not self.places

    def cut(self, run: Run, at: int) -> None:
        """Let a run end before the iteration in which a request first waits for a place: nobody joins a batch under way."""
        if not self.is_full:
            run.count = min(run.count, max(1, run.after(at - 1)))

    def catches_up(self, run: Run, instant: int) -> None:
        """Blocks are held from the beginning."""

    def next(self, instant: int) -> Run | None:
        """The next iterations of the batch, or the first of the next batch."""
        if not self.places:
            return self._first(instant)
        self.is_full = bool(self.waiting) and self.waiting[0].at <= instant
        self.log.refuses(self.number, "seats" if self.is_full else "")
        run = Run(self.iterations, instant, instant, [], self.places, self.places * (self.longest + self.steps), self.places)
        outputs = [each.output - each.written for each in self.under_way]
        run.most = min(outputs, default=self.left)
        return run

    def _first(self, instant: int) -> Run | None:
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
        self.log.begins(instant, [each.number for each in self.under_way])
        parts = [(each, longest) for each in self.under_way]
        return Run(self.iterations, instant, instant, parts, 0, 0, self.places)

    def done(self, run: Run, end: int) -> list[Sequence]:
        """Note that the iterations of a run have ended; the requests that are answered, in order."""
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
            self.log.writes(end, [each.number for each in self.under_way if each.output], self.settings.out)
        for each in self.under_way:
            each.written += run.count if each.output else 0
        over = [each for each in self.under_way if each.written >= each.output]
        self.under_way = [each for each in self.under_way if each.written < each.output]
        if self.left <= 0:
            self.places = self.used = 0
        if over:
            self.log.ends(end, [each.number for each in over], self.settings.out)
        return over
