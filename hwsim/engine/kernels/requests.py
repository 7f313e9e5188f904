"""Requests that walk through the steps of services, on columns: what `hwsim.actors.services.play` says, to the femtosecond.

Everything that may grow is looked at before each strand goes on: where there is too little room left, or an arrival is not
known yet, `play` returns and says so, and is called again with more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwsim.engine.kernels.draws import drawn
from hwsim.engine.kernels.stations import (
    ASKING,
    CROWDED,
    DEPTH,
    DUE,
    ENDED_LIST,
    FOLLOWING,
    FREE_LIST,
    LARGEST,
    READY_STEPS,
    READY_STRANDS,
    join,
    leave,
)  # fmt: skip
from hwsim.engine.kernels.words import NONE, bare, compiled, kept, opened, plus_product, put_three, three, wide

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
HAPPENS_TO, IS_HIT, HIT_RATE = range(3)

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


# ---- the calendar


@bare
def _at(pointer, time, kind, one, two, three_, four):
    """Set a timer; False if it is beyond an int64."""
    state = opened(pointer)
    counts, timers = state.counts, state.timers
    counts[SET] += 1
    counts[FREE_TIMERS] -= 1
    row = timers[counts[FREE_TIMERS], FREE_ROW]
    of = timers[row]
    of[TIMER_KIND], of[TIMER_KIND + 1], of[TIMER_KIND + 2], of[TIMER_KIND + 3], of[TIMER_KIND + 4] = kind, one, two, three_, four
    number, place = counts[SET], counts[TIMERS]
    counts[TIMERS] += 1
    while place > 0:
        above = (place - 1) >> 1
        if timers[above, 0] < time or (timers[above, 0] == time and timers[above, 1] < number):
            break
        timers[place, 0], timers[place, 1], timers[place, 2] = timers[above, 0], timers[above, 1], timers[above, 2]
        place = above
    timers[place, 0], timers[place, 1], timers[place, 2] = time, number, row


@bare
def _drop_timer(pointer):
    """Take the first timer out; its row."""
    state = opened(pointer)
    counts, timers = state.counts, state.timers
    found = timers[0, 2]
    counts[TIMERS] -= 1
    last = counts[TIMERS]
    time, number, row = timers[last, 0], timers[last, 1], timers[last, 2]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        other = below + 1
        if other < last and (
            timers[other, 0] < timers[below, 0] or (timers[other, 0] == timers[below, 0] and timers[other, 1] < timers[below, 1])
        ):
            below = other
        if timers[below, 0] > time or (timers[below, 0] == time and timers[below, 1] > number):
            break
        timers[place, 0], timers[place, 1], timers[place, 2] = timers[below, 0], timers[below, 1], timers[below, 2]
        place = below
    timers[place, 0], timers[place, 1], timers[place, 2] = time, number, row
    timers[counts[FREE_TIMERS], FREE_ROW] = found
    counts[FREE_TIMERS] += 1
    return found


@bare
def _soon(pointer, strand, step):
    """A strand goes on at a step, in its turn of this instant."""
    state = opened(pointer)
    counts = state.counts
    at = (counts[READY_HEAD] + counts[READY]) % state.lists.shape[1]
    state.lists[READY_STRANDS, at], state.lists[READY_STEPS, at] = strand, step
    counts[READY] += 1


@bare
def _new(pointer, service, root, visit):
    state = opened(pointer)
    counts = state.counts
    counts[FREE_STRANDS] -= 1
    strand = state.lists[FREE_LIST, counts[FREE_STRANDS]]
    row = state.strands[strand]
    for column in range(STRAND_WIDTH):
        row[column] = 0
    row[SERVICE], row[ROOT], row[VISIT], row[BEGAN] = service, root, visit, counts[NOW]
    row[MAIN], row[CALLER], row[CHOICE], row[RESOURCE] = strand, NONE, NONE, NONE
    for what in range(state.waits.shape[1]):
        state.waits[strand, what] = 0
    return strand


@bare
def _forget(pointer, strand):
    state = opened(pointer)
    state.lists[FREE_LIST, state.counts[FREE_STRANDS]] = strand
    state.counts[FREE_STRANDS] += 1


# ---- notes


@bare
def _pass(pointer, service):
    """Close the windows that end by now."""
    state = opened(pointer)
    row, words, now = state.services[service], state.words, state.counts[NOW]
    while now >= row[EDGE]:
        edge = row[EDGE]
        put_three(words, service, AREA, plus_product(three(words, service, AREA), wide(row[HERE]), wide(edge - row[LAST])))
        put_three(
            words, service, LINE_AREA,
            plus_product(three(words, service, LINE_AREA), wide(row[LINE_LENGTH]), wide(edge - row[LINE_LAST])),
        )  # fmt: skip
        row[LAST], row[LINE_LAST] = edge, edge
        first = row[WINDOWS_AT]
        put_three(words, first + row[WINDOWS] - 1, 0, three(words, service, AREA))
        put_three(words, first + row[WINDOWS] - 1, 3, three(words, service, LINE_AREA))
        if row[WINDOWS] == MOST_WINDOWS:
            for at in range(MOST_WINDOWS // 2):
                put_three(words, first + at, 0, three(words, first + 2 * at + 1, 0))
                put_three(words, first + at, 3, three(words, first + 2 * at + 1, 3))
            row[WINDOWS] = MOST_WINDOWS // 2
            row[WINDOW] *= 2
        row[WINDOWS] += 1
        row[EDGE] = row[WINDOWS] * row[WINDOW]


@bare
def _there(pointer, service, change):
    """A request more, or one less."""
    state = opened(pointer)
    row, words, now = state.services[service], state.words, state.counts[NOW]
    if now >= row[EDGE]:
        _pass(pointer, service)
    put_three(words, service, AREA, plus_product(three(words, service, AREA), wide(row[HERE]), wide(now - row[LAST])))
    row[LAST] = now
    row[HERE] += change
    if change > 0:
        row[ENTERED] += 1
        if row[FIRST_CAME] < 0:
            row[FIRST_CAME] = now
        if row[HERE] > row[MOST]:
            row[MOST] = row[HERE]
    else:
        row[ENDED] = now


@bare
def _in_line(pointer, service, change):
    """The line is longer, or shorter."""
    state = opened(pointer)
    row, words, now = state.services[service], state.words, state.counts[NOW]
    if now >= row[EDGE]:
        _pass(pointer, service)
    put_three(
        words, service, LINE_AREA,
        plus_product(three(words, service, LINE_AREA), wide(row[LINE_LENGTH]), wide(now - row[LINE_LAST])),
    )  # fmt: skip
    row[LINE_LAST] = now
    row[LINE_LENGTH] += change
    if row[LINE_LENGTH] > row[LINE_MOST]:
        row[LINE_MOST] = row[LINE_LENGTH]


@bare
def _note_end(pointer, strand):
    """A request has left."""
    state = opened(pointer)
    row, counts = state.strands[strand], state.counts
    service, now = row[SERVICE], counts[NOW]
    _there(pointer, service, -1)
    took = now - row[BEGAN]
    words, notes = state.words, state.services[service]
    put_three(words, service, STAY, plus_product(three(words, service, STAY), wide(1), wide(took)))
    if row[FAILED] != 0:
        if row[WHY] == WAS_REFUSED:
            notes[REFUSED] += 1
        elif row[WHY] == WAS_DROPPED:
            notes[DROPPED] += 1
        else:
            notes[FAILED_COUNT] += 1
    elif row[GONE] != 0:
        notes[WASTED] += 1
    else:
        at = counts[ANSWERS]
        counts[ANSWERS] += 1
        answer = state.answers[at]
        answer[0], answer[1], answer[2], answer[3] = service, now, took, row[CHOICE]
        for what in range(counts[RESOURCES]):
            answer[ANSWER_WIDTH + what] = state.waits[strand, what]


# ---- arrivals


@bare
def _next_arrival(pointer, service, count):
    state = opened(pointer)
    row = state.services[service]
    if row[ARRIVED] < row[ARRIVALS]:
        at = state.arrivals[row[ENTRY], row[ARRIVED]]
        row[ARRIVED] += 1
        _at(pointer, row[START] + at, ARRIVES, service, count, 0, 0)


@bare
def _counts(pointer, service):
    """Whether a request that comes now is still of the run."""
    state = opened(pointer)
    load = state.services[state.services[service, LOAD]]
    if 0 <= load[UNTIL] <= state.counts[NOW] or load[COME] == load[REQUESTS]:
        return False
    load[COME] += 1
    return True


@bare
def _comes(pointer, service, count):
    state = opened(pointer)
    row = state.services[service]
    row[CAME] += 1
    row[LAST_CAME] = state.counts[NOW]
    strand = _new(pointer, service, count * state.counts[ENTRIES] + row[ENTRY], 0)
    return _enter(pointer, strand)


@bare
def _think(pointer, service, count):
    """A client thinks, then asks."""
    state = opened(pointer)
    row = state.services[service]
    wait = np.int64(min(np.rint(drawn(pointer, row[THINK], count, 0) * 1e15), 2.0**62))
    _at(pointer, max(state.counts[NOW], row[START]) + wait, ASKS_NOW, service, count, 0, 0)


@bare
def _enter(pointer, strand):
    """A request comes to its service: to a worker, or into the line; the request itself if it is refused."""
    state = opened(pointer)
    service = state.strands[strand, SERVICE]
    row = state.services[service]
    _there(pointer, service, 1)
    if row[FREE] > 0 and row[DOWN] == 0:
        row[FREE] -= 1
        _soon(pointer, strand, row[BASE])
        return NONE
    if row[LINE_LENGTH] >= row[LIMIT_OF_LINE]:
        state.strands[strand, FAILED], state.strands[strand, WHY] = 1, WAS_REFUSED
        return strand
    _in_line(pointer, service, 1)
    state.strands[strand, SINCE] = state.counts[NOW]
    state.strands[strand, FOLLOWING] = NONE
    if row[LINE_TAIL] < 0:
        row[LINE_HEAD] = strand
    else:
        state.strands[row[LINE_TAIL], FOLLOWING] = strand
    row[LINE_TAIL] = strand
    return NONE


# ---- ends of requests


@bare
def _answer(pointer, strand):
    """A request is over: noted, and its caller goes on; the caller if that fails of it."""
    state = opened(pointer)
    _note_end(pointer, strand)
    row = state.strands[strand]
    caller = row[CALLER]
    service = row[SERVICE]
    if caller < 0:
        keys = state.services[service]
        if keys[CLIENTS] > 0:
            _think(pointer, service, row[ROOT] // state.counts[ENTRIES] + keys[CLIENTS])
        _forget(pointer, strand)
        return NONE
    waiting = state.strands[caller]
    if row[GONE] != 0 or waiting[ASKING] != row[ATTEMPT]:
        _forget(pointer, strand)
        return NONE
    waiting[ASKING] = 0
    for what in range(state.counts[RESOURCES]):
        state.waits[caller, what] += state.waits[strand, what]
    step = state.table[waiting[PC]]
    failed, why = row[FAILED] != 0, row[WHY]
    _forget(pointer, strand)
    if not failed:
        _soon(pointer, caller, waiting[PC] + 1)
    elif step[AGAIN] != 0 and waiting[ATTEMPTS] <= step[RETRIES]:
        _again(pointer, caller)
    else:
        _blame(pointer, caller, why)
        return caller
    return NONE


@bare
def _blame(pointer, strand, why):
    state = opened(pointer)
    main = state.strands[state.strands[strand, MAIN]]
    main[FAILED] = 1
    if main[WHY] == NO_REASON:
        main[WHY] = why


@bare
def _fail(pointer, strand):
    """A strand that is to blame gives back what it holds; the request that is over of it, or none yet."""
    state = opened(pointer)
    while True:
        row = state.strands[strand]
        for at in range(row[HELD] - 1, -1, -1):
            _give_back(pointer, state.waits[strand, state.counts[RESOURCES] + at])
        row[HELD] = 0
        if row[MAIN] == strand:
            return strand
        following = _joined(pointer, strand)
        if following < 0:
            return NONE
        strand = following


@bare
def _joined(pointer, strand):
    """A branch is over; the strand that it is of, if that fails now."""
    state = opened(pointer)
    main = state.strands[strand, CALLER]
    row = state.strands[main]
    row[LEFT] -= 1
    if row[LEFT] > 0:
        _forget(pointer, strand)
        return NONE
    for what in range(state.counts[RESOURCES]):
        state.waits[main, what] += state.waits[strand, what]
    _forget(pointer, strand)
    if state.strands[row[MAIN], FAILED] != 0:
        return main
    _soon(pointer, main, row[PC])
    return NONE


@bare
def _over(pointer, strand, entered, stack):
    """A request ends, and all that fail of it: each gives its worker back, is noted, and lets the first of the line in.

    entered: whether it has a worker (one that was refused has none).
    """
    state = opened(pointer)
    depth = 0
    while strand >= 0:
        service = state.strands[strand, SERVICE]
        if entered:
            state.services[service, FREE] += 1
            stack[depth] = service
            depth += 1
        entered = True
        failing = _answer(pointer, strand)
        strand = NONE
        if failing >= 0:
            strand = _fail(pointer, failing)
    while depth > 0:
        depth -= 1
        _admit(pointer, stack[depth])


@bare
def _admit(pointer, service):
    state = opened(pointer)
    row = state.services[service]
    while row[LINE_HEAD] >= 0 and row[FREE] > 0 and row[DOWN] == 0:
        strand = row[LINE_HEAD]
        row[LINE_HEAD] = state.strands[strand, FOLLOWING]
        if row[LINE_HEAD] < 0:
            row[LINE_TAIL] = NONE
        _in_line(pointer, service, -1)
        one = state.strands[strand]
        if one[GONE] != 0 and row[DROPS] != 0:
            one[FAILED], one[WHY] = 1, WAS_DROPPED
            _note_end(pointer, strand)
            _forget(pointer, strand)
            continue
        state.waits[strand, row[RESOURCE_OF]] += state.counts[NOW] - one[SINCE]
        row[FREE] -= 1
        _soon(pointer, strand, row[BASE])


# ---- asking


@bare
def _ask(pointer, strand, stack):
    """An attempt at another service."""
    state = opened(pointer)
    counts, row = state.counts, state.strands[strand]
    step = state.table[row[PC]]
    attempts = row[ATTEMPTS]
    row[ATTEMPTS] = attempts + 1
    counts[SET] += 1
    row[ASKING] = counts[SET]
    main = state.strands[row[MAIN]]
    ways = state.services[step[ASKED], ASKS]
    visit = main[VISIT] * ways * counts[WORST] + step[ASK_NUMBER] + ways * attempts
    child = _new(pointer, step[ASKED], main[ROOT], visit)
    state.strands[child, CALLER], state.strands[child, ATTEMPT] = strand, row[ASKING]
    if attempts > 0:
        state.services[step[ASKED], ASKED_AGAIN] += 1
    if step[TIMEOUT] >= 0:
        _at(pointer, counts[NOW] + step[TIMEOUT], LATE, strand, row[ASKING], child, 0)
    refused = _enter(pointer, child)
    if refused >= 0:
        _over(pointer, refused, False, stack)


@bare
def _late(pointer, strand, attempt, child, stack):
    """An attempt is given up, if it is still under way."""
    state = opened(pointer)
    row = state.strands[strand]
    if row[ASKING] != attempt:
        return
    row[ASKING] = 0
    state.strands[child, GONE] = 1
    step = state.table[row[PC]]
    state.services[step[ASKED], TIMEOUTS] += 1
    state.waits[strand, state.counts[RESOURCES] - 1] += step[TIMEOUT]
    if row[ATTEMPTS] <= step[RETRIES]:
        _again(pointer, strand)
        return
    _blame(pointer, strand, TIMED_OUT)
    over = _fail(pointer, strand)
    if over >= 0:
        _over(pointer, over, True, stack)


@bare
def _again(pointer, strand):
    state = opened(pointer)
    row = state.strands[strand]
    step = state.table[row[PC]]
    attempts = row[ATTEMPTS]
    wait = state.floats[step[WAITS_AT] + attempts - 1, 0]
    jitter = state.floats[step[WAITS_AT], 1]
    if jitter > 0 and wait > 0:
        main = state.strands[row[MAIN]]
        wait *= 1.0 - jitter * drawn(pointer, step[JITTER_DRAW], main[ROOT], main[VISIT] * state.counts[WORST] + attempts)
    whole = np.int64(np.rint(wait))
    state.waits[strand, state.counts[RESOURCES] - 2] += whole
    _at(pointer, state.counts[NOW] + whole, RETRY, strand, 0, 0, 0)


# ---- locks


@bare
def _give_back(pointer, number):
    state = opened(pointer)
    lock = state.services[number]
    lock[TAKEN] = 0
    strand = lock[ALONG]
    while strand >= 0:
        _soon(pointer, strand, state.strands[strand, PC])
        strand = state.strands[strand, FOLLOWING]
    lock[ALONG], lock[ALONG_TAIL], lock[ALONG_COUNT] = NONE, NONE, 0
    if lock[LOCK_HEAD] < 0:
        return
    lock[TAKEN] = 1
    first = _next_in_line(pointer, number)
    row = state.strands[first]
    state.waits[first, state.counts[RESOURCES] + row[HELD]] = number
    row[HELD] += 1
    while lock[LOCK_HEAD] >= 0 and lock[ALONG_COUNT] < lock[GROUP] - 1:
        follower = _next_in_line(pointer, number)
        one = state.strands[follower]
        one[PC], one[SINCE] = one[LOCK_END], state.counts[NOW]
        state.strands[follower, FOLLOWING] = NONE
        if lock[ALONG_TAIL] < 0:
            lock[ALONG] = follower
        else:
            state.strands[lock[ALONG_TAIL], FOLLOWING] = follower
        lock[ALONG_TAIL] = follower
        lock[ALONG_COUNT] += 1
    _soon(pointer, first, row[PC])


@bare
def _next_in_line(pointer, number):
    """Take the first out of the line of a lock."""
    state = opened(pointer)
    lock = state.services[number]
    strand = lock[LOCK_HEAD]
    lock[LOCK_HEAD] = state.strands[strand, FOLLOWING]
    if lock[LOCK_HEAD] < 0:
        lock[LOCK_TAIL] = NONE
    state.waits[strand, lock[LOCK_RESOURCE]] += state.counts[NOW] - state.strands[strand, SINCE]
    return strand


# ---- steps


@bare
def _size(pointer, number, strand):
    """fs of a work whose size differs from request to request."""
    state = opened(pointer)
    row, main = state.table[number], state.strands[strand, MAIN]
    if row[NUMBER_DRAW] >= 0:
        x = drawn(pointer, row[NUMBER_DRAW], state.strands[main, ROOT], state.strands[main, VISIT])
    else:
        x = state.slots[main, row[NUMBER_SLOT]]
    found = x
    last = row[LINES] - 1
    for line in range(row[LINE], row[LINES]):
        if x <= state.floats[line, 0] or line == last:
            found = state.floats[line, 1] + state.floats[line, 2] * x
            break
    return np.int64(np.rint(state.floats[row[BODY], 0] * max(found, 0.0)))


@bare
def _work(pointer, strand, time):
    """The work before a strand's next step begins at its station; False if its end is beyond an int64."""
    state = opened(pointer)
    row, now = state.strands[strand], state.counts[NOW]
    step = state.table[row[PC] - 1]
    row[RESOURCE], row[SINCE], row[ALONE] = step[WAITS_FOR], now, time
    worked = state.counts[WORKED_AT] + step[COST]
    put_three(state.words, worked, 0, plus_product(three(state.words, worked, 0), wide(1), wide(time)))
    return join(pointer, step[STATION], step[FLOW], time, strand, now)


@bare
def _run(pointer, strand, at, stack):
    """A strand goes on from a step until it waits; False if an end is beyond an int64."""
    state = opened(pointer)
    service = state.services[state.strands[strand, SERVICE]]
    row = state.strands[strand]
    if service[DOWN] != 0:
        row[PC] = at
        state.strands[strand, FOLLOWING] = NONE
        if service[PARKED_TAIL] < 0:
            service[PARKED] = strand
        else:
            state.strands[service[PARKED_TAIL], FOLLOWING] = strand
        service[PARKED_TAIL] = strand
        return True
    main = row[MAIN]
    while True:
        step = state.table[at]
        kind = step[0]
        if kind == SERVE:
            time = step[TIME] if step[NUMBER] < 0 else _size(pointer, step[NUMBER], strand)
            row[PC] = at + 1
            now = state.counts[NOW]
            if step[STATION] < 0:
                if time > LARGEST - now - step[LATENCY]:
                    return False
                _at(pointer, now + step[LATENCY] + time, GOES_ON, strand, 0, 0, 0)
                return True
            if step[LATENCY] > 0:
                _at(pointer, now + step[LATENCY], BEGINS_WORK, strand, time, 0, 0)
                return True
            return _work(pointer, strand, time)
        if kind == END:
            _over(pointer, strand, True, stack)
            return True
        if kind == KEEP:
            state.slots[main, step[SLOT]] = drawn(pointer, step[DRAW], state.strands[main, ROOT], state.strands[main, VISIT])
            at += 1
        elif kind == BRANCH:
            share = drawn(pointer, step[DRAW], state.strands[main, ROOT], state.strands[main, VISIT])
            cache, following = step[CACHE], at + 1
            if cache >= 0 and state.floats[cache, 0] >= 0:
                at = state.table[step[WAY], WAY_TO] if share < state.floats[cache, 0] else following
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
            _ask(pointer, strand, stack)
            return True
        elif kind == FORK:
            row[PC], row[LEFT] = step[GOES_TO], step[MANY]
            for place in range(step[BRANCHES], step[BRANCHES] + step[MANY]):
                branch = _new(pointer, row[SERVICE], row[ROOT], row[VISIT])
                state.strands[branch, MAIN], state.strands[branch, CALLER] = main, strand
                _soon(pointer, branch, state.table[place, 0])
            return True
        elif kind == JOIN:
            failing = _joined(pointer, strand)
            if failing >= 0:
                over = _fail(pointer, failing)
                if over >= 0:
                    _over(pointer, over, True, stack)
            return True
        elif kind == TAKE:
            lock = state.services[step[LOCK]]
            row[PC] = at + 1
            if lock[TAKEN] != 0:
                row[SINCE], row[LOCK_END] = state.counts[NOW], step[AFTER]
                state.strands[strand, FOLLOWING] = NONE
                if lock[LOCK_TAIL] < 0:
                    lock[LOCK_HEAD] = strand
                else:
                    state.strands[lock[LOCK_TAIL], FOLLOWING] = strand
                lock[LOCK_TAIL] = strand
                return True
            lock[TAKEN] = 1
            state.waits[strand, state.counts[RESOURCES] + row[HELD]] = step[LOCK]
            row[HELD] += 1
            at += 1
        else:
            _let_go(pointer, strand, step[LOCK])
            _give_back(pointer, step[LOCK])
            at += 1


@bare
def _let_go(pointer, strand, lock):
    """A lock is no longer among those that a strand holds."""
    state = opened(pointer)
    row, held = state.strands[strand], state.counts[RESOURCES]
    for place in range(held, held + row[HELD]):
        if state.waits[strand, place] == lock:
            for after in range(place + 1, held + row[HELD]):
                state.waits[strand, after - 1] = state.waits[strand, after]
            row[HELD] -= 1
            return


@bare
def _happens(pointer, number, begins):
    """Something happens to a service, or is over."""
    state = opened(pointer)
    event = state.table[number]
    service = event[HAPPENS_TO]
    row = state.services[service]
    if event[IS_HIT] != 0:
        for cache in range(state.counts[CACHES], state.counts[CACHES_END]):
            if state.table[cache, 0] == service:
                state.floats[state.table[cache, 1], 0] = state.floats[event[HIT_RATE], 0] if begins else -1.0
        return
    row[DOWN] = 1 if begins else 0
    if begins:
        return
    strand = row[PARKED]
    row[PARKED], row[PARKED_TAIL] = NONE, NONE
    while strand >= 0:
        _soon(pointer, strand, state.strands[strand, PC])
        strand = state.strands[strand, FOLLOWING]
    _admit(pointer, service)


@bare
def _is_short(pointer, margin):
    """Whether there is too little room for whatever one strand may do."""
    state = opened(pointer)
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
def _goes(pointer, row, stack):
    """Do what a timer was set for; False if an end is beyond an int64."""
    state = opened(pointer)
    timer = state.timers[row]
    kind, one, two_, three_ = timer[TIMER_KIND], timer[TIMER_KIND + 1], timer[TIMER_KIND + 2], timer[TIMER_KIND + 3]
    if kind == ARRIVES:
        if _counts(pointer, one):
            _next_arrival(pointer, one, two_ + 1)
            refused = _comes(pointer, one, two_)
            if refused >= 0:
                _over(pointer, refused, False, stack)
    elif kind == ASKS_NOW:
        if _counts(pointer, one):
            refused = _comes(pointer, one, two_)
            if refused >= 0:
                _over(pointer, refused, False, stack)
    elif kind == LATE:
        _late(pointer, one, two_, three_, stack)
    elif kind == RETRY:
        _ask(pointer, one, stack)
    elif kind == BEGINS_WORK:
        return _work(pointer, one, two_)
    elif kind == GOES_ON:
        return _run(pointer, one, state.strands[one, PC], stack)
    else:
        _happens(pointer, one, kind == BEGINS)
    return True


@compiled
def begin(state, entry):
    """Set the first timers of an entry: its clients think, or its first request comes."""
    pointer = kept(state)
    for service in range(state.counts[SERVICES]):
        if state.services[service, ENTRY] == entry:
            if state.services[service, CLIENTS] == 0:
                _next_arrival(pointer, service, 0)
            for client in range(state.services[service, CLIENTS]):
                _think(pointer, service, client)


@compiled
def set_event(state, time, happening, begins):
    """Set the timer of something that happens."""
    pointer = kept(state)
    _at(pointer, time, BEGINS if begins else OVER, happening, 0, 0, 0)


@compiled
def play(state, limit, margin):
    """Play all instants before a limit; why it returned."""
    pointer = kept(state)
    counts = state.counts
    stack = np.empty(state.strands.shape[0] + 1, np.int64)
    while True:
        if _is_short(pointer, margin):
            return MORE
        if counts[READY] > 0:
            at = counts[READY_HEAD]
            counts[READY_HEAD] = (at + 1) % state.lists.shape[1]
            counts[READY] -= 1
            if not _run(pointer, state.lists[READY_STRANDS, at], state.lists[READY_STEPS, at], stack):
                return TOO_FAR
            continue
        if counts[ENDED_AT] < counts[ENDED_COUNT]:
            strand = state.lists[ENDED_LIST, counts[ENDED_AT]]
            counts[ENDED_AT] += 1
            row = state.strands[strand]
            waited = counts[NOW] - row[SINCE] - row[ALONE]
            if waited > 0:
                state.waits[strand, row[RESOURCE]] += waited
            if not _run(pointer, strand, row[PC], stack):
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
            if not _goes(pointer, _drop_timer(pointer), stack):
                return TOO_FAR
            continue
        if soonest >= limit or which < 0:
            return LIMIT
        counts[NOW] = soonest
        many = leave(pointer, which, soonest)
        if many < 0:
            return TOO_FAR
        counts[ENDED_AT], counts[ENDED_COUNT] = 0, many
