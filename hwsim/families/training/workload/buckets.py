"""Gradient buckets: which layers fill them, and the all-reduce of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hwsim.communication.flows import Flows
from hwsim.families.training.workload.plan import BucketExchange
from hwsim.models.capacity_amounts import Names
from hwsim.models.exchanges import CollectiveCosts
from hwsim.models.layer import Layer
from hwsim.ops.exchange import AUTO, read_algorithm
from hwsim.spec import Mistakes


def fill_buckets(layers: Sequence[Layer], buckets: BucketExchange) -> Iterator[tuple[int, float]]:
    """Yield (index of the last layer, parameters) of each bucket; `layers` are in the order of the backward pass."""
    parameters: float = 0
    for index, layer in enumerate(layers):
        parameters += layer.parameters
        if parameters and (parameters * buckets.bytes >= buckets.size or index == len(layers) - 1):
            yield index, parameters
            parameters = 0


def all_reduce(exchanging: CollectiveCosts, buckets: BucketExchange, devices: Names, parameters: float) -> Flows:
    """Return the flows of the all-reduce of one bucket.

    Raises:
        CannotCollect, NoRoute, UnknownName: as for any collective.
    """
    stated = buckets.algorithm
    algorithm = None if stated is None or stated.value == AUTO else read_algorithm(stated, Mistakes())
    return exchanging.flows("all-reduce", devices, parameters * buckets.bytes, algorithm, named=stated is not None)


def bucket_all_reduces(
    exchanging: CollectiveCosts, buckets: BucketExchange, devices: Names, layers: Sequence[Layer]
) -> Iterator[Flows]:
    """Yield the flows of the all-reduce of each bucket of a model."""
    learning = [layer for layer in reversed(layers) if layer.parameters]
    return (all_reduce(exchanging, buckets, devices, parameters) for _, parameters in fill_buckets(learning, buckets))
