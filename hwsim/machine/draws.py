"""What very many transfers ask of the machine, in columns instead of objects.

    found = machine.draws(gpus, gpus[1:] + gpus[:1], size=1e6)     # every GPU of 100,000 to the next
    found.shape                     # per pair: which of found.costs is its own, but for the names
    found.costs[0].demand           # what the first pair of shape 0 asks, with its own names
    found.capacity[found.first[i]:found.first[i + 1]]              # numbers of the capacities that pair i draws from
    machine.capacity_name(number)   # their names, one at a time

A pair costs a microsecond or less once a pair like it is known: of equal nodes only the numbers change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Cost
from hwsim.records import dataclass

Ints = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Draws:
    """Transfers of one size each, in the order they were asked for.

    Two pairs of one shape ask equal amounts (bit for bit), row by row, of capacities that are called alike in
    equal places and have equal rates; latency, floor and share are equal, too.  Only the names differ.  Pairs of different
    shapes may still cost the same.

    shape: per pair its shape.  Shapes are numbered in the order of their first pairs.
    costs: per shape what `Machine.transfer` says of its first pair; everything but the names holds for all pairs of the shape.
    first: the rows of pair i are those from first[i] to before first[i + 1]; row k of them belongs to `amounts[k]` of the
        demand of its shape.
    capacity: per row the number of the capacity drawn from (`Machine.capacity_name`).  Numbers lie from 0 to before
        `Machine.capacity_numbers`; not every number there is a capacity's.
    """

    shape: Ints
    costs: tuple[Cost, ...]
    first: Ints
    capacity: Ints

    def amounts(self) -> Floats:
        """Per row what it draws, in the unit of its capacity.

        Cheap: one numpy operation for all rows.
        """
        sizes = [len(cost.demand.amounts) for cost in self.costs]
        table: Floats = np.array([amount for cost in self.costs for _, amount in cost.demand.amounts], np.float64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)[:-1]
        many = np.diff(self.first)
        rows: Ints = np.repeat(starts[self.shape] - self.first[:-1], many) + np.arange(len(self.capacity))
        return table[rows]

    def pairs(self) -> Ints:
        """Per row the pair it belongs to."""
        found: Ints = np.repeat(np.arange(len(self.shape)), np.diff(self.first))
        return found

    def latency(self) -> Floats:
        """Per pair the seconds before its first byte is drawn."""
        known: Floats = np.array([cost.demand.latency for cost in self.costs], np.float64)
        return known[self.shape]
