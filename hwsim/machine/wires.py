"""Wires of one scope as columns: device numbers at both ends, and links of each wire."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.links import LinkKind
from hwsim.machine.contents import Routing
from hwsim.records import dataclass

Ints = NDArray[np.signedinteger[Any]]
_FEW: Final = 16  # number of wires at a device up to which a loop is faster than numpy


@dataclass(frozen=True, slots=True)
class Bundle:
    """The wires of one entry of `links:`; wire i is count[i] parallel links of the model between devices a[i] and b[i]."""

    name: str
    model: LinkKind
    routing: Routing
    a: Ints
    b: Ints
    count: Ints


class Wires:
    """The wires of a scope, numbered bundle by bundle, with an index by device.

    Attributes:
        bundles: bundles in the order of their wires.
        starts: number of the first wire of each bundle.
        routings: routings of all bundles.
        a, b: device numbers at the ends of each wire.
        count: number of parallel links of each wire.
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
        """Append the wires of an entry."""
        self.starts.append(len(self))
        self.bundles.append(bundle)
        self.routings.add(bundle.routing)
        self.a, self.b = np.concatenate([self.a, bundle.a]), np.concatenate([self.b, bundle.b])
        self.count = np.concatenate([self.count, bundle.count])
        self._index = None

    def of(self, wire: int) -> tuple[Bundle, int]:
        """Return (bundle of a wire, index of the wire in it)."""
        index = bisect_right(self.starts, wire) - 1
        return self.bundles[index], wire - self.starts[index]

    def degree(self, number: int) -> int:
        """Return the number of wires at a device."""
        first, _ = self._by_device()
        return int(first[number + 1] - first[number]) if number + 1 < len(first) else 0

    def at(self, number: int) -> list[tuple[int, int]]:
        """Return (wire, device number of its other end) of all wires at a device."""
        first, order = self._by_device()
        if number + 1 >= len(first):
            return []
        rows = order[first[number] : first[number + 1]]
        a, b, total = self.a, self.b, len(self.a)
        if len(rows) <= _FEW:  # a loop is faster than numpy
            return [(row, int(b[row])) if row < total else (row - total, int(a[row - total])) for row in rows.tolist()]
        wires = np.where(rows < total, rows, rows - total)
        others = np.where(rows < total, b[wires], a[wires])
        return list(zip(wires.tolist(), others.tolist(), strict=True))

    def _by_device(self) -> tuple[Ints, Ints]:
        """Return (first, order): the ends at device n are order[first[n]:first[n + 1]], first the ends a, then the ends b."""
        if self._index is None:
            both = np.concatenate([self.a, self.b])
            order: Ints = np.argsort(both, kind="stable").astype(np.int32)
            device_count = int(both.max()) + 1 if len(both) else 0
            first = np.concatenate([[0], np.cumsum(np.bincount(both, minlength=device_count))]).astype(np.int32)
            self._index = first, order
        return self._index


def pair_keys(a: Ints, b: Ints) -> Ints:
    """Return a number for each pair of ends, independent of their order."""
    keys: Ints = np.minimum(a, b).astype(np.int64) << 32 | np.maximum(a, b).astype(np.int64)
    return keys
