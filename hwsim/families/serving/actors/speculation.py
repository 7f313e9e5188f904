"""Replicas with speculative decoding: sequences grow by several tokens per iteration.

The number of iterations of a request is drawn when its decode starts (see `hwsim.families.serving.workload.speculation`). Until
its end, every sequence grows by the mean number of tokens, a rational number, so that a run of equal iterations takes exactly as
long as its iterations one by one.

    iteration = the model over 1 + k tokens of each sequence, and k passes of the draft over one token of each

The draft also processes every prompt once.

**Range**: collectives of the draft are not modelled (with an extra layer, those of k layers of the model), nor are the blocks of
rejected tokens, at most one per sequence. Requests differ in their number of iterations; in between they grow at the mean rate.

**Source**: Leviathan et al., "Fast inference from transformers via speculative decoding", ICML 2023; Li et al., "EAGLE",
ICML 2024; vllm 0.19.0, v1/spec_decode/eagle.py (first pass over all tokens, then one of each sequence).
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise

from hwsim import ticks
from hwsim.families.serving.actors.blocks import Growth, growth, max_iterations_within
from hwsim.families.serving.actors.continuous import ContinuousReplica
from hwsim.families.serving.actors.iteration_times import Pace, iterations_of
from hwsim.families.serving.actors.run import IterationRun, Sequence
from hwsim.families.serving.workload.speculation import NOTHING, Speculation
from hwsim.models.framework import Framework
from hwsim.records import dataclass


@dataclass(slots=True)
class FractionalGrowth:
    """The block needs of sequences that grow by a fractional number of tokens, each up to its end; methods as in `blocks.Even`.

    Args:
        base: block counter of the model.
        by: tokens per iteration: (numerator, denominator).
        answers: (tokens when it joined, maximum growth, iteration when it joined) by request.
        grown: iterations so far.
    """

    base: Growth
    by: tuple[int, int]
    answers: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    grown: int = 0

    def need(self, tokens: int) -> int:
        """Return the blocks of a sequence."""
        return self.base.need(tokens)

    def add(self, tokens: int) -> None:
        """Do nothing: `joins` counts the sequence."""

    def remove(self, tokens: int) -> None:
        """Do nothing: `leaves` counts the sequence."""

    def joins(self, request: int, tokens: int, most: int) -> None:
        """Add a sequence that starts decode, with its tokens and its maximum growth."""
        self.answers[request] = tokens, most, self.grown

    def leaves(self, request: int) -> int:
        """Remove a sequence; return the blocks that it gained."""
        tokens, most, since = self.answers.pop(request)
        return self.need(self._at(tokens, most, self.grown - since)) - self.need(tokens)

    def _at(self, tokens: int, most: int, steps: int) -> int:
        return tokens + min(most, steps * self.by[0] // self.by[1])

    def wanted(self, iterations: int) -> int:
        """Return the new blocks that all sequences need in the next iterations."""
        grown, need, at = self.grown, self.need, self._at
        return sum(  # integers
            need(at(tokens, most, grown + iterations - since)) - need(at(tokens, most, grown - since))
            for tokens, most, since in self.answers.values()
        )

    def later(self, iterations: int) -> list[int]:
        """Return the new blocks of all sequences in each iteration after the first."""
        wanted = [self.wanted(count) for count in range(1, iterations + 1)]
        return [after - before for before, after in pairwise(wanted)]

    def grow(self, iterations: int) -> None:
        """Advance all sequences by some iterations."""
        self.grown += iterations


@dataclass
class SpeculativeReplica(ContinuousReplica):
    """A replica with speculative decoding.

    Args:
        guesses: draft tokens and their acceptance.
        part: tokens of running sequences beyond `context`, as a multiple of 1 / denominator of the mean.
    """

    guesses: Speculation = NOTHING
    part: int = 0
    _leaps: FractionalGrowth = field(init=False)
    _until: dict[int, int] = field(default_factory=dict)  # decode iteration at which a request completes

    def __post_init__(self) -> None:
        super().__post_init__()
        mean = self.guesses.mean
        self._leaps = FractionalGrowth(growth(self.settings.block, self.held), (mean.numerator, mean.denominator))
        self.growth = self._leaps

    def next(self, instant: int) -> IterationRun | None:
        """Schedule the next iterations; None if no request can run."""
        run = super().next(instant)
        if run is not None:
            run.part = self.part
        return run

    def done(self, run: IterationRun, end: int) -> list[Sequence]:
        """Record that the iterations of a run have ended; return the completed requests, in order."""
        numerator, denominator = self._leaps.by
        self._moves(run.answers * run.count * (numerator - denominator))
        return super().done(run, end)

    def _moves(self, parts: int) -> None:
        """Add a multiple of 1 / denominator tokens to the context."""
        more, self.part = divmod(self.part + parts, self._leaps.by[1])
        self.context += more

    def _most(self) -> int:
        most, free = self._undecided(), self.pool.free
        return most if self.growth.wanted(most) <= free else max_iterations_within(self.growth.wanted, free, most)

    def _starts(self, sequence: Sequence) -> None:
        self._leaps.joins(sequence.number, sequence.read, sequence.output - sequence.written)
        super()._starts(sequence)

    def _steps(self, sequence: Sequence) -> int:
        steps = self.guesses.steps(sequence.number, sequence.put_off, sequence.output - sequence.written)
        self._until[sequence.number] = self.count + steps
        return steps

    def _stops(self, sequence: Sequence) -> int:
        if self._groups is not None:
            self._groups.writes(sequence, -1)
        numerator, denominator = self._leaps.by
        steps, left = self.count - sequence.joined, sequence.output - sequence.written
        is_over = self.count >= self._until.pop(sequence.number)
        written = left if is_over else min(left - 1, steps * numerator // denominator)
        sequence.written += written
        sequence.own += self._leaps.leaves(sequence.number)
        self.answers -= 1
        self.context -= sequence.read
        self._moves(-steps * numerator)
        self._promises.writes(written - steps)
        return sequence.read + written


class SpeculativePace(Pace):
    """Times of iterations that verify draft tokens and make the next ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        plan, guesses = self.plan, self.plan.speculation
        assert isinstance(plan.software, Framework)
        assert guesses is not None
        graphs = () if plan.settings.exact else plan.settings.graphs
        if guesses.draft is not None:
            self._draft = iterations_of(plan, self.tables, guesses.draft, plan.software, graphs, tokens=1)
        self._guessed, self.growth = guesses.tokens, (guesses.mean.numerator, guesses.mean.denominator)

    def _mixed(self, run: IterationRun, rows: int, total: int) -> int:
        mixed, draft, read = self.eager, self._draft, run.read
        ended = run.ended + run.answers * (mixed.tokens - 1)
        seconds = mixed.around(rows, ended, total) + mixed.read(read).seconds
        if draft is not None:
            seconds += draft.around(draft.rows_of(read, run.answers), run.ended, draft.total_of(read, run.answers))
            seconds += draft.read(read).seconds
            if run.ended and self._guessed > 1:
                later = draft.around(draft.rows_of((), run.ended), run.ended, draft.total_of((), run.ended))
                seconds += (self._guessed - 1) * later
        return ticks.femtoseconds(seconds * self.slower)
