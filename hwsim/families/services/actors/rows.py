"""Column numbers of the tables of a program of services and its run, as in core/src/services/rows.h."""

from __future__ import annotations

import ctypes
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.opgraph import Floats, Ints

FARTHEST: Final = 2**61  # longest time (fs); a sum of two fits into an int64
LARGEST: Final = 2**63 - 1  # latest time of an int64 (fs)

# kinds of steps, in the first column of their rows
SERVE, KEEP, BRANCH, FORK, JOIN, ASK, TAKE, GIVE, JUMP, END = range(10)
# columns of a service
BASE, WORKERS, LIMIT_OF_LINE, DROPS, CLIENTS, THINK, START, ENTRY, LOAD, RESOURCE_OF, WINDOWS_AT = range(11)
FREE, DOWN, LINE_HEAD, LINE_TAIL, LINE_LENGTH, PARKED, PARKED_TAIL, ARRIVED, ARRIVALS = range(11, 20)
CAME, ENTERED, HERE, MOST, LINE_MOST, REFUSED, FAILED_COUNT, TIMEOUTS, WASTED, DROPPED, ASKED_AGAIN = range(20, 31)
FIRST_CAME, LAST_CAME, ENDED, LAST, LINE_LAST, WINDOW, EDGE, WINDOWS, FIRST_THINK, SERVICE_WIDTH = range(31, 41)
AREA, LINE_AREA, STAY = 0, 3, 6  # columns of its row of words
MOST_WINDOWS = 256
STRAND_WIDTH = 29
FREE_ROW, TIMER_WIDTH = 8, 9
# columns of the counts
(SET, FREE_STRANDS, TIMERS, FREE_TIMERS, READY_HEAD, READY, ENDED_AT, ENDED_COUNT, ANSWERS, NOW, RESOURCES,
 SERVICES, STATIONS, CACHES, CACHES_END, WORKED_AT, COUNTS) = range(17)  # fmt: skip
ENDED_LIST, READY_STRANDS, READY_STEPS, FREE_LIST, RISING, LISTS = range(6)
ANSWER_WIDTH = 4  # columns of a response before its waits: service, end, latency, branch


class ServiceTables(NamedTuple):
    """The tables of a program and its run; rows of `table`, `floats` and `words` are referenced by their index."""

    table: Ints  # steps, draws, numbers, ways, caches and events
    floats: Floats
    services: Ints  # followed by loads and locks
    stations: Ints  # followed by classes and arms
    words: NDArray[np.uint64]
    counts: Ints
    # tables that grow during the run
    strands: Ints
    targets: NDArray[np.uint64]
    slots: Floats
    waits: Ints  # by cause, followed by the locks held
    lists: Ints
    timers: Ints
    answers: Ints
    arrivals: Ints  # next arrival times of each service with arrivals (fs)


REALS, WORDS = ("floats", "slots"), ("words", "targets")  # tables of float64 and of uint64; the others are int64


class TableAddresses(ctypes.Structure):
    """The struct `hwsim_services` of core/src/hwsim_core.h: addresses and sizes of the tables of a state."""

    _fields_ = [(name, ctypes.c_void_p) for name in ServiceTables._fields] + [
        (name, ctypes.c_int64) for name in ("strand_rows", "slot_width", "wait_width", "answer_rows", "arrival_width")
    ]


def columns(state: ServiceTables) -> TableAddresses:
    """Return the addresses of the tables of a state; they are valid until a table is replaced."""
    places = []
    for name, column in zip(ServiceTables._fields, state, strict=True):
        kind = np.float64 if name in REALS else np.uint64 if name in WORDS else np.int64
        if column.dtype != kind or not column.flags.c_contiguous:
            raise TypeError(f"table {name}: expected contiguous {kind.__name__}, got {column.dtype}")
        places.append(column.ctypes.data)
    sizes = (len(state.strands), state.slots.shape[1], state.waits.shape[1], len(state.answers), state.arrivals.shape[1])
    return TableAddresses(*places, *sizes)
