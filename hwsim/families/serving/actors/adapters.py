"""Times of iterations whose requests have adapters (LoRA).

Beside the linear maps run two kernels, to the inner side and back; maps that read the same (queries, keys and values; gate and
up) share them. They read the matrices of each adapter that the iteration's requests have among them, and the tokens:

    distinct adapters = sum over adapters of 1 - (1 - share)**requests        in the mean

**Error**: not measured; the kernels are taken to reach what the GPU's memory and units let them, which small ones of a real
server do not. One that is loaded from the host takes the time of its bytes at the full rate of the links, before the iteration
that it is for and in its host's time; a real server copies it matrix by matrix. Prompts of two adapters share blocks of the
cache, which a real server does not let them.
**Source**: Hu et al., "LoRA", ICLR 2022; Chen et al., "Punica", MLSys 2024 (the two kernels); vllm 0.19.0, lora/layers.
"""

from __future__ import annotations

import math

from hwsim import ticks
from hwsim.devices import Work
from hwsim.families.serving.actors.pace import Line, Pace
from hwsim.families.serving.actors.run import Run
from hwsim.families.serving.actors.speculating import Guessed
from hwsim.models.framework import Framework
from hwsim.models.kernel_tables import Taken
from hwsim.models.kernel_times import KernelTimes


class Adapted(Pace):
    """Times of iterations with the kernels of adapters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        plan = self.plan
        assert isinstance(plan.software, Framework)
        self._times = KernelTimes(plan.gpu, plan.software)
        self._added: dict[tuple[int, int], tuple[int, Taken]] = {}

    def adds(self, requests: int, tokens: int) -> tuple[int, Taken]:
        """(fs, what is drawn) of the kernels of adapters."""
        added = self._added.get((requests, tokens))
        if added is None:
            seconds, flops, moved = self._kernels(requests, tokens)
            taken = Taken(seconds, 0.0, min(seconds, moved / self.plan.gpu.memory.bandwidth), flops, moved)
            added = self._added[requests, tokens] = ticks.femtoseconds(seconds * self.slower), taken
        return added

    def _kernels(self, requests: int, tokens: int) -> tuple[float, float, float]:
        """(seconds, operations, bytes) of the kernels of all layers."""
        adapters = self.plan.adapters
        assert adapters is not None
        width, many = adapters.width, adapters.distinct(requests)
        seconds, flops, moved = [], [], []
        for into, out, parts, times in adapters.maps:
            inner = adapters.rank * parts
            shrink = 2.0 * tokens * inner * into, many * inner * into + tokens * into, tokens * inner
            expand = 2.0 * tokens * adapters.rank * out, many * adapters.rank * out + tokens * (inner + out), tokens * out
            for flop, reads, writes in (shrink, expand):
                work = Work(flop=flop, reads=reads * width, writes=writes * width, dtype=self.plan.dtype, mix="matmul")
                seconds.append(times * max(self._times.framework.launch, self._times.alone(work)))
                flops.append(times * flop)
                moved.append(times * work.traffic)
        return math.fsum(seconds), math.fsum(flops), math.fsum(moved)

    def taken(self, run: Run) -> Taken:
        """Seconds and amounts that the kernels of an iteration draw from a GPU."""
        return super().taken(run).plus(self.adds(*self._asked(run))[1])

    def _asked(self, run: Run) -> tuple[int, int]:
        verified = self.plan.settings.verified
        return run.answers + len(run.parts), run.answers * verified + run.tokens

    def line(self, answers: int, low: int, step: int) -> Line:
        """The line from a knot on."""
        line = super().line(answers, low, step)
        more, _ = self.adds(answers, answers * self.plan.settings.verified)
        line = self._lines[answers, low] = line._replace(start=line.start + more)
        return line

    def set(self, run: Run) -> None:
        """Give a run its times; one that loads adapters for answers that begin is of one iteration."""
        super().set(run)
        if run.fetched and not run.parts and self.plan.adapters is not None:
            late = run.fetched * self.plan.adapters.load
            run.host, run.first, run.most, run.count = run.host + late, run.first + late, 1, 1

    def _of_parts(self, run: Run, more: int, line: Line | None) -> None:
        """Time of an iteration with prompts."""
        super()._of_parts(run, more, line)
        run.kernels += self.adds(*self._asked(run))[0]
        if run.fetched and self.plan.adapters is not None:
            run.host += run.fetched * self.plan.adapters.load


class AdaptedGuessed(Adapted, Guessed):
    """Those of iterations that verify guesses."""
