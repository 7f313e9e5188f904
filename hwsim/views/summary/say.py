"""The summary of a run as text: its time, its limits, and the utilisation of the capacities."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from hwsim.doors import facts_of
from hwsim.formats import family, format_change, format_count, format_quantity, format_share
from hwsim.results import invariants
from hwsim.results.choices import choices
from hwsim.results.coverage import coverage
from hwsim.results.critical import families, limited_by
from hwsim.results.expect import Verdict
from hwsim.results.memory import DeviceMemory
from hwsim.results.result import Result
from hwsim.views.interval import say as interval
from hwsim.views.kit import warned
from hwsim.views.kit.lines import WIDTH, bar, titled
from hwsim.views.kit.table import Column, aligned, middle_out
from hwsim.views.summary.capacities import Row, capacities
from hwsim.views.summary.each import Each, each_op

if TYPE_CHECKING:
    from hwsim.results.requests import RequestStatistics

ROWS: Final = 16  # capacities shown; the rest is counted
CAUSES: Final = 3
CLASSES: Final = 6  # classes of ranks
EVENTS: Final = 6
CHOICES: Final = 4  # collectives with an algorithm that was chosen
MEMORIES: Final = 8
NAME: Final = 38


@invariants.guarded
def summary(result: Result) -> str:
    """The summary, ending with a newline."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Result) -> Iterator[str]:
    yield f"{result.workload}  on  {result.machine}"
    for title, text in facts(result):
        yield from titled(title, text)
    for warning in result.warnings:
        yield from warned.lines([warning], title=f"{'warning':<12} ")
    for told in facts_of(result):
        yield from told.table(result)
    ops = [] if result.only_requests else each_op(result.simulated)
    if ops:
        yield ""
        yield from _ops(ops)
    rows, unused = capacities(result.usage, limited_by(result.simulated))
    if rows and not result.only_requests:
        yield ""
        yield from _table(rows)
    graph = result.simulated.flat.graph
    if unused and not result.only_requests:
        yield from textwrap.wrap("not used: " + ", ".join(unused), WIDTH, initial_indent="  ", subsequent_indent=" " * 4,
                                 max_lines=3, placeholder=" ...", break_long_words=False)  # fmt: skip
    unlisted = graph.unlisted
    if unlisted:
        yield f"  {'and' if unused else 'not used:'} {unlisted:,} {'more' if unused else 'of the machine'}"
    yield ""
    yield "  --trace run.json.gz writes the timeline for ui.perfetto.dev; --json prints all numbers"


def _events(result: Result) -> Iterator[tuple[str, str]]:
    """The events of parts and links."""
    for event in result.events[:EVENTS]:
        yield "event", str(event)
    if len(result.events) > EVENTS:
        yield "", f"and {len(result.events) - EVENTS} more events"


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """(title, sentence) of a run; a title may come several times, "" continues the one before."""
    told = facts_of(result)
    yield "time", format_quantity(result.makespan_s, "s") + "".join(each.during(result) for each in told)
    if result.only_requests:
        yield from (row for each in told for row in each.rows(result, early=False))
        yield from _events(result)
        if result.events:
            yield "", "limits are of parts and links at full speed"
        yield from _set(result)
        return
    halves = [result.interval.half, *(each.half(result) for each in result.told.values())] if result.sure else []
    if halves and (halves[0] >= interval.EXACT or max(halves) < interval.EXACT):
        yield from interval.lines(result.interval, kernels=result.of_kernels)
    shares = [(name, share) for name, _, share in families(limited_by(result.simulated))]
    shown = [f"{name} {format_share(share)}" for name, share in shares[:CAUSES]]
    if len(shares) > CAUSES:
        shown.append(f"{len(shares) - CAUSES} more {format_share(math.fsum(share for _, share in shares[CAUSES:]))}")
    yield "limited by", ", ".join(shown) or "nothing: no op takes any time"
    yield from _fold(result)
    if result.issued_s is not None:
        yield "front end", f"issued its last op at {format_quantity(result.issued_s, 's')}{interval.ends(result.issued_interval)}"
    yield from (row for each in told for row in each.rows(result, early=True))
    for job, sure in zip(result.jobs, result.job_intervals, strict=True):
        unsure = f" ({interval.within(sure)})" if sure is not None and interval.within(sure) else ""
        yield f"job {job.name}", f"{format_quantity(job.makespan_s, 's')}{unsure} from {format_quantity(job.start_s, 's')} on"
    yield from _events(result)
    chosen = choices(result.simulated)
    for collective in chosen[:CHOICES]:
        yield "collective", f"{collective.title}: {collective.choice}"
    if len(chosen) > CHOICES:
        yield "", f"and {len(chosen) - CHOICES} more that were chosen"
    fullest = sorted(result.memory, key=lambda device: (device.fits, -device.peak / (device.size or math.inf)))
    alike: dict[tuple[str, str], list[DeviceMemory]] = {}
    for memory in result.memory if len(fullest) <= MEMORIES else fullest:
        alike.setdefault((family(memory.device), _memory(memory).removeprefix(memory.device)), []).append(memory)
    for (devices, filled), held in list(alike.items())[:MEMORIES]:
        yield "memory", _memory(held[0]) if len(held) == 1 else f"{devices} ({len(held)}){filled} each"
    if left := sum(len(held) for held in list(alike.values())[MEMORIES:]):  # integers
        yield "", f"and {left} more devices that are less full"
    for requests in result.requests:
        yield "requests", _requests(requests)
    yield from (row for each in told for row in each.rows(result, early=False))
    yield from _costs(result)
    yield from _set(result)


def _set(result: Result) -> Iterator[tuple[str, str]]:
    """Settings, the measured share of the time, and expectations."""
    if result.settings:
        yield "set", ", ".join(f"{key}={value}" for key, value in result.settings)
    if (covered := coverage(result.simulated)) is not None:
        yield "calibrated", str(covered)
    for verdict in result.verdicts:
        yield "expected", _verdict(verdict)


def _costs(result: Result) -> Iterator[tuple[str, str]]:
    """Lines of energy and cost, if they are asked for or the machine has prices; the energy of trainings and services always."""
    machine = result.built
    priced = machine is not None and machine.layout.priced
    if result.paying is None and not priced and not any(each.billed for each in facts_of(result)):
        return
    from hwsim.costs.bill import bill_of
    from hwsim.views.summary import costs

    bill = bill_of(result)
    if result.paying is not None or priced:
        yield from costs.lines(bill)
    elif bill.energy is not None and bill.energy.complete:
        yield "energy", costs.energy_text(bill.energy)


def _fold(result: Result) -> Iterator[tuple[str, str]]:
    """The classes of ranks of a folded run; a warning says why many ranks were not folded."""
    graph = result.simulated.flat.graph
    if graph.alike is None or graph.alike.unseen:
        return
    classes = graph.alike.classes()
    if len(graph.alike.programs) < 2:
        return
    shown = [name if many == 1 else f"{name} + {many - 1:,} alike" for name, many in classes[:CLASSES]]
    if len(classes) > CLASSES:
        shown.append(f"and {len(classes) - CLASSES:,} classes more")
    yield "ranks", f"{len(graph.alike.programs):,} in {len(classes):,} classes: {', '.join(shown)}"


def _ops(rows: Sequence[Each]) -> Iterator[str]:
    """A row for each kind of op; empty columns are left out."""
    columns = [
        Column("op", [middle_out(row.name, NAME) for row in rows], right=False),
        Column("times", [f"{row.times:,}" for row in rows]),
        Column("each", [format_quantity(row.mean_s, "s") for row in rows]),
        Column("rate", [row.rate for row in rows]),
        Column("count/s", [row.count for row in rows]),
        Column("limited by", [middle_out(row.limited_by, NAME) for row in rows], right=False),
    ]
    yield from aligned([column for column in columns if any(column.cells)])


def _table(rows: list[Row]) -> Iterator[str]:
    shown, rest = rows[:ROWS], rows[ROWS:]
    yield from aligned([
        Column("capacity", [middle_out(row.name, NAME) for row in shown], right=False),
        Column("busy", [row.busy for row in shown]),
        Column("moved", [row.moved for row in shown]),
        Column("rate", [row.rate for row in shown]),
        Column("utilisation", [f"{bar(row.utilisation)} {row.percent:>6}" for row in shown], right=False),
    ])  # fmt: skip
    if rest:
        most = max(row.utilisation for row in rest)
        yield f"  and {len(rest)} more, utilisation at most {format_share(most)}"


def _memory(memory: DeviceMemory) -> str:
    if not memory.fits:
        return f"OUT OF MEMORY: {memory.verdict()}"
    has = "" if memory.size is None else f" of {format_quantity(memory.size, 'B')}"
    low, high = (format_quantity(memory.peak * (1.0 + each), "B") for each in (-memory.spread, memory.spread))
    tight = f": TIGHT, {low} to {high}" if memory.tight else ""
    return f"{memory.device} peak {format_quantity(memory.peak, 'B')}{has}{tight}"


def _requests(served: RequestStatistics) -> str:
    def time(seconds: float) -> str:
        return format_quantity(seconds, "s")

    counters = "".join(f", {value:,.6g} {name.replace('_', ' ')}" for name, value in served.counters if value)
    rates = f"{format_quantity(served.rate, '1/s')}, {format_quantity(served.bandwidth, 'B/s')}"
    latency = f"latency p50 {time(served.latency_p50_s)}, p95 {time(served.latency_p95_s)}, p99 {time(served.latency_p99_s)}"
    text = f"{served.device}: {served.count:,} one by one, {rates}; {latency}, max {time(served.latency_max_s)}"
    text += f"; {format_count(served.in_flight_mean)} in flight{counters}"
    if served.took_s is None or served.closed_form_s is None or served.gap is None:
        return text
    gap = format_change(served.gap)
    return f"{text}; its ops took {time(served.took_s)}, the closed form says {time(served.closed_form_s)} ({gap})"


def _verdict(verdict: Verdict) -> str:
    text = f"{verdict.quantity} {verdict.wanted}: "
    match verdict.status:
        case "met":
            return text + "met"
        case "violated":
            return text + f"VIOLATED, {verdict.reason}"
        case "skipped":
            return text + f"not checked ({verdict.reason})"
