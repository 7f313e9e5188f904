"""`adapters:` narrow matrices next to the model's own (LoRA), one set for each customer; a request has one set.

adapters: {count: 32, rank: 16}
adapters: {count: 200, rank: 8, skew: 1}
adapters: {count: 2000, rank: 16, skew: 1, slots: 32}

Each linear map of a layer has two, one from its input to `rank` numbers and one from these to its output; in layers with
experts only the maps of attention have them. All adapters stay in the memory of the GPUs, or with `slots` in the host's: those
that requests under way have are on the GPUs, and one that is not there is loaded over the machine's links first.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from hwsim import ticks
from hwsim.families.serving.workload.offload import host_near
from hwsim.formats import format_quantity
from hwsim.machine import Machine, NoRoute
from hwsim.models.architectures import Transformer
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, field, place_field
from hwsim.units import BYTES
from hwsim.workload.load.draws import Draws, Uniform
from hwsim.workload.load.numbers import falling, stream
from hwsim.workload.programs import memory_of


@dataclass(frozen=True, slots=True)
class AdapterKeys:
    """Adapters of a model (LoRA)."""

    count: int = field("how many", minimum=1, example="32")
    rank: int = field("width of their inner side", minimum=1, example="16")
    skew: float = field(
        "of the requests: the share of the n-th adapter falls as n to the power of -skew; 0: all alike", default=0.0, minimum=0.0
    )
    slots: int | None = field(
        "that each copy's GPUs have room for at once; the others are in the host's memory (default: all are on the GPUs)",
        default=None, minimum=1, example="8",
    )  # fmt: skip
    place: Place = place_field()


@dataclass(frozen=True)
class Adapters:
    """Adapters on each GPU.

    Args:
        maps: (numbers in, numbers out, parts, times) of linear maps that read the same, as a GPU has them.
        width: bytes of a number. slots: of them on the GPUs of a copy at once, None for all; load: fs until one is there.
        draws: which adapter a request has.
    """

    count: int
    rank: int
    skew: float
    maps: tuple[tuple[float, float, int, int], ...]
    width: float
    slots: int | None = None
    load: int = 0
    draws: Draws | None = None

    @property
    def size(self) -> float:
        """Bytes of those that are on each GPU."""
        return (self.slots or self.count) * self.each

    @property
    def each(self) -> float:
        """Bytes of one on each GPU."""
        return self.rank * self.width * math.fsum((parts * into + out) * times for into, out, parts, times in self.maps)

    @cached_property
    def _ends(self) -> list[float]:
        ends: list[float] = np.cumsum(self.shares).tolist()  # count
        return ends

    def of(self, number: int) -> int:
        """The adapter of a request."""
        return 0 if self.draws is None else min(bisect_right(self._ends, self.draws.at(number)), self.count - 1)

    @cached_property
    def shares(self) -> np.ndarray:
        """Part of the requests of each."""
        return falling(self.count, self.skew)

    def distinct(self, requests: int) -> float:
        """Adapters that a number of requests have among them, in the mean.

        >>> [round(Adapters(4, 8, 0.0, (), 2.0).distinct(requests), 6) for requests in (1, 2)]
        [1.0, 1.75]
        """
        if self.count == 1 or not requests:
            return min(1.0, float(requests))
        many = math.fsum(1.0 if share >= 1 else -math.expm1(requests * math.log1p(-share)) for share in self.shares.tolist())
        return many if self.slots is None else min(many, float(self.slots))


def adapters_of(keys: AdapterKeys, model: Transformer, tp: int, dtype: str, seed: int, mistakes: Mistakes) -> Adapters | None:
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
    slots = None if keys.slots is None or keys.slots >= keys.count else keys.slots
    draws = Draws(stream(seed, "adapters"), Uniform(0.0, 1.0))
    return Adapters(keys.count, keys.rank, keys.skew, tuple(maps), BYTES[dtype], slots, 0, draws)


def loaded(adapters: Adapters, machine: Machine, copies: Sequence[Sequence[str]], place: Place, mistakes: Mistakes) -> Adapters:
    """The same with the time that one takes from the host to the GPUs of a copy, the slowest of all."""
    seconds = 0.0
    try:
        hosts = [host_near(machine, gpus[0]) for gpus in copies]
        for host, gpus in zip(hosts, copies, strict=True):
            costs = [machine.transfer(host, gpu, adapters.each).demand for gpu in gpus]
            shared: dict[str, float] = {}
            for name, amount in (drawn for demand in costs for drawn in demand.amounts):
                shared[name] = shared.get(name, 0.0) + amount / machine.rates()[name]
            alone = max(demand.alone(machine.rates()) for demand in costs)
            seconds = max(seconds, alone, *shared.values())
    except (NoRoute, ValueError):
        mistakes.add(place, "no host's memory is connected to the GPUs", "leave out `slots`: all adapters are on the GPUs")
        return adapters
    wanted = adapters.count * adapters.each * len(copies[0])
    for host in dict.fromkeys(hosts):
        size = memory_of(machine, host)
        if size is not None and wanted > size:
            text = f"the adapters take {format_quantity(wanted, 'B')} on {host}, which has {format_quantity(size, 'B')}"
            mistakes.add(place, text, "a smaller `count` or `rank`")
            break
    return replace(adapters, load=ticks.femtoseconds(seconds))
