"""What a service says of itself: percentiles and their ranges, rates of one that goes on, no steady state, samples, words."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hwsim.api import ExpectationFailed, simulate
from hwsim.families.serving.results import log
from hwsim.planning import plan
from tests.command import hwsim
from tests.served import asked as asked_of_small
from tests.served import served as of_small

ASKED: dict[str, Any] = {"requests": 200, "arrivals": {"poisson": "300 1/s"}}
workload, served = partial(asked_of_small, **ASKED), partial(of_small, **ASKED)


def test_a_sample_of_many_requests_says_the_same_as_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: dict[str, Any] = {"requests": 600, "slo": {"ttft": "12 ms", "tpot": "2 ms"}}
    everything = served(**keys)
    for name, value in (("ROWS", 150), ("SAMPLE", 40), ("BLOCK", 50)):
        monkeypatch.setattr(log, name, value)
    sample = served(**keys)
    assert sample.sampled
    assert len(sample.rows) == 40
    assert set(sample.rows) <= set(everything.rows)
    for name in ("requests", "prompt_tokens", "output_tokens", "span_s", "good", "in_flight_mean", "queued_mean", "time_by_use"):
        assert getattr(sample, name) == getattr(everything, name)
    for name in ("latency", "queueing", "first_token", "each_token"):
        exact, binned = getattr(everything, name), getattr(sample, name)
        assert binned.mean == pytest.approx(exact.mean, rel=1e-9)
        assert binned.max == pytest.approx(exact.max, rel=1e-9)
        assert (binned.p50, binned.p95) == pytest.approx(
            (exact.p50, exact.p95), rel=0.03
        )  # neighbours of a percentile, and a bin
    for exact, binned in zip(everything.breakdowns, sample.breakdowns, strict=True):
        assert binned.requests == exact.requests
        assert binned.mean_s == pytest.approx(exact.mean_s)
        assert dict(binned.parts) == pytest.approx(dict(exact.parts))


def test_without_a_steady_state_no_time_holds_and_none_is_shown(tmp_path: Path) -> None:
    asked = workload(arrivals={"every": "10 us"}, batch=4, requests=100)
    with pytest.raises(ExpectationFailed, match="no steady state"):
        simulate("dgx-h100", {**asked, "expect": {"ttft_p50": "at most 1 h"}})
    run = simulate("dgx-h100", {**asked, "expect": {"tpot_p50": "at most 1 h"}})
    assert [verdict.status for verdict in run.verdicts] == ["met"]
    [found] = run.serving
    assert found.overloaded
    assert found.queue_growth_per_s == pytest.approx(1e5, rel=0.1)  # nearly all that come
    (tmp_path / "a.yaml").write_text(json.dumps(asked), encoding="utf-8")
    told = hwsim("simulate", "dgx-h100", tmp_path / "a.yaml").output
    assert "no steady state" in told
    assert "first token  p50" not in told
    asked["expect"] = {"machine": "dgx-a100", "ttft_p50": "at most 1 h"}
    (tmp_path / "b.yaml").write_text(json.dumps(asked), encoding="utf-8")
    for more in ([], ["--no-expect"], ["--set", "workload.infer.seed=2"]):  # none is checked, and the document has no infinity
        said = hwsim("simulate", "dgx-h100", tmp_path / "b.yaml", "--json", *more)
        [verdict] = json.loads(said.stdout)["expect"]
        assert (verdict["status"], verdict["value"]) == ("skipped", None)


@pytest.mark.parametrize("seed", range(6))
def test_a_service_that_keeps_up_has_a_steady_state(seed: int) -> None:
    assert not served(seed=seed, requests=300).overloaded
    assert not served(seed=seed, arrivals={"bursts": {"poisson": "15 1/s", "size": 20}}, requests=300).overloaded
    assert not served(seed=seed, arrivals={"clients": 8}, requests=100).overloaded


def test_percentiles_have_the_range_of_other_draws_where_the_run_is_long_enough() -> None:
    runs = [served(seed=seed, requests=350, output=8) for seed in range(20)]
    rows = [next(row for row in run.sampling_errors if (row.measure, row.percentile) == ("latency", 50)) for run in runs]
    middle = sum(row.value_s for row in rows) / len(rows)
    assert sum(row.low_s <= middle <= (row.high_s or middle) for row in rows) >= 16  # of 20, at 95 %
    for run in runs:
        short = {row.percentile for row in run.sampling_errors if row.too_short}
        assert 99 in short
        assert all(row.low_s <= row.value_s <= (row.high_s or row.value_s) for row in run.sampling_errors)


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("requests", [400, 800])
def test_more_than_the_capacity_is_overload_however_the_number_there_bends(seed: int, requests: int) -> None:
    """Prompts that a GPU reads at 33.5 a second, at 40 a second and at 20 a second."""
    infer = {
        "model": "llama-3-8b", "device": "gpu0", "framework": "vllm", "requests": requests, "prompt": 1000, "output": 100,
        "seed": seed, "arrivals": {"poisson": "40 1/s"},
    }  # fmt: skip
    asked = {"hwsim": "workload/1", "infer": infer}
    [found] = simulate("dgx-h100", asked, expect=False, interval=False).serving
    assert found.overloaded
    asked["infer"] = {**infer, "arrivals": {"poisson": "20 1/s"}}
    assert not simulate("dgx-h100", asked, expect=False, interval=False).serving[0].overloaded


def test_a_service_that_keeps_up_answers_as_many_as_come() -> None:
    """However few requests a run has: the time in which the last of them are written is no part of a rate."""
    rates = []
    for requests in (40, 400):
        run = simulate("dgx-h100", "llama3-8b-serving", set={"workload.infer.requests": requests}, expect=False)
        rates.append(run.serving[0].settled_per_s)
        assert run.serving[0].settled_tokens_per_s == pytest.approx(250 * rates[-1], rel=0.01)
    assert rates == pytest.approx([60, 60])
    crowded = simulate(
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
    tokens = 20 * 50 * 86400
    assert best.numbers["tokens_per_s"].value == pytest.approx(20 * 50)
    assert best.numbers["cost per million tokens"].value == pytest.approx(best.numbers["cost"].value / tokens * 1e6)


def test_what_no_file_states_is_what_came() -> None:
    day = simulate("dgx-h100", chat({"day": {"mean": "20 1/s", "peak": "40 1/s"}})).serving[0]
    talk = simulate("dgx-h100", chat({"poisson": "2 1/s"}, sessions={"turns": 5})).serving[0]
    for service in (day, talk):
        assert service.stated_per_s is None
        assert service.settled_per_s == service.offered_per_s
    assert day.settled_per_s < 5  # by night
