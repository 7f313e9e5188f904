"""Amounts that pairs of steps draw, in rows, for any message size; many pairs of many steps are evaluated at once.

The machine classifies pairs by the shape of their route and their share of the bytes (`Machine.draws_among`). So a pair costs
about a microsecond, and only the capacities of one pair per shape get names. The capacities do not depend on the message size, so
a drawing among few devices is cached for other sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Final, NamedTuple

import numpy as np

from hwsim.communication.pairs import Pair, pairs_in_columns
from hwsim.communication.placement import HANDLINGS, PlacedAlgorithm, moved_by_kernels
from hwsim.communication.rounds import Round
from hwsim.demand import Unit
from hwsim.devices import Cpu, Gpu, Memory
from hwsim.graph.opgraph import Ints
from hwsim.machine import Machine
from hwsim.machine.capacity_numbers import TransferDraws
from hwsim.records import dataclass

_AT_ONCE: Final = 1 << 16  # maximum pairs per batch
_DIGITS: Final = str.maketrans("", "", "0123456789")


class CapacityLook(NamedTuple):
    """The features that equivalent capacities share.

    Args:
        name: name without digits.
        link: kind of link; "" for a device.
    """

    name: str
    rate: float
    unit: Unit
    link: str


def look_of(machine: Machine, name: str) -> CapacityLook:
    """Return the properties of a capacity by which equivalent capacities are recognized."""
    capacity = machine.capacities[name]
    return CapacityLook(name.translate(_DIGITS), capacity.rate, capacity.unit, machine.link_kind(name))


class PairKinds(NamedTuple):
    """The kinds of pairs of steps that are evaluated together.

    Args:
        wires: whether the transfer draws from a link, by kind and row.
        readers: memory that a receiver reads once more before a reduction, by kind; its row follows the others; None: no such
            memory.
        starts: index of the first row of each kind.
    """

    draws: TransferDraws
    wires: Sequence[Sequence[bool]]
    readers: Sequence[Cpu | Gpu | Memory | None]
    starts: Ints


class StepRows(NamedTuple):
    """The rows of a step in the order of its pairs.

    Args:
        place: capacity of each row.
        which: index of the row among those of all kinds of pairs.
        code: 2 x kind of each pair, plus 1 if a network lies between its ends.
    """

    kinds: PairKinds
    place: Ints
    which: Ints
    code: Ints


@dataclass(slots=True)
class _Batch:
    """Steps that are evaluated together.

    Args:
        which: index of each step's pairs among the distinct ones.
        count: number of pairs.
    """

    stages: list[Round] = field(default_factory=list)
    which: list[int] = field(default_factory=list)
    pairs: list[Sequence[Pair]] = field(default_factory=list)
    alike: dict[tuple[object, ...], list[int]] = field(default_factory=dict)
    count: int = 0

    def add(self, stage: Round) -> bool:
        """Add a step, and return whether the batch had space for it."""
        pairs = stage.pairs
        key = (len(pairs), pairs[0], pairs[-1]) if len(pairs) else ()
        place = next((i for i in self.alike.get(key, ()) if self.pairs[i] is pairs or self.pairs[i] == pairs), None)
        if place is None:
            if self.pairs and self.count + len(pairs) > _AT_ONCE:
                return False
            place = len(self.pairs)
            self.alike.setdefault(key, []).append(place)
            self.pairs.append(pairs)
            self.count += len(pairs)
        self.stages.append(stage)
        self.which.append(place)
        return True


class StepDraws:
    """The amounts that the steps of a collective draw. Capacities are indexed in the order of their first use.

    Args:
        numbers, look, rates, is_wire: attributes by capacity index.
        looks: distinct looks.
    """

    def __init__(self, machine: Machine, placed: PlacedAlgorithm, rounds: Sequence[Round]) -> None:
        self._machine, self._placed = machine, placed
        self._batches: list[_Batch] = [_Batch()]
        for stage in rounds:
            if not self._batches[-1].add(stage):
                self._batches.append(_Batch())
                self._batches[-1].add(stage)
        self._ready: dict[int, StepRows] = {}
        nodes = [machine.node_of(name) for name in placed.parties]
        self._node, self._joined = _number_names(nodes), _number_names([placed.joined.get(node, node) for node in nodes])
        self._by_kernels = moved_by_kernels(machine, placed)
        self._place: Ints = np.empty(0, np.int32)  # index by capacity number
        self._look_of_name: dict[str, int] = {"": -1}  # "": a second read, whose capacity has a separate row
        self._names: dict[int, str] = {}  # cached names by capacity index
        self.numbers: Ints = np.empty(0, np.int32)
        self.look: Ints = np.empty(0, np.int32)
        self.looks: dict[CapacityLook, int] = {}
        self.rates, self.is_wire = np.empty(0), np.empty(0, np.bool_)

    def step(self, stage: Round) -> StepRows:
        """Return the rows of a step."""
        if id(stage) not in self._ready:
            batch = next(batch for batch in self._batches if any(stage is known for known in batch.stages))
            self._ready = self._evaluate(batch)
        return self._ready[id(stage)]

    def parts(self, stage: Round) -> Iterator[StepRows]:
        """Yield the rows of a step in parts, because a step may have millions of pairs."""
        pairs = stage.pairs
        if len(pairs) <= _AT_ONCE:
            yield self.step(stage)
            return
        for low in range(0, len(pairs), _AT_ONCE):
            part, batch = replace(stage, pairs=pairs[low : low + _AT_ONCE]), _Batch()
            batch.add(part)
            yield self._evaluate(batch)[id(part)]

    def name(self, place: int) -> str:
        """Return the name of a capacity."""
        name = self._names.get(place)
        if name is None:
            name = self._names[place] = self._machine.capacity_name(int(self.numbers[place]))
        return name

    def _evaluate(self, batch: _Batch) -> dict[int, StepRows]:
        ends = [pairs_in_columns(pairs) for pairs in batch.pairs]
        bounds = np.cumsum([0, *map(len, ends)]).tolist()  # count
        sources, targets = (np.concatenate([getattr(pairs, name) for pairs in ends]) for name in ("sources", "targets"))
        shares = np.concatenate([pairs.shares for pairs in ends])
        handling = (self._by_kernels[sources] & self._by_kernels[targets]).astype(np.int64)
        draws = self._machine.draws_among(self._placed.parties, sources, targets, shares, (HANDLINGS, handling))
        names, memory, kinds = self._kinds(draws, targets)
        rows = np.repeat((kinds.starts[draws.shape] - draws.first[:-1]).astype(np.int32), np.diff(draws.first))
        rows += np.arange(len(rows), dtype=np.int32)
        places = self._places(draws.capacity, np.array([self._look_number(name) for name in names], np.int32)[rows])
        code = 2 * draws.shape + ((self._node[sources] != self._node[targets]) & (self._joined[sources] != self._joined[targets]))
        ready = {}
        for stage, index in zip(batch.stages, batch.which, strict=True):
            low, high = bounds[index : index + 2]
            begin, end = draws.first[low], draws.first[high]
            shape, first = draws.shape[low:high], draws.first[low : high + 1] - begin
            place, step_rows = places[begin:end], rows[begin:end]
            if stage.reduce:
                reads = memory[shape]
                again = reads >= 0
                place, step_rows = (
                    np.insert(place, first[1:][again], place[(first[:-1] + reads)[again]]),
                    np.insert(step_rows, first[1:][again], (kinds.starts[shape] + np.diff(first))[again]),
                )
            ready[id(stage)] = StepRows(kinds, place, step_rows, code[low:high])
        return ready

    def _kinds(self, draws: TransferDraws, targets: Ints) -> tuple[list[str], Ints, PairKinds]:
        """Return the names of all rows, the row by kind of the memory that is read again (-1: none), and the kinds."""
        machine, every, starts, memory = self._machine, list[str](), list[int](), list[int]()
        wires, readers = list[Sequence[bool]](), list[Cpu | Gpu | Memory | None]()
        _, firsts = np.unique(draws.shape, return_index=True)
        for kind, cost, receiver in zip(draws.kinds, draws.costs, targets[firsts].tolist(), strict=True):
            names = [name for name, _ in cost.demand.amounts]
            model = machine.device(self._placed.parties[receiver]).model
            reader = model if names and isinstance(model, Cpu | Gpu | Memory) else None
            readers.append(reader)
            memory.append(-1 if reader is None else names.index(reader.copy_bytes(kind.b, 1.0)[0]))
            wires.append([machine.capacities[name].unit == "B" for name in names])
            starts.append(len(every))
            every += [*names, ""]
        return every, np.array(memory, np.int64), PairKinds(draws, wires, readers, np.array(starts, np.int64))  # count

    def _places(self, number: Ints, look: Ints) -> Ints:
        """Return the capacity index of each row, and assign the next index to new capacities."""
        if not len(self._place):
            self._place = np.full(self._machine.capacity_numbers, -1, np.int32)
        places: Ints = self._place[number]
        new = np.flatnonzero(places < 0)
        if len(new):
            self._place[number[new[::-1]]] = -2 - new[::-1]  # the first row of each capacity
            new = new[self._place[number[new]] == -2 - new]
            self._place[number[new]] = np.arange(len(self.numbers), len(self.numbers) + len(new))
            self.numbers = np.append(self.numbers, number[new].astype(np.int32))
            self.look = np.append(self.look, look[new])
            self.rates = np.array([look.rate for look in self.looks])[self.look]
            self.is_wire = np.array([look.unit == "B" for look in self.looks], np.bool_)[self.look]
            places = self._place[number]
        if len(self._batches) == 1 and self._batches[0].count <= _AT_ONCE:
            self._place = self._place[:0]  # no further batch follows, and the machine may be large
        return places

    def _look_number(self, name: str) -> int:
        number = self._look_of_name.get(name)
        if number is None:
            number = self._look_of_name[name] = self.looks.setdefault(look_of(self._machine, name), len(self.looks))
        return number


def _number_names(names: Sequence[str]) -> Ints:
    """Return equal numbers for equal names."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)  # count
