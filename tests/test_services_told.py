"""What a run of services tells of a load that it cannot bear: deadlocks, overload, limits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.families.services.actors import simulation
from tests import command
from tests.service_cases import MACHINE, busy, workload

RING: dict[str, Any] = {"device": "cpu", "workers": 1}
EVERY = {"arrivals": {"every": "1 ms"}}


def ring(*, chance: str) -> dict[str, Any]:
    """Services that ask each other in a circle; the last one by chance."""
    return {
        "a": {**RING, **EVERY, "request": [busy("1 ms"), {"ask": "b"}]},
        "b": {**RING, "request": [busy("1 ms"), {"maybe": {"ratio": chance, "do": [{"ask": "a"}]}}]},
    }


def test_a_ring_is_reported_though_nobody_is_ever_answered() -> None:
    run = hwsim.simulate(MACHINE, workload(ring(chance="99.99 %"), requests=10), expect=False)
    assert run.services.answers[0].completed == 0
    assert "requests of a" in run.services.deadlock
    assert "DEADLOCK" in str(run)


@pytest.mark.parametrize(("ask", "more"), [
    ({"ask": "a"}, ""),
    ({"ask": {"service": "a", "timeout": "50 ms"}}, ""),
    ({"maybe": {"ratio": "60 %", "do": [{"ask": {"service": "a", "times": 2}}]}}, ", with 1.2 times as many requests each time"),
])  # fmt: skip
def test_a_ring_that_never_ends_is_refused_where_it_is_written(ask: dict[str, Any], more: str) -> None:
    files = {"b": {**RING, **EVERY, "request": [busy("1 ms"), {"ask": "a"}]}, "a": {**RING, "request": [busy("1 ms"), ask]}}
    with pytest.raises(hwsim.SpecError, match=f"a request never ends: a calls itself{more}"):
        hwsim.simulate(MACHINE, workload(files, requests=10))
    files["a"]["request"] = [{"maybe": {"ratio": "100 %", "do": [{"ask": {"service": "b", "timeout": "1 ms"}}]}}]
    with pytest.raises(hwsim.SpecError, match="a request never ends: b, a call each other in a circle"):
        hwsim.simulate(MACHINE, workload(files, requests=10))


def test_long_chains_and_rings_by_chance_end() -> None:
    """Many asks at each of 20 steps of a chain are no ring, whatever their number; a ring of 90 % ends."""
    chain: dict[str, dict[str, Any]] = {
        f"s{n}": {"device": "cpu", "request": [{"ask": {"service": f"s{n + 1}", "times": 100}}]} for n in range(20)
    }
    chain["s20"] = {"device": "cpu", "request": [busy("1 us")]}
    chain["s19"] |= EVERY
    assert hwsim.simulate(MACHINE, workload(chain, requests=1), expect=False).services is not None
    visits = ring(chance="90 %")
    visits["a"].pop("workers")
    visits["b"].pop("workers")
    run = hwsim.simulate(MACHINE, workload(visits, requests=300), expect=False)
    assert run.services.answers[0].arrived == pytest.approx(3000, rel=0.3)


def test_more_requests_than_a_computer_holds_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "AT_ONCE", 50)
    files = {"a": {"device": "cpu", **EVERY, "request": [{"ask": "b"}]}, "b": {**RING, "request": [busy("1 s")]}}
    with pytest.raises(hwsim.Deadlock, match="50 requests of b are in flight"):
        hwsim.simulate(MACHINE, workload(files, requests=100))


def test_locks_in_opposite_order_are_reported() -> None:
    def both(first: str, second: str) -> list[dict[str, Any]]:
        inner = {"lock": {"name": second, "do": [busy("1 ms")]}}
        return [busy("1 ms"), {"lock": {"name": first, "do": [busy("1 ms"), inner]}}]

    files = {
        name: {"device": "cpu", **EVERY, "request": both(*locks)}
        for name, locks in {"a": ("one", "two"), "b": ("two", "one")}.items()
    }
    assert "DEADLOCK" in str(hwsim.simulate(MACHINE, workload(files, requests=100), expect=False))


def test_a_deadlock_is_no_success(tmp_path: Path) -> None:
    machine, circle = tmp_path / "machine.json", tmp_path / "ring.json"
    machine.write_text(json.dumps(MACHINE))
    circle.write_text(json.dumps(workload(ring(chance="99.99 %"), requests=10)))
    told = command.hwsim("simulate", machine, circle, code=1)
    assert "DEADLOCK" in told.output


def test_overload_is_told_whatever_happens_meanwhile() -> None:
    files = {
        "a": {
            "device": "cpu",
            "arrivals": {"poisson": "5000 1/s"},
            "request": [busy("1 ms"), {"cache": {"hit": "50 %", "miss": []}}],
        }
    }
    cold = [{"at": "100 ms", "service": "a", "hit": "0 %", "for": "10 ms"}]
    simulated = hwsim.simulate(MACHINE, workload(files, events=cold), expect=False)
    assert [warning.code for warning in simulated.warnings] == ["overloaded"]


@pytest.mark.parametrize(("arrivals", "steady"), [({"poisson": "1000 1/s"}, False), ({"every": "1 ms"}, True)])
def test_as_many_as_can_be_served_is_no_steady_state_of_random_arrivals(arrivals: dict[str, Any], steady: bool) -> None:
    simulated = hwsim.simulate(MACHINE, workload({"a": {**RING, "arrivals": arrivals, "request": [busy("1 ms")]}}), expect=False)
    assert ("overloaded" not in [warning.code for warning in simulated.warnings]) == steady


def test_clients_who_wait_need_no_endless_run() -> None:
    files = {"a": {**RING, "arrivals": {"clients": 5}, "request": [busy("1 ms")]}}
    assert "requests would do" not in str(hwsim.simulate(MACHINE, workload(files, requests=3000), expect=False))


def test_a_group_s_lock_shares_what_is_done_within() -> None:
    body = [{"lock": {"name": "log", "group": 8, "do": [busy("1 ms", "one")]}}]
    found = hwsim.simulate(
        MACHINE, workload({"a": {"device": "cpu", "arrivals": {"clients": 64}, "request": body}}), expect=False
    ).services
    assert {rung.name: rung.limit_per_s for rung in found.throughput_limits} == pytest.approx({"log": 8000, "one.cores": 8000})
    assert found.answers[0].throughput_per_s == pytest.approx(8000, rel=0.01)


def test_above_p99_is_of_requests_after_the_warm_up() -> None:
    body = [{"lock": {"name": "log", "group": 8, "do": [busy("1 ms", "one")]}}]
    arrivals = {"clients": 256, "think": {"exponential": "10 ms"}}
    found = hwsim.simulate(
        MACHINE, workload({"a": {"device": "cpu", "arrivals": arrivals, "request": body}}), expect=False
    ).services
    latency = found.answers[0].latency
    assert math.fsum(wait.seconds for wait in found.answers[0].waits_above) <= latency.most * 1.01
