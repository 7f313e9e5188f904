"""Caches by what they hold: hit rates beside a brute-force cache of what was asked for last, full and while it fills."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import hwsim
from hwsim.families.services.workload.popularity import SINGLE, hit_rate_curve
from tests.service_cases import MACHINE, busy, run, workload

CASES = [(500, 10_000, 0.8), (100, 10_000, 1.0), (4000, 20_000, 0.4), (10, 50, 1.6), (300, 1000, 0.0)]


def asked_for(of: int, zipf: float, many: int, seed: int) -> list[int]:
    weights = np.arange(1, of + 1) ** -zipf
    drawn: list[int] = np.random.default_rng(seed).choice(of, many, p=weights / weights.sum()).tolist()
    return drawn


def found(entries: int, asked: list[int]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each is in a cache of those asked for last, empty to begin with."""
    kept: OrderedDict[int, None] = OrderedDict()
    hits = np.zeros(len(asked), np.bool_)
    for index, thing in enumerate(asked):
        if thing in kept:
            hits[index] = True
            kept.move_to_end(thing)
            continue
        kept[thing] = None
        if len(kept) > entries:
            kept.popitem(last=False)
    return hits


@pytest.mark.parametrize(("entries", "of", "zipf"), CASES)
def test_a_full_cache_finds_what_a_brute_force_one_finds(entries: int, of: int, zipf: float) -> None:
    expected = hit_rate_curve(entries, of, zipf)
    hits = found(entries, asked_for(of, zipf, round(expected.full) + 100_000, 1))
    sampling = 4 * (0.25 / 100_000) ** 0.5
    assert hits[-100_000:].mean() == pytest.approx(expected.hit, abs=0.002 + sampling)


@pytest.mark.parametrize(("entries", "of", "zipf"), CASES[1:4])
def test_a_cache_fills_as_a_brute_force_one(entries: int, of: int, zipf: float) -> None:
    """Mean of 40 caches, in four stretches until it is full and one behind it."""
    expected = hit_rate_curve(entries, of, zipf)
    many = max(20, int(expected.full))
    hits = np.mean([found(entries, asked_for(of, zipf, 2 * many, seed)) for seed in range(40)], axis=0)
    for first, last in (
        (0, many // 4),
        (many // 4, many // 2),
        (many // 2, 3 * many // 4),
        (3 * many // 4, many),
        (many, 2 * many),
    ):
        mean = np.mean([expected.at(index) for index in range(first, last)])
        sampling = 4 * (0.25 / (40 * (last - first))) ** 0.5
        assert hits[first:last].mean() == pytest.approx(mean, abs=0.003 + sampling)


def test_groups_of_ranks_are_as_ranks_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for entries, of, zipf in ((2000, 20_000, 0.7), (9000, 20_000, 1.2)):
        grouped = hit_rate_curve(entries, of, zipf)
        with monkeypatch.context() as changed:
            changed.setattr("hwsim.families.services.workload.popularity.SINGLE", of)
            single = hit_rate_curve(entries, of, zipf)
        assert grouped.hit == pytest.approx(single.hit, rel=1e-5)
        assert grouped.full == pytest.approx(single.full, rel=1e-5)
    assert SINGLE < 20_000


def test_a_cache_as_large_as_all_there_is_finds_everything_in_the_end() -> None:
    whole = hit_rate_curve(200, 100, 0.5)
    assert whole.hit == 1.0
    assert whole.at(0) == pytest.approx(0.0, abs=1e-12)
    assert whole.at(round(whole.full) + 1) == 1.0


CACHED: dict[str, Any] = {"entries": 100, "of": 10_000, "miss": [{"ask": "store"}]}


def missed(cache: dict[str, Any], **keys: Any) -> tuple[int, int]:
    """Requests, and those of them that ask the store."""
    front = {"device": "cpu", "arrivals": {"every": "1 ms"}, "request": [{"cache": cache}]}
    answers = run({"front": front, "store": {"device": "cpu", "request": [busy("1 us")]}}, **keys)
    return answers["front"].arrived, answers["store"].arrived


def test_requests_miss_as_often_as_the_cache_says() -> None:
    came, asked = missed(CACHED, requests=20_000)
    assert asked / came == pytest.approx(1 - hit_rate_curve(100, 10_000, 1.0).hit, abs=0.014)


def test_an_emptied_cache_fills_again() -> None:
    """0.1 s of 100 lookups after each of 20 flushes, and nothing else."""
    flushed = {**CACHED, "empty_at": [f"{index * 100} ms" for index in range(20)]}
    came, asked = missed(flushed, requests=2000)
    expected = hit_rate_curve(100, 10_000, 1.0)
    misses = 20 * sum(1 - expected.at(lookup) for lookup in range(100))
    assert came == 2000
    assert asked == pytest.approx(misses, abs=4 * (2000 * 0.25) ** 0.5)
    assert misses > 2000 * (1 - expected.hit) * 1.1


def test_a_cache_that_is_written_once_is_one_cache() -> None:
    """Three lookups a request fill it three times as fast as one."""
    front = {"device": "cpu", "arrivals": {"every": "1 ms"}, "request": [
        {"repeat": {"times": 3, "do": [{"cache": {**CACHED, "entries": 10_000, "zipf": 0.0, "empty_at": "0 s"}}]}},
    ]}  # fmt: skip
    answers = run({"front": front, "store": {"device": "cpu", "request": [busy("1 us")]}}, requests=1500)
    expected = hit_rate_curve(10_000, 10_000, 0.0)
    assert answers["store"].arrived == pytest.approx(sum(1 - expected.at(index) for index in range(4500)), abs=4 * 4500**0.5 / 2)


def test_what_a_cache_holds_is_told() -> None:
    front = {"device": "cpu", "arrivals": {"every": "1 ms"}, "request": [{"cache": {**CACHED, "miss": [busy("1 ms")]}}]}
    told = hwsim.simulate(MACHINE, workload({"front": front}))
    (held,) = told.services.caches
    assert held[:5] == ("front", 100, 10_000, 1.0, pytest.approx(0.39, abs=0.005))
    assert held.lookups_to_fill == pytest.approx(hit_rate_curve(100, 10_000, 1.0).full)


@pytest.mark.parametrize(("cache", "message"), [
    ({"hit": "50 %", "entries": 3, "of": 9}, "either `hit` or `entries`"),
    ({}, "either `hit` or `entries`"),
    ({"entries": 3}, "`entries` needs `of`"),
    ({"hit": "50 %", "empty_at": "1 s"}, "`empty_at` has no effect with `hit`"),
    ({"hit": "50 %", "of": 9}, "`of` has no effect with `hit`"),
])  # fmt: skip
def test_a_cache_says_one_of_both(cache: dict[str, Any], message: str) -> None:
    front = {"device": "cpu", "arrivals": {"every": "1 ms"}, "request": [{"cache": {**cache, "miss": [busy("1 ms")]}}]}
    with pytest.raises(hwsim.SpecError, match=message):
        hwsim.simulate(MACHINE, workload({"front": front}))
