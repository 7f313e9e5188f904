"""Mending the paces: `hwsim.engine.fluid.Fluid._mend`, which says how it works, on columns; tried before: `shares`."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels import columns as col
from hwsim.engine.kernels.flows import bring, comes_before, find_first, group_of, key_of, level_of, mark, service, set_due
from hwsim.engine.kernels.queue import AT_ALONE, EXPECTED, FULL_AT, KIND, NUMBER, drop_first, expect
from hwsim.engine.kernels.shares import FEW, attempt, release
from hwsim.engine.kernels.sums import NOWHERE, add_up, count_touched, lowest, set_level, sort_class, sort_users, stamp
from hwsim.engine.kernels.words import (
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
SEARCH = -2  # the first of a group is to be found


@bare
def pace_of(flows, number):
    """The pace of a class before this instant."""
    bound = flows.classes[number, col.BOUND]
    if bound >= 0:
        if flows.capacities[bound, col.STAMPED] == flows.counts[col.TICK]:
            return two(flows.capacity_words, bound, col.BEFORE)
        return two(flows.levels, bound, 0)
    return two(flows.class_words, number, col.ALONE) if bound == col.FREE else NIL


@bare
def _fill_anew(flows, which, begun, level, instant):
    """A capacity differs from the last solution from this level on; `begun`: there are lower ones."""
    classes, class_words, words = flows.classes, flows.class_words, flows.capacity_words
    capacity = flows.capacities[which]
    tick = flows.counts[col.TICK]
    capacity[col.SEEN] = tick
    stamp(flows, which, instant)
    capacity[col.FILLED] = 0
    flows.lists[col.REFILLED, flows.counts[col.REFILLS]] = which
    flows.counts[col.REFILLS] += 1
    left, load = NIL, NIL
    full, held = (flows.full[0], flows.full[1], flows.full[2]), three(words, which, col.HELD)
    if not less(full, held):
        left = minus_product(full, held, UNIT)
    for place in range(capacity[col.FIRST_USER], capacity[col.FIRST_USER] + capacity[col.USERS]):
        number = flows.users[place, col.USER_CLASS]
        weight = two(flows.weights, flows.users[place, col.OWN_WEIGHT], 0)
        if classes[number, col.MEMBERS] > 1:
            weight = plus_product(NIL, weight, wide(classes[number, col.MEMBERS]))
        if classes[number, col.STATE] == 2 * tick:
            load = plus_product(load, weight, UNIT)
            continue
        if classes[number, col.STATE] == 2 * tick + 1:
            pace = two(class_words, number, col.FOUND)
        else:
            pace = pace_of(flows, number)
            free = classes[number, col.BOUND] < 0
            if not begun or less(level, pace) or (is_same(level, pace) and not free):
                classes[number, col.STATE] = 2 * tick
                flows.counts[col.RISING] += 1
                expect(flows.queue, flows.counts, pace, (AT_ALONE if free else EXPECTED) | np.uint64(number))
                load = plus_product(load, weight, UNIT)
                continue
        left = minus_product(left, pace, weight)
    put_three(flows.sums, which, col.LEFT, left)
    put_two(flows.sums, which, col.LOAD, load)
    if capacity[col.BINDING] and not is_zero(load):
        expect(flows.queue, flows.counts, divide(left, load), FULL_AT | np.uint64(which))


@bare
def _full_at(flows, which, level):
    """List the classes held back by the capacities that fill at this level; how many."""
    sums, queue, counts, classes = flows.sums, flows.queue, flows.counts, flows.classes
    tick = counts[col.TICK]
    stopping = 0
    while True:
        load = two(sums, which, col.LOAD)
        if not is_zero(load):
            filled_at = divide(three(sums, which, col.LEFT), load)
            if less(level, filled_at):
                expect(queue, counts, filled_at, FULL_AT | np.uint64(which))
            else:
                capacity = flows.capacities[which]
                capacity[col.FILLED] = 1
                set_level(flows, which, level)
                for place in range(capacity[col.FIRST_USER], capacity[col.FIRST_USER] + capacity[col.USERS]):
                    number = flows.users[place, col.USER_CLASS]
                    if classes[number, col.STATE] == 2 * tick:
                        classes[number, col.STATE] = 2 * tick + 1
                        flows.lists[col.STOPPING, stopping] = number
                        stopping += 1
        if counts[col.QUEUED] == 0 or (queue[0, 2] & KIND) != FULL_AT or less(level, two(queue, 0, 0)):
            return stopping
        which = np.int64(queue[0, 2] & NUMBER)
        drop_first(queue, counts)


@bare
def _stop(flows, number, level, reached):
    """A class has its pace; how many capacities are to be filled anew for that."""
    classes, class_words, sums = flows.classes, flows.class_words, flows.sums
    tick = flows.counts[col.TICK]
    flows.counts[col.RISING] -= 1
    classes[number, col.STATE] = 2 * tick + 1
    put_two(class_words, number, col.FOUND, level)
    differs = classes[number, col.TOUCHED] != 0 or not is_same(pace_of(flows, number), level)
    for pair in range(classes[number, col.FIRST_PAIR], classes[number, col.LAST_PAIR]):
        which = flows.pairs[pair, col.PAIR_CAPACITY]
        if not flows.capacities[which, col.BINDING]:
            continue
        if flows.capacities[which, col.SEEN] == tick:
            weight = two(flows.weights, flows.pairs[pair, col.WEIGHT], 0)
            if classes[number, col.MEMBERS] > 1:
                weight = plus_product(NIL, weight, wide(classes[number, col.MEMBERS]))
            put_two(sums, which, col.LOAD, minus_product(two(sums, which, col.LOAD), weight, UNIT))
            put_three(sums, which, col.LEFT, minus_product(three(sums, which, col.LEFT), level, weight))
        elif differs:
            flows.lists[col.REACHED, reached] = which
            reached += 1
    return reached


@bare
def _mend(flows, reached, begun, level, instant):
    """Paces of what the `reached` capacities reach, into FOUND; how many classes. `begun`: nothing differs up to the level."""
    classes, class_words, lists, queue, counts = flows.classes, flows.class_words, flows.lists, flows.queue, flows.counts
    tick = counts[col.TICK]
    counts[col.QUEUED] = 0
    counts[col.RISING] = 0
    for at in range(counts[col.TOUCHES]):
        number = lists[col.TOUCHED_CLASSES, at]
        if classes[number, col.MEMBERS] > 0:
            classes[number, col.STATE] = 2 * tick
            counts[col.RISING] += 1
            expect(queue, counts, two(class_words, number, col.ALONE), AT_ALONE | np.uint64(number))
    mended = 0
    while True:
        for at in range(reached):
            if flows.capacities[lists[col.REACHED, at], col.SEEN] != tick:
                _fill_anew(flows, lists[col.REACHED, at], begun, level, instant)
        reached = 0
        if counts[col.RISING] == 0:
            return mended
        begun = True
        level, code = two(queue, 0, 0), queue[0, 2]
        drop_first(queue, counts)
        number = np.int64(code & NUMBER)
        if code & KIND == FULL_AT:
            stopping = _full_at(flows, number, level)
        elif classes[number, col.STATE] != 2 * tick:
            continue
        else:
            if code & KIND == EXPECTED:
                held = False
                for pair in range(classes[number, col.FIRST_PAIR], classes[number, col.LAST_PAIR]):
                    which = flows.pairs[pair, col.PAIR_CAPACITY]
                    if flows.capacities[which, col.BINDING]:
                        full = flows.capacities[which, col.FILLED] != 0
                        held = held or (full and is_same(two(flows.levels, which, 0), level))
                        lists[col.REACHED, reached] = which
                        reached += 1
                if not held:
                    expect(queue, counts, two(class_words, number, col.ALONE), AT_ALONE | np.uint64(number))
                    continue
                reached = 0
            lists[col.STOPPING, 0] = number
            stopping = 1
        for at in range(stopping):
            number = lists[col.STOPPING, at]
            reached = _stop(flows, number, level, reached)
            lists[col.MENDED, mended] = number
            mended += 1


@bare
def _mend_all(flows, reached, begun, level, scarce, instant):
    """As `_mend`, and all that is known of the levels and stops brought up to that; `scarce`: capacities that were not short."""
    counts, lists, capacities = flows.counts, flows.lists, flows.capacities
    for at in range(counts[col.STAMPS]):
        which = lists[col.STAMPED_ONES, at]
        before = two(flows.capacity_words, which, col.BEFORE)
        set_level(flows, which, before)
        capacities[which, col.FILLED] = not is_same(before, NOWHERE)
    mended = _mend(flows, reached, begun, level, instant)
    for at in range(counts[col.REFILLS]):
        if not capacities[lists[col.REFILLED, at], col.FILLED]:
            set_level(flows, lists[col.REFILLED, at], NOWHERE)
    if not counts[col.TRIES]:
        return mended
    counts[col.ROUND] += 1
    for at in range(mended):
        sort_class(flows, lists[col.MENDED, at])
    for at in range(counts[col.MOVES]):
        sort_class(flows, lists[col.MOVED_ONES, at])
    for at in range(scarce):
        sort_users(flows, lists[col.SCARCE, at])
    for at in range(counts[col.REFILLS]):
        add_up(flows, lists[col.REFILLED, at])
    for at in range(counts[col.SPOILS]):
        if capacities[lists[col.SPOILT_ONES, at], col.SEEN] != counts[col.TICK]:
            add_up(flows, lists[col.SPOILT_ONES, at])
    return mended


@bare
def _regroup(flows, number, instant):
    """A class belongs to the group of what holds it back now."""
    classes = flows.classes
    was = classes[number, col.BOUND]
    bound = col.NOBODY
    if classes[number, col.MEMBERS] > 0:
        bound, _ = lowest(flows, number)
    if was != col.NOBODY:
        group = group_of(flows, number)
        if classes[number, col.TOUCHED]:
            mark(flows, group)
        if bound != was and flows.groups[group, col.FIRST] == number:
            flows.groups[group, col.FIRST] = SEARCH
            mark(flows, group)
    if bound == was:
        return
    received = service(flows, number, instant)
    classes[number, col.BOUND] = bound
    flows.lists[col.CHANGED, flows.counts[col.CHANGES]] = number
    flows.counts[col.CHANGES] += 1
    if bound == col.NOBODY:
        return
    group = group_of(flows, number)
    bring(flows, group, instant)
    put_three(flows.class_words, number, col.OFFSET, minus_product(received, three(flows.group_words, group, col.SERVICE), UNIT))


@bare
def _arrive(flows, number):
    """A class whose group is another, or whose members are, may be the first of its group to end."""
    if flows.classes[number, col.MEMBERS] == 0:
        return
    group = group_of(flows, number)
    first = flows.groups[group, col.FIRST]
    if first == SEARCH:
        return
    key = key_of(flows, number)
    if first < 0 or first == number or comes_before(key, three(flows.group_words, group, col.KEY)):
        flows.groups[group, col.FIRST] = number
        put_three(flows.group_words, group, col.KEY, key)
        mark(flows, group)


@bare
def _schedule(flows, group, instant):
    """Find when the first of a group ends; False if that is beyond an int64."""
    groups = flows.groups
    if groups[group, col.FIRST] == SEARCH:
        find_first(flows, group)
    level = level_of(flows, group)
    if groups[group, col.FIRST] < 0 or is_zero(level):
        set_due(groups, flows.due_heap, flows.counts, group, NONE)
        return True
    bring(flows, group, instant)
    left = minus_product(three(flows.group_words, group, col.KEY), three(flows.group_words, group, col.SERVICE), UNIT)
    time = divide(left, level)
    if time[1] != ZERO or time[0] >= np.uint64(LARGEST - instant):
        return False
    end = instant + np.int64(time[0])
    if less(plus_product(NIL, level, time), left):
        end += 1
    if end != groups[group, col.DUE]:
        set_due(groups, flows.due_heap, flows.counts, group, end)
    return True


@bare
def _take_over(flows, mended, instant):
    """Groups as the new levels say, and when each ends first; False if that is beyond an int64."""
    counts, lists = flows.counts, flows.lists
    for at in range(counts[col.TOUCHES]):
        _regroup(flows, lists[col.TOUCHED_CLASSES, at], instant)
    for at in range(counts[col.MOVES]):
        _regroup(flows, lists[col.MOVED_ONES, at], instant)
    for at in range(mended):
        _regroup(flows, lists[col.MENDED, at], instant)
    for at in range(counts[col.TOUCHES]):
        _arrive(flows, lists[col.TOUCHED_CLASSES, at])
    for at in range(counts[col.CHANGES]):
        _arrive(flows, lists[col.CHANGED, at])
    for at in range(counts[col.STAMPS]):
        which = lists[col.STAMPED_ONES, at]
        if not is_same(two(flows.levels, which, 0), two(flows.capacity_words, which, col.BEFORE)):
            mark(flows, which)
    fits = True
    for at in range(counts[col.MARKS]):
        fits = _schedule(flows, lists[col.MARKED_ONES, at], instant) and fits
    return fits


@bare
def settle(flows, instant):
    """Mend the paces as far as this instant's changes reach; False if an end is beyond an int64.

    CHANGED then lists the classes that something else holds back than before, STAMPED_ONES the capacities whose level may differ.
    """
    classes, counts, lists = flows.classes, flows.counts, flows.lists
    capacities, words = flows.capacities, flows.capacity_words
    full = (flows.full[0], flows.full[1], flows.full[2])
    for column in (col.CHANGES, col.REFILLS, col.STAMPS, col.SPOILS, col.MOVES, col.MARKS, col.WAITS, col.QUEUED):
        counts[column] = 0
    counts[col.TICK] += 1
    counts[col.ROUND] += 1
    reached = slack = scarce = mended = 0
    solved = False
    level = NOWHERE  # of the touched classes, the lowest pace
    for at in range(counts[col.TOUCHES]):
        number = lists[col.TOUCHED_CLASSES, at]
        pace = pace_of(flows, number)
        if less(pace, level):
            level = pace
        for place in range(classes[number, col.FIRST_DRAW], classes[number, col.LAST_DRAW]):
            which = flows.draws[place]
            binds = less(full, three(words, which, col.DRAWN))
            if binds or capacities[which, col.BINDING]:
                lists[col.REACHED, reached] = which
                reached += 1
                solved = solved or binds
                if not binds:
                    lists[col.STOPPING, slack] = which
                    slack += 1
                elif not capacities[which, col.BINDING]:
                    lists[col.SCARCE, scarce] = which
                    scarce += 1
            capacities[which, col.BINDING] = binds
    count_touched(flows)
    if reached > 0:
        counts[col.SOLVES] += solved
        tried = counts[col.TRIES] != 0 and scarce == 0 and counts[col.TOUCHES] <= FEW
        if tried:
            release(flows, slack, instant)
        if not (tried and attempt(flows, instant)):
            mended = _mend_all(flows, reached, counts[col.MORE] == 0, level, scarce, instant)
    if not _take_over(flows, mended, instant):
        return False
    for at in range(counts[col.TOUCHES]):
        classes[lists[col.TOUCHED_CLASSES, at], col.TOUCHED] = 0
    counts[col.TOUCHES] = 0
    counts[col.MORE] = 0
    return True
