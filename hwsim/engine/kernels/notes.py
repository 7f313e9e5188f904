"""Notes on the paces of a run: which capacity holds a class back from when on, and the levels of full capacities.

The pace of a class is the level of what holds it back. One coming or going changes many paces, fewer levels, and what holds
back of hardly any class; so notes of these two need a hundredth of the room.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hwsim.engine.kernels import columns as col
from hwsim.engine.kernels.words import compiled, is_same, put_two, two

BOUNDS, SOLVES, LEVELS = range(3)


class Notes(NamedTuple):
    """Rows so far, of tables that have room for more."""

    counts: np.ndarray  # rows of each
    bounds: np.ndarray  # fs, class, and what holds it back from then on
    solves: np.ndarray  # fs, first of its rows of levels
    filled: np.ndarray  # capacity
    levels: np.ndarray  # at which it is full from then on; two words


@compiled
def empty_notes(flows):
    """No rows yet."""
    many = 2 * flows.classes.shape[0]
    return Notes(
        np.zeros(3, np.int64),
        np.empty((many, 3), np.int64),
        np.empty((many, 2), np.int64),
        np.empty(many, np.int32),
        np.empty((many, 2), np.uint64),
    )


@compiled
def _longer(rows, used, wanted):
    """A table with room for as many rows."""
    if wanted <= rows.shape[0]:
        return rows
    longer = np.empty((max(wanted, rows.shape[0] + (rows.shape[0] >> 1)), rows.shape[1]), rows.dtype)
    for row in range(used):  # to copy a slice, numba compiles the words of its errors, too
        for column in range(rows.shape[1]):
            longer[row, column] = rows[row, column]
    return longer


@compiled
def note(notes, flows, instant):
    """Add what the last settling changed."""
    counts, fills = notes.counts, flows.counts[col.STAMPS]
    bounds = _longer(notes.bounds, counts[BOUNDS], counts[BOUNDS] + flows.counts[col.CHANGES])
    solves = _longer(notes.solves, counts[SOLVES], counts[SOLVES] + 1)
    filled, levels = notes.filled, notes.levels
    if counts[LEVELS] + fills > filled.size:
        filled = np.empty(max(counts[LEVELS] + fills, filled.size + (filled.size >> 1)), np.int32)
        for row in range(counts[LEVELS]):
            filled[row] = notes.filled[row]
        levels = _longer(levels, counts[LEVELS], filled.size)
    for at in range(flows.counts[col.CHANGES]):
        number = flows.lists[col.CHANGED, at]
        row = counts[BOUNDS]
        bounds[row, 0], bounds[row, 1], bounds[row, 2] = instant, number, flows.classes[number, col.BOUND]
        counts[BOUNDS] += 1
    begin = counts[LEVELS]
    for at in range(fills):
        which = flows.lists[col.STAMPED_ONES, at]
        level = two(flows.levels, which, 0)
        if not flows.capacities[which, col.FILLED] or is_same(level, two(flows.capacity_words, which, col.NOTED)):
            continue
        put_two(flows.capacity_words, which, col.NOTED, level)
        filled[counts[LEVELS]] = which
        put_two(levels, counts[LEVELS], 0, level)
        counts[LEVELS] += 1
    if counts[LEVELS] > begin:
        solves[counts[SOLVES], 0], solves[counts[SOLVES], 1] = instant, begin
        counts[SOLVES] += 1
    return Notes(counts, bounds, solves, filled, levels)


@compiled
def noted(notes):
    """The rows alone."""
    bounds, solves, levels = notes.counts[BOUNDS], notes.counts[SOLVES], notes.counts[LEVELS]
    return notes.bounds[:bounds], notes.solves[:solves], notes.filled[:levels], notes.levels[:levels]
