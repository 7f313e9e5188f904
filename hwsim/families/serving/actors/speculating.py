"""A copy whose answers grow by several tokens an iteration: guesses that are verified.

The number of iterations of an answer is drawn when it begins (see `hwsim.families.serving.workload.speculating`). On the way
it is as long as the mean of all has it, a fraction of whole numbers, so that runs of equal iterations take as long as those
iterations one by one.

    iteration = the model over 1 + k tokens of each answer, and the draft k times over one of each

A prompt passes the draft as well, once. Collectives of the draft, and the blocks that rejected guesses hold for an iteration,
are left out: with a layer that guesses, k of the model's layers, and at most one block of a sequence. Speed and length on the
way are the mean's; requests differ in how many iterations they take.

**Source**: Leviathan et al., "Fast inference from transformers via speculative decoding", ICML 2023; Li et al., "EAGLE",
ICML 2024; vllm 0.19.0, v1/spec_decode/eagle.py (first pass over all tokens, then one of each sequence).
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise

from hwsim import ticks
from hwsim.families.serving.actors.blocks import Growth, growth, most_within
from hwsim.families.serving.actors.copy import Copy
from hwsim.families.serving.actors.pace import Line, Pace, iterations_of
from hwsim.families.serving.actors.run import Run, Sequence
from hwsim.families.serving.workload.speculating import NOTHING, Speculation
from hwsim.models.framework import Framework
from hwsim.models.iteration import Iterations
from hwsim.models.kernel_tables import COARSE
from hwsim.records import dataclass


@dataclass(slots=True)
class Leaps:
    """Blocks of answers that grow by a fraction of tokens an iteration, each up to its end; counters as of `blocks.Even`."""

    base: Growth
    by: tuple[int, int]  # tokens of an iteration: numerator, denominator
    answers: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # request: tokens when it joined, most more, when
    grown: int = 0

    def need(self, tokens: int) -> int:
        """Blocks of a sequence."""
        return self.base.need(tokens)

    def add(self, tokens: int) -> None:
        """Noted by `joins`."""

    def remove(self, tokens: int) -> None:
        """Noted by `leaves`."""

    def joins(self, request: int, tokens: int, most: int) -> None:
        """A sequence begins to answer."""
        self.answers[request] = tokens, most, self.grown

    def leaves(self, request: int) -> int:
        """A sequence stops; blocks that it has more than when it began."""
        tokens, most, since = self.answers.pop(request)
        return self.need(self._at(tokens, most, self.grown - since)) - self.need(tokens)

    def _at(self, tokens: int, most: int, steps: int) -> int:
        return tokens + min(most, steps * self.by[0] // self.by[1])

    def wanted(self, iterations: int) -> int:
        """Blocks that all want for the next iterations."""
        grown, need, at = self.grown, self.need, self._at
        return sum(  # integers
            need(at(tokens, most, grown + iterations - since)) - need(at(tokens, most, grown - since))
            for tokens, most, since in self.answers.values()
        )

    def later(self, iterations: int) -> list[int]:
        """Blocks that all want in each iteration after the first."""
        wanted = [self.wanted(count) for count in range(1, iterations + 1)]
        return [after - before for before, after in pairwise(wanted)]

    def grow(self, iterations: int) -> None:
        """All have gone on."""
        self.grown += iterations


@dataclass
class Speculating(Copy):
    """A copy that verifies guesses.

    Args:
        part: tokens of the answers under way beyond `context`, in parts of the denominator of the mean.
    """

    guesses: Speculation = NOTHING
    part: int = 0
    _leaps: Leaps = field(init=False)
    _until: dict[int, int] = field(default_factory=dict)  # by request, the count of steps that ends its answer

    def __post_init__(self) -> None:
        super().__post_init__()
        mean = self.guesses.mean
        self._leaps = Leaps(growth(self.settings.block, self.held), (mean.numerator, mean.denominator))
        self.growth = self._leaps

    def next(self, instant: int) -> Run | None:
        """The next iterations; None if there is nothing to do."""
        run = super().next(instant)
        if run is not None:
            run.part = self.part
        return run

    def done(self, run: Run, end: int) -> list[Sequence]:
        """Note that the iterations of a run have ended; the requests that are answered, in order."""
        numerator, denominator = self._leaps.by
        self._moves(run.answers * run.count * (numerator - denominator))
        return super().done(run, end)

    def _moves(self, parts: int) -> None:
        """The answers are longer by these parts of a token."""
        more, self.part = divmod(self.part + parts, self._leaps.by[1])
        self.context += more

    def _most(self) -> int:
        most, free = self._undecided(), self.pool.free
        return most if self.growth.wanted(most) <= free else most_within(self.growth.wanted, free, most)

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


@dataclass
class Guessed(Pace):
    """Times of iterations that verify guesses, and make the next ones."""

    _draft: Iterations | None = field(init=False)
    _parts: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        plan, guesses = self.plan, self._guesses
        assert isinstance(plan.software, Framework)
        graphs = () if plan.settings.exact else plan.settings.graphs
        self._draft = (
            None if guesses.draft is None else iterations_of(plan, self.tables, guesses.draft, plan.software, graphs, tokens=1)
        )
        self._parts = guesses.mean.numerator, guesses.mean.denominator

    @property
    def _guesses(self) -> Speculation:
        found = self.plan.speculation
        assert found is not None
        return found

    def set(self, run: Run) -> None:
        """Give a run the time of its first iteration, how it grows, and where that changes."""
        answers, (numerator, denominator) = run.answers, self._parts
        line, beyond = None, 0
        if answers:
            floor = run.context // answers
            step = 1 << max(0, floor.bit_length() - 1 - COARSE)
            low = floor // step * step
            line = self._lines.get((answers, low)) or self.line(answers, low, step)
            beyond = (run.context - answers * low) * denominator + run.part
        if run.parts:
            self._of_parts(run, 0 if line is None else line.slope * beyond // answers, line)
        elif line is not None:
            run.kernels, run.slope, run.host = line.start + line.slope * beyond // answers, line.slope * numerator, line.host
            run.most = min(run.most, -((beyond - answers * line.step * denominator) // (answers * numerator)))
            run.network, run.padded = self.sent.get(line.rows) or self.sends(line.rows, mixed=False)
        run.count = run.most
        run.first = run.host + run.kernels + run.network

    def line(self, answers: int, low: int, step: int) -> Line:
        """The line from a knot on; its slope is of a part of a token."""
        model, draft, slower = self._model, self._draft, self.slower
        assert model is not None
        before, after = (model.answers(answers, at).seconds for at in (low, low + step))
        rows, many = model.rows_of((), answers), self._guesses.tokens
        around = model.around(rows, answers * model.tokens, model.total_of((), answers))
        if draft is not None:
            early, late = (draft.answers(answers, at).seconds for at in (low, low + step))
            before, after = before + many * early, after + many * late
            around += many * draft.around(draft.rows_of((), answers), answers, draft.total_of((), answers))
        attention, until, start = (ticks.femtoseconds(each * slower) for each in (before, after, around))
        slope = max(0, round((until - attention) / (step * self._parts[1])))
        line = Line(start + attention, attention, slope, rows, low, step, self._host_of(answers, rows))
        self._lines[answers, low] = line
        return line

    def _of_parts(self, run: Run, more: int, line: Line | None) -> None:
        """Time of an iteration with prompts."""
        mixed, draft, read, slower = self._eager, self._draft, run.read, self.slower
        assert mixed is not None
        rows, total = mixed.rows_of(read, run.answers), mixed.total_of(read, run.answers)
        ended = run.ended + run.answers * (mixed.tokens - 1)
        seconds = mixed.around(rows, ended, total) + mixed.read(read).seconds
        if draft is not None:
            seconds += draft.around(draft.rows_of(read, run.answers), run.ended, draft.total_of(read, run.answers))
            seconds += draft.read(read).seconds
            if run.ended and self._guesses.tokens > 1:
                later = draft.around(draft.rows_of((), run.ended), run.ended, draft.total_of((), run.ended))
                seconds += (self._guesses.tokens - 1) * later
        run.kernels, run.slope, run.most = ticks.femtoseconds(seconds * slower), 0, 1
        if line is not None:
            run.kernels += line.attention + more
            run.answered = line.start + more
        passing = mixed.passing(rows, total)
        run.network, run.padded = self.sent.get(-passing) or self.sends(passing, mixed=True)
        run.host = self._host(run) + self._late(run)
