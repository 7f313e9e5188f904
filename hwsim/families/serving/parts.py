"""Latency breakdowns: prefill, decode, waits for KV cache and batch slots, communication."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from hwsim.families.serving.results.accounting import CALLED
from hwsim.families.serving.results.measures import LatencyBreakdown
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.formats import format_quantity, format_share
from hwsim.views.kit.table import Column, align_columns

WORDS, LIMITS = ({part: names[index] for part, names in CALLED.items()} for index in (0, 1))
NAMES: Final = {"ttft": "TTFT", "tpot": "TPOT", "latency": "end to end"}
SHORT: Final = {"ttft": "TTFT", "tpot": "TPOT", "latency": "E2E"}
MIDDLE: Final = 50
SLOW: Final = 99
LEAST: Final = 0.02  # share of the time; smaller parts are summed as `other`


def limited_by(where: LatencyBreakdown) -> str:
    """Return the largest causes with their shares: `KV cache 51 %, prefill 38 %`."""
    causes: dict[str, float] = {}
    for name, seconds in where.parts:
        causes[LIMITS[name]] = causes.get(LIMITS[name], 0.0) + seconds
    shown = sorted(causes.items(), key=lambda pair: (-pair[1], pair[0]))[:4]
    return ", ".join(
        f"{name} {format_share(seconds / where.mean_s)}" for name, seconds in shown if seconds > LEAST * where.mean_s
    )


def sentence(where: LatencyBreakdown) -> str:
    """Return a sentence with a percentile, the requests around it and their latency breakdown."""
    shown = [(name, seconds) for name, seconds in where.parts if seconds >= LEAST * where.mean_s]
    rest = where.mean_s - math.fsum(seconds for _, seconds in shown)
    texts = [f"{format_quantity(seconds, 's')} {WORDS[name]}" for name, seconds in shown]
    if len(shown) < len(where.parts) and rest > 0:
        texts.append(f"{format_quantity(rest, 's')} other")
    about = f"the {where.requests:,} requests around it" if where.requests > 1 else "one request"
    value, mean = (format_quantity(seconds, "s") for seconds in (where.value_s, where.mean_s))
    return f"p{where.percentile} {value}; {about}, {mean} on average: {', '.join(texts)}"


def sentences(service: ServiceStatistics) -> Iterator[str]:
    """Yield a sentence for the slowest requests of each measure."""
    for where in service.breakdowns:
        if where.percentile == SLOW:
            yield f"{NAMES[where.measure]} {sentence(where)}"


def table(service: ServiceStatistics) -> Iterator[str]:
    """Yield the lines of a table with a row for each part and columns for p50 and p99 of each measure."""
    shown = [where for where in service.breakdowns if where.percentile in (MIDDLE, SLOW)]
    parts = [dict(where.parts) for where in shown]
    names = [name for name in WORDS if any(name in part for part in parts)]
    columns = [Column("", [*(WORDS[name] for name in names), "total", "requests"], right=False)]
    for where, seconds in zip(shown, parts, strict=True):
        times = [format_quantity(seconds[name], "s") if name in seconds else "-" for name in names]
        heading = f"{SHORT[where.measure]} p{where.percentile}"
        columns.append(Column(heading, [*times, format_quantity(where.mean_s, "s"), f"{where.requests:,}"]))
    yield from align_columns(columns)
