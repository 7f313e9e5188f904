"""Simulation of services in C++ with the results of `play`, exact to the femtosecond.

Range: programs whose stations are not shared with jobs, and times of at most 38 minutes (2^61 fs). A run may be longer, because
its clock is reset from time to time.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from hwsim.engine import core
from hwsim.engine.fair import FULL
from hwsim.engine.native import fits
from hwsim.families.services.actors import rows as names
from hwsim.families.services.actors import station_rows as places
from hwsim.families.services.actors.columns import ANSWERS, CROWD, ROOM, ServiceTableBuilder, number_of
from hwsim.families.services.actors.stations import NEVER
from hwsim.families.services.results.statistics import ServiceNotes
from hwsim.families.services.workload.program import NONE, ServicesProgram
from hwsim.records import dataclass
from hwsim.spec.limits import REQUESTS, refuse_beyond
from hwsim.workload.load.arrivals import blocks

MOST: Final = 1 << 24  # maximum number of members of a station
REBASE: Final = 2**60  # time after which the clock is reset (fs)


class TooFar(Exception):
    """Raised if a time or number exceeds the range of the C++ simulator."""


@dataclass(slots=True)
class Counted:
    """The statistics of a station: members x fs, fs x utilization in units of FULL, and members in service or queued."""

    area: int
    busy: int
    there: int

    def count(self, now: int) -> int:  # noqa: ARG002 (interface of stations; already counted)
        """Return the number of members."""
        return self.there

    def used(self, end: int) -> float:
        """Return the utilization from 0 to `end`."""
        return self.busy / FULL / end


class CompiledSimulation:
    """A simulation of a program in C++, which `until` continues."""

    def __init__(self, program: ServicesProgram, *, slower: float = 1.0) -> None:
        """Create the simulation.

        Args:
            program: services.
            slower: factor on the time of all work.

        Raises:
            TooFar: the C++ simulator does not support the program.
        """
        self.program, self.now = program, 0
        self._origin = 0  # time of the last reset of the clock (fs)
        self._first = [NONE] * len(program.services)  # first request of each service before the last reset (fs)
        self._later: dict[int, list[int]] = {}  # arrivals of each service that are too late for the current clock
        columns = self._columns = ServiceTableBuilder(program, slower)
        if not program.compiles or columns.too_long or not fits(columns.flows, MOST):
            raise TooFar(f"{len(program.stations)} stations: not supported by the C++ simulator")
        self.notes = [ServiceNotes(len(of.choices), of.within, of.since) for of in program.services]
        self.stations: list[Counted] = []
        self.worked = [0] * len(program.served)
        self._streams: dict[int, Iterator[Any]] = {}
        happens = [
            columns.table.add(
                event.service,
                int(event.hit is not None),
                columns.floats.add(event.hit or 0.0),
                NONE if event.emptied < 0 else columns.cache_rows[event.emptied],
            )
            for event in program.events
        ]
        counts = np.zeros(names.COUNTS, np.int64)
        held = 1 + sum(type(step).__name__ == "Take" for service in program.services for step in service.steps)
        counts[[names.SERVICES, names.STATIONS]] = len(program.services), len(program.stations)
        counts[[names.RESOURCES, names.WORKED_AT]] = columns.resources, columns.worked
        if columns.cache_rows:
            counts[[names.CACHES, names.CACHES_END]] = columns.cache_rows[0], columns.cache_rows[-1] + 1
        self._margin = columns.margin
        self._fixed = len(columns.words)
        slots = max(1, *(service.slots for service in program.services))
        self._state = names.ServiceTables(
            table=columns.table.column(np.int64),
            floats=columns.floats.column(np.float64),
            services=columns.services.column(np.int64),
            stations=columns.stations.column(np.int64),
            words=columns.words.column(np.uint64),
            counts=counts,
            strands=np.zeros((0, names.STRAND_WIDTH), np.int64),
            targets=np.zeros((0, 3), np.uint64),
            slots=np.zeros((0, slots), np.float64),
            waits=np.zeros((0, columns.resources + held), np.int64),
            lists=np.zeros((names.LISTS, 0), np.int64),
            timers=np.zeros((0, names.TIMER_WIDTH), np.int64),
            answers=np.zeros((ANSWERS, names.ANSWER_WIDTH + columns.resources), np.int64),
            arrivals=np.zeros((max(1, len(columns.entries)), 0), np.int64),
        )
        self._answered = 0
        self._windows = [0] * len(program.services)
        self._grow_strands(max(ROOM, len(columns.stations)))
        self._grow_timers(ROOM)
        if columns.classes:
            self._grow_crowds(CROWD)
        for event, row in zip(program.events, happens, strict=True):
            self._room_for_timers(2)
            for time, begins in ((event.at, True), (event.until, False)):
                self._call("hwsim_services_event", time, row, begins)
        for entry, number in enumerate(columns.entries):
            self._open(entry, number)
        self._settle()

    def _open(self, entry: int, number: int) -> None:
        """Begin the arrivals of a service from outside."""
        of = self.program.services[number]
        keys = of.arrivals
        if keys is None:
            return
        if keys.clients is None:
            came = iter([keys.recorded().arrival]) if keys.trace is not None else None
            self._streams[number] = came if came is not None else blocks(keys, self.program.seed, of.name)
            self._refill(number)
        self._room_for_timers((keys.clients or 0) + 1)
        self._call("hwsim_services_begin", entry)

    def next(self) -> int:
        """Return the time of the next event (fs), or NEVER."""
        soonest = self._soonest()
        return NEVER if soonest >= names.LARGEST else soonest + self._origin

    def _soonest(self) -> int:
        """Return the time of the C++ simulator's next event, or LARGEST if there is none."""
        state = self._state
        counts = state.counts
        dues = [int(due) for due in state.stations[: counts[names.STATIONS], places.DUE]]
        if counts[names.TIMERS]:
            dues.append(int(state.timers[0, 0]))
        return min(dues, default=names.LARGEST)

    def until(self, limit: int) -> None:
        """Simulate all events before a limit (fs).

        Raises:
            TooFar: a time exceeds an int64; simulate again in Python.
        """
        while True:
            near = REBASE
            if (soonest := self._soonest()) >= near and self._state.counts[names.NOW] == 0:
                near = soonest + 1  # a long time without events
            self._until(min(limit - self._origin, near, names.LARGEST))
            if limit - self._origin <= near or self._soonest() >= names.LARGEST:
                return
            self._rebase()

    def _rebase(self) -> None:
        """Reset the clock of the C++ simulator."""
        state, shift = self._state, int(self._state.counts[names.NOW])
        if not shift:
            return
        for number, row in enumerate(state.services[: len(self.program.services)]):
            if self._first[number] < 0 <= row[names.FIRST_CAME]:
                self._first[number] = int(row[names.FIRST_CAME]) + self._origin
        self._origin += shift
        if self._call("hwsim_services_rebase") == core.TOO_FAR:
            raise TooFar("a service or request had no event for too long")
        for row in state.services[: len(self.program.services)]:
            if row[names.ENTRY] >= 0 and row[names.ARRIVED] < row[names.ARRIVALS]:
                state.arrivals[row[names.ENTRY], row[names.ARRIVED] : row[names.ARRIVALS]] -= shift
        for number, load in enumerate(self.program.loads, len(self.program.services)):
            if load.until >= 0:
                state.services[number, 1] = min(max(load.until - self._origin, 0), names.LARGEST)

    def _until(self, limit: int) -> None:
        while (why := self._call("hwsim_services_play", limit, self._margin, core.PATIENCE)) != core.DONE:
            if why == core.TOO_FAR:
                raise TooFar("a time exceeds an int64")
            self._make_room()
        self._settle()

    def _call(self, kernel: str, *numbers: int) -> int:
        kinds = [core.INT] * len(numbers)
        return core.kernel(kernel, ctypes.POINTER(names.TableAddresses), *kinds)(
            ctypes.byref(names.columns(self._state)), *numbers
        )

    # ---- room

    def _make_room(self) -> None:
        state = self._state
        counts, margin = state.counts, self._margin
        if counts[names.FREE_STRANDS] < margin:
            self._grow_strands(len(state.strands))
        self._room_for_timers(margin)
        if counts[names.ANSWERS] + margin > len(state.answers):
            self._take_answers()
        for number in self._streams:
            row = state.services[number]
            if row[names.ARRIVED] == row[names.ARRIVALS] >= 0:
                self._refill(number)
        for station in range(len(self.program.stations)):
            row = state.stations[station]
            if row[places.CROWDED] and row[places.DEPTH] + margin > row[places.CROWDED]:
                self._grow_crowds(4 * int(row[places.CROWDED]))

    def _refill(self, number: int) -> None:
        """Pass the next arrivals of a service to the C++ simulator."""
        state = self._state
        row = state.services[number]
        came = self._later.pop(number, None)
        if came is None:
            start, block = self.program.services[number].start, next(self._streams[number], None)
            came = [] if block is None else [start + time for time in block.tolist()]
        if not came:
            row[names.ARRIVED] = row[names.ARRIVALS] = NONE
            return
        near = bisect_right(came, self._origin + 2 * names.FARTHEST)
        if not near:
            raise TooFar("the next arrival is too late")
        if near < len(came):
            self._later[number] = came[near:]
        block = [time - self._origin for time in came[:near]]
        entry = int(row[names.ENTRY])
        if len(block) > state.arrivals.shape[1]:
            wider = np.zeros((len(state.arrivals), len(block)), np.int64)
            wider[:, : state.arrivals.shape[1]] = state.arrivals
            self._state = state = state._replace(arrivals=wider)
        state.arrivals[entry, : len(block)] = block
        row[names.ARRIVED], row[names.ARRIVALS] = 0, len(block)

    def _grow_strands(self, more: int) -> None:
        state = self._state
        old, counts = len(state.strands), state.counts
        size = old + more
        if size > MOST:
            raise TooFar("too many requests in flight")
        lists = np.zeros((names.LISTS, size), np.int64)
        lists[:, :old] = state.lists
        if old:  # the ring of ready requests starts at its first row again
            turn = (np.arange(counts[names.READY]) + counts[names.READY_HEAD]) % old
            for ring in (names.READY_STRANDS, names.READY_STEPS):
                lists[ring, : len(turn)] = state.lists[ring, turn]
        counts[names.READY_HEAD] = 0
        free = int(counts[names.FREE_STRANDS])
        lists[names.FREE_LIST, free : free + more] = np.arange(size - 1, old - 1, -1)
        counts[names.FREE_STRANDS] += more
        grown = {name: _longer(getattr(state, name), size) for name in ("strands", "targets", "slots", "waits")}
        self._state = state._replace(lists=lists, **grown)

    def _room_for_timers(self, count: int) -> None:
        while self._state.counts[names.FREE_TIMERS] < count:
            self._grow_timers(max(ROOM, len(self._state.timers)))

    def _grow_timers(self, more: int) -> None:
        state = self._state
        old, free = len(state.timers), int(state.counts[names.FREE_TIMERS])
        timers = _longer(state.timers, old + more)
        timers[free : free + more, names.FREE_ROW] = np.arange(old + more - 1, old - 1, -1)
        state.counts[names.FREE_TIMERS] += more
        self._state = state._replace(timers=timers)

    def _grow_crowds(self, depth: int) -> None:
        state = self._state
        begins, rows = self._columns.crowd_rows(self._fixed, depth)
        for (first, _), begin in zip(self._columns.classes, begins, strict=True):
            state.stations[first, places.CROWD] = begin
        crowded = state.stations[: len(self.program.stations), places.CROWDED]
        crowded[crowded > 0] = depth
        self._state = state._replace(words=np.concatenate([state.words[: self._fixed], rows]))

    # ---- notes

    def _take_answers(self) -> None:
        """Add the responses so far to the statistics."""
        state = self._state
        answers = state.answers[: state.counts[names.ANSWERS]]
        for number, notes in enumerate(self.notes):
            mine = answers[answers[:, 0] == number]
            self._widen(number)
            if number in self._columns.entries:
                self._answered += len(mine)
            if len(mine):
                notes.answered(self._instants(mine[:, 1]), mine[:, 2], mine[:, 3], mine[:, names.ANSWER_WIDTH :])
        state.counts[names.ANSWERS] = 0
        refuse_beyond(REQUESTS, self._answered)

    def _instants(self, column: Any) -> Any:
        """Convert times of the C++ simulator to times of the run."""
        if self._origin + int(column.max()) > names.LARGEST:
            return column.astype(object) + self._origin
        return column + self._origin

    def _widen(self, number: int) -> None:
        """Merge and open windows of a service as the C++ simulator did."""
        row, notes = self._state.services[number], self.notes[number]
        while notes.width < row[names.WINDOW]:
            notes.join_windows()
        notes.open_windows(int(row[names.WINDOWS]))

    def _settle(self) -> None:
        """Update the statistics of services and stations to the current time."""
        state = self._state
        elapsed = int(state.counts[names.NOW])
        self.now = elapsed + self._origin
        self._take_answers()
        for number, notes in enumerate(self.notes):
            row, words = state.services[number], state.words[number]
            for name, column in (
                ("came_count", names.CAME), ("entered", names.ENTERED), ("here", names.HERE), ("most", names.MOST),
                ("line", names.LINE_LENGTH), ("line_most", names.LINE_MOST), ("refused", names.REFUSED),
                ("failed", names.FAILED_COUNT), ("timeouts", names.TIMEOUTS), ("wasted", names.WASTED),
                ("dropped", names.DROPPED), ("retries", names.ASKED_AGAIN), ("first", names.FIRST_CAME),
                ("last_came", names.LAST_CAME), ("end", names.ENDED), ("last", names.LAST), ("line_last", names.LINE_LAST),
            ):  # fmt: skip
                setattr(notes, name, int(row[column]))
            for name in ("last_came", "end", "last", "line_last") if notes.came_count else ("end", "last", "line_last"):
                setattr(notes, name, getattr(notes, name) + self._origin)
            notes.first = self._first[number] if self._first[number] >= 0 or notes.first < 0 else notes.first + self._origin
            notes.area, notes.line_area, notes.stay = (
                number_of(words, name) for name in (names.AREA, names.LINE_AREA, names.STAY)
            )
            first = int(row[names.WINDOWS_AT])
            for index, window in enumerate(notes.windows[:-1]):
                window.there, window.waiting = (number_of(state.words[first + index], column) for column in (0, 3))
        self.worked = [number_of(state.words[self._columns.worked + cost]) for cost in range(len(self.worked))]
        self.stations = []
        for row in state.stations[: len(self.program.stations)]:
            words = state.words[row[places.WORDS_AT]]
            passed = elapsed - int(row[places.LAST])
            if row[places.KIND] in (places.FIFO, places.ARMS):
                working = int(row[places.SERVERS] - row[places.FREE])
                used = working * FULL // int(row[places.SERVERS])
            else:
                used = number_of(words, places.USED)
            busy = number_of(words, places.BUSY_LOW) + (number_of(words, places.BUSY_HIGH) << 64) + used * passed
            area = number_of(words, places.AREA) + int(row[places.THERE]) * passed
            self.stations.append(Counted(area, busy, int(row[places.THERE])))


def _longer(rows: Any, size: int) -> Any:
    longer = np.zeros((size, *rows.shape[1:]), rows.dtype)
    longer[: len(rows)] = rows
    return longer
