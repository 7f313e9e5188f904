"""Rates of ops: bytes or FLOP per second, and accesses per second.

amount  bytes of its accesses per second of its time; of a collective that takes its library's time, its busbw as
        nccl-tests define it; else bytes or FLOP of the capacity that bounds it; else its FLOP, or the bytes of the copy.
count   accesses, increments or messages per second of that time.
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


def sizes(timeline: Timeline, ops: Ints, many: Ints) -> Iterator[tuple[int, float]]:
    """(cost, number of times) of these ops; an op counts as many times as it represents ops."""
    flat = timeline.flat
    costs, where = np.unique(flat.cost[ops], return_inverse=True)
    sizes = np.bincount(where, weights=flat.size[ops] * many)
    yield from ((number, size) for number, size in zip(costs.tolist(), sizes.tolist(), strict=True) if number >= 0)


class Rates(NamedTuple):
    """Amounts per second of some ops in `unit` (B/s or FLOP/s); per_s: accesses. 0 where nothing is counted."""

    amount: float = 0.0
    unit: str = "B/s"
    per_s: float = 0.0


def rates(costs: Sequence[tuple[Cost, float]], seconds: float, cause: Cause) -> Rates:
    """The rates of ops with these costs, each so many times, that took these seconds together.

    cause: their longest.
    """
    accessed = counted = 0.0
    named = cause.name.translate(_DIGITS)
    carried: list[list[tuple[bool, bool, float, Unit]]] = []  # of each cost: elsewhere than at the cause, is_bytes, amount, unit
    for cost, size in costs:
        if cost.requests is not None:
            accessed += size * cost.requests.count * cost.requests.size
            counted += size * cost.requests.count
        else:
            counted += size * max((amount for _, amount, unit in cost.moved if unit == "1"), default=0.0)
        largest: dict[tuple[Unit, str], float] = {}
        for capacity, amount, unit in cost.moved:  # one of like members on a route over several
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
        return Rates()
    if accessed > 0:
        return Rates(accessed / seconds, per_s=counted / seconds)
    if cause.line == "flow" and all(cost.exchange is not None for cost, _ in costs):
        passed = math.fsum(size * cost.exchange.passed for cost, size in costs if cost.exchange is not None)
        return Rates(passed / seconds, per_s=counted / seconds)
    best = [min(amounts) for amounts in carried if amounts]
    if not best:
        return Rates(per_s=counted / seconds)
    *_, unit = min(best)
    amount = math.fsum(
        min(each for each in amounts if each[3] == unit)[2] for amounts in carried if unit in {each[3] for each in amounts}
    )
    return Rates(amount / seconds, f"{unit}/s", counted / seconds)
