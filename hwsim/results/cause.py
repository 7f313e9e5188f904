"""Causes of elapsed time on the critical path: capacities, latencies, waits and the program itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from hwsim import ticks
from hwsim.demand import Cost, Term, TermKind, rates_of
from hwsim.graph.opgraph import Ints, Label, OpGraph

Kind = Literal["capacity", "time", "floor", "latency", "dispatch", "return", "pool", "wait"]

HOST: Final = ("dispatch", "return")  # kinds of ops of the program itself; their causes have the same names
MODELLED: Final[frozenset[TermKind]] = frozenset({"kernels", "flow", "floor"})  # lines of a model of the whole op


class Cause(NamedTuple):
    """A reason why time passed.

    Kinds:
        capacity: a fully used capacity.
        time: a time that the workload states.
        floor: a derivation line whose time does not depend on sharing.
        latency: a latency in the derivation.
        pool: a pool without a free server.
        wait: waiting for other ops.
        dispatch, return: time of the program itself, to issue an op or to return from a wait.

    Args:
        kind: kind of the cause.
        name: capacity, device or pool; the link or device of a latency, because the latencies of an op are consecutive.
        label: name of the op of a stated time; label of the derivation line of a floor.
        op: name of the op if a model determines its time (see `MODELLED`); else "".
        line: kind of the derivation line of that model.

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

    @property
    def of_op(self) -> str:
        """The cause in words, for use next to the name of the op.

        >>> Cause("floor", "gpu0", "kernels (memory)", "tokens", "kernels").of_op
        'kernels (memory) on gpu0'
        >>> Cause("floor", "gpu0", "floor", "sum", "floor").of_op
        'its own time on gpu0'
        """
        label = "its own time" if self.line == "floor" else self.label
        return str(self._replace(label=label, op="")) if self.op else str(self)

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


class CostAndLabel(NamedTuple):
    """A cost and a label that ops have in common.

    Args:
        cost: cost; None for ops without one.
        label: label.
        number: number of the label.
    """

    cost: Cost | None
    label: Label
    number: int


class Causes:
    """Numbers of the causes of one op graph: cause i is capacity i; other causes are numbered as they occur."""

    def __init__(self, graph: OpGraph) -> None:
        self._graph = graph
        self._rates = rates_of(graph.capacities)
        self._numbers = {Cause("capacity", capacity.name): number for number, capacity in enumerate(graph.capacities)}

    @property
    def table(self) -> tuple[Cause, ...]:
        """Causes by number."""
        return tuple(self._numbers)

    def number(self, cause: Cause) -> int:
        """Return the number of a cause; a new cause gets the next number."""
        return self._numbers.setdefault(cause, len(self._numbers))

    def pairs(self, cost: Ints, label: Ints) -> tuple[list[CostAndLabel], Ints]:
        """Return (distinct pairs of cost and label, index of the pair of each op)."""
        labels, costs = self._graph.labels, (None, *self._graph.costs)
        count = len(labels)
        codes, where = ticks.numbered((cost.astype(np.int64) + 1) * count + label)
        return [CostAndLabel(costs[code // count], labels[code % count], code % count) for code in codes.tolist()], where

    def latencies(self, pairs: Sequence[CostAndLabel]) -> list[tuple[tuple[int, int], ...]]:
        """Return the parts of each pair's latency as (number of the cause, end of the part in fs)."""
        latencies: list[tuple[tuple[int, int], ...]] = []
        for pair in pairs:
            cause = self._of_kind("latency", pair.label)
            if pair.cost is None or cause.kind != "latency":
                latencies.append(((self.number(cause), 0),))
                continue
            end, parts = 0.0, []
            for holder, seconds in latency_parts(pair.cost):
                end += seconds
                parts.append((self.number(cause._replace(name=holder or cause.name)), ticks.femtoseconds(end)))
            latencies.append(tuple(parts))
        return latencies

    def of_labels(self, kind: Literal["time", "latency", "wait"], pairs: Sequence[CostAndLabel]) -> list[int]:
        """Return the number of the cause of this kind for the label of each pair."""
        by_label = {pair.number: pair.label for pair in pairs}
        numbers = {number: self.number(self._of_kind(kind, by_label[number])) for number in sorted(by_label)}
        return [numbers[pair.number] for pair in pairs]

    def alone(self, pairs: Sequence[CostAndLabel]) -> list[int]:
        """Return the number of the cause that sets the duration of ops that share no capacity, for each pair."""
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
        """Return the cause of a cost: the slowest capacity (amount / rate), a floor, or a time that the workload states.

        Of capacities that take equally long, it is the first in the derivation.
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
    """Return (holder, seconds) of each part of an op's latency, in derivation order; they add up to the latency."""
    spent: dict[str, float] = {}
    for term in cost.why:
        if term.kind == "latency" and term.seconds > 0:
            spent[term.holder] = spent.get(term.holder, 0.0) + term.seconds
    total = math.fsum(spent.values())
    if not spent:
        return (("", cost.demand.latency),)
    return tuple((name, cost.demand.latency * (seconds / total)) for name, seconds in spent.items())


def is_modelled(cost: Cost) -> bool:
    """Return whether a model determines the time of the op, so that no single capacity rate shortens it.

    Such an op may occupy a capacity for that time, but the capacity is not the cause.
    """
    term = binding(cost)
    return term is not None and not term.capacity and term.kind in MODELLED


def binding(cost: Cost) -> Term | None:
    """Return the longest derivation line of the body, which sets its duration; None without one."""
    return max((term for term in cost.why if term.kind != "latency"), key=lambda term: (term.seconds, term.label), default=None)
