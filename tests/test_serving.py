"""Rates of a service are of one that goes on."""

from __future__ import annotations

import pytest

import hwsim


def test_a_service_that_keeps_up_answers_as_many_as_come() -> None:
    """However few requests a run has: the time in which the last of them are written is no part of a rate."""
    rates = []
    for requests in (40, 400):
        run = hwsim.simulate("dgx-h100", "llama3-8b-serving", set={"workload.infer.requests": requests}, expect=False)
        rates.append(run.serving[0].settled_per_s)
        assert run.serving[0].settled_tokens_per_s == pytest.approx(250 * rates[-1], rel=0.01)
    assert rates == pytest.approx([60, 60], rel=0.4)
    crowded = hwsim.simulate(
        "dgx-h100", "llama3-8b-serving", set={"rate": "4000 1/s", "workload.infer.requests": 1000}, expect=False
    ).serving[0]
    assert crowded.overloaded
    assert crowded.settled_per_s < 0.5 * crowded.offered_per_s
