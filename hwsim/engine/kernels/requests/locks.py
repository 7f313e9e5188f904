"""Locks of services: strands wait in the order in which they came, and a group of them may go through together."""

from __future__ import annotations

from hwsim.engine.kernels.requests.calendar import go_on
from hwsim.engine.kernels.requests.rows import (
    ALONG,
    ALONG_COUNT,
    ALONG_TAIL,
    GROUP,
    HELD,
    LOCK_END,
    LOCK_HEAD,
    LOCK_RESOURCE,
    LOCK_TAIL,
    NOW,
    PC,
    RESOURCES,
    SINCE,
    TAKEN,
)
from hwsim.engine.kernels.stations import FOLLOWING, append
from hwsim.engine.kernels.words import NONE, bare


@bare
def let_go(state, strand, lock):
    """Strike a lock from those that a strand holds."""
    row, held = state.strands[strand], state.counts[RESOURCES]
    for place in range(held, held + row[HELD]):
        if state.waits[strand, place] == lock:
            for after in range(place + 1, held + row[HELD]):
                state.waits[strand, after - 1] = state.waits[strand, after]
            row[HELD] -= 1
            return


@bare
def give_back(state, number):
    """Free a lock, and give it to the strands next in line."""
    lock = state.services[number]
    lock[TAKEN] = 0
    strand = lock[ALONG]
    while strand >= 0:
        go_on(state, strand, state.strands[strand, PC])
        strand = state.strands[strand, FOLLOWING]
    lock[ALONG], lock[ALONG_TAIL], lock[ALONG_COUNT] = NONE, NONE, 0
    if lock[LOCK_HEAD] < 0:
        return
    lock[TAKEN] = 1
    first = _next_in_line(state, number)
    row = state.strands[first]
    state.waits[first, state.counts[RESOURCES] + row[HELD]] = number
    row[HELD] += 1
    while lock[LOCK_HEAD] >= 0 and lock[ALONG_COUNT] < lock[GROUP] - 1:
        follower = _next_in_line(state, number)
        member = state.strands[follower]
        member[PC], member[SINCE] = member[LOCK_END], state.counts[NOW]
        append(state.strands, lock, ALONG, ALONG_TAIL, follower)
        lock[ALONG_COUNT] += 1
    go_on(state, first, row[PC])


@bare
def _next_in_line(state, number):
    """Take the first strand out of the line of a lock."""
    lock = state.services[number]
    strand = lock[LOCK_HEAD]
    lock[LOCK_HEAD] = state.strands[strand, FOLLOWING]
    if lock[LOCK_HEAD] < 0:
        lock[LOCK_TAIL] = NONE
    state.waits[strand, lock[LOCK_RESOURCE]] += state.counts[NOW] - state.strands[strand, SINCE]
    return strand
