"""Sums of the capacities that are short: what the classes leave that stop below its level, and what the others draw at pace 1."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.flows import (
    ALONE,
    ALONE_BELOW,
    ASKED,
    BEFORE,
    BELOW,
    BINDING,
    FILLED,
    FIRST_PAIR,
    FIRST_USER,
    FREE,
    HELD,
    HOLDER,
    KIND_OF_USER,
    LAST_PAIR,
    LEAST,
    LEFT,
    LOAD,
    MANY,
    MEMBERS,
    MOVED,
    MOVED_ONES,
    MOVES,
    OWN_WEIGHT,
    PAIR_CAPACITY,
    RISES,
    ROUND,
    SPOILS,
    SPOILT,
    SPOILT_ONES,
    STAMPED,
    STAMPED_ONES,
    STAMPS,
    TICK,
    TIES,
    TOUCHED_CLASSES,
    TOUCHES,
    USER_CLASS,
    USER_PLACE,
    USERS,
    WAITING,
    bring,
    drop,
    enter,
)
from hwsim.engine.kernels.queue import expect
from hwsim.engine.kernels.words import (
    MOST,
    NIL,
    UNIT,
    bare,
    is_same,
    less,
    minus_product,
    plus_product,
    put_three,
    put_two,
    three,
    two,
    wide,
)

NOWHERE = (MOST, MOST, np.uint64(0))  # the level of a capacity that is not full


@bare
def stamp(flows, which, instant):
    """Keep the level before this instant, and bring the group there."""
    if flows.capacities[which, STAMPED] == flows.counts[TICK]:
        return
    flows.capacities[which, STAMPED] = flows.counts[TICK]
    bring(flows, which, instant)
    put_two(flows.capacity_words, which, BEFORE, two(flows.levels, which, 0))
    flows.lists[STAMPED_ONES, flows.counts[STAMPS]] = which
    flows.counts[STAMPS] += 1


@bare
def wait(flows, which):
    """Its sums differ: its level is to be found again."""
    capacity, counts = flows.capacities[which], flows.counts
    if not capacity[BINDING] or capacity[WAITING] == counts[TICK]:
        return
    capacity[WAITING] = counts[TICK]
    if capacity[SPOILT] != counts[TICK]:
        capacity[SPOILT] = counts[TICK]
        flows.lists[SPOILT_ONES, counts[SPOILS]] = which
        counts[SPOILS] += 1
    expect(flows.queue, counts, two(flows.levels, which, 0), np.uint64(which))


@bare
def taken_by(flows, place, many):
    """Weight of a number of members of a user."""
    weight = two(flows.user_words, place, OWN_WEIGHT)
    return plus_product(NIL, weight, wide(many)) if many > 1 else weight


@bare
def less_left(flows, which, pace, weight):
    """Take a pace times a weight off what is left."""
    put_three(flows.sums, which, LEFT, minus_product(three(flows.sums, which, LEFT), pace, weight))


@bare
def more_left(flows, which, pace, weight):
    """Add a pace times a weight to what is left."""
    put_three(flows.sums, which, LEFT, plus_product(three(flows.sums, which, LEFT), pace, weight))


@bare
def less_load(flows, which, weight):
    """Take a weight off the load."""
    put_two(flows.sums, which, LOAD, minus_product(two(flows.sums, which, LOAD), weight, UNIT))


@bare
def more_load(flows, which, weight):
    """Add a weight to the load."""
    put_two(flows.sums, which, LOAD, plus_product(two(flows.sums, which, LOAD), weight, UNIT))


@bare
def counted_pace(flows, number):
    """The pace at which a class is counted where it stops below."""
    holder = flows.classes[number, HOLDER]
    return two(flows.levels, holder, 0) if holder >= 0 else two(flows.class_words, number, ALONE)


@bare
def lowest(flows, number):
    """(what holds a class back as the levels are, at which pace)."""
    holder, level = FREE, two(flows.class_words, number, ALONE)
    for pair in range(flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]):
        which = flows.pairs[pair, PAIR_CAPACITY]
        at = two(flows.levels, which, 0)
        if less(at, level) or (holder >= 0 and which < holder and is_same(at, level)):
            holder, level = which, at
    return holder, level


@bare
def is_new(flows, number):
    """Whether a class has not been asked for in this round."""
    if flows.classes[number, ASKED] == flows.counts[ROUND]:
        return False
    flows.classes[number, ASKED] = flows.counts[ROUND]
    return True


@bare
def is_clear(flows, low, high):
    """Whether a level is above a pace by more than the margin."""
    return less(plus_product(low, (flows.margins[0], flows.margins[1], np.uint64(0)), UNIT), high)


@bare
def tie(flows, number):
    """A class rises at several capacities."""
    for pair in range(flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]):
        place = flows.pairs[pair, USER_PLACE]
        if flows.users[place, KIND_OF_USER] == RISES:
            flows.users[place, KIND_OF_USER] = TIES


@bare
def note_move(flows, number):
    """List a class that may belong to another group from now on."""
    if flows.classes[number, MOVED] != flows.counts[TICK]:
        flows.classes[number, MOVED] = flows.counts[TICK]
        flows.lists[MOVED_ONES, flows.counts[MOVES]] = number
        flows.counts[MOVES] += 1


@bare
def sort_user(flows, number):
    """Say of each capacity of a class, in an accepted solution, whether it rises there; and what holds it."""
    users, classes = flows.users, flows.classes
    holder, level = lowest(flows, number)
    classes[number, HOLDER] = holder
    rising = 0
    for pair in range(classes[number, FIRST_PAIR], classes[number, LAST_PAIR]):
        which, place = flows.pairs[pair, PAIR_CAPACITY], flows.pairs[pair, USER_PLACE]
        kind = BELOW if holder >= 0 else ALONE_BELOW
        if holder >= 0 and flows.capacities[which, FILLED] and is_same(two(flows.levels, which, 0), level):
            kind = RISES
            rising += 1
        users[place, KIND_OF_USER] = kind
        users[place, MANY] = classes[number, MEMBERS]
    if rising > 1:
        tie(flows, number)


@bare
def count_class(flows, number):
    """Count a class that is new, or whose members are more or fewer, in the sums of its capacities."""
    classes, users = flows.classes, flows.users
    members = classes[number, MEMBERS]
    first = flows.classes[number, FIRST_PAIR]
    if first == classes[number, LAST_PAIR]:
        return
    if flows.pairs[first, USER_PLACE] < 0:
        if members == 0:
            return
        enter(flows, number)
        sort_user(flows, number)
        alone = two(flows.class_words, number, ALONE)
        for pair in range(first, classes[number, LAST_PAIR]):
            which = flows.pairs[pair, PAIR_CAPACITY]
            users[flows.pairs[pair, USER_PLACE], MANY] = 0
            if less(alone, two(flows.sums, which, LEAST)):
                put_two(flows.sums, which, LEAST, alone)
    pace = counted_pace(flows, number)
    for pair in range(first, classes[number, LAST_PAIR]):
        which, place = flows.pairs[pair, PAIR_CAPACITY], flows.pairs[pair, USER_PLACE]
        before = users[place, MANY]
        if before == members:
            continue
        users[place, MANY] = members
        rises = users[place, KIND_OF_USER] in (RISES, TIES)
        if members > before:
            weight = plus_product(NIL, two(flows.user_words, place, OWN_WEIGHT), wide(members - before))
            if rises:
                more_load(flows, which, weight)
            else:
                less_left(flows, which, pace, weight)
        else:
            weight = plus_product(NIL, two(flows.user_words, place, OWN_WEIGHT), wide(before - members))
            if rises:
                less_load(flows, which, weight)
            else:
                more_left(flows, which, pace, weight)
        wait(flows, which)
    if members == 0:
        drop(flows, number)


@bare
def count_touched(flows):
    """Count the touched classes."""
    for at in range(flows.counts[TOUCHES]):
        count_class(flows, flows.lists[TOUCHED_CLASSES, at])


@bare
def sort_users(flows, which):
    """Say of all users of a capacity whether they rise there."""
    begin = flows.capacities[which, FIRST_USER]
    for place in range(begin, begin + flows.capacities[which, USERS]):
        number = flows.users[place, USER_CLASS]
        if is_new(flows, number):
            sort_user(flows, number)


@bare
def sort_class(flows, number):
    """Say of a class where it rises."""
    if flows.classes[number, MEMBERS] > 0 and is_new(flows, number):
        sort_user(flows, number)


@bare
def add_up(flows, which):
    """The sums of a capacity in an accepted solution."""
    users = flows.users
    full, held = (flows.full[0], flows.full[1], flows.full[2]), three(flows.capacity_words, which, HELD)
    left = minus_product(full, held, UNIT) if less(held, full) else NIL
    load, least = NIL, NOWHERE
    begin = flows.capacities[which, FIRST_USER]
    for place in range(begin, begin + flows.capacities[which, USERS]):
        number = users[place, USER_CLASS]
        weight = taken_by(flows, place, users[place, MANY])
        alone = two(flows.class_words, number, ALONE)
        if less(alone, least):
            least = alone
        if users[place, KIND_OF_USER] in (RISES, TIES):
            load = plus_product(load, weight, UNIT)
        else:
            left = minus_product(left, counted_pace(flows, number), weight)
    put_three(flows.sums, which, LEFT, left)
    put_two(flows.sums, which, LOAD, load)
    put_two(flows.sums, which, LEAST, least)
