"""The steady state of a served model, for studies and plans."""

from __future__ import annotations

import math

from hwsim.families.serving.parts import limited_by
from hwsim.families.serving.results.errors import serving_intervals
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.formats import format_count
from hwsim.results.batches import ConfidenceRange
from hwsim.studies.states import ServiceSteadiness


def state_of(service: ServiceStatistics) -> ServiceSteadiness:
    """Return the steady state: latencies with sampling error, overload, and latency breakdowns."""
    start = f"{service.name}." if service.name else ""
    knowns = {}
    for row in service.sampling_errors:
        part = f"p{row.percentile}" if row.percentile else "mean"
        high = math.inf if row.high_s is None else row.high_s
        knowns[f"{start}{row.measure}_{part}"] = ConfidenceRange(row.value_s, row.low_s, high), row.too_short
    grows, excess = "", 0.0
    if service.overloaded:
        arrivals, completions = format_count(service.offered_per_s, 4), format_count(service.answered_per_s, 4)
        grows = f"{arrivals} requests/s arrive, {completions} requests/s complete"
        excess = service.queue_growth_per_s / max(service.answered_per_s, 1e-300)
    where = {f"{start}{row.measure}_p{row.percentile}": limited_by(row) for row in service.breakdowns if row.mean_s > 0}
    place = f"workload.jobs.{service.name}.infer" if service.name else "workload.infer"
    in_system = service.offered_per_s * service.latency.mean
    counted = f"{place}.requests" if service.arrivals_s > 0 else ""
    halves = tuple((f"{start}{measure}", interval.reach) for measure, interval in serving_intervals(service).items())
    return ServiceSteadiness(
        service.name, service.requests, in_system, counted, knowns, grows, where, halves=halves, excess=excess
    )
