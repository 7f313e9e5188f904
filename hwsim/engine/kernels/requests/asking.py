"""Requests that ask other services: attempts, time limits, answers, and requests that end or fail."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.draws import drawn
from hwsim.engine.kernels.requests.arrivals import enter, think
from hwsim.engine.kernels.requests.calendar import forget, go_on, new_strand, set_timer
from hwsim.engine.kernels.requests.locks import give_back
from hwsim.engine.kernels.requests.notes import count_line, note_end
from hwsim.engine.kernels.requests.rows import (
    AGAIN,
    ASK_NUMBER,
    ASKED,
    ASKED_AGAIN,
    ASKS,
    ATTEMPT,
    ATTEMPTS,
    BASE,
    CALLER,
    CLIENTS,
    DOWN,
    DROPS,
    ENTRIES,
    FAILED,
    FREE,
    GONE,
    HELD,
    JITTER_DRAW,
    LATE,
    LEFT,
    LINE_HEAD,
    LINE_TAIL,
    MAIN,
    NO_REASON,
    NOW,
    PC,
    RESOURCE_OF,
    RESOURCES,
    RETRIES,
    RETRY,
    ROOT,
    SERVICE,
    SET,
    SINCE,
    TIMED_OUT,
    TIMEOUT,
    TIMEOUTS,
    VISIT,
    WAITS_AT,
    WAS_DROPPED,
    WHY,
    WORST,
)
from hwsim.engine.kernels.stations import ASKING, FOLLOWING
from hwsim.engine.kernels.words import NONE, bare


@bare
def ask(state, strand, stack):
    """Send an attempt to another service."""
    counts, row = state.counts, state.strands[strand]
    step = state.table[row[PC]]
    attempts = row[ATTEMPTS]
    row[ATTEMPTS] = attempts + 1
    counts[SET] += 1
    row[ASKING] = counts[SET]
    main = state.strands[row[MAIN]]
    ways = state.services[step[ASKED], ASKS]
    visit = main[VISIT] * ways * counts[WORST] + step[ASK_NUMBER] + ways * attempts
    child = new_strand(state, step[ASKED], main[ROOT], visit)
    state.strands[child, CALLER], state.strands[child, ATTEMPT] = strand, row[ASKING]
    if attempts > 0:
        state.services[step[ASKED], ASKED_AGAIN] += 1
    if step[TIMEOUT] >= 0:
        set_timer(state, counts[NOW] + step[TIMEOUT], LATE, strand, row[ASKING], child, 0)
    refused = enter(state, child)
    if refused >= 0:
        end(state, refused, False, stack)


@bare
def give_up(state, strand, attempt, child, stack):
    """Give an attempt up that is still under way at its time limit."""
    row = state.strands[strand]
    if row[ASKING] != attempt:
        return
    row[ASKING] = 0
    state.strands[child, GONE] = 1
    step = state.table[row[PC]]
    state.services[step[ASKED], TIMEOUTS] += 1
    state.waits[strand, state.counts[RESOURCES] - 1] += step[TIMEOUT]
    if row[ATTEMPTS] <= step[RETRIES]:
        _ask_again(state, strand)
        return
    _blame(state, strand, TIMED_OUT)
    over = fail(state, strand)
    if over >= 0:
        end(state, over, True, stack)


@bare
def _ask_again(state, strand):
    """Set the timer of the next attempt."""
    row = state.strands[strand]
    step = state.table[row[PC]]
    attempts = row[ATTEMPTS]
    wait = state.floats[step[WAITS_AT] + attempts - 1, 0]
    jitter = state.floats[step[WAITS_AT], 1]
    if jitter > 0 and wait > 0:
        main = state.strands[row[MAIN]]
        wait *= 1.0 - jitter * drawn(state, step[JITTER_DRAW], main[ROOT], main[VISIT] * state.counts[WORST] + attempts)
    rounded = np.int64(np.rint(wait))
    state.waits[strand, state.counts[RESOURCES] - 2] += rounded
    set_timer(state, state.counts[NOW] + rounded, RETRY, strand, 0, 0, 0)


@bare
def _answer(state, strand):
    """End a request and let its caller go on; the caller if it fails."""
    note_end(state, strand)
    row = state.strands[strand]
    caller = row[CALLER]
    service = row[SERVICE]
    if caller < 0:
        keys = state.services[service]
        if keys[CLIENTS] > 0:
            think(state, service, row[ROOT] // state.counts[ENTRIES] + keys[CLIENTS])
        forget(state, strand)
        return NONE
    waiting = state.strands[caller]
    if row[GONE] != 0 or waiting[ASKING] != row[ATTEMPT]:
        forget(state, strand)
        return NONE
    waiting[ASKING] = 0
    for resource in range(state.counts[RESOURCES]):
        state.waits[caller, resource] += state.waits[strand, resource]
    step = state.table[waiting[PC]]
    failed, why = row[FAILED] != 0, row[WHY]
    forget(state, strand)
    if not failed:
        go_on(state, caller, waiting[PC] + 1)
    elif step[AGAIN] != 0 and waiting[ATTEMPTS] <= step[RETRIES]:
        _ask_again(state, caller)
    else:
        _blame(state, caller, why)
        return caller
    return NONE


@bare
def _blame(state, strand, why):
    """Mark the request of a strand as failed, with its first reason."""
    main = state.strands[state.strands[strand, MAIN]]
    main[FAILED] = 1
    if main[WHY] == NO_REASON:
        main[WHY] = why


@bare
def fail(state, strand):
    """Give the locks of a failed strand back; the request that ends, or none if branches go on."""
    while True:
        row = state.strands[strand]
        for at in range(row[HELD] - 1, -1, -1):
            give_back(state, state.waits[strand, state.counts[RESOURCES] + at])
        row[HELD] = 0
        if row[MAIN] == strand:
            return strand
        following = join_branch(state, strand)
        if following < 0:
            return NONE
        strand = following


@bare
def join_branch(state, strand):
    """End a branch; the strand that forked it, if that strand fails."""
    main = state.strands[strand, CALLER]
    row = state.strands[main]
    row[LEFT] -= 1
    if row[LEFT] > 0:
        forget(state, strand)
        return NONE
    for resource in range(state.counts[RESOURCES]):
        state.waits[main, resource] += state.waits[strand, resource]
    forget(state, strand)
    if state.strands[row[MAIN], FAILED] != 0:
        return main
    go_on(state, main, row[PC])
    return NONE


@bare
def end(state, strand, entered, stack):
    """A request ends, and all that fail of it: each gives its worker back, is noted, and lets the first of the line in.

    entered: whether it has a worker (one that was refused has none).
    """
    depth = 0
    while strand >= 0:
        service = state.strands[strand, SERVICE]
        if entered:
            state.services[service, FREE] += 1
            stack[depth] = service
            depth += 1
        entered = True
        failing = _answer(state, strand)
        strand = NONE
        if failing >= 0:
            strand = fail(state, failing)
    while depth > 0:
        depth -= 1
        admit(state, stack[depth])


@bare
def admit(state, service):
    """Give free workers to the requests in line."""
    row = state.services[service]
    while row[LINE_HEAD] >= 0 and row[FREE] > 0 and row[DOWN] == 0:
        strand = row[LINE_HEAD]
        row[LINE_HEAD] = state.strands[strand, FOLLOWING]
        if row[LINE_HEAD] < 0:
            row[LINE_TAIL] = NONE
        count_line(state, service, -1)
        waiting = state.strands[strand]
        if waiting[GONE] != 0 and row[DROPS] != 0:
            waiting[FAILED], waiting[WHY] = 1, WAS_DROPPED
            note_end(state, strand)
            forget(state, strand)
            continue
        state.waits[strand, row[RESOURCE_OF]] += state.counts[NOW] - waiting[SINCE]
        row[FREE] -= 1
        go_on(state, strand, row[BASE])
