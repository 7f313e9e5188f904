"""Derivations of op durations from the lines recorded at lowering, with numbers substituted.

An unloaded op takes its latencies plus the longest other line. A derivation adds the simulated time and the reasons for the
difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from hwsim.demand import Cost, Demand, Term, rates_of
from hwsim.formats import family, format_quantity
from hwsim.graph.opgraph import Ints, Label
from hwsim.records import dataclass
from hwsim.results.cause import HOST
from hwsim.results.critical import ready_times
from hwsim.results.slack import slack
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO


@dataclass(frozen=True, slots=True)
class DerivationLine:
    """A line of a derivation.

    Args:
        label: label.
        formula: formula.
        numbers: formula with the values of its inputs.
        time_s: time (s).
        binding: whether no other line is longer.
        inputs: (name, value with unit, source) of each input.
        latency: whether it is a latency, added before the body.
    """

    label: str
    formula: str
    numbers: str
    time_s: float
    binding: bool
    inputs: tuple[tuple[str, str, str], ...]
    latency: bool = False


@dataclass(frozen=True, slots=True)
class Derivation:
    """The duration of equal ops: unloaded, as simulated, and the reasons for the difference.

    Args:
        name, kind: name and kind of the ops.
        devices: devices of the ops; several if their derivations have the same text.
        count: number of ops.
        size: fraction of the body that an op does (1/8 for one chunk of eight).
        own_s: time in addition to the lines (s); for arrivals, the longest.
        lines: lines.
        unloaded_s: unloaded time (s).
        min_s, max_s: simulated times (s).
        reasons: reasons why the slowest op took longer; empty if all took the unloaded time.
        slack_s: slack of the ops that have some: (number of ops, least, most) (s); None if not computed
            (`hwsim.results.slack`).
    """

    name: str
    kind: str
    devices: tuple[str, ...]
    count: int
    size: float
    own_s: float
    lines: tuple[DerivationLine, ...]
    unloaded_s: float
    min_s: float
    max_s: float
    reasons: tuple[str, ...]
    slack_s: tuple[int, float, float] | None = None

    @property
    def unloaded(self) -> str:
        """Sum in words, such as `5 us + max(16.57 ms, 1 ms) = 16.58 ms`."""
        latency = [seconds(line.time_s) for line in self.lines if line.latency]
        lines = [line for line in self.lines if not line.latency]
        body = [seconds(line.time_s) for line in lines if line.time_s > 0] or [seconds(line.time_s) for line in lines[:1]]
        longest = body[0] if len(body) == 1 else f"max({', '.join(body)})"
        part = "" if self.size == 1 else f"{fraction(self.size)} x "
        parts = [*([seconds(self.own_s)] if self.own_s else []), *latency, *([part + longest] if body else [])]
        if not self.lines and not self.own_s:
            return seconds(self.unloaded_s)
        total = seconds(self.unloaded_s)
        return total if parts == [total] else f"{' + '.join(parts)} = {total}"


def derivations(timeline: Timeline, ops: Ints) -> tuple[Derivation, ...]:
    """Return a derivation for each label, cost, size and own time among these ops, in their order.

    Joined into one are ops on members of a family (gpu0, gpu1, ...) with the same derivation, all arrivals, and parts of a body
    that differ after the fourth digit; the longest op represents them.
    """
    flat = timeline.flat
    rates = rates_of(flat.graph.capacities)
    kinds = _kinds(timeline)
    order = np.argsort(kinds, kind="stable")
    bounds = np.searchsorted(kinds[order], np.arange(int(kinds.max(initial=-1)) + 2))
    alike: dict[tuple[object, ...], list[tuple[Label, Ints, Cost, float, int]]] = {}
    for kind in dict.fromkeys(kinds[ops].tolist()):
        members = order[bounds[kind] : bounds[kind + 1]]
        first = int(members[0])
        label = flat.graph.labels[int(flat.label[first])]
        cost = flat.graph.costs[int(flat.cost[first])] if flat.cost[first] >= 0 else Cost(Demand())
        size, time = float(flat.size[first]), int(flat.time[first])
        name = label.kind if label.kind in HOST else label.name
        terms = tuple((family(term.label), family(term.formula), term.inputs, term.seconds) for term in cost.why)
        given = -1 if label.kind in ("arrivals", "starting") and not label.device else time  # arrival times differ
        key = (name, label.kind, family(label.device), terms, cost.demand.alone(rates), given, fraction(size))
        alike.setdefault(key, []).append((label, members, cost, size, time))
    return tuple(_derive(timeline, rates, str(key[0]), rows) for key, rows in alike.items())


def _kinds(timeline: Timeline) -> Ints:
    """Return a number for each op, equal for ops of one label, cost, size and own time."""
    flat = timeline.flat
    kinds = np.zeros(len(flat), np.int64)
    for column in (flat.label, flat.cost, flat.time, flat.size):
        values, where = np.unique(column, return_inverse=True)
        kinds = np.unique(kinds * max(len(values), 1) + where, return_inverse=True)[1]
    return kinds


def lines(cost: Cost) -> tuple[DerivationLine, ...]:
    """Return the lines recorded at lowering, with numbers substituted; latencies first."""
    body = max((term.seconds for term in cost.why if term.kind != "latency"), default=0.0)
    terms = sorted(((term, term.kind == "latency") for term in cost.why), key=lambda pair: not pair[1])
    return tuple(
        DerivationLine(
            term.label,
            term.formula,
            substitute_inputs(term),
            term.seconds,
            not first and term.seconds >= body > 0,
            input_texts(term),
            first,
        )
        for term, first in terms
    )


def input_texts(term: Term) -> tuple[tuple[str, str, str], ...]:
    """Return the inputs of a line with their sources in words."""
    return tuple([(name, value, str(source)) for name, value, source in term.inputs])


def substitute_inputs(term: Term) -> str:
    """Return the formula of a line with the value of each input.

    >>> substitute_inputs(Term("link a->b", "bytes / bandwidth", (("bytes", "16 MB", ""), ("bandwidth", "2 GB/s", "")), 8e-3))
    '16 MB / 2 GB/s'
    """
    values = {name: value for name, value, _ in term.inputs}
    if not values:
        return term.formula
    names = sorted(values, key=lambda name: (-len(name), name))
    pattern = "|".join(rf"(?<![\w.]){re.escape(name)}(?![\w.])" for name in names)
    return re.sub(pattern, lambda name: values[name.group()], term.formula)


def seconds(value: float) -> str:
    """Return a time with four digits."""
    return format_quantity(value, "s", 4)


def duration(time_fs: int) -> str:
    """Return a time given in fs, with four digits."""
    return seconds(time_fs / FEMTO)


def fraction(size: float) -> str:
    """Return the size of a part of a body, as a fraction if possible.

    >>> fraction(0.125), fraction(3.0)
    ('1/8', '3')
    """
    return f"1/{round(1 / size)}" if 0 < size < 1 and abs(round(1 / size) * size - 1) < 1e-9 else f"{size:.4g}"


def _derive(
    timeline: Timeline, rates: Mapping[str, float], name: str, rows: Sequence[tuple[Label, Ints, Cost, float, int]]
) -> Derivation:
    label, _, cost, size, time = max(rows, key=lambda row: (row[-1], row[-2]))
    ops = np.concatenate([members for _, members, _, _, _ in rows])
    took = timeline.end[ops] - timeline.start[ops]
    shortest, longest = int(took.min()), int(took.max())
    alone = time / FEMTO + cost.demand.latency + size * cost.demand.body(rates)
    slowest = int(ops[int(np.argmax(took))])
    return Derivation(
        name=name,
        kind=label.kind,
        devices=tuple(dict.fromkeys(named.device for named, *_ in rows)),
        count=len(ops),
        size=size,
        own_s=time / FEMTO,
        lines=lines(cost),
        unloaded_s=alone,
        min_s=shortest / FEMTO,
        max_s=longest / FEMTO,
        reasons=(*(_shared(timeline, slowest) if longest / FEMTO > alone * (1 + 1e-6) + 1e-14 else ()), *_waited(timeline, ops)),
        slack_s=_spare(timeline, ops),
    )


def _spare(timeline: Timeline, ops: Ints) -> tuple[int, float, float] | None:
    every = slack(timeline)
    if every is None:
        return None
    spare = every[ops][every[ops] > 0]
    return (len(spare), int(spare.min()) / FEMTO, int(spare.max()) / FEMTO) if len(spare) else (0, 0.0, 0.0)


def _shared(timeline: Timeline, op: int) -> tuple[str, ...]:
    """Return the capacities that an op shared while it ran, each with the time."""
    number = int(timeline.flow_class[op])
    if number < 0:
        return ()
    spent: dict[int, int] = {}
    begin, end = int(timeline.start[op]), int(timeline.end[op])
    held = timeline.held(number)
    for row, until in zip(held, [*(limit.start for limit in held[1:]), end], strict=True):
        inside = min(until, end) - max(row.start, begin)
        if inside > 0 and row.bound >= 0:
            spent[row.bound] = spent.get(row.bound, 0) + inside
    names = [capacity.name for capacity in timeline.flat.graph.capacities]
    ordered = sorted(spent.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(f"shared {names[bound]} for {duration(time)}" for bound, time in ordered)


def _waited(timeline: Timeline, ops: Ints) -> tuple[str, ...]:
    """Return the longest wait of a ready op for a server, in words."""
    late = ops[(timeline.granted[ops] >= 0) & (timeline.flat.take[ops] >= 0)]
    if not len(late):
        return ()
    waits = timeline.start[late] - ready_times(timeline, late)
    worst = int(np.argmax(waits))
    pool = timeline.flat.graph.pools[int(timeline.flat.take[late[worst]])].name
    return (f"waited up to {duration(int(waits[worst]))} for {pool} before it started",)
