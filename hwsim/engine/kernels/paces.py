"""Mending the paces: `hwsim.engine.fluid.Fluid._mend`, which says how it works, on columns."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.flows import (
    ALONE,
    BINDING,
    BOUND,
    CHANGED,
    CHANGES,
    DRAWN,
    DUE,
    FILLED,
    FILLS,
    FIRST_DRAW,
    FIRST_PAIR,
    FIRST_USER,
    FOUND,
    FREE,
    HELD,
    LAST_DRAW,
    LAST_PAIR,
    LEFT,
    LEVEL,
    LOAD,
    MEMBERS,
    MENDED,
    MORE,
    NOBODY,
    PACE,
    PAIR_CAPACITY,
    PAIR_CLASS,
    QUEUED,
    REACHED,
    REFILLED,
    RISING,
    ROOT,
    SEEN,
    SOLVES,
    STATE,
    STOPPING,
    TICK,
    TOUCHED,
    TOUCHED_CLASSES,
    TOUCHES,
    USERS,
    VIRTUAL,
    bring,
    set_due,
)
from hwsim.engine.kernels.words import (
    MOST,
    NIL,
    NONE,
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
)

LARGEST = 2**63 - 1  # fs: later times do not fit an int64

# what may happen at a level, in this order; with the number of a class or of a capacity
AT_ALONE, FULL_AT, EXPECTED = np.uint64(0 << 40), np.uint64(1 << 40), np.uint64(2 << 40)
KIND, NUMBER = np.uint64(3 << 40), np.uint64((1 << 40) - 1)


@bare
def _precedes(low, high, what, queue, other):
    if high != queue[other, 1]:
        return high < queue[other, 1]
    if low != queue[other, 0]:
        return low < queue[other, 0]
    return (what & KIND) < (queue[other, 2] & KIND)


@bare
def _expect(queue, counts, level, code):
    """Into the queue of what may happen."""
    low, high = level[0], level[1]
    place = counts[QUEUED]
    counts[QUEUED] += 1
    while place > 0:
        above = (place - 1) >> 1
        if not _precedes(low, high, code, queue, above):
            break
        queue[place, 0], queue[place, 1], queue[place, 2] = queue[above, 0], queue[above, 1], queue[above, 2]
        place = above
    queue[place, 0], queue[place, 1], queue[place, 2] = low, high, code


@bare
def _drop_first(queue, counts):
    """The first out of the queue."""
    counts[QUEUED] -= 1
    last = counts[QUEUED]
    low, high, code = queue[last, 0], queue[last, 1], queue[last, 2]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and _precedes(queue[below + 1, 0], queue[below + 1, 1], queue[below + 1, 2], queue, below):
            below += 1
        if not _precedes(queue[below, 0], queue[below, 1], queue[below, 2], queue, last):
            break
        queue[place, 0], queue[place, 1], queue[place, 2] = queue[below, 0], queue[below, 1], queue[below, 2]
        place = below
    queue[place, 0], queue[place, 1], queue[place, 2] = low, high, code


@bare
def _fill_anew(flows, which, begun, level):
    """A capacity differs from the last solution from this level on; `begun`: there are lower ones."""
    classes, class_words, words = flows.classes, flows.class_words, flows.capacity_words
    capacity = flows.capacities[which]
    tick = flows.counts[TICK]
    capacity[SEEN] = tick
    capacity[FILLED] = 0
    flows.lists[REFILLED, flows.counts[FILLS]] = which
    flows.counts[FILLS] += 1
    left, load = NIL, NIL
    full, held = (flows.full[0], flows.full[1], flows.full[2]), three(words, which, HELD)
    if not less(full, held):
        left = minus_product(full, held, UNIT)
    for place in range(capacity[FIRST_USER], capacity[FIRST_USER] + capacity[USERS]):
        pair = flows.user[place]
        number = flows.pairs[pair, PAIR_CLASS]
        weight = two(flows.pair_words, pair, 0)
        if classes[number, MEMBERS] > 1:
            weight = plus_product(NIL, weight, wide(classes[number, MEMBERS]))
        if classes[number, STATE] == 2 * tick:
            load = plus_product(load, weight, UNIT)
            continue
        if classes[number, STATE] == 2 * tick + 1:
            pace = two(class_words, number, FOUND)
        else:
            pace = two(class_words, number, PACE)
            free = classes[number, BOUND] < 0
            if not begun or less(level, pace) or (is_same(level, pace) and not free):
                classes[number, STATE] = 2 * tick
                flows.counts[RISING] += 1
                _expect(flows.queue, flows.counts, pace, (AT_ALONE if free else EXPECTED) | np.uint64(number))
                load = plus_product(load, weight, UNIT)
                continue
        left = minus_product(left, pace, weight)
    put_three(words, which, LEFT, left)
    put_two(words, which, LOAD, load)
    if capacity[BINDING] and not is_zero(load):
        _expect(flows.queue, flows.counts, divide(left, load), FULL_AT | np.uint64(which))


@bare
def _full_at(flows, which, level):
    """List the classes held back by the capacities that fill at this level; how many."""
    words, queue, counts, classes = flows.capacity_words, flows.queue, flows.counts, flows.classes
    tick = counts[TICK]
    stopping = 0
    while True:
        load = two(words, which, LOAD)
        if not is_zero(load):
            filled_at = divide(three(words, which, LEFT), load)
            if less(level, filled_at):
                _expect(queue, counts, filled_at, FULL_AT | np.uint64(which))
            else:
                capacity = flows.capacities[which]
                capacity[FILLED] = 1
                put_two(words, which, LEVEL, level)
                for place in range(capacity[FIRST_USER], capacity[FIRST_USER] + capacity[USERS]):
                    number = flows.pairs[flows.user[place], PAIR_CLASS]
                    if classes[number, STATE] == 2 * tick:
                        classes[number, STATE] = 2 * tick + 1
                        flows.lists[STOPPING, stopping] = number
                        stopping += 1
        if counts[QUEUED] == 0 or (queue[0, 2] & KIND) != FULL_AT or less(level, two(queue, 0, 0)):
            return stopping
        which = np.int64(queue[0, 2] & NUMBER)
        _drop_first(queue, counts)


@bare
def _stop(flows, number, level, reached):
    """A class has its pace; how many capacities are to be filled anew for that."""
    classes, class_words, words = flows.classes, flows.class_words, flows.capacity_words
    tick = flows.counts[TICK]
    flows.counts[RISING] -= 1
    classes[number, STATE] = 2 * tick + 1
    put_two(class_words, number, FOUND, level)
    differs = classes[number, TOUCHED] != 0 or not is_same(two(class_words, number, PACE), level)
    for pair in range(classes[number, FIRST_PAIR], classes[number, LAST_PAIR]):
        which = flows.pairs[pair, PAIR_CAPACITY]
        if not flows.capacities[which, BINDING]:
            continue
        if flows.capacities[which, SEEN] == tick:
            weight = two(flows.pair_words, pair, 0)
            if classes[number, MEMBERS] > 1:
                weight = plus_product(NIL, weight, wide(classes[number, MEMBERS]))
            put_two(words, which, LOAD, minus_product(two(words, which, LOAD), weight, UNIT))
            put_three(words, which, LEFT, minus_product(three(words, which, LEFT), level, weight))
        elif differs:
            flows.lists[REACHED, reached] = which
            reached += 1
    return reached


@bare
def _mend(flows, reached, begun, level):
    """Paces of what the `reached` capacities reach, into FOUND; how many classes. `begun`: nothing differs up to the level."""
    classes, class_words, lists, queue, counts = flows.classes, flows.class_words, flows.lists, flows.queue, flows.counts
    tick = counts[TICK]
    counts[QUEUED] = 0
    counts[RISING] = 0
    for at in range(counts[TOUCHES]):
        number = lists[TOUCHED_CLASSES, at]
        if classes[number, MEMBERS] > 0:
            classes[number, STATE] = 2 * tick
            counts[RISING] += 1
            _expect(queue, counts, two(class_words, number, ALONE), AT_ALONE | np.uint64(number))
    mended = 0
    while True:
        for at in range(reached):
            if flows.capacities[lists[REACHED, at], SEEN] != tick:
                _fill_anew(flows, lists[REACHED, at], begun, level)
        reached = 0
        if counts[RISING] == 0:
            return mended
        begun = True
        level, code = two(queue, 0, 0), queue[0, 2]
        _drop_first(queue, counts)
        number = np.int64(code & NUMBER)
        if code & KIND == FULL_AT:
            stopping = _full_at(flows, number, level)
        elif classes[number, STATE] != 2 * tick:
            continue
        else:
            if code & KIND == EXPECTED:
                held = False
                for pair in range(classes[number, FIRST_PAIR], classes[number, LAST_PAIR]):
                    which = flows.pairs[pair, PAIR_CAPACITY]
                    if flows.capacities[which, BINDING]:
                        full = flows.capacities[which, FILLED] != 0
                        held = held or (full and is_same(two(flows.capacity_words, which, LEVEL), level))
                        lists[REACHED, reached] = which
                        reached += 1
                if not held:
                    _expect(queue, counts, two(class_words, number, ALONE), AT_ALONE | np.uint64(number))
                    continue
                reached = 0
            lists[STOPPING, 0] = number
            stopping = 1
        for at in range(stopping):
            number = lists[STOPPING, at]
            reached = _stop(flows, number, level, reached)
            lists[MENDED, mended] = number
            mended += 1


@bare
def _bound_of(flows, number, level):
    """The capacity that holds a class back at the pace just found (of several, the first by number)."""
    bound = FREE
    if is_same(level, two(flows.class_words, number, ALONE)):
        return bound
    for pair in range(flows.classes[number, FIRST_PAIR], flows.classes[number, LAST_PAIR]):
        which = flows.pairs[pair, PAIR_CAPACITY]
        if not (flows.capacities[which, BINDING] and flows.capacities[which, FILLED]):
            continue
        if (bound < 0 or which < bound) and is_same(level, two(flows.capacity_words, which, LEVEL)):
            bound = which
    return bound


@bare
def _schedule(flows, number, pace, instant):
    """A class runs at this pace; False if it ends beyond an int64."""
    classes, class_words, counts = flows.classes, flows.class_words, flows.counts
    bound = _bound_of(flows, number, pace)
    same = bound == classes[number, BOUND]
    if same and not classes[number, TOUCHED] and is_same(pace, two(class_words, number, PACE)):
        return True
    bring(classes, class_words, number, instant)
    put_two(class_words, number, PACE, pace)
    if not same:
        classes[number, BOUND] = bound
        flows.lists[CHANGED, counts[CHANGES]] = number
        counts[CHANGES] += 1
    if is_zero(pace):
        set_due(classes, flows.due_heap, counts, number, NONE)
        return True
    left = minus_product(three(flows.op_words, classes[number, ROOT], 0), three(class_words, number, VIRTUAL), UNIT)
    time = divide(left, pace)
    if time[1] != ZERO or time[0] >= np.uint64(LARGEST - instant):
        return False
    end = instant + np.int64(time[0])
    if less(plus_product(NIL, pace, time), left):
        end += 1
    if end != classes[number, DUE]:
        set_due(classes, flows.due_heap, counts, number, end)
    return True


@bare
def settle(flows, instant):
    """Mend the paces as far as this instant's changes reach; False if an end is beyond an int64.

    CHANGED then lists the classes that something else holds back than before, REFILLED the capacities that were filled anew.
    """
    classes, class_words, counts, lists = flows.classes, flows.class_words, flows.counts, flows.lists
    capacities, words = flows.capacities, flows.capacity_words
    full = (flows.full[0], flows.full[1], flows.full[2])
    counts[CHANGES] = 0
    counts[FILLS] = 0
    counts[TICK] += 1
    reached = 0
    solved = False
    level = (MOST, MOST, ZERO)  # of the touched classes, the lowest pace
    for at in range(counts[TOUCHES]):
        number = lists[TOUCHED_CLASSES, at]
        pace = two(class_words, number, PACE)
        if less(pace, level):
            level = pace
        for place in range(classes[number, FIRST_DRAW], classes[number, LAST_DRAW]):
            which = flows.draws[place]
            binds = less(full, three(words, which, DRAWN))
            if binds or capacities[which, BINDING]:
                lists[REACHED, reached] = which
                reached += 1
                solved = solved or binds
            capacities[which, BINDING] = binds
        if classes[number, MEMBERS] == 0 and classes[number, BOUND] != NOBODY:
            put_two(class_words, number, PACE, NIL)
            classes[number, BOUND] = NOBODY
            lists[CHANGED, counts[CHANGES]] = number
            counts[CHANGES] += 1
    if reached > 0:
        counts[SOLVES] += solved
        for at in range(_mend(flows, reached, counts[MORE] == 0, level)):
            number = lists[MENDED, at]
            if not _schedule(flows, number, two(class_words, number, FOUND), instant):
                return False
    else:
        for at in range(counts[TOUCHES]):
            number = lists[TOUCHED_CLASSES, at]
            if classes[number, MEMBERS] > 0 and not _schedule(flows, number, two(class_words, number, ALONE), instant):
                return False
    for at in range(counts[TOUCHES]):
        classes[lists[TOUCHED_CLASSES, at], TOUCHED] = 0
    counts[TOUCHES] = 0
    counts[MORE] = 0
    return True
