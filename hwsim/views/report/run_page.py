"""The page of one run: time, bottleneck, uncertainty, assumptions and timeline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from hwsim.families_interface import SummaryLine, family_reports
from hwsim.formats import family, format_quantity, format_share
from hwsim.origins import Origin
from hwsim.results.activities import Activities, activities
from hwsim.results.bound import words
from hwsim.results.critical import limited_by
from hwsim.results.ops import weights
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.interval import say as interval
from hwsim.views.kit.lanes import OpLane as Row
from hwsim.views.kit.lanes import lanes
from hwsim.views.report.page import written
from hwsim.views.report.sections import (
    BarSection,
    Cell,
    Lines,
    Page,
    ReportBar,
    ReportColumn,
    Section,
    TableSection,
    TimelineLane,
    TimelineSection,
)
from hwsim.views.summary.capacities import capacities
from hwsim.views.summary.say import facts

LANES: Final = 64  # largest number of rows of the timeline
SPANS: Final = 50_000  # largest number of spans of all rows
CAUSES: Final = 12  # largest number of bounds
ASSUMED: Final = 40  # largest number of assumptions
_KEY: Final = re.compile(r"(?:([\w.*-]+): )?")  # key before a source
ABOVE: Final = frozenset({interval.TITLE, "bottleneck", "throughput"})  # labels of facts at the head of the page


def render(result: Result) -> Iterable[bytes]:
    """Return the page as chunks of an HTML file; same result, same bytes."""
    return written(page(result))


def page(result: Result) -> Page:
    """Return the page as data."""
    done = None if result.only_requests else activities(result)
    lines = list(facts(result, done))
    first, *rest = lines
    above = [fact for fact in rest if fact.label in ABOVE]
    return Page(
        f"{result.workload}, on {result.machine}",
        f"{first.label}: {first.text}",
        [f"{fact.label}: {fact.text}." for fact in above],
        [str(warning) for warning in result.warnings],
        [section for section in _sections(result, done, [fact for fact in rest if fact not in above]) if section is not None],
    )


def _sections(result: Result, done: Activities | None, rest: list[SummaryLine]) -> Iterator[Section | None]:
    texts = [f"{fact.label}: {fact.text}" if fact.label else fact.text for fact in rest]
    texts += [line.strip() for report in family_reports(result) for line in report.table(result) if line]
    yield Lines("Summary", texts) if texts else None
    if done is not None:
        yield _limits(result, done)
    yield _unsure(result)
    if done is not None:
        yield _activities(done)
    yield _capacities(result)
    yield _timeline(result)
    yield _assumed(result)


def _limits(result: Result, done: Activities) -> BarSection | None:
    makespan = result.simulated.makespan_fs
    bars = [
        ReportBar(str(part.bound), 0.0, part.time_fs / makespan, format_share(part.time_fs / makespan)) for part in done.parts
    ]
    return BarSection("Critical path by bound", bars[:CAUSES]) if bars else None


def _unsure(result: Result) -> TableSection | None:
    rows = interval.rows(result.interval) if result.sure else []
    if not rows:
        return None
    columns = [ReportColumn(heading, right=place > 0) for place, heading in enumerate(interval.HEADINGS)]
    return TableSection("Uncertainty", columns, [[Cell(cell) for cell in row] for row in rows])


def _activities(done: Activities) -> TableSection | None:
    if not done.rows:
        return None
    heads = [ReportColumn(name, right=True) for name in ("count", "each", "total", "critical path", "share")]
    rows = [
        (
            Cell(row.name),
            Cell(f"{row.count:,}", row.count),
            Cell(format_quantity(row.mean_s, "s"), row.mean_s),
            Cell(format_quantity(row.total_s, "s"), row.total_s),
            Cell(format_quantity(row.path_s, "s"), row.path_s),
            Cell(format_share(row.share), row.share),
            Cell(words(list(row.bounds))),
        )
        for row in done.rows
    ]
    kind = "op" if done.of_ops else "activity"
    return TableSection("Ops" if done.of_ops else "Activities", [ReportColumn(kind), *heads, ReportColumn("bound by")], rows)


def _capacities(result: Result) -> TableSection | None:
    shown, unused = capacities(result.usage, limited_by(result.timeline))
    if not shown:
        return None
    columns = [
        ReportColumn("resource"),
        *(ReportColumn(name, right=True) for name in ("busy", "moved", "rate while busy", "util")),
    ]
    rows = [
        (Cell(row.name), Cell(row.busy), Cell(row.moved), Cell(row.rate), Cell(row.percent, row.utilization)) for row in shown
    ]
    return TableSection("Resources", columns, rows, note=f"Idle: {', '.join(unused)}." if unused else "")


def _timeline(result: Result) -> TimelineSection | None:
    rows = lanes(result)
    if not rows:
        return None
    timeline, labels = result.timeline, result.timeline.flat.graph.labels
    kept, spans = [], 0
    for row in rows[:LANES]:
        if spans + len(row.ops) > SPANS:
            break
        kept.append(row)
        spans += len(row.ops)
    hidden = len(rows) - len(kept)
    took: dict[str, float] = {}
    for row in kept:
        seconds = (timeline.end[row.ops] - result.ops.begin[row.ops]).astype(np.float64) / FEMTO
        for label, second in zip(timeline.flat.label[row.ops].tolist(), seconds.tolist(), strict=True):
            took[labels[label].name] = took.get(labels[label].name, 0.0) + second
    names = sorted(took, key=lambda name: (-took[name], name))
    number = {name: place for place, name in enumerate(names)}
    note = f"{hidden} more rows are not shown; --trace writes all of them for ui.perfetto.dev." if hidden else ""
    lines = [_lane(result, row, number) for row in kept]
    return TimelineSection("Timeline", lines, names, result.makespan_s, note) if kept else None


def _lane(result: Result, row: Row, number: dict[str, int]) -> TimelineLane:
    timeline, labels = result.timeline, result.timeline.flat.graph.labels
    begin = result.ops.begin[row.ops]
    starts = (begin.astype(np.float64) / FEMTO).tolist()
    took = ((timeline.end[row.ops] - begin).astype(np.float64) / FEMTO).tolist()
    names = [number[labels[label].name] for label in timeline.flat.label[row.ops].tolist()]
    title = row.name if row.name.startswith(row.device) else f"{row.device} {row.name}"
    return TimelineLane(title, list(zip(starts, took, names, strict=True)))


def _assumed(result: Result) -> TableSection | None:
    """Return the numbers of parts on which most of the time depends, with their sources."""
    flat = result.timeline.flat
    ops = np.flatnonzero(flat.cost >= 0)
    spent = np.bincount(flat.cost[ops], weights(result.timeline)[ops], len(flat.graph.costs))
    devices = dict(zip(flat.cost[ops].tolist(), flat.label[ops].tolist(), strict=True))
    spent_on: dict[tuple[str, str, str], tuple[float, str]] = {}
    for number, (cost, times) in enumerate(zip(flat.graph.costs, spent.tolist(), strict=True)):
        part = family(flat.graph.labels[devices[number]].device) if number in devices else ""
        for term in cost.why if times else ():
            for name, value, source in term.inputs:
                if not isinstance(source, Origin) or source.kind == "stated":
                    continue
                if (key := _KEY.fullmatch(source.before)) is not None:
                    row = part, key[1] or name, str(replace(source, before=""))
                    spent_on[row] = max(spent_on.get(row, (0.0, value)), (times * term.seconds, value))
    longest = sorted(spent_on, key=lambda row: (-spent_on[row][0], row))[:ASSUMED]
    if not longest:
        return None
    columns = [ReportColumn("part"), ReportColumn("number"), ReportColumn("value", right=True), ReportColumn("source")]
    rows = [[Cell(part), Cell(key), Cell(spent_on[part, key, source][1]), Cell(source)] for part, key, source in longest]
    rest = len(spent_on) - len(longest)
    note = "Sorted by the time that depends on each number" + (f"; `hwsim explain` has {rest} more." if rest else ".")
    return TableSection("Assumptions", columns, rows, note=note)
