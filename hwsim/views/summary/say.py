"""The result in a screenful of text: the time, what limits it, and how full everything was."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hwsim import invariants
from hwsim.results.choices import choices
from hwsim.results.coverage import coverage
from hwsim.results.expect import Verdict
from hwsim.results.memory import DeviceMemory
from hwsim.results.requests import RequestStatistics
from hwsim.results.result import Result
from hwsim.units import format_change, format_quantity, format_share
from hwsim.views.explain.critical import limited_by
from hwsim.views.explain.starving import pipelines
from hwsim.views.kit import warned
from hwsim.views.summary import pipeline, serving, training
from hwsim.views.summary.capacities import Row, capacities, causes
from hwsim.views.summary.each import Each, each_op

WIDTH: Final = 100
ROWS: Final = 16  # capacities shown; the rest is counted
CAUSES: Final = 3
CLASSES: Final = 6  # of ranks
EVENTS: Final = 6
CHOICES: Final = 4  # of algorithms
MEMORIES: Final = 8
NAME: Final = 38
BAR: Final = 12


def render(result: Result, suffix: str = "") -> Iterable[bytes]:  # noqa: ARG001 (every report takes a suffix)
    """The summary in UTF-8."""
    yield summary(result).encode()


@invariants.guarded
def summary(result: Result) -> str:
    """The summary, ending with a newline."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Result) -> Iterator[str]:
    yield f"{result.workload}  on  {result.machine}"
    yield from _line("time", format_quantity(result.makespan_s, "s") + _of_steps(result))
    limited = limited_by(result.timeline)
    shares = causes(limited)
    shown = [f"{name} {format_share(share)}" for name, share in shares[:CAUSES]]
    if len(shares) > CAUSES:
        shown.append(f"{len(shares) - CAUSES} more {format_share(math.fsum(share for _, share in shares[CAUSES:]))}")
    yield from _line("limited by", ", ".join(shown) or "nothing: no op takes any time")
    yield from _fold(result)
    if result.issued_s is not None:
        yield from _line("front end", f"issued its last op at {format_quantity(result.issued_s, 's')}")
    for title, text in pipeline.rows(pipelines(result.timeline)):
        yield from _line(title, text)
    for job in result.jobs:
        yield from _line(f"job {job.name}", f"{format_quantity(job.makespan_s, 's')} from {format_quantity(job.start_s, 's')} on")
    for event in result.events[:EVENTS]:
        yield from _line("event", str(event))
    if len(result.events) > EVENTS:
        yield from _line("", f"and {len(result.events) - EVENTS} more events")
    chosen = choices(result.timeline)
    for each in chosen[:CHOICES]:
        yield from _line("collective", f"{each.op}: {each.choice}")
    if len(chosen) > CHOICES:
        yield from _line("", f"and {len(chosen) - CHOICES} more that were chosen")
    fullest = sorted(result.memory, key=lambda each: (each.fits, -each.peak / (each.size or math.inf)))
    shown_memories = result.memory if len(fullest) <= MEMORIES else fullest[:MEMORIES]
    for memory in shown_memories:
        yield from _line("memory", _memory(memory))
    if len(fullest) > MEMORIES:
        yield from _line("", f"and {len(fullest) - MEMORIES} more devices that are less full")
    for requests in result.requests:
        yield from _line("requests", _requests(requests))
    for trained in result.trainings:
        for title, text in training.lines(trained):
            yield from _line(title, text)
    for service in result.serving:
        for title, text in serving.lines(service):
            yield from _line(title, text)
    if result.steady is not None:
        yield from _line("steady", str(result.steady))
    if result.settings:
        yield from _line("set", ", ".join(f"{key}={value}" for key, value in result.settings))
    if (known := coverage(result.timeline)) is not None:
        yield from _line("calibrated", str(known))
    for verdict in result.verdicts:
        yield from _line("expected", _verdict(verdict))
    for warning in result.warnings:
        yield from warned.lines([warning], title=f"{'warning':<12} ")
    ops = each_op(result.timeline)
    if ops:
        yield ""
        yield from _ops(ops)
    rows, unused = capacities(result.usage, limited)
    if rows:
        yield ""
        yield from _table(rows)
    graph = result.timeline.flat.graph
    if any(each.replicas > 1 for each in graph.trainings):  # what the other copies use would be called not used
        unused = []
    if unused:
        yield from textwrap.wrap("not used: " + ", ".join(unused), WIDTH, initial_indent="  ", subsequent_indent=" " * 4,
                                 max_lines=3, placeholder=" ...", break_long_words=False)  # fmt: skip
    unlisted = graph.unlisted
    if unlisted and all(each.replicas == 1 for each in graph.trainings):
        yield f"  {'and' if unused else 'not used:'} {unlisted:,} {'more' if unused else 'of the machine'}"
    yield ""
    yield "  --trace run.json.gz writes the timeline for ui.perfetto.dev; --json prints all numbers"


def _of_steps(result: Result) -> str:
    """How many steps of training the time is of, where they are all there is."""
    if len(result.trainings) != 1 or result.jobs or result.trainings[0].steps < 2:
        return ""
    one = result.trainings[0]
    after = result.makespan_s - one.ended_s  # weights that are gathered for a next step
    rest = f" and {format_quantity(after, 's')} after them" if after > 1e-3 * one.step_s else ""
    return f" for {one.steps:,} steps{rest}"


def _fold(result: Result) -> Iterator[str]:
    """Which ranks were simulated for how many; why all were, if they are many, is a warning."""
    graph = result.timeline.flat.graph
    if graph.alike is None:
        return
    classes = graph.alike.classes()
    if len(graph.alike.programs) < 2:
        return
    shown = [name if many == 1 else f"{name} + {many - 1:,} alike" for name, many in classes[:CLASSES]]
    if len(classes) > CLASSES:
        shown.append(f"and {len(classes) - CLASSES:,} classes more")
    yield from _line("ranks", f"{len(graph.alike.programs):,} in {len(classes):,} classes: {', '.join(shown)}")


def _line(title: str, text: str) -> list[str]:
    tied = text.replace(" %", "\u00a0%")  # a number and its sign on one line
    lines = textwrap.wrap(tied, WIDTH, initial_indent=f"  {title:<12} ", subsequent_indent=" " * 15, break_long_words=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _ops(rows: Sequence[Each]) -> Iterator[str]:
    """A row for each kind of op; a column that says nothing is left out."""
    titles = ("op", "times", "each", "rate", "count/s", "limited by")
    table = [
        (_short(row.name), f"{row.times:,}", format_quantity(row.mean_s, "s"), row.rate, row.count, _short(row.limited_by))
        for row in rows
    ]
    columns = [(title, *cells) for title, *cells in zip(titles, *table, strict=True) if any(cells)]
    widths = [max(map(len, column)) for column in columns]
    for cells in zip(*columns, strict=True):
        first, *middle, last = cells
        line = [f"{first:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(middle, widths[1:-1], strict=True)), last]
        yield f"  {'  '.join(line)}".rstrip()


def _table(rows: list[Row]) -> Iterator[str]:
    shown, rest = rows[:ROWS], rows[ROWS:]
    name = max(len("capacity"), *(min(len(row.name), NAME) for row in shown))
    busy = max(len("busy"), *(len(row.busy) for row in shown))
    moved = max(len("moved"), *(len(row.moved) for row in shown))
    rate = max(len("rate"), *(len(row.rate) for row in shown))
    yield f"  {'capacity':<{name}}  {'busy':>{busy}}  {'moved':>{moved}}  {'rate':>{rate}}  utilisation"
    for row in shown:
        yield (
            f"  {_short(row.name):<{name}}  {row.busy:>{busy}}  {row.moved:>{moved}}  {row.rate:>{rate}}"
            f"  {bar(row.utilisation)} {row.percent:>6}"
        )
    if rest:
        most = max(row.utilisation for row in rest)
        yield f"  and {len(rest)} more, utilisation at most {format_share(most)}"


def bar(fraction: float) -> str:
    """A bar of blocks; anything at all shows, and only a full one looks full.

    >>> bar(0.5), bar(0.001), bar(0.999)
    ('██████······', '█···········', '███████████·')
    """
    full = round(fraction * BAR)
    if 0 < fraction < 0.9995:
        full = min(max(full, 1), BAR - 1)
    return "█" * min(full, BAR) + "·" * (BAR - full)


def _short(name: str) -> str:
    if len(name) <= NAME:
        return name
    tail = NAME // 2
    return f"{name[: NAME - tail - 3]}...{name[-tail:]}"


def _memory(memory: DeviceMemory) -> str:
    if not memory.fits:
        return f"OUT OF MEMORY: {memory.verdict()}"
    has = "" if memory.size is None else f" of {format_quantity(memory.size, 'B')}"
    return f"{memory.device} peak {format_quantity(memory.peak, 'B')}{has}"


def _requests(found: RequestStatistics) -> str:
    def time(seconds: float) -> str:
        return format_quantity(seconds, "s")

    counters = "".join(f", {value:,.6g} {name.replace('_', ' ')}" for name, value in found.counters if value)
    text = (
        f"{found.device}: {found.count:,} one by one, {format_quantity(found.rate, '1/s')}, "
        f"{format_quantity(found.bandwidth, 'B/s')}; latency p50 {time(found.latency_p50_s)}, p95 {time(found.latency_p95_s)}, "
        f"p99 {time(found.latency_p99_s)}, max {time(found.latency_max_s)}; {found.in_flight_mean:.3g} in flight{counters}"
    )
    if found.took_s is None or found.closed_form_s is None or found.gap is None:
        return text
    gap = format_change(found.gap)
    return f"{text}; its ops took {time(found.took_s)}, the closed form says {time(found.closed_form_s)} ({gap})"


def _verdict(verdict: Verdict) -> str:
    text = f"{verdict.quantity} {verdict.wanted}: "
    match verdict.status:
        case "met":
            return text + "met"
        case "violated":
            return text + f"VIOLATED, {verdict.reason}"
        case "skipped":
            return text + f"not checked ({verdict.reason})"
