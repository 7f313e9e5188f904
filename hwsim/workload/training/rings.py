"""Exchanges among very many replicas without a name for each of their links.

One group gives the algorithm of a collective and its seconds with the links to itself. The slowdown by all other groups comes
from the paths between neighbours on their rings, in columns (`Machine.draws`):

    together = alone x seconds of a byte on every path of all rings / seconds of a byte on every path of one ring

**Range**: rings, and collectives that share links as rings do; the links of the simulated replica are named.
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
class Paths:
    """Amounts that all rings of a stage draw for a byte on each of their paths.

    Args:
        named: by capacity of the simulated replica.
        longest: s/B of the capacity that takes longest.
    """

    named: dict[str, float]
    longest: float


@dataclass(slots=True)
class Rings:
    """Paths between neighbours on rings, by their groups.

    All paths of the first stage are looked at. Another stage whose paths at the simulated replica have equal shapes shares them
    with others as the first stage does.
    """

    machine: Machine
    _paths: dict[Names, Paths] = field(default_factory=dict)
    _alone: dict[tuple[str, str], float] = field(default_factory=dict)
    _first: tuple[int, bytes, Floats, float] | None = None  # paths, shapes, by row the factor of what others draw; the longest

    def paths(self, groups: Sequence[Names]) -> Paths:
        """Amounts of the rings through all groups."""
        key = groups[0]
        if key not in self._paths:
            self._paths[key] = self._drawn(groups)
        return self._paths[key]

    def alone(self, group: Names) -> float:
        """Seconds for a byte on every path of one ring by itself."""
        key = group[0], group[-1]
        if key not in self._alone:
            near = self.machine.draws(group, (*group[1:], group[0]), _UNIT)
            self._alone[key] = self._all((group,), near.capacity, np.ones(len(near.capacity)))[1]
        return self._alone[key]

    def _drawn(self, groups: Sequence[Names]) -> Paths:
        near = self.machine.draws(
            [name for group in groups for name in (group[0], group[-1])],
            [name for group in groups for name in (group[1], group[0])],
            _UNIT,
        )
        drawn: Floats = np.bincount(near.capacity, weights=near.amounts()).astype(np.float64)[near.capacity]
        shapes = len(groups) * len(groups[0]), near.shape.tobytes()
        if self._first is None or self._first[:2] != shapes or len(self._first[2]) != len(drawn):
            factor, longest = self._all(groups, near.capacity, drawn)
            self._first = self._first or (*shapes, factor, longest)
        else:
            _, _, factor, longest = self._first
        named = {
            self.machine.capacity_name(number): amount / _UNIT
            for number, amount in zip(near.capacity.tolist(), (drawn * factor).tolist(), strict=True)
        }
        return Paths(named, longest)

    def _all(self, groups: Sequence[Names], near: Ints, drawn: Floats) -> tuple[Floats, float]:
        """(by row what all paths draw over `drawn`, s/B of the capacity that takes longest)."""
        sources = [name for group in groups for name in group]
        targets = [name for group in groups for name in (*group[1:], group[0])]
        draws = self.machine.draws(sources, targets, _UNIT)
        total = np.bincount(draws.capacity, weights=draws.amounts())
        rates = [np.array([self.machine.capacities[name].rate for name, _ in cost.demand.amounts]) for cost in draws.costs]
        starts = np.cumsum([0, *(len(column) for column in rates)])[:-1]
        rows = np.repeat(starts[draws.shape] - draws.first[:-1], np.diff(draws.first)) + np.arange(len(draws.capacity))
        longest = float((total[draws.capacity] / np.concatenate(rates)[rows]).max(initial=0.0)) / _UNIT
        return total[near] / drawn, longest
