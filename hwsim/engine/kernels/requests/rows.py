"""Columns of a program of services and of its run, by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwsim.engine.kernels.stations import ASKING

FARTHEST = 2**61  # fs: sums of two such times fit
# why `play` returns
LIMIT, MORE, TOO_FAR = range(3)

# steps: what it is, and its numbers
SERVE, KEEP, BRANCH, FORK, JOIN, ASK, TAKE, GIVE, JUMP, END = range(10)
STATION, FLOW, LATENCY, TIME, NUMBER, WAITS_FOR, COST = 1, 2, 3, 4, 5, 6, 7
DRAW, SLOT = 1, 2
WAY, WAYS, CACHE = 2, 3, 4
BRANCHES, MANY, GOES_TO = 1, 2, 3
ASKED, ASK_NUMBER, TIMEOUT, RETRIES, AGAIN, WAITS_AT, JITTER_DRAW = 1, 2, 3, 4, 5, 6, 7
LOCK, AFTER = 1, 2
TO = 1
# rows of the same table that steps name: a number, a way, what happens
NUMBER_DRAW, NUMBER_SLOT, LINE, LINES, BODY = range(5)
WAY_TO, WAY_CHOICE, WAY_LIMIT = range(3)
HAPPENS_TO, IS_HIT, HIT_RATE, EMPTIED = range(4)
CACHE_OF, CACHE_HITS, FIRST_LINE, LAST_LINE, LOOKUPS = range(5)  # lookups since it was empty; NONE: it is full

# a service
BASE, WORKERS, LIMIT_OF_LINE, DROPS, CLIENTS, THINK, START, ENTRY, LOAD, ASKS, RESOURCE_OF, WINDOWS_AT = range(12)
FREE, DOWN, LINE_HEAD, LINE_TAIL, LINE_LENGTH, PARKED, PARKED_TAIL, ARRIVED, ARRIVALS = range(12, 21)
CAME, ENTERED, HERE, MOST, LINE_MOST, REFUSED, FAILED_COUNT, TIMEOUTS, WASTED, DROPPED, ASKED_AGAIN = range(21, 32)
FIRST_CAME, LAST_CAME, ENDED, LAST, LINE_LAST, WINDOW, EDGE, WINDOWS, SERVICE_WIDTH = range(32, 41)
AREA, LINE_AREA, STAY = 0, 3, 6
MOST_WINDOWS = 256
# rows behind the services: a load, a lock
REQUESTS, UNTIL, COME = range(3)
GROUP, TAKEN, LOCK_HEAD, LOCK_TAIL, ALONG, ALONG_TAIL, ALONG_COUNT, LOCK_RESOURCE, LOCK_NUMBER = range(9)
# a strand
(LEFT_CHILD, RIGHT_CHILD, SERVICE, ROOT, VISIT, BEGAN, MAIN, CALLER, ATTEMPT, ATTEMPTS, PC, LEFT, SINCE, ALONE, CHOICE, RESOURCE,
 FAILED, GONE, WHY, HELD, LOCK_END) = range(21)  # fmt: skip
STRAND_WIDTH = ASKING + 1
NO_REASON, WAS_REFUSED, WAS_DROPPED, TIMED_OUT = range(4)
# a timer: time and number in the heap, and its row; there what it is for, and four numbers; a row that is free
TIMER_KIND, FREE_ROW, TIMER_WIDTH = 3, 8, 9
ARRIVES, ASKS_NOW, LATE, RETRY, BEGINS_WORK, GOES_ON, BEGINS, OVER = range(8)
# counts
(SET, FREE_STRANDS, TIMERS, FREE_TIMERS, READY_HEAD, READY, ENDED_AT, ENDED_COUNT, ANSWERS, NOW, WORST, ENTRIES, RESOURCES,
 SERVICES, STATIONS, CACHES, CACHES_END, WORKED_AT, COUNTS) = range(19)  # fmt: skip
ANSWER_WIDTH = 4  # and what it waited for


class State(NamedTuple):
    """A program and its run. What names a row of `table`, `floats` or `words` has its number."""

    table: np.ndarray  # steps, and what they name
    floats: np.ndarray
    services: np.ndarray  # behind them loads and locks
    stations: np.ndarray  # behind them classes
    words: np.ndarray
    counts: np.ndarray
    # these grow
    strands: np.ndarray
    targets: np.ndarray
    slots: np.ndarray
    waits: np.ndarray  # by what for, then the locks held
    lists: np.ndarray
    timers: np.ndarray
    answers: np.ndarray
    arrivals: np.ndarray  # instants of each entry
