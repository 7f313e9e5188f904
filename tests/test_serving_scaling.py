"""Copies that are started and stopped by the load: laws, two ways to play them, and what is paid for."""

from __future__ import annotations

import functools
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.costs.amount import Amount
from hwsim.costs.bill import Paying, bill_of
from hwsim.costs.prices import load_prices
from hwsim.costs.site import Site
from hwsim.families.serving.results.autoscaling import AutoscalingStatistics
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.results.activities import bounds_of
from hwsim.spec import SpecError
from hwsim.studies.measures import measure, number
from tests import command
from tests.test_infer import SMALL
from tests.test_serving_ways import only, served

RULES: dict[str, Any] = {"target": 8, "start": "700 ms", "every": "100 ms", "window": "400 ms"}
BURSTS: dict[str, Any] = {
    "device": "gpu*",
    "parallel": {"tp": 2},
    "arrivals": {"bursts": {"poisson": "2 1/s", "size": 40}},
    "requests": 120,
    "output": 40,
}
KINDS: dict[str, dict[str, Any]] = {
    "requests": {"scale": {**RULES, "target": 3}},
    "from nothing": {"scale": {**RULES, "least": 0, "most": 3, "limit": 16}},
    "waiting": {"scale": {**RULES, "by": "waiting", "target": 3, "delay": "1 s", "first": 2}, "batch": 6},
    "arrivals": {"scale": {**RULES, "by": "arrivals", "target": 50}, "router": "round robin"},
    "tiers": {
        "scale": {**RULES, "target": 3, "least": 0},
        "parallel": {"tp": 1},
        "device": ["gpu0", "gpu2", "gpu4"],
        "memory": "3.2 %",
        "shared": {"distinct": 40},
        "offload": {"host": "400 MB"},
    },
    "clients": {
        "scale": {**RULES, "least": 0, "limit": 9},
        "arrivals": {"clients": 40, "think": {"exponential": "900 ms"}},
        "requests": 130,
        "router": {"prefix": 2, "queue": 1},
        "shared": {"tokens": 100, "groups": 4},
    },
}


@functools.cache
def scaled(kind: str, way: str = "auto") -> tuple[ServiceStatistics, AutoscalingStatistics]:
    found = only(served(way, **{**BURSTS, **KINDS[kind]}))
    assert found.scaling is not None
    return found, found.scaling


@pytest.mark.parametrize("kind", KINDS)
def test_runs_and_iterations_one_by_one_start_the_same_copies(kind: str) -> None:
    assert scaled(kind) == scaled(kind, "clock")


@pytest.mark.parametrize("kind", KINDS)
def test_laws_of_copies(kind: str) -> None:
    found, scaling = scaled(kind)
    assert scaling.starts > 1
    assert scaling.stops > 0
    assert all(scaling.min_replicas <= change.ready <= change.paid <= scaling.max_replicas for change in scaling.changes)
    lives = [(lifetime, lifetime.ready_s) for lifetime in scaling.lifetimes]
    for row in found.rows:  # nobody is answered by a copy that is not there
        assert any(
            life.replica == row.replica
            and ready is not None
            and ready <= row.begin_s
            and (life.stop_s is None or row.arrival_s <= life.stop_s)
            and (life.end_s is None or row.end_s <= life.end_s + 1e-12)
            for life, ready in lives
        )
    assert all(before.start_s <= after.start_s for before, after in pairwise(scaling.lifetimes))
    for each_copy in range(found.replicas):  # GPUs have one copy at a time
        mine = [life for life in scaling.lifetimes if life.replica == each_copy]
        assert all(before.end_s is not None and before.end_s <= after.start_s for before, after in pairwise(mine))
    ends = [*(step.at_s for step in scaling.changes[1:]), scaling.span_s]
    integral = sum(step.paid * (end - step.at_s) for step, end in zip(scaling.changes, ends, strict=True))  # fits
    assert scaling.paid_s == pytest.approx(integral, rel=1e-12)
    assert scaling.gpu_hours == pytest.approx(integral * scaling.gpus / 3600, rel=1e-12)
    assert all(tier.loaded_tokens for tier in found.tiers)
    assert sum(number for _, number in found.time_by_use) <= scaling.paid_s - scaling.starting_s  # fits


def test_the_first_request_of_a_service_of_nothing_waits_for_its_copy() -> None:
    found = only(served("auto", device="gpu0", arrivals="all at once", requests=1, scale={**RULES, "least": 0}))
    always = only(served("auto", device="gpu0", arrivals="all at once", requests=1))
    (row,), (other,) = found.rows, always.rows
    assert row.first_token_s == pytest.approx(other.first_token_s + 0.7, abs=1e-12)
    assert dict(found.breakdowns[0].parts)["replica_start"] == pytest.approx(0.7, abs=1e-12)
    assert (found.scaling.starts, found.scaling.waits) == (1, 1)
    assert found.scaling.max_wait_s == pytest.approx(0.7)


@pytest.mark.parametrize("way", ["auto", "clock"])
@pytest.mark.parametrize("by", ["requests", "waiting", "arrivals"])
def test_a_copy_that_requests_wait_for_is_not_stopped_before_it_is_there(way: str, by: str) -> None:
    """However short the window in which requests are counted: those that came before it still wait."""
    rules = {**RULES, "least": 0, "most": 1, "by": by, "start": "3 s", "target": 50}
    found = only(served(way, device="gpu0", arrivals={"every": "1 s"}, requests=3, scale=rules))
    assert found.requests == 3
    assert found.scaling.starts == 1
    assert 1 < found.first_token.p50 < 6


@pytest.mark.parametrize("way", ["auto", "clock"])
def test_the_run_waits_for_the_start_of_a_copy_and_not_for_requests(way: str) -> None:
    keys: dict[str, Any] = {"device": "gpu0..1", "arrivals": {"every": "50 ms"}, "requests": 4}
    run = served(way, **keys, scale={**RULES, "least": 0})
    waits = {str(share.cause): share.time_fs / 1e15 for share in run.limited_by}
    assert waits["replica start"] == pytest.approx(0.7, abs=0.16)
    assert waits.get("arrivals", 0) < 0.06
    assert sum(spent for cause, spent in waits.items() if "waiting to start" in cause) < 0.01  # fits: the front end
    [longest, *_] = bounds_of(run.timeline, run.devices)
    assert str(longest.bound) == "waiting for a replica to start"


@pytest.mark.parametrize(("requests", "rate", "most", "overloaded", "unsettled"), [
    (60, 60, 2, False, True),  # all come before a copy is ready
    (400, 60, 2, False, False),  # those that waited are answered soon
    (600, 300, 1, True, False),  # a copy answers less than 200 a second
    (600, 300, 2, True, False),  # nor do two answer 300
    (60, 300, 1, False, True),
])  # fmt: skip
def test_a_cold_start_is_no_overload(requests: int, rate: int, most: int, overloaded: bool, unsettled: bool) -> None:
    keys: dict[str, Any] = {"device": "gpu0..1", "batch": 2, "arrivals": {"poisson": f"{rate} 1/s"}, "requests": requests}
    found = only(served("auto", **keys, scale={**RULES, "target": 4, "start": "1 s", "least": 0, "most": most}))
    assert (found.overloaded, found.unsettled) == (overloaded, unsettled)


def test_gpu_hours_are_hours_wherever_they_are_told(tmp_path: Path) -> None:
    infer = {"model": "gpt2", "device": "gpu*", "arrivals": "all at once", "requests": 4, "prompt": 10, "output": 4,
             "scale": {**RULES, "least": 2, "most": 2}}  # fmt: skip
    asked = {"hwsim": "workload/1", "infer": infer, "expect": {"gpu_hours": "at most 0.01 s"}}
    (tmp_path / "a.yaml").write_text(json.dumps(asked), encoding="utf-8")
    said = command.hwsim("simulate", "dgx-h100", tmp_path / "a.yaml", "--json", code=3)
    document = json.loads(said.stdout)
    hours = document["serving"][0]["scaling"]["gpu_hours"]
    assert 0.0 < hours == pytest.approx(2 * document["makespan_s"] / 3600)
    [verdict] = document["expect"]
    assert (verdict["status"], verdict["value"]) == ("violated", hours)
    assert document["serving"][0]["replicas"] == 2  # of 8 that the GPUs hold
    assert verdict["reason"].endswith(" h")
    assert measure("gpu_hours").shown(0.0226) == "0.0226 h"
    run = hwsim.simulate("dgx-h100", asked, expect=False)
    assert number(run, measure("gpu_hours"), dict) == hours
    assert "2 x 1 GPU" in str(run)


def test_mean_and_peak_power_are_of_the_same_copies() -> None:
    keys: dict[str, Any] = {"device": "gpu*", "arrivals": {"every": "2 ms"}, "requests": 300, "output": 40}
    every, one = (served("auto", **keys, scale={**RULES, "least": many, "most": many}) for many in (8, 1))
    whole, part = (bill_of(run).energy for run in (every, one))
    assert (whole.shared, part.shared) == (False, True)
    assert part.loaded == whole.loaded  # of the machine, with all parts busy
    assert part.watts <= part.peak <= part.loaded / 8
    assert "GPUs of running replicas" in " ".join(str(one).split())


@pytest.mark.parametrize("way", ["auto", "clock"])
def test_tiers_of_a_copy_that_is_stopped_are_lost(way: str) -> None:
    """Six prompts are stored once by a copy that stays, and again by one that is started anew."""
    keys: dict[str, Any] = {
        "device": "gpu0",
        "arrivals": {"bursts": {"poisson": "0.1 1/s", "size": 12}},
        "requests": 24,
        "prompt": 500,
        "shared": {"distinct": 6},
        "memory": "3.2 %",
        "offload": {"host": "1 GB"},
    }
    always = {**RULES, "least": 1, "most": 1}
    kept, lost = (only(served(way, **keys, scale={**always, "least": least})) for least in (1, 0))
    assert (kept.scaling.starts, lost.scaling.starts, lost.scaling.stops) == (0, 2, 1)
    [tier], [without] = kept.tiers, lost.tiers
    assert 0 < tier.stored_tokens == tier.peak_tokens == without.peak_tokens
    assert without.stored_tokens == 2 * tier.stored_tokens
    assert lost.cached_tokens < kept.cached_tokens


def test_weights_are_read_at_a_rate() -> None:
    keys: dict[str, Any] = {"device": "gpu0..1", "arrivals": "all at once", "requests": 1}
    stated = only(served("auto", **keys, scale={**RULES, "least": 0, "start": "1 s"}))
    rate = only(served("auto", **keys, scale={**RULES, "least": 0, "start": {"rate": "1 GB/s", "engine": "1 s"}}))
    assert rate.rows[0].first_token_s - stated.rows[0].first_token_s > 0.1


@pytest.mark.parametrize(("keys", "text"), [
    ({"most": 2, "least": 3}, "`most` is 2: expected at least 3"),
    ({"most": 9}, "first <= most <= 8"),
    ({"limit": 4}, "`limit` is 4 requests: expected at least 8"),
    ({"window": "10 ms"}, "`every` is longer than `window`"),
])  # fmt: skip
def test_what_cannot_be_is_refused(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError, match=text):
        served("auto", device="gpu*", scale={**RULES, **keys})


@pytest.mark.parametrize(("device", "most"), [("gpu0", 1), ("gpu0..3", 2), ("gpu*", 4)])
def test_a_copy_that_is_always_on_costs_its_share_of_the_machine(device: str, most: int) -> None:
    """Whatever else the machine has, and however many copies there might have been."""
    keys: dict[str, Any] = {"device": device, "requests": 20, "arrivals": {"every": "50 ms"}, "output": 5}
    wide = {"parallel": {"tp": 1 if most == 1 else 2}}
    paying = Paying(load_prices(), "purchase", Site(electricity=Amount.exact(1e-7), hosting=Amount.exact(5e-8)))
    run = served("auto", **keys, **wide, scale={**RULES, "least": 1, "most": most, "target": 1000})
    always = served("auto", **{**keys, "device": "gpu0" if most == 1 else "gpu0..1"}, **wide)
    part, whole = (bill_of(result, paying).cost for result in (run, always))
    items, entire = ({item.name: item.amount.value for item in cost.items} for cost in (part, whole))
    share = (1 if most == 1 else 2) / 8
    for name in ("machines", "hosting"):
        assert items[name] / part.seconds == pytest.approx(share * entire[name] / whole.seconds, rel=1e-9)


def test_memory_of_a_copy_is_given_back_with_it() -> None:
    infer = {"model": SMALL, "device": "gpu0..1", "parallel": {"tp": 1, "dp": 2}, "prompt": 100, "output": 20,
             "arrivals": {"bursts": {"poisson": "2 1/s", "size": 40}}, "requests": 200,
             "scale": {**RULES, "target": 3}}  # fmt: skip
    wait = {"program": [{"busy": {"device": "cpu0", "time": "1 ms"}}]}
    run = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": {"chat": {"infer": infer}, "other": wait}})
    scaling = run.serving[0].scaling
    assert scaling.stops
    (memory,) = [row for row in run.memory if row.device == "gpu1"]
    for life in scaling.lifetimes:
        if life.replica == 1:
            at = memory.taken[memory.time.searchsorted(round(life.start_s * 1e15), side="right") - 1]
            assert at == memory.peak
            if life.end_s is not None:
                assert memory.taken[memory.time.searchsorted(round(life.end_s * 1e15), side="right") - 1] == 0
