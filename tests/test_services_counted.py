"""Times of services are of all their requests: what happens early counts as what happens late, and what is left out is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.families.services.results.responses import ServiceResponses, Services
from hwsim.families.services.told import ServicesOutcome
from hwsim.results.checks import violations
from tests.service_cases import MACHINE, busy, run, workload

READ = {"read": {"from": "disk", "bytes": "2 MB"}}
SHOP: dict[str, Any] = {"device": "cpu", "arrivals": {"poisson": "100 1/s"}, "request": [READ]}


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([{"part": "disk"}, {"service": "s"}, {"part": "disk", "speed": "1 %"}]),
    st.floats(0.02, 0.8),
    st.integers(0, 99),
)
def test_an_outage_counts_early_as_late(what: Mapping[str, str], share: float, seed: int) -> None:
    """Of 20 s it takes 2: a tenth of the requests waits 1 s in the mean, and those who come while the rest catch up."""
    lasting = {"for": "2 s"} if "speed" in what else {"down": "2 s"}
    found = run({"s": SHOP}, seed=seed, requests=2000, events=[{**what, "at": f"{20 * share} s", **lasting}])["s"]
    assert found.latency.count == found.arrived == 2000
    assert found.latency.most >= (1.9 if "speed" not in what else 1.5)
    assert 0.06 < found.latency.mean.value < 0.25
    assert found.latency.at(0.99).value > 1
    assert not found.steady


def test_a_crowd_counts_at_the_beginning_as_at_the_end(tmp_path: Path) -> None:
    """3,000 requests of 1 ms in a second, each waits 2/3 ms longer than the one before; the others wait for nobody."""
    crowd = [index / 3000 for index in range(3000)]
    for name, instants in (
        ("early", [*crowd, *(3 + number / 100 for number in range(5000))]),
        ("late", [*(number / 100 for number in range(5000)), *(52 + arrival for arrival in crowd)]),
    ):
        (tmp_path / f"{name}.csv").write_text("arrival\n" + "\n".join(map(repr, instants)) + "\n")
        came = {"trace": str(tmp_path / f"{name}.csv")}
        service = {"device": "one", "arrivals": came, "request": [busy("1 ms", "one")]}
        found = run({"s": service}, {"machine.one.serves": "fifo"}, requests=8000)["s"].latency
        assert found.mean.value == pytest.approx((3000 * 1.0 + 5000 * 1e-3) / 8000, rel=0.01)
        assert found.most == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("fast", ["never", "always"])
def test_a_warm_up_is_left_out_and_said(fast: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HWSIM_FAST", fast)
    service = {"device": "cpu", "arrivals": {"every": "10 ms"}, "request": [busy("1 ms")], "warm_up": "1 s"}
    simulated = hwsim.simulate(MACHINE, workload({"s": service}, requests=800), expect=False)
    [found] = simulated.services.answers
    assert (found.completed, found.latency.count, found.latency.dropped) == (800, 700, 100)
    assert "warm-up: 100 requests" in " ".join(str(simulated).split())
    assert simulated.to_json()["services"][0]["latency"]["warm_up_share"] == 0.125
    with pytest.raises(hwsim.SpecError, match=r"every request of s arrives during the `warm_up`, so none is counted"):
        run({"s": {**service, "warm_up": "1 h"}}, requests=800)


@pytest.mark.parametrize("engine", ["auto", "simpy"])
def test_what_is_expected_of_answers_that_nobody_got_is_not_met(engine: Any) -> None:
    """A time that does not exist keeps no bound."""
    lost = {"s": {"device": "cpu", "arrivals": {"every": "10 ms"}, "request": [{"ask": {"service": "t", "timeout": "1 ms"}}]},
            "t": {"device": "cpu", "request": [busy("2 ms")]}}  # fmt: skip
    asked = workload(lost, requests=100, expect={"s.latency_p99": "at most 1 h"})
    with pytest.raises(hwsim.ExpectationFailed, match="no such value"):
        hwsim.simulate(MACHINE, asked, expect=True, engine=engine)


def test_a_steady_state_is_not_waited_for_where_there_is_none() -> None:
    service = {**SHOP, "warm_up": "until steady"}
    assert run({"s": service})["s"].latency is not None
    for events in ([{"service": "s", "at": "1 s", "down": "1 s"}], [{"part": "disk", "at": "1 s", "speed": "50 %"}]):
        with pytest.raises(hwsim.SpecError, match="the load has no steady state"):
            run({"s": service}, events=events)


def test_what_contradicts_little_or_loses_requests_is_a_defect() -> None:
    simulated = hwsim.simulate(MACHINE, workload({"s": SHOP}, requests=300), expect=False)
    assert list(violations(simulated)) == []
    services = simulated.services
    assert services is not None
    [found] = services.answers
    assert found.latency is not None

    def told(answers: ServiceResponses) -> str:
        changed: Services = replace(services, answers=(answers,))
        return "; ".join(violations(replace(simulated, families={"services": ServicesOutcome(changed)})))

    assert "are in flight" in told(replace(found, unfinished=1))
    assert "integral of requests" in told(replace(found, in_flight_mean=2 * found.in_flight_mean))
    assert "left out" in told(replace(found, latency=replace(found.latency, count=200)))
    shorter = replace(found.latency.mean, value=found.latency.mean.value / 2)
    assert "on average" in told(replace(found, latency=replace(found.latency, mean=shorter)))


@pytest.mark.parametrize("what", [{"arrivals": {"day": {"mean": "20 1/s", "peak": "30 1/s", "cycle": "1 s"}}}, {"events": [
    {"at": "1 s", "part": "gpu0", "speed": "50 %"}]}])  # fmt: skip
def test_a_model_s_steady_state_is_not_waited_for_where_there_is_none(what: dict[str, Any]) -> None:
    arrivals = what.get("arrivals", {"poisson": "20 1/s"})
    model = {"model": "gpt2", "dtype": "fp16", "prompt": 20, "output": 4, "requests": 40, "arrivals": arrivals}
    model["warm_up"] = "until steady"
    events = {"events": what["events"]} if "events" in what else {}
    with pytest.raises(hwsim.SpecError, match="the load has no steady state"):
        hwsim.simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "infer": model, **events}, expect=False)
