"""What can hold an op back, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hwsim.demand import Cost
from hwsim.opgraph import Ints, OpGraph

Kind = Literal["capacity", "floor", "latency", "time", "wait"]


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """Why time passed: a full capacity, or on a device the op's floor, latency or own time, or nothing to do yet.

    name: the capacity or device.  label: which of the lines of the op's derivation set its floor.
    """

    kind: Kind
    name: str
    label: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "capacity":
                return self.name
            case "floor":
                return f"{self.label or 'floor'} on {self.name}"
            case "latency":
                return f"latency on {self.name}" if self.name else "latency"
            case "time":
                return f"time on {self.name}" if self.name else "time"
            case "wait":
                return f"waiting to start on {self.name}" if self.name else "waiting to start"


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

    def _number(self, cause: Cause) -> int:
        return self._numbers.setdefault(cause, len(self._numbers))

    def of_label(self, kind: Kind, label: Ints) -> Ints:
        """Numbers of a cause of this kind on the devices of these labels."""
        wanted, where = np.unique(label, return_inverse=True)
        devices = [self._graph.labels[one].device for one in wanted.tolist()]
        return np.array([self._number(Cause(kind, device)) for device in devices], np.int64)[where]

    def alone(self, cost: Ints, label: Ints) -> Ints:
        """What sets the duration of bodies that share with nobody: the largest of amount / rate, or the floor."""
        labels = len(self._graph.labels)
        wanted, where = np.unique((cost + 1) * labels + label, return_inverse=True)
        found = []
        for pair in wanted.tolist():
            which, named = divmod(pair, labels)
            device = self._graph.labels[named].device
            found.append(self._number(self._cause(self._graph.costs[which - 1], device) if which else Cause("time", device)))
        return np.array(found, np.int64)[where]

    def _cause(self, cost: Cost, device: str) -> Cause:
        demand = cost.demand
        took, slowest = max(((amount / self._rates[name], name) for name, amount in demand.amounts), default=(0.0, ""))
        if slowest and took >= demand.floor:
            return Cause("capacity", slowest)
        terms = [(term.seconds, term.label) for term in cost.why if term.label != "latency"]
        return Cause("floor", device, max(terms)[1] if terms else "")
