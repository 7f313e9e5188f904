"""The layers of a model, whatever its architecture: the kernels and exchanges of each pass, its parameters, what it keeps.

    layers = transformer_layers(model, part, ...)      # hwsim/models/architectures: one file of layers for each architecture
    layers = layers_of(network, batch, dtype)

A `Layer` is what one GPU does for one micro-batch. The closed forms sum layers, the op graph plays them, and serving takes
their forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hwsim.devices import Work
from hwsim.devices.convolution import Convolution
from hwsim.records import dataclass

Kind = Literal["convolution", "matmul", "attention", "elementwise", "cast", "output", "optimizer"]
Axis = Literal["tp", "cp", "ep", "pp", "dp"]
Operation = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a layer, `times` times.

    Args:
        kind: the kind of work, by which the seconds of a step are summed.
        work: its operations and bytes; a convolution has them from the implicit matrix product.
        shape: geometry of a convolution, which the library may compute in another way.
        across: elements of a row that one block of threads walks along; 0 if it does not matter.
    """

    name: str
    kind: Kind
    work: Work
    times: float = 1.0
    shape: Convolution | None = None
    across: int = 0

    @property
    def flash(self) -> bool:
        """Whether it is fused attention."""
        return self.work.attention is not None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective among the GPUs of an axis, or a message between them, `times` times.

    Args:
        size: bytes of one rank's whole array, as nccl-tests count; of a send, of the message.
        exposed: part of its time that nothing hides.
        received, sent: bytes of the first rank of an all-to-all over the mean; the others share the rest equally.
    """

    name: str
    operation: Operation
    axis: Axis
    size: float
    exposed: float = 1.0
    times: float = 1.0
    received: float = 1.0
    sent: float = 1.0


Item = Kernel | Exchange


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer, `times` times, as one GPU computes it for one micro-batch.

    Args:
        forward, backward: kernels and exchanges in their order; recompute: those that backward repeats before it begins.
        parameters: that this GPU has of it, before any sharding; each has a gradient.
        tensors: arrays that the parameters come in.
        kept_bytes: that the backward pass needs of the forward pass.
        output_bytes: bytes of its result, which the next layer takes.
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
    """The kernels among them."""
    return tuple(item for item in items if isinstance(item, Kernel))


def exchanges(items: Iterable[Item]) -> tuple[Exchange, ...]:
    """The exchanges among them."""
    return tuple(item for item in items if isinstance(item, Exchange))
