"""Intervals of the work of requests: the errors of the machine's numbers in the time that a request takes if it never waits."""

from __future__ import annotations

import math

from hwsim.results.cause import binding
from hwsim.results.doubts import Weight, Weights, errors_of
from hwsim.results.interval import Interval, interval
from hwsim.results.services.answers import Services


def work_interval(services: Services) -> Interval:
    """The interval of the work of all statements together, as often as requests do them."""
    weights: list[Weight] = []
    stated = 0.0
    for statement in services.statements:
        seconds = statement.seconds * statement.times
        line = None if statement.cost is None else binding(statement.cost)
        covered = 0.0
        for weight, part in () if line is None else errors_of(line):
            covered += seconds * part
            weights.append(Weight(weight.doubt._replace(seconds=seconds * part), weight.kernels))
        stated += max(0.0, seconds - covered)
    total = math.fsum([stated, *(weight.doubt.seconds for weight in weights)])
    return interval(Weights(tuple(weights), stated, total))
