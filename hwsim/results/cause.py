"""Causes: the capacities, latencies and waits that can hold an op back, by name; and names of families of devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.demand import Cost, Term, TermKind, rates_of
from hwsim.graph.opgraph import Ints, Label, OpGraph
from hwsim.records import dataclass

Kind = Literal["capacity", "time", "floor", "latency", "dispatch", "return", "pool", "wait"]

HOST: Final = ("dispatch", "return")  # kinds of ops of the program itself: the cause has the name of the kind
MODELLED: Final[frozenset[TermKind]] = frozenset({"kernels", "flow", "floor"})  # a model gives the time of the whole op


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason that time passed.

    Kinds: a full `capacity`, a `time` that the workload states, a `pool` without a free server, a `wait` for other ops.
    A `floor` or `latency` is a line of the op's derivation that sharing does not make longer. `dispatch` of an op by the
    program and its `return` from waiting are times of the program itself.

    Args:
        name: capacity, device or pool; the link or device of a latency, since an op waits for one after another.
        label: name of the op of a stated time; label of the line of a floor.
        op: name of the op, if a model gives its time (see `MODELLED`).
        line: kind of the line that gives it.

    >>> forward, tokens = Cause("floor", "gpu0", "kernels", "forward", "kernels"), ("floor", "gpu0", "kernels (memory)", "tokens")
    >>> str(forward), str(Cause(*tokens, "kernels"))
    ('kernels of forward on gpu0', 'kernels of tokens on gpu0 (memory)')
    >>> str(Cause("floor", "gpu0", "flow", "grads", "flow")), str(Cause("floor", "gpu0", "floor", "sum", "floor"))
    ('flow of grads on gpu0', 'sum on gpu0 (its own time)')
    >>> str(Cause("latency", "link fibre"))
    'latency on link fibre'
    """

    kind: Kind
    name: str
    label: str = ""
    op: str = ""
    line: TermKind | Literal[""] = ""

    def __lt__(self, other: Cause) -> bool:
        mine, theirs = ((each.kind, each.name, each.label, each.op, each.line) for each in (self, other))
        return mine < theirs

    @property
    def of_op(self) -> str:
        """The cause in words, next to the name of the op.

        >>> Cause("floor", "gpu0", "kernels (memory)", "tokens", "kernels").of_op
        'kernels (memory) on gpu0'
        >>> Cause("floor", "gpu0", "floor", "sum", "floor").of_op
        'its own time on gpu0'
        """
        label = "its own time" if self.line == "floor" else self.label
        return str(replace(self, label=label, op="")) if self.op else str(self)

    def __str__(self) -> str:
        match self.kind:
            case "capacity":
                return self.name
            case "pool":
                return f"waiting for {self.name}"
            case "floor" if self.op:
                by = self.label.removeprefix(self.line).lstrip()
                of, by = (self.op, "(its own time)") if self.line == "floor" else (f"{self.line} of {self.op}", by)
                return " ".join([of, *([f"on {self.name}"] if self.name else []), *([by] if by else [])])
            case "time" | "floor":
                reason = self.label or self.kind
            case "wait":
                reason = "waiting to start"
            case _:
                reason = self.kind
        return f"{reason} on {self.name}" if self.name else reason


class Pair(NamedTuple):
    """Cost and label that some ops have, and the number of the label."""

    cost: Cost | None
    label: Label
    number: int


class Causes:
    """Numbers of the causes of one graph: capacity i is cause i; other causes are numbered when they occur."""

    def __init__(self, graph: OpGraph) -> None:
        self._graph = graph
        self._rates = rates_of(graph.capacities)
        self._numbers = {Cause("capacity", each.name): number for number, each in enumerate(graph.capacities)}

    @property
    def table(self) -> tuple[Cause, ...]:
        """Causes by number."""
        return tuple(self._numbers)

    def number(self, cause: Cause) -> int:
        """The number of a cause, a new one for a new cause."""
        return self._numbers.setdefault(cause, len(self._numbers))

    def pairs(self, cost: Ints, label: Ints) -> tuple[list[Pair], Ints]:
        """The different pairs of a cost and a label, and the pair of each op."""
        labels, costs = self._graph.labels, (None, *self._graph.costs)
        many = len(labels)
        codes, where = ticks.numbered((cost.astype(np.int64) + 1) * many + label)
        return [Pair(costs[code // many], labels[code % many], code % many) for code in codes.tolist()], where

    def latencies(self, pairs: Sequence[Pair]) -> list[tuple[tuple[int, int], ...]]:
        """Parts of the latency of each pair, as (number of the cause, end of the part in fs)."""
        latencies: list[tuple[tuple[int, int], ...]] = []
        for pair in pairs:
            cause = self._of_kind("latency", pair.label)
            if pair.cost is None or cause.kind != "latency":
                latencies.append(((self.number(cause), 0),))
                continue
            end, parts = 0.0, []
            for holder, seconds in latency_parts(pair.cost):
                end += seconds
                parts.append((self.number(replace(cause, name=holder or cause.name)), ticks.femtoseconds(end)))
            latencies.append(tuple(parts))
        return latencies

    def of_labels(self, kind: Literal["time", "latency", "wait"], pairs: Sequence[Pair]) -> list[int]:
        """Number of the cause of this kind for the label of each pair."""
        by_label = {pair.number: pair.label for pair in pairs}
        numbers = {number: self.number(self._of_kind(kind, by_label[number])) for number in sorted(by_label)}
        return [numbers[pair.number] for pair in pairs]

    def alone(self, pairs: Sequence[Pair]) -> list[int]:
        """Number of the cause that sets the duration of bodies which share nothing, for each pair."""
        numbers = []
        for pair in pairs:
            cause = self._of_kind("time", pair.label)
            if pair.cost is not None and cause.kind == "time":
                cause = self._of_cost(pair.cost, pair.label)
            numbers.append(self.number(cause))
        return numbers

    def _of_kind(self, kind: Literal["time", "latency", "wait"], label: Label) -> Cause:
        if label.kind in HOST and kind != "wait":
            return Cause("dispatch" if label.kind == "dispatch" else "return", label.device)
        return Cause(kind, label.device, label.name if kind == "time" else "")

    def _of_cost(self, cost: Cost, label: Label) -> Cause:
        """The capacity with the largest amount / rate, or the floor, or the time that the workload states.

        Of capacities that take equally long, the one with the longest line in the op's derivation, or the first of these.
        """
        if cost.played:
            return Cause("floor", cost.requests.device if cost.requests else label.device, "requests")
        demand, line = cost.demand, binding(cost)
        if line is not None and line.kind == "stated":
            return Cause("time", label.device, label.name)
        times = {name: amount / self._rates[name] for name, amount in demand.amounts}
        took = max(times.values(), default=0.0)
        equal = [name for name, seconds in times.items() if seconds == took]
        terms = [term for term in cost.why if term.capacity in equal]
        slowest = max(terms, key=lambda term: term.seconds).capacity if terms else equal[0] if equal else ""
        modelled = is_modelled(cost)
        if slowest and (took > demand.floor * (1 + 1e-9) if modelled else took >= demand.floor):
            return Cause("capacity", slowest)
        if line is None or not modelled:
            return Cause("floor", label.device, line.label if line is not None else "")
        return Cause("floor", label.device, line.label, label.name, line.kind)


def latency_parts(cost: Cost) -> tuple[tuple[str, float], ...]:
    """Seconds of an op's latency by who holds it (see `Term`), in the order of its lines; they add up to it."""
    spent: dict[str, float] = {}
    for term in cost.why:
        if term.kind == "latency" and term.seconds > 0:
            spent[term.holder] = spent.get(term.holder, 0.0) + term.seconds
    total = math.fsum(spent.values())
    if not spent:
        return (("", cost.demand.latency),)
    return tuple((name, cost.demand.latency * (seconds / total)) for name, seconds in spent.items())


def is_modelled(cost: Cost) -> bool:
    """Whether a model gives the time of the op, so that no rate of a capacity in the graph makes it shorter.

    A capacity may be held for that time, but does not cause it.
    """
    term = binding(cost)
    return term is not None and not term.capacity and term.kind in MODELLED


def binding(cost: Cost) -> Term | None:
    """The line that sets the body's duration."""
    return max((term for term in cost.why if term.kind != "latency"), key=lambda term: (term.seconds, term.label), default=None)
