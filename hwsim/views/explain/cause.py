"""What can hold an op back, by name."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from hwsim import ticks
from hwsim.demand import Cost, Term, TermKind
from hwsim.graph.opgraph import Ints, Label, OpGraph
from hwsim.records import dataclass

Kind = Literal["capacity", "time", "floor", "latency", "dispatch", "return", "pool", "wait"]

HOST: Final = ("dispatch", "return")  # kinds of ops that are the program's own doing: the cause is called as they are
MODELLED: Final[frozenset[TermKind]] = frozenset({"kernels", "flow", "floor"})  # a model gives the time of the whole op


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """Why time passed.

    capacity: it was full.  time: the op takes as long as the workload says.  floor, latency: a line of the op's
    derivation that no sharing makes longer; a latency has the name of the link or device that it is due to: an op waits for
    one after another.
    dispatch, return: the program issued an op, or came back from waiting.  pool: all servers were taken.  wait: there was
    nothing to do yet.

    name: the capacity, device or pool.  label: of a time the op, of a floor the line of the derivation.
    op: of a floor that a model gives (see `MODELLED`), the op.  line: the kind of that line of the derivation.

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
        """In words, beside the name of the op.

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
                what = self.label or self.kind
            case "wait":
                what = "waiting to start"
            case _:
                what = self.kind
        return f"{what} on {self.name}" if self.name else what


class Causes:
    """Numbers for the causes of one graph: capacity i is cause i; the others get theirs when they occur."""

    def __init__(self, graph: OpGraph) -> None:
        self._graph = graph
        self._rates = {capacity.name: capacity.rate for capacity in graph.capacities}
        self._numbers = {Cause("capacity", capacity.name): number for number, capacity in enumerate(graph.capacities)}

    @property
    def table(self) -> tuple[Cause, ...]:
        """Causes by number."""
        return tuple(self._numbers)

    def number(self, cause: Cause) -> int:
        """Its number, a new one if it is new."""
        return self._numbers.setdefault(cause, len(self._numbers))

    def latencies(self, cost: Ints, label: Ints) -> tuple[list[tuple[tuple[int, int], ...]], Ints]:
        """Of each pair of a cost and a label its latency's parts, one after another: (number of the cause, where it ends, in fs).

        Which of the pairs each op has comes second.
        """
        labels = len(self._graph.labels)
        wanted, where = np.unique((cost + 1) * labels + label, return_inverse=True)
        found: list[tuple[tuple[int, int], ...]] = []
        for pair in wanted.tolist():
            which, named = divmod(pair, labels)
            cause = self._of_kind("latency", self._graph.labels[named])
            if not which or cause.kind != "latency":
                found.append(((self.number(cause), 0),))
                continue
            parts, ends = latency_parts(self._graph.costs[which - 1]), 0.0
            ended = []
            for holder, seconds in parts:
                ends += seconds
                ended.append((self.number(replace(cause, name=holder or cause.name)), ticks.femtoseconds(ends)))
            found.append(tuple(ended))
        return found, where

    def of_label(self, kind: Literal["time", "latency", "wait"], label: Ints) -> Ints:
        """Numbers of a cause of this kind for ops with these labels."""
        wanted, where = np.unique(label, return_inverse=True)
        found = [self.number(self._of_kind(kind, self._graph.labels[one])) for one in wanted.tolist()]
        return np.array(found, np.int64)[where]

    def alone(self, cost: Ints, label: Ints) -> Ints:
        """What sets the duration of bodies that share with nobody."""
        labels = len(self._graph.labels)
        wanted, where = np.unique((cost + 1) * labels + label, return_inverse=True)
        found = []
        for pair in wanted.tolist():
            which, named = divmod(pair, labels)
            label_of = self._graph.labels[named]
            cause = self._of_kind("time", label_of)
            if which and cause.kind == "time":
                cause = self._of_cost(self._graph.costs[which - 1], label_of)
            found.append(self.number(cause))
        return np.array(found, np.int64)[where]

    def _of_kind(self, kind: Literal["time", "latency", "wait"], label: Label) -> Cause:
        for own in HOST:
            if label.kind == own and kind != "wait":
                return Cause("dispatch" if own == "dispatch" else "return", label.device)
        return Cause(kind, label.device, label.name if kind == "time" else "")

    def _of_cost(self, cost: Cost, label: Label) -> Cause:
        """The largest of amount / rate, or the floor; a time the workload states is the op's own."""
        if cost.played:
            return Cause("floor", label.device, "requests")
        demand, line = cost.demand, binding(cost)
        if line is not None and line.kind == "stated":
            return Cause("time", label.device, label.name)
        took, slowest = max(((amount / self._rates[name], name) for name, amount in demand.amounts), default=(0.0, ""))
        own = is_modelled(cost)
        if slowest and (took > demand.floor * (1 + 1e-9) if own else took >= demand.floor):
            return Cause("capacity", slowest)
        if line is None or not own:
            return Cause("floor", label.device, line.label if line is not None else "")
        return Cause("floor", label.device, line.label, label.name, line.kind)


def link(capacity: str) -> str:
    """The link whose direction (or both directions) a capacity is, "" if it is none.

    >>> link("slots:psw->gpu3"), link("wlan:a--b"), link("gpu0.compute")
    ('slots', 'wlan', '')
    """
    name, colon, ends = capacity.partition(":")
    return name if colon and ("->" in ends or "--" in ends) else ""


def holder(term: Term) -> str:
    """The link (`link NAME`) or device that a latency is due to; "" for the op's own device."""
    return f"link {link(term.capacity)}" if link(term.capacity) else term.capacity.rpartition(".")[0]


def latency_parts(cost: Cost) -> tuple[tuple[str, float], ...]:
    """Seconds of an op's latency by who holds it (see `holder`), in the order of its lines; they add up to it."""
    spent: dict[str, float] = {}
    for term in cost.why:
        if term.kind == "latency" and term.seconds > 0:
            spent[holder(term)] = spent.get(holder(term), 0.0) + term.seconds
    whole = math.fsum(spent.values())
    if not spent:
        return (("", cost.demand.latency),)
    return tuple((name, cost.demand.latency * (seconds / whole)) for name, seconds in spent.items())


def is_modelled(cost: Cost) -> bool:
    """Whether a model of such ops says how long they take: no rate of a capacity that is in the graph makes it shorter.

    A capacity may be held for all that time, too: it is not what makes the op take it.
    """
    term = binding(cost)
    return term is not None and not term.capacity and term.kind in MODELLED


def binding(cost: Cost) -> Term | None:
    """The line that sets the body's duration."""
    return max((term for term in cost.why if term.kind != "latency"), key=lambda one: (one.seconds, one.label), default=None)
