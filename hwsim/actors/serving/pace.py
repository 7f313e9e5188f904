"""How long the iterations of a copy take, in whole femtoseconds.

    iteration = host + kernels + exchanges, one after another

The kernels of an iteration of answers lie on a line over the mean context, from one knot to the next (see
`hwsim.models.iteration`). Both ends of a line are rounded to a femtosecond, and so is its slope: iterations of the same answers
are an arithmetic series, and a run of them takes the same whether it is added up or worked out at once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from copy import copy
from dataclasses import field
from typing import Protocol

from hwsim import ticks
from hwsim.actors.serving.run import Run
from hwsim.models.architectures import Transformer
from hwsim.models.architectures.unit_layers import layers_of
from hwsim.models.framework import Framework, Software
from hwsim.models.inference import batch_pass
from hwsim.models.iteration import Iterations
from hwsim.models.kernel_tables import Taken, knot
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import kernels
from hwsim.records import dataclass
from hwsim.workload.serving.plan import ServicePlan


class Paced(Protocol):
    """What times the runs of a copy."""

    def set(self, run: Run) -> None:
        """Give a run the time of its first iteration, how it grows, and as many iterations as are alike."""


def _nothing(rows: int) -> int:
    return 0 * rows


@dataclass(slots=True)
class Pace:
    """Times of iterations; a copy looks up what another worked out.

    Args:
        slower: times as long as expected that kernels take, for the ends of an interval.
        exchanged: fs of all exchanges of an iteration of so many tokens.
    """

    plan: ServicePlan
    slower: float = 1.0
    exchanged: Callable[[int], int] = _nothing
    _model: Iterations | None = field(init=False)
    _eager: Iterations | None = field(init=False)
    _lines: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    _batches: dict[int, Taken] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan, settings = self.plan, self.plan.settings
        self._model = self._eager = None
        if isinstance(plan.model, Transformer) and isinstance(plan.software, Framework):
            times = KernelTimes(plan.gpu, plan.software)
            graphs = () if settings.exact else settings.graphs
            self._model = Iterations(plan.model, times, plan.keys.parallel.tp, plan.dtype, graphs)
            self._eager = self._model
            if graphs and not settings.mixed:
                self._eager = Iterations(plan.model, times, plan.keys.parallel.tp, plan.dtype)

    def also(self, exchanged: Callable[[int], int]) -> Pace:
        """Times of another copy, with the same kernels and other links."""
        other = copy(self)
        other.exchanged = exchanged
        return other

    def set(self, run: Run) -> None:
        """Give a run the time of its first iteration, how it grows, and where that changes."""
        rows = run.rows
        if self._model is None or run.parts:
            run.kernels = ticks.femtoseconds(self._seconds(run) * self.slower)
            run.most = 1
            run.answered = self._on_line(run)[0] if run.answers else 0
        else:
            run.kernels, run.slope, alike = self._on_line(run)
            run.most = min(run.most, alike)
        run.count = run.most
        run.network = self.exchanged(self.padded(rows, mixed=bool(run.parts)))
        run.host = self._host(run, rows)
        run.first = run.host + run.kernels + run.network

    def padded(self, rows: int, *, mixed: bool) -> int:
        """Tokens that an iteration computes."""
        model = self._eager if mixed else self._model
        return rows if model is None else model.padded(rows)

    def taken(self, run: Run) -> Taken:
        """What the kernels of an iteration draw from a GPU."""
        if self._model is None:
            return self._of_batch(len(run.parts))
        if run.parts:
            assert self._eager is not None
            context = run.context / run.answers if run.answers else 0.0
            return self._eager.of(run.read, run.answers, context, run.ended)
        low, _ = knot(run.context / run.answers)
        return self._model.of((), run.answers, float(low), run.answers)

    def _on_line(self, run: Run) -> tuple[int, int, int]:
        """fs of the kernels of its answers alone, more for each iteration that follows, and iterations to the next knot."""
        answers = run.answers
        low, step = knot(run.context / answers)
        line = self._lines.get((answers, low))
        if line is None:
            line = self._lines[answers, low] = self._line(answers, low, step)
        beyond = run.context - answers * low
        return line[0] + line[1] * beyond // answers, line[1], -((beyond - answers * step) // answers)

    def _line(self, answers: int, low: int, step: int) -> tuple[int, int]:
        """fs at a knot, and more for each token of mean context."""
        assert self._model is not None
        line = self._model.line(answers, float(low))
        start, end = (ticks.femtoseconds(seconds * self.slower) for seconds in (line.seconds, line.seconds + line.slope * step))
        return start, max(0, round((end - start) / step))

    def _seconds(self, run: Run) -> float:
        if self._eager is None:
            return self._of_batch(len(run.parts)).seconds
        context = run.context / run.answers if run.answers else 0.0
        return self._eager.seconds(run.read, run.answers, context, run.ended)

    def _host(self, run: Run, rows: int) -> int:
        settings = self.plan.settings
        host = settings.step + settings.each * (run.answers + len(run.parts))
        if not settings.eager or not settings.graphs or (run.parts and not settings.mixed):
            return host
        at = bisect_left(settings.graphs, rows)
        has = at < len(settings.graphs) and (not settings.exact or settings.graphs[at] == rows)
        return host if has else host + settings.eager

    def _of_batch(self, count: int) -> Taken:
        """A pass of a network of convolutions."""
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
            self._batches[count] = Taken(step.seconds, busy, min(busy, moved / plan.gpu.memory.bandwidth), flop, moved)
        return self._batches[count]
