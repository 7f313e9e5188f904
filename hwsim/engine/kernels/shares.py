"""Mending the levels where little changes: the last solution's stops are tried again, and those that contradict are moved.

Every capacity keeps what the classes leave that stop below its level, and what the others draw. While no class stops
elsewhere, one pass over the capacities that differ, from the lowest level up, gives all new levels. Then the classes of these
are looked at: one that stops at a level that is not its lowest is moved, and the pass begins again from what that changes.

A solution is accepted where each class stops at its lowest level and every level at which it does not is higher by more than
roundings could explain (`margins`): there is only one such, and filling from zero finds it. Everything else (levels nearly equal,
capacities that were not short before, many changes at once) is refused, and `paces` mends.
"""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.flows import (
    ALONE_BELOW,
    ASKED_ONES,
    BEFORE,
    BELOW,
    BINDING,
    CHECKED,
    CHECKS,
    FILLED,
    FIRST_PAIR,
    FIRST_USER,
    HOLDER,
    KIND_OF_USER,
    LAST_PAIR,
    LEAST,
    LEFT,
    LOAD,
    MANY,
    MEMBERS,
    MOVED_ONES,
    MOVES,
    OTHER,
    OTHER_WEIGHT,
    PAIR_CAPACITY,
    QUEUED,
    RISES,
    ROUND,
    SEEN,
    SEVERAL,
    STAMPED,
    TICK,
    TIES,
    TOUCHED_CLASSES,
    TOUCHES,
    USER_CLASS,
    USER_PLACE,
    USERS,
    WAITING,
)
from hwsim.engine.kernels.queue import NUMBER, drop_first
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
    stamp,
    taken_by,
    tie,
    wait,
)
from hwsim.engine.kernels.words import (
    NIL,
    UNIT,
    bare,
    divide,
    is_same,
    is_zero,
    less,
    minus_product,
    plus_product,
    put_two,
    three,
    two,
    wide,
)

FEW = 48  # classes touched at one instant that are tried
ROUNDS = 12
FINE, MOVE, REFUSED = range(3)


@bare
def _spread(flows, which, change):
    """Take a change of level off what is left where the classes that it holds back stop below."""
    users = flows.users
    begin = flows.capacities[which, FIRST_USER]
    for place in range(begin, begin + flows.capacities[which, USERS]):
        kind = users[place, KIND_OF_USER]
        opposite = users[place, OTHER]
        if kind == RISES and opposite >= 0:
            weight = two(flows.user_words, place, OTHER_WEIGHT)
            if users[place, MANY] > 1:
                weight = plus_product(NIL, weight, wide(users[place, MANY]))
            less_left(flows, opposite, change, weight)
            wait(flows, opposite)
        elif kind in (RISES, TIES):
            number = users[place, USER_CLASS]
            if flows.classes[number, HOLDER] != which:
                continue
            for pair in range(flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]):
                crossed, row = flows.pairs[pair, PAIR_CAPACITY], flows.pairs[pair, USER_PLACE]
                if users[row, KIND_OF_USER] == BELOW:
                    less_left(flows, crossed, change, taken_by(flows, row, users[row, MANY]))
                    wait(flows, crossed)


@bare
def _check_later(flows, which):
    if flows.capacities[which, SEEN] != -flows.counts[ROUND]:
        flows.capacities[which, SEEN] = -flows.counts[ROUND]
        flows.lists[CHECKED, flows.counts[CHECKS]] = which
        flows.counts[CHECKS] += 1


@bare
def _pass(flows, instant, budget):
    """Find the levels of all that wait; what is left of the budget of capacities, negative if that is refused."""
    capacities, counts = flows.capacities, flows.counts
    while counts[QUEUED] > 0:
        which = np.int64(flows.queue[0, 2] & NUMBER)
        drop_first(flows.queue, counts)
        capacities[which, WAITING] = 0
        budget -= 1
        if budget < 0:
            return -1
        level = _filled(flows, which)
        _check_later(flows, which)
        was = two(flows.levels, which, 0)
        if is_same(level, was):
            continue
        stamp(flows, which, instant)
        put_two(flows.levels, which, 0, level)
        capacities[which, FILLED] = not is_same(level, NOWHERE)
        _spread(flows, which, minus_product(level, was, UNIT))
        _move_users(flows, which, less(level, was))
    return budget


@bare
def _move_users(flows, which, fell):
    """Move the classes at once that a new level makes stop elsewhere: capacities with higher levels have yet to come."""
    users = flows.users
    level = two(flows.levels, which, 0)
    below_alone = less(level, two(flows.sums, which, LEAST))
    begin = flows.capacities[which, FIRST_USER]
    for place in range(begin, begin + flows.capacities[which, USERS]):
        kind, number = users[place, KIND_OF_USER], users[place, USER_CLASS]
        if kind in (BELOW, ALONE_BELOW):
            stops = not fell or not less(level, counted_pace(flows, number))
        else:
            stops = kind == RISES and (fell or (below_alone and _is_least(flows, place, level)))
        if not stops and _verdict(flows, number) == MOVE:
            _move(flows, number, counted_pace(flows, number))


@bare
def _is_least(flows, place, level):
    """Whether no other capacity of a user has a lower level."""
    opposite = flows.users[place, OTHER]
    if opposite >= 0:
        return not less(two(flows.levels, opposite, 0), level)
    if opposite == SEVERAL:
        number = flows.users[place, USER_CLASS]
        for pair in range(flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]):
            if less(two(flows.levels, flows.pairs[pair, PAIR_CAPACITY], 0), level):
                return False
    return True


@bare
def _filled(flows, which):
    """The level at which a capacity is full with what its classes draw as they are counted; NOWHERE: it is not."""
    left, load = three(flows.sums, which, LEFT), two(flows.sums, which, LOAD)
    if left[2] >> np.uint64(63) == 0:
        if not is_zero(load):
            return divide(left, load)
        if not less(left, (flows.margins[2], flows.margins[3], flows.margins[4])):
            return NOWHERE
    users = flows.users
    begin, level, under = flows.capacities[which, FIRST_USER], NIL, NOWHERE
    while True:  # of those that stop below, the highest rise instead, until the others stop below
        highest = NIL
        for place in range(begin, begin + flows.capacities[which, USERS]):
            kind = users[place, KIND_OF_USER]
            if kind in (BELOW, ALONE_BELOW):
                pace = counted_pace(flows, users[place, USER_CLASS])
                if less(pace, under) and less(highest, pace):
                    highest = pace
        if is_zero(highest) or (not is_zero(load) and left[2] >> np.uint64(63) == 0 and not less(level, highest)):
            return level
        for place in range(begin, begin + flows.capacities[which, USERS]):
            kind = users[place, KIND_OF_USER]
            if kind in (BELOW, ALONE_BELOW) and is_same(counted_pace(flows, users[place, USER_CLASS]), highest):
                weight = taken_by(flows, place, users[place, MANY])
                left = plus_product(left, highest, weight)
                load = plus_product(load, weight, UNIT)
        under = highest
        level = divide(left, load) if left[2] >> np.uint64(63) == 0 else NIL


@bare
def _contradictions(flows):
    """List the classes that may stop elsewhere, of the capacities to be checked; how many.

    After a rise of a level the classes that rise to it are looked at, after a fall those that stop below.
    """
    users, counts = flows.users, flows.counts
    doubtful = 0
    for at in range(counts[CHECKS]):
        which = flows.lists[CHECKED, at]
        level = two(flows.levels, which, 0)
        below_alone = less(level, two(flows.sums, which, LEAST))
        rose = fell = False
        if flows.capacities[which, STAMPED] == counts[TICK]:
            before = two(flows.capacity_words, which, BEFORE)
            rose, fell = is_clear(flows, before, level), is_clear(flows, level, before)
        begin = flows.capacities[which, FIRST_USER]
        for place in range(begin, begin + flows.capacities[which, USERS]):
            kind, number = users[place, KIND_OF_USER], users[place, USER_CLASS]
            if kind == RISES:
                fine = fell or (below_alone and _clear_of_others(flows, place, which, level))
            else:
                fine = kind != TIES and (rose or is_clear(flows, counted_pace(flows, number), level))
            if not fine and is_new(flows, number):
                flows.lists[ASKED_ONES, doubtful] = number
                doubtful += 1
    return doubtful


@bare
def _clear_of_others(flows, place, which, level):
    """Whether the levels of all other capacities of a user are clearly higher."""
    opposite = flows.users[place, OTHER]
    if opposite >= 0:
        return is_clear(flows, level, two(flows.levels, opposite, 0))
    if opposite == SEVERAL:
        number = flows.users[place, USER_CLASS]
        for pair in range(flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]):
            crossed = flows.pairs[pair, PAIR_CAPACITY]
            if crossed != which and not is_clear(flows, level, two(flows.levels, crossed, 0)):
                return False
    return True


@bare
def _verdict(flows, number):
    """FINE: a class stops where the levels say; MOVE: elsewhere; REFUSED: levels are too near each other to say."""
    users = flows.users
    holder, level = lowest(flows, number)
    fine = True
    for pair in range(flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]):
        which, place = flows.pairs[pair, PAIR_CAPACITY], flows.pairs[pair, USER_PLACE]
        if not flows.capacities[which, BINDING]:
            continue
        kind = users[place, KIND_OF_USER]
        at = two(flows.levels, which, 0)
        if holder >= 0 and is_same(at, level):
            fine = fine and kind in (RISES, TIES)
            continue
        if not is_clear(flows, level, at):
            return REFUSED
        if kind != (BELOW if holder >= 0 else ALONE_BELOW):
            fine = False
    return FINE if fine else MOVE


@bare
def _move(flows, number, before):
    """Count a class where the levels say that it stops; `before`: the pace at which it is counted."""
    users, classes = flows.users, flows.classes
    holder, level = lowest(flows, number)
    rising = 0
    for pair in range(classes[number, FIRST_PAIR], classes[number, LAST_PAIR]):
        which, place = flows.pairs[pair, PAIR_CAPACITY], flows.pairs[pair, USER_PLACE]
        if not flows.capacities[which, BINDING]:
            continue
        weight = taken_by(flows, place, users[place, MANY])
        rose = users[place, KIND_OF_USER] in (RISES, TIES)
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
        users[place, KIND_OF_USER] = RISES if rises else (BELOW if holder >= 0 else ALONE_BELOW)
        rising += rises
    if rising > 1:
        tie(flows, number)
    classes[number, HOLDER] = holder
    note_move(flows, number)


@bare
def release(flows, which, instant):
    """A capacity that is no longer short holds no class back."""
    stamp(flows, which, instant)
    was = two(flows.levels, which, 0)
    put_two(flows.levels, which, 0, NOWHERE)
    flows.capacities[which, FILLED] = 0
    begin = flows.capacities[which, FIRST_USER]
    for place in range(begin, begin + flows.capacities[which, USERS]):
        number = flows.users[place, USER_CLASS]
        if flows.classes[number, HOLDER] == which:
            _move(flows, number, was)


@bare
def attempt(flows, instant):
    """Whether the levels could be found this way; the touched classes are counted in the sums, and what they move is noted."""
    counts = flows.counts
    for at in range(counts[TOUCHES]):
        number = flows.lists[TOUCHED_CLASSES, at]
        if flows.classes[number, MEMBERS] > 0:
            note_move(flows, number)
    budget = 8 * flows.levels.shape[0]
    for _ in range(ROUNDS):
        budget = _pass(flows, instant, budget)
        if budget < 0:
            return False
        doubtful = _contradictions(flows)
        for at in range(counts[MOVES]):  # what was moved, against levels that have not changed since
            number = flows.lists[MOVED_ONES, at]
            if is_new(flows, number):
                flows.lists[ASKED_ONES, doubtful] = number
                doubtful += 1
        counts[CHECKS] = 0
        counts[ROUND] += 1
        moved = 0
        for at in range(doubtful):
            number = flows.lists[ASKED_ONES, at]
            verdict = _verdict(flows, number)
            if verdict == REFUSED:
                return False
            if verdict == MOVE:
                _move(flows, number, counted_pace(flows, number))
                moved += 1
        if moved == 0:
            return True
    return False
