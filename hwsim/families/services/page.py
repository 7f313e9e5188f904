"""Services in the explorer: the p99 latency replaces the run time, which the arrivals determine."""

from __future__ import annotations

import math
from typing import Any, Final

from hwsim.families.services.results.responses import Services
from hwsim.families.services.summary import cause_of
from hwsim.formats import format_quantity, format_share
from hwsim.views.explain.derivation import lines, seconds

PART: Final = 0.99  # percentile


def wanted(services: Services) -> dict[str, Any] | None:
    """Return name, value and unit of the p99 latency of the first service; the value is None without a steady state."""
    if not services.answers:
        return None
    service = services.answers[0]
    latency = None if service.latency is None else service.latency.at(PART).value
    return {"name": f"{service.name}: latency (p99)", "value": latency, "unit": "s"}


def waits(services: Services) -> list[list[Any]]:
    """Return (cause, seconds, share) of the average latency above p99 of the first service, the longest first."""
    longest = services.answers[0].waits_above if services.answers else ()
    total = math.fsum(wait.seconds for wait in longest)
    slowest = sorted(longest, key=lambda wait: (-wait.seconds, wait.what))
    return [[cause_of(wait.what), wait.seconds, wait.seconds / total if total else 0.0] for wait in slowest]


def sentence(services: Services) -> str:
    """Return a sentence on the causes of the latency above p99 of the first service."""
    rows = waits(services)
    if not rows:
        return ""
    total = format_quantity(math.fsum(time for _, time, _ in rows), "s")
    shares = ", ".join(f"{name} {format_share(share)}" for name, _, share in rows[:3])
    return f"A request of {services.answers[0].name} above p99 takes {total} on average: {shares}."


def statements(services: Services) -> list[dict[str, Any]]:
    """Return the derivation of the service time of each statement."""
    return [
        {
            "name": f"{statement.name} on {statement.device}, for {statement.service}",
            "op": -1,
            "count": statement.times,
            "lines": [
                [line.label, line.formula, line.numbers, line.time_s]
                for line in (lines(statement.cost) if statement.cost else ())
            ],
            "inputs": [list(entry) for line in (lines(statement.cost) if statement.cost else ()) for entry in line.inputs],
            "unloaded": seconds(statement.seconds),
            "unloaded_s": statement.seconds,
            "max_s": statement.seconds,
            "reasons": ["average of a random time"] if statement.random else [],
        }
        for statement in services.statements
    ]
