"""The calendar of a run: timers as a heap, strands that go on at this instant, and strands that begin and end."""

from __future__ import annotations

from hwsim.engine.kernels.requests.rows import (
    BEGAN,
    CALLER,
    CHOICE,
    FREE_ROW,
    FREE_STRANDS,
    FREE_TIMERS,
    MAIN,
    NOW,
    READY,
    READY_HEAD,
    RESOURCE,
    ROOT,
    SERVICE,
    SET,
    STRAND_WIDTH,
    TIMER_KIND,
    TIMERS,
    VISIT,
)
from hwsim.engine.kernels.stations import FREE_LIST, READY_STEPS, READY_STRANDS
from hwsim.engine.kernels.words import NONE, bare


@bare
def set_timer(state, time, kind, first, second, third, fourth):
    """Set a timer; False if it is beyond an int64."""
    counts, timers = state.counts, state.timers
    counts[SET] += 1
    counts[FREE_TIMERS] -= 1
    row = timers[counts[FREE_TIMERS], FREE_ROW]
    of = timers[row]
    of[TIMER_KIND], of[TIMER_KIND + 1], of[TIMER_KIND + 2], of[TIMER_KIND + 3], of[TIMER_KIND + 4] = (
        kind,
        first,
        second,
        third,
        fourth,
    )
    number, place = counts[SET], counts[TIMERS]
    counts[TIMERS] += 1
    while place > 0:
        above = (place - 1) >> 1
        if timers[above, 0] < time or (timers[above, 0] == time and timers[above, 1] < number):
            break
        timers[place, 0], timers[place, 1], timers[place, 2] = timers[above, 0], timers[above, 1], timers[above, 2]
        place = above
    timers[place, 0], timers[place, 1], timers[place, 2] = time, number, row


@bare
def drop_timer(state):
    """Take the first timer out of the heap and return its row."""
    counts, timers = state.counts, state.timers
    first_row = timers[0, 2]
    counts[TIMERS] -= 1
    last = counts[TIMERS]
    time, number, row = timers[last, 0], timers[last, 1], timers[last, 2]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        right = below + 1
        if right < last and (
            timers[right, 0] < timers[below, 0] or (timers[right, 0] == timers[below, 0] and timers[right, 1] < timers[below, 1])
        ):
            below = right
        if timers[below, 0] > time or (timers[below, 0] == time and timers[below, 1] > number):
            break
        timers[place, 0], timers[place, 1], timers[place, 2] = timers[below, 0], timers[below, 1], timers[below, 2]
        place = below
    timers[place, 0], timers[place, 1], timers[place, 2] = time, number, row
    timers[counts[FREE_TIMERS], FREE_ROW] = first_row
    counts[FREE_TIMERS] += 1
    return first_row


@bare
def go_on(state, strand, step):
    """Let a strand go on at a step, in its turn of this instant."""
    counts = state.counts
    at = (counts[READY_HEAD] + counts[READY]) % state.lists.shape[1]
    state.lists[READY_STRANDS, at], state.lists[READY_STEPS, at] = strand, step
    counts[READY] += 1


@bare
def new_strand(state, service, root, visit):
    """Begin a strand of a request and return its number."""
    counts = state.counts
    counts[FREE_STRANDS] -= 1
    strand = state.lists[FREE_LIST, counts[FREE_STRANDS]]
    row = state.strands[strand]
    for column in range(STRAND_WIDTH):
        row[column] = 0
    row[SERVICE], row[ROOT], row[VISIT], row[BEGAN] = service, root, visit, counts[NOW]
    row[MAIN], row[CALLER], row[CHOICE], row[RESOURCE] = strand, NONE, NONE, NONE
    for column in range(state.waits.shape[1]):
        state.waits[strand, column] = 0
    return strand


@bare
def forget(state, strand):
    """Free the row of a strand."""
    state.lists[FREE_LIST, state.counts[FREE_STRANDS]] = strand
    state.counts[FREE_STRANDS] += 1
