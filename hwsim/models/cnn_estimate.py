"""The time of a training step, or of inference, of a network in closed form, without the engine.

    step = step of the software + max(forward + backward + optimizer, dispatch x kernels, host's time for the inputs)
           + what is left of the gradients

Gradients are sent in buckets as the backward pass makes them, the last layer's first: a bucket starts when the layers it
has are done and the bucket before it is through.

    end of bucket i = max(end of its layers, end of bucket i - 1) + its collective

**Source**: buckets as in Li et al., "PyTorch Distributed", arXiv:2006.15704, section 3.2.3.
**Error**: see `docs/validation/models.md`.
**Range**: equal GPUs with equal shares of the batch; collectives do not slow the kernels beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final

from hwsim.devices import Gpu, Work
from hwsim.models.architectures.unit_layers import layers_of, optimizer
from hwsim.models.architectures.units import size
from hwsim.models.convolution import Convolution
from hwsim.models.convolving import CONVOLVING, Convolving, Units, matrix_units, units_of
from hwsim.models.layer import Kernel, Kind
from hwsim.models.layer import kernels as kernels_of
from hwsim.models.networks import Network
from hwsim.models.software import Software
from hwsim.records import dataclass
from hwsim.units import BYTES

BUCKET: Final = 25 * 2**20  # bytes; torch.nn.parallel.DistributedDataParallel, bucket_cap_mb
_NAME: Final = "gpu"
Exchange = Callable[[float], float]  # bytes of gradients -> seconds until every GPU has their sum


@dataclass(frozen=True, slots=True)
class Timed:
    """A kernel as it is chosen: the work, and how much longer it takes than the GPU's own model says."""

    name: str
    kind: Kind
    work: Work
    slower: float
    seconds: float


@dataclass(slots=True)
class Kernels:
    """A GPU under a software, and the kernels that it has been asked for."""

    gpu: Gpu
    software: Software
    constants: Mapping[Units, Convolving] = field(default_factory=lambda: CONVOLVING)
    known: dict[Work, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    asked: dict[tuple[Kind, Work, object], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rates = {each.name: each.rate for each in self.gpu.capacities(_NAME)}

    def alone(self, work: Work) -> float:
        """Seconds of the GPU's own model."""
        found = self.known.get(work)
        if found is None:
            found = self.known[work] = self.gpu.compute(_NAME, work).demand.alone(self.rates)
        return found

    def chosen(self, op: Kernel) -> tuple[Timed, ...]:
        """The kernels that the library takes for it: the fastest way."""
        work = op.work
        if not isinstance(op.shape, Convolution):
            if op.kind == "elementwise":
                factor = self.software.moved
                work = Work(
                    reads=factor * work.reads, writes=factor * work.writes, dtype=work.dtype, working_set=work.working_set
                )
            return (self._timed(op, work, 1.0),)
        constants = self.constants[units_of(self.gpu, work.dtype)]
        ways = op.shape.ways(work.dtype, matrix_units=matrix_units(self.gpu, work.dtype))
        found = []
        for way in ways:
            part = constants.part if len(way) == 1 else constants.transformed
            copied: tuple[Work, ...] = ()
            if constants.reordered and way[0].mix == "matmul":
                images = op.shape.images_moved(BYTES[work.dtype])
                copied = (Work(reads=images, writes=images, dtype=work.dtype, working_set=2 * images),)
            found.append(tuple(self._timed(op, each, self._slower(each, part, constants)) for each in (*copied, *way)))
        return min(found, key=lambda way: math.fsum(each.seconds for each in way))

    def seconds(self, op: Kernel) -> float:
        """Of all kernels that are chosen for it."""
        key = op.kind, op.work, op.shape
        found = self.asked.get(key)
        if found is None:
            found = self.asked[key] = math.fsum(each.seconds for each in self.chosen(op))
        return found

    def _slower(self, work: Work, part: float, constants: Convolving) -> float:
        """Of its arithmetic; what memory takes is as the GPU's model says."""
        if work.flop == 0.0:
            return 1.0
        if work.mix != "matmul":
            part = constants.direct
        alone = self.alone(work)
        moving = self.alone(Work(reads=work.reads, writes=work.writes, dtype=work.dtype))
        return max(alone / part, moving) / alone

    def _timed(self, op: Kernel, work: Work, slower: float) -> Timed:
        return Timed(op.name, op.kind, work, slower, self.alone(work) * slower)


@dataclass(frozen=True, slots=True)
class CnnStep:
    """A step, as estimated.

    shares: seconds by what they go to, adding up to it: convolution, matmul, elementwise, optimizer, host, gradients.
    """

    seconds: float
    shares: Mapping[str, float]
    images_per_second: float


def training_step(
    network: Network,
    batch: int,
    dtype: str,
    kernels: Kernels,
    gpus: int = 1,
    exchange: Exchange | None = None,
    bucket: float = BUCKET,
) -> CnnStep:
    """One step of data-parallel training.

    Args:
        batch: examples on each GPU.
        exchange: seconds to sum so many bytes of gradients over all GPUs.
        bucket: bytes of gradients that are sent together.
    """
    layers = layers_of(network, batch, dtype)
    software = kernels.software
    shares: dict[str, float] = {}
    count = 0
    for layer in layers:
        for op in kernels_of(layer.forward):
            count += _add(shares, kernels, op)
    marks, at = [], 0.0
    for layer in reversed(layers):
        for op in kernels_of(layer.backward):
            count += _add(shares, kernels, op)
            at += kernels.seconds(op)
        marks.append((at, layer.parameters * software.gradient))
    count += _add(shares, kernels, optimizer(layers)) + sum(layer.tensors for layer in layers)  # an update of each array
    busy = math.fsum(shares.values())
    waited = max(0.0, _issuing(software, dtype, count, batch * size(network.input)) - busy)
    shares["host"] = software.step + waited
    stretched = [(when * (busy + waited) / busy, size) for when, size in marks]
    shares["gradients"] = exposed(stretched, exchange, bucket, software.hidden) if exchange is not None else 0.0
    if gpus > 1:
        shares["gradients"] += software.array * math.fsum(layer.tensors for layer in layers)
    seconds = math.fsum(shares.values())
    return CnnStep(seconds, shares, gpus * batch / seconds)


def exposed(marks: Sequence[tuple[float, float]], exchange: Exchange, bucket: float, hidden: float = 1.0) -> float:
    """Seconds that the exchange of gradients takes beyond the backward pass.

    Args:
        marks: (seconds from the start of the backward pass, bytes of gradients that are ready then), in order.
        hidden: part of the time between that can be used; 0 sends everything at the end.

    >>> exposed([(1.0, 10.0), (2.0, 10.0)], lambda size: size / 10.0, bucket=10.0)
    1.0
    >>> exposed([(1.0, 10.0), (2.0, 10.0)], lambda size: size / 10.0, bucket=10.0, hidden=0.0)
    2.0
    """
    end = marks[-1][0] if marks else 0.0
    free, filled = 0.0, 0.0
    for at, (when, ready_bytes) in enumerate(marks):
        filled += ready_bytes
        if filled > 0 and (filled >= bucket or at == len(marks) - 1):
            ready = end - hidden * (end - when)
            free = max(free, ready) + exchange(filled)
            filled = 0.0
    return max(0.0, free - end)


def inference(network: Network, batch: int, dtype: str, kernels: Kernels) -> CnnStep:
    """One batch, forward only."""
    shares: dict[str, float] = {}
    count = 0
    for layer in layers_of(network, batch, dtype, training=False):
        for op in kernels_of(layer.forward):
            count += _add(shares, kernels, op)
    waited = max(0.0, _issuing(kernels.software, dtype, count, batch * size(network.input)) - math.fsum(shares.values()))
    shares["host"] = kernels.software.waits + waited
    seconds = math.fsum(shares.values())
    return CnnStep(seconds, shares, batch / seconds)


def _issuing(software: Software, dtype: str, count: int, numbers: int) -> float:
    """Seconds of the host beside the GPU: each kernel issued, or each number of the inputs made ready."""
    casting = software.casting if BYTES[dtype] < 4 else 1.0
    return max(software.dispatch * casting * count, software.number * numbers)


def _add(shares: dict[str, float], kernels: Kernels, op: Kernel) -> int:
    """Add its seconds to those of its kind; how many times the host has to issue something."""
    shares[op.kind] = shares.get(op.kind, 0.0) + kernels.seconds(op)
    return 1
