"""Times of a model's kernels on one GPU under one framework (seconds).

    KernelTimes(gpu, framework).choose(kernel)      # the kernels that the libraries run, with their seconds
    KernelTimes(gpu, framework).seconds(kernel)

The GPU model determines the time of a kernel's work. Libraries and trainings change it: convolutions use the fastest algorithm
(`hwsim.devices.convolution_speeds`), matmuls run at the sustained clock, fused attention reaches a share of the peak, and
kernels that a framework does not fuse move more bytes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from hwsim.demand import Cost, rates_of
from hwsim.devices import AttentionCall, Gpu, Work
from hwsim.devices.convolution import ConvolutionPass
from hwsim.devices.convolution_speeds import CONVOLUTION_SPEEDS, ConvolutionSpeeds, Units, matrix_units, units_of
from hwsim.devices.gpu_convolution import TimedKernel, fastest
from hwsim.models.architectures.transformer_layers import FLASH_BACKWARD
from hwsim.models.framework import Framework
from hwsim.models.generations import GENERATIONS, Generation, generation, throttle
from hwsim.models.layer import Kernel
from hwsim.records import dataclass
from hwsim.units import BYTES

if TYPE_CHECKING:
    from hwsim.devices.gpu_matmul_cost import Floats

_NAME: Final = "gpu"
_MOST: Final = 1_000  # maximum cached costs


@dataclass(slots=True)
class KernelTimes:
    """Times of kernels on a GPU under a framework, each computed once.

    Args:
        constants: constants of the GPU generation (default: from its data types).
        limited: relative speed at the power limit (default: from the limit).
        known: seconds from the GPU model by work.
        convolving: efficiencies of the libraries' convolutions.
    """

    gpu: Gpu
    framework: Framework
    constants: Generation | None = None
    limited: float | None = None
    known: dict[Work, float] = field(default_factory=dict)
    convolving: Mapping[Units, ConvolutionSpeeds] = field(default_factory=lambda: CONVOLUTION_SPEEDS)
    rates: Mapping[str, float] = field(default_factory=dict)
    _convolutions: dict[tuple[ConvolutionPass, Work], tuple[TimedKernel, ...]] = field(default_factory=dict)
    _costs: dict[Work, Cost] = field(default_factory=dict)
    _once_each: dict[int, tuple[Kernel, float]] = field(default_factory=dict)  # kernel id -> seconds, as layers share kernels

    def __post_init__(self) -> None:
        name = generation(self.gpu)
        self.constants = self.constants or GENERATIONS[name]
        self.limited = throttle(self.gpu, name) if self.limited is None else self.limited
        self.rates = rates_of(self.gpu.capacities(_NAME))

    def alone(self, work: Work) -> float:
        """Return the seconds from the GPU model."""
        seconds = self.known.get(work)
        if seconds is None:
            seconds = self.known[work] = self.cost(work).demand.alone(self.rates)
        return seconds

    def cost(self, work: Work) -> Cost:
        """Return the cost from the GPU model, for a GPU named "gpu"."""
        cost = self._costs.get(work)
        if cost is None:
            cost = self.gpu.compute(_NAME, work)
            if len(self._costs) < _MOST:
                self._costs[work] = cost
        return cost

    def choose(self, kernel: Kernel) -> tuple[TimedKernel, ...]:
        """Return the kernels that the libraries launch for one execution of the kernel."""
        if isinstance(kernel.shape, ConvolutionPass):
            return self._fastest_kernels(kernel.shape, kernel.work)
        work = self.asked(kernel)
        seconds, alone = self._seconds_once(kernel, work), self.alone(work)
        return (TimedKernel(work, seconds / alone if alone > 0 else 1.0, seconds),)

    def seconds(self, kernel: Kernel) -> float:
        """Return the seconds of all executions of the kernel."""
        timed_once = self._once_each.get(id(kernel))
        if timed_once is None:
            if isinstance(kernel.shape, ConvolutionPass):
                once = math.fsum(timed.seconds for timed in self._fastest_kernels(kernel.shape, kernel.work))
            else:
                once = self._seconds_once(kernel, self.asked(kernel))
            timed_once = self._once_each[id(kernel)] = kernel, once
        return kernel.times * timed_once[1]

    def by_rows(
        self, kernel: Kernel, rows: Floats, *, depth: bool = False, streamed: bool = False
    ) -> tuple[Floats, Floats, Floats] | None:
        """Return arrays of the total, compute and memory seconds of a matmul; as `Gpu.by_rows`."""
        alone = self.gpu.by_rows(self.asked(kernel), rows, depth=depth, streamed=streamed)
        return None if alone is None else self._slow(kernel, *alone)

    def attending(self, kernel: Kernel, call: AttentionCall) -> tuple[Floats, Floats, Floats]:
        """Return the same arrays for calls of fused attention, whose sizes may be arrays."""
        work = self.asked(kernel)
        assert work.attention is not None
        return self._slow(kernel, *self.gpu.attend(work, call))

    def _slow(self, kernel: Kernel, alone: Any, compute: Any, memory: Any) -> tuple[Floats, Floats, Floats]:
        import numpy as np

        times, slower = kernel.times, self.slowdown(kernel)
        seconds = np.maximum(self.framework.launch, alone * slower)
        return times * seconds, times * np.minimum(seconds, compute * seconds / alone), times * np.minimum(seconds, memory)

    def _seconds_once(self, kernel: Kernel, work: Work) -> float:
        least = self.framework.launch
        style = self.framework.style(kernel.name)
        if style is not None and style.kernels == 0:
            return 0.0
        start = 0.0
        if style is not None:
            sort = style.sort * kernel.work.reads / (4 * 1024)
            start = (style.start + style.walk * kernel.across / 1024 + sort) * style.kernels
        if kernel.work.mix == "matmul":
            return max(least, start + self.alone(work) * self.slowdown(kernel))
        return max(least * work.kernels, start + self.alone(work))

    def asked(self, kernel: Kernel) -> Work:
        """Return the work as the framework runs it: missing fusion adds kernels and bytes."""
        work = kernel.work
        if work.attention is not None and work.attention.library != self.framework.kernels:
            return dataclasses.replace(work, attention=dataclasses.replace(work.attention, library=self.framework.kernels))
        if work.experts is not None:
            name = f"{self.framework.kernels} {work.experts.kernel.partition(' ')[2]}"
            if work.experts.kernel == name:
                return work
            return dataclasses.replace(work, experts=dataclasses.replace(work.experts, kernel=name))
        if work.mix == "matmul":
            product, starts = work.product, self.framework.starts
            if product is not None and self.framework.software:
                product = dataclasses.replace(product, software=self.framework.software)
            if product is work.product and starts == "stream":
                return work
            return dataclasses.replace(work, product=product, start=work.start if starts == "stream" else starts)
        style = self.framework.style(kernel.name)
        if style is not None:
            factor, count = style.moved, style.kernels
            flop = style.flop * work.writes / BYTES[work.dtype]
        else:
            factor = {"attention": self.framework.scores, "elementwise": self.framework.moved, "cast": self.framework.casts}.get(
                kernel.kind, 1.0
            )
            if kernel.kind == "cast" and "experts-" in kernel.name and self.framework.expert_casts is not None:
                factor = self.framework.expert_casts
            count, flop = 1, 0.0
        return dataclasses.replace(
            work,
            flop=flop,
            reads=factor * work.reads,
            writes=factor * work.writes,
            dtype="fp32" if flop > 0 else work.dtype,
            kernels=count,
            working_set=work.traffic if self.framework.cached else work.working_set,
            start=self.framework.starts,
        )

    def slowdown(self, kernel: Kernel) -> float:
        """Return the time of a matmul or of attention in a training, relative to the GPU model."""
        constants, limited = self.constants, self.limited
        if constants is None or limited is None or kernel.work.mix != "matmul":
            return 1.0
        limited = limited if self.framework.steady else 1.0
        if kernel.flash:
            backward = FLASH_BACKWARD * constants.flash / constants.flash_backward if kernel.name.startswith("d-") else 1.0
            sustained = constants.flash if self.framework.steady else 1.0
            return backward / (self.framework.flash * sustained)  # stalls keep its power below the limit
        sustained = constants.plain if kernel.kind == "attention" else constants.products
        part = sustained if self.framework.steady else 1.0
        part *= {"fp8": self.framework.fp8, "fp4": self.framework.fp4}.get(kernel.work.dtype, 1.0)
        part *= self.framework.experts if "experts-" in kernel.name else 1.0
        return 1.0 / (part * limited)

    def _fastest_kernels(self, shape: ConvolutionPass, work: Work) -> tuple[TimedKernel, ...]:
        key = shape, work
        kernels = self._convolutions.get(key)
        if kernels is None:
            constants = self.convolving[units_of(self.gpu, work.dtype)]
            matrix = matrix_units(self.gpu, work.dtype)
            kernels = self._convolutions[key] = fastest(shape, work.dtype, constants, self.alone, matrix_units=matrix)
        return kernels
