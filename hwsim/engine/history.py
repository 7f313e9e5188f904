"""Notes of a run that compiled code played: the bottleneck of each class, and its paces, for which the run is played again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.timeline import Held, PaceChange, differing

Words = NDArray[np.uint64]

WORD: Final = 64
FREE, NEARLY = -1, -3  # of what holds a class back: nothing does; NEARLY - capacity: it does, at nearly the pace alone

_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes of a replay, as `hwsim_flows_notes` says; of levels only if they were wanted."""

    bound_times: Ints
    bound_classes: Ints
    bounds: Ints
    level_times: Ints
    filled: Ints
    levels: Words
    received: Words


class History(Sequence[Sequence[PaceChange]]):
    """The courses of all classes, each put together when it is asked for.

    Notes of what holds each class back are few. Levels of capacities are thousands for each flow, and wanted of a few flows at
    the most: they are noted when the run is played again.

    Args:
        alone: pace of each class that nothing holds back.
        notes: those without levels.
        again: the notes with levels.
    """

    def __init__(self, alone: Sequence[int], notes: Notes, again: Callable[[], Notes]) -> None:
        self._alone, self._notes, self._again = alone, notes, again
        self._last: tuple[int, list[PaceChange]] | None = None

    def __len__(self) -> int:
        return len(self._alone)

    @overload
    def __getitem__(self, number: int) -> list[PaceChange]: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[list[PaceChange]]: ...

    def __getitem__(self, number: int | slice) -> list[PaceChange] | Sequence[list[PaceChange]]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        place = range(len(self))[number]
        if self._last is None or self._last[0] != place:
            self._last = place, self._course(place)
        return self._last[1]

    def __reduce__(self) -> tuple[type[History], tuple[Sequence[int], Notes, Callable[[], Notes]]]:
        return History, (self._alone, self._notes, self._again)

    def held(self, number: int) -> tuple[Held, ...]:
        """See `Timeline.held`."""
        return tuple(differing(Held(start, max(-1, bound), is_nearly) for start, bound, is_nearly in self._bounds(number)))

    def _bounds(self, number: int) -> Iterator[tuple[int, int, bool]]:
        """(fs, what holds the class back from then on, whether at nearly its pace alone)."""
        order, first = self._of_class
        rows = order[first[number] : first[number + 1]]
        for start, bound in zip(self._notes.bound_times[rows].tolist(), self._notes.bounds[rows].tolist(), strict=True):
            yield (start, NEARLY - bound, True) if bound <= NEARLY else (start, bound, False)

    @cached_property
    def _of_class(self) -> tuple[Ints, Ints]:
        """Rows of bounds class by class, and the first place of each class."""
        return _by_number(self._notes.bound_classes, len(self))

    @cached_property
    def _levels(self) -> tuple[Notes, Ints, Ints]:
        """The notes with levels; rows of these capacity by capacity, and the first place of each capacity."""
        notes = self._again()
        return notes, *_by_number(notes.filled, int(notes.filled.max(initial=-1)) + 1)

    def _course(self, number: int) -> list[PaceChange]:
        bounds, course = list(self._bounds(number)), list[PaceChange]()
        for (start, bound, _), (until, _, _) in zip(bounds, [*bounds, (_NEVER, 0, False)][1:], strict=True):
            if bound < 0:
                course.append(PaceChange(start, self._alone[number] if bound == FREE else 0, -1))
                continue
            times, levels = self._levels_of(bound, start, until)
            rows = zip(times.tolist(), levels.tolist(), strict=True)
            course += [PaceChange(at, high << WORD | low, bound) for at, (low, high) in rows]
        return course

    def _levels_of(self, capacity: int, begin: int, end: int) -> tuple[Ints, Words]:
        """(fs, level) of a capacity that is full at `begin`, and of its changes before `end`."""
        notes, order, first = self._levels
        rows = order[first[capacity] : first[capacity + 1]]
        times = notes.level_times[rows]
        low, high = int(np.searchsorted(times, begin, "right")) - 1, int(np.searchsorted(times, end, "left"))
        times = times[low:high]
        times[0] = begin
        return times, notes.levels[rows[low:high]]


def _by_number(numbers: Ints, count: int) -> tuple[Ints, Ints]:
    """Rows by their numbers, and the first place of each number below the count."""
    return ticks.order(numbers), np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=count))])


def words(values: Sequence[int], count: int) -> Words:
    """Integers in words of 64 bits, the least first; a row each."""
    found = bytearray()
    for value in values:
        found += value.to_bytes(8 * count, "little")
    return np.frombuffer(found, "<u8").astype(np.uint64, copy=False).reshape(-1, count)
