"""Replay by compiled code: the arrays it wants, and the timeline it makes of them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Literal, overload

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.engine import core
from hwsim.engine.compile import Compiled
from hwsim.engine.fair import FULL
from hwsim.engine.fluid import FlowClass
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
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


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes of a replay, as `hwsim_flows_notes` says."""

    bound_times: Ints
    bound_classes: Ints
    bounds: Ints
    solve_times: Ints
    solve_firsts: Ints
    levels: Words
    order: NDArray[np.uint32]
    first: Ints


class _Notes(ctypes.Structure):
    """`hwsim_notes` of core/src/hwsim_core.h."""

    _fields_ = [(f"column{place}", ctypes.c_void_p) for place in range(10)] + [
        (name, ctypes.c_int64) for name in ("solves", "rows")
    ]


class History(Sequence[Sequence[PaceChange]]):
    """The courses of all classes, each put together when it is asked for, of what was noted.

    alone: pace of each class that nothing holds back.
    """

    def __init__(self, alone: Sequence[int], notes: Notes) -> None:
        self._alone, self._notes = alone, notes
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
            self._last = place, self._course(place)
        return self._last[1]

    def service(self, number: int, begin: int, end: int) -> tuple[int, int]:
        """See `Timeline.service`."""
        if begin >= end:
            return 0, 0
        totals = (ctypes.c_uint64 * 5)()
        received = core.kernel("hwsim_notes_service", ctypes.POINTER(_Notes), core.INT, core.INT, core.INT, ctypes.c_void_p)
        received(ctypes.byref(self._sorted[0]), number, begin, end, totals)
        low, middle, high, pace, above = totals
        return high << 2 * WORD | middle << WORD | low, above << WORD | pace

    def __reduce__(self) -> tuple[type[History], tuple[Sequence[int], Notes]]:
        return History, (self._alone, self._notes)

    @cached_property
    def _sorted(self) -> tuple[_Notes, list[NDArray[Any]]]:
        """The notes for the library, and the columns that they lie in."""
        notes, (order, first) = self._notes, self._of_class
        columns: list[NDArray[Any]] = [notes.bound_times, notes.bounds, order, first, notes.solve_times, notes.solve_firsts]
        columns += [notes.levels, notes.order, notes.first, _words(self._alone, 2)]
        return _Notes(*(column.ctypes.data for column in columns), len(notes.solve_times), len(notes.levels)), columns

    @cached_property
    def _of_class(self) -> tuple[NDArray[np.uint32], Ints]:
        """Rows of bounds class by class, and the first place of each class."""
        numbers = self._notes.bound_classes
        order = ticks.order(numbers).astype(np.uint32)
        return order, np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=len(self)))])

    def _course(self, number: int) -> Course:
        order, first = self._of_class
        of_class = order[first[number] : first[number + 1]]
        starts, bounds = self._notes.bound_times[of_class].tolist(), self._notes.bounds[of_class].tolist()
        rows, paces = [np.empty((0, 2), np.int64)], [np.empty((0, 2), np.uint64)]
        for start, until, bound in zip(starts, [*starts, None][1:], bounds, strict=True):
            if bound < 0:
                rows.append(np.array([[start, -1]], np.int64))  # fits: a start is read from an int64 column
                paces.append(_words([self._alone[number] if bound == FREE else 0], 2))
                continue
            times, levels = self._levels_of(bound, start, until)
            rows.append(np.column_stack([times, np.full(len(times), bound)]))
            paces.append(levels)
        return Course(np.concatenate(rows), np.concatenate(paces))

    def _levels_of(self, capacity: int, begin: int, end: int | None) -> tuple[Ints, Words]:
        """(fs, level) of a capacity that is full at `begin`, and of its changes before `end`."""
        notes = self._notes
        rows = notes.order[notes.first[capacity] : notes.first[capacity + 1]]
        solves, firsts, every = notes.solve_times, notes.solve_firsts, len(notes.levels)
        low = int(np.searchsorted(rows, _row_at(solves, firsts, begin, "right", every))) - 1
        high = len(rows) if end is None else int(np.searchsorted(rows, _row_at(solves, firsts, end, "left", every)))
        rows = rows[low:high]
        times = solves[np.searchsorted(firsts, rows, "right") - 1]
        times[0] = begin
        return times, notes.levels[rows]


def _row_at(solves: Ints, firsts: Ints, time: int, side: Literal["left", "right"], rows: int) -> int:
    """The first row of levels of the first solve at a time or later ("left"), or after it ("right")."""
    place = int(np.searchsorted(solves, time, side))
    return int(firsts[place]) if place < len(firsts) else rows


def play(flat: FlatGraph, compiled: Compiled) -> Timeline | None:
    """The timeline of a graph to which nothing is added, bit for bit as by `hwsim.engine.replay`.

    None if compiled code cannot play it: requests are served, demands crowd at a device, or numbers do not fit its words.
    """
    narrow = object not in (compiled.fixed.dtype, compiled.flow.dtype)
    if compiled.played.any() or any(one.crowd for one in compiled.classes) or not narrow or not fits(compiled.classes, len(flat)):
        return None
    start, end = (np.empty(len(flat), np.int64) for _ in range(2))
    granted = np.empty(len(flat) if flat.graph.pools else 0, np.int64)
    flows = _flows(compiled, len(flat.graph.capacities))
    columns = core.LONGS, core.INTS, core.INTS, core.BOOLS, core.LONGS, core.LONGS, core.INTS, core.INTS, core.INTS
    replay = core.kernel(
        "hwsim_replay", core.INT, *columns, core.INT, core.LONGS, core.POINTER, core.LONGS, core.LONGS, core.LONGS, core.INT
    )
    given = (
        len(flat),
        flat.first,
        flat.next,
        flat.waits_for,
        flat.joins(),
        compiled.fixed,
        compiled.flow,
        compiled.flow_class,
        np.ascontiguousarray(flat.take[: len(granted)]),
        np.ascontiguousarray(flat.give[: len(granted)]),
        len(flat.graph.pools),
        np.array([pool.servers for pool in flat.graph.pools], np.int64),
        flows.address,
        start,
        end,
        granted,
        core.PATIENCE,
    )
    while (how := replay(*given)) == core.MORE:
        pass
    if how != core.DONE:
        return None
    notes, solves = _notes(flows, len(flat.graph.capacities))
    return Timeline(
        flat=flat,
        start=start,
        end=end,
        granted=granted if flat.graph.pools else np.broadcast_to(np.int64(-1), start.shape),
        flow_class=compiled.flow_class,
        paces=History([one.alone for one in compiled.classes], notes),
        alone=tuple(one.alone for one in compiled.classes),
        solves=solves,
    )


def _flows(compiled: Compiled, capacities: int) -> core.Handle:
    """The classes of demands, for the library."""
    classes, count = compiled.classes, len(compiled.classes)
    pairs = [(number, *pair) for number, one in enumerate(classes) for pair in one.weights]
    draws = [(number, *draw) for number, one in enumerate(classes) for draw in one.draws()]
    weights = {weight: place for place, weight in enumerate(sorted({pair[2] for pair in pairs}))}
    above, left = _margins(classes, len(compiled.fixed)) or (0, 0)
    made = core.POINTER()
    rows = core.LONGS, core.INTS
    create = core.kernel(
        "hwsim_flows_new", core.INT, core.WORDS, *rows, core.INTS, core.INT, core.WORDS, *rows, core.WORDS,
        core.INT, core.WORDS, core.WORDS, ctypes.POINTER(core.POINTER),
    )  # fmt: skip
    create(
        count,
        _words([one.alone for one in classes], 2),
        _begins([pair[0] for pair in pairs], count),
        np.array([pair[1] for pair in pairs], np.int32),
        np.array([weights[pair[2]] for pair in pairs], np.int32),
        len(weights),
        _words([*weights], 2),
        _begins([draw[0] for draw in draws], count),
        np.array([draw[1] for draw in draws], np.int32),
        np.hstack([_words([draw[2] + draw[3] for draw in draws], 3), _words([draw[3] for draw in draws], 3)]),
        capacities,
        _words([FULL], 3),
        np.hstack([_words([above], 2), _words([left], 3)]),
        ctypes.byref(made),
    )
    return core.Handle(made.value or 0, "hwsim_flows_free")


def _notes(flows: core.Handle, capacities: int) -> tuple[Notes, int]:
    """The notes of a replay, and how often shares were found."""
    sizes, places = np.zeros(4, np.int64), (ctypes.c_void_p * 8)()
    core.kernel("hwsim_flows_notes", core.POINTER, core.LONGS, ctypes.c_void_p)(flows.address, sizes, places)
    bounds, solves, levels, solved = sizes.tolist()
    kinds: Sequence[tuple[type, tuple[int, ...]]] = (
        (np.int64, (bounds,)),
        (np.int32, (bounds,)),
        (np.int32, (bounds,)),
        (np.int64, (solves,)),
        (np.int64, (solves,)),
        (np.uint64, (levels, 2)),
        (np.uint32, (levels,)),
        (np.int64, (capacities + 1,)),
    )
    columns = [flows.column(place, dtype, *shape) for place, (dtype, shape) in zip(places, kinds, strict=True)]
    return Notes(*columns), solved


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
