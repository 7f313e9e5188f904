"""The measure of a served model: the time to its first token, or its tokens per second if all requests come at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.views.explain.measure import Measure

SHOWN: Final = ("ttft_p95", "tpot_p95", "tokens_per_s")
FIXED: Final = 0.5  # part of the run: if it waits longer for arrivals, they decide when it ends


def measure(found: Sequence[ServiceStatistics], like: Measure | None, arrivals: float, *, others: bool) -> Measure | None:
    """Of the first model, or of the one that `like` is of; None if something else decides when the run ends.

    arrivals: part of the run that waits for requests to come. others: whether other jobs run, too.
    """
    if not found or (others and like is None and arrivals < FIXED):
        return None
    services = {each.name: each for each in found}
    service = services[like.service] if like is not None else found[0]
    values = service.values()
    at_once = service.offered_per_s <= 0 or service.overloaded
    name = like.name if like is not None else "tokens_per_s" if at_once else "ttft_p95" if "ttft_p95" in values else "latency_p95"
    return Measure(
        service.name,
        name,
        values[name],
        tuple((shown, values[shown]) for shown in dict.fromkeys((*SHOWN, name)) if shown in values),
        service.wait.p95,
        concurrent=others,
    )
