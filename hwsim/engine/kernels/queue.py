"""Binary heaps: of events by level, and of whatever by time or by a rounded level; the lowest first."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels import columns as col
from hwsim.engine.kernels.words import bare

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
def expect(queue, counts, level, code):
    """Into the queue of what may happen."""
    low, high = level[0], level[1]
    place = counts[col.QUEUED]
    counts[col.QUEUED] += 1
    while place > 0:
        above = (place - 1) >> 1
        if not _precedes(low, high, code, queue, above):
            break
        queue[place, 0], queue[place, 1], queue[place, 2] = queue[above, 0], queue[above, 1], queue[above, 2]
        place = above
    queue[place, 0], queue[place, 1], queue[place, 2] = low, high, code


@bare
def drop_first(queue, counts):
    """The first out of the queue."""
    counts[col.QUEUED] -= 1
    last = counts[col.QUEUED]
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
def push(times, codes, size, time, code):
    """Into a binary heap; its size is then one more."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if times[above] <= time:
            break
        times[place] = times[above]
        codes[place] = codes[above]
        place = above
    times[place] = time
    codes[place] = code


@bare
def drop_least(times, codes, size):
    """Out of a binary heap of `size`, which is one more than it has afterwards."""
    last = size - 1
    time, code = times[last], codes[last]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[place] = times[below]
        codes[place] = codes[below]
        place = below
    times[place] = time
    codes[place] = code
