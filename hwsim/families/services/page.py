"""Runs of services for the page: arrivals set their time, so the time of an answer takes its place."""

from __future__ import annotations

import math
from typing import Any, Final

from hwsim.families.services.results.answers import Services
from hwsim.formats import format_quantity, format_share
from hwsim.views.explain.derivation import lines, seconds

PART: Final = 0.99  # of the answers of a service


def wanted(services: Services) -> dict[str, Any] | None:
    """Name, value and unit of the time of its slowest answers. A value of None: the service has no steady state."""
    if not services.answers:
        return None
    service = services.answers[0]
    latency = None if service.latency is None else service.latency.at(PART).value
    return {"name": f"{service.name}: time of an answer (p99)", "value": latency, "unit": "s"}


def waits(services: Services) -> list[list[Any]]:
    """(cause, seconds, share) of the slowest answers of the first service, in the mean, the longest first."""
    longest = services.answers[0].waits_above if services.answers else ()
    total = math.fsum(wait.seconds for wait in longest)
    slowest = sorted(longest, key=lambda wait: (-wait.seconds, wait.what))
    return [
        [
            "its own work" if wait.what == "work" else f"waits for {wait.what}",
            wait.seconds,
            wait.seconds / total if total else 0.0,
        ]
        for wait in slowest
    ]


def sentence(services: Services) -> str:
    """A sentence on the slowest answers of the first service: what they wait for."""
    rows = waits(services)
    if not rows:
        return ""
    total = format_quantity(math.fsum(time for _, time, _ in rows), "s")
    shares = ", ".join(f"{name} {format_share(share)}" for name, _, share in rows[:3])
    return f"A request of {services.answers[0].name} above p99 takes {total} on average: {shares}."


def statements(services: Services) -> list[dict[str, Any]]:
    """Derivations of what each statement takes alone."""
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
            "alone": seconds(statement.seconds),
            "alone_s": statement.seconds,
            "longest_s": statement.seconds,
            "because": ["the mean of what is drawn"] if statement.drawn else [],
        }
        for statement in services.statements
    ]
