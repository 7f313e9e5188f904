"""The wires of one scope as columns: who is connected to whom by number, and what with."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.links import LinkKind
from hwsim.machine.placed import Routing
from hwsim.records import dataclass

Ints = NDArray[np.signedinteger[Any]]
_FEW: Final = 16  # wires at a device


@dataclass(frozen=True, slots=True)
class Bundle:
    """The wires of one entry of `links:`: wire i is between devices a[i] and b[i], count[i] parallel links of the model."""

    name: str
    model: LinkKind
    routing: Routing
    a: Ints
    b: Ints
    count: Ints


class Wires:
    """All bundles of a scope, their wires numbered in order, and the neighbours of each device.

    a, b, count: by wire the numbers of the devices at its ends, and its parallel links.
    starts: by bundle the number of its first wire.
    """

    def __init__(self) -> None:
        self.bundles: list[Bundle] = []
        self.starts: list[int] = []
        self.routings: set[Routing] = set()
        self.a: Ints = np.empty(0, np.int32)
        self.b: Ints = np.empty(0, np.int32)
        self.count: Ints = np.empty(0, np.int32)
        self._index: tuple[Ints, Ints] | None = None

    def __len__(self) -> int:
        return len(self.a)

    def add(self, bundle: Bundle) -> None:
        """Append the wires of one more entry."""
        self.starts.append(len(self))
        self.bundles.append(bundle)
        self.routings.add(bundle.routing)
        self.a, self.b = np.concatenate([self.a, bundle.a]), np.concatenate([self.b, bundle.b])
        self.count = np.concatenate([self.count, bundle.count])
        self._index = None

    def of(self, wire: int) -> tuple[Bundle, int]:
        """The bundle of a wire, and the wire's place in it."""
        which = bisect_right(self.starts, wire) - 1
        return self.bundles[which], wire - self.starts[which]

    def degree(self, number: int) -> int:
        """Number of wires that end at a device."""
        first, _ = self._by_device()
        return int(first[number + 1] - first[number]) if number + 1 < len(first) else 0

    def at(self, number: int) -> list[tuple[int, int]]:
        """(wire, number of its other end) of all that end at a device."""
        first, order = self._by_device()
        if number + 1 >= len(first):
            return []
        rows = order[first[number] : first[number + 1]]
        a, b, total = self.a, self.b, len(self.a)
        if len(rows) <= _FEW:  # numpy takes longer to begin than these take
            return [(row, int(b[row])) if row < total else (row - total, int(a[row - total])) for row in rows.tolist()]
        wires = np.where(rows < total, rows, rows - total)
        others = np.where(rows < total, b[wires], a[wires])
        return list(zip(wires.tolist(), others.tolist(), strict=True))

    def _by_device(self) -> tuple[Ints, Ints]:
        """first, order: the ends at device n are order[first[n]:first[n + 1]], a's ends before b's."""
        if self._index is None:
            both = np.concatenate([self.a, self.b])
            order: Ints = np.argsort(both, kind="stable").astype(np.int32)
            most = int(both.max()) + 1 if len(both) else 0
            first = np.concatenate([[0], np.cumsum(np.bincount(both, minlength=most))]).astype(np.int32)
            self._index = first, order
        return self._index


def pair_keys(a: Ints, b: Ints) -> Ints:
    """A number for each unordered pair of ends."""
    keys: Ints = np.minimum(a, b).astype(np.int64) << 32 | np.maximum(a, b).astype(np.int64)
    return keys
