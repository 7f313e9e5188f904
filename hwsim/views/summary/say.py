"""The summary of a run as text: time or rate, interval, bottleneck, activities, and utilization of resources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from hwsim.families_interface import SummaryLine, family_reports
from hwsim.formats import family, format_change, format_count, format_quantity, format_share, pluralized, prefixed
from hwsim.results import invariants
from hwsim.results.activities import Activities, Activity, activities
from hwsim.results.bound import ARRIVALS, GIVEN, BoundTime, words
from hwsim.results.choices import choices
from hwsim.results.coverage import coverage
from hwsim.results.critical import families, limited_by
from hwsim.results.expect import Verdict
from hwsim.results.memory import DeviceMemory
from hwsim.results.result import Result
from hwsim.views.interval import say as interval
from hwsim.views.kit import warning_lines
from hwsim.views.kit.lines import LABEL, WIDTH, bar, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_middle, wrap_column
from hwsim.views.summary.capacities import NONE, ResourceRow, capacities

if TYPE_CHECKING:
    from hwsim.results.requests import RequestStatistics

RESOURCES: Final = 6  # largest number of rows
ACTIVITIES: Final = 8  # largest number of rows
ALL: Final = 64  # largest number of rows with -v
CAUSES: Final = 12
CLASSES: Final = 6  # largest number of rank classes
EVENTS: Final = 6
CHOICES: Final = 4  # largest number of collectives with a chosen algorithm
MEMORIES: Final = 4
NAME: Final = 40  # width of the name of an activity (characters)
RESOURCE: Final = 44  # width of the name of a resource (characters)
SMALL: Final = 0.005  # least share or utilization of a row


@invariants.check_report
def summary(result: Result, *, verbose: bool = False) -> str:
    """Return the summary, ending with a newline.

    Args:
        result: result.
        verbose: whether to add all causes, resources, algorithms and sources of uncertainty.
    """
    return "\n".join(_lines(result, verbose)) + "\n"


def _lines(result: Result, verbose: bool) -> Iterator[str]:
    for verdict in result.verdicts:
        if verdict.status == "violated":
            yield from wrap_lines(f"expectation violated: {_verdict(verdict)}", 0)
    for memory in result.memory:
        if not memory.fits:
            yield from wrap_lines(f"out of memory: {memory.verdict()}", 0)
    yield from wrap_lines(f"{result.workload}, on {result.machine}", 0)
    yield ""
    done = None if result.only_requests else activities(result)
    for fact in facts(result, done):
        if verbose or not fact.verbose:
            yield from labelled_lines(fact.label, fact.text, LABEL)
    for report in family_reports(result):
        yield from report.table(result)
    if done is not None and (verbose or not result.of_kernels):
        yield from _activities(done.rows, of_ops=done.of_ops, most=ALL if verbose else ACTIVITIES)
    if not result.only_requests:
        if verbose:
            yield from _causes(result)
        if verbose or not result.of_kernels:
            yield from _resources(result, verbose)
    if result.warnings:
        yield ""
        yield from warning_lines.lines(result.warnings)


def facts(result: Result, done: Activities | None = None) -> Iterator[SummaryLine]:
    """Yield the labelled lines of a run: the answer with its interval, the bottleneck, then all other facts."""
    reports = family_reports(result)
    lead = [fact for report in reports for fact in report.headline(result)]
    if not lead:
        yield SummaryLine("time", format_quantity(result.makespan_s, "s") + "".join(report.during(result) for report in reports))
    yield from lead[:1]
    yield from _interval(result, next(filter(None, (report.headline_s(result) for report in reports)), None), of_run=bool(lead))
    yield from lead[1:]
    if not result.only_requests:
        done = done or activities(result)
        own, is_work = next(filter(any, (report.bottleneck(result) for report in reports)), ("", False))
        yield SummaryLine(
            "bottleneck", f"{own}{_of_work(done) if is_work else ''}" or bottleneck(done, result.simulated.makespan_fs)
        )
    if result.issued_s is not None:
        issued = f"{format_quantity(result.issued_s, 's')}{interval.ends(result.issued_interval)}"
        yield SummaryLine("front end", f"issued its last op after {issued}")
    for job, sure in zip(result.jobs, result.job_intervals, strict=True):
        unsure = f" ({interval.relative_range(sure)})" if sure is not None and interval.relative_range(sure) else ""
        yield SummaryLine(
            f"job {job.name}", f"{format_quantity(job.makespan_s, 's')}{unsure}, from {format_quantity(job.start_s, 's')}"
        )
    yield from _events(result)
    yield from (fact for report in reports for fact in report.rows(result))
    yield from _memory(result.memory)
    for requests in result.requests:
        yield SummaryLine("I/O requests", _requests(requests))
    yield from _costs(result)
    yield from _fold(result)
    yield from _choices(result)
    if result.settings:
        yield SummaryLine("set", ", ".join(f"{key}={value}" for key, value in result.settings))
    if (covered := coverage(result.simulated)) is not None:
        yield SummaryLine("calibration", str(covered))
    for verdict in result.verdicts:
        if verdict.status != "violated":
            yield SummaryLine("expectation", _verdict(verdict), verbose=verdict.status == "skipped")


def _interval(result: Result, value: float | None, *, of_run: bool) -> Iterator[SummaryLine]:
    """Yield the interval of the answer, and its evidence and sources for -v.

    Args:
        result: result.
        value: answer (s); None for the makespan.
        of_run: whether the answer above is not the makespan.
    """
    if not result.sure or result.only_requests:
        return
    halves = [result.interval.half, *(report.half(result) for report in result.told.values())]
    if not (halves[0] >= interval.EXACT or max(halves) < interval.EXACT):
        return
    sure = result.interval if value is None else result.interval.of(value)
    whole = " (of the simulated time)" if of_run and value is None and not result.of_kernels else ""
    if not result.of_kernels and (text := interval.corrected(sure)):
        yield SummaryLine("corrected", text)
    yield SummaryLine(interval.TITLE, interval.line(sure, kernels=result.of_kernels) + whole)
    if evidence := interval.evidence(result.interval):
        yield SummaryLine("", evidence, verbose=True)
    for number, source in enumerate(interval.sources(result.interval)):
        yield SummaryLine("" if number else "uncertainty", source, verbose=True)


def bottleneck(done: Activities, makespan_fs: int) -> str:
    """Return what bounds most of the critical path, its share, and the activities that it bounds."""
    if not done.parts or not makespan_fs:
        return "none: no op takes any time"
    bound, spent = done.parts[0].bound, done.parts[0].time_fs
    share = f"{format_share(spent / makespan_fs)} of the time"
    among = sorted(((_within(row, done.parts[0]), row.name) for row in done.rows), key=lambda pair: (-pair[0], pair[1]))
    among = [(part, name) for part, name in among if part > 0.1 * spent]
    names = ", ".join(name for _, name in among[:3])
    if bound.term == GIVEN:
        return f"{GIVEN} of {names}: {share}" if names else f"{GIVEN}: {share}"
    return f"{bound}: {share}{f', in {names}' if names else ''}"


def _of_work(done: Activities) -> str:
    """Return the bound of the longest work other than waiting for requests or replicas."""
    found = (row.bound for row in done.rows if row.path_s > 0 and row.bound is not None)
    longest = next((bound for bound in found if bound.term not in (ARRIVALS, "waiting")), None)
    return f", bound by {longest}" if longest else ""


def _within(row: Activity, part: BoundTime) -> int:
    """Return the time on the critical path that a bound has in an activity (fs)."""
    return sum(bound.time_fs for bound in row.bounds if bound.bound == part.bound) if row.path_s > 0 else 0  # integers


def _activities(rows: Sequence[Activity], *, of_ops: bool, most: int) -> Iterator[str]:
    """Yield a row per op or kind of work; empty columns are omitted."""
    most += len(rows) == most + 1  # a further row takes no more space than the line "1 more"
    shown = [row for number, row in enumerate(rows) if number < most and (of_ops or most == ALL or row.share >= SMALL)]
    if not shown:
        return
    yield ""
    yield from _table(shown, of_ops=of_ops)
    if rest := len(rows) - len(shown):
        yield f"  {rest} more below {format_share(max(SMALL, shown[-1].share))} of the time (-v)"


def _table(shown: Sequence[Activity], *, of_ops: bool) -> list[str]:
    """Return the lines of a table of activities; a wide one has one bound per activity instead of two, and wrapped names."""
    for bounds in (2, 1):
        columns = _columns(shown, bounds, of_ops=of_ops)
        excess = max(map(len, lines := align_columns(columns))) - WIDTH
        if excess <= 0:
            return lines
    return align_columns(wrap_column(columns, 0, max(map(len, columns[0].cells)) - excess))


def _columns(shown: Sequence[Activity], bounds: int, *, of_ops: bool) -> list[Column]:
    columns = [Column("op" if of_ops else "activity", [cut_middle(row.name, NAME) for row in shown], right=False)]
    if of_ops:
        columns += [
            Column("count", [f"{row.count:,}" for row in shown]),
            Column("each", [format_quantity(row.mean_s, "s") for row in shown]),
            Column("rate", [_rate(row.rates.amount, row.rates.unit) for row in shown]),
            Column("accesses/s", [prefixed(row.rates.per_s) if row.rates.per_s > 0 else "" for row in shown]),
        ]
    else:
        columns.append(Column("total", [format_quantity(row.total_s, "s") for row in shown]))
    columns += [
        Column("critical path", [_time_and_share(row) if row.path_fs else "-" for row in shown]),
        Column("bound by", [words(list(row.bounds), shown=bounds) for row in shown], right=False),
    ]
    return [column for column in columns if any(column.cells)]


def _rate(amount: float, unit: str) -> str:
    return format_quantity(amount, unit) if amount > 0 else ""


def _time_and_share(row: Activity) -> str:
    return f"{format_quantity(row.path_s, 's')} {format_share(row.share):>6}"


def _causes(result: Result) -> Iterator[str]:
    """Yield the causes on the critical path by their full internal names."""
    rows = families(limited_by(result.simulated))
    if not rows:
        return
    yield ""
    yield from align_columns([
        Column("cause on the critical path", [cut_middle(name, 2 * NAME) for name, _, _ in rows[:CAUSES]], right=False),
        Column("share", [format_share(share) for _, _, share in rows[:CAUSES]]),
    ])  # fmt: skip
    if len(rows) > CAUSES:
        rest = math.fsum(share for _, _, share in rows[CAUSES:])
        yield f"  {len(rows) - CAUSES} more, together {format_share(rest)}"


def _resources(result: Result, verbose: bool) -> Iterator[str]:
    """Yield the utilization of the resources; without -v only significant ones."""
    rows, unused = capacities(result.usage, limited_by(result.simulated))
    if not rows:
        return
    rows.sort(key=lambda row: -round(row.utilization, 3))  # stable: those that bound the run stay first
    significant = [row for row in rows if row.utilization >= SMALL] if not verbose else rows
    shown = (significant or rows[:1])[: ALL if verbose else RESOURCES]
    lines = _used(shown, RESOURCE)
    yield ""
    yield from (
        lines
        if (wide := max(map(len, lines)) - WIDTH) <= 0
        else _used(shown, min(RESOURCE, max(len(row.name) for row in shown)) - wide)
    )
    rest = rows[len(shown) :]
    graph = result.simulated.flat.graph
    idle = sum(row.identical_count for row in result.usage if not row.busy_fs) + graph.unlisted  # integers
    remaining = []
    if rest:
        limit = format_share(max(row.utilization for row in rest) + 1e-12).removeprefix("<")
        remaining.append(f"{len(rest)} more rows below {limit}")
    if idle and not verbose:
        remaining.append(pluralized(idle, "idle resource"))
    if remaining:
        yield f"  {', '.join(remaining)} (-v)"
    if unused and verbose:
        yield from wrap_lines("idle: " + ", ".join(unused) + (f" and {graph.unlisted:,} more" if graph.unlisted else ""), 2)


def _used(shown: Sequence[ResourceRow], letters: int) -> list[str]:
    """Return a row per resource, with the name cut to a number of characters; columns without a number are omitted."""
    columns = [
        Column("resource", [cut_middle(row.name, letters) for row in shown], right=False),
        Column("busy", [row.busy for row in shown]),
        Column("util", [f"{bar(row.utilization)} {row.percent:>6}" for row in shown], right=False),
        Column("moved", [row.moved for row in shown]),
        Column("rate while busy", [row.rate for row in shown]),
    ]
    return align_columns([column for column in columns if {*column.cells} != {NONE}])


def _events(result: Result) -> Iterator[SummaryLine]:
    """Yield the events of parts and links."""
    for event in result.events[:EVENTS]:
        yield SummaryLine("event", str(event))
    if len(result.events) > EVENTS:
        yield SummaryLine("", f"and {len(result.events) - EVENTS} more events")
    if result.events and result.only_requests:
        yield SummaryLine("", "capacities are those of parts and links at full speed")


def _choices(result: Result) -> Iterator[SummaryLine]:
    """Yield the algorithms that the library chose for collectives."""
    if result.only_requests:
        return
    chosen = choices(result.simulated)
    for collective in chosen[:CHOICES]:
        yield SummaryLine("collective", f"{collective.title}: {collective.choice}", verbose=True)
    if len(chosen) > CHOICES:
        yield SummaryLine("", f"and {len(chosen) - CHOICES} more collectives", verbose=True)


def _costs(result: Result) -> Iterator[SummaryLine]:
    """Yield energy and cost if requested or if the machine has prices; the energy of trainings and services always."""
    machine = result.built
    priced = machine is not None and machine.layout.priced
    if result.only_requests or (
        result.paying is None and not priced and not any(report.billed for report in family_reports(result))
    ):
        return
    from hwsim.costs.bill import bill_of
    from hwsim.views.summary import costs

    bill = bill_of(result)
    if result.paying is not None or priced:
        yield from (SummaryLine(*line) for line in costs.lines(bill))
    elif bill.energy is not None and bill.energy.complete:
        yield SummaryLine("energy", costs.energy_text(bill.energy))


def _fold(result: Result) -> Iterator[SummaryLine]:
    """Yield the classes of ranks of a folded run; a warning states why many ranks were not folded."""
    graph = result.simulated.flat.graph
    if result.only_requests or graph.alike is None or graph.alike.unseen or len(graph.alike.programs) < 2:
        return
    classes = graph.alike.classes()
    shown = [name if count == 1 else f"{name} and {count - 1:,} identical" for name, count in classes[:CLASSES]]
    if len(classes) > CLASSES:
        shown.append(f"{len(classes) - CLASSES:,} classes more")
    yield SummaryLine(
        "ranks", f"{len(graph.alike.programs):,} in {len(classes):,} class{'es' * (len(classes) > 1)}: {', '.join(shown)}"
    )


def _memory(found: Sequence[DeviceMemory]) -> Iterator[SummaryLine]:
    """Yield the devices with the fullest memory, identical ones joined."""
    identical: dict[tuple[str, str], list[DeviceMemory]] = {}
    for memory in sorted(found, key=lambda device: (device.fits, -device.peak / (device.size or math.inf))):
        identical.setdefault((family(memory.device), _filled(memory)), []).append(memory)
    for (devices, filled), members in list(identical.items())[:MEMORIES]:
        name = members[0].device if len(members) == 1 else f"{devices} ({len(members)})"
        yield SummaryLine("memory", f"{name} {filled}{' each' if len(members) > 1 else ''}")
    if rest := sum(len(members) for members in list(identical.values())[MEMORIES:]):  # integers
        yield SummaryLine("", f"{rest} more devices, less full")


def _filled(memory: DeviceMemory) -> str:
    size = "" if memory.size is None else f" of {format_quantity(memory.size, 'B')}"
    low, high = (format_quantity(memory.peak * (1.0 + change), "B") for change in (-memory.spread, memory.spread))
    tight = f", tight: {low}–{high}" if memory.tight else "" if memory.fits else ": OUT OF MEMORY"
    return f"peak {format_quantity(memory.peak, 'B')}{size}{tight}"


def _requests(served: RequestStatistics) -> str:
    """Return the statistics of a device that was simulated request by request."""

    def time(seconds: float) -> str:
        return format_quantity(seconds, "s")

    counters = "".join(f", {value:,.6g} {name.replace('_', ' ')}" for name, value in served.counters if value)
    rates = f"{format_quantity(served.rate, '1/s')}, {format_quantity(served.bandwidth, 'B/s')}"
    latency = f"latency p50 {time(served.latency_p50_s)}, p95 {time(served.latency_p95_s)}, p99 {time(served.latency_p99_s)}"
    text = f"{served.device}: {served.count:,} requests, {rates}; {latency}, max {time(served.latency_max_s)}"
    text += f"; {format_count(served.in_flight_mean)} in flight{counters}"
    if served.simulated_s is None or served.closed_form_s is None or served.closed_form_error is None:
        return text
    closed_form = f"{time(served.closed_form_s)} in closed form ({format_change(served.closed_form_error)})"
    return f"{text}; {time(served.simulated_s)} in total, {closed_form}"


def _verdict(verdict: Verdict) -> str:
    text = f"{verdict.quantity} {verdict.expected.replace('+-', '±')}: "
    match verdict.status:
        case "met":
            return f"{text}met"
        case "violated":
            return f"{text}{verdict.reason}"
        case "skipped":
            return f"{text}not checked ({verdict.reason})"
