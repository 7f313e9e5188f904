"""Demands in flight: the columns of `hwsim.engine.fluid.Fluid`, and what joins and leaves.

Paces, weights and what is drawn are the numbers of `hwsim.engine.fair`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwsim.engine.kernels.words import (
    NIL,
    NONE,
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
    holds.
    """

    classes: np.ndarray
    class_words: np.ndarray
    capacities: np.ndarray
    capacity_words: np.ndarray
    pairs: np.ndarray
    pair_words: np.ndarray  # the weight, in two
    draws: np.ndarray  # the capacity
    draw_words: np.ndarray
    ops: np.ndarray
    op_words: np.ndarray  # the virtual service at which it ends, in three
    user: np.ndarray  # pairs by capacity, the active ones of each first
    due_heap: np.ndarray  # classes by when their first member ends
    lists: np.ndarray  # rows that are short-lived lists
    queue: np.ndarray  # rows of level (two words) and what may happen there: kind << 40 | number
    counts: np.ndarray
    full: np.ndarray  # a whole capacity, in three words


# A class. TOUCHED: whether a member came or went. BOUND: also FREE or NOBODY.
# STATE: 2 x tick while it rises, 2 x tick + 1 once its pace is found.
MEMBERS, ROOT, SINCE, BOUND, DUE, DUE_PLACE, TOUCHED, STATE, FIRST_PAIR, LAST_PAIR, FIRST_DRAW, LAST_DRAW = range(12)
FREE, NOBODY = -1, -2  # nothing holds it back; it has no member
ALONE, PACE, FOUND, VIRTUAL = 0, 2, 4, 6  # two words, two, two, three
# A capacity. FILLED: whether it was full in the last solution. SEEN: the tick at which it was filled anew.
BINDING, FILLED, FIRST_USER, USERS, SEEN = range(5)
# what the active demands would draw alone, what they hold, what is left, what the rising ones draw at pace 1, at which
# level it was full, which level was noted last; three words, three, three, two, two, two
DRAWN, HELD, LEFT, LOAD, LEVEL, NOTED = 0, 3, 6, 9, 11, 13
PAIR_CAPACITY, PAIR_CLASS, USER_PLACE = range(3)  # the last: in `user`
DRAW, HOLD = 0, 3  # of a draw, three words each
LEFT_CHILD, RIGHT_CHILD = range(2)  # of an op: the members of a class are a skew heap
TOUCHES, DUES, SOLVES, CHANGES, QUEUED, MORE, TICK, RISING, FILLS = range(9)  # counts
TOUCHED_CLASSES, REACHED, STOPPING, MENDED, CHANGED, REFILLED = range(6)  # lists


@bare
def set_due(classes, heap, counts, number, time):
    """When the first member of a class ends; -1: not as things are."""
    place = classes[number, DUE_PLACE]
    classes[number, DUE] = time
    if time < 0:
        if place < 0:
            return
        counts[DUES] -= 1
        classes[number, DUE_PLACE] = NONE
        last = counts[DUES]
        if place == last:
            return
        number = heap[last]
        time = classes[number, DUE]
    elif place < 0:
        place = counts[DUES]
        counts[DUES] += 1
    while place > 0:
        above = (place - 1) >> 1
        if classes[heap[above], DUE] <= time:
            break
        heap[place] = heap[above]
        classes[heap[place], DUE_PLACE] = place
        place = above
    size = counts[DUES]
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and classes[heap[below + 1], DUE] < classes[heap[below], DUE]:
            below += 1
        if classes[heap[below], DUE] >= time:
            break
        heap[place] = heap[below]
        classes[heap[place], DUE_PLACE] = place
        place = below
    heap[place] = number
    classes[number, DUE_PLACE] = place


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
def bring(classes, class_words, number, instant):
    """A class's virtual service, up to now."""
    passed = wide(instant - classes[number, SINCE])
    classes[number, SINCE] = instant
    put_three(
        class_words, number, VIRTUAL, plus_product(three(class_words, number, VIRTUAL), two(class_words, number, PACE), passed)
    )


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
    classes, class_words, capacities, pairs = flows.classes, flows.class_words, flows.capacities, flows.pairs
    flows.counts[MORE] = 1
    if classes[number, MEMBERS] > 0:
        bring(classes, class_words, number, instant)
    else:
        put_three(class_words, number, VIRTUAL, NIL)
        classes[number, SINCE] = instant
        for pair in range(classes[number, FIRST_PAIR], classes[number, LAST_PAIR]):
            which = pairs[pair, PAIR_CAPACITY]
            place = capacities[which, FIRST_USER] + capacities[which, USERS]
            flows.user[place] = pair
            pairs[pair, USER_PLACE] = place
            capacities[which, USERS] += 1
    target = plus_product(three(class_words, number, VIRTUAL), two(class_words, number, ALONE), wide(time))
    put_three(flows.op_words, op, 0, target)
    flows.ops[op, LEFT_CHILD] = NONE
    flows.ops[op, RIGHT_CHILD] = NONE
    classes[number, ROOT] = merged(flows.ops, flows.op_words, classes[number, ROOT], op)
    count(flows, number, 1)


@bare
def leave(flows, number, instant, retired, over):
    """Members that have received all their service by now; how many ops have retired with them."""
    classes, capacities, pairs, ops = flows.classes, flows.capacities, flows.pairs, flows.ops
    set_due(classes, flows.due_heap, flows.counts, number, NONE)
    bring(classes, flows.class_words, number, instant)
    reached = three(flows.class_words, number, VIRTUAL)
    ended = 0
    op = classes[number, ROOT]
    while op >= 0 and not less(reached, three(flows.op_words, op, 0)):
        retired[over] = op
        over += 1
        ended += 1
        op = merged(ops, flows.op_words, ops[op, LEFT_CHILD], ops[op, RIGHT_CHILD])
    classes[number, ROOT] = op
    count(flows, number, -ended)
    if classes[number, MEMBERS] == 0:
        for pair in range(classes[number, FIRST_PAIR], classes[number, LAST_PAIR]):
            which = pairs[pair, PAIR_CAPACITY]
            capacities[which, USERS] -= 1
            last = flows.user[capacities[which, FIRST_USER] + capacities[which, USERS]]
            place = pairs[pair, USER_PLACE]
            flows.user[place] = last
            pairs[last, USER_PLACE] = place
    return over
