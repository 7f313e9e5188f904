"""Replicas of a training that represent all: the first of each class of identical ones has ops, on behalf of the others, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field, replace

import numpy as np

from hwsim.demand import Cost
from hwsim.graph.fold import Classes
from hwsim.machine import Machine
from hwsim.models.numbered import Hidden, Numbered
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Represented:
    """Classes of the data-parallel replicas, and what the ops of their first ones draw from.

    Args:
        near: by representative, the replicas of its class that share capacities with it, itself among them.
        alike: by name of a capacity that ops draw from, how many it represents.
        members: names of those, where they are of devices and several: the first is drawn from.
        hidden: capacities that another represents, as far as they are known: no op draws from them.
    """

    classes: Classes
    near: Mapping[int, tuple[int, ...]]
    alike: Mapping[str, int]
    members: Mapping[str, tuple[str, ...]]
    hidden: Hidden | None
    _restricted: dict[int, tuple[object, Cost]] = field(default_factory=dict)  # by id of a cost: it, and what is left

    @property
    def folds(self) -> bool:
        """Whether a replica represents others."""
        return len(self.classes) < len(self.classes.of)

    @property
    def replicas(self) -> tuple[int, ...]:
        """The representatives."""
        return tuple(self.classes.first.tolist())

    def stands_for(self, replica: int) -> int:
        """Number of replicas that a representative represents, itself among them."""
        return int(self.classes.size[self.classes.of[replica]])

    def restricted(self, cost: Cost) -> Cost:
        """The cost without what it draws from represented capacities; its seconds alone stay."""
        if self.hidden is None:
            return cost
        if id(cost) not in self._restricted:
            self._restricted[id(cost)] = cost, _without(cost, self.hidden)
        return self._restricted[id(cost)][1]

    def named(self, cost: Numbered, machine: Machine) -> Cost:
        """The same of a cost by number: only what is left of it is named."""
        if id(cost) not in self._restricted:
            kept = None if self.hidden is None else ~self.hidden.flags[cost.rows.numbers]
            self._restricted[id(cost)] = cost, cost.named(machine, kept)
        return self._restricted[id(cost)][1]


def everyone(replicas: int) -> Represented:
    """Every replica has ops of its own."""
    numbers = np.arange(replicas)
    return Represented(Classes.by(numbers), {number: (number,) for number in range(replicas)}, {}, {}, None)


def few_enough(classes: int, replicas: int) -> bool:
    """Whether a fold pays."""
    return 2 * classes <= replicas


def counted(classes: Mapping[str, Hashable], sizes: Mapping[Hashable, int]) -> dict[str, int]:
    """By name the number of capacities that it represents, where several of a class have names: the first one most.

    >>> counted({"a": 1, "b": 2, "c": 1}, {1: 8, 2: 3})
    {'a': 7, 'b': 3, 'c': 1}
    """
    named = Counter(classes.values())
    seen: set[Hashable] = set()
    alike = {}
    for name, of in classes.items():
        alike[name] = 1 if of in seen else sizes[of] - named[of] + 1
        seen.add(of)
    return alike


def listed(classes: Mapping[str, Hashable], all_names: Iterable[tuple[str, Hashable]]) -> dict[str, tuple[str, ...]]:
    """By name of a capacity of a device the names of those that it represents, itself first, as `counted` counts them.

    >>> listed({"a": 1, "c": 1}, [("a", 1), ("b", 1), ("c", 1), ("d", 2)])
    {'a': ('a', 'b'), 'c': ('c',)}
    """
    first: dict[Hashable, str] = {}
    for name, of in classes.items():
        first.setdefault(of, name)
    members = {name: [name] for name in classes}
    for name, of in all_names:
        if name not in classes and first.get(of) in members:
            members[first[of]].append(name)
    return {name: tuple(names) for name, names in members.items()}


def _without(cost: Cost, hidden: Hidden) -> Cost:
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
