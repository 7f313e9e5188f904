"""Whether a service keeps up: told from the requests there, and not from a service that fills."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hwsim.families.serving.results.balance import Balance, balance
from hwsim.ticks import FEMTO


def told(rate: float, requests: int, *, answered: float = math.inf, sigma: float = 0.0, seed: int = 1) -> Balance:
    """Of requests that each take a time of their own, as long as no more are answered a second; begun as they come.

    sigma: of lognormal times around 1 s, else they are even up to 2 s.
    """
    drawn = np.random.default_rng(seed)
    arrival = np.cumsum(drawn.exponential(1 / rate, requests))
    end = arrival + (drawn.lognormal(0.0, sigma, requests) if sigma else drawn.uniform(0.0, 2.0, requests))
    if answered < math.inf:
        end.sort()
        for index in range(1, requests):
            end[index] = max(end[index], end[index - 1] + 1 / answered)
    columns = {name: (time * FEMTO).astype(np.int64) for name, time in (("arrival", arrival), ("begin", arrival), ("end", end))}
    log: Any = SimpleNamespace(
        requests=requests, sampled=False, first_arrival=int(columns["arrival"][0]), last_arrival=int(columns["arrival"][-1])
    )
    return balance(log, columns)


@pytest.mark.parametrize(("rate", "requests", "unsettled"), [(20.0, 30, 0.3), (20.0, 1000, 0.02), (300.0, 300, 1.0)])
def test_a_service_that_fills_is_not_called_overloaded(rate: float, requests: int, unsettled: float) -> None:
    """They stay for 1 s in the mean, and come for 1.5 s, for 50 s and for 1 s."""
    said = [told(rate, requests, seed=seed) for seed in range(100)]
    assert sum(service.queue_growth_per_s > 0 for service in said) <= 2
    assert sum(service.unsettled for service in said) <= 100 * unsettled
    assert rate < 100 or sum(service.unsettled for service in said) > 90


def test_answers_of_which_a_few_are_long_fill_for_longer_and_are_no_overload() -> None:
    """A fifth of them stay for more than 2.5 s, and all come within 5 s."""
    said = [told(400.0, 2000, sigma=1.1, seed=seed) for seed in range(30)]
    assert sum(service.queue_growth_per_s > 0 for service in said) <= 1
    assert sum(service.unsettled for service in said) > 20


def test_a_service_that_answers_fewer_grows_by_the_rest() -> None:
    said = [told(20.0, 1000, answered=15.0, seed=seed) for seed in range(50)]
    assert all(service.queue_growth_per_s > 0 for service in said)
    assert np.mean([service.queue_growth_per_s for service in said]) == pytest.approx(5.0, rel=0.1)


def test_nothing_is_said_of_a_few_requests_or_of_those_that_come_at_once() -> None:
    assert told(20.0, 10, answered=1.0) == Balance()
    none: Any = SimpleNamespace(requests=100, sampled=False, first_arrival=5, last_arrival=5)
    assert balance(none, {}) == Balance()
