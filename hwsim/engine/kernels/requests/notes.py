"""Notes of a service: requests and waiting requests over time, in windows, and each answer."""

from __future__ import annotations

from hwsim.engine.kernels.requests.rows import (
    ANSWER_WIDTH,
    ANSWERS,
    AREA,
    BEGAN,
    CHOICE,
    DROPPED,
    EDGE,
    ENDED,
    ENTERED,
    FAILED,
    FAILED_COUNT,
    FIRST_CAME,
    GONE,
    HERE,
    LAST,
    LINE_AREA,
    LINE_LAST,
    LINE_LENGTH,
    LINE_MOST,
    MOST,
    MOST_WINDOWS,
    NOW,
    REFUSED,
    RESOURCES,
    SERVICE,
    STAY,
    WAS_DROPPED,
    WAS_REFUSED,
    WASTED,
    WHY,
    WINDOW,
    WINDOWS,
    WINDOWS_AT,
)
from hwsim.engine.kernels.words import bare, plus_product, put_three, three, wide


@bare
def _close_windows(state, service):
    """Close the windows that end at this instant or earlier."""
    row, words, instant = state.services[service], state.words, state.counts[NOW]
    while instant >= row[EDGE]:
        edge = row[EDGE]
        put_three(words, service, AREA, plus_product(three(words, service, AREA), wide(row[HERE]), wide(edge - row[LAST])))
        put_three(
            words, service, LINE_AREA,
            plus_product(three(words, service, LINE_AREA), wide(row[LINE_LENGTH]), wide(edge - row[LINE_LAST])),
        )  # fmt: skip
        row[LAST], row[LINE_LAST] = edge, edge
        first = row[WINDOWS_AT]
        put_three(words, first + row[WINDOWS] - 1, 0, three(words, service, AREA))
        put_three(words, first + row[WINDOWS] - 1, 3, three(words, service, LINE_AREA))
        if row[WINDOWS] == MOST_WINDOWS:
            for at in range(MOST_WINDOWS // 2):
                put_three(words, first + at, 0, three(words, first + 2 * at + 1, 0))
                put_three(words, first + at, 3, three(words, first + 2 * at + 1, 3))
            row[WINDOWS] = MOST_WINDOWS // 2
            row[WINDOW] *= 2
        row[WINDOWS] += 1
        row[EDGE] = row[WINDOWS] * row[WINDOW]


@bare
def count_requests(state, service, change):
    """Note that a request has come (change: 1) or left (-1)."""
    row, words, instant = state.services[service], state.words, state.counts[NOW]
    if instant >= row[EDGE]:
        _close_windows(state, service)
    put_three(words, service, AREA, plus_product(three(words, service, AREA), wide(row[HERE]), wide(instant - row[LAST])))
    row[LAST] = instant
    row[HERE] += change
    if change > 0:
        row[ENTERED] += 1
        if row[FIRST_CAME] < 0:
            row[FIRST_CAME] = instant
        if row[HERE] > row[MOST]:
            row[MOST] = row[HERE]
    else:
        row[ENDED] = instant


@bare
def count_line(state, service, change):
    """Note that the line has become longer (change: 1) or shorter (-1)."""
    row, words, instant = state.services[service], state.words, state.counts[NOW]
    if instant >= row[EDGE]:
        _close_windows(state, service)
    put_three(
        words, service, LINE_AREA,
        plus_product(three(words, service, LINE_AREA), wide(row[LINE_LENGTH]), wide(instant - row[LINE_LAST])),
    )  # fmt: skip
    row[LINE_LAST] = instant
    row[LINE_LENGTH] += change
    if row[LINE_LENGTH] > row[LINE_MOST]:
        row[LINE_MOST] = row[LINE_LENGTH]


@bare
def note_end(state, strand):
    """Note that a request has left."""
    row, counts = state.strands[strand], state.counts
    service, instant = row[SERVICE], counts[NOW]
    count_requests(state, service, -1)
    took = instant - row[BEGAN]
    words, notes = state.words, state.services[service]
    put_three(words, service, STAY, plus_product(three(words, service, STAY), wide(1), wide(took)))
    if row[FAILED] != 0:
        if row[WHY] == WAS_REFUSED:
            notes[REFUSED] += 1
        elif row[WHY] == WAS_DROPPED:
            notes[DROPPED] += 1
        else:
            notes[FAILED_COUNT] += 1
    elif row[GONE] != 0:
        notes[WASTED] += 1
    else:
        at = counts[ANSWERS]
        counts[ANSWERS] += 1
        answer = state.answers[at]
        answer[0], answer[1], answer[2], answer[3] = service, instant, took, row[CHOICE]
        for resource in range(counts[RESOURCES]):
            answer[ANSWER_WIDTH + resource] = state.waits[strand, resource]
