"""Latency of a simulated device over its load, and the throughput of a stream of requests."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hwsim.demand import Requests
from hwsim.families.requests.requests import RequestColumns, RequestDevice, poisson, serve, statistics
from hwsim.results.requests import LatencyCurve, LoadPoint
from hwsim.units import PerSecond

LOADS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
REQUESTS: Final = 4000  # requests of each point


def latency_curve(name: str, make: Callable[[], RequestDevice], wanted: Requests) -> LatencyCurve:
    """Return latencies of requests with Poisson arrivals, at shares of the device's maximum rate.

    Args:
        name: name of the device.
        make: function that makes a new simulation for each point.
        wanted: requests of an op, whose size and pattern are used.
    """
    requests = replace(wanted, count=REQUESTS, depth=None, pattern="random" if wanted.pattern == "dependent" else wanted.pattern)
    play = make()
    flat_out = play.requests(requests, play.span, 0.0)
    serve(play.simulation, flat_out)
    max_rate = len(flat_out) / flat_out.end
    points = []
    for index, load in enumerate(LOADS):
        play = make()
        served = play.requests(requests, play.span, 0.0)
        served.at = poisson(load * max_rate, len(served), 1 + index)
        serve(play.simulation, served)
        row = statistics(name, [served], {})
        points.append(
            LoadPoint(
                load=load,
                rate=load * max_rate,
                mean_s=row.latency_mean_s,
                p50_s=row.latency_p50_s,
                p95_s=row.latency_p95_s,
                p99_s=row.latency_p99_s,
                closed_form_s=play.loaded_latency(load) if play.loaded_latency else None,
            )
        )
    return LatencyCurve(name, tuple(points))


def steady_rate(served: RequestColumns) -> PerSecond:
    """Return the throughput (requests/s) between the first tenth of completions and the issue of the last request.

    This excludes the start, when all requests of the queue depth arrive at once, and the end, when the queue drains.
    """
    answers = sorted(served.finish)
    first = len(answers) // 10
    last = bisect_left(answers, max(served.issued)) - 1
    if last - first < len(answers) // 4 or answers[last] <= answers[first]:
        return len(answers) / (answers[-1] - min(served.issued))
    return (last - first) / (answers[last] - answers[first])
