"""The answer to a slider movement: time, interval, bounds, spans and critical path of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hwsim.api import Run
from hwsim.explorer.spans import TICKS, TimelineColumns, Tints, spans
from hwsim.families_interface import Shown, family_reports
from hwsim.results.activities import activities, bounds_of
from hwsim.results.bound import capacity_bound
from hwsim.results.critical import critical_path
from hwsim.ticks import FEMTO
from hwsim.views.explain.sentences import sentences
from hwsim.views.explain.wait_reasons import reasons
from hwsim.views.interval import say as interval
from hwsim.views.summary.say import facts

CAUSES: Final = 8
LARGEST: Final = 20_000  # ops: larger runs have no sentence while a slider moves
PIECES: Final = 400  # limit of critical-path segments that are sent
CHOICES: Final = 6  # names among which a reader guesses the bound
GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples are spread evenly


def answer(run: Run, tints: Tints, *, pixels: int, part: tuple[float, float]) -> dict[str, Any]:
    """Return the answer, with times in seconds, and spans and path in ticks.

    Args:
        tints: assigned colours; new ones are added.
        pixels: width of the timeline.
        part: visible part of the time, from 0 to 1.
    """
    shown = spans(run, tints, pixels=pixels, part=part)
    limits = [] if run.only_requests else bounds_of(run.timeline, run.devices)
    rest = limits[CAUSES - 1 :] if len(limits) > CAUSES else ()
    parts = [(part.bound.full, part.time_fs) for part in limits[: len(limits) - len(rest)]]
    if rest:
        parts.append((f"{len(rest)} more", sum(part.time_fs for part in rest)))  # integers
    rows = [[name, time / FEMTO, time / (run.timeline.makespan_fs or 1)] for name, time in parts]
    return {
        "machine": run.machine,
        "workload": run.workload,
        "settings": [list(pair) for pair in run.settings],
        "seconds": run.makespan_s,
        "interval": _interval(run),
        "measure": instead(run, "measure"),
        "ops": run.ops.total,
        "text": _says(run),
        "bounds": instead(run, "bounds") if run.only_requests else rows,
        "limits": _limits(
            run,
            [str(name) for name, *_ in instead(run, "bounds") or ()]
            if run.only_requests
            else [part.bound.full for part in limits],
        ),
        "facts": [[fact.label, fact.text] for fact in facts(run) if not fact.verbose],
        "verdicts": [[verdict.quantity, str(verdict.expected), verdict.status, verdict.reason] for verdict in run.verdicts],
        "warnings": list(map(str, run.warnings)),
        "theories": _theories(run, shown),
        **shown.columns,
        **_path(run, shown),
    }


def _limits(run: Run, bounds: Sequence[str]) -> list[str]:
    """Return in alphabetical order the names among which a reader guesses: the largest bounds, and other used capacities."""
    others = dict[str, float]()
    for capacity, use in zip(run.timeline.flat.graph.capacities, run.usage, strict=False) if not run.only_requests else ():
        if use.capacity == capacity.name and use.busy_fs:
            name = capacity_bound(capacity, run.devices).full
            others[name] = max(others.get(name, 0.0), use.utilization)
    longest = sorted(others, key=lambda name: (-others[name], name))
    return sorted(dict.fromkeys([*bounds[:4], *longest[:CHOICES]]))[:CHOICES] if bounds else []


def _theories(run: Run, shown: TimelineColumns) -> list[list[Any]]:
    """Return [name, seconds] of other times that a reader may have predicted instead of the makespan."""
    if run.only_requests or not shown.columns["lanes"]:
        return []
    took = (run.timeline.end - run.ops.begin).astype(np.float64) / FEMTO
    is_shown = shown.row_of >= 0
    lanes = np.array([lane["times"] for lane in shown.columns["lanes"]])  # equal rows are drawn once
    rows = np.bincount(shown.row_of[is_shown], took[is_shown], minlength=len(lanes)) / lanes
    return [
        ["all rows added: work that overlaps was counted one after another", float(rows.sum())],
        ["the busiest row: waiting for other rows was left out", float(rows.max())],
        ["the longest op: the other ops were left out", float(took.max())],
    ]


def instead(run: Run, what: Shown) -> Any:
    """Return the values that a workload family shows instead of the timeline's; None if no family replaces them."""
    found = (facts.page(run, what) for facts in family_reports(run)[::-1])
    return next((value for value in found if value is not None), None)


def _says(run: Run) -> str:
    """Return a sentence on the activity with most of the time."""
    timeline = run.timeline
    if (own := instead(run, "text")) is not None:
        return str(own)
    if len(timeline) > LARGEST:
        return ""
    return next(iter(sentences(run.makespan_s, activities(run))), "")


def _interval(run: Run) -> dict[str, Any] | None:
    """Return the interval of the time; None if arrivals of requests determine it, or if nothing is uncertain."""
    if not run.sure or run.server:
        return None
    sure = run.interval
    if sure.half < interval.EXACT:
        return None
    return {"low": sure.low, "high": sure.high, "text": interval.line(sure)}


def _path(run: Run, shown: TimelineColumns) -> dict[str, Any]:
    """Return the longest segments of the critical path, in order of time, each with the reason why its op did not start earlier.

    In a long path, successive equal segments are merged. If there are still too many, equally long segments are sampled evenly.
    """
    timeline = run.timeline
    if run.only_requests:
        return {"path": [], "segments": 0}
    path = critical_path(timeline)
    first = np.arange(len(path))
    if len(path) > PIECES:
        keys = np.column_stack([shown.row_of[path.op], timeline.flat.label[path.op], path.cause])
        first = np.flatnonzero(np.concatenate([[True], (keys[1:] != keys[:-1]).any(axis=1)]))
    last = np.append(first[1:], len(path)) - 1
    took = path.end[last] - path.start[first]
    kept = np.arange(len(first))
    if len(first) > PIECES:
        spread = np.argsort(kept * GOLDEN % 1.0)
        kept = np.sort(spread[np.argsort(-took[spread].astype(np.float64), kind="stable")[:PIECES]])
    many = (last - first + 1)[kept]
    first, last = first[kept], last[kept]
    scale = TICKS / (timeline.makespan_fs or 1)
    labels = timeline.flat.graph.labels
    ops = path.op[first]
    rows = zip(
        (path.start[first].astype(np.float64) * scale).round().astype(int).tolist(),
        (path.end[last].astype(np.float64) * scale).round().astype(int).tolist(),
        shown.row_of[ops].tolist(),
        timeline.flat.label[ops].tolist(),
        path.cause[first].tolist(),
        many.tolist(),
        ops.tolist(),
        reasons(timeline, ops),
        strict=True,
    )
    pieces = [
        [low, high, row, labels[label].name + (f" x {count:,}" if count > 1 else ""), str(path.causes[cause]), reason, op]
        for low, high, row, label, cause, count, op, reason in rows
    ]
    return {"path": pieces, "segments": len(took)}
