"""Requests of services: lines of the summary, and entries of the JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from hwsim.families.serving import scaled as scaling
from hwsim.families.serving.parts import LEAST, NAMES, SLOW, limited_by
from hwsim.families.serving.results.accounting import ADAPTER, PARTS, STARTING
from hwsim.families.serving.results.errors import sure_of
from hwsim.families.serving.results.statistics import AdapterUse, RequestRow, ServiceStatistics
from hwsim.formats import format_count, format_quantity, format_share, percent
from hwsim.results.interval import Interval
from hwsim.results.requests import Spread
from hwsim.views.kit.document import picked

PLAIN: Final = (  # entries of the document with the names of the statistics
    "name", "copies", "gpus_per_copy", "requests", "prompt_tokens", "output_tokens", "span_s", "lasted_s", "requests_per_s",
    "offered_per_s",
    "overloaded", "tokens_per_s", "tokens_per_s_gpu", "iterations",
    "batch_mean", "in_system_mean", "queue_mean", "queue_max", "put_off",
    "cache_tokens", "cache_bytes", "cache_peak", "cache_mean", "cached_tokens", "goodput_per_s", "sampled", "warm_up",
    "grows_per_s", "keeps_up",
)  # fmt: skip
DIFFERS: Final = 1.02  # times as many came a second as were answered, from which both are said
DOING: Final = {
    "prompts": "reads",
    "answers": "writes",
    "network": "exchanges",
    "shared": "other jobs or slow parts",
    "host": "host",
}
SPREADS: Final = {"ttft": "first_token", "tpot": "each_token", "gap": "gap", "latency": "latency", "wait": "wait"}


def lines(service: ServiceStatistics) -> Iterator[tuple[str, str]]:
    """(title, text) of each line of the summary."""
    of = f"{service.name}: " if service.name else ""
    yield from ((title, of + text) for title, text in _lines(service))


def _lines(service: ServiceStatistics) -> Iterator[tuple[str, str]]:
    copies = f"{service.copies}" if service.scaling is None else scaling.count(service.scaling)
    on = f"{copies} x {service.gpus_per_copy} GPU{'s' if service.gpus_per_copy > 1 else ''}"
    if (prompts := service.prompt_copies) > 0:
        many: list[str] = [f"{prompts}", f"{service.copies - prompts}"]
        if service.scalings:
            many = [scaling.count(each) for each in service.scalings]
        on = f"{many[0]} x {service.prompt_gpus} GPUs for prompts, {many[1]} x {service.gpus_per_copy} for answers"
    answers = f", {_rate(service.tokens_per_s)} tokens/s" if service.output_tokens else ""
    if answers and service.gpus > 1:
        answers += f" ({_rate(service.tokens_per_s_gpu)} a GPU)"
    rate = f"{_rate(service.requests_per_s)} requests/s"
    count = _count(service.requests)
    yield "served", f"{count} on {on}: {rate}{answers}; {service.batch_mean:.3g} in a batch"
    for part, each in zip(("prompts: ", "answers: ") if service.prompt_copies else ("",), service.scalings, strict=False):
        yield "scaling", part + scaling.line(each)
    if service.warm_up:
        part = format_share(service.warm_up / (service.warm_up + service.requests))
        yield "warm-up", f"the first {service.warm_up:,} requests ({part}), which do not count"
    if not service.overloaded:  # else times grow with the run, as a warning says
        if service.offered_per_s > DIFFERS * service.requests_per_s:
            more = f"{_rate(service.offered_per_s)} requests/s, {_rate(service.requests_per_s)} answered until the last answer"
            yield "came", more
        yield from _times(service)
    if service.cached_tokens:
        cached = format_share(service.cached_tokens / service.prompt_tokens)
        yield "prefixes", f"{cached} of the tokens of prompts were in the cache: {service.cached_tokens:,}"
    if service.adapters is not None:
        yield "adapters", _adapters(service.adapters, service.requests + service.warm_up)
    for tier in service.tiers:
        brought = (
            f"{tier.brought_tokens:,} tokens came back ({format_share(tier.brought_tokens / service.prompt_tokens)} of prompts)"
        )
        filled = f"{tier.stored_tokens:,} stored, {format_share(tier.peak_tokens / tier.tokens)} of {tier.tokens:,} at most"
        late = "; MORE THAN IT CAN WRITE: some of it would not be there" if tier.writing > 1 else ""
        yield f"on the {tier.name}", f"{brought}; {filled}; written in {format_share(tier.writing)} of the time{late}"
    if sure := sure_of(service):
        ranges = ", ".join(f"{NAMES.get(measure, 'tokens a second')} {_range(each)}" for measure, each in sure.items())
        behind = max(sure.values(), key=lambda each: each.rows)
        unit = "models on GPUs" if behind.case == "source" else "GPUs"
        least = "no promise" if behind.case == "outside" else f"{behind.rows:,} measured, {behind.units} {unit} left out in turn"
        yield "9 of 10", f"such services: {ranges} ({least})"
    queue = f"{format_count(service.queue_mean)} in the mean, {service.queue_max} at most"
    yield "queue", f"{queue}; {format_count(service.in_system_mean)} requests there, all told"
    yield from _limits(service)
    if service.cache_tokens is not None:
        lost = f"; {service.put_off:,} put off, {service.read_again:,} tokens read again" if service.put_off else ""
        filled = f"{format_share(service.cache_mean)} in the mean, {format_share(service.cache_peak)} at most"
        narrow = f" in {service.cache_format}" if service.cache_format else ""
        yield "KV cache", f"{filled} of {service.cache_tokens:,} tokens{narrow} on each copy{lost}"


def _times(service: ServiceStatistics) -> Iterator[tuple[str, str]]:
    """Lines of the times of requests, and how far other requests would move them."""
    if service.first_token is not None:
        yield "first token", _spread(service.first_token)
    if service.each_token is not None:
        gaps = "" if service.gap is None else f"; from one token to the next p99 {_time(service.gap.p99)}"
        yield "each token", _spread(service.each_token) + gaps
    yield "request", f"{_spread(service.latency)}; of it {_time(service.wait.mean)} in the mean before anything is read"
    yield from _sampling(service)


def _sampling(service: ServiceStatistics) -> Iterator[tuple[str, str]]:
    """Percentiles with other requests, and which of them the run is too short for."""
    texts, short = [], []
    for measure, name in NAMES.items():
        rows = [row for row in service.sampling if row.measure == measure and row.percentile]
        kept = [f"p{row.percentile} +-{percent(row.half, '.2g')}" for row in rows if not row.short and row.half is not None]
        short += [f"p{row.percentile}" for row in rows if row.short or row.half is None]
        if kept:
            texts.append(f"{name} {', '.join(kept)}")
    if short:
        missing = ", ".join(sorted(set(short), key=lambda name: int(name[1:])))
        texts.append(f"{_count(service.requests)} {'is' if service.requests == 1 else 'are'} too few for {missing}")
    if texts:
        yield "other draws", "; ".join(texts)


def _limits(service: ServiceStatistics) -> Iterator[tuple[str, str]]:
    """Lines of the service level, of what the slowest wait for, and of what the copies did."""
    goodput, gap = service.goodput_per_s, "; "
    if goodput is not None:
        kept = [f"{NAMES[name]} within {_time(limit)}" for name, limit in service.goal._asdict().items() if limit is not None]
        share = format_share(service.good / service.requests)
        yield "goodput", f"{_rate(goodput)} requests/s keep {', '.join(kept)}: {share} of them"
    slow = [where for where in service.where if where.percentile == SLOW and where.measure != "latency"]
    slow = slow or [where for where in service.where if where.percentile == SLOW]
    if texts := [f"{NAMES[where.measure]} {limited_by(where)}" for where in slow]:
        yield f"p{SLOW} is", gap.join(texts)
    total, scaled = service.copies * service.lasted_s, service.scalings
    total = math.fsum(each.paid_s for each in scaled) if scaled else total
    spent = [(name, seconds / total) for name, seconds in service.spent_s if total > 0 and seconds > LEAST * total]
    idle = 1.0 - math.fsum(seconds for _, seconds in service.spent_s) / total if total > 0 else 0.0
    if scaled and total > 0:
        starting = math.fsum(each.starting_s for each in scaled) / total
        spent += [("starts", starting)] if starting > LEAST else []
        idle -= starting
    if idle > LEAST:
        spent.append(("idle", idle))
    which = "copies" if service.copies > 1 else "copy"
    yield which, ", ".join(f"{DOING.get(name, name)} {format_share(share)}" for name, share in spent) + " of the time"


def between(fast: ServiceStatistics, slow: ServiceStatistics) -> Iterator[tuple[str, str]]:
    """(title, text) of what nine of ten such services do: with kernels as fast, and as slow, as the ends of the interval."""
    of = f"{fast.name}: " if fast.name else ""
    parts = []
    for words, name in (("first token", "first_token"), ("each token", "each_token"), ("request", "latency")):
        ends = getattr(fast, name), getattr(slow, name)
        if None not in ends:
            parts.append(
                f"{words} p50 {_time(ends[0].p50)} to {_time(ends[1].p50)}, p95 {_time(ends[0].p95)} to {_time(ends[1].p95)}"
            )
    yield "9 of 10", of + "; ".join(parts)
    if slow.overloaded and not fast.overloaded:
        yield "", "at the slow end it cannot keep up"


def _adapters(use: AdapterUse, requests: int) -> str:
    """Adapters that were loaded, and requests that waited for a place."""
    absent = f"{format_share(use.loads / max(1, use.taken))} of requests found theirs absent: {_time(use.load_s)} for each"
    text = f"{use.adapters:,}, {use.places:,} of them on the GPUs of a copy; {absent}"
    if not use.waited:
        return text
    mean, longest = _time(use.waited_s / use.waited), _time(use.longest_s)
    return f"{text}; {format_share(use.waited / requests)} waited for a place, {mean} in the mean, {longest} at most"


def _count(requests: int) -> str:
    return "1 request" if requests == 1 else f"{requests:,} requests"


def _range(sure: Interval) -> str:
    low, high = (percent(end - 1, "+.0f") for end in (sure.low, sure.high))
    return f"{low.removesuffix(' %')} to {high}"


def _rate(per_s: float) -> str:
    return format_quantity(per_s, "1/s").removesuffix("1/s").strip()


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def _spread(spread: Spread) -> str:
    return f"p50 {_time(spread.p50)}, p95 {_time(spread.p95)}, p99 {_time(spread.p99)}, mean {_time(spread.mean)}"


def as_dict(service: ServiceStatistics, *, rows: bool) -> dict[str, Any]:
    """The entry of the document; keys end in their unit.

    Args:
        rows: add a row for each request.
    """
    spreads = {key: getattr(service, name) for key, name in SPREADS.items()}
    return {
        **picked(service, *PLAIN, read_again_tokens="read_again"),
        **({"copies": sum(each.most for each in service.scalings)} if service.scalings else {}),  # integers
        **{
            key: None if spread is None else {f"{name}_s": value for name, value in asdict(spread).items()}
            for key, spread in spreads.items()
        },
        "sampling": [picked(row, "measure", "percentile", "value_s", "low_s", "high_s", "short") for row in service.sampling],
        "interval": {
            measure: {"low": each.low, "high": each.high, **picked(each, "level", "case", "rows", "units")}
            for measure, each in sure_of(service).items()
        },
        "slo": {f"{name}_s": limit for name, limit in service.goal._asdict().items()},
        "spent": {f"{name}_s": seconds for name, seconds in service.spent_s},
        "where": [
            {
                **picked(where, "measure", "percentile", "value_s", "requests", "mean_s"),
                "parts": {f"{name}_s": seconds for name, seconds in where.parts},
            }
            for where in service.where
        ],
        **({} if service.scaling is None else {"scaling": scaling.as_dict(service.scaling)}),
        **({} if service.prompt_scaling is None else {"prompt_scaling": scaling.as_dict(service.prompt_scaling)}),
        **({} if service.adapters is None else {"adapters": service.adapters._asdict()}),
        "tiers": [tier._asdict() for tier in service.tiers],
        "course": [moment._asdict() for moment in service.course],
        **({"rows": [_row(row, service) for row in service.rows]} if rows else {}),
    }


def _row(row: RequestRow, service: ServiceStatistics) -> dict[str, Any]:
    """A request; its parts are integers and add up to its latency. Waits for copies and adapters only where there are any."""
    left_out = {PARTS[STARTING]} if service.scaling is None else set()
    left_out |= {PARTS[ADAPTER]} if service.adapters is None else set()
    parts = zip(PARTS, row.parts_fs, strict=True)
    return {**row._asdict(), "parts_fs": {name: part for name, part in parts if name not in left_out}}
