"""Requests that come from outside: by their instants, or from clients that think; each takes a worker or waits in line."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.draws import drawn
from hwsim.engine.kernels.requests.calendar import go_on, new_strand, set_timer
from hwsim.engine.kernels.requests.notes import count_line, count_requests
from hwsim.engine.kernels.requests.rows import (
    ARRIVALS,
    ARRIVED,
    ARRIVES,
    ASKS_NOW,
    BASE,
    CAME,
    COME,
    DOWN,
    ENTRIES,
    ENTRY,
    FAILED,
    FREE,
    LAST_CAME,
    LIMIT_OF_LINE,
    LINE_HEAD,
    LINE_LENGTH,
    LINE_TAIL,
    LOAD,
    NOW,
    REQUESTS,
    SERVICE,
    SINCE,
    START,
    THINK,
    UNTIL,
    WAS_REFUSED,
    WHY,
)
from hwsim.engine.kernels.stations import append
from hwsim.engine.kernels.words import NONE, bare


@bare
def next_arrival(state, service, count):
    """Set the timer of the next arrival, if its instant is known."""
    row = state.services[service]
    if row[ARRIVED] < row[ARRIVALS]:
        at = state.arrivals[row[ENTRY], row[ARRIVED]]
        row[ARRIVED] += 1
        set_timer(state, row[START] + at, ARRIVES, service, count, 0, 0)


@bare
def is_counted(state, service):
    """Whether a request that comes at this instant still belongs to the run; it is counted if so."""
    load = state.services[state.services[service, LOAD]]
    if 0 <= load[UNTIL] <= state.counts[NOW] or load[COME] == load[REQUESTS]:
        return False
    load[COME] += 1
    return True


@bare
def come(state, service, count):
    """Begin a request from outside; its strand if it is refused."""
    row = state.services[service]
    row[CAME] += 1
    row[LAST_CAME] = state.counts[NOW]
    strand = new_strand(state, service, count * state.counts[ENTRIES] + row[ENTRY], 0)
    return enter(state, strand)


@bare
def think(state, service, count):
    """Set the timer after which a client asks."""
    row = state.services[service]
    wait = np.int64(min(np.rint(drawn(state, row[THINK], count, 0) * 1e15), 2.0**62))
    set_timer(state, max(state.counts[NOW], row[START]) + wait, ASKS_NOW, service, count, 0, 0)


@bare
def enter(state, strand):
    """Give a request a worker, or a place in line; the request itself if it is refused."""
    service = state.strands[strand, SERVICE]
    row = state.services[service]
    count_requests(state, service, 1)
    if row[FREE] > 0 and row[DOWN] == 0:
        row[FREE] -= 1
        go_on(state, strand, row[BASE])
        return NONE
    if row[LINE_LENGTH] >= row[LIMIT_OF_LINE]:
        state.strands[strand, FAILED], state.strands[strand, WHY] = 1, WAS_REFUSED
        return strand
    count_line(state, service, 1)
    state.strands[strand, SINCE] = state.counts[NOW]
    append(state.strands, row, LINE_HEAD, LINE_TAIL, strand)
    return NONE
