"""Times of the iterations of a replica, in whole femtoseconds.

    iteration = host + kernels + collectives, one after another

The kernel time of a decode iteration is piecewise linear in the mean context, between knots (see `hwsim.models.iteration`). Both
ends of a piece and its slope are rounded to a femtosecond. So the times of successive iterations with the same sequences are an
arithmetic series, and the sum of a run has the same time as its iterations one by one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from copy import copy
from dataclasses import field
from typing import Final, NamedTuple

from hwsim import ticks
from hwsim.families.serving.actors.run import IterationRun
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.models.architectures import Transformer
from hwsim.models.architectures.unit_layers import layers_of
from hwsim.models.framework import Framework, Software
from hwsim.models.inference import batch_pass
from hwsim.models.iteration import Iterations
from hwsim.models.kernel_tables import COARSE, KernelSeconds, knot
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import kernels
from hwsim.records import dataclass

MOST_TABLES: Final = 8  # maximum tables kept with a machine


class Tables(list[tuple[tuple[object, ...], Iterations]]):
    """A cache of iteration times on the GPUs of a machine, by model, GPU, framework and parallel plan."""


def _nothing(rows: int) -> int:
    return 0 * rows


class DecodeLine(NamedTuple):
    """A linear piece of the time of decode iterations over their mean context, between two knots; times in fs.

    Args:
        start: kernel time at the first knot.
        attention: attention part of it.
        slope: growth per token of mean context (with speculation, per fraction of a token).
        rows: tokens of an iteration.
        low: mean context at the first knot (tokens).
        step: distance to the next knot (tokens).
        host: host time of an iteration.
    """

    start: int
    attention: int
    slope: int
    rows: int
    low: int
    step: int
    host: int


@dataclass(slots=True)
class Pace:
    """The times of iterations, shared by the replicas of a service.

    Args:
        plan: plan of the service.
        tables: kernel times, shared with other services and runs.
        slower: factor on kernel times, for the ends of an interval.
        exchanged: function of the number of tokens that returns the time of all collectives of an iteration (fs).
        growth: mean output tokens of a sequence in an iteration: (numerator, denominator).
        sent: (time, tokens) of collectives, by tokens of the iteration; negative for iterations with prefill.
    """

    plan: ServicePlan
    tables: Tables
    slower: float = 1.0
    exchanged: Callable[[int], int] = _nothing
    _model: Iterations | None = field(init=False)
    _eager: Iterations | None = field(init=False)
    _draft: Iterations | None = None  # iterations of the draft model
    _guessed: int = 0
    growth: tuple[int, int] = (1, 1)
    _lines: dict[tuple[int, int], DecodeLine] = field(default_factory=dict)
    _around: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _prompts: dict[tuple[int, ...], int] = field(default_factory=dict)
    _batches: dict[int, KernelSeconds] = field(default_factory=dict)
    sent: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan, settings = self.plan, self.plan.settings
        self._model = self._eager = None
        if isinstance(plan.model, Transformer) and isinstance(plan.software, Framework):
            graphs = () if settings.exact else settings.graphs
            self._model = self._eager = iterations_of(plan, self.tables, plan.model, plan.software, graphs)
            if graphs and not settings.mixed:
                self._eager = iterations_of(plan, self.tables, plan.model, plan.software, ())

    def also(self, exchanged: Callable[[int], int]) -> Pace:
        """Return the times of a replica with the same kernels and other links."""
        other = copy(self)
        other.exchanged, other.sent = exchanged, {}
        return other

    @property
    def eager(self) -> Iterations:
        """Kernel times of iterations with prefill."""
        assert self._eager is not None
        return self._eager

    def set(self, run: IterationRun) -> None:
        """Set the duration of a run's first iteration, its growth per iteration, and the number of its iterations."""
        if self._model is None:
            run.kernels, run.host = ticks.femtoseconds(self._of_batch(len(run.parts)).seconds * self.slower), self._host(run)
            run.first = run.host + run.kernels
            run.count = run.most = 1
            return
        answers, context, line, beyond, low, (numerator, denominator) = run.answers, run.context, None, 0, -1, self.growth
        if answers:
            floor = context // answers
            step = 1 << max(0, floor.bit_length() - 1 - COARSE)
            low = floor // step * step
            line = self._lines.get((answers, low)) or self.line(answers, low, step)
            beyond = (context - answers * low) * denominator + run.part
        if run.parts:
            self._of_parts(run, 0 if line is None else line.slope * beyond // answers, line)
        elif line is not None:
            run.low = low
            start, _, slope, rows, _, _, host = line
            run.kernels, run.slope, run.host = start + slope * beyond // answers, slope * numerator, host
            alike = -((beyond - answers * step * denominator) // (answers * numerator))
            if alike < run.most:
                run.most = alike
            run.network, run.padded = self.sent.get(rows) or self.sends(rows, mixed=False)
        run.count = run.most
        run.first = run.host + run.kernels + run.network

    def _of_parts(self, run: IterationRun, more: int, line: DecodeLine | None) -> None:
        """Set the times of an iteration with prefill."""
        mixed = self.eager
        rows = passing = total = run.answers * mixed.tokens + run.tokens
        if mixed.groups > 1:
            rows = mixed.rows_of(run.read, run.answers)
            passing = mixed.passing(rows, total)
        kernels = self._mixed(run, rows, total)
        if line is not None:
            kernels += line.attention + more
            run.answered = line.start + more
        run.kernels, run.slope, run.most = kernels, 0, 1
        run.network, run.padded = self.sent.get(-passing) or self.sends(passing, mixed=True)
        run.host = self._host(run)
        if self.plan.settings.kernel:
            run.host += self._late(run)

    def _mixed(self, run: IterationRun, rows: int, total: int) -> int:
        """Return the kernel time of an iteration with prefill, without the attention of decode (fs)."""
        parts, known = run.parts, self._prompts
        count = len(parts)
        kernels = self._around.get((rows, run.ended, total)) or self.around(rows, run.ended, total)
        for sequence, tokens in parts:
            before = sequence.read
            kernels += known.get((tokens, before, count)) or self.prompt(tokens, before, count)
        return kernels

    def taken(self, run: IterationRun) -> KernelSeconds:
        """Return the time of an iteration's kernels and the amounts that they draw from a GPU."""
        if self._model is None:
            return self._of_batch(len(run.parts))
        if run.parts:
            assert self._eager is not None
            context = run.context / run.answers if run.answers else 0.0
            return self._eager.of(run.read, run.answers, context, run.ended)
        low, _ = knot(run.context // run.answers)
        return self._model.of((), run.answers, float(low), run.answers)

    def line(self, answers: int, low: int, step: int) -> DecodeLine:
        """Return, and keep, the linear piece of decode times from a knot."""
        model, draft, draft_count = self._model, self._draft, self._guessed
        assert model is not None
        before, after = (model.answers(answers, context).seconds for context in (low, low + step))
        rows = model.rows_of((), answers)
        around = model.around(rows, answers * model.tokens, model.total_of((), answers))
        if draft is not None:
            early, late = (draft.answers(answers, context).seconds for context in (low, low + step))
            before, after = before + draft_count * early, after + draft_count * late
            around += draft_count * draft.around(draft.rows_of((), answers), answers, draft.total_of((), answers))
        attention, until, start = (ticks.femtoseconds(seconds * self.slower) for seconds in (before, after, around))
        slope = max(0, round((until - attention) / (step * self.growth[1])))
        line = DecodeLine(start + attention, attention, slope, rows, low, step, self._host_of(answers, rows))
        self._lines[answers, low] = line
        return line

    def around(self, rows: int, ended: int, total: int) -> int:
        """Return the kernel time of an iteration with prefill, without attention (fs); arguments as in `Iterations.around`."""
        time_fs = self._around[rows, ended, total] = ticks.femtoseconds(self.eager.around(rows, ended, total) * self.slower)
        return time_fs

    def prompt(self, tokens: int, before: int, count: int) -> int:
        """Return the attention time of one of `many` equal prefill chunks (fs)."""
        taken = self.eager.read(((tokens, before),) * count)
        time_fs = self._prompts[tokens, before, count] = ticks.femtoseconds(taken.seconds / count * self.slower)
        return time_fs

    def sends(self, rows: int, *, mixed: bool) -> tuple[int, int]:
        """Return (time in fs, tokens) of the collectives of an iteration."""
        model = self._eager if mixed else self._model
        assert model is not None
        padded = model.padded(rows)
        sent = self.sent[-rows if mixed else rows] = self.exchanged(padded), padded
        return sent

    def _host(self, run: IterationRun) -> int:
        settings = self.plan.settings
        if run.parts and not settings.mixed:
            return settings.step + settings.each * (run.answers + len(run.parts))
        return self._host_of(run.answers + len(run.parts), run.rows)

    def _late(self, run: IterationRun) -> int:
        """Return the time that GPUs wait for kernel launches, in an iteration with prefill and without a CUDA graph (fs)."""
        settings, model = self.plan.settings, self._eager
        if not settings.kernel or model is None:
            return 0
        if settings.mixed and settings.graphs and run.rows <= settings.graphs[-1]:
            return 0
        return max(0, model.starts * settings.kernel - run.kernels - run.network)

    def _host_of(self, sequences: int, rows: int) -> int:
        settings = self.plan.settings
        host = settings.step + settings.each * sequences
        if not settings.eager or not settings.graphs:
            return host
        graph_index = bisect_left(settings.graphs, rows)
        has = graph_index < len(settings.graphs) and (not settings.exact or settings.graphs[graph_index] == rows)
        return host if has else host + settings.eager

    def _of_batch(self, count: int) -> KernelSeconds:
        """Return the time and amounts of a batch of a convolutional network."""
        plan = self.plan
        if count not in self._batches:
            assert isinstance(plan.software, Software)
            assert not isinstance(plan.model, Transformer)
            times = KernelTimes(plan.gpu, plan.software.kernels)
            step = batch_pass(plan.model, count, plan.dtype, times, plan.software)
            layers = layers_of(plan.model, count, plan.dtype, training=False)
            works = [kernel.work for layer in layers for kernel in kernels(layer.forward)]
            busy = step.seconds - step.shares["host"]
            flop, moved = math.fsum(work.flop for work in works), math.fsum(work.traffic for work in works)
            self._batches[count] = KernelSeconds(step.seconds, busy, min(busy, moved / plan.gpu.memory.bandwidth), flop, moved)
        return self._batches[count]


def iterations_of(
    plan: ServicePlan,
    tables: Tables,
    model: Transformer,
    framework: Framework,
    graphs: tuple[int, ...],
    tokens: int | None = None,
) -> Iterations:
    """Return the kernel times of a replica's iterations, from `tables` if they are known."""
    parallel = plan.keys.parallel
    sparse = any(kind.experts > 1 for kind in model.kinds)
    verified, ep = tokens or plan.settings.verified, parallel.ep if sparse else 1
    key = model, plan.gpu, framework, graphs, plan.dtype, parallel.tp, parallel.groups, verified, ep, plan.keys.kv or ""
    for made_of, table in tables:
        if made_of == key:
            return table
    iterations = Iterations(
        model,
        KernelTimes(plan.gpu, framework),
        parallel.tp,
        plan.dtype,
        graphs,
        tokens=verified,
        groups=parallel.groups,
        ep=ep,
        cache=plan.keys.kv or "",
    )
    tables[:] = [*tables[1 - MOST_TABLES :], (key, iterations)]
    return iterations
