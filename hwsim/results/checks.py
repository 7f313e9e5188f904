"""Consistency checks of a result, whichever engine produced it: folded, compiled, served, by request, or a row of a sweep.

The checks work on columns: no op is visited in Python. The engine itself checks the time of each op and its full service
(`hwsim.engine.verdict`). `notes` adds warnings to a result that is correct but needs one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hwsim.formats import format_quantity, percent
from hwsim.results.coverage import coverage
from hwsim.results.invariants import BrokenInvariant, numbers, raise_violations
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.spec import Place, SpecError, Warning
from hwsim.ticks import FEMTO

ROUNDING = 1e-9  # relative rounding error of a sum of floats
PER_OP = 2  # fs by which rounding can shorten an op: one each for its fixed and its flowing part


def check(result: Result, graph: str = "") -> None:
    """Raise an error if the result contradicts itself.

    Args:
        result: result.
        graph: file of the op graph that was simulated; "" for a workload. A file may itself be inconsistent.

    Raises:
        BrokenInvariant: the result is inconsistent; with the violations in words.
        SpecError: the result of a graph file is inconsistent.
    """
    try:
        raise_violations(violations(result))
    except BrokenInvariant as error:
        if not graph:
            raise
        raise SpecError.of(Place(graph, 0, 0), f"the op graph contradicts itself: {error}") from error


def violations(result: Result) -> Iterator[str]:
    """Yield the violations in words."""
    yield from _times(result)
    yield from _usage(result)
    yield from _memory(result)
    for told in result.told.values():
        yield from told.violations()
    for name in ("requests", "jobs"):
        if values := getattr(result, name):
            yield from numbers(values, name)


def _times(result: Result) -> Iterator[str]:
    timeline = result.simulated
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
    """Yield capacities that are busy longer than the run, used beyond their rate, or move more than the rate allows."""
    timeline = result.simulated
    makespan = timeline.makespan_fs
    offered = {capacity.name: capacity for capacity in timeline.flat.graph.capacities}
    rounded = PER_OP * len(timeline) / max(1, makespan)
    for row in result.usage:
        if row.capacity not in offered:  # of a represented rank: its numbers are those of its representative
            continue
        capacity = offered[row.capacity]
        slack = ROUNDING + rounded * max(1.0, 1.0 / capacity.rate if capacity.unit == "s" else 1.0)
        if not 0 <= row.busy_fs <= makespan:
            yield f"{row.capacity} is busy for {row.busy_s} s of {makespan / FEMTO} s"
        if not 0 <= row.utilization <= 1 + slack:
            yield f"{row.capacity} is used to {percent(row.utilization, '.6g')}"
        if not (row.moved >= 0 and math.isfinite(row.moved)):
            yield f"{row.capacity} moved {row.moved} {row.unit}"
        if row.busy_fs == 0 and row.utilization > slack:
            yield f"{row.capacity} is used to {percent(row.utilization, '.6g')} and never busy"
        if row.unit == capacity.unit and row.moved > capacity.rate * (
            row.busy_s * (1 + ROUNDING) + PER_OP * len(timeline) / FEMTO
        ):
            yield f"{row.capacity} moved {row.moved:.6g} {row.unit} in {row.busy_s} s, at a rate of {capacity.rate:.6g} a second"


def _memory(result: Result) -> Iterator[str]:
    """Yield devices with a negative amount of memory in use, or with a peak that differs from the sum of their values."""
    for device in result.memory:
        if not len(device.taken):
            continue
        if device.taken.min() < 0:
            yield f"{device.device} holds {device.taken.min()} B"
        values = sum(holding.bytes for holding in device.allocations)  # integers
        if device.peak < 0 or values != device.peak:
            yield f"{device.device} holds {device.peak} B at its peak, its values {values} B"
        if device.at_fs > result.simulated.makespan_fs:
            yield f"{device.device} is fullest after the end of the run"


def adds_up(times_fs: Sequence[int], makespan_fs: int, name: str) -> Iterator[str]:
    """Yield a breach if parts of a run do not add up to it.

    Args:
        times_fs: times of the parts (fs).
        makespan_fs: time of the run (fs).
        what: name of the parts.
    """
    total = sum(times_fs)  # integers
    if min(times_fs, default=0) < 0 or total != makespan_fs:
        yield f"{name} add up to {total} fs, the run takes {makespan_fs} fs"


def notes(timeline: Timeline) -> Iterator[Warning]:
    """Yield warnings of a run."""
    covered = coverage(timeline)
    if covered is not None and covered.doubtful:
        share = format_quantity(covered.uncalibrated + covered.extrapolated + covered.related, "%", 3)
        yield Warning("not-calibrated", f"{share} of the time of ops is not measured on this machine: the result may be far off")
