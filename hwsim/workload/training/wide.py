"""Exchanges among very many copies of a model, without a name for each of their links.

One group says how its collective is done and how long that takes with the links to itself.  What all groups of a stage draw
together comes from the ways between neighbours on their rings, in columns (`Machine.draws`): every way carries

    turns x (n - 1)/n x size        turns: 2 of an all-reduce, else 1; n members

**Range**: rings, and what draws as much as they do of every link; the links of the copy that is simulated are named, and
of all others the one that takes longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hwsim.collectives.plan import Operation
from hwsim.machine import Machine
from hwsim.workload.training.layout import Names

LEAST: Final = 2048  # devices that exchange from which columns are quicker
_UNIT: Final = 1e6


@dataclass(frozen=True, slots=True)
class Ways:
    """What all rings of a stage draw for every byte that each way carries: of the capacities of a copy, and of the longest."""

    named: dict[str, float]
    longest: float  # s/B


@dataclass(frozen=True, slots=True)
class WideExchanges:
    """Ways between neighbours on rings, by their groups."""

    machine: Machine
    known: dict[Names, Ways] = field(default_factory=dict)

    def ways(self, groups: Sequence[Names]) -> Ways:
        """What rings through all groups draw."""
        key = groups[0]
        if key not in self.known:
            self.known[key] = self._ways(groups)
        return self.known[key]

    def _ways(self, groups: Sequence[Names]) -> Ways:
        sources = [name for group in groups for name in group]
        targets = [name for group in groups for name in (*group[1:], group[0])]
        draws = self.machine.draws(sources, targets, _UNIT)
        amounts = draws.amounts()
        total = np.bincount(draws.capacity, weights=amounts)
        starts, at = [], 0
        for group in groups:
            starts.append(at)
            at += len(group)
        own = [number for at in starts for number in draws.capacity[draws.first[at] : draws.first[at + 1]].tolist()]
        named = {self.machine.capacity_name(number): float(total[number]) / _UNIT for number in dict.fromkeys(own)}
        rates = [np.array([self.machine.capacities[name].rate for name, _ in cost.demand.amounts]) for cost in draws.costs]
        table = np.concatenate(rates)
        sizes = np.cumsum([0, *(len(each) for each in rates)])[:-1]
        rows = np.repeat(sizes[draws.shape] - draws.first[:-1], np.diff(draws.first)) + np.arange(len(draws.capacity))
        longest = float((total[draws.capacity] / table[rows]).max(initial=0.0)) / _UNIT
        return Ways(named, longest)


def turns(what: Operation) -> int:
    """How often a ring passes all of an array on."""
    return 2 if what == "all-reduce" else 1
