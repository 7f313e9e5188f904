"""A number for every capacity, worked out from where it stands: of equal machines the numbers differ by a multiple of their size.

scope:   part after part, then three for each wire: a to b, b to a, both
part:    for each of its devices the capacities of its model, or for each of its machines all of its scope
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Cost
from hwsim.machine.capacities import oversubscription
from hwsim.machine.handling import Handling
from hwsim.machine.layout import Layout, Part
from hwsim.machine.net import BOTH, Net
from hwsim.machine.placed import UnknownName, below, within
from hwsim.machine.wires import Ints
from hwsim.records import dataclass

_KEPT: Final = 1 << 20  # names
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers of one scope. starts, each: by part the first number and how many a member has. suffixes: by part, of devices."""

    starts: tuple[int, ...]
    each: tuple[int, ...]
    suffixes: tuple[tuple[str, ...], ...]
    wires: int
    total: int


class Numbering:
    """Numbers of the capacities of a machine."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._tables: dict[int, Table] = {}
        self._offsets: dict[str, int] = {"": 0}
        self._names: dict[int, str] = {}

    def table(self, layout: Layout) -> Table:
        """Numbers of a scope."""
        table = self._tables.get(id(layout))
        if table is None:
            suffixes = tuple(kinds_of(part) for part in layout.parts)
            per_member = tuple(
                self.table(part.child).total if part.child is not None else len(own_suffixes)
                for part, own_suffixes in zip(layout.parts, suffixes, strict=True)
            )
            starts, at = [], 0
            for part, many in zip(layout.parts, per_member, strict=True):
                starts.append(at)
                at += many * len(part.names)
            table = Table(tuple(starts), per_member, suffixes, at, at + 3 * len(layout.wires))
            self._tables[id(layout)] = table
        return table

    @property
    def count(self) -> int:
        """Numbers lie before this."""
        return self.table(self._net.layout).total

    def offset(self, scope: str) -> int:
        """The first number of a machine inside the machine."""
        offset = self._offsets.get(scope)
        if offset is None:
            outer, name = within(scope)
            spot = self._net.layout.find(outer) if outer else None
            layout = self._net.layout if not outer else spot.part.child if spot is not None else None
            at = None if layout is None else layout.local(name)
            if layout is None or at is None:
                raise UnknownName(f"there is no machine '{scope}'")
            place, table = layout.place(at[0]), self.table(layout)
            offset = self._offsets[scope] = self.offset(outer) + table.starts[place] + at[1] * table.each[place]
        return offset

    def split(self, number: int) -> tuple[int, int, int]:
        """The part of the outermost scope that a number is of, the member, and the rest inside it."""
        table = self.table(self._net.layout)
        place = bisect_right(table.starts, number) - 1
        while not table.each[place]:  # parts without capacities begin where the next one does
            place -= 1
        return place, *divmod(number - table.starts[place], table.each[place])

    def device(self, name: str, suffix: str) -> int:
        """The number of `name`.`suffix`."""
        layout, prefix, number = self._net.scopes(name)[-1]
        part, index, _ = layout.at(number)
        place, table = layout.place(part), self.table(layout)
        if suffix not in table.suffixes[place]:
            raise UnknownName(f"there is no capacity '{name}.{suffix}'")
        return self.offset(prefix) + table.starts[place] + index * table.each[place] + table.suffixes[place].index(suffix)

    def wire(self, scope: str, layout: Layout, wire: int, which: int) -> int:
        """The number of a direction of a wire, or of both."""
        return self.offset(scope) + self.table(layout).wires + 3 * wire + which

    def name(self, number: int) -> str:
        """Name of the capacity with that number; the same string again, for costs keep very many of them.

        Raises:
            UnknownName: nothing.
        """
        name = self._names.get(number)
        if name is None:
            if len(self._names) >= _KEPT:
                self._names.clear()
            name = self._names[number] = self._name(number)
        return name

    def _name(self, number: int) -> str:
        layout, prefix, rest = self._net.layout, "", number
        while 0 <= rest < self.table(layout).total:
            table = self.table(layout)
            if rest >= table.wires:
                return self._wire_name(layout, prefix, *divmod(rest - table.wires, 3), number)
            place = bisect_right(table.starts, rest) - 1
            while not table.each[place]:
                place -= 1
            index, rest = divmod(rest - table.starts[place], table.each[place])
            part = layout.parts[place]
            prefix = below(prefix, part.names[index])
            if part.child is None:
                return f"{prefix}.{table.suffixes[place][rest]}"
            layout = part.child
        raise UnknownName(f"no capacity has the number {number}")

    def number(self, name: str) -> int:
        """The inverse of `name`.

        Raises:
            UnknownName: no device has that capacity, and no link.
        """
        if self._net.drawing(name):
            layout, prefix, wire, which = self._net.wire_of[name]
            return self.wire(prefix, layout, wire, which)
        device, suffix = within(name)
        if self._net.layout.find(device) is None:
            raise UnknownName(f"there is no capacity '{name}'")
        return self.device(device, suffix)

    def _wire_name(self, layout: Layout, prefix: str, wire: int, which: int, number: int) -> str:
        wires = layout.wires
        link = self._net.link(layout, prefix, wire, int(wires.b[wire] if which == 1 else wires.a[wire]))
        half = link.model.duplex == "half"
        name = (link.capacity if half else link.both) if which == BOTH else "" if half else link.capacity
        if not name:
            raise UnknownName(f"no capacity has the number {number}")
        return name


def kinds_of(part: Part) -> tuple[str, ...]:
    """Kinds of the capacities of a device of a part."""
    kinds = () if part.model is None else tuple([capacity.kind for capacity in part.model.capacities(part.names[0])])
    return (*kinds, "backplane") if oversubscription(part) is not None and "backplane" not in kinds else kinds


Handlings = Handling | tuple[Sequence[Handling], Ints]  # of all pairs, or several and which of them moves the bytes of each pair


class Sample(NamedTuple):
    """A transfer between devices, of so many bytes, that others are like."""

    a: str
    b: str
    size: float
    handling: Handling


@dataclass(frozen=True, slots=True)
class Draws:
    """Transfers of one size each, in the order they were asked for.

    Two pairs of one shape ask equal amounts (bit for bit), row by row, of capacities that are called alike in
    equal places and have equal rates; latency, floor and share are equal, too. Only the names differ. Pairs of different
    shapes may still cost the same.

    shape: per pair its shape. Shapes are numbered in the order of their first pairs.
    kinds: per shape a transfer; everything that it costs but the names holds for all pairs of the shape.
    first: the rows of pair i are those from first[i] to before first[i + 1]; row k of them belongs to `amounts[k]` of the
        demand of its shape.
    capacity: per row the number of the capacity drawn from (`Machine.capacity_name`). Numbers lie from 0 to before
        `Machine.capacity_numbers`; not every number there is a capacity's.
    """

    shape: Ints
    kinds: tuple[Sample, ...]
    first: Ints
    capacity: Ints
    price: Callable[[Sequence[Sample], float], tuple[Cost, ...]] = field(repr=False, compare=False)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Per shape the cost of its transfer."""
        return self.price(self.kinds, 1.0)

    def rows(self) -> Ints:
        """Per row its place among the amounts of all costs, one after another."""
        sizes = [len(cost.demand.amounts) for cost in self.costs]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)[:-1]
        found: Ints = np.repeat(starts[self.shape] - self.first[:-1], np.diff(self.first)) + np.arange(len(self.capacity))
        return found

    def pairs(self) -> Ints:
        """Per row the pair it belongs to."""
        found: Ints = np.repeat(np.arange(len(self.shape)), np.diff(self.first))
        return found
