"""Labels of ops by number: one by one, or for every step and device of a collective at once, made when they are asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np

from hwsim.graph.opgraph import Ints, Label
from hwsim.records import dataclass


@dataclass(frozen=True)
class Grid:
    """A label for each name on each device, name by name."""

    names: tuple[str, ...]
    kind: str
    devices: tuple[str, ...]
    program: str

    def __len__(self) -> int:
        return len(self.names) * len(self.devices)

    def __iter__(self) -> Iterator[Label]:
        return (Label(name, self.kind, device, self.program) for name in self.names for device in self.devices)

    def at(self, place: int) -> Label:
        """The label at a place of the grid."""
        name, device = divmod(place, len(self.devices))
        return Label(self.names[name], self.kind, self.devices[device], self.program)

    def find(self, label: Label) -> int | None:
        """The place of a label; None if it is not in the grid."""
        if (label.kind, label.program) != (self.kind, self.program):
            return None
        name, device = self._places[0].get(label.name), self._places[1].get(label.device)
        return None if name is None or device is None else name * len(self.devices) + device

    def meets(self, other: Grid) -> bool:
        """Whether a label is in both."""
        alike = (self.kind, self.program) == (other.kind, other.program)
        return alike and not (set(self.names).isdisjoint(other.names) or set(self.devices).isdisjoint(other.devices))

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        """Places of the names, and of the devices."""
        names, devices = ({each: place for place, each in enumerate(some)} for some in (self.names, self.devices))
        return names, devices


class Labels(Sequence[Label]):
    """Labels in the order of their numbers. parts: (first number, labels) of each stretch."""

    def __init__(self, parts: Sequence[tuple[int, tuple[Label, ...] | Grid]]) -> None:
        self.parts = tuple(parts)
        self._starts = [start for start, _ in parts]
        self._count = sum(len(each) for _, each in parts)  # integers

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Label]:
        return (label for _, part in self.parts for label in part)

    @overload
    def __getitem__(self, number: int) -> Label: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Label, ...]: ...
    def __getitem__(self, number: int | slice) -> Label | tuple[Label, ...]:
        if isinstance(number, slice):
            return tuple(self[each] for each in range(self._count)[number])
        place = range(self._count)[number]
        start, part = self.parts[bisect_right(self._starts, place) - 1]
        return part.at(place - start) if isinstance(part, Grid) else part[place - start]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Labels) and self.parts == other.parts:
            return True
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))


class LabelTable:
    """Labels and their numbers while a graph is built; equal labels share one."""

    def __init__(self, labels: Sequence[Label] = ()) -> None:
        self._numbers: dict[Label, int] = {label: number for number, label in enumerate(labels)}
        self._starts: dict[Grid, int] = {}  # first numbers, ascending
        self._count = len(self._numbers)

    def __len__(self) -> int:
        return self._count

    def number(self, label: Label) -> int:
        """The number of a label, the next one if it is new."""
        number = self._numbers.get(label)
        if number is None:
            places = ((start, grid.find(label)) for grid, start in self._starts.items())
            number = next((start + place for start, place in places if place is not None), self._count)
            self._numbers[label] = number
            self._count += number == self._count
        return number

    def numbers(self, grid: Grid) -> Ints:
        """The numbers of a grid's labels, a row for each name; they follow each other unless some have numbers already."""
        shape = len(grid.names), len(grid.devices)
        first = self._starts.get(grid)
        if first is None and (self._meets(grid) or any(grid.find(label) is not None for label in self._numbers)):
            return np.array([self.number(label) for label in grid], np.int64).reshape(shape)  # count
        if first is None:
            first, self._count = self._count, self._count + len(grid)
            self._starts[grid] = first
        return np.arange(first, first + len(grid), dtype=np.int64).reshape(shape)

    def all(self) -> Sequence[Label]:
        """The labels in the order of their numbers: the grids, and the other labels before, between and after them."""
        parts: list[tuple[int, tuple[Label, ...] | Grid]] = []
        single = {number: label for label, number in self._numbers.items()}
        begin = 0
        for grid, start in [*self._starts.items(), (None, self._count)]:
            if start > begin:
                parts.append((begin, tuple(single[number] for number in range(begin, start))))
            if grid is not None:
                parts.append((start, grid))
                begin = start + len(grid)
        return Labels(parts)

    def _meets(self, grid: Grid) -> bool:
        return any(each.meets(grid) for each in self._starts)
