"""The critical path with equal steps joined, and repeated rounds of steps joined.

add (dispatch)                     a run of one step, once add x 1000                         a thousand consecutive ops 1000 x
(dispatch, add, return)     a round of three steps, a thousand times
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.graph.opgraph import Ints, Label, OpGraph
from hwsim.records import dataclass
from hwsim.results.cause import Cause
from hwsim.results.critical import CriticalPath
from hwsim.results.timeline import Timeline

LONGEST: Final = 12  # largest number of steps of a round


@dataclass(frozen=True, slots=True)
class PathStep:
    """Consecutive ops of one label with one cause.

    Args:
        label: label.
        cause: cause.
        ops: number of ops.
        time_fs: total time (fs).
    """

    label: Label
    cause: Cause
    ops: int
    time_fs: int


@dataclass(frozen=True, slots=True)
class StepRound:
    """A round of steps, repeated; each step has the sums over all repetitions.

    Args:
        start_fs, end_fs: start and end (fs).
        times: number of repetitions.
        steps: steps.
    """

    start_fs: int
    end_fs: int
    times: int
    steps: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class _Equal:
    """Parts of the critical path with one label and one cause, as columns."""

    code: Ints
    start: Ints
    end: Ints
    took: Ints
    ops: Ints


def runs(timeline: Timeline, path: CriticalPath) -> tuple[StepRound, ...]:
    """Return the joined path in order of time; the times add up to the makespan."""
    return tuple(_runs(timeline, path)) if len(path) else ()


def _runs(timeline: Timeline, path: CriticalPath) -> Iterator[StepRound]:
    rows, causes = _stretches(timeline, path), len(path.causes)
    repeats = _repeats(rows.code)
    index = 0
    while index < len(rows.code):
        period, times = 1, 1
        for length, reach in repeats.items():
            count = 1 + int(reach[index]) // length if index < len(reach) else 1
            if count > 1 and count * length > period * times:
                period, times = length, count
        until = index + period * times
        steps = tuple(
            _step(timeline.flat.graph, path, int(rows.code[first]), causes, rows, slice(first, until, period))
            for first in range(index, index + period)
        )
        yield StepRound(int(rows.start[index]), int(rows.end[until - 1]), times, steps)
        index = until


def _step(graph: OpGraph, path: CriticalPath, code: int, causes: int, rows: _Equal, which: slice) -> PathStep:
    label, cause = divmod(code, causes)
    return PathStep(graph.labels[label], path.causes[cause], int(rows.ops[which].sum()), ticks.total(rows.took[which]))


def _stretches(timeline: Timeline, path: CriticalPath) -> _Equal:
    code = timeline.flat.label[path.op].astype(np.int64) * len(path.causes) + path.cause
    heads = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))
    tails = np.concatenate([heads[1:], [len(code)]])
    begins = np.concatenate([[True], path.op[1:] != path.op[:-1]])
    begins[heads] = True
    ops = np.add.reduceat(begins.astype(np.int64), heads)  # count
    took = ticks.group_totals(path.end - path.start, heads)
    return _Equal(code[heads], path.start[heads], path.end[tails - 1], took, ops)


def _repeats(code: Ints) -> dict[int, Ints]:
    """Return by length of a round: from each index on, the number of entries equal to those one round later."""
    repeats = {}
    for length in range(2, min(LONGEST, len(code) // 2) + 1):
        same = code[length:] == code[:-length]
        place = np.arange(len(same))
        ends = np.where(same, len(same), place)
        repeats[length] = np.minimum.accumulate(ends[::-1])[::-1] - place
    return repeats
