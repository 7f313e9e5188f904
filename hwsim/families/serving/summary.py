"""Served models in the summary and in the JSON document: lines, the table of latencies, entries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from hwsim.families.serving import autoscaling as scaling
from hwsim.families.serving.parts import LEAST, NAMES, SHORT, SLOW, limited_by
from hwsim.families.serving.results.accounting import ADAPTER_WAIT, PARTS, REPLICA_START
from hwsim.families.serving.results.errors import serving_intervals
from hwsim.families.serving.results.measures import AdapterUse, RequestRow
from hwsim.families.serving.results.statistics import PERCENTILES, ServiceStatistics
from hwsim.families_interface import SummaryLine
from hwsim.formats import counted, format_change, format_count, format_quantity, format_share, percent
from hwsim.results.interval import Interval
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.lines import LABEL, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns

PLAIN: Final = (  # entries with the names of the statistics
    "name", "replicas", "gpus_per_replica", "requests", "prompt_tokens", "output_tokens", "span_s", "duration_s",
    "requests_per_s", "offered_per_s", "overloaded", "tokens_per_s", "tokens_per_s_gpu", "iterations",
    "batch_mean", "in_flight_mean", "queued_mean", "queued_max", "preemptions", "recomputed_tokens",
    "kv_cache_tokens", "kv_cache_bytes", "kv_cache_peak", "kv_cache_mean", "cached_tokens", "goodput_per_s", "sampled", "warm_up",
    "queue_growth_per_s", "stable",
)  # fmt: skip
IDLE: Final = "idle"
DOING: Final = {
    "prefill": "prefill",
    "decode": "decode",
    "communication": "communication",
    "contention": "contention with other jobs or slow parts",
    "host": "host",
}
SPREADS: Final = {"ttft": "first_token", "tpot": "each_token", "itl": "itl", "latency": "latency", "queueing": "queueing"}


def headline(service: ServiceStatistics) -> Iterator[SummaryLine]:
    """Yield throughput and load."""
    yield SummaryLine("throughput", throughput(service))
    yield SummaryLine("load", load(service))


def throughput(service: ServiceStatistics) -> str:
    """Return output tokens and requests per second."""
    requests = f"{counted(service.requests_per_s)} requests/s"
    if not service.output_tokens:
        return requests
    on_each = f", {counted(service.tokens_per_s_gpu)} per GPU" if service.gpus > 1 else ""
    return f"{counted(service.tokens_per_s)} output tokens/s{on_each}; {requests} completed"


def load(service: ServiceStatistics) -> str:
    """Return arrival rate, number of requests and warm-up."""
    rate = f"{counted(service.offered_per_s)} requests/s arrive; " if service.offered_per_s else ""
    warm = ""
    if service.warm_up:
        part = format_share(service.warm_up / (service.warm_up + service.requests))
        warm = f" after a warm-up of {service.warm_up:,} ({part})"
    return f"{rate}{_format_requests(service.requests)} in {_time(service.span_s)}{warm}"


def bottleneck(service: ServiceStatistics) -> tuple[str, bool]:
    """Return the main use of the replicas' time, and whether it is GPU work."""
    spent = _time_shares(service)
    if not spent:
        return "", False
    name, share = spent[0]
    if name == IDLE:
        return f"none, idle {format_share(share)} of the time", False
    return f"{name}: {format_share(share)} of GPU time", name in (DOING["prefill"], DOING["decode"])


def lines(service: ServiceStatistics, *, alone: bool = True) -> Iterator[SummaryLine]:
    """Yield the lines of the summary; `alone`: throughput and load are omitted, because the headline contains them."""
    prefix = f"{service.name}: " if service.name else ""
    if not alone:
        yield from (fact._replace(text=prefix + fact.text) for fact in headline(service))
    yield from (fact._replace(text=prefix + fact.text) for fact in _lines(service))


def _lines(service: ServiceStatistics) -> Iterator[SummaryLine]:
    yield SummaryLine("replicas", f"{_format_replicas(service)}; batch size {service.batch_mean:.3g} on average")
    for part, replicas in zip(("prefill: ", "decode: ") if service.prefill_replicas else ("",), service.scalings, strict=False):
        yield SummaryLine("autoscaling", part + scaling.line(replicas))
    yield SummaryLine("GPU time", ", ".join(f"{name} {format_share(share)}" for name, share in _time_shares(service)))
    if service.goodput_per_s is not None:
        kept = [f"{NAMES[name]} <= {_time(limit)}" for name, limit in service.goal._asdict().items() if limit is not None]
        share = format_share(service.good / service.requests)
        yield SummaryLine("goodput", f"{counted(service.goodput_per_s)} requests/s meet {', '.join(kept)}: {share} of all")
    queue = f"queue depth {format_count(service.queued_mean)}, at most {service.queued_max}"
    yield SummaryLine("in flight", f"{format_count(service.in_flight_mean)} requests on average; {queue}")
    if service.kv_cache_tokens is not None:
        lost = f"{service.preemptions:,} preemptions"
        lost += f", {service.recomputed_tokens:,} tokens recomputed" if service.preemptions else ""
        narrow = f" in {service.cache_format}" if service.cache_format else ""
        filled = f"{format_share(service.kv_cache_mean)} of {service.kv_cache_tokens:,} tokens{narrow} per replica"
        yield SummaryLine("KV cache", f"{filled}, peak {format_share(service.kv_cache_peak)}; {lost}")
    if service.cached_tokens:
        cached = format_share(service.cached_tokens / service.prompt_tokens)
        yield SummaryLine("prefix cache", f"{cached} of prompt tokens hit ({service.cached_tokens:,} tokens)")
    if service.adapters is not None:
        yield SummaryLine("adapters", _format_adapters(service.adapters, service.requests + service.warm_up))
    for tier in service.tiers:
        brought = f"{tier.loaded_tokens:,} tokens loaded ({format_share(tier.loaded_tokens / service.prompt_tokens)} of prompts)"
        filled = f"{tier.stored_tokens:,} stored, peak {format_share(tier.peak_tokens / tier.tokens)} of {tier.tokens:,}"
        late = "; WRITES EXCEED ITS BANDWIDTH: some of it would be missing" if tier.write_utilization > 1 else ""
        yield SummaryLine(
            f"KV in {tier.name}", f"{brought}; {filled}; writes use {format_share(tier.write_utilization)} of its bandwidth{late}"
        )
    for text in _sampling(service):
        yield SummaryLine("sampling error", text, verbose=True)


def _format_replicas(service: ServiceStatistics) -> str:
    """Return replicas and their GPUs: `4 x 2 GPUs`; separately for prefill and decode."""
    counts = [scaling.count(part) for part in service.scalings]
    if service.prefill_replicas > 0:
        counts = counts or [f"{service.prefill_replicas}", f"{service.replicas - service.prefill_replicas}"]
        return f"prefill {counts[0]} x {_gpus(service.prefill_gpus)}, decode {counts[1]} x {_gpus(service.gpus_per_replica)}"
    return f"{counts[0] if counts else service.replicas} x {_gpus(service.gpus_per_replica)}"


def _gpus(count: int) -> str:
    return f"{count} GPU{'s' if count > 1 else ''}"


def table(service: ServiceStatistics) -> Iterator[str]:
    """Yield latencies by percentile with their interval, and the breakdown of the slowest requests."""
    rows = [(label, spread, key) for label, key, spread in (
        ("TTFT", "ttft", service.first_token), ("TPOT", "tpot", service.each_token), ("ITL", "", service.itl),
        ("end to end", "latency", service.latency), ("queueing", "", service.queueing),
    ) if spread is not None]  # fmt: skip
    intervals = serving_intervals(service)
    yield ""
    if service.overloaded:
        yield "  overloaded: latencies grow with the length of the run and have no percentiles"
    else:
        short = {(row.measure, row.percentile) for row in service.sampling_errors if row.too_short or row.half is None}
        columns = [Column(service.name or "latency", [label for label, _, _ in rows], right=False)]
        for name, percentile in (("mean", 0), *((f"p{number}", number) for number in PERCENTILES)):
            cells = [f"{_time(getattr(spread, name))}{'*' if (key, percentile) in short else ''}" for _, spread, key in rows]
            columns.append(Column(name, cells))
        columns.append(Column("90 % interval", [_interval(intervals[key]) if key in intervals else "-" for _, _, key in rows]))
        yield from align_columns(columns)
        if short:
            few = "request is" if service.requests == 1 else "requests are"
            yield f"  * {service.requests:,} {few} too few for this number (sampling error)"
        if intervals:
            yield from wrap_lines(f"90 % interval: {_interval_basis(intervals)}", 2)
        for measure, sure in intervals.items():
            if sure.scored:
                change = f"corrected by {format_change(sure.factor - 1)}" if sure.correction else "not corrected"
                yield from wrap_lines(f"{NAMES.get(measure, measure)}: {change}, interval from {sure.scored}", 2)
    if texts := list(_slowest(service)):
        yield ""
        yield from texts


def _interval_basis(sure: Mapping[str, Interval]) -> str:
    """Return the basis of the intervals of latencies."""
    widest_basis = max(sure.values(), key=lambda interval: interval.rows)
    if widest_basis.case == "outside":
        return "extrapolated beyond all measurements (no guarantee)"
    unit = "models" if widest_basis.case == "source" else "GPUs"
    return f"cross-validated, {widest_basis.rows:,} measurements, {widest_basis.units} {unit} held out in turn"


def _sampling(service: ServiceStatistics) -> Iterator[str]:
    """Yield the 95 % confidence intervals of percentiles over other random requests."""
    for measure, name in NAMES.items():
        rows = [row for row in service.sampling_errors if row.measure == measure and row.percentile]
        kept = [f"p{row.percentile} ±{percent(row.half, '.2g')}" for row in rows if not row.too_short and row.half is not None]
        if kept:
            yield f"{name} {', '.join(kept)} (95 % confidence)"


def _slowest(service: ServiceStatistics) -> Iterator[str]:
    """Yield the latency breakdown of the slowest requests."""
    slow = [where for where in service.breakdowns if where.percentile == SLOW and where.measure != "latency"]
    slow = slow or [where for where in service.breakdowns if where.percentile == SLOW]
    for where in slow:
        yield from labelled_lines(f"p{SLOW} {SHORT[where.measure]}", f"breakdown: {limited_by(where)}", LABEL)


def _time_shares(service: ServiceStatistics) -> list[tuple[str, float]]:
    """Return (activity, share of the time of all replicas), longest first, idle time last."""
    total, scaled = service.replicas * service.duration_s, service.scalings
    total = math.fsum(part.paid_s for part in scaled) if scaled else total
    if total <= 0:
        return []
    spent = [(DOING.get(name, name), seconds / total) for name, seconds in service.time_by_use if seconds > LEAST * total]
    idle = 1.0 - math.fsum(seconds for _, seconds in service.time_by_use) / total
    if scaled:
        starting = math.fsum(part.starting_s for part in scaled) / total
        spent += [("replica start", starting)] if starting > LEAST else []
        idle -= starting
    spent.sort(key=lambda pair: (-pair[1], pair[0]))
    return [*spent, (IDLE, idle)] if idle > LEAST else spent


def between(fast: ServiceStatistics, slow: ServiceStatistics) -> Iterator[SummaryLine]:
    """Yield latencies at both ends of the interval of kernel times."""
    prefix = f"{fast.name}: " if fast.name else ""
    for name, key in (("TTFT", "first_token"), ("TPOT", "each_token"), ("end to end", "latency")):
        ends = getattr(fast, key), getattr(slow, key)
        if None not in ends:
            text = ", ".join(f"p{p} {_time(getattr(ends[0], f'p{p}'))}–{_time(getattr(ends[1], f'p{p}'))}" for p in (50, 95))
            yield SummaryLine("90 % interval", f"{prefix}{name} {text}")
    if slow.overloaded and not fast.overloaded:
        yield SummaryLine("", "at the slow end the service is overloaded")


def _format_adapters(use: AdapterUse, requests: int) -> str:
    """Return loaded adapters, and requests that waited for a slot."""
    absent = f"{format_share(use.loads / max(1, use.acquisitions))} of requests load theirs, {_time(use.load_s)} each"
    text = f"{use.adapters:,}, {use.slots:,} slots per replica; {absent}"
    if not use.waits:
        return text
    mean, longest = _time(use.wait_s / use.waits), _time(use.max_wait_s)
    return f"{text}; {format_share(use.waits / requests)} wait for a slot, {mean} on average, at most {longest}"


def _format_requests(requests: int) -> str:
    return "1 request" if requests == 1 else f"{requests:,} requests"


def _interval(sure: Interval) -> str:
    low, high = (percent(end - 1, "+.0f") for end in (sure.low, sure.high))
    return f"{low.removesuffix(' %')}/{high}"


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def as_dict(service: ServiceStatistics, *, rows: bool) -> dict[str, Any]:
    """Return the entry of the JSON document; keys end in their unit.

    Args:
        service: statistics of the service.
        rows: add a row for each request.
    """
    spreads = {key: getattr(service, name) for key, name in SPREADS.items()}
    return {
        **select_attributes(service, *PLAIN),
        **({"replicas": sum(part.max_replicas for part in service.scalings)} if service.scalings else {}),  # integers
        **{
            key: None if spread is None else {f"{name}_s": value for name, value in asdict(spread).items()}
            for key, spread in spreads.items()
        },
        "sampling_errors": [
            select_attributes(row, "measure", "percentile", "value_s", "low_s", "high_s", "too_short")
            for row in service.sampling_errors
        ],
        "interval": {
            measure: {
                **select_attributes(interval, "low", "high", "level", "case", "regime", measurements="rows", held_out="units"),
                **(select_attributes(interval, "factor", "scored") if interval.scored else {}),
            }
            for measure, interval in serving_intervals(service).items()
        },
        "slo": {f"{name}_s": limit for name, limit in service.goal._asdict().items()},
        "time_by_use": {f"{name}_s": seconds for name, seconds in service.time_by_use},
        "breakdowns": [
            {
                **select_attributes(where, "measure", "percentile", "value_s", "requests", "mean_s"),
                "parts": {f"{name}_s": seconds for name, seconds in where.parts},
            }
            for where in service.breakdowns
        ],
        **({} if service.scaling is None else {"scaling": scaling.as_dict(service.scaling)}),
        **({} if service.prompt_scaling is None else {"prefill_scaling": scaling.as_dict(service.prompt_scaling)}),
        **({} if service.adapters is None else {"adapters": service.adapters._asdict()}),
        "tiers": [tier._asdict() for tier in service.tiers],
        "time_series": [moment._asdict() for moment in service.time_series],
        **({"rows": [_row_entry(row, service) for row in service.rows]} if rows else {}),
    }


def _row_entry(row: RequestRow, service: ServiceStatistics) -> dict[str, Any]:
    """Return the entry of a request; its parts are integers (fs) and add up to its latency."""
    left_out = {PARTS[REPLICA_START]} if service.scaling is None else set()
    left_out |= {PARTS[ADAPTER_WAIT]} if service.adapters is None else set()
    parts = zip(PARTS, row.parts_fs, strict=True)
    return {**row._asdict(), "parts_fs": {name: part for name, part in parts if name not in left_out}}
