"""Draws of the pairs of steps, row by row and by number of the capacity: many pairs of many steps at one look.

The machine distinguishes pairs by the shape of their route and by their bytes (`Machine.draws_among`), so that a pair costs a
microsecond and nothing is named but the capacities of one pair of each shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Final, NamedTuple

import numpy as np

from hwsim.communication.drawn import Exchange, Waits
from hwsim.communication.pairs import Pair, columns
from hwsim.communication.placing import handling
from hwsim.communication.rounds import Round
from hwsim.graph.opgraph import Floats, Ints
from hwsim.machine.numbering import Draws
from hwsim.records import dataclass

_AT_ONCE: Final = 1 << 16  # pairs whose rows are held at the same time


class Table(NamedTuple):
    """Different draws. names: a capacity that such a draw is from; the others have its name but for digits, rate and unit."""

    names: Sequence[str]
    amounts: Floats
    moved: Floats


class Step(NamedTuple):
    """Rows of a step in the order of its pairs. number: each row's capacity, by number; which: the row's place in the table.

    waits: overhead and latency of the pair that waits longest; floor: the least seconds of the step.
    """

    number: Ints
    which: Ints
    table: Table
    waits: Waits
    floor: float


class _Read(NamedTuple):
    """A second read, by a receiver that adds. place: its capacity, by place in the cost (-1: none); amount: what it draws."""

    place: int
    amount: float


@dataclass(slots=True)
class _Batch:
    """Steps that are looked at together; which: by step, the place of its pairs among those that differ; count: of pairs."""

    stages: list[Round] = field(default_factory=list)
    which: list[int] = field(default_factory=list)
    pairs: list[Sequence[Pair]] = field(default_factory=list)
    alike: dict[tuple[object, ...], list[int]] = field(default_factory=dict)
    count: int = 0

    def add(self, stage: Round) -> bool:
        """Whether there was room for the step."""
        pairs = stage.pairs
        key = (len(pairs), pairs[0], pairs[-1]) if len(pairs) else ()
        place = next((at for at in self.alike.get(key, ()) if self.pairs[at] is pairs or self.pairs[at] == pairs), None)
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


class Drawing:
    """Draws of the steps of a collective, which are asked for in their order."""

    def __init__(self, exchange: Exchange, rounds: Sequence[Round]) -> None:
        self._exchange = exchange
        self._ahead: list[_Batch] = [_Batch()]
        for stage in rounds:
            if not self._ahead[-1].add(stage):
                self._ahead.append(_Batch())
                self._ahead[-1].add(stage)
        self._ahead.reverse()
        self._now = _Batch()
        self._ready: dict[int, Step] = {}
        self._wires: dict[str, bool] = {}  # by capacity, whether it is a link's
        nodes = [exchange.machine.node_of(name) for name in exchange.placed.parties] if exchange.overheads.hop is not None else []
        joined = exchange.placed.joined
        self._node = _numbered(nodes)
        self._joined = _numbered([joined.get(node, node) for node in nodes]) if joined else self._node

    def step(self, stage: Round) -> Step:
        """The draws of a step."""
        if id(stage) not in self._ready:
            self._ready = self._looked_at(self._batch(stage))
        return self._ready[id(stage)]

    def parts(self, stage: Round) -> Iterator[Step]:
        """The draws of a step, some pairs after others: a step may have millions."""
        pairs = stage.pairs
        if len(pairs) <= _AT_ONCE:
            yield self.step(stage)
            return
        self._batch(stage)
        for low in range(0, len(pairs), _AT_ONCE):
            part, batch = replace(stage, pairs=pairs[low : low + _AT_ONCE]), _Batch()
            batch.add(part)
            yield self._looked_at(batch)[id(part)]

    def _batch(self, stage: Round) -> _Batch:
        """The steps among which this one is looked at: as they are asked for in their order, the present ones or the next."""
        if not any(each is stage for each in self._now.stages):
            self._now = self._ahead.pop()
        return self._now

    def _looked_at(self, batch: _Batch) -> dict[int, Step]:
        exchange = self._exchange
        machine, parties = exchange.machine, exchange.placed.parties
        ends = [columns(pairs) for pairs in batch.pairs]
        bounds = np.cumsum([0, *map(len, ends)]).tolist()  # count
        sources, targets = (np.concatenate([getattr(each, name) for each in ends]) for name in ("sources", "targets"))
        sizes = np.concatenate([each.shares for each in ends]) * exchange.size
        same = len(sizes) > 0 and bool((sizes == sizes[0]).all())
        how = handling(machine, exchange.placed.algorithm, parties[0], parties[1])
        draws = machine.draws_among(parties, sources, targets, float(sizes[0]) if same else sizes, how)
        table, starts = self._table(draws)
        code = 2 * draws.shape + self._far(sources, targets)
        waits, floors = self._waits(draws)
        reads, full = [], table
        if any(stage.reduce for stage in batch.stages):
            _, firsts = np.unique(draws.shape, return_index=True)
            reads = self._reads(draws, firsts, targets, sizes)
            full = _with(table, reads, sizes[firsts])
        ready = {}
        for stage, at in zip(batch.stages, batch.which, strict=True):
            low, high = bounds[at : at + 2]
            begin, end = draws.first[low], draws.first[high]
            shape, first = draws.shape[low:high], draws.first[low : high + 1] - begin
            number = draws.capacity[begin:end]
            which = np.repeat((starts[shape] - first[:-1]).astype(np.int32), np.diff(first))
            which += np.arange(len(number), dtype=np.int32)
            if stage.reduce and reads:
                place = np.array([read.place for read in reads])[shape]  # count
                again = place >= 0
                memory = number[(first[:-1] + place)[again]]
                number = np.insert(number, first[1:][again], memory)
                which = np.insert(which, first[1:][again], len(table.names) + shape[again])
            longest = self._longest(draws, waits, code[low:high])
            ready[id(stage)] = Step(
                number, which, full if stage.reduce else table, longest, float(floors[shape].max(initial=0.0))
            )
        return ready

    def _table(self, draws: Draws) -> tuple[Table, Ints]:
        """The rows of all costs one after another, and the first row of each cost."""
        efficiency = self._exchange.overheads.efficiency
        names: list[str] = []
        amounts: list[float] = []
        moved: list[float] = []
        starts = []
        for cost in draws.costs:
            starts.append(len(names))
            natural = {name: amount for name, amount, unit in cost.moved if unit != "1"}
            for name, amount in cost.demand.amounts:
                names.append(name)
                if name not in self._wires:
                    self._wires[name] = self._exchange.is_wire(name)
                amounts.append(amount / efficiency if self._wires[name] else amount)
                moved.append(natural.get(name, 0.0))
        return Table(names, np.array(amounts, np.float64), np.array(moved, np.float64)), np.array(starts, np.int64)  # count

    def _reads(self, draws: Draws, firsts: Ints, targets: Ints, sizes: Floats) -> list[_Read]:
        """By cost what a receiver that adds reads of its own data."""
        machine, parties = self._exchange.machine, self._exchange.placed.parties
        reads = []
        for pair in firsts.tolist():
            read = self._exchange.read_again(parties[int(targets[pair])], float(sizes[pair]))
            if read is None:
                reads.append(_Read(-1, 0.0))
                continue
            numbers = draws.capacity[draws.first[pair] : draws.first[pair + 1]].tolist()
            reads.append(_Read([machine.capacity_name(number) for number in numbers].index(read[0]), read[1]))
        return reads

    def _far(self, sources: Ints, targets: Ints) -> Ints | int:
        """By pair whether a network lies between its ends (`Placed.across`); 0 where a step takes as long either way."""
        if self._exchange.overheads.hop is None:
            return 0
        apart = (self._node[sources] != self._node[targets]) & (self._joined[sources] != self._joined[targets])
        far: Ints = apart.astype(np.int64)
        return far

    def _waits(self, draws: Draws) -> tuple[Floats, Floats]:
        """By shape, and by whether a network lies between the ends, the seconds that a step waits; by shape the floor."""
        demands = [cost.demand for cost in draws.costs]
        steps = [self._exchange.overheads.of_step(apart) for apart in (False, True)]
        waits = np.array([[step + demand.latency for step in steps] for demand in demands], np.float64)
        return waits.reshape(-1), np.array([demand.floor for demand in demands], np.float64)

    def _longest(self, draws: Draws, waits: Floats, code: Ints) -> Waits:
        """The wait of the first pair that waits longest; code: by pair, of a step."""
        if not len(code):
            return 0.0, 0.0
        shape, apart = divmod(int(code[waits[code].argmax()]), 2)
        overhead, latency = self._exchange.overheads.of_step(bool(apart)), draws.costs[shape].demand.latency
        return (overhead, latency) if overhead + latency > 0 else (0.0, 0.0)


def _with(table: Table, reads: Sequence[_Read], sizes: Floats) -> Table:
    """The table with what receivers read again, a row for each cost."""
    names = [*table.names, *("" for _ in reads)]
    read = np.array([read.amount for read in reads], np.float64)
    return Table(names, np.concatenate([table.amounts, read]), np.concatenate([table.moved, sizes]))


def _numbered(names: Sequence[str]) -> Ints:
    """Equal numbers for equal names."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)  # count
