"""`adapters:` narrow matrices next to the model's own (LoRA), one set for each customer; a request has one set.

adapters: {count: 32, rank: 16}
adapters: {count: 200, rank: 8, skew: 1}

Each linear map of a layer has two, one from its input to `rank` numbers and one from these to its output; in layers with
experts only the maps of attention have them. All adapters stay in the memory of the GPUs.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from hwsim.models.architectures import Transformer
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, field, place_field
from hwsim.units import BYTES


@dataclass(frozen=True, slots=True)
class AdapterKeys:
    """Adapters of a model (LoRA), all of them in the memory of the GPUs."""

    count: int = field("how many", minimum=1, example="32")
    rank: int = field("width of their inner side", minimum=1, example="16")
    skew: float = field(
        "of the requests: the share of the n-th adapter falls as n to the power of -skew; 0: all alike", default=0.0, minimum=0.0
    )
    place: Place = place_field()


@dataclass(frozen=True)
class Adapters:
    """Adapters on each GPU.

    Args:
        maps: (numbers in, numbers out, parts, times) of linear maps that read the same, as a GPU has them.
        width: bytes of a number.
    """

    count: int
    rank: int
    skew: float
    maps: tuple[tuple[float, float, int, int], ...]
    width: float

    @property
    def size(self) -> float:
        """Bytes of all of them on each GPU."""
        return (
            self.count * self.rank * self.width * math.fsum((parts * into + out) * times for into, out, parts, times in self.maps)
        )

    @cached_property
    def shares(self) -> np.ndarray:
        """Part of the requests of each."""
        weights = np.arange(1, self.count + 1, dtype=np.float64) ** -self.skew
        found: np.ndarray = weights / weights.sum()
        return found

    def distinct(self, requests: int) -> float:
        """Adapters that a number of requests have among them, in the mean.

        >>> [round(Adapters(4, 8, 0.0, (), 2.0).distinct(requests), 6) for requests in (1, 2)]
        [1.0, 1.75]
        """
        return float(np.sum(-np.expm1(requests * np.log1p(-self.shares)))) if self.count > 1 else min(1.0, float(requests))


def adapters_of(keys: AdapterKeys, model: Transformer, tp: int, dtype: str, mistakes: Mistakes) -> Adapters | None:
    """The adapters that a file asks for; None once its mistakes are noted.

    The inner side of maps that are split by their outputs is whole on every GPU; the outer side of maps that are split by their
    inputs is, as in vLLM.
    """
    maps: list[tuple[float, float, int, int]] = []
    for kind in model.kinds:
        if kind.latent is not None:
            mistakes.add(keys.place, "adapters of latent attention are not modelled", "a model without it, or no adapters")
            return None
        hidden, times = kind.hidden, kind.layers
        wide = [kind.queries, kind.keys, *(() if kind.shared_values else (kind.values,))]
        maps += [(hidden, sum(wide) / tp, len(wide), times), (kind.attended / tp, hidden, 1, times)]  # integers
        if kind.experts == 1:
            maps += [(hidden, kind.gates * kind.of_ffn / tp, kind.gates, times), (kind.of_ffn / tp, hidden, 1, times)]
    return Adapters(keys.count, keys.rank, keys.skew, tuple(maps), BYTES[dtype])
