"""Mending the paces: `hwsim.engine.fluid.Fluid._mend`, which says how it works, on columns; tried before: `shares`."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels.flows import (
    ALONE,
    BEFORE,
    BINDING,
    BOUND,
    CHANGED,
    CHANGES,
    CHECKS,
    DRAWN,
    DUE,
    FILLED,
    FIRST,
    FIRST_DRAW,
    FIRST_PAIR,
    FIRST_USER,
    FOUND,
    FREE,
    HELD,
    KEY,
    LAST_DRAW,
    LAST_PAIR,
    LEFT,
    LOAD,
    MARKED_ONES,
    MARKS,
    MEMBERS,
    MENDED,
    MORE,
    MOVED_ONES,
    MOVES,
    NOBODY,
    OFFSET,
    OWN_WEIGHT,
    PAIR_CAPACITY,
    QUEUED,
    REACHED,
    REFILLED,
    REFILLS,
    RISING,
    ROUND,
    SCARCE,
    SEEN,
    SERVICE,
    SOLVES,
    SPOILS,
    SPOILT_ONES,
    STAMPED,
    STAMPED_ONES,
    STAMPS,
    STATE,
    STOPPING,
    TICK,
    TOUCHED,
    TOUCHED_CLASSES,
    TOUCHES,
    TRIES,
    USER_CLASS,
    USERS,
    bring,
    comes_before,
    find_first,
    group_of,
    key_of,
    level_of,
    mark,
    service,
    set_due,
)
from hwsim.engine.kernels.queue import AT_ALONE, EXPECTED, FULL_AT, KIND, NUMBER, drop_first, expect
from hwsim.engine.kernels.shares import FEW, attempt, release
from hwsim.engine.kernels.sums import NOWHERE, add_up, count_touched, lowest, sort_class, sort_users, stamp
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
    bound = flows.classes[number, BOUND]
    if bound >= 0:
        if flows.capacities[bound, STAMPED] == flows.counts[TICK]:
            return two(flows.capacity_words, bound, BEFORE)
        return two(flows.levels, bound, 0)
    return two(flows.class_words, number, ALONE) if bound == FREE else NIL


@bare
def _fill_anew(flows, which, begun, level, instant):
    """A capacity differs from the last solution from this level on; `begun`: there are lower ones."""
    classes, class_words, words = flows.classes, flows.class_words, flows.capacity_words
    capacity = flows.capacities[which]
    tick = flows.counts[TICK]
    capacity[SEEN] = tick
    stamp(flows, which, instant)
    capacity[FILLED] = 0
    flows.lists[REFILLED, flows.counts[REFILLS]] = which
    flows.counts[REFILLS] += 1
    left, load = NIL, NIL
    full, held = (flows.full[0], flows.full[1], flows.full[2]), three(words, which, HELD)
    if not less(full, held):
        left = minus_product(full, held, UNIT)
    for place in range(capacity[FIRST_USER], capacity[FIRST_USER] + capacity[USERS]):
        number = flows.users[place, USER_CLASS]
        weight = two(flows.user_words, place, OWN_WEIGHT)
        if classes[number, MEMBERS] > 1:
            weight = plus_product(NIL, weight, wide(classes[number, MEMBERS]))
        if classes[number, STATE] == 2 * tick:
            load = plus_product(load, weight, UNIT)
            continue
        if classes[number, STATE] == 2 * tick + 1:
            pace = two(class_words, number, FOUND)
        else:
            pace = pace_of(flows, number)
            free = classes[number, BOUND] < 0
            if not begun or less(level, pace) or (is_same(level, pace) and not free):
                classes[number, STATE] = 2 * tick
                flows.counts[RISING] += 1
                expect(flows.queue, flows.counts, pace, (AT_ALONE if free else EXPECTED) | np.uint64(number))
                load = plus_product(load, weight, UNIT)
                continue
        left = minus_product(left, pace, weight)
    put_three(flows.sums, which, LEFT, left)
    put_two(flows.sums, which, LOAD, load)
    if capacity[BINDING] and not is_zero(load):
        expect(flows.queue, flows.counts, divide(left, load), FULL_AT | np.uint64(which))


@bare
def _full_at(flows, which, level):
    """List the classes held back by the capacities that fill at this level; how many."""
    sums, queue, counts, classes = flows.sums, flows.queue, flows.counts, flows.classes
    tick = counts[TICK]
    stopping = 0
    while True:
        load = two(sums, which, LOAD)
        if not is_zero(load):
            filled_at = divide(three(sums, which, LEFT), load)
            if less(level, filled_at):
                expect(queue, counts, filled_at, FULL_AT | np.uint64(which))
            else:
                capacity = flows.capacities[which]
                capacity[FILLED] = 1
                put_two(flows.levels, which, 0, level)
                for place in range(capacity[FIRST_USER], capacity[FIRST_USER] + capacity[USERS]):
                    number = flows.users[place, USER_CLASS]
                    if classes[number, STATE] == 2 * tick:
                        classes[number, STATE] = 2 * tick + 1
                        flows.lists[STOPPING, stopping] = number
                        stopping += 1
        if counts[QUEUED] == 0 or (queue[0, 2] & KIND) != FULL_AT or less(level, two(queue, 0, 0)):
            return stopping
        which = np.int64(queue[0, 2] & NUMBER)
        drop_first(queue, counts)


@bare
def _stop(flows, number, level, reached):
    """A class has its pace; how many capacities are to be filled anew for that."""
    classes, class_words, sums = flows.classes, flows.class_words, flows.sums
    tick = flows.counts[TICK]
    flows.counts[RISING] -= 1
    classes[number, STATE] = 2 * tick + 1
    put_two(class_words, number, FOUND, level)
    differs = classes[number, TOUCHED] != 0 or not is_same(pace_of(flows, number), level)
    for pair in range(classes[number, FIRST_PAIR], classes[number, LAST_PAIR]):
        which = flows.pairs[pair, PAIR_CAPACITY]
        if not flows.capacities[which, BINDING]:
            continue
        if flows.capacities[which, SEEN] == tick:
            weight = two(flows.pair_words, pair, 0)
            if classes[number, MEMBERS] > 1:
                weight = plus_product(NIL, weight, wide(classes[number, MEMBERS]))
            put_two(sums, which, LOAD, minus_product(two(sums, which, LOAD), weight, UNIT))
            put_three(sums, which, LEFT, minus_product(three(sums, which, LEFT), level, weight))
        elif differs:
            flows.lists[REACHED, reached] = which
            reached += 1
    return reached


@bare
def _mend(flows, reached, begun, level, instant):
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
            expect(queue, counts, two(class_words, number, ALONE), AT_ALONE | np.uint64(number))
    mended = 0
    while True:
        for at in range(reached):
            if flows.capacities[lists[REACHED, at], SEEN] != tick:
                _fill_anew(flows, lists[REACHED, at], begun, level, instant)
        reached = 0
        if counts[RISING] == 0:
            return mended
        begun = True
        level, code = two(queue, 0, 0), queue[0, 2]
        drop_first(queue, counts)
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
                        held = held or (full and is_same(two(flows.levels, which, 0), level))
                        lists[REACHED, reached] = which
                        reached += 1
                if not held:
                    expect(queue, counts, two(class_words, number, ALONE), AT_ALONE | np.uint64(number))
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
def _mend_all(flows, reached, begun, level, scarce, instant):
    """As `_mend`, and all that is known of the levels and stops brought up to that; `scarce`: capacities that were not short."""
    counts, lists, capacities = flows.counts, flows.lists, flows.capacities
    for at in range(counts[STAMPS]):
        which = lists[STAMPED_ONES, at]
        before = two(flows.capacity_words, which, BEFORE)
        put_two(flows.levels, which, 0, before)
        capacities[which, FILLED] = not is_same(before, NOWHERE)
    mended = _mend(flows, reached, begun, level, instant)
    for at in range(counts[REFILLS]):
        if not capacities[lists[REFILLED, at], FILLED]:
            put_two(flows.levels, lists[REFILLED, at], 0, NOWHERE)
    if not counts[TRIES]:
        return mended
    counts[ROUND] += 1
    for at in range(mended):
        sort_class(flows, lists[MENDED, at])
    for at in range(counts[MOVES]):
        sort_class(flows, lists[MOVED_ONES, at])
    for at in range(scarce):
        sort_users(flows, lists[SCARCE, at])
    for at in range(counts[REFILLS]):
        add_up(flows, lists[REFILLED, at])
    for at in range(counts[SPOILS]):
        if capacities[lists[SPOILT_ONES, at], SEEN] != counts[TICK]:
            add_up(flows, lists[SPOILT_ONES, at])
    return mended


@bare
def _regroup(flows, number, instant):
    """A class belongs to the group of what holds it back now."""
    classes = flows.classes
    was = classes[number, BOUND]
    bound = NOBODY
    if classes[number, MEMBERS] > 0:
        bound, _ = lowest(flows, number)
    if was != NOBODY:
        group = group_of(flows, number)
        if classes[number, TOUCHED]:
            mark(flows, group)
        if bound != was and flows.groups[group, FIRST] == number:
            flows.groups[group, FIRST] = SEARCH
            mark(flows, group)
    if bound == was:
        return
    received = service(flows, number, instant)
    classes[number, BOUND] = bound
    flows.lists[CHANGED, flows.counts[CHANGES]] = number
    flows.counts[CHANGES] += 1
    if bound == NOBODY:
        return
    group = group_of(flows, number)
    bring(flows, group, instant)
    put_three(flows.class_words, number, OFFSET, minus_product(received, three(flows.group_words, group, SERVICE), UNIT))


@bare
def _arrive(flows, number):
    """A class whose group is another, or whose members are, may be the first of its group to end."""
    if flows.classes[number, MEMBERS] == 0:
        return
    group = group_of(flows, number)
    first = flows.groups[group, FIRST]
    if first == SEARCH:
        return
    key = key_of(flows, number)
    if first < 0 or first == number or comes_before(key, three(flows.group_words, group, KEY)):
        flows.groups[group, FIRST] = number
        put_three(flows.group_words, group, KEY, key)
        mark(flows, group)


@bare
def _schedule(flows, group, instant):
    """Find when the first of a group ends; False if that is beyond an int64."""
    groups = flows.groups
    if groups[group, FIRST] == SEARCH:
        find_first(flows, group)
    level = level_of(flows, group)
    if groups[group, FIRST] < 0 or is_zero(level):
        set_due(groups, flows.due_heap, flows.counts, group, NONE)
        return True
    bring(flows, group, instant)
    left = minus_product(three(flows.group_words, group, KEY), three(flows.group_words, group, SERVICE), UNIT)
    time = divide(left, level)
    if time[1] != ZERO or time[0] >= np.uint64(LARGEST - instant):
        return False
    end = instant + np.int64(time[0])
    if less(plus_product(NIL, level, time), left):
        end += 1
    if end != groups[group, DUE]:
        set_due(groups, flows.due_heap, flows.counts, group, end)
    return True


@bare
def _take_over(flows, mended, instant):
    """Groups as the new levels say, and when each ends first; False if that is beyond an int64."""
    counts, lists = flows.counts, flows.lists
    for at in range(counts[TOUCHES]):
        _regroup(flows, lists[TOUCHED_CLASSES, at], instant)
    for at in range(counts[MOVES]):
        _regroup(flows, lists[MOVED_ONES, at], instant)
    for at in range(mended):
        _regroup(flows, lists[MENDED, at], instant)
    for at in range(counts[TOUCHES]):
        _arrive(flows, lists[TOUCHED_CLASSES, at])
    for at in range(counts[CHANGES]):
        _arrive(flows, lists[CHANGED, at])
    for at in range(counts[STAMPS]):
        which = lists[STAMPED_ONES, at]
        if not is_same(two(flows.levels, which, 0), two(flows.capacity_words, which, BEFORE)):
            mark(flows, which)
    fits = True
    for at in range(counts[MARKS]):
        fits = _schedule(flows, lists[MARKED_ONES, at], instant) and fits
    return fits


@bare
def settle(flows, instant):
    """Mend the paces as far as this instant's changes reach; False if an end is beyond an int64.

    CHANGED then lists the classes that something else holds back than before, STAMPED_ONES the capacities whose level may differ.
    """
    classes, counts, lists = flows.classes, flows.counts, flows.lists
    capacities, words = flows.capacities, flows.capacity_words
    full = (flows.full[0], flows.full[1], flows.full[2])
    for column in (CHANGES, REFILLS, STAMPS, SPOILS, MOVES, MARKS, CHECKS, QUEUED):
        counts[column] = 0
    counts[TICK] += 1
    counts[ROUND] += 1
    reached = slack = scarce = mended = 0
    solved = False
    level = NOWHERE  # of the touched classes, the lowest pace
    for at in range(counts[TOUCHES]):
        number = lists[TOUCHED_CLASSES, at]
        pace = pace_of(flows, number)
        if less(pace, level):
            level = pace
        for place in range(classes[number, FIRST_DRAW], classes[number, LAST_DRAW]):
            which = flows.draws[place]
            binds = less(full, three(words, which, DRAWN))
            if binds or capacities[which, BINDING]:
                lists[REACHED, reached] = which
                reached += 1
                solved = solved or binds
                if not binds:
                    lists[STOPPING, slack] = which
                    slack += 1
                elif not capacities[which, BINDING]:
                    lists[SCARCE, scarce] = which
                    scarce += 1
            capacities[which, BINDING] = binds
    count_touched(flows)
    if reached > 0:
        counts[SOLVES] += solved
        tried = counts[TRIES] != 0 and scarce == 0 and counts[TOUCHES] <= FEW
        if tried:
            for at in range(slack):
                release(flows, lists[STOPPING, at], instant)
        if not (tried and attempt(flows, instant)):
            mended = _mend_all(flows, reached, counts[MORE] == 0, level, scarce, instant)
    if not _take_over(flows, mended, instant):
        return False
    for at in range(counts[TOUCHES]):
        classes[lists[TOUCHED_CLASSES, at], TOUCHED] = 0
    counts[TOUCHES] = 0
    counts[MORE] = 0
    return True
