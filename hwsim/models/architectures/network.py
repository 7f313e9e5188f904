"""Base class of architectures without tokens: one example in, one result out. Layers follow from the units."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import ClassVar

from hwsim.models.architectures.entries import Shape
from hwsim.models.architectures.units import NetworkUnit
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.mistakes import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForwardNetwork:
    """A network defined by its units. Architectures add the keys of their file, `input` and `chain`."""

    kind: ClassVar[str]

    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def input(self) -> Shape:
        """Shape of one example: channels, height, width."""
        raise NotImplementedError

    def chain(self) -> tuple[NetworkUnit, ...]:
        """Return the units in order.

        Raises:
            WrongNetwork: the layers do not fit together.
        """
        raise NotImplementedError

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) of contradicting keys."""
        yield from ()

    @property
    def parameters(self) -> int:
        return sum(unit.parameters for unit in self.chain())

    @property
    def forward_flop(self) -> float:
        """FLOP of one example's forward pass; a multiply-add counts as two."""
        return math.fsum(unit.flop for unit in self.chain())
