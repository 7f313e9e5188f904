"""Times of iterations with LoRA adapters.

Each linear layer needs two more kernels, which shrink its input to the rank and expand it to the output. Layers with the same
input (queries, keys and values; gate and up) share them. The kernels read the tokens, and the matrices of every distinct
adapter:

    distinct adapters = sum over adapters of 1 - (1 - share)**requests        (expected value)

**Error**: not measured. The kernels are assumed to reach the bandwidth and FLOP rate of the GPU, which small kernels of a real
server do not. The load of an adapter from the host takes the time of its bytes at the full rate of the links, and counts as host
time before its iteration; a real server copies it matrix by matrix. Prompts of two adapters share KV-cache blocks, which a real
server does not allow.
**Source**: Hu et al., "LoRA", ICLR 2022; Chen et al., "Punica", MLSys 2024 (the two kernels); vllm 0.19.0, lora/layers.
"""

from __future__ import annotations

import math

from hwsim import ticks
from hwsim.devices import Work
from hwsim.families.serving.actors.iteration_times import DecodeLine, Pace
from hwsim.families.serving.actors.run import IterationRun
from hwsim.families.serving.actors.speculation import SpeculativePace
from hwsim.models.framework import Framework
from hwsim.models.kernel_tables import KernelSeconds
from hwsim.models.kernel_times import KernelTimes


class AdapterPace(Pace):
    """Times of iterations that include the kernels of adapters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        plan = self.plan
        assert isinstance(plan.software, Framework)
        self._times = KernelTimes(plan.gpu, plan.software)
        self._added: dict[tuple[int, int], tuple[int, KernelSeconds]] = {}

    def adds(self, requests: int, tokens: int) -> tuple[int, KernelSeconds]:
        """Return (fs, amounts drawn from a GPU) of the kernels of adapters."""
        added = self._added.get((requests, tokens))
        if added is None:
            seconds, flops, moved = self._kernels(requests, tokens)
            taken = KernelSeconds(seconds, 0.0, min(seconds, moved / self.plan.gpu.memory.bandwidth), flops, moved)
            added = self._added[requests, tokens] = ticks.femtoseconds(seconds * self.slower), taken
        return added

    def _kernels(self, requests: int, tokens: int) -> tuple[float, float, float]:
        """Return (seconds, FLOP, bytes) of the adapter kernels of all layers."""
        adapters = self.plan.adapters
        assert adapters is not None
        width, distinct = adapters.width, adapters.distinct(requests)
        seconds, flops, moved = [], [], []
        for into, out, parts, layer_count in adapters.maps:
            inner = adapters.rank * parts
            shrink = 2.0 * tokens * inner * into, distinct * inner * into + tokens * into, tokens * inner
            expand = 2.0 * tokens * adapters.rank * out, distinct * adapters.rank * out + tokens * (inner + out), tokens * out
            for flop, reads, writes in (shrink, expand):
                work = Work(flop=flop, reads=reads * width, writes=writes * width, dtype=self.plan.dtype, mix="matmul")
                seconds.append(layer_count * max(self._times.framework.launch, self._times.alone(work)))
                flops.append(layer_count * flop)
                moved.append(layer_count * work.traffic)
        return math.fsum(seconds), math.fsum(flops), math.fsum(moved)

    def taken(self, run: IterationRun) -> KernelSeconds:
        """Return the time of an iteration's kernels and the amounts that they draw from a GPU."""
        return super().taken(run).plus(self.adds(*self._asked(run))[1])

    def _asked(self, run: IterationRun) -> tuple[int, int]:
        verified = self.plan.settings.verified
        return run.answers + len(run.parts), run.answers * verified + run.tokens

    def line(self, answers: int, low: int, step: int) -> DecodeLine:
        """Return the line of decode times from a knot, including adapter kernels."""
        line = super().line(answers, low, step)
        more, _ = self.adds(answers, answers * self.plan.settings.verified)
        line = self._lines[answers, low] = line._replace(start=line.start + more)
        return line

    def set(self, run: IterationRun) -> None:
        """Set the times of a run. A run that loads adapters for new decodes has one iteration."""
        super().set(run)
        if run.fetched and not run.parts and self.plan.adapters is not None:
            late = run.fetched * self.plan.adapters.load
            run.host, run.first, run.most, run.count = run.host + late, run.first + late, 1, 1

    def _of_parts(self, run: IterationRun, more: int, line: DecodeLine | None) -> None:
        super()._of_parts(run, more, line)
        run.kernels += self.adds(*self._asked(run))[0]
        if run.fetched and self.plan.adapters is not None:
            run.host += run.fetched * self.plan.adapters.load


class SpeculativeAdapterPace(AdapterPace, SpeculativePace):
    """Times of iterations with adapters and speculative decoding."""
