"""Stations on columns: what `hwsim.actors.services.stations` says, to the femtosecond.

Members of a class, and works that a server does, are skew heaps of requests; paces of classes are shared out as in
`hwsim.engine.fair`, on one capacity or on several that works tie together.
"""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.flows import merged
from hwsim.engine.kernels.words import (
    MOST,
    NIL,
    NONE,
    ONE,
    UNIT,
    ZERO,
    bare,
    divide,
    is_same,
    is_zero,
    less,
    minus_product,
    plus_product,
    put_three,
    put_two,
    three,
    two,
    wide,
)  # fmt: skip

LARGEST = 2**63 - 1  # fs: later times do not fit

SHARED, FIFO, TIED = 0, 1, 2
# a station; of a line, FIRST_CLASS: the row of words that says what none of its servers is of FULL, one, two ...
# of tied capacities, SERVERS: how many; FREE: the first of their rows of words
(KIND, SERVERS, FREE, FIRST_CLASS, LAST_CLASS, LAST, THERE, DUE, HEAD, TAIL, WORKING, DEPTH, CROWDED, LINE_FIRST, WORDS_AT,
 STATION_WIDTH) = range(16)  # fmt: skip
# its words: what its members would draw alone, what is used, members x fs, and what was used x fs in two parts
DRAWN, USED, AREA, BUSY_HIGH, BUSY_LOW, WORDS_WIDTH = 0, 3, 6, 9, 12, 15
# a class
MEMBERS, ROOT, SINCE, CLASS_DUE, CROWD, OWN_DEPTH, CLASS_WORDS, SEEN_ROOT, SHARES = range(9)  # SHARES: its rows of weights
ALONE, WEIGHT, DRAWS, VIRTUAL, PACE, SERVED_ALONE = 0, 2, 4, 7, 10, 12  # two words, two, three, three, two, two
# a tied capacity: what is left of it, what those draw whose pace still rises, and whether it is full
LEFT, LOAD, IS_FULL = 0, 3, 6
# of a strand, behind what `requests` has
FOLLOWING, JOINED, WORKS, ASKING = 21, 22, 23, 24
# short-lived lists
ENDED_LIST, READY_STRANDS, READY_STEPS, FREE_LIST, RISING, LISTS = range(6)
WHOLE = np.uint64(1 << 36)  # of FULL, the third word


@bare
def append(strands, row, head, tail, strand):
    """A strand comes last in a line, whose ends the row has in these columns."""
    strands[strand, FOLLOWING] = NONE
    if row[tail] < 0:
        row[head] = strand
    else:
        strands[row[tail], FOLLOWING] = strand
    row[tail] = strand


@bare
def count(state, station, instant):
    """Bring the integrals of a station up to now."""
    row, words = state.stations[station], state.words
    passed = instant - row[LAST]
    if passed == 0:
        return
    row[LAST] = instant
    span = wide(passed)
    put_three(words, row[WORDS_AT], AREA, plus_product(three(words, row[WORDS_AT], AREA), wide(row[THERE]), span))
    if row[KIND] == FIFO:
        used = three(words, row[FIRST_CLASS] + row[SERVERS] - row[FREE], 0)
    else:
        used = three(words, row[WORDS_AT], USED)  # 165 bits at most: in two parts, so that fs times them fit
    low = (used[0], ZERO, ZERO)
    high = (used[1], used[2], ZERO)
    put_three(words, row[WORDS_AT], BUSY_LOW, plus_product(three(words, row[WORDS_AT], BUSY_LOW), low, span))
    put_three(words, row[WORDS_AT], BUSY_HIGH, plus_product(three(words, row[WORDS_AT], BUSY_HIGH), high, span))


@bare
def _begin(state, station, strand, time, instant):
    """A server of a line takes on a work."""
    row = state.stations[station]
    row[WORKING] += 1
    put_three(state.targets, strand, 0, (np.uint64(row[WORKING]), np.uint64(instant + time), ZERO))
    state.strands[strand, 0], state.strands[strand, 1] = NONE, NONE
    state.stations[station, HEAD] = merged(state.strands, state.targets, row[HEAD], strand)
    row[DUE] = np.int64(state.targets[row[HEAD], 1])


@bare
def join(state, station, flow, time, strand, instant):
    """A request comes that alone would take `time` fs; False if that is beyond an int64."""
    row = state.stations[station]
    count(state, station, instant)
    row[THERE] += 1
    if time > LARGEST - instant:
        return False
    if row[KIND] == FIFO:
        if row[FREE] > 0:
            row[FREE] -= 1
            _begin(state, station, strand, time, instant)
            return True
        state.strands[strand, WORKS] = time
        append(state.strands, row, LINE_FIRST, TAIL, strand)
        return True
    cls = row[FIRST_CLASS] + flow
    table, words = state.stations, state.words
    if table[cls, MEMBERS] > 0:
        _bring(table, words, cls, instant)
    else:
        put_three(words, table[cls, CLASS_WORDS], VIRTUAL, NIL)
        table[cls, SEEN_ROOT] = NONE
    table[cls, SINCE] = instant
    row[WORKING] += 1
    state.strands[strand, JOINED] = row[WORKING]
    table[cls, MEMBERS] += 1
    put_three(
        state.words, row[WORDS_AT], DRAWN,
        plus_product(three(state.words, row[WORDS_AT], DRAWN), three(words, table[cls, CLASS_WORDS], DRAWS), UNIT),
    )  # fmt: skip
    target = plus_product(
        three(words, table[cls, CLASS_WORDS], VIRTUAL),
        two(words, table[cls, CLASS_WORDS], SERVED_ALONE),
        wide(time),
    )
    put_three(state.targets, strand, 0, target)
    state.strands[strand, 0], state.strands[strand, 1] = NONE, NONE
    table[cls, ROOT] = merged(state.strands, state.targets, table[cls, ROOT], strand)
    row[DEPTH] += table[cls, OWN_DEPTH]
    return _settle(state, station, instant)


@bare
def _bring(table, words, cls, instant):
    passed = wide(instant - table[cls, SINCE])
    put_three(
        words,
        table[cls, CLASS_WORDS],
        VIRTUAL,
        plus_product(three(words, table[cls, CLASS_WORDS], VIRTUAL), two(words, table[cls, CLASS_WORDS], PACE), passed),
    )
    table[cls, SINCE] = instant


@bare
def leave(state, station, instant):
    """List the members that end now, in the order in which they came; how many, -1 if an end is beyond an int64."""
    row = state.stations[station]
    count(state, station, instant)
    ended = state.lists[ENDED_LIST]
    many = 0
    if row[KIND] == FIFO:
        while row[HEAD] >= 0 and np.int64(state.targets[row[HEAD], 1]) <= instant:
            strand = row[HEAD]
            ended[many] = strand
            many += 1
            row[HEAD] = merged(state.strands, state.targets, state.strands[strand, 0], state.strands[strand, 1])
            row[THERE] -= 1
            following = row[LINE_FIRST]
            if following >= 0:
                row[LINE_FIRST] = state.strands[following, FOLLOWING]
                if row[LINE_FIRST] < 0:
                    row[TAIL] = NONE
                if state.strands[following, WORKS] > LARGEST - instant:
                    return -1
                _begin(state, station, following, state.strands[following, WORKS], instant)
            else:
                row[FREE] += 1
        row[DUE] = np.int64(state.targets[row[HEAD], 1]) if row[HEAD] >= 0 else LARGEST
        return many
    table, words = state.stations, state.words
    for cls in range(row[FIRST_CLASS], row[LAST_CLASS]):
        if table[cls, MEMBERS] == 0 or table[cls, CLASS_DUE] != instant:
            continue
        _bring(table, words, cls, instant)
        reached = three(words, table[cls, CLASS_WORDS], VIRTUAL)
        before = many
        root = table[cls, ROOT]
        while root >= 0 and not less(reached, three(state.targets, root, 0)):
            ended[many] = root
            many += 1
            root = merged(state.strands, state.targets, state.strands[root, 0], state.strands[root, 1])
        table[cls, ROOT] = root
        table[cls, SEEN_ROOT] = NONE
        left = many - before
        table[cls, MEMBERS] -= left
        row[THERE] -= left
        row[DEPTH] -= left * table[cls, OWN_DEPTH]
        put_three(
            state.words, row[WORDS_AT], DRAWN,
            minus_product(three(state.words, row[WORDS_AT], DRAWN), three(words, table[cls, CLASS_WORDS], DRAWS), wide(left)),
        )  # fmt: skip
    for place in range(1, many):
        strand, to = ended[place], place
        while to > 0 and state.strands[ended[to - 1], JOINED] > state.strands[strand, JOINED]:
            ended[to] = ended[to - 1]
            to -= 1
        ended[to] = strand
    if not _settle(state, station, instant):
        return -1
    return many


@bare
def _swell(state, station):
    """Bring the classes of a crowd to its present size."""
    row, table, words = state.stations[station], state.stations, state.words
    drawn = NIL
    for cls in range(row[FIRST_CLASS], row[LAST_CLASS]):
        if table[cls, MEMBERS] == 0:
            continue
        if table[cls, CROWD] >= 0:
            at = table[cls, CROWD] + row[DEPTH]
            put_two(words, table[cls, CLASS_WORDS], ALONE, two(words, at, 0))
            put_two(words, table[cls, CLASS_WORDS], WEIGHT, two(words, at, 2))
            put_three(words, table[cls, CLASS_WORDS], DRAWS, plus_product(NIL, two(words, at, 0), two(words, at, 2)))
        drawn = plus_product(drawn, three(words, table[cls, CLASS_WORDS], DRAWS), wide(table[cls, MEMBERS]))
    put_three(state.words, row[WORDS_AT], DRAWN, drawn)


@bare
def _rises(state, place, cls):
    """List a class as one of `place` whose pace still rises, by its pace alone."""
    table, words, rising = state.stations, state.words, state.lists[RISING]
    alone = two(words, table[cls, CLASS_WORDS], ALONE)
    while place > 0 and less(alone, two(words, table[rising[place - 1], CLASS_WORDS], ALONE)):
        rising[place] = rising[place - 1]
        place -= 1
    rising[place] = cls


@bare
def _stops(state, station, cls, pace, instant):
    """A class rises no further: what it draws is taken off its capacities. False if an end is beyond an int64."""
    row, words = state.stations[station], state.words
    members = wide(state.stations[cls, MEMBERS])
    for at in range(row[SERVERS]):
        drawn = plus_product(NIL, two(words, state.stations[cls, SHARES] + at, 0), members)
        tied = row[FREE] + at
        put_three(words, tied, LOAD, minus_product(three(words, tied, LOAD), drawn, UNIT))
        put_three(words, tied, LEFT, minus_product(three(words, tied, LEFT), drawn, pace))
    return _turn(state, station, cls, pace, instant)


@bare
def _fill(state, station, instant):
    """Paces of the classes of tied capacities, as in `hwsim.engine.fair.fill`, and ends; False if one is beyond an int64."""
    row, table, words, listed = state.stations[station], state.stations, state.words, state.lists[RISING]
    first, last = row[FREE], row[FREE] + row[SERVERS]
    for tied in range(first, last):
        put_three(words, tied, LEFT, (ZERO, ZERO, WHOLE))
        put_three(words, tied, LOAD, NIL)
    rising = 0
    for cls in range(row[FIRST_CLASS], row[LAST_CLASS]):
        if table[cls, MEMBERS] > 0:
            for tied in range(first, last):
                weight = two(words, table[cls, SHARES] + tied - first, 0)
                put_three(words, tied, LOAD, plus_product(three(words, tied, LOAD), weight, wide(table[cls, MEMBERS])))
            _rises(state, rising, cls)
            rising += 1
    while rising > 0:
        level = (MOST, MOST, ZERO)
        for tied in range(first, last):
            load = three(words, tied, LOAD)
            if not is_zero(load):
                filled_at = divide(three(words, tied, LEFT), load)
                if less(filled_at, level):
                    level = filled_at
        alone = two(words, table[listed[0], CLASS_WORDS], ALONE)
        if not less(level, alone):
            cls = listed[0]
            rising -= 1
            for place in range(rising):
                listed[place] = listed[place + 1]
            if not _stops(state, station, cls, alone, instant):
                return False
            continue
        for tied in range(first, last):
            load = three(words, tied, LOAD)
            is_full = not is_zero(load) and not less(level, divide(three(words, tied, LEFT), load))
            words[tied, IS_FULL] = ONE if is_full else ZERO
        kept = 0
        for place in range(rising):
            cls = listed[place]
            held = False
            for tied in range(first, last):
                held |= words[tied, IS_FULL] == ONE and not is_zero(two(words, table[cls, SHARES] + tied - first, 0))
            if not held:
                listed[kept] = cls
                kept += 1
            elif not _stops(state, station, cls, level, instant):
                return False
        rising = kept
    return True


@bare
def _settle(state, station, instant):
    """Paces and ends, after members have come or gone; False if an end is beyond an int64."""
    row, table, words = state.stations[station], state.stations, state.words
    row[DUE] = LARGEST
    if row[KIND] == TIED:
        return _fill(state, station, instant)
    if row[CROWDED] > 0:
        _swell(state, station)
    full = (ZERO, ZERO, WHOLE)
    drawn = three(state.words, row[WORDS_AT], DRAWN)
    begin, end = row[FIRST_CLASS], row[LAST_CLASS]
    if not less(full, drawn):
        put_three(state.words, row[WORDS_AT], USED, drawn)
        for cls in range(begin, end):
            if table[cls, MEMBERS] > 0 and not _turn(state, station, cls, two(words, table[cls, CLASS_WORDS], ALONE), instant):
                return False
        return True
    put_three(state.words, row[WORDS_AT], USED, full)
    left, load, rising = full, NIL, 0
    for cls in range(begin, end):
        if table[cls, MEMBERS] == 0:
            continue
        load = plus_product(load, two(words, table[cls, CLASS_WORDS], WEIGHT), wide(table[cls, MEMBERS]))
        _rises(state, rising, cls)
        rising += 1
    level = divide(left, load)
    for place in range(rising):
        cls = state.lists[RISING, place]
        alone = two(words, table[cls, CLASS_WORDS], ALONE)
        pace = level
        if not less(level, alone):
            pace = alone
            many = plus_product(NIL, two(words, table[cls, CLASS_WORDS], WEIGHT), wide(table[cls, MEMBERS]))
            left = minus_product(left, pace, many)
            load = minus_product(load, many, UNIT)
            if not is_zero(load):
                level = divide(left, load)
        if end - begin == 1 and row[CROWDED] == 0:  # what is rounded off is not used
            many = plus_product(NIL, two(words, table[cls, CLASS_WORDS], WEIGHT), wide(table[cls, MEMBERS]))
            put_three(words, row[WORDS_AT], USED, plus_product(NIL, pace, many))
        if not _turn(state, station, cls, pace, instant):
            return False
    return True


@bare
def _turn(state, station, cls, pace, instant):
    """Another pace of a class, and when its first member then ends."""
    table, words = state.stations, state.words
    if table[cls, SEEN_ROOT] == table[cls, ROOT] and is_same(pace, two(words, table[cls, CLASS_WORDS], PACE)):
        if table[cls, CLASS_DUE] < state.stations[station, DUE]:
            state.stations[station, DUE] = table[cls, CLASS_DUE]
        return True
    table[cls, SEEN_ROOT] = table[cls, ROOT]
    _bring(table, words, cls, instant)
    put_two(words, table[cls, CLASS_WORDS], PACE, pace)
    if is_zero(pace):
        table[cls, CLASS_DUE] = LARGEST
        return True
    if not less(three(words, table[cls, CLASS_WORDS], VIRTUAL), three(state.targets, table[cls, ROOT], 0)):
        table[cls, CLASS_DUE] = instant  # it has received its all within this femtosecond
        state.stations[station, DUE] = instant
        return True
    left = minus_product(three(state.targets, table[cls, ROOT], 0), three(words, table[cls, CLASS_WORDS], VIRTUAL), UNIT)
    time = divide(left, pace)
    if time[1] != ZERO or time[0] >= np.uint64(LARGEST - instant):
        return False
    due = instant + np.int64(time[0])
    if less(plus_product(NIL, pace, time), left):
        due += 1
    table[cls, CLASS_DUE] = due
    if due < state.stations[station, DUE]:
        state.stations[station, DUE] = due
    return True
