"""Fit of a GPU's memory and L2 to arrays that are read or written repeatedly.

    seconds = start + hits x traffic / L2 + (1 - hits) x traffic / memory

L2 and memory have separate bandwidths for reads, copies and writes. The hit rate decreases linearly between working sets of
`full` and `none` bytes, as in `hwsim.devices.gpu_access`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hwsim_calibrate.fit.least_squares import Floats, Problem, solve
from hwsim_calibrate.store import Row

STEP: Final = 1e-4  # for numerical derivatives
MIN_SIZES: Final = 6  # for a fit
KINDS: Final = ("read", "copy", "write")


def numeric(seconds: Callable[[Floats], Floats]) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return a function of the times and their numerical derivatives."""

    def times(x: Floats) -> tuple[Floats, Floats]:
        value = seconds(x)
        return value, np.stack([(seconds(x + STEP * unit) - value) / STEP for unit in np.eye(len(x))], axis=1)

    return times


def hits(size: Floats, full: float, none: float) -> Floats:
    """Return the hit rate of working sets (bytes) in a cache."""
    return np.asarray(np.clip((none - size) / max(none - full, 1.0), 0.0, 1.0), np.float64)


@dataclass(frozen=True, slots=True)
class FittedMemory:
    """Fitted memory and L2 of a GPU.

    Args:
        memory: kind of access (`KINDS`) -> memory bandwidth (B/s).
        l2: kind of access -> L2 bandwidth (B/s).
        full: working set up to which all accesses hit the L2 (bytes).
        none: working set from which no access hits the L2 (bytes).
        start: time of a kernel before its traffic (s).
        points: number of rows.
    """

    memory: dict[str, float]
    l2: dict[str, float]
    full: float
    none: float
    start: float
    points: int


def fit_memory(rows: Sequence[Row], empty: float) -> FittedMemory | None:
    """Fit the rows `copy`, `triad`, `read` and `write`; return None with too few rows.

    Args:
        rows: rows of memory cases.
        empty: time of an empty kernel (s), which is fitted as one more row.
    """
    if len({row.work.reads + row.work.writes for row in rows if row.op == "copy"}) < MIN_SIZES:
        return None
    reads, writes = np.array([row.work.reads for row in rows]), np.array([row.work.writes for row in rows])
    measured = np.array([row.quiet for row in rows])
    size, more = reads + writes, np.array([row.op == "read" for row in rows])
    kinds = np.stack([np.maximum(reads - writes, 0.0), 2.0 * np.minimum(reads, writes), np.maximum(writes - reads, 0.0)], axis=1)
    far = size[size >= 0.5 * size.max()] / measured[size >= 0.5 * size.max()]
    memory = float(np.median(far))
    fastest = max(float((size / measured).max()), 1.01 * memory)
    late = size[(size / measured) < math.sqrt(memory * fastest)]
    late = late[late > size[(size / measured).argmax()]]
    edge = float(late.min()) if len(late) else 40e6

    def seconds(x: Floats) -> Floats:
        value = np.exp(x)
        held = hits(size, value[6], value[6] * (1.0 + value[7]))
        moved = held * (kinds @ value[3:6]) + (1.0 - held) * (kinds @ value[:3])
        return np.asarray([*(moved + value[8] + more * value[9]), value[8]], np.float64)

    start = np.log([*[1.0 / memory] * 3, *[1.0 / fastest] * 3, 0.8 * edge, 0.7, empty, empty])
    spread = np.array([*[0.5] * 6, 0.7, 0.7, 1.0, 2.0])
    trials = []
    for shift in (-0.5, 0.0, 0.5):  # several starts, because a ramp between two sizes has no gradient
        guess = start.copy()
        guess[6] += shift
        problem = Problem(numeric(seconds), np.array([*measured, empty]), guess, spread, np.ones(len(rows) + 1))
        x = solve(problem, steps=100)
        trials.append((float(np.abs(np.log(seconds(x)[:-1] / measured)).mean()), x))
    x = min(trials, key=lambda trial: trial[0])[1]
    value = [float(number) for number in np.exp(x)]
    rate = [dict(zip(KINDS, (1.0 / pace for pace in value[low : low + 3]), strict=True)) for low in (0, 3)]
    present = [kind for index, kind in enumerate(KINDS) if kinds[:, index].any()]
    away, near = ({kind: rates[kind] for kind in present} for rates in rate)
    return FittedMemory(away, near, value[6], value[6] * (1.0 + value[7]), value[8], len(rows))
