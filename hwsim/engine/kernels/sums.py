"""Sums of the capacities that are short: what the classes leave that stop below its level, and what the others draw at pace 1."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels import columns as col
from hwsim.engine.kernels.flows import bring, drop, enter, list_once, look_across, turn
from hwsim.engine.kernels.queue import push
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
    rounded,
    three,
    two,
    wide,
)

NOWHERE = (MOST, MOST, np.uint64(0))  # the level of a capacity that is not full


@bare
def set_level(flows, which, level):
    """A capacity is full at this level; NOWHERE: it is not."""
    put_two(flows.levels, which, 0, level)
    flows.tops[which] = rounded(level)


@bare
def stamp(flows, which, instant):
    """Keep the level before this instant, and bring the group there."""
    if flows.capacities[which, col.STAMPED] == flows.counts[col.TICK]:
        return
    flows.capacities[which, col.STAMPED] = flows.counts[col.TICK]
    bring(flows, which, instant)
    put_two(flows.capacity_words, which, col.BEFORE, two(flows.levels, which, 0))
    flows.lists[col.STAMPED_ONES, flows.counts[col.STAMPS]] = which
    flows.counts[col.STAMPS] += 1


@bare
def wait(flows, which):
    """Its sums differ: its level is to be found again."""
    capacity, counts = flows.capacities[which], flows.counts
    if not capacity[col.BINDING] or capacity[col.WAITING] == counts[col.TICK]:
        return
    capacity[col.WAITING] = counts[col.TICK]
    list_once(flows, flows.capacities, which, col.SPOILT, col.SPOILT_ONES, col.SPOILS)
    push(flows.waiting_tops, flows.waiting_ones, counts[col.WAITS], flows.tops[which], which)
    counts[col.WAITS] += 1


@bare
def taken_by(flows, place, many):
    """Weight of a number of members of a user."""
    weight = two(flows.weights, flows.users[place, col.OWN_WEIGHT], 0)
    return plus_product(NIL, weight, wide(many)) if many > 1 else weight


@bare
def less_left(flows, which, pace, weight):
    """Take a pace times a weight off what is left."""
    put_three(flows.sums, which, col.LEFT, minus_product(three(flows.sums, which, col.LEFT), pace, weight))


@bare
def more_left(flows, which, pace, weight):
    """Add a pace times a weight to what is left."""
    put_three(flows.sums, which, col.LEFT, plus_product(three(flows.sums, which, col.LEFT), pace, weight))


@bare
def less_load(flows, which, weight):
    """Take a weight off the load."""
    put_two(flows.sums, which, col.LOAD, minus_product(two(flows.sums, which, col.LOAD), weight, UNIT))


@bare
def more_load(flows, which, weight):
    """Add a weight to the load."""
    put_two(flows.sums, which, col.LOAD, plus_product(two(flows.sums, which, col.LOAD), weight, UNIT))


@bare
def counted_pace(flows, number):
    """The pace at which a class is counted where it stops below."""
    holder = flows.classes[number, col.HOLDER]
    return two(flows.levels, holder, 0) if holder >= 0 else two(flows.class_words, number, col.ALONE)


@bare
def lowest(flows, number):
    """(what holds a class back as the levels are, at which pace)."""
    holder, level = col.FREE, two(flows.class_words, number, col.ALONE)
    for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
        which = flows.pairs[pair, col.PAIR_CAPACITY]
        at = two(flows.levels, which, 0)
        if less(at, level) or (holder >= 0 and which < holder and is_same(at, level)):
            holder, level = which, at
    return holder, level


@bare
def is_new(flows, number):
    """Whether a class has not been asked for in this round."""
    if flows.classes[number, col.ASKED] == flows.counts[col.ROUND]:
        return False
    flows.classes[number, col.ASKED] = flows.counts[col.ROUND]
    return True


@bare
def is_clear(flows, low, high):
    """Whether a level is above a pace by more than the margin of roundings."""
    return less(plus_product(low, (flows.margins[0], flows.margins[1], np.uint64(0)), UNIT), high)


@bare
def tie(flows, number):
    """A class rises at several capacities."""
    for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
        place = flows.pairs[pair, col.USER_PLACE]
        if flows.users[place, col.KIND_OF_USER] == col.RISES:
            flows.users[place, col.KIND_OF_USER] = col.TIES  # among those that rise already


@bare
def note_move(flows, number):
    """List a class that may belong to another group from now on."""
    list_once(flows, flows.classes, number, col.MOVED, col.MOVED_ONES, col.MOVES)


@bare
def sort_user(flows, number):
    """Say of each capacity of a class, in an accepted solution, whether it rises there; and what holds it."""
    classes = flows.classes
    holder, level = lowest(flows, number)
    classes[number, col.HOLDER] = holder
    rising = 0
    for pair in range(classes[number, col.FIRST_PAIR], classes[number, col.LAST_PAIR]):
        which = flows.pairs[pair, col.PAIR_CAPACITY]
        kind = col.BELOW if holder >= 0 else col.ALONE_BELOW
        if holder >= 0 and flows.capacities[which, col.FILLED] and is_same(two(flows.levels, which, 0), level):
            kind = col.RISES
            rising += 1
        turn(flows, pair, kind)
        flows.users[flows.pairs[pair, col.USER_PLACE], col.MANY] = classes[number, col.MEMBERS]
    if rising > 1:
        tie(flows, number)
    look_across(flows, number)


@bare
def count_class(flows, number):
    """Count a class that is new, or whose members are more or fewer, in the sums of its capacities."""
    classes, users = flows.classes, flows.users
    members = classes[number, col.MEMBERS]
    first, last = flows.classes[number, col.FIRST_PAIR], classes[number, col.LAST_PAIR]
    if first == last:
        return
    if flows.pairs[first, col.USER_PLACE] < 0:
        if members == 0:
            return
        enter(flows, number)
        sort_user(flows, number)
        alone = two(flows.class_words, number, col.ALONE)
        for pair in range(first, last):
            which = flows.pairs[pair, col.PAIR_CAPACITY]
            users[flows.pairs[pair, col.USER_PLACE], col.MANY] = 0
            if less(alone, two(flows.sums, which, col.LEAST)):
                put_two(flows.sums, which, col.LEAST, alone)
    pace = counted_pace(flows, number)
    for pair in range(first, last):
        which, place = flows.pairs[pair, col.PAIR_CAPACITY], flows.pairs[pair, col.USER_PLACE]
        change = members - users[place, col.MANY]
        if change == 0:
            continue
        users[place, col.MANY] = members
        rises = users[place, col.KIND_OF_USER] in (col.RISES, col.TIES)
        weight = plus_product(NIL, two(flows.weights, users[place, col.OWN_WEIGHT], 0), wide(abs(change)))
        if rises and change > 0:
            more_load(flows, which, weight)
        elif rises:
            less_load(flows, which, weight)
        elif change > 0:
            less_left(flows, which, pace, weight)
        else:
            more_left(flows, which, pace, weight)
        wait(flows, which)
    if members == 0:
        drop(flows, number)
    else:
        look_across(flows, number)


@bare
def count_touched(flows):
    """Count the touched classes."""
    for at in range(flows.counts[col.TOUCHES]):
        count_class(flows, flows.lists[col.TOUCHED_CLASSES, at])


@bare
def sort_users(flows, which):
    """Say of all users of a capacity whether they rise there."""
    place = flows.capacities[which, col.FIRST_USER]
    end = place + flows.capacities[which, col.USERS]
    while place < end:
        number = flows.users[place, col.USER_CLASS]
        if is_new(flows, number):
            sort_user(flows, number)
        if flows.users[place, col.USER_CLASS] == number:  # else another has come here that was not looked at yet, or was
            place += 1


@bare
def sort_class(flows, number):
    """Say of a class where it rises."""
    if flows.classes[number, col.MEMBERS] > 0 and is_new(flows, number):
        sort_user(flows, number)


@bare
def add_up(flows, which):
    """The sums of a capacity in an accepted solution."""
    users = flows.users
    full, held = (flows.full[0], flows.full[1], flows.full[2]), three(flows.capacity_words, which, col.HELD)
    left = minus_product(full, held, UNIT) if less(held, full) else NIL
    load, least = NIL, NOWHERE
    begin = flows.capacities[which, col.FIRST_USER]
    for place in range(begin, begin + flows.capacities[which, col.USERS]):
        number = users[place, col.USER_CLASS]
        weight = taken_by(flows, place, users[place, col.MANY])
        alone = two(flows.class_words, number, col.ALONE)
        if less(alone, least):
            least = alone
        if users[place, col.KIND_OF_USER] in (col.RISES, col.TIES):
            load = plus_product(load, weight, UNIT)
        else:
            left = minus_product(left, counted_pace(flows, number), weight)
    put_three(flows.sums, which, col.LEFT, left)
    put_two(flows.sums, which, col.LOAD, load)
    put_two(flows.sums, which, col.LEAST, least)
