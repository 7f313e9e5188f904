"""Statistics collected while services are simulated, in whole fs.

Memory is bounded: latencies are kept in bins, and the windows of the time course widen with the run.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass
from hwsim.results.batches import BatchedSamples
from hwsim.results.bins import Bins
from hwsim.ticks import FEMTO, Column

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FULL: Final = 4096  # responses counted together
WINDOWS: Final = 256  # maximum number of windows; then pairs are merged
FIRST: Final = 10**9  # width of the first windows (fs)
HALF_BITS: Final = 31
HALF: Final = (1 << HALF_BITS) - 1
BIN: Final = 45  # low bits of a double that a bin ignores, as in `hwsim.results.bins`


@dataclass(slots=True)
class ServiceWindow:
    """A window of the run: latencies of responses in it, and integrals of requests in flight and queued until its end (fs)."""

    answers: Bins = field(default_factory=lambda: Bins(few=0))
    there: int = 0
    waiting: int = 0


@dataclass(slots=True)
class LatencyBin:
    """A bin of responses with about the same latency: their total latency (s), and total waits by cause (fs)."""

    count: int = 0
    spent: float = 0.0
    waits: dict[int, int] = field(default_factory=dict)


class ServiceNotes:
    """The statistics of one service.

    Args:
        choices: number of branches with names.
        within: latency limit (fs); negative: none.
        since: arrival time before which requests are excluded from latencies (fs).

    Attributes:
        came_count: requests from outside.
        entered: all requests.
        here: requests in flight.
        most: maximum number of requests in flight.
        line: requests queued for a worker.
        line_most: maximum number of queued requests.
        early: responses to requests that arrived before `since`.
        stay: total time in the system of requests that have left (fs).
        area: integral of the requests in flight (fs).
        line_area: integral of the queued requests (fs).
    """

    __slots__ = (
        "_columns", "_edge", "_noted", "above", "answers", "area", "by_choice", "came_count", "dropped", "early", "end",
        "entered", "failed", "first", "good", "here", "last", "last_came", "line", "line_area", "line_last", "line_most",
        "most", "refused", "retries", "since", "stay", "timeouts", "wasted", "width", "windows", "within",
    )  # fmt: skip

    def __init__(self, choices: int, within: int, since: int = 0) -> None:
        self.came_count = self.entered = self.here = self.area = self.last = self.stay = self.most = 0
        self.line = self.line_area = self.line_last = self.line_most = 0
        self.refused = self.failed = self.timeouts = self.wasted = self.dropped = self.good = 0
        self.retries = self.early = 0
        self.first = self.last_came = -1
        self.end = 0
        self.within, self.since = within, since
        self.answers = BatchedSamples()
        self.by_choice = [BatchedSamples() for _ in range(choices)]
        self.above: dict[int, LatencyBin] = {}
        self.windows: list[ServiceWindow] = [ServiceWindow()]
        self.width = self._edge = FIRST
        self._noted: list[tuple[int, int, int, dict[int, int] | None]] = []  # responses: (end, latency, branch, waits)
        self._columns: list[Ints] = []  # responses in columns, not yet counted

    def came(self, now: int) -> int:
        """Count a request from outside and return its index."""
        self.came_count += 1
        self.last_came = now
        return self.came_count - 1

    def enters(self, instant: int) -> None:
        """Count a request that enters the service."""
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
        """Change the length of the queue for a worker."""
        if instant >= self._edge:
            self._pass(instant)
        self.line_area += self.line * (instant - self.line_last)
        self.line_last = instant
        self.line += change
        if self.line > self.line_most:
            self.line_most = self.line

    def ends(self, instant: int, request: Any) -> None:
        """Count a request that leaves the service."""
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
        """Count an attempt that timed out."""
        self.timeouts += 1

    def flush(self) -> None:
        """Add the responses not yet counted to the statistics."""
        if self._noted:
            ends, times, choices, waits = zip(*self._noted, strict=True)
            most = 1 + max((max(wait) for wait in waits if wait), default=0)
            table = [[(wait or {}).get(resource, 0) for resource in range(most)] for wait in waits]
            self._columns = [np.array(column) for column in (ends, times, choices, table)]
            self._noted.clear()
        if self._columns:
            columns, self._columns = self._columns, []
            self._blocks(*columns)

    def answered(self, ends: Ints, times: Ints, choices: Ints, waits: Ints) -> None:
        """Add responses in columns: end (fs), latency (fs), branch, waits by cause (fs)."""
        columns = [ends, times, choices, waits]
        if self._columns:
            columns = [np.concatenate(pair) for pair in zip(self._columns, columns, strict=True)]
        full = len(columns[0]) // FULL * FULL
        self._blocks(*(column[:full] for column in columns))
        self._columns = [column[full:] for column in columns]

    def _blocks(self, ends: Ints, times: Ints, choices: Ints, waits: Ints) -> None:
        """Count responses in blocks of the same size as when they arrive one by one."""
        for begin in range(0, len(ends), FULL):
            part = slice(begin, begin + FULL)
            took = np.asarray(times[part], np.float64) / FEMTO
            counts = self._count(took, ends[part], times[part], choices[part])
            if counts.any():
                self._wait(took[counts], waits[part][counts])
        if len(ends):
            self.good += len(ends) if self.within < 0 else int(np.count_nonzero(times <= self.within))

    def _wait(self, took: Floats, waits: Ints) -> None:
        """Add the waits of responses, in columns."""
        place = took.view(np.int64) >> BIN
        least = int(place.min())
        place -= least
        counts = np.bincount(place)
        bins = np.flatnonzero(counts)
        slower = [self.above.setdefault(number, LatencyBin()) for number in (bins + least).tolist()]
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
        """Count responses by branch and window, and return which of them have a latency after the warm-up."""
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
        """Merge pairs of windows."""
        while len(self.windows) < WINDOWS:
            self.windows.append(ServiceWindow())
        self.windows = [_merged(*pair) for pair in zip(self.windows[::2], self.windows[1::2], strict=True)]
        self.width *= 2

    def open_windows(self, count: int) -> None:
        """Open windows until there are `count`."""
        while len(self.windows) < count:
            self.windows.append(ServiceWindow())
        self._edge = len(self.windows) * self.width

    def _pass(self, instant: int) -> None:
        """Close the windows that end before an instant."""
        while instant >= self._edge:
            edge = self._edge
            self.area += self.here * (edge - self.last)
            self.line_area += self.line * (edge - self.line_last)
            self.last = self.line_last = edge
            self.windows[-1].there, self.windows[-1].waiting = self.area, self.line_area
            if len(self.windows) == WINDOWS:
                self.join_windows()
            self.open_windows(len(self.windows) + 1)


def _merged(first: ServiceWindow, second: ServiceWindow) -> ServiceWindow:
    first.answers.merge(second.answers)
    return ServiceWindow(first.answers, second.there, second.waiting)
