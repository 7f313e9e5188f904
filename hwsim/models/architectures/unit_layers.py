"""Kernels of a CNN or MLP for a batch: forward, backward and optimizer.

Convolutions and linear layers are matmuls with two more in backward (the first layer needs no input gradient). All other layers
move bytes, in arrays of activations:

    norm        forward reads twice (mean and variance; result), writes once. Backward reads two arrays twice, writes one.
    activation  one read, one written. Backward reads two.
    pool        one read, one written. Backward the same, plus the selected positions.
    add         two read, one written. Backward as much, for two gradients.
    concat      all read and written, in both directions.
    scale       one read and written. Backward two read, one written, and one more for the factors.

Convolutions and linear layers add their biases in their own kernels forward. Backward reads the output gradient once for the
bias.

**Source**: Ioffe and Szegedy, arXiv:1502.03167, algorithms 1 and 2 (norm); Chetlur et al., arXiv:1410.0759.
**Range**: no recomputation; all arrays that backward needs are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from hwsim.devices import MatmulShape, Work
from hwsim.devices.convolution import ConvolutionPass, Pass
from hwsim.models.architectures import FeedForwardNetwork
from hwsim.models.architectures.units import NetworkUnit, size
from hwsim.models.layer import Kernel, Layer
from hwsim.units import BYTES

# (multiples of the input array, multiples of the output array) for: forward reads, forward writes, backward reads, backward
# writes.
_MOVED: Final = {
    "norm": ((2.0, 0.0), (0.0, 1.0), (2.0, 2.0), (1.0, 0.0)),
    "activation": ((1.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0)),
    "pool": ((1.0, 0.0), (0.0, 1.0), (1.0, 2.0), (1.0, 0.0)),
    "add": ((2.0, 0.0), (0.0, 1.0), (2.0, 0.0), (0.0, 1.0)),
    "concat": ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
    "scale": ((1.0, 0.0), (0.0, 1.0), (1.0, 2.0), (1.0, 0.0)),
    "dropout": ((1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 1.0)),
}
# Bytes moved to update a parameter in fp32: weight and gradient read, weight written; momentum, or two moments, read and written.
UPDATED: Final[Mapping[str, float]] = {"sgd": 5.0 * 4.0, "adam": 7.0 * 4.0}


@lru_cache(maxsize=256)
def layers_of(network: FeedForwardNetwork, batch: int, dtype: str, *, training: bool = True) -> tuple[Layer, ...]:
    """Return the layers of a network in order, for `batch` examples at once.

    Args:
        dtype: data type of activations and matmuls.
        training: norms use batch statistics; else they use learnt values, in one pass.
    """
    return tuple(layer_of(unit, batch, dtype, training=training, first=index == 0) for index, unit in enumerate(network.chain()))


def layer_of(unit: NetworkUnit, batch: int, dtype: str, *, training: bool = True, first: bool = False) -> Layer:
    """Return one layer for `batch` examples at once; the `first` layer has no input gradient."""
    ops = tuple(_forward(unit, batch, dtype, training))
    back = tuple(_backward(unit, batch, dtype, first=first)) if training else ()
    again = unit.kind in ("add", "concat", "activation") or unit.name.endswith(".around")  # in place, or kept by another layer
    kept = 0.0 if again or not training else batch * size(unit.into) * BYTES[dtype]
    out = batch * size(unit.out) * BYTES[dtype]
    return Layer(unit.name, ops, (), back, unit.parameters, unit.tensors, kept, out)


def _forward(unit: NetworkUnit, batch: int, dtype: str, training: bool) -> Iterator[Kernel]:
    match unit.kind:
        case "conv":
            yield _convolution(unit, batch, dtype, "forward")
        case "linear":
            yield _linear(unit.name, batch, size(unit.out), size(unit.into), dtype)
        case "dropout" if not training:
            return
        case "norm" if not training:
            yield _mover(unit, batch, dtype, (1.0, 0.0), (0.0, 1.0), "")
        case kind:
            yield _mover(unit, batch, dtype, *_MOVED[kind][:2], "")


def _backward(unit: NetworkUnit, batch: int, dtype: str, *, first: bool) -> Iterator[Kernel]:
    """Yield the input gradient first, because earlier layers wait for it; then weight and bias gradients."""
    match unit.kind:
        case "conv":
            if not first:
                yield _convolution(unit, batch, dtype, "input")
            yield _convolution(unit, batch, dtype, "weights")
        case "linear":
            rows, columns = size(unit.out), size(unit.into)
            if not first:
                yield _linear(f"{unit.name} input", batch, columns, rows, dtype)
            yield _linear(f"{unit.name} weights", columns, rows, batch, dtype)
        case kind:
            yield _mover(unit, batch, dtype, *_MOVED[kind][2:], " backward")
    if unit.tensors == 2 and unit.kind in ("conv", "linear"):
        reads = batch * size(unit.out) * BYTES[dtype]
        yield Kernel(f"{unit.name} bias", "elementwise", Work(reads=reads, dtype=dtype, working_set=reads))


def _convolution(unit: NetworkUnit, batch: int, dtype: str, direction: Pass) -> Kernel:
    shape = ConvolutionPass(
        images=batch,
        channels_in=unit.into[0],
        channels_out=unit.out[0],
        high=unit.out[1],
        wide=unit.out[2],
        kernel=unit.kernel,
        stride=unit.stride,
        size_in=unit.into[1] * unit.into[2],
        groups=unit.groups,
        what=direction,
    )
    name = unit.name if direction == "forward" else f"{unit.name} {direction}"
    return Kernel(name, "convolution", shape.work(dtype), shape=shape)


def _linear(name: str, m: int, n: int, k: int, dtype: str) -> Kernel:
    width = BYTES[dtype]
    work = Work(flop=2.0 * m * n * k, reads=(m * k + k * n) * width, writes=m * n * width, dtype=dtype, mix="matmul",
                product=MatmulShape(m, n, k, element=width))  # fmt: skip
    return Kernel(name, "matmul", work)


def _mover(
    unit: NetworkUnit, batch: int, dtype: str, reads: tuple[float, float], writes: tuple[float, float], suffix: str
) -> Kernel:
    into, out = (batch * size(shape) * BYTES[dtype] for shape in (unit.into, unit.out))
    read, written = reads[0] * into + reads[1] * out, writes[0] * into + writes[1] * out
    return Kernel(unit.name + suffix, "elementwise", Work(reads=read, writes=written, dtype=dtype, working_set=into + out))


def optimizer(layers: tuple[Layer, ...], each: float = UPDATED["sgd"]) -> Kernel:
    """Return the kernel that updates all parameters and moves `each` bytes per parameter."""
    size = sum(layer.parameters for layer in layers) * each
    return Kernel("optimizer", "optimizer", Work(reads=0.6 * size, writes=0.4 * size))


def activation_bytes(layers: tuple[Layer, ...]) -> float:
    """Return the activation bytes kept for backward."""
    return math.fsum(layer.kept_bytes for layer in layers)


@lru_cache(maxsize=256)
def flop_of(network: FeedForwardNetwork) -> float:
    """Return the FLOP of one example's forward pass."""
    return network.forward_flop
