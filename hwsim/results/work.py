"""The amount of work of a run; times of two runs are comparable only for equal work.

    train:      samples or tokens of all steps
    infer:      requests (at their arrival rate, if arrivals set it) and generated tokens
    pipeline:   samples, or batches if their size is not given
    other ops   FLOP, accesses (increments, messages), bytes of accesses and copies; stated seconds of `busy`

Bytes of collectives and of messages between ranks are excluded, because they depend on the chosen algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.demand import Cost
from hwsim.families_interface import family_reports
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
COME: Final = "arrivals"  # unit of a rate that does not depend on the machine
UNCOUNTED: Final = frozenset({OPS_DONE, STATED})  # units whose rate does not measure speed


class WorkAmount(NamedTuple):
    """An amount of work.

    Args:
        unit: unit of the amount.
        amount: amount.
        per_s: rate per second in steady state.
    """

    unit: str
    amount: float
    per_s: float


def work_of(result: Result) -> tuple[WorkAmount, ...]:
    """Return the amounts of work, most specific unit first; last the stated seconds and the number of ops on devices."""
    counted = _counted(result.simulated)
    done = _work(result, OPS_DONE, counted.done)
    return tuple(work for work in (*(_settled(result) or _ops(result, counted)), done) if work.amount > 0)


def _settled(result: Result) -> list[WorkAmount]:
    """Return the work counted by a family of the workload; empty without one."""
    found = ([WorkAmount(*row) for row in facts.work(result)] for facts in family_reports(result))
    return next(filter(None, found), [])


def _work(result: Result, unit: str, amount: float) -> WorkAmount:
    makespan = result.simulated.makespan_fs / FEMTO
    return WorkAmount(unit, amount, amount / makespan if makespan > 0 else 0.0)


def _ops(result: Result, counted: _Counted) -> Iterator[WorkAmount]:
    costs = result.simulated.flat.graph.costs
    totals = {"FLOP": 0.0, "accesses": 0.0, "B": 0.0}
    for number, count, is_copy in counted.by_cost:
        cost = costs[number]
        if is_copy:
            totals["B"] += count * _most(cost, "B")
        elif cost.requests is not None:
            totals["accesses"] += count * cost.requests.count
            totals["B"] += count * cost.requests.count * cost.requests.size
        else:
            totals["accesses"] += count * _most(cost, "1")
            totals["FLOP"] += count * math.fsum(amount for _, amount, unit in cost.moved if unit == "FLOP")
    for unit, amount in {**totals, STATED: _stated(result.simulated, counted)}.items():
        yield _work(result, unit, amount)


class _Counted(NamedTuple):
    """Ops by cost.

    Args:
        done: number of ops on devices.
        by_cost: (cost number, number of ops, whether they are copies).
        often: number of `busy` ops by cost.
        busy: op numbers of `busy` ops.
        many: number of ops that each of them represents.
    """

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
    represented = weights(timeline)
    sizes = flat.size * represented
    rows: list[tuple[int, float, bool]] = []
    for chosen, is_copy in ((counted & ~copied, False), (counted & copied, True)):
        times = np.bincount(flat.cost[chosen], sizes[chosen])
        rows += [(number, float(times[number]), is_copy) for number in np.flatnonzero(times).tolist()]
    busy = _among(flat, [number for number, kind, _ in labels if kind == "busy"])
    often = np.bincount(flat.cost[busy & counted], sizes[busy & counted]).tolist()
    return _Counted(float(represented[on_devices].sum()), tuple(rows), tuple(often), np.flatnonzero(busy), represented[busy])


def _stated(timeline: Timeline, counted: _Counted) -> float:
    """Return the seconds that `busy` states: the amount drawn from shared devices, the time itself on others."""
    alone = ticks.total(ticks.multiply(timeline.flat.time[counted.busy], counted.many)) / FEMTO
    drawn = zip(counted.often, timeline.flat.graph.costs, strict=False)
    return math.fsum([alone, *(times * amount for times, cost in drawn if times for _, amount in cost.demand.amounts)])


def _among(flat: FlatGraph, labels: Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of the ops with one of these labels."""
    chosen = np.zeros(len(flat.graph.labels), np.bool_)
    chosen[labels] = True
    return chosen[flat.label]


def _most(cost: Cost, unit: str) -> float:
    """Return the largest amount in this unit drawn from one capacity."""
    return max((amount for _, amount, its_unit in cost.moved if its_unit == unit), default=0.0)
