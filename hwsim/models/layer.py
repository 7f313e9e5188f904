"""Layers of a model of any architecture: kernels and exchanges of each pass, parameters, and bytes kept for backward.

    layers = transformer_layers(model, part, ...)      # hwsim/models/architectures: one module of layers for each architecture
    layers = layers_of(network, batch, dtype)

A `Layer` is the work of one GPU for one micro-batch. The closed forms sum layers, the simulator turns them into an op graph, and
serving uses their forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from hwsim.devices import Work
from hwsim.devices.convolution import ConvolutionPass
from hwsim.records import dataclass

Kind = Literal["convolution", "matmul", "attention", "elementwise", "cast", "output", "optimizer"]
Axis = Literal["tp", "cp", "ep", "pp", "dp"]
Operation = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a layer that runs `times` times.

    Args:
        kind: kind of work; the seconds of a step are summed by kind.
        work: FLOP and bytes; for a convolution, those of the implicit GEMM.
        shape: geometry of a convolution, for which the library may choose another algorithm.
        across: elements of a row that one thread block iterates over; 0 if irrelevant.
    """

    name: str
    kind: Kind
    work: Work
    times: float = 1.0
    shape: ConvolutionPass | None = None
    across: int = 0

    @property
    def flash(self) -> bool:
        """Whether the kernel is fused (flash) attention."""
        return self.work.attention is not None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective among the GPUs of a parallel axis, or a message between them, executed `times` times.

    Args:
        size: bytes of one rank's whole array, as in nccl-tests; for a send, bytes of the message.
        exposed: exposed share of the time.
        received, sent: bytes of the first rank of an all-to-all, relative to the average; the other ranks share the rest equally.
        copies: experts of a token, if an all-to-all sends it once to each node and GPU with one of them; `size` then counts each
            token once. 0: `size` counts all copies.
    """

    name: str
    operation: Operation
    axis: Axis
    size: float
    exposed: float = 1.0
    times: float = 1.0
    received: float = 1.0
    sent: float = 1.0
    copies: int = 0


Item = Kernel | Exchange


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer as one GPU computes it for one micro-batch, `times` times.

    Args:
        forward: kernels and exchanges of the forward pass, in order.
        recompute: kernels and exchanges that backward repeats before it starts.
        backward: kernels and exchanges of the backward pass, in order.
        parameters: parameters on this GPU before any sharding over replicas; each has a gradient.
        tensors: number of parameter tensors.
        kept_bytes: bytes of the forward pass that backward needs.
        output_bytes: bytes of the result, which is the input of the next layer.
    """

    name: str
    forward: tuple[Item, ...]
    recompute: tuple[Item, ...] = ()
    backward: tuple[Item, ...] = ()
    parameters: float = 0
    tensors: int = 0
    kept_bytes: float = 0.0
    output_bytes: float = 0.0
    times: int = 1


def kernels(items: Iterable[Item]) -> tuple[Kernel, ...]:
    """Return the kernels in a sequence of items."""
    return tuple(item for item in items if isinstance(item, Kernel))


def launches(items: Iterable[Item]) -> float:
    """Return the number of kernels and exchanges that the host launches for a sequence of items."""
    return math.fsum(item.times * (item.work.kernels if isinstance(item, Kernel) else 1) for item in items)


def exchanges(items: Iterable[Item]) -> tuple[Exchange, ...]:
    """Return the exchanges in a sequence of items."""
    return tuple(item for item in items if isinstance(item, Exchange))
