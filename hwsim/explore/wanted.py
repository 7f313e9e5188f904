"""The number that a run of services is made for: arrivals set its time, so the time of an answer is the number to watch."""

from __future__ import annotations

from typing import Any, Final

from hwsim.api import Run
from hwsim.views.explain.measure import TIMES, measure

PART: Final = 0.99  # of the answers of a service


def wanted(run: Run) -> dict[str, Any] | None:
    """Name, value and unit of that number; None for a run whose time is the answer.

    A value of None: the service has no steady state.
    """
    if run.services is not None and run.services.answers:
        service = run.services.answers[0]
        latency = None if service.latency is None else service.latency.at(PART).value
        return {"name": f"{service.name}: time of an answer (p99)", "value": latency, "unit": "s"}
    served = measure(run) if run.serving else None
    if served is None:
        return None
    return {"name": served.words, "value": served.value, "unit": "s" if served.name in TIMES else "1/s"}
