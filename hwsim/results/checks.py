"""What must hold of every result, whoever made it: steady, folded, compiled, served, in request twins or in rows of a sweep.

In columns: no op is visited in Python.  What each op took, and that it was served in full, is checked where it is played
(`hwsim.engine.verdict`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hwsim.invariants import numbers, refuse
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO

ROUNDING = 1e-9  # of a quantity worked out in floats
PER_OP = 2  # fs by which rounding can make an op shorter than what it draws takes: of its fixed and of its flowing part


def check(result: Result) -> None:
    """Check a run.

    Raises:
        BrokenInvariant: with what does not hold.
    """
    refuse(breaches(result))


def breaches(result: Result) -> Iterator[str]:
    """All that does not hold, in words."""
    yield from _times(result)
    yield from _usage(result)
    yield from _memory(result)
    yield from _steady(result)
    for name in ("serving", "requests", "jobs", "trainings"):
        yield from numbers(getattr(result, name), name)


def _times(result: Result) -> Iterator[str]:
    timeline = result.timeline
    start, end = timeline.start, timeline.end
    if not len(end):
        return
    if start.dtype != end.dtype:
        yield f"starts are {start.dtype}, ends {end.dtype}"
    # every end is a stored sum of terms that are not negative: if one wrapped, it is negative
    if start.min() < 0 or not (end >= start).all():
        yield "an op starts before 0, or ends before it starts"
    makespan = timeline.makespan * (1 + ROUNDING)
    for job in result.jobs:
        if not 0 <= job.start_s <= job.end_s * (1 + ROUNDING) or (job.end_s > makespan and job.end_s > job.start_s):
            yield f"job '{job.name}' runs from {job.start_s} to {job.end_s} s of {timeline.makespan} s"


def _usage(result: Result) -> Iterator[str]:
    """Nothing is busy longer than the run, used beyond what there is, or moves more than its rate allows in that time."""
    timeline = result.timeline
    makespan = timeline.makespan_fs
    offered = {each.name: each for each in timeline.flat.graph.capacities}
    rounded = PER_OP * len(timeline) / max(1, makespan)
    for row in result.usage:
        own = offered[row.capacity]
        slack = ROUNDING + rounded * max(1.0, 1.0 / own.rate if own.unit == "s" else 1.0)
        if not 0 <= row.busy_fs <= makespan:
            yield f"{row.capacity} is busy for {row.busy_s} s of {makespan / FEMTO} s"
        if not 0 <= row.utilisation <= 1 + slack:
            yield f"{row.capacity} is used to {100 * row.utilisation:.6g} %"
        if not (row.moved >= 0 and math.isfinite(row.moved)):
            yield f"{row.capacity} moved {row.moved} {row.unit}"
        if row.busy_fs == 0 and row.utilisation > slack:
            yield f"{row.capacity} is used to {100 * row.utilisation:.6g} % and never busy"
        if row.unit == own.unit and row.moved > own.rate * (row.busy_s * (1 + ROUNDING) + PER_OP * len(timeline) / FEMTO):
            yield f"{row.capacity} moved {row.moved:.6g} {row.unit} in {row.busy_s} s, at a rate of {own.rate:.6g} a second"


def _memory(result: Result) -> Iterator[str]:
    """No device holds less than nothing, or at its peak another amount than its values."""
    for each in result.memory:
        if not len(each.taken):
            continue
        if each.taken.min() < 0:
            yield f"{each.device} holds {each.taken.min()} B"
        values = sum(one.bytes for one in each.holds)  # whole
        if each.peak < 0 or values != each.peak:
            yield f"{each.device} holds {each.peak} B at its peak, its values {values} B"
        if each.at_fs > result.timeline.makespan_fs:
            yield f"{each.device} is fullest after the end of the run"


def _steady(result: Result) -> Iterator[str]:
    """A loop written out takes as long as its iterations."""
    steady = result.steady
    if steady is not None and steady.period:
        rest = steady.times - steady.simulated
        if result.timeline.makespan_fs < rest // steady.turns * steady.period:
            whole = result.timeline.makespan_fs
            yield f"{rest:,} iterations, {steady.turns} of them every {steady.period} fs, take longer than the run of {whole} fs"


def adds_up(times_fs: Sequence[int], makespan_fs: int, what: str) -> Iterator[str]:
    """Parts of a run add up to it."""
    total = sum(times_fs)  # whole
    if min(times_fs, default=0) < 0 or total != makespan_fs:
        yield f"{what} add up to {total} fs, the run takes {makespan_fs} fs"
