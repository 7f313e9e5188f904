"""Simulated replicas of a training: the first replica of each class of identical ones has ops, and represents the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from hwsim.demand import Cost
from hwsim.graph.fold import Classes
from hwsim.machine import Machine
from hwsim.models.capacity_amounts import HiddenCapacities, NumberedCost
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaClasses:
    """The classes of data-parallel replicas, and the capacities that the first replicas use.

    Args:
        classes: class of each replica.
        near: replicas of the same class that share capacities with a representative, including itself, by representative.
        alike: number of capacities that a capacity in use represents, by name.
        members: names of these capacities, if they are several of devices; the first one is in use.
        hidden: represented capacities, which no op uses; None: none.
    """

    classes: Classes
    near: Mapping[int, tuple[int, ...]]
    alike: Mapping[str, int]
    members: Mapping[str, Sequence[str]]
    hidden: HiddenCapacities | None
    _restricted: dict[int, tuple[object, Cost]] = field(default_factory=dict)  # (cost, restricted cost) by id of the cost

    @property
    def folds(self) -> bool:
        """Whether a replica represents identical replicas."""
        return len(self.classes) < len(self.classes.of)

    @property
    def replicas(self) -> tuple[int, ...]:
        """Representatives of all classes."""
        return tuple(self.classes.first.tolist())

    def stands_for(self, replica: int) -> int:
        """Return the number of replicas that a representative represents, including itself."""
        return int(self.classes.size[self.classes.of[replica]])

    def restricted(self, cost: Cost) -> Cost:
        """Return the cost without represented capacities; its time without contention is unchanged."""
        if self.hidden is None:
            return cost
        if id(cost) not in self._restricted:
            self._restricted[id(cost)] = cost, _without(cost, self.hidden)
        return self._restricted[id(cost)][1]

    def named(self, cost: NumberedCost, machine: Machine) -> Cost:
        """Return the same for a numbered cost, with names only for the remaining capacities."""
        if id(cost) not in self._restricted:
            kept = None if self.hidden is None else ~self.hidden.flags[cost.rows.numbers]
            self._restricted[id(cost)] = cost, cost.named(machine, kept)
        return self._restricted[id(cost)][1]


def unfolded_replicas(replicas: int) -> ReplicaClasses:
    """Return classes in which every replica has its own ops."""
    numbers = np.arange(replicas)
    return ReplicaClasses(Classes.by(numbers), {number: (number,) for number in range(replicas)}, {}, {}, None)


def few_enough(classes: int, replicas: int) -> bool:
    """Whether folding saves at least half of the replicas."""
    return 2 * classes <= replicas


def _without(cost: Cost, hidden: HiddenCapacities) -> Cost:
    demand = cost.demand
    if not any(name in hidden for name, _ in (*demand.amounts, *demand.holds)):
        return cost
    amounts = [row for row in demand.drawn if row[0] not in hidden]
    holds = [row for row in demand.held if row[0] not in hidden]
    return replace(
        cost,
        demand=replace(
            demand,
            amounts=tuple([(name, amount) for name, amount, _ in amounts]),
            holds=tuple([(name, part) for name, part, _ in holds]),
            times=tuple([times for *_, times in (*amounts, *holds)]) if demand.times else (),
        ),
        moved=tuple([row for row in cost.moved if row[0] not in hidden]),
    )
