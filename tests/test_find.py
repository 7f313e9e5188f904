"""`--find`: the largest value that holds what is expected, how sure it is, and what is no answer."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.results.batches import ConfidenceRange
from hwsim.results.expect import Verdict
from hwsim.spec import SpecError, tree_of
from hwsim.studies import bisection
from hwsim.studies.find_result import FindResult
from hwsim.studies.states import ServiceSteadiness
from hwsim.units import parse
from hwsim.workload import sources
from tests import command
from tests.present import present

PROGRAM = """hwsim: workload/1
name: a copy
let: {size: 100 MB, times: 3, pause: 1 ms}
program:
  - busy: {device: cpu, time: $pause}
  - repeat: {times: $times, do: [{copy: {from: cpu, to: gpu0, bytes: $size}}]}
expect: {makespan: at most 100 ms}
"""
MACHINE = "d2l-4gpu-pcie"
SERVICE = """hwsim: workload/1
name: short answers
let: {rate: 200 1/s}
infer:
  model: llama-3-8b
  device: gpu0
  arrivals: {poisson: $rate}
  requests: 200
  prompt: 100
  output: 4
expect: {latency_p95: at most 80 ms}
"""


class Queue:
    """A stand-in for a run: an M/M/1 queue of a thousand requests a second, whose p99 is known to a part of itself."""

    def __init__(self, *, known: float | None = None, needs: int = 0, bound: float = 0.1, capacity: float = 1000.0) -> None:
        self.known, self.needs, self.bound, self.capacity = known, needs, bound, capacity
        self.rates: list[float] = []

    def __call__(self, machine: Any, workload: Any) -> Any:
        infer = workload.get("infer")
        rate = parse(workload.get("let").text("rate")).value
        count = int(infer.get("requests").value)
        self.rates.append(rate)
        value = math.log(100) / (self.capacity - rate) if rate < self.capacity else math.inf
        met = value <= self.bound
        verdict = Verdict("latency_p99", f"at most {self.bound} s", "met" if met else "violated", value)
        known = {}
        if self.known is not None and math.isfinite(value):
            known["latency_p99"] = ConfidenceRange(value, value * (1 - self.known), value * (1 + self.known)), count < self.needs
        grows = f"more than {self.capacity} come" if rate >= self.capacity else ""
        state = ServiceSteadiness("", count, rate * value / math.log(100), "workload.infer.requests", known, grows, {})
        return SimpleNamespace(machine="box", workload="queue", verdicts=(verdict,), met=met, states=(state,))


def searched(monkeypatch: pytest.MonkeyPatch, queue: Queue, text: str = SERVICE, **options: Any) -> FindResult:
    monkeypatch.setattr(bisection, "_simulated", queue)
    monkeypatch.setattr(bisection, "states", lambda run: run.states)
    monkeypatch.setattr(bisection, "utilization", lambda _: (0.0, ""))
    return bisection.find("dgx-h100", text, "rate", **options)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.02, 2.0), st.floats(0.01, 1e5))
def test_the_value_is_found_to_a_part_of_it_wherever_it_starts(bound: float, start: float) -> None:
    """p99 of M/M/1 is ln 100 / (1000 - rate): the largest rate is known."""
    exact = 1000 - math.log(100) / bound
    with pytest.MonkeyPatch.context() as monkeypatch:
        queue = Queue(bound=bound)
        found = searched(
            monkeypatch, queue, SERVICE.replace("200 1/s", f"{start:.4g} 1/s"), set={"workload.infer.requests": 10**6}
        )
    if exact < 1e-3:
        return
    assert found.value is not None
    assert found.next is not None
    assert found.value <= exact * (1 + 1e-9) + 1e-9
    assert found.next > exact
    assert found.next / found.value < 1.0101
    assert found.runs == len(queue.rates) <= 45
    assert all(float(f"{rate:.4g}") == rate for rate in queue.rates)  # what is printed is what was run


def test_the_interval_of_the_value_is_that_of_the_percentile_over_its_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, Queue(known=0.2), set={"workload.infer.requests": 5000})
    low, high = (1000 - math.log(100) / 0.1 * (1 + error) for error in (0.2, -0.2))
    assert found.low == pytest.approx(low, rel=0.002)
    assert found.high == pytest.approx(high, rel=0.002)
    assert f"{found.low:.3g} 1/s to {found.high:.3g} 1/s (95 % CI)" in str(found)
    beside = replace(found, value=8708.0, low=8708.0, high=8731.0)
    assert beside._between() == "8708 1/s to 8730 1/s (95 % CI)"  # the value lies within its range, as it is written


def test_runs_that_are_too_short_are_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(known=0.1, needs=2000)
    found = searched(monkeypatch, queue)
    assert found.counts == (("workload.infer.requests", 3200),)
    assert "3,200 in each run, more than the file has" in str(found)
    hard = searched(monkeypatch, Queue(known=0.1, needs=10**9))
    assert hard.counts == (("workload.infer.requests", 5000),)
    assert "run too short" in str(hard)
    assert found.value == hard.value


def test_a_run_that_is_over_at_once_is_no_steady_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred requests at a rate at which fifty are there at once say nothing of a service that goes on."""
    text = SERVICE.replace("requests: 200", "requests: 100")
    found = searched(monkeypatch, Queue(bound=4.0), text)
    assert dict(found.counts)["workload.infer.requests"] >= 5000


def test_nothing_holds_or_nothing_larger_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    none = searched(monkeypatch, Queue(bound=1e-6))
    assert (none.value, none.low, none.high) == (None, None, None)
    assert none.next == none.tried[0].value
    assert "none: " in str(none)
    assert none.runs < 12
    free = searched(monkeypatch, Queue(bound=1e9, capacity=1e30))
    assert free.next is None
    assert "the highest value tried" in str(free)


def test_a_parameter_of_any_program_is_found() -> None:
    found = hwsim.find(MACHINE, PROGRAM, "size")
    assert found.value is not None
    assert hwsim.simulate(MACHINE, PROGRAM, set=found.knob.settings(found.value), expect=True).met
    with pytest.raises(hwsim.ExpectationFailed):
        hwsim.simulate(MACHINE, PROGRAM, set=found.knob.settings(found.next or 0.0), expect=True)
    assert found.value == pytest.approx(0.1 / 3 * 16e9, rel=0.02)
    assert "highest size" in str(found)
    assert (found.low, found.high) == (None, None)
    whole = hwsim.find(MACHINE, PROGRAM, "times", set={"size": "160 MB"})
    assert (whole.value, whole.next) == (9, 10)
    path = hwsim.find(MACHINE, PROGRAM, "workload.let.pause")
    assert path.value == pytest.approx(0.1, rel=0.02)  # hidden behind the copies until it is the longer


def test_the_rate_of_any_arrivals_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All forms of the same rate, which a stand-in reads from the settings."""
    seen: list[dict[str, object]] = []
    original = sources.changed

    def note(machine: Any, workload: Any, changes: dict[str, object], *rest: Any) -> Any:
        seen.append(changes)
        return original(machine, workload, changes, *rest)

    class Fixed(Queue):
        def __call__(self, machine: Any, workload: Any) -> Any:
            return super().__call__(machine, workload.put("let", tree_of({"rate": "800 1/s"})))

    monkeypatch.setattr(sources, "changed", note)
    for arrivals, paths in (
        ("{poisson: 40 1/s}", {"workload.infer.arrivals.poisson": "40 1/s"}),
        ("{every: 25 ms}", {"workload.infer.arrivals.every": "0.025 s"}),
        ("{bursts: {poisson: 4 1/s, size: 10}}", {"workload.infer.arrivals.bursts.poisson": "4 1/s"}),
        ("{day: {mean: 40 1/s, peak: 60 1/s}}",
         {"workload.infer.arrivals.day.mean": "40 1/s", "workload.infer.arrivals.day.peak": "60 1/s"}),
    ):  # fmt: skip
        seen.clear()
        text = SERVICE.replace("let: {rate: 200 1/s}\n", "").replace("{poisson: $rate}", arrivals)
        found = searched(monkeypatch, Fixed(), text, set={"workload.infer.requests": 10**6})
        assert found.knob.start == pytest.approx(40)
        assert {path: value for path, value in seen[1].items() if path in paths} == paths


@pytest.mark.parametrize(
    ("text", "what", "said"),
    [
        (SERVICE, "rat", "neither file has a number `rat`"),
        (SERVICE, "workload.infer.models", "neither file has a number"),
        (SERVICE, "workload.infer.model", "`workload.infer.model` must be a number"),
        (SERVICE, "clients", "no parameter `clients`"),
        (SERVICE.replace("{rate: 200 1/s}", "{rate: 0 1/s}"), "rate", "must start above 0"),
        (SERVICE.replace("expect:", "notes:").replace("{latency_p95: at most 80 ms}", "none"), "rate", "needs a requirement"),
        (SERVICE.replace("requests: 200", "requests: many"), "rate", "many"),
    ],
)
def test_what_cannot_be_found_is_said(text: str, what: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        hwsim.find("dgx-h100", text, what)


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        (PROGRAM, "nothing", "known: pause, size, times"),  # a program has no rate
        (SERVICE, "nothing", "known: rate"),
        (PROGRAM.replace("expect:", "notes:").replace("{makespan: at most 100 ms}", "none"), "times", "makespan: at most"),
        (SERVICE.replace("expect:", "notes:").replace("{latency_p95: at most 80 ms}", "none"), "rate", "ttft_p99: at most"),
        (PROGRAM.replace("expect: {makespan", "expect: {time"), "times", "did you mean 'makespan'"),
    ],
)
def test_hints_name_what_these_files_have(text: str, what: str, hint: str) -> None:
    with pytest.raises(SpecError) as error:
        hwsim.find("dgx-h100", text, what)
    assert hint in str(error.value)


def test_a_value_that_holds_and_one_that_does_not_do_not_read_alike() -> None:
    pieces = PROGRAM.replace("$size", "1 GB / $times").replace("at most 100 ms", "at most 68.8 ms")
    lines = str(hwsim.find(MACHINE, pieces, "times", set={"times": 300})).splitlines()
    holds, fails = (line.rpartition("makespan ")[2] for line in lines[-2:])
    assert parse(holds).value <= 0.0688 < parse(fails).value


def test_the_command_prints_one_answer(tmp_path: Any) -> None:
    path = tmp_path / "copy.yaml"
    path.write_text(PROGRAM)

    asked = ("simulate", MACHINE, path, "--find")
    text = command.hwsim(*asked, "times")
    assert text.stderr == ""
    assert "  highest        15 " in text.stdout
    found = json.loads(command.hwsim(*asked, "times", "--json").stdout)
    assert (found["hwsim"], found["value"], found["next"], found["settings"]) == ("find/2", 15, 16, {"times": 15})
    assert [run["status"] for run in found["tried"]] == ["held"] * sum(run["value"] <= 15 for run in found["tried"]) + [
        "violated"
    ] * sum(run["value"] > 15 for run in found["tried"])
    assert "none: times 1 violates a requirement" in command.hwsim(*asked, "times", "--set", "pause=200 ms", code=3).stdout
    command.hwsim(*asked, "tims", code=2)
    refused = command.hwsim(*asked, "times", "--no-fold", code=2)
    assert "--find can be combined only with --set, --json and --quiet" in refused.stderr


def test_a_real_service_is_found_and_holds_there() -> None:
    found = hwsim.find("dgx-h100", SERVICE, "rate", within=0.1)
    assert found.value is not None
    assert found.next is not None
    settings_of = {**dict(found.counts), **found.knob.settings(found.value)}
    assert hwsim.simulate("dgx-h100", SERVICE, set=settings_of, expect=True).met
    with pytest.raises(hwsim.ExpectationFailed):
        hwsim.simulate("dgx-h100", SERVICE, set={**settings_of, **found.knob.settings(found.next)}, expect=True)
    assert found.value < found.next <= 1.1 * found.value * (1 + 1e-9)
    assert found.runs < 30


def test_the_value_is_within_its_own_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisection, "_crossing", lambda curve: 950.0)
    found = searched(monkeypatch, Queue(known=0.2), set={"workload.infer.requests": 5000})
    assert present(found.low) <= present(found.value) <= present(found.high)


def test_what_was_not_tried_is_said_where_more_may_be_easier() -> None:
    assert "values above 1.000 ms were not tried" in str(bisection.find(MACHINE, PROGRAM.replace("100 ms}", "1 us}"), "pause"))
