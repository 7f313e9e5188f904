"""How much a run did: the time of two runs compares only where both did the same.

    train:      samples or tokens of all steps
    infer:      requests
    pipeline:   samples, or batches where their size is not given
    other ops   FLOP, accesses (increments, messages), bytes of accesses and copies

Bytes of collectives and of messages between ranks are left out: they are another algorithm's answer to the same question.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from hwsim.demand import Cost
from hwsim.ops import OPS
from hwsim.ops.exchange import ExchangeOp
from hwsim.results.ops import weights
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO
from hwsim.views.explain.cause import HOST
from hwsim.views.explain.starving import pipelines

AMONG: Final = frozenset(
    {"send", *(kind for kind, op in OPS.items() if issubclass(op, ExchangeOp))}
)  # kinds of ops between ranks
OPS_DONE: Final = "ops"
SAME: Final = 0.01  # amounts this near each other are the same work


class Work(NamedTuple):
    """An amount of work, and how much of it was done a second once the run had settled."""

    unit: str
    amount: float
    per_s: float


def work_of(result: Result) -> tuple[Work, ...]:
    """What a run did, the most telling first; last the number of its ops on devices, for runs that count nothing else."""
    return tuple(each for each in (*(_settled(result) or _ops(result)), _count(result)) if each.amount > 0)


def differing(works: Sequence[tuple[Work, ...]]) -> str:
    """The unit in which runs did different amounts of work; "" if they did the same, or nothing that all of them did is counted.

    >>> differing([(Work("samples", 64, 10),), (Work("samples", 128, 15),)])
    'samples'
    """
    for unit in [each.unit for each in works[0] if each.unit != OPS_DONE] if works else ():
        amounts = [each.amount for one in works for each in one if each.unit == unit]
        if len(amounts) == len(works) and max(amounts) > (1 + SAME) * min(amounts):
            return unit
    return ""


def _settled(result: Result) -> list[Work]:
    """Work that a form of the workload counts."""
    if result.trainings:
        unit = result.trainings[0].unit
        alike = [each for each in result.trainings if each.unit == unit]
        unit = unit if unit == "tokens" else "samples"  # images, sequences, ...
        return [Work(unit, math.fsum(each.count * each.steps for each in alike), math.fsum(each.rate for each in alike))]
    if result.serving:
        served = result.serving
        return [Work("requests", math.fsum(each.requests for each in served), math.fsum(each.requests_per_s for each in served))]
    if lines := pipelines(result.timeline):
        known = all(line.batch for line in lines)
        found = [(line.batch if known else 1, line.whole.batches, (line.epochs or (line.whole,))[-1].rate) for line in lines]
        return [
            Work(
                "samples" if known else "batches",
                math.fsum(n * size for size, n, _ in found),
                math.fsum(n * r for n, _, r in found),
            )
        ]
    return []


def uncounted(works: Sequence[tuple[Work, ...]]) -> tuple[float, float] | None:
    """The least and the most ops of runs that count nothing else and did different numbers of them."""
    amounts = [one[0].amount for one in works if len(one) == 1 and one[0].unit == OPS_DONE]
    return (min(amounts), max(amounts)) if len(amounts) == len(works) > 0 and max(amounts) > (1 + SAME) * min(amounts) else None


def _count(result: Result) -> Work:
    flat, makespan = result.timeline.flat, result.timeline.makespan_fs / FEMTO
    on_devices = [number for number, label in enumerate(flat.graph.labels) if label.device and label.kind not in HOST]
    done = float(weights(result.timeline)[np.isin(flat.label, on_devices)].sum())
    return Work(OPS_DONE, done, done / makespan if makespan > 0 else 0.0)


def _ops(result: Result) -> Iterator[Work]:
    flat = result.timeline.flat
    makespan = result.timeline.makespan_fs / FEMTO
    copies = [number for number, label in enumerate(flat.graph.labels) if label.kind == "copy"]
    others = [number for number, label in enumerate(flat.graph.labels) if label.kind in AMONG]
    copied, counted = np.isin(flat.label, copies), (flat.cost >= 0) & ~np.isin(flat.label, others)
    sizes = flat.size * weights(result.timeline)
    found = {"FLOP": 0.0, "accesses": 0.0, "B": 0.0}
    for chosen, is_copy in ((counted & ~copied, False), (counted & copied, True)):
        times = np.bincount(flat.cost[chosen], sizes[chosen], len(flat.graph.costs))
        for number in np.flatnonzero(times).tolist():
            cost, many = flat.graph.costs[number], float(times[number])
            if is_copy:
                found["B"] += many * _most(cost, "B")
            elif cost.requests is not None:
                found["accesses"] += many * cost.requests.count
                found["B"] += many * cost.requests.count * cost.requests.size
            else:
                found["accesses"] += many * _most(cost, "1")
                found["FLOP"] += many * math.fsum(amount for _, amount, unit in cost.moved if unit == "FLOP")
    for unit, amount in found.items():
        yield Work(unit, amount, amount / makespan if makespan > 0 else 0.0)


def _most(cost: Cost, unit: str) -> float:
    """The largest amount in this unit behind one capacity."""
    return max((amount for _, amount, each in cost.moved if each == unit), default=0.0)
