"""Uncertainty of the service time: the errors of machine parameters in the time of a request without waiting."""

from __future__ import annotations

from hwsim.families.services.results.responses import Services
from hwsim.results.cause import binding
from hwsim.results.error_weights import Weight, Weights, weigh_errors
from hwsim.results.errors import ErrorTable
from hwsim.results.interval import Interval, interval
from hwsim.results.result import Result


def work_interval(result: Result) -> Interval:
    """Return the interval of the service time of all statements, weighted by their executions per request."""
    return result.felt(lambda run: _of(run.told["services"].found, run.errors))


def _of(services: Services, errors_of: ErrorTable) -> Interval:
    weights: list[Weight] = []
    total = stated = 0.0
    for statement in services.statements:
        seconds = statement.seconds * statement.times
        line = None if statement.cost is None else binding(statement.cost)
        errors, covered = weigh_errors([] if line is None else [(line, 1.0)], seconds)
        weights += errors
        stated, total = stated + max(0.0, seconds - covered), total + seconds
    return interval(Weights(tuple(weights), stated, total), errors=errors_of)
