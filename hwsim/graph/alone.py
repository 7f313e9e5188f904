"""Costs of a graph in columns: how long each takes if nothing else runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hwsim.demand import Cost
from hwsim.graph.opgraph import Floats


def latencies(costs: Sequence[Cost]) -> Floats:
    """Latency of each cost in seconds, and at the end 0, for ops without a cost."""
    return np.array([*(cost.demand.latency for cost in costs), 0.0])


def bodies(costs: Sequence[Cost], rates: Mapping[str, float]) -> Floats:
    """Seconds of each cost after its latency, as `Demand.body` says; 0 at the end, for ops without a cost."""
    seconds = np.array([*(cost.demand.floor for cost in costs), 0.0])
    amounts = [cost.demand.amounts for cost in costs]
    drawn = np.array([amount for each in amounts for _, amount in each], np.float64)
    rate = np.array([rates[name] for each in amounts for name, _ in each], np.float64)
    with np.errstate(over="ignore"):
        np.maximum.at(seconds, np.repeat(np.arange(len(costs)), [len(each) for each in amounts]), drawn / rate)
    return seconds
