"""Demands in flight: the columns of `hwsim.engine.fluid.Fluid`, and what joins and leaves.

Paces, weights and what is drawn are the numbers of `hwsim.engine.fair`. All classes that one capacity holds back run at its
level: they are a group, and service is counted by group. A class knows how much more or less than its group it has received.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwsim.engine.kernels import columns as col
from hwsim.engine.kernels.words import (
    NIL,
    NONE,
    UNIT,
    bare,
    is_zero,
    less,
    minus_product,
    plus_product,
    put_three,
    three,
    two,
    wide,
)


class Flows(NamedTuple):
    """Rows of whole numbers and rows of words for everything there is many of; `columns` says what theirs are.

    A pair is a class and a capacity from which it draws; a draw, a class and a capacity from which it draws or which it
    holds. Group n is what capacity n holds back; group capacities + n, class n while nothing does.
    """

    classes: np.ndarray
    class_words: np.ndarray
    capacities: np.ndarray
    capacity_words: np.ndarray
    levels: np.ndarray  # at which each capacity is full, in two; all ones: at none
    tops: np.ndarray  # the same, rounded
    sums: np.ndarray
    pairs: np.ndarray
    weights: np.ndarray  # by number, in two
    users: np.ndarray  # pairs by capacity: of each first those that rise there, then the other active ones
    others: np.ndarray  # of a user, what is looked at of it again and again
    draws: np.ndarray  # the capacity
    draw_words: np.ndarray
    groups: np.ndarray
    group_words: np.ndarray
    ops: np.ndarray
    op_words: np.ndarray  # the service of its class at which it ends, in three
    due_heap: np.ndarray  # groups by when their first member ends
    lists: np.ndarray  # rows that are short-lived lists
    queue: np.ndarray  # rows of level (two words) and what may happen there: kind << 40 | number
    waiting_tops: np.ndarray  # a heap of capacities whose levels are to be found again, the lowest first
    waiting_ones: np.ndarray
    counts: np.ndarray
    full: np.ndarray  # a whole capacity, in three words
    margins: np.ndarray  # of levels, in two words; of what is left, in three


@bare
def set_due(groups, heap, counts, number, time):
    """When the first member of a group ends; -1: not as things are."""
    place = groups[number, col.DUE_PLACE]
    groups[number, col.DUE] = time
    if time < 0:
        if place < 0:
            return
        counts[col.DUES] -= 1
        groups[number, col.DUE_PLACE] = NONE
        last = counts[col.DUES]
        if place == last:
            return
        number = heap[last]
        time = groups[number, col.DUE]
    elif place < 0:
        place = counts[col.DUES]
        counts[col.DUES] += 1
    while place > 0:
        above = (place - 1) >> 1
        if groups[heap[above], col.DUE] <= time:
            break
        heap[place] = heap[above]
        groups[heap[place], col.DUE_PLACE] = place
        place = above
    size = counts[col.DUES]
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and groups[heap[below + 1], col.DUE] < groups[heap[below], col.DUE]:
            below += 1
        if groups[heap[below], col.DUE] >= time:
            break
        heap[place] = heap[below]
        groups[heap[place], col.DUE_PLACE] = place
        place = below
    heap[place] = number
    groups[number, col.DUE_PLACE] = place


@bare
def merged(ops, op_words, first, second):
    """Two skew heaps of members as one (Sleator and Tarjan, Self-adjusting heaps, SIAM J. Comput. 15(1), 1986)."""
    if first < 0:
        return second
    if second < 0:
        return first
    if less(three(op_words, second, 0), three(op_words, first, 0)):
        first, second = second, first
    root = first
    while True:
        below = ops[first, col.RIGHT_CHILD]
        ops[first, col.RIGHT_CHILD] = ops[first, col.LEFT_CHILD]
        if below < 0:
            ops[first, col.LEFT_CHILD] = second
            return root
        if less(three(op_words, second, 0), three(op_words, below, 0)):
            below, second = second, below
        ops[first, col.LEFT_CHILD] = below
        first = below


@bare
def group_of(flows, number):
    """The group of an active class."""
    bound = flows.classes[number, col.BOUND]
    return bound if bound >= 0 else flows.levels.shape[0] + number


@bare
def level_of(flows, group):
    """The pace of its members."""
    if group < flows.levels.shape[0]:
        return two(flows.levels, group, 0)
    return two(flows.class_words, group - flows.levels.shape[0], col.ALONE)


@bare
def bring(flows, group, instant):
    """A group's service, up to now."""
    passed = instant - flows.groups[group, col.SINCE]
    if passed == 0:
        return
    flows.groups[group, col.SINCE] = instant
    if group < flows.levels.shape[0] and not flows.capacities[group, col.FILLED]:
        return
    put_three(
        flows.group_words,
        group,
        col.SERVICE,
        plus_product(three(flows.group_words, group, col.SERVICE), level_of(flows, group), wide(passed)),
    )


@bare
def service(flows, number, instant):
    """Service that one member of an active class has received since the class became active."""
    offset = three(flows.class_words, number, col.OFFSET)
    if flows.classes[number, col.BOUND] == col.NOBODY:
        return offset
    group = group_of(flows, number)
    bring(flows, group, instant)
    return plus_product(three(flows.group_words, group, col.SERVICE), offset, UNIT)


@bare
def key_of(flows, number):
    """The service of its group at which the first member of a class ends."""
    tag = three(flows.op_words, flows.classes[number, col.ROOT], 0)
    return minus_product(tag, three(flows.class_words, number, col.OFFSET), UNIT)


@bare
def comes_before(one, other):
    """Whether one key is lower: both may have wrapped, and are near each other."""
    return minus_product(one, other, UNIT)[2] >> np.uint64(63) != 0


@bare
def find_first(flows, group):
    """Find the class of a group that ends first."""
    classes, groups, users = flows.classes, flows.groups, flows.users
    capacities = flows.levels.shape[0]
    groups[group, col.FIRST] = NONE
    if group >= capacities:
        number = group - capacities
        if classes[number, col.MEMBERS] > 0 and classes[number, col.BOUND] == col.FREE:
            groups[group, col.FIRST] = number
            put_three(flows.group_words, group, col.KEY, key_of(flows, number))
        return
    best = NIL
    begin = flows.capacities[group, col.FIRST_USER]
    many = flows.capacities[group, col.RISERS if flows.counts[col.TRIES] else col.USERS]
    for place in range(begin, begin + many):
        number = users[place, col.USER_CLASS]
        if classes[number, col.BOUND] != group or classes[number, col.MEMBERS] == 0:
            continue
        key = key_of(flows, number)
        if groups[group, col.FIRST] < 0 or comes_before(key, best):
            groups[group, col.FIRST] = number
            best = key
    put_three(flows.group_words, group, col.KEY, best)


@bare
def count(flows, number, change):
    """So many members more, or fewer."""
    classes, counts = flows.classes, flows.counts
    if not classes[number, col.TOUCHED]:
        classes[number, col.TOUCHED] = 1
        flows.lists[col.TOUCHED_CLASSES, counts[col.TOUCHES]] = number
        counts[col.TOUCHES] += 1
    classes[number, col.MEMBERS] += change
    words = flows.capacity_words
    for at in range(classes[number, col.FIRST_DRAW], classes[number, col.LAST_DRAW]):
        which = flows.draws[at]
        draw, hold = three(flows.draw_words, at, col.DRAW), three(flows.draw_words, at, col.HOLD)
        if not is_zero(hold):
            counts[col.MORE] = 1
        if change > 0:
            put_three(words, which, col.DRAWN, plus_product(three(words, which, col.DRAWN), draw, wide(change)))
            put_three(words, which, col.HELD, plus_product(three(words, which, col.HELD), hold, wide(change)))
        else:
            put_three(words, which, col.DRAWN, minus_product(three(words, which, col.DRAWN), draw, wide(-change)))
            put_three(words, which, col.HELD, minus_product(three(words, which, col.HELD), hold, wide(-change)))


@bare
def join(flows, number, op, time, instant):
    """A member that alone would take `time` starts to flow."""
    classes, class_words = flows.classes, flows.class_words
    flows.counts[col.MORE] = 1
    if classes[number, col.MEMBERS] == 0 and classes[number, col.BOUND] == col.NOBODY:
        put_three(class_words, number, col.OFFSET, NIL)
    received = service(flows, number, instant)
    put_three(flows.op_words, op, 0, plus_product(received, two(class_words, number, col.ALONE), wide(time)))
    flows.ops[op, col.LEFT_CHILD] = NONE
    flows.ops[op, col.RIGHT_CHILD] = NONE
    classes[number, col.ROOT] = merged(flows.ops, flows.op_words, classes[number, col.ROOT], op)
    count(flows, number, 1)


@bare
def leave(flows, group, instant, retired, over):
    """Members of a group that have received all their service by now; how many ops have retired with them."""
    classes, groups, ops = flows.classes, flows.groups, flows.ops
    set_due(groups, flows.due_heap, flows.counts, group, NONE)
    bring(flows, group, instant)
    received = three(flows.group_words, group, col.SERVICE)
    while groups[group, col.FIRST] >= 0 and not comes_before(received, three(flows.group_words, group, col.KEY)):
        number = groups[group, col.FIRST]
        reached = plus_product(received, three(flows.class_words, number, col.OFFSET), UNIT)
        ended = 0
        op = classes[number, col.ROOT]
        while op >= 0 and not less(reached, three(flows.op_words, op, 0)):
            retired[over] = op
            over += 1
            ended += 1
            op = merged(ops, flows.op_words, ops[op, col.LEFT_CHILD], ops[op, col.RIGHT_CHILD])
        classes[number, col.ROOT] = op
        count(flows, number, -ended)
        find_first(flows, group)
    return over


@bare
def enter(flows, number):
    """An active class becomes a user of its capacities."""
    for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
        which = flows.pairs[pair, col.PAIR_CAPACITY]
        place = flows.capacities[which, col.FIRST_USER] + flows.capacities[which, col.USERS]
        flows.capacities[which, col.USERS] += 1
        flows.pairs[pair, col.USER_PLACE] = place
        flows.users[place, col.USER_CLASS] = number
        flows.users[place, col.USER_PAIR] = pair
        flows.users[place, col.KIND_OF_USER] = col.ALONE_BELOW
        flows.users[place, col.MANY] = 0
        flows.users[place, col.OWN_WEIGHT] = flows.pairs[pair, col.WEIGHT]
        flows.others[place, col.OTHER] = col.SEVERAL


@bare
def _put_user(flows, source, place):
    """Copy a user to a place in the list of its capacity."""
    for column in range(flows.users.shape[1]):
        flows.users[place, column] = flows.users[source, column]
    for column in range(flows.others.shape[1]):
        flows.others[place, column] = flows.others[source, column]
    flows.pairs[flows.users[place, col.USER_PAIR], col.USER_PLACE] = place


@bare
def drop(flows, number):
    """A class that is no longer active is no user."""
    for pair in range(flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]):
        which, place = flows.pairs[pair, col.PAIR_CAPACITY], flows.pairs[pair, col.USER_PLACE]
        flows.pairs[pair, col.USER_PLACE] = NONE
        begin = flows.capacities[which, col.FIRST_USER]
        if place < begin + flows.capacities[which, col.RISERS]:
            flows.capacities[which, col.RISERS] -= 1
            last = begin + flows.capacities[which, col.RISERS]
            if place != last:
                _put_user(flows, last, place)
            place = last
        flows.capacities[which, col.USERS] -= 1
        last = begin + flows.capacities[which, col.USERS]
        if place != last:
            _put_user(flows, last, place)


@bare
def turn(flows, pair, kind):
    """A user rises at its capacity from now on, or does not: it comes among those that do so, too."""
    which, place = flows.pairs[pair, col.PAIR_CAPACITY], flows.pairs[pair, col.USER_PLACE]
    border = flows.capacities[which, col.FIRST_USER] + flows.capacities[which, col.RISERS]
    rises = kind in (col.RISES, col.TIES)
    to = place
    if rises and place >= border:
        to = border
        flows.capacities[which, col.RISERS] += 1
    elif not rises and place < border:
        to = border - 1
        flows.capacities[which, col.RISERS] -= 1
    if to != place:
        number, many, weight = (
            flows.users[place, col.USER_CLASS],
            flows.users[place, col.MANY],
            flows.users[place, col.OWN_WEIGHT],
        )
        _put_user(flows, to, place)
        flows.users[to, col.USER_CLASS], flows.users[to, col.MANY], flows.users[to, col.OWN_WEIGHT] = number, many, weight
        flows.users[to, col.USER_PAIR] = pair
        flows.pairs[pair, col.USER_PLACE] = to
    flows.users[to, col.KIND_OF_USER] = kind


@bare
def look_across(flows, number):
    """Write into the rows of a class as a user what decides whether it stays as it is."""
    first, last = flows.classes[number, col.FIRST_PAIR], flows.classes[number, col.LAST_PAIR]
    for pair in range(first, last):
        place = flows.pairs[pair, col.USER_PLACE]
        kind = flows.users[place, col.KIND_OF_USER]
        opposite = col.SEVERAL
        if kind == col.BELOW:
            opposite = flows.classes[number, col.HOLDER]
        elif kind == col.TIES:
            opposite = col.TIED
        elif kind == col.RISES and last - first == 1:
            opposite = col.ONLY
        elif kind == col.RISES and last - first == 2 and flows.users[place, col.MANY] == 1:
            second = first + last - 1 - pair
            opposite = flows.pairs[second, col.PAIR_CAPACITY]
            flows.others[place, col.OTHER_WEIGHT] = flows.pairs[second, col.WEIGHT]
        flows.others[place, col.OTHER] = opposite


@bare
def list_once(flows, table, number, column, found, count):
    """Put a row of a table into a list, if it is not there since the last tick; the column keeps the tick."""
    if table[number, column] != flows.counts[col.TICK]:
        table[number, column] = flows.counts[col.TICK]
        flows.lists[found, flows.counts[count]] = number
        flows.counts[count] += 1


@bare
def mark(flows, group):
    """Its first member, or when that ends, is another."""
    list_once(flows, flows.groups, group, col.MARKED, col.MARKED_ONES, col.MARKS)
