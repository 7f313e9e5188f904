"""Mending the levels where little changes: the last solution's stops are tried again, and those that contradict are moved.

Every capacity keeps what the classes leave that stop below its level, and what the others draw. While no class stops
elsewhere, one pass over the capacities that differ, from the lowest level up, gives all new levels.

When a level has risen, the classes that rise to it are compared with their other levels; when it has fallen, the classes that
stop below it. So each class is compared after the last change of any of its levels. A class that stops at a level that is
not its lowest is moved.

A solution is accepted if each class stops at its lowest level and no capacity of it fills earlier than its level says
(`_fills_too`). Filling from zero finds that solution: by induction from the lowest level up. Levels that are clearly higher
(`margins`) need no such question. If a few rounds do not settle all classes, the attempt is refused, and `paces` mends.
"""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels import columns as col
from hwsim.engine.kernels.flows import look_across, turn
from hwsim.engine.kernels.queue import drop_least
from hwsim.engine.kernels.sums import (
    NOWHERE,
    counted_pace,
    is_clear,
    is_new,
    less_left,
    less_load,
    lowest,
    more_left,
    more_load,
    note_move,
    set_level,
    stamp,
    taken_by,
    tie,
    wait,
)
from hwsim.engine.kernels.words import (
    NIL,
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
    rounded,
    three,
    two,
)

FEW = 48  # classes touched at one instant that are tried
ROUNDS = 12
SLACK = 2.0**-48  # of a rounded level, what roundings make of it at most


@bare
def _spread(flows, which, change):
    """Take a change of level off what is left where the classes that it holds back stop below."""
    users, others, sums = flows.users, flows.others, flows.sums
    tick = flows.counts[col.TICK]
    begin = flows.capacities[which, col.FIRST_USER]
    weight_number, product = np.int64(-1), NIL
    for place in range(begin, begin + flows.capacities[which, col.RISERS]):
        opposite = others[place, col.OTHER]
        if opposite >= 0:
            if others[place, col.OTHER_WEIGHT] != weight_number:
                weight_number = np.int64(others[place, col.OTHER_WEIGHT])
                product = plus_product(NIL, change, two(flows.weights, weight_number, 0))
            put_three(sums, opposite, col.LEFT, minus_product(three(sums, opposite, col.LEFT), product, UNIT))
            if flows.capacities[opposite, col.WAITING] != tick:
                wait(flows, opposite)
        elif opposite != col.ONLY:
            number = users[place, col.USER_CLASS]
            if flows.classes[number, col.HOLDER] != which:
                continue
            for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
                crossed, row = flows.pairs[pair, col.PAIR_CAPACITY], flows.pairs[pair, col.USER_PLACE]
                if users[row, col.KIND_OF_USER] == col.BELOW:
                    less_left(flows, crossed, change, taken_by(flows, row, users[row, col.MANY]))
                    wait(flows, crossed)


@bare
def _pass(flows, instant, budget):
    """Find the levels of all that wait; what is left of the budget of capacities, negative if that is refused."""
    capacities, counts = flows.capacities, flows.counts
    while counts[col.WAITS] > 0:
        which = np.int64(flows.waiting_ones[0])
        drop_least(flows.waiting_tops, flows.waiting_ones, counts[col.WAITS])
        counts[col.WAITS] -= 1
        capacities[which, col.WAITING] = 0
        budget -= 1
        if budget < 0:
            return -1
        level, was = _filled(flows, which), two(flows.levels, which, 0)
        if not is_same(level, was):
            stamp(flows, which, instant)
            set_level(flows, which, level)
            capacities[which, col.FILLED] = not is_same(level, NOWHERE)
            _spread(flows, which, minus_product(level, was, UNIT))
        _look(flows, which, was, level)
    return budget


@bare
def _look(flows, which, was, level):
    """Look at the classes of a capacity that may stop elsewhere, or that its level is near; move what clearly does."""
    suspects = _suspects_above(flows, which, level, is_clear(flows, level, was))
    if _is_nearly_full(flows, which) if is_same(level, NOWHERE) else not is_clear(flows, was, level):
        suspects = _suspects_below(flows, which, level, suspects)
    for at in range(suspects):
        number = flows.lists[col.SUSPECTS, at]
        if _is_off(flows, number):
            _move(flows, number)
        elif is_new(flows, number):
            flows.lists[col.ASKED_ONES, flows.counts[col.DOUBTS]] = number
            flows.counts[col.DOUBTS] += 1


@bare
def _suspects_above(flows, which, level, fell):
    """List the classes that rise at a capacity unless their other levels are clearly higher, or it fell below them; how many."""
    users, others, tops = flows.users, flows.others, flows.tops
    limit = rounded(plus_product(level, (flows.margins[0], flows.margins[1], ZERO), UNIT)) * (1.0 + SLACK)
    below_alone = less(level, two(flows.sums, which, col.LEAST))
    begin = flows.capacities[which, col.FIRST_USER]
    suspects = 0
    for place in range(begin, begin + flows.capacities[which, col.RISERS]):
        opposite = others[place, col.OTHER]
        if fell:
            if opposite != col.TIED:
                continue
        elif below_alone:
            if opposite == col.ONLY or (opposite >= 0 and tops[opposite] > limit):
                continue
            number = users[place, col.USER_CLASS]
            if opposite == col.SEVERAL:
                near = False
                for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
                    crossed = flows.pairs[pair, col.PAIR_CAPACITY]
                    near = near or (crossed != which and tops[crossed] <= limit)
                if not near:
                    continue
        flows.lists[col.SUSPECTS, suspects] = users[place, col.USER_CLASS]
        suspects += 1
    return suspects


@bare
def _suspects_below(flows, which, level, suspects):
    """List the classes that stop below the level of a capacity, unless that is clearly higher; how many are listed then."""
    users, others, tops = flows.users, flows.others, flows.tops
    margin = (flows.margins[0], flows.margins[1], ZERO)
    limit = 0.0  # at NOWHERE: all are near that are held back
    if less(margin, level) and not is_same(level, NOWHERE):
        limit = rounded(minus_product(level, margin, UNIT)) * (1.0 - SLACK)
    begin = flows.capacities[which, col.FIRST_USER]
    for place in range(begin + flows.capacities[which, col.RISERS], begin + flows.capacities[which, col.USERS]):
        opposite = others[place, col.OTHER]
        number = users[place, col.USER_CLASS]
        if tops[opposite] < limit if opposite >= 0 else not less(level, two(flows.class_words, number, col.ALONE)):
            continue
        flows.lists[col.SUSPECTS, suspects] = number
        suspects += 1
    return suspects


@bare
def _is_nearly_full(flows, which):
    """Whether so little is left of a capacity that is not full that it might be, but for roundings."""
    return less(three(flows.sums, which, col.LEFT), (flows.margins[2], flows.margins[3], flows.margins[4]))


@bare
def _highest(flows, which):
    """The highest pace of the classes that others hold back; 0: there are none."""
    users = flows.users
    begin = flows.capacities[which, col.FIRST_USER]
    highest = NIL
    for place in range(begin + flows.capacities[which, col.RISERS], begin + flows.capacities[which, col.USERS]):
        pace = counted_pace(flows, users[place, col.USER_CLASS])
        if users[place, col.KIND_OF_USER] == col.BELOW and less(highest, pace):
            highest = pace
    return highest


@bare
def _filled(flows, which):
    """The level at which a capacity is full with what its classes draw as they are counted; NOWHERE: it is not."""
    left, load = three(flows.sums, which, col.LEFT), two(flows.sums, which, col.LOAD)
    if left[2] >> np.uint64(63) == 0:
        if not is_zero(load):
            return divide(left, load)
        if not _is_nearly_full(flows, which):
            return NOWHERE
        highest = _highest(flows, which)
        return highest if not is_zero(highest) and _fills_too(flows, which, highest) else NOWHERE
    users = flows.users
    begin, level, under = flows.capacities[which, col.FIRST_USER], NIL, NOWHERE
    first, end = begin + flows.capacities[which, col.RISERS], begin + flows.capacities[which, col.USERS]
    while True:  # of those that stop below, the highest rise instead, until the others stop below
        highest = NIL
        for place in range(first, end):
            pace = counted_pace(flows, users[place, col.USER_CLASS])
            if less(pace, under) and less(highest, pace):
                highest = pace
        if is_zero(highest) or (not is_zero(load) and left[2] >> np.uint64(63) == 0 and not less(level, highest)):
            return level
        for place in range(first, end):
            if is_same(counted_pace(flows, users[place, col.USER_CLASS]), highest):
                weight = taken_by(flows, place, users[place, col.MANY])
                left = plus_product(left, highest, weight)
                load = plus_product(load, weight, UNIT)
        under = highest
        level = divide(left, load) if left[2] >> np.uint64(63) == 0 else NIL


@bare
def _is_off(flows, number):
    """Whether a class is not counted where the levels say that it stops; one that rises at several is not asked yet."""
    users = flows.users
    holder, level = lowest(flows, number)
    off = False
    for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
        which, kind = flows.pairs[pair, col.PAIR_CAPACITY], users[flows.pairs[pair, col.USER_PLACE], col.KIND_OF_USER]
        if not flows.capacities[which, col.BINDING]:
            continue
        if kind == col.TIES:
            return False
        if holder >= 0 and is_same(two(flows.levels, which, 0), level):
            off = off or kind != col.RISES
        else:
            off = off or kind != (col.BELOW if holder >= 0 else col.ALONE_BELOW)
    return off


@bare
def _is_settled(flows, number):
    """Whether a class stops where the levels say, in a solution that filling finds; if not, it is moved."""
    users = flows.users
    holder, level = lowest(flows, number)
    for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
        which, kind = flows.pairs[pair, col.PAIR_CAPACITY], users[flows.pairs[pair, col.USER_PLACE], col.KIND_OF_USER]
        if not flows.capacities[which, col.BINDING]:
            continue
        if holder >= 0 and is_same(two(flows.levels, which, 0), level):
            if kind not in (col.RISES, col.TIES):
                _move(flows, number)
                return False
        elif kind != (col.BELOW if holder >= 0 else col.ALONE_BELOW):
            _move(flows, number)
            return False
    if holder < 0:
        return True
    if flows.classes[number, col.HOLDER] != holder:  # of several at one level the first by number
        flows.classes[number, col.HOLDER] = holder
        look_across(flows, number)
        note_move(flows, number)
    for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
        which, place = flows.pairs[pair, col.PAIR_CAPACITY], flows.pairs[pair, col.USER_PLACE]
        at = two(flows.levels, which, 0)
        if not flows.capacities[which, col.BINDING] or is_same(at, level):
            continue
        if not (_is_nearly_full(flows, which) if is_same(at, NOWHERE) else not is_clear(flows, level, at)):
            continue
        if _fills_too(flows, which, level):
            weight = taken_by(flows, place, users[place, col.MANY])
            more_left(flows, which, level, weight)
            more_load(flows, which, weight)
            turn(flows, pair, col.RISES)
            tie(flows, number)
            look_across(flows, number)
            wait(flows, which)
            note_move(flows, number)
            return False
    return True


@bare
def _fills_too(flows, which, level):
    """Whether a capacity is full at this level already, if all classes rise there that do not stop below it."""
    users = flows.users
    following = plus_product(level, UNIT, UNIT)
    begin = flows.capacities[which, col.FIRST_USER]
    drawn = three(flows.capacity_words, which, col.HELD)
    for place in range(begin, begin + flows.capacities[which, col.USERS]):
        kind, number = users[place, col.KIND_OF_USER], users[place, col.USER_CLASS]
        pace = following
        if kind in (col.BELOW, col.ALONE_BELOW):
            pace = counted_pace(flows, number)
            if less(level, pace) or (kind == col.BELOW and is_same(level, pace)):
                pace = following
        drawn = plus_product(drawn, pace, taken_by(flows, place, users[place, col.MANY]))
    return less((flows.full[0], flows.full[1], flows.full[2]), drawn)


@bare
def _move(flows, number):
    """Count a class where the levels say that it stops."""
    _recount(flows, number, counted_pace(flows, number))


@bare
def _recount(flows, number, before):
    """Count a class where the levels say that it stops; `before`: the pace at which it is counted."""
    users, classes = flows.users, flows.classes
    holder, level = lowest(flows, number)
    classes[number, col.HOLDER] = holder
    below = col.BELOW if holder >= 0 else col.ALONE_BELOW
    rising = 0
    for pair in range(classes[number, col.FIRST_PAIR], classes[number, col.LAST_PAIR]):
        which, place = flows.pairs[pair, col.PAIR_CAPACITY], flows.pairs[pair, col.USER_PLACE]
        if not flows.capacities[which, col.BINDING]:
            turn(flows, pair, below)
            continue
        weight = taken_by(flows, place, users[place, col.MANY])
        rose = users[place, col.KIND_OF_USER] in (col.RISES, col.TIES)
        rises = holder >= 0 and is_same(two(flows.levels, which, 0), level)
        if rises and not rose:
            more_left(flows, which, before, weight)
            more_load(flows, which, weight)
        elif rose and not rises:
            less_load(flows, which, weight)
            less_left(flows, which, level, weight)
        elif not rises:
            more_left(flows, which, before, weight)
            less_left(flows, which, level, weight)
        wait(flows, which)
        turn(flows, pair, col.RISES if rises else below)
        rising += rises
    if rising > 1:
        tie(flows, number)
    look_across(flows, number)
    note_move(flows, number)


@bare
def release(flows, slack, instant):
    """The listed capacities are no longer short and hold no class back; `slack`: how many STOPPING lists."""
    for at in range(slack):
        which = flows.lists[col.STOPPING, at]
        stamp(flows, which, instant)
        set_level(flows, which, NOWHERE)
        flows.capacities[which, col.FILLED] = 0
    for at in range(slack):
        which = flows.lists[col.STOPPING, at]
        was = two(flows.capacity_words, which, col.BEFORE)
        while flows.capacities[which, col.RISERS] > 0:
            place = flows.capacities[which, col.FIRST_USER] + flows.capacities[which, col.RISERS] - 1
            _recount(flows, flows.users[place, col.USER_CLASS], was)


@bare
def attempt(flows, instant):
    """Whether the levels could be found this way; the touched classes are counted in the sums, and what they move is noted."""
    counts = flows.counts
    for at in range(counts[col.TOUCHES]):
        number = flows.lists[col.TOUCHED_CLASSES, at]
        if flows.classes[number, col.MEMBERS] > 0:
            note_move(flows, number)
    budget = 8 * flows.levels.shape[0]
    counts[col.DOUBTS] = 0
    for _ in range(ROUNDS):
        budget = _pass(flows, instant, budget)
        if budget < 0:
            return False
        for at in range(counts[col.MOVES]):  # what was moved, against levels that have not changed since
            number = flows.lists[col.MOVED_ONES, at]
            if is_new(flows, number):
                flows.lists[col.ASKED_ONES, counts[col.DOUBTS]] = number
                counts[col.DOUBTS] += 1
        doubts = counts[col.DOUBTS]
        counts[col.DOUBTS] = 0
        counts[col.ROUND] += 1
        settled = True
        for at in range(doubts):
            settled = _is_settled(flows, flows.lists[col.ASKED_ONES, at]) and settled
        if settled:
            return True
    return False
