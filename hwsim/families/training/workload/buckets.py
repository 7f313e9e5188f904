"""Gradient buckets: which layers fill them, and the all-reduce of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hwsim.communication.flows import Flows
from hwsim.families.training.workload.plan import Buckets
from hwsim.models.exchanges import Exchanges
from hwsim.models.layer import Layer
from hwsim.models.numbered import Names
from hwsim.ops.exchange import AUTO, chosen
from hwsim.spec import Mistakes


def filled(layers: Sequence[Layer], buckets: Buckets) -> Iterator[tuple[int, float]]:
    """Yield (index of the last layer, parameters) of each bucket; `layers` are in the order of the backward pass."""
    parameters: float = 0
    for index, layer in enumerate(layers):
        parameters += layer.parameters
        if parameters and (parameters * buckets.bytes >= buckets.size or index == len(layers) - 1):
            yield index, parameters
            parameters = 0


def all_reduce(exchanging: Exchanges, buckets: Buckets, devices: Names, parameters: float) -> Flows:
    """Return the flows of the all-reduce of one bucket.

    Raises:
        CannotCollect, NoRoute, UnknownName: as for any collective.
    """
    stated = buckets.algorithm
    algorithm = None if stated is None or stated.value == AUTO else chosen(stated, Mistakes())
    return exchanging.flows("all-reduce", devices, parameters * buckets.bytes, algorithm, named=stated is not None)


def all_reduced(exchanging: Exchanges, buckets: Buckets, devices: Names, layers: Sequence[Layer]) -> Iterator[Flows]:
    """Yield the flows of the all-reduce of each bucket of a model."""
    learning = [layer for layer in reversed(layers) if layer.parameters]
    return (all_reduce(exchanging, buckets, devices, parameters) for _, parameters in filled(learning, buckets))
