"""Exchanges among very many copies of a model, without a name for each of their links.

One group says how its collective is done and how long that takes with the links to itself.  How much longer it takes beside
all the others comes from the ways between neighbours on their rings, in columns (`Machine.draws`):

    together = alone x seconds of a byte on every way of all rings / seconds of a byte on every way of one

**Range**: rings, and what others share as they share the links of rings; the links of the copy that is simulated are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

import numpy as np

from hwsim.machine import Machine
from hwsim.machine.numbering import Floats
from hwsim.machine.wires import Ints
from hwsim.records import dataclass
from hwsim.workload.training.layout import Names

LEAST: Final = 4096  # devices that exchange, from which names would take seconds
_UNIT: Final = 1e6


@dataclass(frozen=True, slots=True)
class Ways:
    """What all rings of a stage draw for every byte that each way carries: of the capacities of a copy, and of the longest."""

    named: dict[str, float]
    longest: float  # s/B


@dataclass(slots=True)
class WideExchanges:
    """Ways between neighbours on rings, by their groups.

    Of the first stage all ways are looked at; of another one those of the copy alone, if they have the shapes of the first's:
    then others share them as they do there.
    """

    machine: Machine
    known: dict[Names, Ways] = field(default_factory=dict)
    _alone: dict[tuple[str, str], float] = field(default_factory=dict)
    _first: tuple[int, bytes, Floats, float] | None = None  # ways, shapes and by row how much more others draw; the longest

    def ways(self, groups: Sequence[Names]) -> Ways:
        """What rings through all groups draw."""
        key = groups[0]
        if key not in self.known:
            self.known[key] = self._ways(groups)
        return self.known[key]

    def alone(self, group: Names) -> float:
        """Seconds for a byte on every way of one ring by itself."""
        key = group[0], group[-1]
        if key not in self._alone:
            near = self.machine.draws(group, (*group[1:], group[0]), _UNIT)
            self._alone[key] = self._all((group,), near.capacity, np.ones(len(near.capacity)))[1]
        return self._alone[key]

    def _ways(self, groups: Sequence[Names]) -> Ways:
        near = self.machine.draws(
            [name for group in groups for name in (group[0], group[-1])],
            [name for group in groups for name in (group[1], group[0])],
            _UNIT,
        )
        own: Floats = np.bincount(near.capacity, weights=near.amounts()).astype(np.float64)[near.capacity]
        looks = len(groups) * len(groups[0]), near.shape.tobytes()
        if self._first is None or self._first[:2] != looks or len(self._first[2]) != len(own):
            more, longest = self._all(groups, near.capacity, own)
            self._first = self._first or (*looks, more, longest)
        else:
            _, _, more, longest = self._first
        named = {
            self.machine.capacity_name(number): amount / _UNIT
            for number, amount in zip(near.capacity.tolist(), (own * more).tolist(), strict=True)
        }
        return Ways(named, longest)

    def _all(self, groups: Sequence[Names], near: Ints, own: Floats) -> tuple[Floats, float]:
        """(by row how much more all ways draw than some, s/B of the capacity that takes longest)."""
        sources = [name for group in groups for name in group]
        targets = [name for group in groups for name in (*group[1:], group[0])]
        draws = self.machine.draws(sources, targets, _UNIT)
        total = np.bincount(draws.capacity, weights=draws.amounts())
        rates = [np.array([self.machine.capacities[name].rate for name, _ in cost.demand.amounts]) for cost in draws.costs]
        starts = np.cumsum([0, *(len(each) for each in rates)])[:-1]
        rows = np.repeat(starts[draws.shape] - draws.first[:-1], np.diff(draws.first)) + np.arange(len(draws.capacity))
        longest = float((total[draws.capacity] / np.concatenate(rates)[rows]).max(initial=0.0)) / _UNIT
        return total[near] / own, longest
