"""Rates of ops: bytes or FLOP per second, and accesses per second.

amount  bytes of the op's accesses / time; for a collective timed by its library, its busbw as in nccl-tests; else bytes or FLOP
of
        the bounding capacity / time; else the op's FLOP, or the bytes of a copy, / time.
count   accesses, increments or messages / time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from hwsim.demand import Cost, Unit
from hwsim.graph.opgraph import Ints
from hwsim.results.cause import Cause
from hwsim.results.timeline import Timeline

_DIGITS: Final = str.maketrans("", "", "0123456789")


def sizes(timeline: Timeline, ops: Ints, counts: Ints) -> Iterator[tuple[int, float]]:
    """Yield (cost number, number of ops) of these ops; an op counts as many times as it represents ops."""
    flat = timeline.flat
    costs, where = np.unique(flat.cost[ops], return_inverse=True)
    sizes = np.bincount(where, weights=flat.size[ops] * counts)
    yield from ((number, size) for number, size in zip(costs.tolist(), sizes.tolist(), strict=True) if number >= 0)


class WorkRates(NamedTuple):
    """Rates of ops; 0 if nothing is counted.

    Args:
        amount: bytes or FLOP per second.
        unit: unit of the amount: B/s or FLOP/s.
        per_s: accesses, increments or messages per second.
    """

    amount: float = 0.0
    unit: str = "B/s"
    per_s: float = 0.0


def rates(costs: Sequence[tuple[Cost, float]], seconds: float, cause: Cause) -> WorkRates:
    """Return the rates of ops.

    Args:
        costs: costs, each with its number of ops.
        seconds: total time of the ops (s).
        cause: longest cause of their time.
    """
    accessed = counted = 0.0
    named = cause.name.translate(_DIGITS)
    carried: list[list[tuple[bool, bool, float, Unit]]] = []  # by cost: (not at the cause, is bytes, amount, unit)
    for cost, size in costs:
        if cost.requests is not None:
            accessed += size * cost.requests.count * cost.requests.size
            counted += size * cost.requests.count
        else:
            counted += size * max((amount for _, amount, unit in cost.moved if unit == "1"), default=0.0)
        largest: dict[tuple[Unit, str], float] = {}
        for capacity, amount, unit in cost.moved:  # a route over several members of a family counts once
            key = unit, capacity.translate(_DIGITS)
            largest[key] = max(largest.get(key, 0.0), size * amount)
        carried.append(
            [
                (capacity != named, unit != "FLOP", amount, unit)
                for (unit, capacity), amount in largest.items()
                if unit in ("B", "FLOP")
            ]
        )
    if seconds <= 0:
        return WorkRates()
    if accessed > 0:
        return WorkRates(accessed / seconds, per_s=counted / seconds)
    if cause.line == "flow" and all(cost.exchange is not None for cost, _ in costs):
        passed = math.fsum(size * cost.exchange.passed for cost, size in costs if cost.exchange is not None)
        return WorkRates(passed / seconds, per_s=counted / seconds)
    best = [min(amounts) for amounts in carried if amounts]
    if not best:
        return WorkRates(per_s=counted / seconds)
    *_, unit = min(best)
    amount = math.fsum(
        min(entry for entry in amounts if entry[3] == unit)[2] for amounts in carried if unit in {entry[3] for entry in amounts}
    )
    return WorkRates(amount / seconds, f"{unit}/s", counted / seconds)
