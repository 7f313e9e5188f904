"""The wires of one scope as columns: who is connected to whom by number, and what with."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.links import LinkKind
from hwsim.machine.placed import Link, Routing
from hwsim.records import dataclass
from hwsim.units import natural

Ints = NDArray[np.signedinteger[Any]]
_FEW: Final = 16


@dataclass(frozen=True, slots=True)
class Bundle:
    """The wires of one entry of `links:`: wire i is between devices a[i] and b[i], count[i] of the model side by side."""

    name: str
    model: LinkKind
    routing: Routing
    a: Ints
    b: Ints
    count: Ints

    def keys(self) -> Ints:
        """A number for each unordered pair of ends."""
        low, high = np.minimum(self.a, self.b).astype(np.int64), np.maximum(self.a, self.b).astype(np.int64)
        found: Ints = low << 32 | high
        return found

    def link(self, at: int, a: str, b: str, *, back: bool) -> Link:
        """A direction of a wire whose ends are called a and b; half duplex, both draw from one capacity."""
        model, count = self.model, int(self.count[at])
        source, target = (b, a) if back else (a, b)
        capacity, both = f"{self.name}:{source}->{target}", ""
        if model.duplex == "half" or model.two_way < 2:
            first, second = (a, b) if natural(a) <= natural(b) else (b, a)
            if model.duplex == "half":
                capacity = f"{self.name}:{first}--{second}"
            else:
                both = f"{self.name}:{first}<->{second}"
        bandwidth, latency = model.carried() * count, model.delay()
        return Link(self.name, source, target, model.kind, bandwidth, latency, capacity, model, count, both, self.routing)


class Wires:
    """All bundles of a scope, and who is beside whom."""

    def __init__(self) -> None:
        self.bundles: list[Bundle] = []
        self._starts: list[int] = []
        self._index: tuple[Ints, Ints, Ints, Ints] | None = None

    def __len__(self) -> int:
        return self._starts[-1] + len(self.bundles[-1].a) if self.bundles else 0

    def add(self, bundle: Bundle) -> None:
        """One more entry's."""
        self._starts.append(len(self))
        self.bundles.append(bundle)
        self._index = None

    def of(self, wire: int) -> tuple[Bundle, int]:
        """The bundle of a wire, and its place there."""
        which = bisect_right(self._starts, wire) - 1
        return self.bundles[which], wire - self._starts[which]

    def degree(self, number: int) -> int:
        """How many wires end at a device."""
        first, _, _, _ = self._indexed()
        return int(first[number + 1] - first[number]) if number + 1 < len(first) else 0

    def at(self, number: int) -> list[tuple[int, int]]:
        """(wire, number of its other end) of all that end at a device."""
        first, order, a, b = self._indexed()
        if number + 1 >= len(first):
            return []
        rows = order[first[number] : first[number + 1]]
        total = len(a)
        if len(rows) <= _FEW:  # numpy takes longer to begin than these take
            return [(row, int(b[row])) if row < total else (row - total, int(a[row - total])) for row in rows.tolist()]
        wires = np.where(rows < total, rows, rows - total)
        others = np.where(rows < total, b[wires], a[wires])
        return list(zip(wires.tolist(), others.tolist(), strict=True))

    def ends(self) -> tuple[Ints, Ints]:
        """Columns a and b of all wires."""
        _, _, a, b = self._indexed()
        return a, b

    def first(self) -> Sequence[int]:
        """The number of the first wire of every bundle."""
        return self._starts

    def _indexed(self) -> tuple[Ints, Ints, Ints, Ints]:
        """first, order: the ends at device n are order[first[n]:first[n + 1]], a's ends before b's; all a; all b."""
        if self._index is None:
            none = np.empty(0, np.int32)
            a = np.concatenate([none, *(each.a for each in self.bundles)])
            b = np.concatenate([none, *(each.b for each in self.bundles)])
            both = np.concatenate([a, b])
            order: Ints = np.argsort(both, kind="stable").astype(np.int32)
            most = int(both.max()) + 1 if len(both) else 0
            first = np.concatenate([[0], np.cumsum(np.bincount(both, minlength=most))]).astype(np.int32)
            self._index = first, order, a, b
        return self._index
