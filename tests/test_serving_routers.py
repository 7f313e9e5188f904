"""Routers: which copy a request goes to; alone and on the clock they choose the same."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

import hwsim
from hwsim.families.serving.actors.router import ScoreRouter, router_of
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.spec import SpecError
from tests.served import served

ALIKE: dict[str, Any] = {
    "shared": {"tokens": 900, "groups": 9, "skew": 1},
    "arrivals": {"poisson": "2500 1/s"},
    "device": "gpu0..2",
}
SCORES = {"prefix": 2, "queue": 1, "room": 1}


@pytest.mark.parametrize("router", ["least", "waiting", "round robin", SCORES])
def test_a_router_of_one_copy_is_none(router: Any) -> None:
    keys: dict[str, Any] = {"arrivals": {"poisson": "700 1/s"}}
    assert served(**keys, router=router).rows == served(**keys).rows


def test_a_request_that_waits_counts_as_one_or_as_four_that_are_worked_on() -> None:
    loads = (5, 1), (7, 0), (9, 0)
    copies: Any = [SimpleNamespace(number=row, requests=load, in_line=line) for row, (load, line) in enumerate(loads)]
    request: Any = None
    assert [router_of(keys, copies).choose(request, range(3)) for keys in ("least", "waiting")] == [0, 1]
    copies[1].requests = 8  # as many as one that waits and four that are worked on
    assert router_of("waiting", copies).choose(request, range(3)) == 0


def test_round_robin_takes_turns_and_a_slow_copy_is_spared_by_the_others() -> None:
    keys: dict[str, Any] = {"device": "gpu0..1", "prompt": 4000, "output": 5, "arrivals": {"poisson": "400 1/s"},
                            "events": [{"at": "1 ms", "part": "gpu1", "speed": "30 %"}]}  # fmt: skip
    turns, least = served(**keys, router="round robin"), served(**keys, router="least")
    assert Counter(row.replica for row in turns.rows) == {0: 60, 1: 60}
    shares = Counter(row.replica for row in least.rows)
    assert shares[0] > 1.2 * shares[1]
    assert least.latency.mean < turns.latency.mean


def test_two_choices_are_between_random_routing_and_the_fewest_requests() -> None:
    keys: dict[str, Any] = {"device": "gpu0..7", "requests": 9000, "prompt": 1000, "output": 1, "batch": 1, "warm_up": "0 s",
                            "server": {"host": {"api": "0 s"}}}  # fmt: skip
    lone = served(**{**keys, "requests": 1, "arrivals": {"every": "1 s"}}).latency.mean
    keys["arrivals"] = {"poisson": f"{8 * 0.8 / lone} 1/s"}
    found = {choices: served(**keys, router={"choices": choices}).queueing.mean for choices in (1, 2, 3)}
    assert found[1] == pytest.approx(lone * 0.8 / (2 * (1 - 0.8)), rel=0.15)  # of M/D/1: load / (2 (1 - load)) services
    assert found[2] < 0.5 * found[1]
    least = served(**keys, router="least")
    assert least.queueing.mean < found[3] < found[2]
    assert served(**keys, router={"choices": 8}).rows == least.rows
    with pytest.raises(SpecError, match="below the minimum of 1"):
        served(router={"choices": 0})


def test_a_router_that_looks_for_prefixes_finds_more_of_them() -> None:
    many: dict[str, Any] = {**ALIKE, "shared": {"tokens": 1200, "groups": 30}, "memory": "5 %", "device": "gpu0..3"}
    blind, sees = served(**many), served(**many, router={"prefix": 5, "queue": 1, "room": 0})
    assert sees.cached_tokens > 1.15 * blind.cached_tokens


@pytest.mark.parametrize("keys", [{"server": {"block": 4}}, {"offload": {"host": "2 GB"}}, {"events": [], "memory": "60 %"}])
def test_the_index_of_all_caches_finds_what_each_cache_finds(keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed, walked = ScoreRouter._cached, list[int]()

    def cached(router: Any, sequence: Any) -> Any:
        found = [copy.cache.found(sequence) for copy in router.copies]
        walked.extend(hits.blocks + sum(count for _, count in hits.below) for hits in found)
        assert (indexed(router, sequence) / router.copies[0].settings.block).tolist() == walked[-len(found) :]
        return indexed(router, sequence)

    monkeypatch.setattr(ScoreRouter, "_cached", cached)
    shared = {"tokens": {"uniform": [300, 1200]}, "groups": 30}
    served(**{**ALIKE, "shared": shared, "device": "gpu0..3", "router": SCORES, "memory": "2.6 %", "requests": 400, **keys})
    assert len(set(walked)) > 9


def test_two_models_share_a_gpu_and_slow_each_other() -> None:
    def job(start: str, device: str) -> dict[str, Any]:
        infer = {"model": "llama-3-8b", "device": device, "requests": 20, "prompt": 500, "output": 40, "memory": "45 %",
                 "arrivals": {"poisson": "40 1/s"}}  # fmt: skip
        return {"start": start, "infer": infer}

    def both(second: str) -> list[ServiceStatistics]:
        jobs = {"chat": job("0 s", "gpu0"), "code": job("0 s", second)}
        return list(hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": jobs}).serving)

    apart, together = both("gpu1"), both("gpu0")
    for alone, shared in zip(apart, together, strict=True):
        assert shared.latency.mean > 1.2 * alone.latency.mean
        assert dict(shared.time_by_use)["contention"] > 0
        assert dict(alone.time_by_use).get("contention", 0.0) == pytest.approx(0.0, abs=1e-12)
