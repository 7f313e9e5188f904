"""Play a program of services: timers, strands and stations, in the order of their instants."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.requests.arrivals import come, is_counted, next_arrival, think
from hwsim.engine.kernels.requests.asking import admit, ask, end, give_up
from hwsim.engine.kernels.requests.calendar import drop_timer, go_on, set_timer
from hwsim.engine.kernels.requests.rows import (
    ALONE,
    ANSWERS,
    ARRIVALS,
    ARRIVED,
    ARRIVES,
    ASKS_NOW,
    BEGINS,
    BEGINS_WORK,
    CACHE_HITS,
    CACHE_OF,
    CACHES,
    CACHES_END,
    CLIENTS,
    DOWN,
    EMPTIED,
    ENDED_AT,
    ENDED_COUNT,
    ENTRY,
    FARTHEST,
    FREE_STRANDS,
    FREE_TIMERS,
    GOES_ON,
    HAPPENS_TO,
    HIT_RATE,
    IS_HIT,
    LATE,
    LIMIT,
    LOOKUPS,
    MORE,
    NOW,
    OVER,
    PARKED,
    PARKED_TAIL,
    PC,
    READY,
    READY_HEAD,
    RESOURCE,
    RETRY,
    SERVICES,
    SINCE,
    STATIONS,
    TIMER_KIND,
    TIMERS,
    TOO_FAR,
)
from hwsim.engine.kernels.requests.steps import begin_work, run
from hwsim.engine.kernels.stations import CROWDED, DEPTH, DUE, ENDED_LIST, FOLLOWING, LARGEST, READY_STEPS, READY_STRANDS, leave
from hwsim.engine.kernels.words import NONE, bare, compiled, handle


@bare
def _happen(state, number, begins):
    """Begin or end an event of a service."""
    event = state.table[number]
    service = event[HAPPENS_TO]
    row = state.services[service]
    if event[EMPTIED] >= 0:
        if begins:
            state.table[event[EMPTIED], LOOKUPS] = 0
        return
    if event[IS_HIT] != 0:
        for cache in range(state.counts[CACHES], state.counts[CACHES_END]):
            if state.table[cache, CACHE_OF] == service:
                state.floats[state.table[cache, CACHE_HITS], 0] = state.floats[event[HIT_RATE], 0] if begins else -1.0
        return
    row[DOWN] = 1 if begins else 0
    if begins:
        return
    strand = row[PARKED]
    row[PARKED], row[PARKED_TAIL] = NONE, NONE
    while strand >= 0:
        go_on(state, strand, state.strands[strand, PC])
        strand = state.strands[strand, FOLLOWING]
    admit(state, service)


@bare
def _is_short(state, margin):
    """Whether too little room is left for all that one strand may do."""
    counts = state.counts
    if counts[FREE_STRANDS] < margin or counts[FREE_TIMERS] < margin or counts[ANSWERS] + margin > state.answers.shape[0]:
        return True
    for service in range(counts[SERVICES]):
        row = state.services[service]
        if row[ENTRY] >= 0 and row[CLIENTS] == 0 and row[ARRIVED] == row[ARRIVALS] and row[ARRIVALS] >= 0:
            return True
    for station in range(counts[STATIONS]):
        if state.stations[station, CROWDED] > 0 and state.stations[station, DEPTH] + margin > state.stations[station, CROWDED]:
            return True
    return False


@bare
def _expire(state, row, stack):
    """Do what a timer was set for; False if an end is beyond an int64."""
    timer = state.timers[row]
    kind, first, second, third = timer[TIMER_KIND], timer[TIMER_KIND + 1], timer[TIMER_KIND + 2], timer[TIMER_KIND + 3]
    if kind == ARRIVES:
        if is_counted(state, first):
            next_arrival(state, first, second + 1)
            refused = come(state, first, second)
            if refused >= 0:
                end(state, refused, False, stack)
    elif kind == ASKS_NOW:
        if is_counted(state, first):
            refused = come(state, first, second)
            if refused >= 0:
                end(state, refused, False, stack)
    elif kind == LATE:
        give_up(state, first, second, third, stack)
    elif kind == RETRY:
        ask(state, first, stack)
    elif kind == BEGINS_WORK:
        return begin_work(state, first, second)
    elif kind == GOES_ON:
        return run(state, first, state.strands[first, PC], stack)
    else:
        _happen(state, first, kind == BEGINS)
    return True


@compiled
def begin(columns, entry):
    """Set the first timers of an entry: its clients think, or its first request comes."""
    state = handle(columns)
    for service in range(state.counts[SERVICES]):
        if state.services[service, ENTRY] == entry:
            if state.services[service, CLIENTS] == 0:
                next_arrival(state, service, 0)
            for client in range(state.services[service, CLIENTS]):
                think(state, service, client)


@compiled
def set_event(columns, time, happening, begins):
    """Set the timer of something that happens."""
    state = handle(columns)
    set_timer(state, time, BEGINS if begins else OVER, happening, 0, 0, 0)


@compiled
def play(columns, limit, margin):
    """Play all instants before a limit; why it returned."""
    state = handle(columns)
    counts = state.counts
    stack = np.empty(state.strands.shape[0] + 1, np.int64)
    while True:
        if _is_short(state, margin):
            return MORE
        if counts[READY] > 0:
            at = counts[READY_HEAD]
            counts[READY_HEAD] = (at + 1) % state.lists.shape[1]
            counts[READY] -= 1
            if not run(state, state.lists[READY_STRANDS, at], state.lists[READY_STEPS, at], stack):
                return TOO_FAR
            continue
        if counts[ENDED_AT] < counts[ENDED_COUNT]:
            strand = state.lists[ENDED_LIST, counts[ENDED_AT]]
            counts[ENDED_AT] += 1
            row = state.strands[strand]
            waited = counts[NOW] - row[SINCE] - row[ALONE]
            if waited > 0:
                state.waits[strand, row[RESOURCE]] += waited
            if not run(state, strand, row[PC], stack):
                return TOO_FAR
            continue
        if counts[NOW] > FARTHEST:
            return TOO_FAR
        soonest, which = LARGEST, NONE
        for station in range(counts[STATIONS]):
            if state.stations[station, DUE] < soonest:
                soonest, which = state.stations[station, DUE], station
        if counts[TIMERS] > 0 and state.timers[0, 0] < soonest:
            if state.timers[0, 0] >= limit:
                return LIMIT
            counts[NOW] = state.timers[0, 0]
            if not _expire(state, drop_timer(state), stack):
                return TOO_FAR
            continue
        if soonest >= limit or which < 0:
            return LIMIT
        counts[NOW] = soonest
        many = leave(state, which, soonest)
        if many < 0:
            return TOO_FAR
        counts[ENDED_AT], counts[ENDED_COUNT] = 0, many
