"""Seconds of kernels on one GPU, by the part's own model and what a training makes of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from hwsim.devices import Gpu, Work
from hwsim.devices.gpu_matmul import waves
from hwsim.devices.roofline import peak_of
from hwsim.models.frameworks import Framework
from hwsim.models.generations import GENERATIONS, Generation, generation, throttle
from hwsim.models.layer import FusedAttention, Kernel, Kind
from hwsim.records import dataclass
from hwsim.units import BYTES

_NAME: Final = "gpu"
# Queries of a block of fused attention, and its speed over that of the best; what a last wave that is not full loses.
BLOCKS: Final = ((128, 1.0), (64, 0.85))
LOST: Final = 0.4


@dataclass(slots=True)
class Speed:
    """A GPU under a framework, and the kernels that it has been asked for.

    constants: those of its generation unless given.
    """

    gpu: Gpu
    framework: Framework
    constants: Generation | None = None
    limited: float | None = None
    known: dict[Work, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = generation(self.gpu)
        self.constants = self.constants or GENERATIONS[name]
        self.limited = throttle(self.gpu, name) if self.limited is None else self.limited
        self.rates = {each.name: each.rate for each in self.gpu.capacities(_NAME)}

    def alone(self, work: Work) -> float:
        """Seconds of the GPU's own model."""
        found = self.known.get(work)
        if found is None:
            found = self.known[work] = self.gpu.compute(_NAME, work).demand.alone(self.rates)
        return found

    def asked(self, kernel: Kernel) -> Work:
        """The work as the framework does it: what it does not fuse takes more kernels and moves more bytes."""
        work = kernel.work
        if kernel.flash or work.mix == "matmul":
            return work if self.framework.starts == "stream" else dataclasses.replace(work, start=self.framework.starts)
        style = self.framework.ops.get(kernel.name.removeprefix("d-"))
        if style is not None:
            factor, count = style.moved, style.kernels
            flop = style.flop * work.writes / BYTES[work.dtype]
        else:
            factor = {"attention": self.framework.scores, "elementwise": self.framework.moved}.get(kernel.kind, 1.0)
            count, flop = 1, 0.0
        held = work.traffic if self.framework.cached else None
        return dataclasses.replace(
            work,
            flop=flop,
            reads=factor * work.reads,
            writes=factor * work.writes,
            dtype="fp32" if flop > 0 else work.dtype,
            kernels=count,
            working_set=held,
            start=self.framework.starts,
        )

    def slowdown(self, kernel: Kernel) -> float:
        """How much longer the kernel takes in a training than the GPU's model says of its work."""
        constants, limited = self.constants, self.limited
        if constants is None or limited is None or kernel.work.mix != "matmul":
            return 1.0
        limited = limited if self.framework.steady else 1.0
        if isinstance(kernel.shape, FusedAttention):
            work, shape = kernel.work, kernel.shape
            peak = peak_of(self.gpu.flop, work.dtype, _NAME)[1]
            part = self.gpu.attention or constants.flash
            part *= constants.flash_backward / constants.flash if kernel.name.startswith("d-") else 1.0
            part *= self.framework.flash * (constants.narrow if shape.narrow else 1.0)
            part *= self.filled(shape) * shape.context / (shape.context + constants.short)
            return max(1.0, work.flop / (peak * part * limited) / self.alone(self.asked(kernel)))
        lasting = constants.plain if kernel.kind == "attention" else constants.products
        part = lasting if self.framework.steady else 1.0
        part *= self.framework.fp8 if kernel.work.dtype == "fp8" else 1.0
        return 1.0 / (part * limited)

    def filled(self, shape: FusedAttention) -> float:
        """Part of the multiprocessors that attention keeps busy: a block for each head and 128 queries, or 64, in waves."""
        if self.gpu.sms is None or shape.rows == 1:
            return 1.0
        found = 0.0
        for rows, relative in BLOCKS:
            blocks = shape.groups * math.ceil(shape.rows / rows)
            found = max(found, relative * blocks / (self.gpu.sms * waves(blocks, self.gpu.sms, LOST)))
        return found

    def seconds(self, kernel: Kernel) -> float:
        """Seconds of all times it runs."""
        least = self.framework.launch
        style = self.framework.ops.get(kernel.name.removeprefix("d-"))
        start = 0.0 if style is None else (style.start + style.walk * kernel.across / 1024) * style.kernels
        if kernel.work.mix == "matmul":
            return kernel.times * max(least, start + self.alone(self.asked(kernel)) * self.slowdown(kernel))
        work = self.asked(kernel)
        return kernel.times * max(least * work.kernels, start + self.alone(work))

    def shares(self, kernels: Iterable[Kernel]) -> dict[Kind, float]:
        """Seconds by what they are spent on."""
        found: dict[Kind, float] = {}
        for kernel in kernels:
            found[kernel.kind] = found.get(kernel.kind, 0.0) + self.seconds(kernel)
        return found
