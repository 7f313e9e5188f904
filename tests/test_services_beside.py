"""Services beside a job that uses the same cores and links, and requests that come to one service again and again."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import pytest

import hwsim
from hwsim.engine import Driver
from hwsim.engine.fluid import _merged
from hwsim.families.services.actors.actor import simulate_services
from hwsim.prepare import prepare
from hwsim.results.timeline import PaceChange, Timeline
from hwsim.views.interval.say import TITLE
from tests.service_cases import MACHINE, busy, program_of, workload


def beside(requests: int) -> dict[str, Any]:
    """A service, and a job of three ops on its cores and its wire that ends before it."""
    seconds = requests / 700
    return {"hwsim": "workload/1", "jobs": {
        "copies": {"program": [
            {"busy": {"device": "cpu", "time": f"{seconds / 3} s"}},
            {"copy": {"from": "cpu", "to": "client", "bytes": f"{seconds / 10} GB"}},
            {"busy": {"device": "cpu", "time": f"{seconds / 3} s"}},
        ]},
        "service": {"services": {"a": {"device": "cpu", "arrivals": {"poisson": "700 1/s"}, "request": [
            busy({"exponential": "2 ms"}), {"send": {"to": "client", "bytes": {"exponential": "400 kB"}}},
        ]}}, "requests": requests},
    }}  # fmt: skip


def simulated(requests: int) -> hwsim.Run:
    return hwsim.simulate(MACHINE, beside(requests))


def test_what_is_not_kept_has_the_same_answers_as_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    found = simulated(1500)
    monkeypatch.setattr("hwsim.families.services.actors.actor._is_lighter_together", lambda _: True)
    kept = simulated(1500)
    assert len(found.timeline) == 5  # the job's, and the service's from its first request to its last answer
    assert len(kept.timeline) > 3000
    assert found.services.answers == kept.services.answers
    assert found.makespan_s == pytest.approx(kept.makespan_s, abs=1e-12)
    assert [job.end_s for job in found.jobs] == pytest.approx([job.end_s for job in kept.jobs], abs=1e-12)
    for mine, other in zip(found.usage, kept.usage, strict=True):
        assert (mine.capacity, mine.unit) == (other.capacity, other.unit)
        assert (mine.utilization, mine.moved) == pytest.approx((other.utilization, other.moved), rel=1e-9)


@pytest.mark.parametrize("reads", [0, 1])
def test_simpy_says_the_same_of_a_service_beside_a_job_to_the_byte(reads: int) -> None:
    """10 requests 10 ms apart of 5 ms and a read of 1 MB at 1 GB/s after 10 us: the last ends at 90 + 5 + 1.01 ms."""
    disk = {"kind": "disk", "read": "1 GB/s", "write": "1 GB/s", "latency": "10 us"}
    cpu = {"kind": "cpu", "cores": 2, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
    links = [{"name": "d", "between": ["cpu", "disk"], "kind": "direct", "bandwidth": "10 GB/s"}]
    machine = {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": cpu, "disk": disk}, "links": links}
    request = [busy("5 ms"), *[{"read": {"from": "disk", "bytes": "1 MB"}}] * reads]
    work = {"hwsim": "workload/1", "services": {"x": {"device": "cpu", "arrivals": {"every": "10 ms"}, "request": request}},
            "requests": 10, "jobs": {"b": {"program": [busy("1 ms")]}}}  # fmt: skip
    auto, simpy = (hwsim.simulate(machine, work, engine=engine) for engine in ("auto", "simpy"))
    assert auto.makespan_s == pytest.approx(0.095 + reads * 0.00101)
    assert str(auto) == str(simpy)


@pytest.mark.parametrize(("request_", "unsure"), [({"compute": {"flop": "1 GFLOP"}}, True), (busy("1 ms"), False)])
def test_a_service_beside_a_job_has_one_interval(request_: Any, unsure: bool) -> None:
    cpu = {"kind": "cpu", "cores": 2, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
    service = {"device": "cpu", "arrivals": {"every": "10 ms"}, "request": [request_]}
    work = {"hwsim": "workload/1", "services": {"x": service}, "requests": 10, "jobs": {"b": {"program": [busy("1 ms")]}}}
    found = str(hwsim.simulate({"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": cpu}}, work))
    [interval] = [line for line in found.splitlines() if TITLE in line]
    assert ("not applicable" not in interval) == unsure


def held(driver: Driver) -> int:
    """Entries of everything that a driver keeps, two levels deep."""
    fluid = driver._replay.fluid
    columns = [value for part in (driver, driver._replay, fluid, driver._issued, driver.env) for value in vars(part).values()]
    sized = [column for column in columns if isinstance(column, Sized)]
    return sum(map(len, sized)) + sum(len(inner) for outer in (fluid.history, fluid.members, fluid.users) for inner in outer)


def test_memory_does_not_grow_with_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    play = Driver.run

    def noted(driver: Driver) -> Timeline:
        timeline = play(driver)
        found.append(held(driver))
        return timeline

    monkeypatch.setattr(Driver, "run", noted)
    for requests in (1_000, 8_000):
        assert len(simulated(requests).timeline) == 5
    small, large = found
    assert small < 1000
    assert large < small + 1000  # where every work was an op, some twenty entries a request


def test_paces_put_together_give_as_much() -> None:
    changes = [PaceChange(0, 7, 1), PaceChange(3, 2, 0), PaceChange(10, 8, 0), PaceChange(11, 4, 1)]
    both = _merged(changes, 20)
    assert both[0].start == 0
    assert len(both) == 2
    ends = [both[1].start, 20]
    assert sum(step.pace * (end - step.start) for step, end in zip(both, ends, strict=True)) == 7 * 3 + 2 * 7 + 8 + 4 * 9
    assert {step.bound for step in both} == {1}  # for 12 of 20
    assert _merged(changes[:1], 5) == changes[:1]


FEEDBACK: dict[str, Any] = {
    "web": {"device": "cpu", "arrivals": {"poisson": "60 1/s"}, "request": [{"ask": "first"}]},
    "first": {"device": "cpu", "request": [
        busy({"exponential": "2 ms"}, "one"),
        {"choose": {"again": {"share": "60 %", "do": [{"ask": "second"}]}, "out": {"share": "40 %"}}},
    ]},
    "second": {"device": "cpu", "request": [busy({"exponential": "1 ms"}),
        {"ask": {"service": "first", "retries": 1, "timeout": "1 h"}}]},
}  # fmt: skip


def test_a_request_that_comes_again_draws_anew() -> None:
    program = program_of(prepare(MACHINE, workload(FEEDBACK, requests=4000)))
    play = simulate_services(program, choice="never")
    web, first, second = play.notes
    for notes in play.notes:
        notes.flush()
    assert web.entered == web.answers.count == 4000
    assert first.entered == second.entered + 4000
    assert first.entered / 4000 == pytest.approx(2.5, rel=0.05)  # a share of 60 % comes again each time
    for notes in play.notes:
        assert notes.stay == notes.area


@pytest.mark.parametrize("clients", [1, 3])
def test_a_core_that_a_service_never_leaves_is_busy_for_all_of_the_run_and_no_longer(clients: int) -> None:
    """Answers of 100 ms on one core, of which a job takes 700 ms."""
    one = {"kind": "cpu", "cores": 1, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
    service = {"device": "cpu", "arrivals": {"clients": clients}, "request": [busy("100 ms")]}
    run = hwsim.simulate(
        {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": one}},
        {"hwsim": "workload/1", "services": {"s": service}, "for": "10 s",
         "jobs": {"j": {"program": [busy("700 ms")]}}},
    )  # fmt: skip
    assert run.usage[0].busy_fs == run.timeline.makespan_fs
