"""Records of a simulation by compiled code: bottlenecks of each class, and its paces, for which the run is repeated on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.timeline import LimitChange, PaceChange, drop_repeated

Words = NDArray[np.uint64]

WORD: Final = 64
FREE, NEARLY = -1, -3  # bounds of a class: FREE: none; NEARLY - capacity: the capacity, at almost the maximum pace

_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class ReplayRecords:
    """The records of a replay, in the format of `hwsim_flows_notes`; levels only on request."""

    bound_times: Ints
    bound_classes: Ints
    bounds: Ints
    level_times: Ints
    filled: Ints
    levels: Words
    received: Words


class History(Sequence[Sequence[PaceChange]]):
    """A lazy sequence of the pace changes of all classes.

    Records of the bound of each class are few. Levels of capacities are thousands per flow and needed for a few flows at most, so
    they are recorded only when the run is repeated.

    Args:
        alone: maximum pace of each class.
        capacities: number of capacities.
        notes: records without levels.
        again: function that repeats the run and returns records with levels.
    """

    def __init__(self, alone: Sequence[int], capacities: int, notes: ReplayRecords, again: Callable[[], ReplayRecords]) -> None:
        self._alone, self._capacities, self._notes, self._again = alone, capacities, notes, again
        self._last: tuple[int, list[PaceChange]] | None = None

    def __len__(self) -> int:
        return len(self._alone)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[index] for index in range(len(self))[number]]
        index = range(len(self))[number]
        if self._last is None or self._last[0] != index:
            self._last = index, self._pace_changes(index)
        return self._last[1]

    def __reduce__(self) -> tuple[type[History], tuple[Sequence[int], int, ReplayRecords, Callable[[], ReplayRecords]]]:
        return History, (self._alone, self._capacities, self._notes, self._again)

    def held(self, number: int) -> tuple[LimitChange, ...]:
        """Return the bounds of a class, see `Timeline.held`."""
        return tuple(
            drop_repeated(
                LimitChange(start, self._capacity(bound), is_nearly) for start, bound, is_nearly in self._bounds(number)
            )
        )

    def _capacity(self, bound: int) -> int:
        return max(-1, bound if bound < self._capacities else bound - self._capacities)

    def _bounds(self, number: int) -> Iterator[tuple[int, int, bool]]:
        """Yield (time in fs, bound from then on, whether the pace is almost the maximum); clocks come after all capacities."""
        order, first = self._of_class
        rows = order[first[number] : first[number + 1]]
        for start, bound in zip(self._notes.bound_times[rows].tolist(), self._notes.bounds[rows].tolist(), strict=True):
            yield (start, NEARLY - bound, True) if bound <= NEARLY else (start, bound, False)

    @cached_property
    def _of_class(self) -> tuple[Ints, Ints]:
        """Rows of bounds in order of class, and the first position of each class."""
        return _by_number(self._notes.bound_classes, len(self))

    @cached_property
    def _levels(self) -> tuple[ReplayRecords, Ints, Ints]:
        """Records with levels; rows of levels in order of capacity, and the first position of each capacity."""
        notes = self._again()
        return notes, *_by_number(notes.filled, int(notes.filled.max(initial=-1)) + 1)

    def _pace_changes(self, number: int) -> list[PaceChange]:
        bounds, course = list(self._bounds(number)), list[PaceChange]()
        for (start, bound, _), (until, _, _) in zip(bounds, [*bounds, (_NEVER, 0, False)][1:], strict=True):
            if bound < 0:
                course.append(PaceChange(start, self._alone[number] if bound == FREE else 0, -1))
                continue
            times, levels = self._levels_of(bound if bound < self._capacities else self._capacities + number, start, until)
            rows = zip(times.tolist(), levels.tolist(), strict=True)
            course += [PaceChange(time, high << WORD | low, self._capacity(bound)) for time, (low, high) in rows]
        return list(drop_repeated(course))

    def _levels_of(self, capacity: int, begin: int, end: int) -> tuple[Ints, Words]:
        """Columns (time in fs, level) of a capacity that is full at `begin`, for the changes before `end`."""
        notes, order, first = self._levels
        rows = order[first[capacity] : first[capacity + 1]]
        times = notes.level_times[rows]
        low, high = int(np.searchsorted(times, begin, "right")) - 1, int(np.searchsorted(times, end, "left"))
        times = times[low:high]
        times[0] = begin
        return times, notes.levels[rows[low:high]]


def _by_number(numbers: Ints, count: int) -> tuple[Ints, Ints]:
    """Rows in order of their numbers, and the first position of each number below the count."""
    return ticks.order(numbers), np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=count))])


def words(values: Sequence[int], count: int) -> Words:
    """Return integers as rows of 64-bit words, least significant word first."""
    data = bytearray()
    for value in values:
        data += value.to_bytes(8 * count, "little")
    return np.frombuffer(data, "<u8").astype(np.uint64, copy=False).reshape(-1, count)
