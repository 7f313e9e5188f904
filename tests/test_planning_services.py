"""Plans of services: what does not keep up is no answer, short runs are made longer, and ranges are those that a run states."""

from __future__ import annotations

import json
from pathlib import Path
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


def daily(mean: int, cycle: str, *, more: str = "") -> str:
    return CHAT.replace(
        "{poisson: $rate}", f"{{day: {{mean: {mean} 1/s, peak: {2 * mean} 1/s, at: 14 h, cycle: {cycle}{more}}}}}"
    )


def test_a_day_takes_the_machines_of_its_peak_and_its_rates_are_of_its_mean() -> None:
    """A run from 0 h would take one machine; whole cycles are simulated where they are short."""
    limits: dict[str, Any] = {"vary": {"replicas": "1..4"}, "require": ["ttft_p95 at most 1 h"]}
    answer, constant = asked(daily(60, "24 h"), **limits), asked(CHAT, **limits, set={"workload.let.rate": "120 1/s"})
    assert answer.best.point.replicas == constant.best.point.replicas > 1
    assert "of the cycle of 24.0 h, with its ramp; rates and cost are those at the average rate" in answer.best.notes[0]
    rates = [found.best.numbers["requests_per_s"].value for found in (answer, constant)]
    assert rates[0] == pytest.approx(rates[1] / 2)
    short = asked(daily(10, "60 s"), **limits)
    assert "9 whole cycles of 60.0 s" in short.best.notes
    hour = asked(daily(1, "24 h").replace("requests: $requests", "requests: 100"), **limits)
    assert hour.best.notes[0].startswith("peak hour 13:30 to 14:30 of the cycle of 24.0 h")
    night = asked(daily(10, "24 h", more=", start: 2 h"), require=["ttft_p95 at most 1 h"])
    assert {reason.constraint for rejection in night.rejected for reason in rejection.reasons} == {"day"}


def test_every_load_is_shared_by_machines(tmp_path: Path) -> None:
    def shared(arrivals: dict[str, Any], replicas: int) -> Any:
        infer = {"model": "gpt2", "arrivals": arrivals, "requests": 10}
        return replica_workload(tree_of({"hwsim": "workload/1", "infer": infer}), replicas).plain()["infer"]

    assert shared({"day": {"mean": "10 1/s", "peak": "20 1/s"}}, 4)["arrivals"]["day"] == {"mean": "2.5 1/s", "peak": "5.0 1/s"}
    assert shared({"trace": "x.csv", "share": 2}, 4)["arrivals"] == {"trace": "x.csv", "share": 8}
    assert shared("all at once", 4)["requests"] == 3  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="requests of `bursts` cannot be split"):
        shared({"bursts": {"rate": "1 1/s"}}, 4)
    lines = [f"{number / 20},20,5" for number in range(400)]
    (tmp_path / "trace.csv").write_text("\n".join(["arrival,prompt,output", *lines]), encoding="utf-8")
    infer = {"model": "llama-3-8b", "arrivals": {"trace": str(tmp_path / "trace.csv")}, "requests": 9}
    for replicas in (1, 3):
        answer = asked({"hwsim": "workload/1", "infer": infer}, vary={"replicas": [replicas]}, require=["ttft_p95 at most 1 h"])  # type: ignore[arg-type]
        assert answer.best.notes[0] == "the whole trace"
        assert answer.best.numbers["requests_per_s"].value == pytest.approx(20, rel=0.02)


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
