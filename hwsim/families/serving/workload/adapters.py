"""`adapters:` LoRA adapters of a served model. Each request uses one adapter.

adapters: {count: 32, rank: 16}
adapters: {count: 200, rank: 8, skew: 1}
adapters: {count: 2000, rank: 16, skew: 1, slots: 32}

An adapter adds two matrices to each linear layer: one from its input to `rank` values, and one from these to its output. In
layers with experts, only the linear layers of attention have adapters. By default all adapters are in GPU memory. With `slots`,
all are in host memory, and only the adapters of running requests must be on the GPUs. A missing adapter is loaded over the
machine's links before its request runs.
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
from hwsim.workload.load.draws import RandomDraws, Uniform
from hwsim.workload.load.numbers import stream, zipf_probabilities
from hwsim.workload.programs import memory_of


@dataclass(frozen=True, slots=True)
class AdapterKeys:
    """LoRA adapters of a served model."""

    count: int = field("number of adapters", minimum=1, example="32")
    rank: int = field("rank of each adapter: inner dimension of its two matrices", minimum=1, example="16")
    skew: float = field(
        "skew of popularity: the n-th adapter has a share of requests proportional to n^-skew (Zipf); 0: equal shares",
        default=0.0, minimum=0.0,
    )  # fmt: skip
    slots: int | None = field(
        "number of adapters in the GPU memory of a replica at once; the others are loaded from host memory when needed"
        " (default: all adapters are on the GPUs)",
        default=None, minimum=1, example="8",
    )  # fmt: skip
    place: Place = place_field()


@dataclass(frozen=True)
class Adapters:
    """The adapters of a model, as distributed over the GPUs of a replica.

    Args:
        count: number of adapters.
        rank: inner dimension of their matrices.
        skew: exponent of their popularity.
        maps: (inputs, outputs, parts, layers) on one GPU of each group of linear layers that share an input.
        width: bytes per value.
        slots: number of adapters on the GPUs of a replica at once; None: all.
        load: time to load one adapter from the host (fs).
        draws: random numbers that choose the adapter of a request.
    """

    count: int
    rank: int
    skew: float
    maps: tuple[tuple[float, float, int, int], ...]
    width: float
    slots: int | None = None
    load: int = 0
    draws: RandomDraws | None = None

    @property
    def size(self) -> float:
        """Bytes of all adapters that are on a GPU at once."""
        return (self.slots or self.count) * self.each

    @property
    def each(self) -> float:
        """Bytes of one adapter on each GPU."""
        return self.rank * self.width * math.fsum((parts * into + out) * times for into, out, parts, times in self.maps)

    @cached_property
    def _cumulative_shares(self) -> list[float]:
        ends: list[float] = np.cumsum(self.shares).tolist()  # count
        return ends

    def of(self, number: int) -> int:
        """Return the index of a request's adapter."""
        return 0 if self.draws is None else min(bisect_right(self._cumulative_shares, self.draws.at(number)), self.count - 1)

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of the requests of each adapter."""
        return zipf_probabilities(self.count, self.skew)

    def distinct(self, requests: int) -> float:
        """Return the expected number of distinct adapters of some requests, at most `slots`.

        >>> [round(Adapters(4, 8, 0.0, (), 2.0).distinct(requests), 6) for requests in (1, 2)]
        [1.0, 1.75]
        """
        if self.count == 1 or not requests:
            return min(1.0, float(requests))
        expected = math.fsum(1.0 if share >= 1 else -math.expm1(requests * math.log1p(-share)) for share in self.shares.tolist())
        return expected if self.slots is None else min(expected, float(self.slots))


def adapters_of(keys: AdapterKeys, model: Transformer, tp: int, dtype: str, seed: int, mistakes: Mistakes) -> Adapters | None:
    """Return the adapters of a file, without their load time; None if they are not valid, which is noted in `mistakes`.

    The matrices are split as in vLLM. For a column-parallel layer, every GPU has the entire first matrix; for a row-parallel
    layer, the entire second one.
    """
    maps: list[tuple[float, float, int, int]] = []
    for kind in model.kinds:
        if kind.latent is not None:
            mistakes.add(keys.place, "LoRA adapters are not modelled for latent attention (MLA)", "leave out `adapters`")
            return None
        hidden, times = kind.hidden, kind.layers
        widths = [kind.queries, kind.keys, *(() if kind.shared_values else (kind.values,))]
        maps += [(hidden, sum(widths) / tp, len(widths), times), (kind.attended / tp, hidden, 1, times)]  # integers
        if kind.experts == 1:
            maps += [(hidden, kind.gates * kind.of_ffn / tp, kind.gates, times), (kind.of_ffn / tp, hidden, 1, times)]
    slots = None if keys.slots is None or keys.slots >= keys.count else keys.slots
    draws = RandomDraws(stream(seed, "adapters"), Uniform(0.0, 1.0))
    return Adapters(keys.count, keys.rank, keys.skew, tuple(maps), BYTES[dtype], slots, 0, draws)


def with_load_time(
    adapters: Adapters, machine: Machine, copies: Sequence[Sequence[str]], place: Place, mistakes: Mistakes
) -> Adapters:
    """Return the adapters with the time to load one from host memory, on the replica where that takes longest."""
    seconds = 0.0
    try:
        hosts = [host_near(machine, gpus[0]) for gpus in copies]
        for host, gpus in zip(hosts, copies, strict=True):
            costs = [machine.transfer(host, gpu, adapters.each).demand for gpu in gpus]
            shared: dict[str, float] = {}
            for name, amount in (pair for demand in costs for pair in demand.amounts):
                shared[name] = shared.get(name, 0.0) + amount / machine.rates()[name]
            alone = max(demand.alone(machine.rates()) for demand in costs)
            seconds = max(seconds, alone, *shared.values())
    except (NoRoute, ValueError):
        mistakes.add(place, "the GPUs have no link to host memory", "leave out `slots`: all adapters are on the GPUs")
        return adapters
    wanted = adapters.count * adapters.each * len(copies[0])
    for host in dict.fromkeys(hosts):
        size = memory_of(machine, host)
        if size is not None and wanted > size:
            text = f"the adapters take {format_quantity(wanted, 'B')} of host memory, but {host} has {format_quantity(size, 'B')}"
            mistakes.add(place, text, "a smaller `count` or `rank`")
            break
    return replace(adapters, load=ticks.femtoseconds(seconds))
