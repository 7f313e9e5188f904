"""Demands in flight: the columns of `hwsim.engine.fluid.Fluid`, and what joins and leaves.

Paces, weights and what is drawn are the numbers of `hwsim.engine.fair`. All classes that one capacity holds back run at its
level: they are a group, and service is counted by group. A class knows how much more or less than its group it has received.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    """Rows of whole numbers and rows of words for everything there is many of; what the columns are is said below.

    A pair is a class and a capacity from which it draws; a draw, a class and a capacity from which it draws or which it
    holds. Group n is what capacity n holds back; group capacities + n, class n while nothing does.
    """

    classes: np.ndarray
    class_words: np.ndarray
    capacities: np.ndarray
    capacity_words: np.ndarray
    levels: np.ndarray  # at which each capacity is full, in two; all ones: at none
    sums: np.ndarray
    pairs: np.ndarray
    pair_words: np.ndarray  # the weight, in two
    users: np.ndarray  # pairs by capacity, the active ones of each first
    user_words: np.ndarray
    draws: np.ndarray  # the capacity
    draw_words: np.ndarray
    groups: np.ndarray
    group_words: np.ndarray
    ops: np.ndarray
    op_words: np.ndarray  # the service of its class at which it ends, in three
    due_heap: np.ndarray  # groups by when their first member ends
    lists: np.ndarray  # rows that are short-lived lists
    queue: np.ndarray  # rows of level (two words) and what may happen there: kind << 40 | number
    counts: np.ndarray
    full: np.ndarray  # a whole capacity, in three words
    margins: np.ndarray  # of levels, in two words; of what is left, in three


# A class. TOUCHED: whether a member came or went. BOUND: the capacity that holds it back, or FREE, or NOBODY.
# STATE: 2 x tick while it rises, 2 x tick + 1 once its pace is found. HOLDER: as BOUND, of what is being tried.
# MOVED, ASKED: the tick or the round at which it came into a list.
MEMBERS, ROOT, BOUND, TOUCHED, STATE, FIRST_PAIR, LAST_PAIR, FIRST_DRAW, LAST_DRAW, HOLDER, MOVED, ASKED = range(12)
FREE, NOBODY = -1, -2  # nothing holds it back; it has no member
ALONE, FOUND, OFFSET = 0, 2, 4  # two words, two, three
# A capacity. FILLED: whether it was full in the last solution. SEEN, STAMPED, WAITING, SPOILT: the tick of an event.
BINDING, FILLED, FIRST_USER, USERS, SEEN, STAMPED, WAITING, SPOILT = range(8)
# what the active demands would draw alone, what they hold, the level that was noted last, the level before this instant;
# three words, three, two, two
DRAWN, HELD, NOTED, BEFORE = 0, 3, 6, 8
# what those leave that stop below its level, what the others draw at pace 1, the least pace alone; three words, two, two
LEFT, LOAD, LEAST = 0, 3, 5
PAIR_CAPACITY, PAIR_CLASS, USER_PLACE = range(3)  # the last: in `users`, or -1
# A user. OTHER: the other capacity of a class of two, ONLY, or SEVERAL. MANY: members counted in the sums.
USER_CLASS, USER_PAIR, OTHER, KIND_OF_USER, MANY = range(5)
ONLY, SEVERAL = -1, -2
BELOW, RISES, TIES, ALONE_BELOW = range(4)  # stops below, at another capacity; does not; and at another too; stops below, free
OWN_WEIGHT, OTHER_WEIGHT = 0, 2  # of a user, of one member
SINCE, DUE, DUE_PLACE, FIRST, MARKED = range(5)  # of a group; FIRST: the class that ends first
SERVICE, KEY = 0, 3  # of a group: what its members receive; at which the first ends; three words each
DRAW, HOLD = 0, 3  # of a draw, three words each
LEFT_CHILD, RIGHT_CHILD = range(2)  # of an op: the members of a class are a skew heap
TOUCHES, DUES, SOLVES, CHANGES, QUEUED, MORE, TICK, RISING, REFILLS, STAMPS, SPOILS, MOVES, MARKS, ROUND, CHECKS, TRIES = range(
    16
)
(
    TOUCHED_CLASSES,
    REACHED,
    STOPPING,
    MENDED,
    CHANGED,
    REFILLED,
    STAMPED_ONES,
    SPOILT_ONES,
    MOVED_ONES,
    MARKED_ONES,
    CHECKED,
    ASKED_ONES,
    SCARCE,
) = range(13)  # lists


@bare
def set_due(groups, heap, counts, number, time):
    """When the first member of a group ends; -1: not as things are."""
    place = groups[number, DUE_PLACE]
    groups[number, DUE] = time
    if time < 0:
        if place < 0:
            return
        counts[DUES] -= 1
        groups[number, DUE_PLACE] = NONE
        last = counts[DUES]
        if place == last:
            return
        number = heap[last]
        time = groups[number, DUE]
    elif place < 0:
        place = counts[DUES]
        counts[DUES] += 1
    while place > 0:
        above = (place - 1) >> 1
        if groups[heap[above], DUE] <= time:
            break
        heap[place] = heap[above]
        groups[heap[place], DUE_PLACE] = place
        place = above
    size = counts[DUES]
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and groups[heap[below + 1], DUE] < groups[heap[below], DUE]:
            below += 1
        if groups[heap[below], DUE] >= time:
            break
        heap[place] = heap[below]
        groups[heap[place], DUE_PLACE] = place
        place = below
    heap[place] = number
    groups[number, DUE_PLACE] = place


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
        below = ops[first, RIGHT_CHILD]
        ops[first, RIGHT_CHILD] = ops[first, LEFT_CHILD]
        if below < 0:
            ops[first, LEFT_CHILD] = second
            return root
        if less(three(op_words, second, 0), three(op_words, below, 0)):
            below, second = second, below
        ops[first, LEFT_CHILD] = below
        first = below


@bare
def group_of(flows, number):
    """The group of an active class."""
    bound = flows.classes[number, BOUND]
    return bound if bound >= 0 else flows.levels.shape[0] + number


@bare
def level_of(flows, group):
    """The pace of its members."""
    if group < flows.levels.shape[0]:
        return two(flows.levels, group, 0)
    return two(flows.class_words, group - flows.levels.shape[0], ALONE)


@bare
def bring(flows, group, instant):
    """A group's service, up to now."""
    passed = instant - flows.groups[group, SINCE]
    if passed == 0:
        return
    flows.groups[group, SINCE] = instant
    if group < flows.levels.shape[0] and not flows.capacities[group, FILLED]:
        return
    put_three(
        flows.group_words,
        group,
        SERVICE,
        plus_product(three(flows.group_words, group, SERVICE), level_of(flows, group), wide(passed)),
    )


@bare
def service(flows, number, instant):
    """Service that one member of an active class has received since the class became active."""
    offset = three(flows.class_words, number, OFFSET)
    if flows.classes[number, BOUND] == NOBODY:
        return offset
    group = group_of(flows, number)
    bring(flows, group, instant)
    return plus_product(three(flows.group_words, group, SERVICE), offset, UNIT)


@bare
def key_of(flows, number):
    """The service of its group at which the first member of a class ends."""
    tag = three(flows.op_words, flows.classes[number, ROOT], 0)
    return minus_product(tag, three(flows.class_words, number, OFFSET), UNIT)


@bare
def comes_before(one, other):
    """Whether one key is lower: both may have wrapped, and are near each other."""
    return minus_product(one, other, UNIT)[2] >> np.uint64(63) != 0


@bare
def find_first(flows, group):
    """Find the class of a group that ends first."""
    classes, groups, users = flows.classes, flows.groups, flows.users
    capacities = flows.levels.shape[0]
    groups[group, FIRST] = NONE
    if group >= capacities:
        number = group - capacities
        if classes[number, MEMBERS] > 0 and classes[number, BOUND] == FREE:
            groups[group, FIRST] = number
            put_three(flows.group_words, group, KEY, key_of(flows, number))
        return
    best = NIL
    begin = flows.capacities[group, FIRST_USER]
    for place in range(begin, begin + flows.capacities[group, USERS]):
        number = users[place, USER_CLASS]
        if classes[number, BOUND] != group or classes[number, MEMBERS] == 0:
            continue
        key = key_of(flows, number)
        if groups[group, FIRST] < 0 or comes_before(key, best):
            groups[group, FIRST] = number
            best = key
    put_three(flows.group_words, group, KEY, best)


@bare
def count(flows, number, change):
    """So many members more, or fewer."""
    classes, counts = flows.classes, flows.counts
    if not classes[number, TOUCHED]:
        classes[number, TOUCHED] = 1
        flows.lists[TOUCHED_CLASSES, counts[TOUCHES]] = number
        counts[TOUCHES] += 1
    classes[number, MEMBERS] += change
    words = flows.capacity_words
    for at in range(classes[number, FIRST_DRAW], classes[number, LAST_DRAW]):
        which = flows.draws[at]
        draw, hold = three(flows.draw_words, at, DRAW), three(flows.draw_words, at, HOLD)
        if not is_zero(hold):
            counts[MORE] = 1
        if change > 0:
            put_three(words, which, DRAWN, plus_product(three(words, which, DRAWN), draw, wide(change)))
            put_three(words, which, HELD, plus_product(three(words, which, HELD), hold, wide(change)))
        else:
            put_three(words, which, DRAWN, minus_product(three(words, which, DRAWN), draw, wide(-change)))
            put_three(words, which, HELD, minus_product(three(words, which, HELD), hold, wide(-change)))


@bare
def join(flows, number, op, time, instant):
    """A member that alone would take `time` starts to flow."""
    classes, class_words = flows.classes, flows.class_words
    flows.counts[MORE] = 1
    if classes[number, MEMBERS] == 0 and classes[number, BOUND] == NOBODY:
        put_three(class_words, number, OFFSET, NIL)
    received = service(flows, number, instant)
    put_three(flows.op_words, op, 0, plus_product(received, two(class_words, number, ALONE), wide(time)))
    flows.ops[op, LEFT_CHILD] = NONE
    flows.ops[op, RIGHT_CHILD] = NONE
    classes[number, ROOT] = merged(flows.ops, flows.op_words, classes[number, ROOT], op)
    count(flows, number, 1)


@bare
def leave(flows, group, instant, retired, over):
    """Members of a group that have received all their service by now; how many ops have retired with them."""
    classes, groups, ops = flows.classes, flows.groups, flows.ops
    set_due(groups, flows.due_heap, flows.counts, group, NONE)
    bring(flows, group, instant)
    received = three(flows.group_words, group, SERVICE)
    while groups[group, FIRST] >= 0 and not comes_before(received, three(flows.group_words, group, KEY)):
        number = groups[group, FIRST]
        reached = plus_product(received, three(flows.class_words, number, OFFSET), UNIT)
        ended = 0
        op = classes[number, ROOT]
        while op >= 0 and not less(reached, three(flows.op_words, op, 0)):
            retired[over] = op
            over += 1
            ended += 1
            op = merged(ops, flows.op_words, ops[op, LEFT_CHILD], ops[op, RIGHT_CHILD])
        classes[number, ROOT] = op
        count(flows, number, -ended)
        find_first(flows, group)
    return over


@bare
def enter(flows, number):
    """An active class becomes a user of its capacities."""
    first, last = flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]
    for pair in range(first, last):
        which = flows.pairs[pair, PAIR_CAPACITY]
        place = flows.capacities[which, FIRST_USER] + flows.capacities[which, USERS]
        flows.capacities[which, USERS] += 1
        flows.pairs[pair, USER_PLACE] = place
        flows.users[place, USER_CLASS] = number
        flows.users[place, USER_PAIR] = pair
        flows.users[place, KIND_OF_USER] = ALONE_BELOW
        flows.users[place, MANY] = 0
        opposite = SEVERAL
        if last - first == 1:
            opposite = ONLY
        elif last - first == 2:
            second = first + last - 1 - pair
            opposite = flows.pairs[second, PAIR_CAPACITY]
            flows.user_words[place, OTHER_WEIGHT] = flows.pair_words[second, 0]
            flows.user_words[place, OTHER_WEIGHT + 1] = flows.pair_words[second, 1]
        flows.users[place, OTHER] = opposite
        flows.user_words[place, OWN_WEIGHT] = flows.pair_words[pair, 0]
        flows.user_words[place, OWN_WEIGHT + 1] = flows.pair_words[pair, 1]


@bare
def drop(flows, number):
    """A class that is no longer active is no user."""
    for pair in range(flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]):
        which = flows.pairs[pair, PAIR_CAPACITY]
        flows.capacities[which, USERS] -= 1
        last = flows.capacities[which, FIRST_USER] + flows.capacities[which, USERS]
        place = flows.pairs[pair, USER_PLACE]
        flows.pairs[pair, USER_PLACE] = NONE
        if place == last:
            continue
        for column in range(flows.users.shape[1]):
            flows.users[place, column] = flows.users[last, column]
        for column in range(flows.user_words.shape[1]):
            flows.user_words[place, column] = flows.user_words[last, column]
        flows.pairs[flows.users[place, USER_PAIR], USER_PLACE] = place


@bare
def mark(flows, group):
    """Its first member, or when that ends, is another."""
    if flows.groups[group, MARKED] != flows.counts[TICK]:
        flows.groups[group, MARKED] = flows.counts[TICK]
        flows.lists[MARKED_ONES, flows.counts[MARKS]] = group
        flows.counts[MARKS] += 1
