"""Services in the summary: headline, latency table and throughput limits; and their entries of the JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from hwsim.families.services.results.responses import (
    GIVEN_UP,
    RETRYING,
    SERVICE_TIME,
    LruCacheResult,
    ServiceResponses,
    Services,
    ServiceWait,
    ThroughputLimit,
)
from hwsim.families.services.results.uncertainty import work_interval
from hwsim.families_interface import SummaryLine
from hwsim.formats import counted, format_change, format_count, format_quantity, format_share, percent, pluralized
from hwsim.results.batches import PERCENTILES, ConfidenceRange
from hwsim.results.result import Result
from hwsim.views.interval.say import TITLE
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.lines import LABEL, labelled_lines
from hwsim.views.kit.table import Column, align_columns
from hwsim.views.summary.capacities import resource_of

RUNGS: Final = 8  # maximum number of rows in the table of limits
MUCH: Final = 100  # factor on the lowest limit; limits above are only counted
WIDE: Final = 0.5  # relative half width above which an interval is printed as "wide"
EXACT: Final = 1e-6  # relative half width below which an interval is only rounding
LEAST: Final = 0.01  # share of the latency below which a wait is not listed
CAUSES: Final = {SERVICE_TIME: "service", RETRYING: "retry backoff", GIVEN_UP: "timed-out attempts"}  # not waits for a resource
PLAIN: Final = (
    "name", "span_s", "arrived", "external", "offered_per_s", "throughput_per_s", "goodput_per_s", "completed", "refused",
    "failed", "wasted", "dropped", "timeouts", "retries", "queue_growth_per_s", "in_flight_mean", "in_flight_max", "queued_mean",
    "queued_max", "closed_loop", "workers", "unfinished",
)  # fmt: skip


def headline(services: Services) -> Iterator[SummaryLine]:
    """Yield the capacity: the maximum request rate, its bottleneck, and the load as a share of it."""
    if services.throughput_limits and not services.endless:
        first = services.throughput_limits[0]
        load = "" if first.utilization is None else f"; the load is {format_share(first.utilization)} of it"
        yield SummaryLine(
            "capacity", f"{counted(first.limit_per_s)} requests/s of {first.service}, bound by {called(first)}{load}"
        )


def simulated(services: Services) -> str:
    """Return the number of simulated requests of all services and the simulated time, in words."""
    count = sum(entry.arrived for entry in services.answers)  # integers
    return f"{pluralized(count, 'request')} in {_time(services.end_s)}"


def lines(services: Services) -> Iterator[SummaryLine]:
    """Yield the facts of the summary: counts by outcome, caches, requests simulated, deadlocks."""
    for entry in services.answers:
        for number, text in enumerate(_of(entry)):
            yield SummaryLine(entry.name if number == 0 else "", text)
    for held in services.caches:
        yield SummaryLine("cache", _held(held))
    yield SummaryLine("simulated", simulated(services))
    if services.deadlock:
        text = f"requests wait for each other forever: {services.deadlock}; add a `timeout` to `ask`, or workers"
        yield SummaryLine("DEADLOCK", text)
    for name in services.endless:
        yield SummaryLine("DEADLOCK", f"a request of {name} never ends: services call each other in a circle")


def _held(held: LruCacheResult) -> str:
    popular = "uniform popularity" if not held.zipf else f"Zipf popularity (exponent {held.zipf:g})"
    filled = f", after {_rate(held.lookups_to_fill)} lookups from empty" if held.lookups_to_fill >= 1 else ""
    items = f"{held.entries:,} of {held.distinct_items:,} items"
    return f"{held.service} hits {format_share(held.hit_rate)}: {items}, {popular}{filled}"


def unsure(result: Result) -> Iterator[SummaryLine]:
    """Yield the uncertainty of the service time due to machine parameters."""
    sure = work_interval(result)
    if sure.half >= EXACT:
        low, high = (format_change(end) for end in (math.expm1(-sure.half), math.expm1(sure.half)))
        text = f"service time {low.removesuffix(' %')}/{high} (machine parameters); queueing: add --interval"
        yield SummaryLine(TITLE, text)


def between(fast: Services, slow: Services) -> Iterator[SummaryLine]:
    """Yield the percentiles with the shortest and the longest service time of its interval."""
    for first, second in zip(fast.answers, slow.answers, strict=True):
        if first.latency is None:
            yield SummaryLine(TITLE, f"{first.name}: no steady state at either end")
        elif second.latency is None:
            low = ", ".join(f"{name} from {_time(first.latency.at(share).value)}" for name, share in PERCENTILES.items())
            yield SummaryLine(TITLE, f"{first.name}: {low}; overloaded at the slow end")
        else:
            ends = [
                f"{name} {_time(first.latency.at(share).value)}–{_time(second.latency.at(share).value)}"
                for name, share in PERCENTILES.items()
            ]
            yield SummaryLine(TITLE, f"{first.name}: {', '.join(ends)} (machine parameters)")


def _of(entry: ServiceResponses) -> Iterator[str]:
    """Yield sentences on lost requests, goodput, overload and warm-up of a service."""
    lost = [
        (entry.refused, "rejected"), (entry.failed, "failed"), (entry.wasted, "completed after their caller gave up"),
        (entry.dropped, "dropped from the queue"), (entry.timeouts, "attempts timed out"), (entry.retries, "retries"),
    ]  # fmt: skip
    if any(count for count, _ in lost):
        yield ", ".join(f"{count:,} {label} ({format_share(count / max(entry.arrived, 1))})" for count, label in lost if count)
    if entry.good < entry.completed:
        yield f"goodput {_rate(entry.goodput_per_s)}/s of {_rate(entry.throughput_per_s)}/s completed"
    if entry.queue_growth_per_s > 0:
        yield f"OVERLOADED: the queue grows by {_rate(entry.queue_growth_per_s)} requests/s, so latency has no percentiles"
    elif entry.latency is not None and entry.latency.dropped:
        left = format_share(entry.latency.dropped / entry.completed)
        yield f"warm-up: {entry.latency.dropped:,} requests ({left}) excluded"
    if entry.closed_loop and entry.external and entry.queue_growth_per_s <= 0:
        yield "closed-loop clients wait for each answer; an open load of this rate would see longer tails (coordinated omission)"


def latencies(services: Services) -> Iterator[str]:
    """Yield the latency table: rate, mean and percentiles with confidence intervals, requests in flight and queued."""
    entries = [entry for entry in services.answers if entry.arrived]
    if not entries:
        return
    heads, notes = ["mean", *PERCENTILES], []
    cells: dict[str, list[str]] = {name: [] for name in ("latency", "rate", *heads, "max", "in flight", "max ", "queued")}
    for entry in entries:
        settled = entry.latency
        known = [] if settled is None else [settled.mean, *(settled.at(share) for share in PERCENTILES.values())]
        starred = [settled is not None and share in settled.short for share in (0.0, *PERCENTILES.values())]
        values = [f"{_time(number.value)}{'*' if star else ''}" for number, star in zip(known, starred, strict=False)]
        queued = "-" if entry.workers is None else format_count(entry.queued_mean)
        row = [
            entry.name, f"{_rate(entry.throughput_per_s)}/s", *(values or ["-"] * len(heads)),
            "-" if settled is None else _time(settled.most), format_count(entry.in_flight_mean),
            f"{entry.in_flight_max:,}", queued,
        ]  # fmt: skip
        second = ["", "", *map(_half, known), "", "", "", ""] if known and entry.steady else []
        for column, cell in zip(cells.values(), row, strict=True):
            column.append(cell)
        for column, cell in zip(cells.values(), second, strict=False):
            column.append(cell)
        if settled is not None and settled.short:
            enough = settled.needed is not None and settled.needed > settled.count
            more = f"; {settled.needed:,} requests are enough" if enough else ""
            notes.append(f"  * {entry.name}: the run is too short for this number{more}")
    yield ""
    yield from align_columns([Column(name.strip(), column, right=name != "latency") for name, column in cells.items()])
    if any(entry.latency is not None and entry.steady for entry in entries):
        yield "  ± is the 95 % confidence interval of sampling"
    if any(entry.latency is not None and not entry.steady for entry in entries):
        yield "  no confidence intervals: the load or the machine changes during the run"
    yield from notes


def _half(known: ConfidenceRange) -> str:
    """Return the half width of a confidence interval, or "wide" if it exceeds half of the value."""
    if not math.isfinite(known.half) or known.half > WIDE:
        return "wide"
    return f"±{percent(known.half if known.half >= EXACT else 0.0, '.2g')}"


def slowest(services: Services) -> Iterator[str]:
    """Yield the breakdown of the latency of requests above the 99th percentile."""
    entries = [entry for entry in services.answers if entry.waits_above]
    if entries:
        yield ""
    for number, entry in enumerate(entries):
        yield from labelled_lines("" if number else "slowest 1 %", f"{entry.name} {_waits(entry.waits_above)}", LABEL)


def _waits(waits: tuple[ServiceWait, ...]) -> str:
    total = math.fsum(wait.seconds for wait in waits)
    shown = [wait for wait in waits if wait.seconds >= LEAST * total]
    parts = [f"{_time(wait.seconds)} {cause_of(wait.what)}" for wait in shown]
    return f"{_time(total)} on average: {', '.join(parts)}"


def cause_of(what: str) -> str:
    """Return the label of a `ServiceWait`: the resource waited for, or another part of the latency.

    >>> cause_of(SERVICE_TIME), cause_of("disk.media"), cause_of(RETRYING)
    ('service', 'waiting for disk', 'retry backoff')
    """
    return CAUSES.get(what) or f"waiting for {resource_of(what)}"


def called(rung: ThroughputLimit) -> str:
    """Return the name of a limit in tables."""
    return {"workers": f"{rung.name} workers", "lock": f"lock {rung.name}"}.get(rung.kind, resource_of(rung.name))


def table(services: Services) -> Iterator[str]:
    """Yield the table of limits: service demand, maximum rate, load and utilization of each resource."""
    if not services.throughput_limits or services.endless:
        return
    most = MUCH * services.throughput_limits[0].limit_per_s
    near = [rung for rung in services.throughput_limits if rung.limit_per_s <= most]
    rows = [rung for number, rung in enumerate(near) if not _repeats(near, number)][:RUNGS]
    yield ""
    yield from align_columns([
        Column("resource", [called(rung) for rung in rows], right=False),
        Column("service demand", [_time(rung.service_demand_s) for rung in rows]),
        Column("max rate", [f"{_rate(rung.limit_per_s)}/s" for rung in rows]),
        Column("of", [rung.service for rung in rows], right=False),
        Column("load/max", ["-" if rung.utilization is None else format_share(rung.utilization) for rung in rows]),
        Column("util", ["-" if rung.measured_utilization is None else format_share(rung.measured_utilization) for rung in rows]),
    ])  # fmt: skip
    if len(services.throughput_limits) > len(rows):
        yield f"  {len(services.throughput_limits) - len(rows)} more allow higher rates"


def _repeats(rungs: list[ThroughputLimit], number: int) -> bool:
    """Whether the previous capacity has the same service demand, as two links of one route do."""
    rung = rungs[number]
    before = rungs[number - 1] if number else None
    return (
        before is not None
        and rung.kind == before.kind == "capacity"
        and math.isclose(rung.service_demand_s, before.service_demand_s, rel_tol=1e-9)
    )


def _rate(per_s: float) -> str:
    return counted(per_s)


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def as_dict(services: Services, half: float) -> dict[str, Any]:
    """Return the entry of the JSON document; `half` is the relative half width of the interval of the service time."""
    return {
        "services": [_entry(answer) for answer in services.answers],
        "throughput_limits": [
            rung._asdict() | {"limit_per_s": rung.limit_per_s if math.isfinite(rung.limit_per_s) else None}
            for rung in services.throughput_limits
        ],
        "unloaded_s": dict(services.unloaded_s),
        "end_s": services.end_s,
        "service_time_half_width": half,
        "deadlock": services.deadlock,
        "endless": list(services.endless),
        "caches": [held._asdict() for held in services.caches],
    }


def _entry(entry: ServiceResponses) -> dict[str, Any]:
    settled = entry.latency
    return {
        **select_attributes(entry, *PLAIN),
        "latency": None
        if settled is None
        else {
            "count": settled.count,
            "warm_up": settled.dropped,
            "warm_up_share": settled.dropped / entry.completed,
            "mean_s": _ends(settled.mean),
            **{f"{name}_s": _ends(settled.at(share)) for name, share in PERCENTILES.items()},
            "max_s": settled.most,
            "is_steady": settled.settled,
            "too_short_for": list(settled.short),
            "required_count": settled.needed,
        },
        "waits_s": {wait.what: wait.seconds for wait in entry.waits},
        "waits_above_p99_s": {wait.what: wait.seconds for wait in entry.waits_above},
        "time_series": [stretch._asdict() for stretch in entry.time_series],
    }


def _ends(known: ConfidenceRange) -> dict[str, float | None]:
    """Return a value and the ends of its interval; None for an end if the run is too short to determine it."""
    return {name: value if math.isfinite(value) else None for name, value in asdict(known).items()}
