"""Rows of the summary for each kind of op, if a run has few kinds.

    each    mean time of an op from its start to its end, without waiting in a queue.
    rate    bytes of its accesses per second of that time; of a collective that takes its library's time, its busbw as
            nccl-tests count it; else bytes or FLOP of the capacity that limited it; else its FLOP, or the bytes of the copy.
    count/s accesses, increments or messages per second of that time.

The last column is the longest cause of the slowest op; of a served model, of all its ops, as a slow one is many iterations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.demand import Cost, Unit
from hwsim.formats import family, format_quantity, prefixed
from hwsim.graph.opgraph import Ints, Label
from hwsim.records import dataclass
from hwsim.results.cause import HOST, Cause
from hwsim.results.critical import pieces
from hwsim.results.ops import ARRIVE, Arrivals, arrivals, weights
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

_DIGITS: Final = str.maketrans("", "", "0123456789")
SERVED: Final = "infer"  # kind of the ops of a served model
LONGEST: Final = 4096  # of its ops, whose causes are looked at
MOST: Final = 12  # kinds of ops; a run with more has no rows


@dataclass(frozen=True, slots=True)
class Each:
    """Ops of one name and kind, on a device or on the members of a family; rate and count are texts, "" if nothing is counted."""

    name: str
    times: int
    mean_s: float
    rate: str
    count: str
    limited_by: str


def each_op(timeline: Timeline) -> tuple[Each, ...]:
    """A row for each kind of op, in the order of the program; no rows if there are more than `MOST` kinds."""
    flat = timeline.flat
    labels = flat.graph.labels
    rows: dict[tuple[str, str, str], list[int]] = {}
    for number, label in enumerate(labels):
        if label.device and label.kind not in HOST and label.kind != ARRIVE:
            rows.setdefault((label.name, label.kind, family(label.device)), []).append(number)
            if len(rows) > MOST:
                return ()
    if not len(timeline):
        return ()
    names = [name for name, _, _ in rows]
    by_label = np.argsort(flat.label, kind="stable")
    bounds = np.searchsorted(flat.label[by_label], np.arange(len(labels) + 1))
    kinds = []
    met = arrivals(timeline)
    stands_for = weights(timeline)
    for (name, kind, device), members in rows.items():
        ops = np.concatenate([by_label[bounds[number] : bounds[number + 1]] for number in members])
        if met is not None:  # a rank's end takes no time; the collective has rows of its own
            ops = ops[~met.leaves[ops]]
        if not len(ops):
            continue
        took = timeline.end[ops] - timeline.start[ops]
        many = stands_for[ops]
        seconds = ticks.total(ticks.multiply(took, many)) / FEMTO
        times = int(many.sum())
        slowest = np.sort(np.argsort(took)[-LONGEST:]) if kind == SERVED else [int(np.argmax(took))]
        cause = _limit(timeline, ops[slowest])
        rate, count = _rates([(flat.graph.costs[number], size) for number, size in _sizes(timeline, ops, many)], seconds, cause)
        title = name if names.count(name) == 1 else f"{name} on {_device(labels, members, device)}"
        limit = family(cause.of_op) if max(len(members), many.max()) > 1 else cause.of_op
        kinds.append(Each(title, times, seconds / times, rate, count, limit))
    return (*kinds, *_waiting(timeline, met)) if met is not None else tuple(kinds)


def _waiting(timeline: Timeline, met: Arrivals) -> Iterator[Each]:
    """Rows of the time that the ranks of each collective waited for one another."""
    labels = timeline.flat.graph.labels
    waited: dict[str, tuple[int, int]] = {}  # how many, and fs
    many = weights(timeline).tolist()
    for op in np.flatnonzero(met.leaves).tolist():
        name = labels[timeline.flat.label[op]].name
        times, waits = waited.get(name, (0, 0))
        waited[name] = times + many[op], waits + many[op] * int(met.waiting[op])
    for name, (times, waits) in waited.items():
        if waits:
            yield Each(f"{name}: waiting", times, waits / times / FEMTO, "", "", "the last to arrive")


def _device(labels: Sequence[Label], members: Sequence[int], shared: str) -> str:
    devices = {labels[number].device for number in members}
    return shared if len(devices) > 1 else devices.pop()


def _sizes(timeline: Timeline, ops: Ints, many: Ints) -> Iterator[tuple[int, float]]:
    """(cost, number of times) of these ops; an op counts as many times as it represents ops."""
    flat = timeline.flat
    costs, where = np.unique(flat.cost[ops], return_inverse=True)
    sizes = np.bincount(where, weights=flat.size[ops] * many)
    yield from ((number, size) for number, size in zip(costs.tolist(), sizes.tolist(), strict=True) if number >= 0)


def _limit(timeline: Timeline, ops: Ints) -> Cause:
    """The longest cause of some ops."""
    spent: dict[Cause, int] = {}
    for piece in pieces(timeline, ops):
        spent[piece.cause] = spent.get(piece.cause, 0) + piece.end_fs - piece.start_fs
    label = timeline.flat.graph.labels[int(timeline.flat.label[ops[0]])]
    return max(spent, key=lambda cause: (spent[cause], cause), default=Cause("time", label.device, label.name))


def _rates(costs: Sequence[tuple[Cost, float]], seconds: float, cause: Cause) -> tuple[str, str]:
    """(bytes or FLOP a second, accesses a second) of ops that took these seconds together."""
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
        return "", ""
    count = prefixed(counted / seconds) if counted > 0 else ""
    if accessed > 0:
        return format_quantity(accessed / seconds, "B/s"), count
    if cause.line == "flow" and all(cost.exchange is not None for cost, _ in costs):
        passed = math.fsum(size * cost.exchange.passed for cost, size in costs if cost.exchange is not None)
        return format_quantity(passed / seconds, "B/s"), count
    best = [min(amounts) for amounts in carried if amounts]
    if not best:
        return "", count
    *_, unit = min(best)
    amount = math.fsum(
        min(each for each in amounts if each[3] == unit)[2] for amounts in carried if unit in {each[3] for each in amounts}
    )
    return format_quantity(amount / seconds, f"{unit}/s"), count
