"""Replay by compiled code: the arrays it wants, and the timeline it makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hwsim.engine.compile import Compiled
from hwsim.engine.fair import FULL
from hwsim.engine.fast import Kernels
from hwsim.engine.fluid import FlowClass
from hwsim.graph.opgraph import FlatGraph, Ints
from hwsim.results.timeline import PaceChange, Timeline

Words = NDArray[np.uint64]

WORD = 64
MASK = (1 << WORD) - 1
PACE_BITS, WIDE_BITS = 126, 190  # what the kernels keep in two words, and in three
TIME_BITS = 63


class Course(Sequence[PaceChange]):
    """Paces of one class over time: rows of fs and capacity, and of a pace in two words."""

    def __init__(self, rows: Ints, paces: Words) -> None:
        self._rows, self._paces = rows, paces

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PaceChange]:
        return iter(self[:])

    @property
    def starts(self) -> Ints:
        """When each pace begins, in fs."""
        return self._rows[:, 0]

    @overload
    def __getitem__(self, place: int) -> PaceChange: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[PaceChange]: ...

    def __getitem__(self, place: int | slice) -> PaceChange | Sequence[PaceChange]:
        if isinstance(place, slice):
            rows, paces = self._rows[place].tolist(), self._paces[place].tolist()
            return [PaceChange(start, high << WORD | low, bound) for (start, bound), (low, high) in zip(rows, paces, strict=True)]
        (start, bound), (low, high) = self._rows[place].tolist(), self._paces[place].tolist()
        return PaceChange(start, high << WORD | low, bound)


class History(Sequence[Sequence[PaceChange]]):
    """The courses of all classes, one after the other; `first`: where each begins."""

    def __init__(self, first: Ints, rows: Ints, paces: Words) -> None:
        self._first, self._rows, self._paces = first.tolist(), rows, paces

    def __len__(self) -> int:
        return len(self._first) - 1

    @overload
    def __getitem__(self, number: int) -> Course: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Course]: ...

    def __getitem__(self, number: int | slice) -> Course | Sequence[Course]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        place = range(len(self))[number]
        own = slice(self._first[place], self._first[place + 1])
        return Course(self._rows[own], self._paces[own])


def play(flat: FlatGraph, compiled: Compiled, code: Kernels) -> Timeline | None:
    """The timeline of a graph to which nothing is added, bit for bit as by `hwsim.engine.replay`.

    None if compiled code cannot play it: requests are served, demands crowd at a device, or numbers do not fit its words.
    """
    narrow = object not in (compiled.fixed.dtype, compiled.flow.dtype)
    if compiled.played.any() or any(one.crowd for one in compiled.classes) or not narrow or not fits(compiled.classes, len(flat)):
        return None
    start, end, granted = (np.full(len(flat), -1, np.int64) for _ in range(3))
    flows = _flows(compiled, len(flat.graph.capacities), code)
    how, history = code.replay(
        flat.first,
        flat.next,
        flat.waits_for.copy(),
        flat.joins(),
        compiled.fixed,
        flat.take,
        flat.give,
        np.array([pool.servers for pool in flat.graph.pools], np.int64),
        start,
        end,
        granted,
        compiled.flow,
        compiled.flow_class,
        flows,
    )
    if how != code.play.DONE:
        return None
    return Timeline(
        flat=flat,
        start=start,
        end=end,
        granted=granted,
        flow_class=compiled.flow_class,
        paces=History(*history),
        alone=tuple(one.alone for one in compiled.classes),
        solves=int(flows.counts[code.flows.SOLVES]),
    )


def fits(classes: Sequence[FlowClass], ops: int) -> bool:
    """Whether no sum that such a graph can need leaves the words of the kernels."""
    most = ops.bit_length()
    pace = max((one.alone.bit_length() for one in classes), default=0)
    weight = max((weight.bit_length() for one in classes for _, weight in one.weights), default=0)
    draw = max((one.alone * weight for one in classes for _, weight in one.weights), default=0).bit_length()
    hold = max((part.bit_length() for one in classes for _, part in one.holds), default=0)
    return (
        pace <= PACE_BITS - 2
        and weight + most <= PACE_BITS
        and pace + TIME_BITS < WIDE_BITS
        and max(draw, hold) + most < WIDE_BITS
    )


def _words(values: Sequence[int], count: int) -> Words:
    """Integers in words of 64 bits, the least first; a row each."""
    columns = [[value >> WORD * place & MASK for value in values] for place in range(count)]
    return np.array(columns, np.uint64).reshape(count, len(values)).T.copy()


def _flows(compiled: Compiled, capacities: int, code: Kernels) -> Any:
    """The columns of `kernels.flows.Flows` before anything flows."""
    names, classes = code.flows, compiled.classes
    count = len(classes)
    pairs = [(capacity, number, weight) for number, one in enumerate(classes) for capacity, weight in one.weights]
    draws = [(capacity, number, drawn, held) for number, one in enumerate(classes) for capacity, drawn, held in one.draws()]
    table = np.zeros((count, names.LAST_DRAW + 1), np.int64)
    table[:, [names.ROOT, names.BOUND, names.DUE, names.DUE_PLACE]] = -1
    for rows, first, last in ((pairs, names.FIRST_PAIR, names.LAST_PAIR), (draws, names.FIRST_DRAW, names.LAST_DRAW)):
        begins = _begins([row[1] for row in rows], count)
        table[:, first], table[:, last] = begins[:-1], begins[1:]
    rooms = np.zeros((capacities, names.SEEN + 1), np.int64)
    rooms[:, names.FIRST_USER] = _begins(sorted(row[0] for row in pairs), capacities)[:-1]
    ops = len(compiled.fixed) if classes else 0
    return names.Flows(
        classes=table,
        class_words=np.hstack([_words([one.alone for one in classes], 2), np.zeros((count, 7), np.uint64)]),
        capacities=rooms,
        capacity_words=np.zeros((capacities, names.LEVEL + 2), np.uint64),
        pairs=np.array([(*row[:2], 0) for row in pairs], np.int64).reshape(-1, 3),
        pair_words=_words([row[2] for row in pairs], 2),
        draws=np.array([row[0] for row in draws], np.int64),
        draw_words=np.hstack([_words([row[2] + row[3] for row in draws], 3), _words([row[3] for row in draws], 3)]),
        ops=np.empty((ops, 2), np.int32),
        op_words=np.empty((ops, 3), np.uint64),
        user=np.zeros(len(pairs), np.int64),
        due_heap=np.zeros(count, np.int64),
        lists=np.zeros((names.CHANGED + 1, 2 * count + len(pairs) + len(draws) + 1), np.int64),
        queue=np.zeros((2 * count + capacities + 1, 3), np.uint64),
        counts=np.zeros(names.RISING + 1, np.int64),
        full=_words([FULL], 3)[0],
    )


def _begins(sorted_numbers: Sequence[int], count: int) -> Ints:
    return np.searchsorted(np.array(sorted_numbers, np.int64), np.arange(count + 1)).astype(np.int64)
