"""The longest path of `hwsim.engine.inorder` and the replay of `hwsim.engine.replay`, on columns."""

from __future__ import annotations

import numpy as np

from hwsim.engine.kernels import columns as col
from hwsim.engine.kernels.flows import join, leave
from hwsim.engine.kernels.notes import empty_notes, note, noted
from hwsim.engine.kernels.paces import LARGEST, settle
from hwsim.engine.kernels.queue import drop_least, push
from hwsim.engine.kernels.words import NONE, compiled, handle, spliced

DONE, TOO_FAR = 0, 1  # how a replay ended
SMALL = 24  # elements that are sorted by insertion


@spliced
def longest_path(first, follow, missing, fixed, start, end):
    """Start and end of every op that can start; -1 for the others. `missing` is used up, `start` begins as zeros."""
    count = fixed.size
    ready = np.empty(count, np.int32)
    top = 0
    for op in range(count - 1, -1, -1):
        if missing[op] == 0:
            ready[top] = op
            top += 1
    while top > 0:
        top -= 1
        op = ready[top]
        ends = start[op] + fixed[op]
        end[op] = ends
        for place in range(first[op], first[op + 1]):
            after = follow[place]
            if start[after] < ends:
                start[after] = ends
            missing[after] -= 1
            if missing[after] == 0:
                ready[top] = after
                top += 1
    for op in range(count):
        if end[op] < 0:
            start[op] = -1


@compiled
def sort(values, count):
    """The first `count` values, ascending."""
    if count > SMALL:
        for place in range(1, count):
            if values[place - 1] > values[place]:
                values[:count].sort()
                return
        return
    for place in range(1, count):
        value = values[place]
        to = place
        while to > 0 and values[to - 1] > value:
            values[to] = values[to - 1]
            to -= 1
        values[to] = value


@spliced
def replay(first, follow, missing, joins, fixed, take, give, free, start, end, granted, flow, flow_class, demands):
    """Play ops; how it ended, and the notes on paces as `noted` has them.

    `missing` and `free` are used up; start, end and granted are filled in.
    """
    count = fixed.size
    flows = handle(demands)
    notes = empty_notes(flows)
    pools = free.size
    times, codes = np.empty(count + 1, np.int64), np.empty(count + 1, np.int32)
    size = 0
    ready, retired, freed = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    behind = np.empty(count, np.int32)  # who waits behind an op for the same pool
    head, tail = np.full(pools, NONE, np.int32), np.full(pools, NONE, np.int32)
    readied = 0
    for op in range(count):
        if missing[op] == 0:
            ready[readied] = op
            readied += 1
    instant = 0
    while True:
        over = 0
        while size > 0 and times[0] <= instant:
            op = codes[0]
            drop_least(times, codes, size)
            size -= 1
            if flow_class[op] >= 0:
                join(flows, flow_class[op], op, flow[op], instant)
            else:
                retired[over] = op
                over += 1
        while flows.counts[col.DUES] > 0 and flows.groups[flows.due_heap[0], col.DUE] <= instant:
            over = leave(flows, flows.due_heap[0], instant, retired, over)
        given = 0
        for place in range(over):
            op = retired[place]
            end[op] = instant
            for at in range(first[op], first[op + 1]):
                after = follow[at]
                missing[after] -= 1
                if missing[after] == 0:
                    ready[readied] = after
                    readied += 1
            if give[op] >= 0:
                freed[given] = op
                given += 1
        kept = place = 0
        while place < readied:  # joins end at once, and what they make ready comes after
            op = ready[place]
            place += 1
            if not joins[op]:
                ready[kept] = op
                kept += 1
                continue
            start[op] = instant
            end[op] = instant
            for at in range(first[op], first[op + 1]):
                after = follow[at]
                missing[after] -= 1
                if missing[after] == 0:
                    ready[readied] = after
                    readied += 1
        sort(ready, kept)
        sort(freed, given)
        for place in range(given):
            op = freed[place]
            pool = give[op]
            heir = head[pool]
            if heir < 0:
                free[pool] += 1
                continue
            head[pool] = behind[heir]
            granted[heir] = op
            start[heir] = instant
            if fixed[heir] == 0 and flow_class[heir] >= 0:
                join(flows, flow_class[heir], heir, flow[heir], instant)
            else:
                if fixed[heir] > LARGEST - instant:
                    return TOO_FAR, noted(notes)
                push(times, codes, size, instant + fixed[heir], heir)
                size += 1
        for place in range(kept):
            op = ready[place]
            pool = take[op]
            if pool >= 0:
                if free[pool] == 0:
                    behind[op] = NONE
                    if head[pool] < 0:
                        head[pool] = op
                    else:
                        behind[tail[pool]] = op
                    tail[pool] = op
                    continue
                free[pool] -= 1
            start[op] = instant
            if fixed[op] == 0 and flow_class[op] >= 0:
                join(flows, flow_class[op], op, flow[op], instant)
            else:
                if fixed[op] > LARGEST - instant:
                    return TOO_FAR, noted(notes)
                push(times, codes, size, instant + fixed[op], op)
                size += 1
        readied = 0
        if size > 0 and times[0] <= instant:
            continue
        if flows.counts[col.TOUCHES] > 0:
            if not settle(flows, instant):
                return TOO_FAR, noted(notes)
            notes = note(notes, flows, instant)
        due = flows.counts[col.DUES] > 0
        if size == 0 and not due:
            return DONE, noted(notes)
        instant = flows.groups[flows.due_heap[0], col.DUE] if due else times[0]
        if size > 0 and times[0] < instant:
            instant = times[0]
