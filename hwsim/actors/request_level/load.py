"""Latency against load: a device's twin fed at random instants, from idle to nearly all it can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hwsim.actors.request_level.requests import Play, poisson, serve, statistics
from hwsim.demand import Requests
from hwsim.results.requests import LatencyCurve, LoadPoint

LOADS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
REQUESTS: Final = 4000  # of each point


def latency_curve(name: str, make: Callable[[], Play], asked: Requests, *, seed: int = 1) -> LatencyCurve:
    """Requests like those of an op, arriving at random instants (Poisson), at parts of the most that the device serves.

    make: a fresh twin for each point.
    """
    alike = replace(asked, count=REQUESTS, depth=None, pattern="random" if asked.pattern == "dependent" else asked.pattern)
    play = make()
    flat_out = play.requests(alike, play.span, 0.0)
    serve(play.twin, flat_out)
    most = len(flat_out) / flat_out.end
    points = []
    for number, load in enumerate(LOADS):
        play = make()
        served = play.requests(alike, play.span, 0.0)
        served.at = poisson(load * most, len(served), seed + number)
        serve(play.twin, served)
        told = statistics(name, [served], {})
        points.append(
            LoadPoint(
                load=load,
                rate=load * most,
                mean_s=told.latency_mean_s,
                p50_s=told.latency_p50_s,
                p95_s=told.latency_p95_s,
                p99_s=told.latency_p99_s,
                closed_form_s=play.loaded_latency(load) if play.loaded_latency else None,
            )
        )
    return LatencyCurve(name, tuple(points))
