"""Copies that read prompts and copies that write answers, each started and stopped by their own load: laws."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import hwsim
from hwsim.costs.bill import Paying, bill_of
from hwsim.costs.prices import load_prices
from hwsim.families.serving.results.autoscaling import AutoscalingStatistics, ReplicaCounts, most_gpus
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.spec import SpecError
from tests.test_infer import SMALL
from tests.test_serving_ways import only, served

RULES: dict[str, Any] = {"target": 3, "start": "700 ms", "every": "100 ms", "window": "400 ms"}
NONE: dict[str, Any] = {**RULES, "least": 0}
READERS: dict[str, Any] = {"device": "gpu0..2", "parallel": {"tp": 1}}
WRITERS: dict[str, Any] = {"device": "gpu4..7", "parallel": {"tp": 2}}
BURSTS: dict[str, Any] = {
    "arrivals": {"bursts": {"poisson": "2 1/s", "size": 40}},
    "requests": 120,
    "output": {"uniform": [1, 60]},
}
KINDS: dict[str, dict[str, Any]] = {
    "both": {"prefill": {**RULES, "target": 1}, "decode": RULES},
    "from nothing": {"prefill": {**NONE, "limit": 9}, "decode": {**NONE, "limit": 12, "target": 8}},
    "prompts alone": {"prefill": {**RULES, "least": 0, "by": "waiting"}},
    "answers alone": {
        "decode": {**NONE, "by": "waiting", "delay": "200 ms"},
        "server": {"first": "prompts"},
        "router": "round robin",
    },
    "arrivals": {"prefill": {**RULES, "by": "arrivals", "target": 40}, "decode": {**RULES, "by": "arrivals"}},
    "little room": {"prefill": NONE, "decode": NONE, "memory": "3.2 %", "requests": 120},
    "conversations": {
        "prefill": NONE,
        "decode": NONE,
        "arrivals": {"clients": 40, "think": {"exponential": "900 ms"}},
        "sessions": {"turns": {"uniform": [1, 5]}, "think": {"exponential": "400 ms"}},
        "prompt": 100,
        "requests": 130,
    },
}


def apart(keys: dict[str, Any]) -> hwsim.Run:
    rest = dict(keys)
    scales = {name: {"scale": rest.pop(name)} if name in rest else {} for name in ("prefill", "decode")}
    split = {"prefill": {**READERS, **scales["prefill"]}, "decode": {**WRITERS, **scales["decode"]}}
    return served("auto", **{**BURSTS, **rest, "split": split})


def lives_of(scaling: AutoscalingStatistics, copy: int) -> list[Any]:
    return [life for life in scaling.lifetimes if life.replica == copy]


def told(found: ServiceStatistics) -> tuple[AutoscalingStatistics, AutoscalingStatistics]:
    assert found.prompt_scaling is not None
    assert found.scaling is not None
    return found.prompt_scaling, found.scaling


@pytest.mark.parametrize("kind", KINDS)
def test_laws_of_both_parts(kind: str) -> None:
    run = apart(KINDS[kind])
    found = only(run)
    readers, writers = told(found)
    assert found.requests == len(found.rows) == KINDS[kind].get("requests", 120)  # nothing is lost
    for row in found.rows:
        assert min(row.parts_fs) >= 0
        assert sum(row.parts_fs) == pytest.approx((row.end_s - row.arrival_s) * 1e15, abs=5)
        assert row.arrival_s <= row.begin_s < row.first_token_s <= row.end_s
        if row.replica >= found.prefill_replicas:  # nobody is answered by a copy that is not there
            assert any(
                life.ready_s is not None
                and life.ready_s <= row.begin_s
                and (life.end_s is None or row.end_s <= life.end_s + 1e-12)
                for life in lives_of(writers, row.replica - found.prefill_replicas)
            )
    for scaling, many, wanted in ((readers, 3, "prefill" in KINDS[kind]), (writers, 2, "decode" in KINDS[kind])):
        assert all(scaling.min_replicas <= change.ready <= change.paid <= scaling.max_replicas for change in scaling.changes)
        assert (scaling.starts > 0) == wanted
        assert wanted or not scaling.stops
        for copy in range(many):
            assert all(a.end_s is not None and a.end_s <= b.start_s for a, b in pairwise(lives_of(scaling, copy)))
        ends = [*(step.at_s for step in scaling.changes[1:]), scaling.span_s]
        integral = sum(step.paid * (end - step.at_s) for step, end in zip(scaling.changes, ends, strict=True))  # fits
        assert scaling.paid_s == pytest.approx(integral, rel=1e-12)
    assert readers.stops + writers.stops > 0
    paid = readers.paid_s + writers.paid_s
    assert sum(number for _, number in found.time_by_use) <= paid - readers.starting_s - writers.starting_s  # fits
    hours = (readers.paid_s + 2 * writers.paid_s) / 3600
    assert found.values()["gpu_hours"] == pytest.approx(hours, rel=1e-12)
    assert found.tokens_per_s_gpu <= found.tokens_per_s


@pytest.mark.parametrize("first", ["prompts", "answers"])
@pytest.mark.parametrize("more", [{}, {"memory": "3.2 %"}, {"arrivals": {"clients": 20}}])
def test_copies_that_are_always_there_are_a_split_without_scaling(first: str, more: dict[str, Any]) -> None:
    keys = {**BURSTS, **more, "server": {"first": first}, "requests": 120}
    always = {"prefill": {**RULES, "least": 3}, "decode": {**RULES, "least": 2, "by": "waiting"}}
    scaled, plain = only(apart({**keys, **always})), only(apart(keys))
    assert scaled.rows == plain.rows
    assert plain.scalings == ()
    readers, writers = told(scaled)
    assert (readers.starts, readers.stops, writers.starts, writers.stops) == (0, 0, 0, 0)
    assert readers.paid_s == pytest.approx(3 * readers.span_s, rel=1e-12)
    assert scaled.tokens_per_s_gpu == pytest.approx(plain.tokens_per_s_gpu, rel=1e-9)


def test_a_first_request_waits_for_one_start_after_the_other() -> None:
    """The copy that writes its answer is there first, and keeps room; then one that reads prompts starts."""
    one: dict[str, Any] = {"arrivals": "all at once", "requests": 1, "prompt": 300, "output": 20}
    plain = only(apart(one)).rows[0]
    both, late = only(apart({**one, "prefill": NONE, "decode": NONE})), only(apart({**one, "decode": NONE}))
    assert both.rows[0].first_token_s == pytest.approx(plain.first_token_s + 1.4, abs=0.01)  # the front end works meanwhile
    assert late.rows[0].first_token_s == pytest.approx(plain.first_token_s + 0.7, abs=1e-12)
    assert dict(both.breakdowns[0].parts)["replica_start"] == pytest.approx(1.4, abs=0.01)


def test_a_part_is_paid_for_while_its_copies_are_on() -> None:
    keys = {"prefill": RULES, "decode": NONE, "requests": 80}
    run, found = apart(keys), None
    found = only(run)
    readers, writers = told(found)
    bill = bill_of(run, Paying(load_prices(), "on_demand"))
    whole = bill_of(apart({"requests": 80}), Paying(load_prices(), "on_demand")).cost
    part = (readers.paid_s + 2 * writers.paid_s) / 8 / run.makespan_s
    assert bill.cost.total.value / bill.cost.seconds == pytest.approx(part * whole.total.value / whole.seconds, rel=1e-6)
    said = " ".join(str(run).split())
    assert f"prefill: {readers.replicas_mean:.3g} on average" in said
    assert f"decode: {writers.replicas_mean:.3g} on average" in said
    assert "prefill 1 to 3 x 1 GPU, decode 0 to 2 x 2 GPUs" in said


def test_what_holds_keys_and_values_is_free_while_its_part_is_off() -> None:
    keys = {"arrivals": {"every": "2 s"}, "requests": 2, "prompt": 100, "output": 20, "memory": "90 %"}
    busy = {"program": [{"copy": {"name": "in", "from": "cpu0", "to": "gpu1", "bytes": "40 GB", "writes": "x"}}]}

    def run(least: int) -> hwsim.Run:
        scale = {**RULES, "least": least, "most": 2, "target": 50}
        split = {"prefill": {"device": "gpu0..1", "scale": scale}, "decode": {"device": "gpu4"}}
        service = {"infer": {"model": SMALL, **keys, "split": split}}
        return hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": {"chat": service, "batch": busy}}, expect=False)

    taken = {memory.device: memory.peak for memory in run(1).memory}
    assert taken["gpu1"] == 40_000_000_000  # the second copy never starts
    assert taken["gpu0"] > 70e9
    with pytest.raises(hwsim.OutOfMemory, match="gpu1"):
        run(2)


def test_a_split_is_not_scaled_as_a_whole() -> None:
    with pytest.raises(SpecError, match="`scale` and `split` exclude each other") as refused:
        served("auto", split={"prefill": {"device": "gpu0"}, "decode": {"device": "gpu1"}}, scale=RULES)
    assert "prefill: {..., scale" in (refused.value.mistakes[0].hint or "")
    with pytest.raises(SpecError, match="first <= most <= 3"):
        apart({"prefill": {**RULES, "most": 4}})
    with pytest.raises(SpecError, match="`every` is longer than `window`"):
        apart({"decode": {**RULES, "window": "10 ms"}})


def test_the_most_gpus_of_two_parts_are_those_at_one_instant() -> None:
    """4 and 2 GPUs a copy: 4 + 2 at first, then 8 + 2, then 4 + 6, both at the second second."""

    def part(gpus: int, *on: tuple[float, int]) -> AutoscalingStatistics:
        changes = tuple(ReplicaCounts(time_s, many, many) for time_s, many in on)
        return AutoscalingStatistics(1, 3, gpus, 10.0, changes, 0, 0, 10.0, 0.0, (), 0, 0.0, 0.0)

    assert most_gpus((part(4, (0.0, 1), (1.0, 2), (2.0, 1)), part(2, (0.0, 1), (2.0, 3)))) == 10
    assert most_gpus((part(4, (0.0, 1), (1.0, 2)), part(2, (0.0, 1), (1.0, 3)))) == 14
    assert most_gpus(()) == 0
