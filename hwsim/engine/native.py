"""Replay by compiled code: the arrays it wants, and the timeline it makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Literal, overload

import numpy as np
from numpy.typing import NDArray

from hwsim.engine.compile import Compiled
from hwsim.engine.fair import FULL
from hwsim.engine.fast import Kernels
from hwsim.engine.fluid import FlowClass
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints
from hwsim.results.timeline import PaceChange, Timeline

Words = NDArray[np.uint64]

WORD = 64
MASK = (1 << WORD) - 1
PACE_BITS, WIDE_BITS = 126, 190  # what the kernels keep in two words, and in three
TIME_BITS = 63
FREE: Final = -1  # of what holds a class back: nothing does


class Course(Sequence[PaceChange]):
    """Paces of one class over time: rows of fs and capacity, and of a pace in two words."""

    def __init__(self, rows: Ints, paces: Words) -> None:
        self._rows, self._paces = rows, paces

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PaceChange]:
        return iter(self[:])

    def served(self, begin: int, end: int) -> tuple[int, int]:
        """(pace x fs from begin to end, pace at the end), begin being in the first pace or before it."""
        since = np.maximum(self._rows[:, 0], begin)
        spans = np.minimum(np.append(since[1:], end), end) - since
        used = np.flatnonzero(spans > 0)
        if not used.size:
            return 0, 0
        low, high = self._paces[used[-1]].tolist()
        return _dot(self._paces[used], spans[used]), high << WORD | low

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
    """The courses of all classes, each put together when it is asked for, of the notes of `kernels.notes`.

    alone: pace of each class that nothing holds back.
    """

    def __init__(self, alone: Sequence[int], bounds: Ints, solves: Ints, filled: Ints, levels: Words) -> None:
        self._alone, self._bounds, self._solves = alone, bounds, solves
        self._filled, self._levels = filled, levels
        self._last: tuple[int, Course] | None = None

    def __len__(self) -> int:
        return len(self._alone)

    @overload
    def __getitem__(self, number: int) -> Course: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Course]: ...

    def __getitem__(self, number: int | slice) -> Course | Sequence[Course]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        place = range(len(self))[number]
        if self._last is None or self._last[0] != place:
            self._last = place, self._course(place, None, None)
        return self._last[1]

    def service(self, number: int, begin: int, end: int) -> tuple[int, int]:
        """See `Timeline.service`; only what happened from begin to end is put together."""
        return self._course(number, begin, end).served(begin, end) if begin < end else (0, 0)

    @cached_property
    def _of_class(self) -> tuple[Ints, Ints]:
        """Rows of bounds class by class, and the first place of each class."""
        return _by(self._bounds[:, 1], len(self))

    @cached_property
    def _of_capacity(self) -> tuple[Ints, Ints]:
        """Rows of levels capacity by capacity, and the first place of each capacity."""
        return _by(self._filled, int(self._filled.max(initial=-1)) + 1)

    def _course(self, number: int, begin: int | None, end: int | None) -> Course:
        """The course of a class from the pace at `begin` to `end`; None: its whole course."""
        order, first = self._of_class
        rows_of_class = self._bounds[order[first[number] : first[number + 1]]]
        low = 0 if begin is None else max(0, int(np.searchsorted(rows_of_class[:, 0], begin, "right")) - 1)
        high = None if end is None else int(np.searchsorted(rows_of_class[:, 0], end, "left"))
        starts, _, bounds = rows_of_class[low:high].T
        if begin is not None:
            starts = np.maximum(starts, begin)
        rows, paces = [], []
        for start, until, bound in zip(starts.tolist(), [*starts.tolist(), end][1:], bounds.tolist(), strict=True):
            if bound < 0:
                rows.append(np.array([[start, -1]], np.int64))  # fits: a start is read from an int64 column
                paces.append(_words([self._alone[number] if bound == FREE else 0], 2))
                continue
            times, levels = self._levels_of(bound, start, until)
            rows.append(np.column_stack([times, np.full(len(times), bound)]))
            paces.append(levels)
        empty = np.empty((0, 2), np.int64), np.empty((0, 2), np.uint64)
        return Course(np.concatenate([empty[0], *rows]), np.concatenate([empty[1], *paces]))

    def _levels_of(self, capacity: int, begin: int, end: int | None) -> tuple[Ints, Words]:
        """(fs, level) of a capacity that is full at `begin`, and of its changes before `end`."""
        order, first = self._of_capacity
        rows = order[first[capacity] : first[capacity + 1]]
        solves, firsts = self._solves.T
        low = int(np.searchsorted(rows, _row_at(solves, firsts, begin, "right", len(self._filled)))) - 1
        high = len(rows) if end is None else int(np.searchsorted(rows, _row_at(solves, firsts, end, "left", len(self._filled))))
        rows = rows[low:high]
        times = solves[np.searchsorted(firsts, rows, "right") - 1]
        times[0] = begin
        return times, self._levels[rows]


def _by(numbers: Ints, count: int) -> tuple[Ints, Ints]:
    """Rows in order of their numbers, and the first place of each number."""
    order = np.argsort(numbers, kind="stable")
    return order, np.searchsorted(numbers[order], np.arange(count + 1))


def _row_at(solves: Ints, firsts: Ints, time: int, side: Literal["left", "right"], rows: int) -> int:
    """The first row of levels of the first solve at a time or later ("left"), or after it ("right")."""
    place = int(np.searchsorted(solves, time, side))
    return int(firsts[place]) if place < len(firsts) else rows


def play(flat: FlatGraph, compiled: Compiled, code: Kernels) -> Timeline | None:
    """The timeline of a graph to which nothing is added, bit for bit as by `hwsim.engine.replay`.

    None if compiled code cannot play it: requests are served, demands crowd at a device, or numbers do not fit its words.
    """
    narrow = object not in (compiled.fixed.dtype, compiled.flow.dtype)
    if compiled.played.any() or any(one.crowd for one in compiled.classes) or not narrow or not fits(compiled.classes, len(flat)):
        return None
    start, end, granted = (np.full(len(flat), -1, np.int64) for _ in range(3))
    flows = _flows(compiled, len(flat.graph.capacities), code)
    how, notes = code.replay(
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
        paces=History([one.alone for one in compiled.classes], *notes),
        alone=tuple(one.alone for one in compiled.classes),
        solves=int(flows.counts[code.columns.SOLVES]),
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


def _dot(paces: Words, spans: Ints) -> int:
    """Exact sum of paces x spans (fs, not negative), by halves of their words."""
    half, parts = WORD // 2, spans.astype(np.uint64)
    mask = np.uint64((1 << half) - 1)
    left = [word for column in paces.T for word in (column & mask, column >> np.uint64(half))]
    total = 0
    for first, of_pace in enumerate(left):
        for second, of_span in enumerate((parts & mask, parts >> np.uint64(half))):
            products = of_pace * of_span
            low, high = int((products & mask).sum()), int((products >> np.uint64(half)).sum())  # fits: halves of words
            total += (low + (high << half)) << half * (first + second)
    return total


def _words(values: Sequence[int], count: int) -> Words:
    """Integers in words of 64 bits, the least first; a row each."""
    columns = [[value >> WORD * place & MASK for value in values] for place in range(count)]
    return np.array(columns, np.uint64).reshape(count, len(values)).T.copy()


def _flows(compiled: Compiled, capacities: int, code: Kernels) -> Any:
    """The columns of `kernels.flows.Flows` before anything flows."""
    names, classes = code.columns, compiled.classes
    count = len(classes)
    pairs = [(capacity, number, weight) for number, one in enumerate(classes) for capacity, weight in one.weights]
    draws = [(capacity, number, drawn, held) for number, one in enumerate(classes) for capacity, drawn, held in one.draws()]
    weights = {weight: place for place, weight in enumerate(sorted({row[2] for row in pairs}))}
    table = np.zeros((count, names.ASKED + 1), np.int64)
    table[:, names.ROOT] = -1
    table[:, names.BOUND] = names.NOBODY
    for rows, first, last in ((pairs, names.FIRST_PAIR, names.LAST_PAIR), (draws, names.FIRST_DRAW, names.LAST_DRAW)):
        begins = _begins([row[1] for row in rows], count)
        table[:, first], table[:, last] = begins[:-1], begins[1:]
    rooms = np.zeros((capacities, names.SPOILT + 1), np.int64)
    rooms[:, names.FIRST_USER] = _begins(sorted(row[0] for row in pairs), capacities)[:-1]
    words = np.zeros((capacities, names.BEFORE + 2), np.uint64)
    words[:, names.NOTED :] = MASK  # no level
    sums = np.zeros((capacities, names.LEAST + 2), np.uint64)
    sums[:, names.LEAST :] = MASK
    groups = np.zeros((capacities + count, names.MARKED + 1), np.int64)
    groups[:, [names.DUE, names.DUE_PLACE, names.FIRST]] = -1
    ops = len(compiled.fixed) if classes else 0
    margins = _margins(classes, ops)
    counts = np.zeros(names.TRIES + 1, np.int64)
    counts[names.TRIES] = margins is not None
    return code.flows.Flows(
        classes=table,
        class_words=np.hstack([_words([one.alone for one in classes], 2), np.zeros((count, 5), np.uint64)]),
        capacities=rooms,
        capacity_words=words,
        levels=np.full((capacities, 2), MASK, np.uint64),
        sums=sums,
        tops=np.full(capacities, float(2 ** (2 * WORD))),
        pairs=np.array([(*row[:2], -1, weights[row[2]]) for row in pairs], np.int32).reshape(-1, names.WEIGHT + 1),
        weights=_words([*weights], 2),
        users=np.zeros((len(pairs), names.OWN_WEIGHT + 1), np.int32),
        others=np.zeros((len(pairs), names.OTHER_WEIGHT + 1), np.int32),
        draws=np.array([row[0] for row in draws], np.int64),
        draw_words=np.hstack([_words([row[2] + row[3] for row in draws], 3), _words([row[3] for row in draws], 3)]),
        groups=groups,
        group_words=np.zeros((capacities + count, names.KEY + 3), np.uint64),
        ops=np.empty((ops, 2), np.int32),
        op_words=np.empty((ops, 3), np.uint64),
        due_heap=np.zeros(capacities + count, np.int64),
        lists=np.zeros((names.SCARCE + 1, 2 * count + len(pairs) + len(draws) + 1), np.int64),
        queue=np.zeros((2 * count + capacities + 1, 3), np.uint64),
        waiting_tops=np.zeros(capacities + 1),
        waiting_ones=np.zeros(capacities + 1, np.int32),
        counts=counts,
        full=_words([FULL], 3)[0],
        margins=np.concatenate([_words([part], width)[0] for part, width in zip(margins or (0, 0), (2, 3), strict=True)]),
    )


def _margins(classes: Sequence[FlowClass], ops: int) -> tuple[int, int] | None:
    """By how much a level must be above a pace, and how much must be left of a capacity, for roundings to make no difference.

    None where capacities are held, or where weights differ by orders of magnitude.
    """
    weights = [weight for one in classes for _, weight in one.weights if weight]
    if not weights or any(one.holds for one in classes):
        return None
    most = ops * max(weights)
    above = most // min(weights) + 2
    return (above, most) if above << 20 < min(one.alone for one in classes) else None


def _begins(sorted_numbers: Sequence[int], count: int) -> Ints:
    return np.searchsorted(np.array(sorted_numbers, np.int64), np.arange(count + 1)).astype(np.int64)
