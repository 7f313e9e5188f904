"""A multilayer perceptron (MLP) defined by the widths of its layers.

    hwsim: model/1
    kind: mlp
    units: [784, 256, 10]

Parameters: the sum over its layers of units in x units out, plus units out for the biases.

**Source**: Zhang et al., "Dive into Deep Learning", chapter 4.
**Error**: none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hwsim.models.architectures.entries import Activation, Linear, Shape
from hwsim.models.architectures.network import FeedForwardNetwork
from hwsim.models.architectures.units import NetworkExpansion, NetworkUnit
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Mlp(FeedForwardNetwork):
    """A multilayer perceptron (MLP): consecutive linear layers.

    >>> Mlp(units=(784, 256, 10)).parameters
    203530
    """

    kind: ClassVar[str] = "mlp"

    units: tuple[int, ...] = field("widths of the input, each hidden layer and the output", minimum=1, example="[784, 256, 10]")
    activation: Activation = field("activation after each hidden layer", default="relu")
    bias: bool = field("bias of each unit", default=True)
    dropout: bool = field("dropout of the hidden layers' outputs in training", default=False)

    def problems(self) -> Iterator[Problem]:
        if len(self.units) < 2:
            yield "units", "`units`: expected at least an input and an output width", "units: [784, 256, 10]"

    @property
    def input(self) -> Shape:
        return self.units[0], 1, 1

    def chain(self) -> tuple[NetworkUnit, ...]:
        """Return the network's units in order."""
        walk, shape = NetworkExpansion(False, self.activation), self.input
        for index, units in enumerate(self.units[1:], start=1):
            last = index == len(self.units) - 1
            linear = Linear(units=units, bias=self.bias, activation="none" if last else None, dropout=self.dropout and not last)
            shape = walk.linear(linear, shape, f"{index}.linear")
        return tuple(walk.found)
