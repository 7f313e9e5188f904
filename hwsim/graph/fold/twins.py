"""Capacities in columns (`Cost.wide`) that every op draws from alike: one of them speaks for all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from hwsim.demand import Unit, Wide
from hwsim.graph.fold.refine import Ints
from hwsim.records import dataclass


class Draw(NamedTuple):
    """What an op has to do with a capacity; two of them are the same or they are not, to the last bit.

    amount: drawn.  hold: a part taken while it flows.  moved, unit: the natural amount behind it, None if none is stated.
    """

    amount: float
    hold: float
    moved: float | None
    unit: Unit
    touch: Hashable = None


@dataclass(frozen=True, slots=True, eq=False)
class Twins:
    """Capacities in columns that every op draws from alike: one name for all of them.

    also: of each kind of an op, the name of its first capacity, and which of `names` that is among.
    """

    names: tuple[str, ...]
    many: tuple[int, ...]
    which: Ints  # by number of a capacity
    also: Mapping[str, int]

    @classmethod
    def of(cls, columns: Iterable[Wide]) -> Twins:
        """The coarsest."""
        wides = tuple({id(wide): wide for wide in columns}.values())
        if not wides:
            return cls((), (), np.empty(0, np.int64), {})
        which = np.zeros(wides[0].count, np.int64)
        for wide in wides:
            kind = np.zeros(wide.count, np.int64)
            kind[wide.numbers] = wide.kind + 1
            _, which = np.unique(which * (len(wide.kinds) + 1) + kind, return_inverse=True)
            which = which.ravel()
        used = np.zeros(len(which), np.bool_)
        for wide in wides:
            used[wide.numbers] = True
        numbers = np.flatnonzero(used)
        _, first, of, many = np.unique(which[numbers], return_index=True, return_inverse=True, return_counts=True)
        which[:] = -1
        which[numbers] = of.ravel()
        names = tuple(wides[0].name(int(numbers[place])) for place in first.tolist())
        also: dict[str, int] = {}
        for wide in wides:
            _, firsts = np.unique(wide.kind, return_index=True)
            also |= {
                each.capacity.name: int(which[wide.numbers[at]]) for each, at in zip(wide.kinds, firsts.tolist(), strict=True)
            }
        return cls(names, tuple(many.tolist()), which, also)

    def draws(self, wide: Wide) -> list[tuple[int, Draw]]:
        """(which of `names`, what) an op draws."""
        places, first = np.unique(self.which[wide.numbers], return_index=True)
        kinds = [wide.kinds[kind] for kind in wide.kind[first].tolist()]
        moved = [Draw(each.amount, 0.0, each.moved if each.moved > 0 else None, "B") for each in kinds]
        return list(zip(places.tolist(), moved, strict=True))
