"""Numbers of capacities, computed from their positions: those of equal inner machines differ by a multiple of a constant.

Order of the numbers:

scope:   part by part, then three per wire: direction a to b, direction b to a, both
part:    device by device the capacities of its model, or inner machine by inner machine all capacities of its scope
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Cost
from hwsim.machine.capacities import oversubscription
from hwsim.machine.contents import UnknownName, below, within
from hwsim.machine.layout import Layout, LayoutPart
from hwsim.machine.net import BOTH, Net
from hwsim.machine.transfer_options import TransferOptions
from hwsim.machine.wires import Ints
from hwsim.records import dataclass

_KEPT: Final = 1 << 20  # maximum number of cached names
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NumberTable:
    """A table of the numbers of one scope.

    Args:
        starts: first number of each part.
        each: capacities per member of each part.
        suffixes: kinds of the capacities of a device of each part.
        wires: first number of a wire.
        total: number of all capacities.
    """

    starts: tuple[int, ...]
    each: tuple[int, ...]
    suffixes: tuple[tuple[str, ...], ...]
    wires: int
    total: int


class CapacityNumbers:
    """A conversion between names and numbers of the capacities of a machine."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._tables: dict[int, NumberTable] = {}
        self._offsets: dict[str, int] = {"": 0}
        self._names: dict[int, str] = {}

    def table(self, layout: Layout) -> NumberTable:
        """Return the table of a scope."""
        table = self._tables.get(id(layout))
        if table is None:
            suffixes = tuple(kinds_of(part) for part in layout.parts)
            per_member = tuple(
                self.table(part.child).total if part.child is not None else len(own_suffixes)
                for part, own_suffixes in zip(layout.parts, suffixes, strict=True)
            )
            starts, end = [], 0
            for part, count in zip(layout.parts, per_member, strict=True):
                starts.append(end)
                end += count * len(part.names)
            table = NumberTable(tuple(starts), per_member, suffixes, end, end + 3 * len(layout.wires))
            self._tables[id(layout)] = table
        return table

    @property
    def count(self) -> int:
        """Upper bound of all numbers."""
        return self.table(self._net.layout).total

    @cached_property
    def devices(self) -> Ints:
        """Number of the device of each capacity; -1 for links."""
        return self._devices(self._net.layout)

    def _devices(self, layout: Layout) -> Ints:
        table, runs = self.table(layout), list[Ints]()
        for part, size in zip(layout.parts, table.each, strict=True):
            inner = np.zeros(size, np.int32) if part.child is None else self._devices(part.child)
            first = part.start + part.each * np.arange(len(part.names), dtype=np.int32)
            runs.append(np.where(inner < 0, inner, first[:, None] + inner).ravel())
        return np.concatenate([*runs, np.full(table.total - table.wires, -1, np.int32)])

    def offset(self, scope: str) -> int:
        """Return the first number of an inner machine."""
        offset = self._offsets.get(scope)
        if offset is None:
            outer, name = within(scope)
            spot = self._net.layout.find(outer) if outer else None
            layout = self._net.layout if not outer else spot.part.child if spot is not None else None
            member = None if layout is None else layout.local(name)
            if layout is None or member is None:
                raise UnknownName(f"there is no machine '{scope}'")
            part, table = layout.place(member[0]), self.table(layout)
            offset = self._offsets[scope] = self.offset(outer) + table.starts[part] + member[1] * table.each[part]
        return offset

    def split(self, number: int) -> tuple[int, int, int]:
        """Return (index of the part in the outermost scope, member, number within the member) of a number."""
        table = self.table(self._net.layout)
        part = bisect_right(table.starts, number) - 1
        while not table.each[part]:  # a part without capacities has the start of the next part
            part -= 1
        return part, *divmod(number - table.starts[part], table.each[part])

    def device(self, name: str, suffix: str) -> int:
        """Return the number of the capacity `name`.`suffix`."""
        layout, prefix, number = self._net.scopes(name)[-1]
        part, index, _ = layout.at(number)
        place, table = layout.place(part), self.table(layout)
        if suffix not in table.suffixes[place]:
            raise UnknownName(f"there is no capacity '{name}.{suffix}'")
        return self.offset(prefix) + table.starts[place] + index * table.each[place] + table.suffixes[place].index(suffix)

    def wire(self, scope: str, layout: Layout, wire: int, slot: int) -> int:
        """Return the number of a wire's direction (0: a to b, 1: b to a) or of both (2)."""
        return self.offset(scope) + self.table(layout).wires + 3 * wire + slot

    def name(self, number: int) -> str:
        """Return the name of a capacity; the string is cached, because costs keep very many of them.

        Raises:
            UnknownName: no capacity has this number.
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
        """Return the number of a capacity: the inverse of `name`.

        Raises:
            UnknownName: no device and no link has this capacity.
        """
        if self._net.drawing(name):
            layout, prefix, wire, slot = self._net.wire_of[name]
            return self.wire(prefix, layout, wire, slot)
        device, suffix = within(name)
        if self._net.layout.find(device) is None:
            raise UnknownName(f"there is no capacity '{name}'")
        return self.device(device, suffix)

    def _wire_name(self, layout: Layout, prefix: str, wire: int, slot: int, number: int) -> str:
        wires = layout.wires
        link = self._net.link(layout, prefix, wire, int(wires.b[wire] if slot == 1 else wires.a[wire]))
        half = link.model.duplex == "half"
        name = (link.capacity if half else link.both) if slot == BOTH else "" if half else link.capacity
        if not name:
            raise UnknownName(f"no capacity has the number {number}")
        return name


def kinds_of(part: LayoutPart) -> tuple[str, ...]:
    """Return the kinds of capacities that each device of a part has."""
    kinds = () if part.model is None else tuple([capacity.kind for capacity in part.model.capacities(part.names[0])])
    return (*kinds, "backplane") if oversubscription(part) is not None and "backplane" not in kinds else kinds


class CapacityNames(Sequence[str]):
    """A sequence of the names of capacities of devices, created when they are read.

    Args:
        numbers: number of each capacity.
    """

    def __init__(self, numbering: CapacityNumbers, numbers: Ints) -> None:
        self._numbering, self.numbers = numbering, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        found = self.numbers[index]
        return CapacityNames(self._numbering, found) if isinstance(index, slice) else self._numbering.name(int(found))

    @property
    def devices(self) -> Ints:
        """Number of the device of each capacity; -1 for links."""
        return self._numbering.devices[self.numbers]


Handlings = (
    TransferOptions | tuple[Sequence[TransferOptions], Ints]
)  # of all pairs, or (handlings, index of the handling of each pair)


class TransferSample(NamedTuple):
    """A transfer that represents equivalent ones."""

    a: str
    b: str
    size: float
    handling: TransferOptions


@dataclass(frozen=True, slots=True)
class TransferDraws:
    """The costs of many transfers as columns, in the order of the given pairs.

    Two pairs of one shape have equal costs except for names: equal amounts (bit for bit) of capacities with equal rates, and
    equal latency, floor and share. Pairs of different shapes may also have equal costs.

    Args:
        shape: shape of each pair; shapes are numbered in the order of their first pairs.
        kinds: for each shape a sample transfer.
        first: first row of each pair; row first[i] + k belongs to pair i and to `amounts[k]` of the demand of its shape.
        capacity: for each row the number of the capacity (`Machine.capacity_name`), below `Machine.capacity_numbers`; not every
            number is that of a capacity.
        price: function that returns the costs of samples, given a factor on their bytes.
    """

    shape: Ints
    kinds: tuple[TransferSample, ...]
    first: Ints
    capacity: Ints
    price: Callable[[Sequence[TransferSample], float], tuple[Cost, ...]] = field(repr=False, compare=False)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Cost of the sample of each shape."""
        return self.price(self.kinds, 1.0)

    def rows(self) -> Ints:
        """Return for each row its index among the concatenated amounts of all costs."""
        sizes = [len(cost.demand.amounts) for cost in self.costs]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)[:-1]
        found: Ints = np.repeat(starts[self.shape] - self.first[:-1], np.diff(self.first)) + np.arange(len(self.capacity))
        return found
