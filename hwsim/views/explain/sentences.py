"""Sentences that explain a run, from its activities and what-if changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hwsim.formats import format_quantity, format_share
from hwsim.results.activities import Activities, Activity
from hwsim.results.bound import GIVEN, words
from hwsim.views.explain.derivation import seconds
from hwsim.views.explain.measure import TIMES, ServiceMeasure
from hwsim.views.explain.what_if import TriedChanges, WhatIf

SMALL: Final = 0.005  # least share of the run for a sentence
SHOWN: Final = 4  # largest number of activities with a sentence
HELP: Final = 1.01  # least speedup of a helpful change
NONE: Final = "No op takes any time."


def sentences(makespan_s: float, done: Activities, tried: TriedChanges | None = None) -> tuple[str, ...]:
    """Return sentences on the longest activities, their bounds and overlap, and on the most helpful change."""
    return tuple(_sentences(makespan_s, done, tried)) if makespan_s and done.rows else (NONE,)


def _sentences(makespan_s: float, done: Activities, tried: TriedChanges | None) -> Iterator[str]:
    worth = [row for row in done.rows if max(row.path_s, row.overlapped_s) >= SMALL * makespan_s]
    for row in worth[:SHOWN] or done.rows[:1]:
        yield _sentence(row, makespan_s, done)
    if tried is not None and tried.measure is not None:
        yield from _of_service(tried, tried.measure)
    elif tried is not None and tried.rows:
        yield _help(tried.rows[0], done)


def _sentence(row: Activity, makespan_s: float, done: Activities) -> str:
    """Return a sentence on an activity: its time, its time on the critical path, and its bounds."""
    name = f"`{row.name}`" if done.of_ops else f"{row.name[:1].upper()}{row.name[1:]}"
    share = f" ({format_share(row.share)})"
    if row.share > 1.0 - 1e-9:
        return f"{name} takes all {_time(makespan_s)}{_bound(row)}."
    if row.path_s <= 0:
        return f"{name} takes {_time(row.total_s)}, all of it overlapped with other work."
    if row.overlapped_s < SMALL * row.total_s:
        return f"{name} takes {_time(row.path_s)}{share}{_bound(row)}."
    if row.once in ("first", "last"):
        return f"{name} takes {_time(row.total_s)}; all but the {row.once} {_time(row.path_s)}{share} overlaps with other work."
    overlapped = f"{_time(row.overlapped_s)} overlap with other work"
    bound = _bound(row) if row == done.rows[0] else ""
    return f"{name} takes {_time(row.total_s)}: {overlapped}, {_time(row.path_s)}{share} do not{bound}."


def _bound(row: Activity) -> str:
    bound = words(list(row.bounds))
    if not bound or (row.bound is not None and row.bound.term == row.name):
        return ""
    return f", a {GIVEN}" if bound == GIVEN else f", bound by {bound}"


def bound_after(change: WhatIf, done: Activities) -> str:
    """Return what bounds most of the run after a change; "" if it is unknown."""
    before = [part.bound for part in done.parts[:1]]
    return f"; {'still' if change.bound in before else 'then'} bound by {change.bound.full}" if change.bound else ""


def _help(best: WhatIf, done: Activities) -> str:
    if best.makespan_s is None or best.speedup < HELP:
        return "Doubling any single parameter makes the run less than 1 % faster."
    at_once = " (only together)" if best.combined else " (hypothetical)" if best.hypothetical else ""
    gain = f"{_time(best.makespan_s)}, {best.speedup:.2f}x faster{bound_after(best, done)}"
    return f"Most effective change: {best.change}{at_once}: {gain}."


def _of_service(tried: TriedChanges, measure: ServiceMeasure) -> Iterator[str]:
    """Yield sentences on the measure of a service, because arrivals set the makespan."""
    queueing = f", including up to {seconds(measure.wait_s)} of queueing" if measure.wait_s > 0 and measure.name in TIMES else ""
    if measure.concurrent:
        yield "Arrivals set the time of the run, so speedups are of the service."
    yield f"The measure of the service is its {measure.words}: {_measured(measure.name, measure.value)}{queueing}."
    best = tried.rows[0] if tried.rows else None
    if best is None or best.speedup < HELP:
        yield "Doubling any single parameter improves it by less than 1 %."
        return
    value = dict(best.measured)[measure.name]
    yield f"Most effective change: {best.change}: {_measured(measure.name, value)}, {best.speedup:.2f}x better."


def _measured(name: str, value: float) -> str:
    return seconds(value) if name in TIMES else f"{value:,.4g} 1/s"


def _time(value: float) -> str:
    return format_quantity(value, "s")
