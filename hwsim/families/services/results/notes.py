"""Notes of services while they are played, in whole fs. What is kept is bounded: bins, and windows that widen with the run."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass
from hwsim.results.batches import Batched
from hwsim.results.bins import Bins
from hwsim.ticks import FEMTO, Column

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FULL: Final = 4096  # answers that are noted together
WINDOWS: Final = 256  # at most; half as many when they are full
FIRST: Final = 10**9  # fs: width of the first windows
HALF_BITS: Final = 31
HALF: Final = (1 << HALF_BITS) - 1
BIN: Final = 45  # bits of a double below its bin, as of `hwsim.results.bins`


@dataclass(slots=True)
class Window:
    """A stretch of the run: answers that ended in it, and the integrals (fs) of requests there and in the line."""

    answers: Bins = field(default_factory=lambda: Bins(few=0))
    there: int = 0
    waiting: int = 0


@dataclass(slots=True)
class Above:
    """Answers that took about as long: seconds of all, and fs that they waited, by what for."""

    count: int = 0
    spent: float = 0.0
    waits: dict[int, int] = field(default_factory=dict)


class ServiceNotes:
    """Notes of one service.

    within: fs after which an answer is late; below 0: none is. early: answers to requests that came before `since` (fs), which
    have no part in its times.
    came: requests from outside. entered: all. stay: fs of all that have left, together. area: the integral of the requests there.
    """

    __slots__ = (
        "_columns", "_edge", "_noted",
        "above", "answers", "area", "asked_again", "by_choice", "came_count",
        "dropped", "early", "end", "entered", "failed", "first", "good", "here", "last", "last_came", "line", "line_area",
        "line_last", "line_most", "most", "refused", "since", "stay", "timeouts", "wasted", "width", "windows", "within",
    )  # fmt: skip

    def __init__(self, choices: int, within: int, since: int = 0) -> None:
        self.came_count = self.entered = self.here = self.area = self.last = self.stay = self.most = 0
        self.line = self.line_area = self.line_last = self.line_most = 0
        self.refused = self.failed = self.timeouts = self.wasted = self.dropped = self.good = 0
        self.asked_again = self.early = 0
        self.first = self.last_came = -1
        self.end = 0
        self.within, self.since = within, since
        self.answers = Batched()
        self.by_choice = [Batched() for _ in range(choices)]
        self.above: dict[int, Above] = {}
        self.windows: list[Window] = [Window()]
        self.width = self._edge = FIRST
        self._noted: list[tuple[int, int, int, dict[int, int] | None]] = []  # answers: when, fs, of which choice, waits
        self._columns: list[Ints] = []  # answers that come in columns

    def came(self, now: int) -> int:
        """A request from outside; its number."""
        self.came_count += 1
        self.last_came = now
        return self.came_count - 1

    def enters(self, instant: int) -> None:
        """A request is there."""
        if instant >= self._edge:
            self._pass(instant)
        if self.first < 0:
            self.first = instant
        self.entered += 1
        self.area += self.here * (instant - self.last)
        self.last = instant
        self.here += 1
        if self.here > self.most:
            self.most = self.here

    def waits(self, instant: int, change: int) -> None:
        """The line for a worker is longer, or shorter."""
        if instant >= self._edge:
            self._pass(instant)
        self.line_area += self.line * (instant - self.line_last)
        self.line_last = instant
        self.line += change
        if self.line > self.line_most:
            self.line_most = self.line

    def ends(self, instant: int, request: Any) -> None:
        """A request has left."""
        if instant >= self._edge:
            self._pass(instant)
        self.area += self.here * (instant - self.last)
        self.last = self.end = instant
        self.here -= 1
        took = instant - request.began
        self.stay += took
        if request.failed:
            if request.why == "refused":
                self.refused += 1
            elif request.why == "dropped":
                self.dropped += 1
            else:
                self.failed += 1
            return
        if request.gone:
            self.wasted += 1
            return
        self._noted.append((instant, took, request.choice, request.waits))
        if len(self._noted) >= FULL:
            self.flush()

    def timed_out(self) -> None:
        """Its caller has given up an attempt."""
        self.timeouts += 1

    def flush(self) -> None:
        """Count the answers that are noted."""
        if self._noted:
            ends, times, choices, waits = zip(*self._noted, strict=True)
            most = 1 + max((max(each) for each in waits if each), default=0)
            table = [[(wait or {}).get(resource, 0) for resource in range(most)] for wait in waits]
            self._columns = [np.array(column) for column in (ends, times, choices, table)]
            self._noted.clear()
        if self._columns:
            columns, self._columns = self._columns, []
            self._blocks(*columns)

    def answered(self, ends: Ints, times: Ints, choices: Ints, waits: Ints) -> None:
        """Answers in columns: when they ended, fs that they took, what they are counted as, fs that they waited by what for."""
        columns = [ends, times, choices, waits]
        if self._columns:
            columns = [np.concatenate(pair) for pair in zip(self._columns, columns, strict=True)]
        full = len(columns[0]) // FULL * FULL
        self._blocks(*(column[:full] for column in columns))
        self._columns = [column[full:] for column in columns]

    def _blocks(self, ends: Ints, times: Ints, choices: Ints, waits: Ints) -> None:
        """Count answers in columns, as many together as one by one."""
        for begin in range(0, len(ends), FULL):
            part = slice(begin, begin + FULL)
            took = np.asarray(times[part], np.float64) / FEMTO
            counts = self._count(took, ends[part], times[part], choices[part])
            if counts.any():
                self._wait(took[counts], waits[part][counts])
        if len(ends):
            self.good += len(ends) if self.within < 0 else int(np.count_nonzero(times <= self.within))

    def _wait(self, took: Floats, waits: Ints) -> None:
        """Add the waits of answers, in columns."""
        place = took.view(np.int64) >> BIN
        least = int(place.min())
        place -= least
        counts = np.bincount(place)
        bins = np.flatnonzero(counts)
        slower = [self.above.setdefault(at, Above()) for at in (bins + least).tolist()]
        before = np.array([above.spent for above in slower])
        spent = np.bincount(np.concatenate((bins, place)), np.concatenate((before, took)))[bins]  # one after another
        for above, count, seconds in zip(slower, counts[bins].tolist(), spent.tolist(), strict=True):
            above.count += count
            above.spent = seconds
        for resource, times in enumerate(waits.T):
            if not times.any():
                continue
            low, high = (
                np.bincount(place, np.asarray(part, np.float64))[bins].tolist() for part in (times & HALF, times >> HALF_BITS)
            )  # below 2^53: exact
            for above, part, rest in zip(slower, low, high, strict=True):
                if part or rest:
                    above.waits[resource] = above.waits.get(resource, 0) + (int(rest) << HALF_BITS) + int(part)

    def _count(self, took: Floats, ends: Column, times: Column, choices: Ints) -> NDArray[np.bool_]:
        """Answers, by choice and by window; which of them are among the times."""
        places = ends // self.width
        for place in dict.fromkeys(places.tolist()):
            self.windows[place].answers.extend(took[places == place])
        counts = np.asarray(ends - times >= max(self.since, 0), np.bool_)
        self.early += len(counts) - int(np.count_nonzero(counts))
        self.answers.extend(took[counts])
        for number, batched in enumerate(self.by_choice):
            batched.extend(took[counts & (choices == number)])
        return counts

    def join_windows(self) -> None:
        """Half as many windows, twice as wide."""
        while len(self.windows) < WINDOWS:
            self.windows.append(Window())
        self.windows = [_joined(*pair) for pair in zip(self.windows[::2], self.windows[1::2], strict=True)]
        self.width *= 2

    def open_windows(self, many: int) -> None:
        """Open windows until there are `many`."""
        while len(self.windows) < many:
            self.windows.append(Window())
        self._edge = len(self.windows) * self.width

    def _pass(self, instant: int) -> None:
        """Close the windows that end by now."""
        while instant >= self._edge:
            edge = self._edge
            self.area += self.here * (edge - self.last)
            self.line_area += self.line * (edge - self.line_last)
            self.last = self.line_last = edge
            self.windows[-1].there, self.windows[-1].waiting = self.area, self.line_area
            if len(self.windows) == WINDOWS:
                self.join_windows()
            self.open_windows(len(self.windows) + 1)


def _joined(one: Window, other: Window) -> Window:
    one.answers.merge(other.answers)
    return Window(one.answers, other.there, other.waiting)
