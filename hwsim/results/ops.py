"""The ops of a run as rows, created on access; the part of a rank in a collective is one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.opgraph import Ints, Label, RankNames
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO


@dataclass(frozen=True, slots=True)
class OpRow:
    """One op of one iteration, with times since the start of the run.

    Args:
        op: number of the op.
        name, kind: name and kind of the op.
        device: name of the device.
        queue: name of the queue; "" for an op without one.
        program: name of the program.
        iteration: iteration of the loop, from 0.
        start_s, end_s: start and end (s).
        duration_s: duration (s).
        waiting_s: in a collective, time from the arrival of the op's rank until the other ranks have arrived (s).
    """

    op: int
    name: str
    kind: str
    device: str
    queue: str
    program: str
    iteration: int
    start_s: float
    end_s: float
    duration_s: float
    waiting_s: float = 0.0


NamesOf = Callable[[int], RankNames]


def weights(timeline: Timeline) -> Ints:
    """Return the number of ops that each op of the timeline represents: 1 unless the run is folded."""
    flat = timeline.flat
    alike = flat.graph.alike
    counts: Ints = np.ones(len(flat), np.int64) if alike is None else alike.labels[flat.label]
    if alike is not None and len(alike.queues):
        counts = counts * np.append(alike.queues, 1)[flat.queue]
    return counts


@dataclass(frozen=True, repr=False)
class Ops(Sequence[OpRow]):
    """A sequence of all ops with a device, in op order; joins, which only synchronize other ops, are excluded.

    The part of a rank in a collective is one row, from the rank's arrival to its departure.
    """

    timeline: Timeline

    @cached_property
    def numbers(self) -> Ints:
        """Op numbers of the rows."""
        flat = self.timeline.flat
        if not len(flat):
            return np.empty(0, np.int64)
        placed = np.array([bool(label.device) for label in flat.graph.labels], np.bool_)[flat.label]
        return np.flatnonzero(placed if self._arrivals is None else placed & ~self._arrivals.hidden)

    @cached_property
    def _arrivals(self) -> Arrivals | None:
        return arrivals(self.timeline)

    @property
    def begin(self) -> Ints:
        """Start of each op of the timeline (fs); for a collective, the arrival of the rank."""
        return self.timeline.start if self._arrivals is None else self._arrivals.begin

    @cached_property
    def waiting(self) -> Ints:
        """Time that each op of the timeline waits for other ranks (fs)."""
        return np.zeros_like(self.timeline.start) if self._arrivals is None else self._arrivals.waiting

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def total(self) -> int:
        """Number of ops, including ops that the rows of a folded run represent."""
        return int(weights(self.timeline)[self.numbers].sum())

    def __repr__(self) -> str:
        return f"<{len(self)} ops; each has {', '.join(field.name for field in fields(OpRow))}>"

    @overload
    def __getitem__(self, place: int) -> OpRow: ...
    @overload
    def __getitem__(self, place: slice) -> list[OpRow]: ...
    def __getitem__(self, place: int | slice) -> OpRow | list[OpRow]:
        if isinstance(place, slice):
            return [self._row(op) for op in self.numbers[place].tolist()]
        return self._row(int(self.numbers[place]))

    def _row(self, op: int) -> OpRow:
        flat = self.timeline.flat
        label = flat.graph.labels[flat.label[op]]
        queue = int(flat.queue[op])
        start, end = int(self.begin[op]), int(self.timeline.end[op])
        return OpRow(
            op=op,
            name=label.name,
            kind=label.kind,
            device=label.device,
            queue=flat.graph.queues[queue].name if queue >= 0 else "",
            program=label.program,
            iteration=int(flat.iteration[op]),
            start_s=start / FEMTO,
            end_s=end / FEMTO,
            duration_s=(end - start) / FEMTO,
            waiting_s=int(self.waiting[op]) / FEMTO,
        )


def ops_of_rank(timeline: Timeline, number: int, names_of: NamesOf | None) -> tuple[OpRow, ...]:
    """Return the rows of a rank: its own, or those of the first rank of its class with this rank's names.

    Args:
        timeline: timeline.
        number: number of the rank.
        names_of: function from a rank to the names of its labels and queues; None if the run is not folded.

    Raises:
        IndexError: the rank does not exist.
    """
    graph = timeline.flat.graph
    alike = graph.alike
    programs = tuple(dict.fromkeys(label.program for label in graph.labels)) if alike is None else alike.programs
    if not 0 <= number < len(programs):
        raise IndexError(f"there is no rank {number}: they are 0 to {len(programs) - 1}")
    first = number if alike is None else int(alike.first[alike.of[number]])
    rows = [row for row in Ops(timeline) if row.program == programs[first]]
    if first == number or names_of is None:
        return tuple(rows)
    names = names_of(number)
    renamed = []
    for row in rows:
        label = names.labels.get(Label(row.name, row.kind, row.device, row.program))
        if label is not None:
            queue = names.queues.get(row.queue, row.queue)
            renamed.append(
                replace(row, name=label.name, kind=label.kind, device=label.device, program=label.program, queue=queue)
            )
    return tuple(renamed)


# A collective as its ranks see it. In the op graph, a rank's arrival and departure are ops of its queue without duration, and the
# common work of the ranks is ops without a queue between them. The kernel of a communication library starts when its rank arrives
# and spins until the other ranks arrive, so the row of a rank starts at its arrival.
ARRIVE = "arrive"  # kind of the label of an arrival


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Start and waiting time of each op as its rank sees it.

    Args:
        begin: start (fs); for a collective, the arrival of the rank.
        waiting: time that the op waits for other ranks (fs).
        hidden: whether another op shows this one.
        leaves: whether the op is a rank's departure from a collective.
    """

    begin: Ints
    waiting: Ints
    hidden: NDArray[np.bool_]
    leaves: NDArray[np.bool_]


def arrivals(timeline: Timeline) -> Arrivals | None:
    """Return the arrival of each departure from a collective; None without collectives."""
    flat = timeline.flat
    labels = flat.graph.labels
    if not any(label.kind == ARRIVE for label in labels) or not len(flat):
        return None
    arrives = np.array([label.kind == ARRIVE for label in labels], np.bool_)[flat.label]
    queued = np.flatnonzero(flat.queue >= 0)
    queued = queued[np.argsort(flat.queue[queued], kind="stable")]  # by queue, in program order
    current, following = queued[:-1], queued[1:]
    alike = {(label.name, label.device, label.program): number for number, label in enumerate(labels) if label.kind == ARRIVE}
    arrival_of = np.array([alike.get((label.name, label.device, label.program), -1) for label in labels], np.int64)
    pairs = arrives[current] & ~arrives[following] & (flat.queue[current] == flat.queue[following])
    pairs &= arrival_of[flat.label[following]] == flat.label[current]
    came, left = current[pairs], following[pairs]
    source, target = flat.edges()
    step = (flat.queue < 0) & (flat.cost >= 0)
    starts = arrives[source] & step[target]
    first = timeline.end.copy()
    first[came] = timeline.start[left]
    np.minimum.at(first, source[starts], timeline.start[target[starts]])
    begin, waiting = timeline.start.copy(), np.zeros_like(timeline.start)
    begin[left] = timeline.start[came]
    waiting[left] = np.maximum(first[came] - timeline.start[came], 0)
    hidden, leaves = np.zeros(len(flat), np.bool_), np.zeros(len(flat), np.bool_)
    hidden[came] = leaves[left] = True
    met = () if flat.graph.alike is None else tuple(flat.graph.alike.met)
    hidden |= step & (np.isin(flat.label, flat.label[left]) | np.isin(flat.label, met))  # work in one op: each rank shows it
    return Arrivals(begin, waiting, hidden, leaves)
