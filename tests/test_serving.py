"""Rates of a service are of one that goes on."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim
from hwsim.planning import plan


def test_a_service_that_keeps_up_answers_as_many_as_come() -> None:
    """However few requests a run has: the time in which the last of them are written is no part of a rate."""
    rates = []
    for requests in (40, 400):
        run = hwsim.simulate("dgx-h100", "llama3-8b-serving", set={"workload.infer.requests": requests}, expect=False)
        rates.append(run.serving[0].settled_per_s)
        assert run.serving[0].settled_tokens_per_s == pytest.approx(250 * rates[-1], rel=0.01)
    assert rates == pytest.approx([60, 60])
    crowded = hwsim.simulate(
        "dgx-h100", "llama3-8b-serving", set={"rate": "4000 1/s", "workload.infer.requests": 1000}, expect=False
    ).serving[0]
    assert crowded.overloaded
    assert crowded.settled_per_s < 0.5 * crowded.offered_per_s


def chat(arrivals: dict[str, Any], **keys: Any) -> dict[str, Any]:
    infer = {"model": "llama-3-8b", "device": "gpu0", "prompt": 100, "output": 50, "requests": 25, "arrivals": arrivals, **keys}
    return {"hwsim": "workload/1", "infer": infer}


@pytest.mark.parametrize("seed", [1, 2])
def test_tokens_that_are_paid_for_are_those_that_come_for_ever(seed: int) -> None:
    """Few requests happen to come faster or slower than the file says; a million tokens are priced at the rate of the file."""
    asked = {"machine": "dgx-h100", "workload": chat({"poisson": "20 1/s"}, seed=seed), "minimise": "cost per million tokens",
             "rent": "on_demand", "period": "1 day"}  # fmt: skip
    best = plan(asked).best
    assert best is not None
    tokens = 20 * 50 * 86400
    assert best.numbers["tokens_per_s"].value == pytest.approx(20 * 50)
    assert best.numbers["cost per million tokens"].value == pytest.approx(best.numbers["cost"].value / tokens * 1e6)


def test_what_no_file_states_is_what_came() -> None:
    day = hwsim.simulate("dgx-h100", chat({"day": {"mean": "20 1/s", "peak": "40 1/s"}})).serving[0]
    talk = hwsim.simulate("dgx-h100", chat({"poisson": "2 1/s"}, sessions={"turns": 5})).serving[0]
    for service in (day, talk):
        assert service.stated_per_s is None
        assert service.settled_per_s == service.offered_per_s
    assert day.settled_per_s < 5  # by night
