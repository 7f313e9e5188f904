"""Plans of services: what does not keep up is no answer, short runs are made longer, and ranges are those that a run states."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hwsim
from hwsim.families.serving.results.errors import serving_intervals
from hwsim.planning import PlanAnswer, plan
from hwsim.planning.option_simulation import replica_workload
from hwsim.spec.tree import tree_of

GPU = "hwsim: machine/1\nparts: {cpu: {kind: cpu, use: xeon-8480}, gpu: {kind: gpu, use: h100-pcie}}\n\
links: [{between: [cpu, gpu], kind: pcie, use: pcie5-x16}]\n"
CHAT = """\
hwsim: workload/1
let: {rate: 20 1/s, requests: 20}
infer:
  {model: llama-3-8b, framework: vllm, arrivals: {poisson: $rate}, requests: $requests, prompt: 200, output: {uniform: [20, 60]}}
"""
SHOP = """\
hwsim: workload/1
let: {rate: 100 1/s}
services:
  shop: {arrivals: {poisson: $rate}, device: cpu, request: [{busy: {device: cpu, time: 1 s}}]}
requests: 400
"""


def asked(workload: str, **more: Any) -> PlanAnswer:
    """The answer of a plan for one GPU and its host, in which services are simulated."""
    return plan({"machine": GPU, "workload": workload, "rent": "purchase", "minimise": "power", **more})


@pytest.mark.parametrize(("workload", "requirement"), [(CHAT, "tpot_p95 at most 10 s"), (SHOP, "power at most 1 MW")])
def test_a_machine_that_does_not_keep_up_is_no_answer(workload: str, requirement: str) -> None:
    answer = asked(workload, set={"workload.let.rate": "2000 1/s"}, require=[requirement])
    assert answer.best is None
    assert [rejection.reasons[0].constraint for rejection in answer.rejected] == ["load"]
    assert "no steady state" in str(answer)


def test_services_that_wait_for_each_other_are_no_answer() -> None:
    """By how much they miss, nothing says: JSON has no infinite numbers."""
    ring = """hwsim: workload/1
services:
  a: {device: cpu, workers: 1, arrivals: {every: 1 ms}, request: [{busy: {time: 1 ms}}, {ask: b}]}
  b: {device: cpu, workers: 1, request: [{busy: {time: 1 ms}}, {maybe: {ratio: 99.99 %, do: [{ask: a}]}}]}
requests: 10
"""
    answer = asked(ring, require=["power at most 1 MW"])
    assert answer.best is None
    assert "load" in [reason.constraint for reason in answer.rejected[0].reasons]
    json.dumps(answer.to_json(), allow_nan=False)
    (row,) = hwsim.sweep(GPU, ring, {"workload.requests": [10]}, workers=1).rows
    assert "service-deadlock" in [warning.code for warning in row.warnings]


def test_clients_are_shared_by_machines() -> None:
    """10 clients on 3 machines are 4 on the busiest."""
    workload = tree_of({"hwsim": "workload/1", "infer": {"model": "gpt2", "arrivals": {"clients": 10, "think": "1 s"}}})
    assert replica_workload(workload, 3).plain()["infer"]["arrivals"] == {"clients": 4, "think": "1 s"}


def test_as_many_machines_are_taken_as_keep_up() -> None:
    """One fewer does not, as a run of its share says."""
    answer = asked(CHAT, set={"workload.let.rate": "300 1/s"}, vary={"replicas": "1..16"}, require=["ttft_p95 at most 1 h"])
    count = answer.best.point.replicas

    def overloaded(replicas: int) -> bool:
        set_ = {"workload.let.rate": f"{300 / replicas} 1/s", "workload.let.requests": 2000}
        return hwsim.simulate(GPU, CHAT, set=set_, interval=False).serving[0].overloaded

    assert count > 1
    assert not overloaded(count)
    assert overloaded(count - 1)


def test_a_short_run_is_made_longer_and_its_range_is_that_of_measured_services() -> None:
    """The run that the answer names has the same times; errors of other requests and of services are in the range."""
    answer = asked(CHAT, require=["ttft_p95 at most 1 s", "tpot_p95 at most 1 s"])
    (note,) = answer.best.notes
    count = int(note.split()[2].replace(",", ""))
    assert count > 20
    (service,) = hwsim.simulate(GPU, CHAT, set={"workload.let.requests": count}, interval=False).serving
    halves = serving_intervals(service)
    for measure, spread in (("ttft", service.first_token), ("tpot", service.each_token)):
        amount = answer.best.numbers[f"{measure}_p95"]
        assert amount.value == spread.p95
        assert amount.low <= spread.p95 * halves[measure].low * 1.000001
        assert amount.high >= spread.p95 * halves[measure].high * 0.999999
        (draws,) = (error for error in service.sampling_errors if (error.measure, error.percentile) == (measure, 95))
        assert amount.low / amount.value <= draws.low_s / draws.value_s * 1.000001
        assert draws.high_s is None or amount.high / amount.value >= draws.high_s / draws.value_s * 0.999999


def test_a_service_that_does_not_keep_up_is_a_warning_wherever_rows_are_compared() -> None:
    swept = hwsim.sweep(
        GPU, CHAT, {"workload.let.rate": ["20 1/s", "2000 1/s"]}, set={"workload.let.requests": 400}, by="requests/s"
    )
    assert [[notice.code for notice in row.warnings] for row in swept.rows] == [[], ["overloaded"]]
    assert "within the limits of the machine: 18.4 requests/s at rate 20 1/s" in str(swept)
    shop = hwsim.simulate(GPU, SHOP, set={"workload.let.rate": "2000 1/s"})
    assert [warning.code for warning in shop.warnings] == ["overloaded"]
    short = hwsim.simulate(GPU, CHAT, set={"workload.let.rate": "100 1/s", "workload.let.requests": 60})
    assert [notice.code for notice in short.warnings] == ["no-steady-state"]


DAY = "{day: {mean: 10 1/s, peak: 20 1/s, at: 14 h}}"


def test_a_part_of_a_day_answers_no_plan_and_a_day_is_shared_by_machines() -> None:
    night = CHAT.replace("{poisson: $rate}", DAY)
    answer = asked(night, vary={"replicas": "1..4"}, require=["ttft_p95 at most 1 h"])
    assert answer.best is None
    assert {reason.constraint for rejection in answer.rejected for reason in rejection.reasons} == {"day"}
    assert "864000`" in str(answer)
    day = replica_workload(
        tree_of({"hwsim": "workload/1", "infer": {"model": "gpt2", "arrivals": {"day": {"mean": "10 1/s", "peak": "20 1/s"}}}}), 4
    )
    assert day.plain()["infer"]["arrivals"]["day"] == {"mean": "2.5 1/s", "peak": "5.0 1/s"}
    bursts = {"bursts": {"rate": "1 1/s"}}
    with pytest.raises(ValueError, match="requests of `bursts` cannot be split"):
        replica_workload(tree_of({"hwsim": "workload/1", "infer": {"model": "gpt2", "arrivals": bursts}}), 4)


def test_layouts_of_a_model_are_not_told_apart_by_less_than_such_services_miss() -> None:
    """Their first tokens are known within a factor of two, and nothing says how much of that both have in common."""
    served = {"model": "llama-3-8b", "arrivals": {"poisson": "20 1/s"}, "requests": 40, "prompt": 100, "output": 20}
    question = {
        "machine": "dgx-h100",
        "workload": {"hwsim": "workload/1", "infer": served},
        "vary": {"workload.infer.parallel": [{"tp": 1}, {"tp": 2}]},
        "minimise": "ttft_p95",
    }
    assert "worse for sure" not in str(plan(question))
