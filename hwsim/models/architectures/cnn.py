"""A convolutional neural network (CNN) defined by its layers: shapes, parameters and FLOP.

    hwsim: model/1
    kind: cnn
    input: [3, 224, 224]
    norm: true
    layers:
      - conv: {channels: 64, kernel: 7, stride: 2}
      - pool: {kernel: 3, stride: 2, padding: 1}
      - bottleneck: {channels: 64, times: 3}
      - linear: {units: 1000, activation: none}

Each entry has one key. A convolution is followed by a batch norm and an activation according to the network's `norm` and
`activation`, unless the entry sets them. Its parameters are channels_out x channels_in / groups x kernel, plus its bias or the
two parameters of its norm. Its FLOP are 2 x channels_out x channels_in / groups x kernel x pixels of the result.

**Source**: He et al., arXiv:1512.03385 (residual blocks); Xie et al., arXiv:1611.05431 (groups); Hu et al., arXiv:1709.01507
(squeeze and excitation); Szegedy et al., arXiv:1512.00567 (branches).
**Error**: none: the parameter counts of `workloads/models` equal the published ones.
**Range**: images as input, classes as output; no dilation, no transposed convolutions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hwsim.models.architectures.entries import Activation, Entry
from hwsim.models.architectures.network import FeedForwardNetwork
from hwsim.models.architectures.units import NetworkExpansion, NetworkUnit, WrongNetwork
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Cnn(FeedForwardNetwork):
    """A convolutional neural network (CNN)."""

    kind: ClassVar[str] = "cnn"

    input: tuple[int, int, int] = field("channels, height and width of the input image", minimum=1)
    norm: bool = field("batch norm after each convolution, unless its own `norm` differs", default=False)
    activation: Activation = field("default activation of convolutions and linear layers", default="relu")
    layers: tuple[Entry, ...] = field("layers, in order from the input image to the class scores")

    def problems(self) -> Iterator[Problem]:
        try:
            self.chain()
        except WrongNetwork as error:
            yield "layers", str(error), None

    def chain(self) -> tuple[NetworkUnit, ...]:
        """Return the network's units in order.

        Raises:
            WrongNetwork: the layers do not fit together.
        """
        walk = NetworkExpansion(self.norm, self.activation)
        walk.entries(self.layers, self.input, "")
        return tuple(walk.found)
