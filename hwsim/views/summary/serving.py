"""What became of the requests of services: lines of the summary, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from hwsim.results.requests import Spread
from hwsim.results.serving import ServiceStatistics
from hwsim.units import format_quantity, format_share


def lines(found: ServiceStatistics) -> Iterator[tuple[str, str]]:
    """(title, text) of each line of the summary."""
    on = f"{found.copies} x {found.gpus_per_copy} GPU{'s' if found.gpus_per_copy > 1 else ''}"
    answers = (
        f", {format_quantity(found.tokens_per_s, '1/s').removesuffix('1/s').strip()} tokens/s" if found.output_tokens else ""
    )
    of = f"{found.name}: " if found.name else ""
    rate = format_quantity(found.requests_per_s, "1/s").removesuffix("1/s").strip()
    yield "served", f"{of}{found.requests:,} requests on {on}: {rate} requests/s{answers}; {found.batch_mean:.3g} in a batch"
    if found.overloaded:
        offered = format_quantity(found.offered_per_s, "1/s").removesuffix("1/s").strip()
        yield (
            "overloaded",
            f"{of}{offered} requests/s came, more than it can answer: the longer this goes on, the longer they wait",
        )
    if found.first_token is not None:
        yield "first token", f"{of}{_spread(found.first_token)}"
    if found.each_token is not None:
        yield "each token", f"{of}{_spread(found.each_token)}"
    yield "request", f"{of}{_spread(found.latency)}; of it {_time(found.wait.mean)} in the mean before anything is read"
    yield (
        "queue",
        f"{of}{found.queue_mean:.3g} in the mean, {found.queue_max} at most; {found.in_system_mean:.3g} requests there, all told",
    )
    if found.cache_tokens is not None:
        lost = f"; {found.put_off:,} put off, {found.read_again:,} tokens read again" if found.put_off else ""
        yield (
            "KV cache",
            (
                f"{of}{format_share(found.cache_mean)} in the mean, {format_share(found.cache_peak)} at most "
                f"of {found.cache_tokens:,} tokens on each copy{lost}"
            ),
        )


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s")


def _spread(spread: Spread) -> str:
    return f"p50 {_time(spread.p50)}, p95 {_time(spread.p95)}, p99 {_time(spread.p99)}, mean {_time(spread.mean)}"


def as_dict(found: ServiceStatistics, *, rows: bool) -> dict[str, Any]:
    """Keys end in their unit; with a row for each request if asked for."""

    def seconds(spread: Spread | None) -> dict[str, float] | None:
        return None if spread is None else {f"{name}_s": value for name, value in asdict(spread).items()}

    out: dict[str, Any] = {
        "name": found.name,
        "copies": found.copies,
        "gpus_per_copy": found.gpus_per_copy,
        "requests": found.requests,
        "prompt_tokens": found.prompt_tokens,
        "output_tokens": found.output_tokens,
        "span_s": found.span_s,
        "requests_per_s": found.requests_per_s,
        "offered_per_s": found.offered_per_s,
        "overloaded": found.overloaded,
        "tokens_per_s": found.tokens_per_s,
        "ttft": seconds(found.first_token),
        "tpot": seconds(found.each_token),
        "gap": seconds(found.gap),
        "latency": seconds(found.latency),
        "wait": seconds(found.wait),
        "iterations": found.iterations,
        "batch_mean": found.batch_mean,
        "in_system_mean": found.in_system_mean,
        "queue_mean": found.queue_mean,
        "queue_max": found.queue_max,
        "put_off": found.put_off,
        "read_again_tokens": found.read_again,
        "cache_tokens": found.cache_tokens,
        "cache_bytes": found.cache_bytes,
        "cache_peak": found.cache_peak,
        "cache_mean": found.cache_mean,
        "course": [each._asdict() for each in found.course],
    }
    return out | ({"rows": [each._asdict() for each in found.rows]} if rows else {})
