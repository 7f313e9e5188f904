"""The work of a run; the time of two runs compares only where their work is equal.

    train:      samples or tokens of all steps
    infer:      requests, as they come where arrivals set their rate, and tokens written
    pipeline:   samples, or batches where their size is not given
    other ops   FLOP, accesses (increments, messages), bytes of accesses and copies; seconds that `busy` states

Bytes of collectives and of messages between ranks are left out: they are another algorithm's answer to the same question.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.demand import Cost
from hwsim.doors import facts_of
from hwsim.graph.flat import FlatGraph
from hwsim.ops import OPS
from hwsim.ops.exchange import ExchangeOp
from hwsim.results.cause import HOST
from hwsim.results.ops import weights
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

AMONG: Final = frozenset(
    {"send", *(kind for kind, op in OPS.items() if issubclass(op, ExchangeOp))}
)  # kinds of ops between ranks
OPS_DONE: Final = "ops"
STATED: Final = "busy_s"
COME: Final = "arrivals"  # their rate says nothing of the machine
UNCOUNTED: Final = frozenset({OPS_DONE, STATED})  # amounts of which no rate says how fast a run is


class Work(NamedTuple):
    """An amount of work, and its rate per second once the run had settled."""

    unit: str
    amount: float
    per_s: float


def work_of(result: Result) -> tuple[Work, ...]:
    """Amounts of work, the most specific unit first; last seconds that are stated, and the number of ops on devices."""
    done = _work(result, OPS_DONE, _counted(result.simulated).done)
    return tuple(work for work in (*(_settled(result) or _ops(result)), done) if work.amount > 0)


def _settled(result: Result) -> list[Work]:
    """Work that a form of the workload counts."""
    found = ([Work(*each) for each in facts.work(result)] for facts in facts_of(result))
    return next(filter(None, found), [])


def _work(result: Result, unit: str, amount: float) -> Work:
    makespan = result.simulated.makespan_fs / FEMTO
    return Work(unit, amount, amount / makespan if makespan > 0 else 0.0)


def _ops(result: Result) -> Iterator[Work]:
    costs, counted = result.simulated.flat.graph.costs, _counted(result.simulated)
    totals = {"FLOP": 0.0, "accesses": 0.0, "B": 0.0}
    for number, many, is_copy in counted.by_cost:
        cost = costs[number]
        if is_copy:
            totals["B"] += many * _most(cost, "B")
        elif cost.requests is not None:
            totals["accesses"] += many * cost.requests.count
            totals["B"] += many * cost.requests.count * cost.requests.size
        else:
            totals["accesses"] += many * _most(cost, "1")
            totals["FLOP"] += many * math.fsum(amount for _, amount, unit in cost.moved if unit == "FLOP")
    for unit, amount in {**totals, STATED: _stated(result.simulated, counted)}.items():
        yield _work(result, unit, amount)


class _Counted(NamedTuple):
    """Ops on devices; for each cost the number of its ops, and whether they are copies; `busy` by cost, and its ops."""

    done: float
    by_cost: tuple[tuple[int, float, bool], ...]
    often: tuple[float, ...]
    busy: NDArray[np.int64]
    many: NDArray[np.int64]


def _counted(timeline: Timeline) -> _Counted:
    flat = timeline.flat
    labels = [(number, label.kind, label.device) for number, label in enumerate(flat.graph.labels)]
    on_devices = _among(flat, [number for number, kind, device in labels if device and kind not in {*HOST, *AMONG}])
    copied = _among(flat, [number for number, kind, _ in labels if kind == "copy"])
    counted = (flat.cost >= 0) & ~_among(flat, [number for number, kind, _ in labels if kind in AMONG])
    many = weights(timeline)
    sizes = flat.size * many
    rows: list[tuple[int, float, bool]] = []
    for chosen, is_copy in ((counted & ~copied, False), (counted & copied, True)):
        times = np.bincount(flat.cost[chosen], sizes[chosen])
        rows += [(number, float(times[number]), is_copy) for number in np.flatnonzero(times).tolist()]
    busy = _among(flat, [number for number, kind, _ in labels if kind == "busy"])
    often = np.bincount(flat.cost[busy & counted], sizes[busy & counted]).tolist()
    return _Counted(float(many[on_devices].sum()), tuple(rows), tuple(often), np.flatnonzero(busy), many[busy])


def _stated(timeline: Timeline, counted: _Counted) -> float:
    """Seconds that `busy` states: of shared devices what its costs draw, of others the time itself."""
    alone = ticks.total(ticks.multiply(timeline.flat.time[counted.busy], counted.many)) / FEMTO
    drawn = zip(counted.often, timeline.flat.graph.costs, strict=False)
    return math.fsum([alone, *(times * amount for times, cost in drawn if times for _, amount in cost.demand.amounts)])


def _among(flat: FlatGraph, labels: Sequence[int]) -> NDArray[np.bool_]:
    """The ops with one of these labels."""
    chosen = np.zeros(len(flat.graph.labels), np.bool_)
    chosen[labels] = True
    return chosen[flat.label]


def _most(cost: Cost, unit: str) -> float:
    """The largest amount in this unit behind one capacity."""
    return max((amount for _, amount, its_unit in cost.moved if its_unit == unit), default=0.0)
