"""How long an op takes and why, with the numbers put in: what lowering recorded, nothing worked out again.

alone: latencies + the largest of the other lines; then what it really took, and what made the difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from hwsim.demand import Cost, Demand, Term
from hwsim.graph.opgraph import Ints, Label
from hwsim.records import dataclass
from hwsim.results.timeline import FEMTO, Timeline
from hwsim.units import format_quantity
from hwsim.views.explain.cause import HOST
from hwsim.views.explain.family import family
from hwsim.views.explain.pools import ready_times


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a derivation.  numbers: the formula with the inputs put in.  binds: no other line is longer."""

    label: str
    formula: str
    numbers: str
    time_s: float
    binds: bool
    inputs: tuple[tuple[str, str, str], ...]  # (name, value with unit, source)


@dataclass(frozen=True, slots=True)
class Derivation:
    """Ops alike: what one of them takes alone, what they took, and why that differs.

    devices: whose ops these are (several: the derivations read the same).  count: ops.
    size: the part of the body an op does (1/8 if a piece of eight).
    own_s: time beside what the lines say, of arrivals the longest.
    because: what held the slowest of them back, in words; empty if all took what one takes alone.
    """

    name: str
    kind: str
    devices: tuple[str, ...]
    count: int
    size: float
    own_s: float
    lines: tuple[Line, ...]
    alone_s: float
    shortest_s: float
    longest_s: float
    because: tuple[str, ...]

    @property
    def alone(self) -> str:
        """The sum in words, `5 us + max(16.57 ms, 1 ms) = 16.58 ms`."""
        latency = [seconds(line.time_s) for line in self.lines if line.label == "latency"]
        lines = [line for line in self.lines if line.label != "latency"]
        body = [seconds(line.time_s) for line in lines if line.time_s > 0] or [seconds(line.time_s) for line in lines[:1]]
        longest = body[0] if len(body) == 1 else f"max({', '.join(body)})"
        part = "" if self.size == 1 else f"{fraction(self.size)} x "
        parts = [*([seconds(self.own_s)] if self.own_s else []), *latency, *([part + longest] if body else [])]
        if not self.lines and not self.own_s:
            return seconds(self.alone_s)
        total = seconds(self.alone_s)
        return total if parts == [total] else f"{' + '.join(parts)} = {total}"


def derivations(timeline: Timeline, ops: Ints) -> tuple[Derivation, ...]:
    """One for each kind of op among these: by label, cost, size and own time, in the order they come.

    Ops on the members of a family (gpu0, gpu1, ...) whose derivations read the same are one, and so are all
    arrivals, and parts of a body that differ after the fourth digit: the longest speaks for the others.
    """
    flat = timeline.flat
    rates = {capacity.name: capacity.rate for capacity in flat.graph.capacities}
    kinds = _kinds(timeline)
    order = np.argsort(kinds, kind="stable")
    bounds = np.searchsorted(kinds[order], np.arange(int(kinds.max(initial=-1)) + 2))
    alike: dict[tuple[object, ...], list[tuple[Label, Ints, Cost, float, int]]] = {}
    for kind in dict.fromkeys(kinds[ops].tolist()):
        members = order[bounds[kind] : bounds[kind + 1]]
        one = int(members[0])
        label = flat.graph.labels[int(flat.label[one])]
        cost = flat.graph.costs[int(flat.cost[one])] if flat.cost[one] >= 0 else Cost(Demand())
        size, time = float(flat.size[one]), int(flat.time[one])
        name = label.kind if label.kind in HOST else label.name
        told = tuple((family(term.label), family(term.formula), term.inputs, term.seconds) for term in cost.why)
        given = -1 if label.kind == "arrivals" and not label.device else time  # each comes when it comes
        key = (name, label.kind, family(label.device), told, cost.demand.alone(rates), given, fraction(size))
        alike.setdefault(key, []).append((label, members, cost, size, time))
    return tuple(_derive(timeline, rates, str(key[0]), rows) for key, rows in alike.items())


def _kinds(timeline: Timeline) -> Ints:
    """Per op a number; ops of one label, cost, size and own time have the same."""
    flat = timeline.flat
    found = np.zeros(len(flat), np.int64)
    for column in (flat.label, flat.cost, flat.time, flat.size):
        values, where = np.unique(column, return_inverse=True)
        found = np.unique(found * max(len(values), 1) + where, return_inverse=True)[1]
    return found


def lines(cost: Cost) -> tuple[Line, ...]:
    """The lines that lowering recorded, numbers put in; latencies first."""
    body = max((term.seconds for term in cost.why if term.kind != "latency"), default=0.0)
    return tuple(
        Line(
            term.label,
            term.formula,
            put_in(term),
            term.seconds,
            term.kind != "latency" and term.seconds >= body > 0,
            term.inputs,
        )
        for term in sorted(cost.why, key=lambda term: term.kind != "latency")
    )


def put_in(term: Term) -> str:
    """The formula of a line with each input's value for its name.

    >>> put_in(Term("link a->b", "bytes / bandwidth", (("bytes", "16 MB", ""), ("bandwidth", "2 GB/s", "")), 8e-3))
    '16 MB / 2 GB/s'
    """
    values = {name: value for name, value, _ in term.inputs}
    if not values:
        return term.formula
    names = sorted(values, key=lambda name: (-len(name), name))
    pattern = "|".join(rf"(?<![\w.]){re.escape(name)}(?![\w.])" for name in names)
    return re.sub(pattern, lambda found: values[found.group()], term.formula)


def seconds(value: float) -> str:
    """A time with four digits."""
    return format_quantity(value, "s", 4)


def fraction(size: float) -> str:
    """A part of a body, as a fraction where it is one.

    >>> fraction(0.125), fraction(3.0)
    ('1/8', '3')
    """
    return f"1/{round(1 / size)}" if 0 < size < 1 and abs(round(1 / size) * size - 1) < 1e-9 else f"{size:.4g}"


def _derive(
    timeline: Timeline, rates: Mapping[str, float], name: str, rows: Sequence[tuple[Label, Ints, Cost, float, int]]
) -> Derivation:
    label, _, cost, size, own = max(rows, key=lambda row: (row[-1], row[-2]))
    ops = np.concatenate([members for _, members, _, _, _ in rows])
    took = timeline.end[ops] - timeline.start[ops]
    shortest, longest = int(took.min()), int(took.max())
    alone = own / FEMTO + cost.demand.latency + size * cost.demand.body(rates)
    slowest = int(ops[int(np.argmax(took))])
    return Derivation(
        name=name,
        kind=label.kind,
        devices=tuple(dict.fromkeys(named.device for named, *_ in rows)),
        count=len(ops),
        size=size,
        own_s=own / FEMTO,
        lines=lines(cost),
        alone_s=alone,
        shortest_s=shortest / FEMTO,
        longest_s=longest / FEMTO,
        because=(*(_shared(timeline, slowest) if longest / FEMTO > alone * (1 + 1e-6) + 1e-14 else ()), *_waited(timeline, ops)),
    )


def _shared(timeline: Timeline, op: int) -> tuple[str, ...]:
    """What an op had to share while it ran, and for how long."""
    number = int(timeline.flow_class[op])
    if number < 0:
        return ()
    spent: dict[int, int] = {}
    begin, end = int(timeline.start[op]), int(timeline.end[op])
    history = timeline.paces[number]
    for place, pace in enumerate(history):
        until = history[place + 1].start if place + 1 < len(history) else end
        inside = min(until, end) - max(pace.start, begin)
        if inside > 0 and pace.bound >= 0 and pace.pace < timeline.alone[number]:
            spent[pace.bound] = spent.get(pace.bound, 0) + inside
    names = [capacity.name for capacity in timeline.flat.graph.capacities]
    ordered = sorted(spent.items(), key=lambda each: (-each[1], each[0]))
    return tuple(f"shared {names[bound]} for {seconds(time / FEMTO)}" for bound, time in ordered)


def _waited(timeline: Timeline, ops: Ints) -> tuple[str, ...]:
    """How long at most one of these ops was ready without a server."""
    late = ops[(timeline.granted[ops] >= 0) & (timeline.flat.take[ops] >= 0)]
    if not len(late):
        return ()
    waits = timeline.start[late] - ready_times(timeline, late)
    worst = int(np.argmax(waits))
    pool = timeline.flat.graph.pools[int(timeline.flat.take[late[worst]])].name
    return (f"waited up to {seconds(int(waits[worst]) / FEMTO)} for {pool} before it started",)
