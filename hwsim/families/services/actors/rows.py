"""Columns of a program of services and of its run: the names of core/src/services/rows.h that Python needs, too."""

from __future__ import annotations

import ctypes
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.opgraph import Floats, Ints

FARTHEST: Final = 2**61  # fs: sums of two such times fit
LARGEST: Final = 2**63 - 1  # fs: later times do not fit

# a step
SERVE, KEEP, BRANCH, FORK, JOIN, ASK, TAKE, GIVE, JUMP, END = range(10)
# a service
BASE, WORKERS, LIMIT_OF_LINE, DROPS, CLIENTS, THINK, START, ENTRY, LOAD, RESOURCE_OF, WINDOWS_AT = range(11)
FREE, DOWN, LINE_HEAD, LINE_TAIL, LINE_LENGTH, PARKED, PARKED_TAIL, ARRIVED, ARRIVALS = range(11, 20)
CAME, ENTERED, HERE, MOST, LINE_MOST, REFUSED, FAILED_COUNT, TIMEOUTS, WASTED, DROPPED, ASKED_AGAIN = range(20, 31)
FIRST_CAME, LAST_CAME, ENDED, LAST, LINE_LAST, WINDOW, EDGE, WINDOWS, FIRST_THINK, SERVICE_WIDTH = range(31, 41)
AREA, LINE_AREA, STAY = 0, 3, 6  # its words
MOST_WINDOWS = 256
STRAND_WIDTH = 29
FREE_ROW, TIMER_WIDTH = 8, 9
# counts
(SET, FREE_STRANDS, TIMERS, FREE_TIMERS, READY_HEAD, READY, ENDED_AT, ENDED_COUNT, ANSWERS, NOW, RESOURCES,
 SERVICES, STATIONS, CACHES, CACHES_END, WORKED_AT, COUNTS) = range(17)  # fmt: skip
ENDED_LIST, READY_STRANDS, READY_STEPS, FREE_LIST, RISING, LISTS = range(6)
ANSWER_WIDTH = 4  # and what it waited for


class State(NamedTuple):
    """A program and its run. What names a row of `table`, `floats` or `words` has its number."""

    table: Ints  # steps, and what they name
    floats: Floats
    services: Ints  # behind them loads and locks
    stations: Ints  # behind them classes
    words: NDArray[np.uint64]
    counts: Ints
    # these grow
    strands: Ints
    targets: NDArray[np.uint64]
    slots: Floats
    waits: Ints  # by what for, then the locks held
    lists: Ints
    timers: Ints
    answers: Ints
    arrivals: Ints  # instants of each entry


REALS, WORDS = ("floats", "slots"), ("words", "targets")  # columns of floats, and of words; the others are of int64


class Columns(ctypes.Structure):
    """`hwsim_services` of core/src/hwsim_core.h: where the columns of a state are."""

    _fields_ = [(name, ctypes.c_void_p) for name in State._fields] + [
        (name, ctypes.c_int64) for name in ("strand_rows", "slot_width", "wait_width", "answer_rows", "arrival_width")
    ]


def columns(state: State) -> Columns:
    """The columns of a state, as long as none of them is replaced."""
    places = []
    for name, column in zip(State._fields, state, strict=True):
        kind = np.float64 if name in REALS else np.uint64 if name in WORDS else np.int64
        if column.dtype != kind or not column.flags.c_contiguous:
            raise TypeError(f"the column {name} is {column.dtype}, or not contiguous")
        places.append(column.ctypes.data)
    sizes = (len(state.strands), state.slots.shape[1], state.waits.shape[1], len(state.answers), state.arrivals.shape[1])
    return Columns(*places, *sizes)
