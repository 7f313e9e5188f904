"""The steps of a strand, up to the next at which it waits."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.draws import drawn
from hwsim.engine.kernels.requests.asking import ask, end, fail, join_branch
from hwsim.engine.kernels.requests.calendar import go_on, new_strand, set_timer
from hwsim.engine.kernels.requests.locks import give_back, let_go
from hwsim.engine.kernels.requests.rows import (
    AFTER,
    ALONE,
    ASK,
    ATTEMPTS,
    BEGINS_WORK,
    BODY,
    BRANCH,
    BRANCHES,
    CACHE,
    CACHE_HITS,
    CALLER,
    CHOICE,
    COST,
    DOWN,
    DRAW,
    END,
    FIRST_LINE,
    FLOW,
    FORK,
    GOES_ON,
    GOES_TO,
    HELD,
    JOIN,
    JUMP,
    KEEP,
    LAST_LINE,
    LATENCY,
    LEFT,
    LINE,
    LINES,
    LOCK,
    LOCK_END,
    LOCK_HEAD,
    LOCK_TAIL,
    LOOKUPS,
    MAIN,
    MANY,
    NOW,
    NUMBER,
    NUMBER_DRAW,
    NUMBER_SLOT,
    PARKED,
    PARKED_TAIL,
    PC,
    RESOURCE,
    RESOURCES,
    ROOT,
    SERVE,
    SERVICE,
    SINCE,
    SLOT,
    STATION,
    TAKE,
    TAKEN,
    TIME,
    TO,
    VISIT,
    WAITS_FOR,
    WAY,
    WAY_CHOICE,
    WAY_LIMIT,
    WAY_TO,
    WAYS,
    WORKED_AT,
)
from hwsim.engine.kernels.stations import LARGEST, append, join
from hwsim.engine.kernels.words import NONE, bare, plus_product, put_three, three, wide


@bare
def _hit_rate(state, cache):
    """The hit rate of a cache for the next lookup; -1: it is full, and no event has changed it."""
    row = state.table[cache]
    hit, lookups = state.floats[row[CACHE_HITS], 0], row[LOOKUPS]
    if lookups >= 0:
        line, last = row[FIRST_LINE], row[LAST_LINE]
        while line < last and lookups > state.floats[line, 0]:
            line += 1
        row[LOOKUPS] = lookups + 1 if lookups + 1 <= state.floats[last, 0] else NONE
        if hit < 0:
            hit = state.floats[line, 1] + state.floats[line, 2] * lookups
    return hit


@bare
def _size(state, number, strand):
    """Time of a work whose size differs from request to request, in fs."""
    row, main = state.table[number], state.strands[strand, MAIN]
    if row[NUMBER_DRAW] >= 0:
        x = drawn(state, row[NUMBER_DRAW], state.strands[main, ROOT], state.strands[main, VISIT])
    else:
        x = state.slots[main, row[NUMBER_SLOT]]
    amount = x
    last = row[LINES] - 1
    for line in range(row[LINE], row[LINES]):
        if x <= state.floats[line, 0] or line == last:
            amount = state.floats[line, 1] + state.floats[line, 2] * x
            break
    return np.int64(np.rint(state.floats[row[BODY], 0] * max(amount, 0.0)))


@bare
def begin_work(state, strand, time):
    """Begin the work before the next step of a strand at its station; False if its end is beyond an int64."""
    row, instant = state.strands[strand], state.counts[NOW]
    step = state.table[row[PC] - 1]
    row[RESOURCE], row[SINCE], row[ALONE] = step[WAITS_FOR], instant, time
    worked = state.counts[WORKED_AT] + step[COST]
    put_three(state.words, worked, 0, plus_product(three(state.words, worked, 0), wide(1), wide(time)))
    return join(state, step[STATION], step[FLOW], time, strand, instant)


@bare
def run(state, strand, at, stack):
    """Let a strand go on from a step until it waits; False if an end is beyond an int64."""
    service = state.services[state.strands[strand, SERVICE]]
    row = state.strands[strand]
    if service[DOWN] != 0:
        row[PC] = at
        append(state.strands, service, PARKED, PARKED_TAIL, strand)
        return True
    main = row[MAIN]
    while True:
        step = state.table[at]
        kind = step[0]
        if kind == SERVE:
            time = step[TIME] if step[NUMBER] < 0 else _size(state, step[NUMBER], strand)
            row[PC] = at + 1
            instant = state.counts[NOW]
            if step[STATION] < 0:
                if time > LARGEST - instant - step[LATENCY]:
                    return False
                set_timer(state, instant + step[LATENCY] + time, GOES_ON, strand, 0, 0, 0)
                return True
            if step[LATENCY] > 0:
                set_timer(state, instant + step[LATENCY], BEGINS_WORK, strand, time, 0, 0)
                return True
            return begin_work(state, strand, time)
        if kind == END:
            end(state, strand, True, stack)
            return True
        if kind == KEEP:
            state.slots[main, step[SLOT]] = drawn(state, step[DRAW], state.strands[main, ROOT], state.strands[main, VISIT])
            at += 1
        elif kind == BRANCH:
            share = drawn(state, step[DRAW], state.strands[main, ROOT], state.strands[main, VISIT])
            hit, following = -1.0, at + 1
            if step[CACHE] >= 0:
                hit = _hit_rate(state, step[CACHE])
            if hit >= 0:
                at = state.table[step[WAY], WAY_TO] if share < hit else following
                continue
            at = following
            for way in range(step[WAY], step[WAYS]):
                if share < state.floats[state.table[way, WAY_LIMIT], 0]:
                    at = state.table[way, WAY_TO]
                    if state.table[way, WAY_CHOICE] >= 0:
                        state.strands[main, CHOICE] = state.table[way, WAY_CHOICE]
                    break
        elif kind == JUMP:
            at = step[TO]
        elif kind == ASK:
            row[PC], row[ATTEMPTS] = at, 0
            ask(state, strand, stack)
            return True
        elif kind == FORK:
            row[PC], row[LEFT] = step[GOES_TO], step[MANY]
            for place in range(step[BRANCHES], step[BRANCHES] + step[MANY]):
                branch = new_strand(state, row[SERVICE], row[ROOT], row[VISIT])
                state.strands[branch, MAIN], state.strands[branch, CALLER] = main, strand
                go_on(state, branch, state.table[place, 0])
            return True
        elif kind == JOIN:
            failing = join_branch(state, strand)
            if failing >= 0:
                over = fail(state, failing)
                if over >= 0:
                    end(state, over, True, stack)
            return True
        elif kind == TAKE:
            lock = state.services[step[LOCK]]
            row[PC] = at + 1
            if lock[TAKEN] != 0:
                row[SINCE], row[LOCK_END] = state.counts[NOW], step[AFTER]
                append(state.strands, lock, LOCK_HEAD, LOCK_TAIL, strand)
                return True
            lock[TAKEN] = 1
            state.waits[strand, state.counts[RESOURCES] + row[HELD]] = step[LOCK]
            row[HELD] += 1
            at += 1
        else:
            let_go(state, strand, step[LOCK])
            give_back(state, step[LOCK])
            at += 1
