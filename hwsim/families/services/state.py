"""State of a service, or of one branch of its `choose`, for studies and plans."""

from __future__ import annotations

import math
from typing import Final

from hwsim.families.services.results.responses import ServiceResponses, Services
from hwsim.families.services.summary import CAUSES
from hwsim.formats import format_count, percent
from hwsim.results.batches import PERCENTILES
from hwsim.studies.states import ServiceSteadiness
from hwsim.views.summary.capacities import resource_of

MOST: Final = 100_000  # maximum number of requests that a study simulates to resolve a percentile


def state_of(services: Services, answers: ServiceResponses) -> ServiceSteadiness:
    """Return the sampling errors of the latencies, whether the queue grows, and the main cause of the tail latency."""
    settled = answers.latency
    knowns = {}
    if settled is not None:
        knowns[f"{answers.name}.latency_mean"] = settled.mean, 0.0 in settled.short
        for name, share in PERCENTILES.items():
            knowns[f"{answers.name}.latency_{name}"] = settled.at(share), share in settled.short
    full = next((rung for rung in services.throughput_limits if rung.kind == "capacity" and (rung.utilization or 0.0) >= 1), None)
    grows, excess = services.deadlock, math.inf if services.deadlock else 0.0
    if full is not None and answers.external and answers.offered_per_s > full.limit_per_s:
        limit, came = format_count(full.limit_per_s, 4), format_count(answers.offered_per_s, 4)
        grows = f"{came} requests/s arrive, {resource_of(full.name)} serves at most {limit} requests/s"
        excess = answers.offered_per_s / full.limit_per_s - 1.0
    elif answers.queue_growth_per_s > 0:
        excess = answers.queue_growth_per_s / max(answers.offered_per_s - answers.queue_growth_per_s, 1e-300)
        grows = f"requests in flight grow by {format_count(answers.queue_growth_per_s)} per second"
    total = math.fsum(wait.seconds for wait in answers.waits_above)
    where = {}
    if total > 0:
        first = answers.waits_above[0]
        cause = f"in {CAUSES[first.what]}" if first.what in CAUSES else f"queueing for {resource_of(first.what)}"
        where[f"{answers.name}.latency_p99"] = (
            f"slower requests spend {percent(first.seconds / total, '.0f')} of their time {cause}"
        )
    job, dot, _ = answers.name.rpartition(".")
    counted = f"workload.jobs.{job}.requests" if dot else "workload.requests"
    counted = (
        "" if answers.closed_loop or not answers.external or not answers.steady else counted
    )  # more requests would dilute an event
    needed = None if settled is None else settled.needed
    return ServiceSteadiness(
        answers.name, answers.external, answers.in_flight_mean, counted, knowns, grows, where, needed, MOST, excess=excess
    )
