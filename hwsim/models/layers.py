"""A layer as numbers: the kernels of its forward and backward pass, its parameters, and what it keeps in between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from hwsim.devices import Work
from hwsim.models.convolution import Convolution

Share = Literal["convolution", "matmul", "elementwise", "optimizer"]


@dataclass(frozen=True, slots=True)
class LayerOp:
    """One kernel of a layer.

    convolution: its geometry, where it is one; then `work` is that of the implicit matrix product, and the library may do
    it in another way.
    """

    name: str
    share: Share
    work: Work
    convolution: Convolution | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer for a batch of some size.

    Args:
        shape: channels, height and width of one example's output.
        parameters: that it learns; each has a gradient.
        tensors: arrays that they come in.
        kept: bytes that the backward pass needs of the forward pass.
    """

    name: str
    shape: tuple[int, int, int]
    forward: tuple[LayerOp, ...]
    backward: tuple[LayerOp, ...]
    parameters: int = 0
    tensors: int = 0
    kept: float = 0.0

    @property
    def flop(self) -> float:
        """Of convolutions and matrix products, forward."""
        return math.fsum(op.work.flop for op in self.forward if op.work.mix == "matmul")
