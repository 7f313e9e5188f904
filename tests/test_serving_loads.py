"""Loads of models: conversations, clients, prompts that begin alike; laws that every run keeps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest

from hwsim.api import Run, simulate
from hwsim.families.serving.results import log
from hwsim.families.serving.results.accounting import PARTS
from hwsim.families.serving.results.measures import RequestRow
from hwsim.spec import SpecError
from hwsim.ticks import FEMTO
from tests.served import served as of_small

SESSIONS = {"sessions": {"turns": {"uniform": [1, 5]}, "think": {"exponential": "30 ms"}}}
LOADS: dict[str, dict[str, Any]] = {
    "open": {"arrivals": {"poisson": "700 1/s"}},
    "clients": {"arrivals": {"clients": 12, "think": {"exponential": "5 ms"}}},
    "conversations": {"arrivals": {"poisson": "150 1/s"}, **SESSIONS},
    "conversations of clients": {"arrivals": {"clients": 9}, **SESSIONS},
    "prompts that begin alike": {"arrivals": {"poisson": "700 1/s"}, "shared": {"tokens": 500, "groups": 5, "skew": 1.0}},
    "prompts that come again": {"arrivals": {"poisson": "700 1/s"}, "shared": {"distinct": 7}},
    "skewed lengths": {"arrivals": {"every": "1 ms"}, "prompt": {"pareto": {"least": 20, "shape": 1.1, "most": 7000}}},
    "bursts": {"arrivals": {"bursts": {"poisson": "20 1/s", "size": 30}}, "batch": 6},
    "chunks, and a slow way out": {"server": {"budget": 256, "host": {"out": "3 ms"}}},
    "static batches": {"batching": "static", "batch": 8},
    "few places": {"batch": 4},
    "little room": {"memory": "2.1 %", "server": {"budget": 512}, "prompt": {"uniform": [100, 1500]}, "arrivals": "all at once"},
    "pairs": {"parallel": {"tp": 2, "dp": 2}, "device": "gpu*"},
    "two copies, one slow": {"arrivals": {"poisson": "900 1/s"}, "device": "gpu0..1"},
}


served = partial(of_small, requests=150, arrivals={"poisson": "600 1/s"})


def ordered(rows: tuple[RequestRow, ...]) -> list[tuple[int, int]]:
    """(arrival, end) in fs."""
    return [(round(row.arrival_s * FEMTO), round(row.end_s * FEMTO)) for row in rows]


@pytest.mark.parametrize("keys", LOADS.values(), ids=list(LOADS))
def test_laws_of_every_load(keys: Mapping[str, Any]) -> None:
    slow = [{"at": "20 ms", "part": "gpu1", "speed": "40 %"}] if keys.get("device") == "gpu0..1" else None
    found = served(**keys, events=slow)
    assert found.requests == len(found.rows) == 150
    for row in found.rows:  # parts add up, and are in order
        assert min(row.parts_fs) >= 0
        assert sum(row.parts_fs) == round(row.end_s * FEMTO) - round(row.arrival_s * FEMTO)
        assert row.arrival_s <= row.begin_s < row.first_token_s <= row.end_s
    for where in found.breakdowns:
        assert sum(seconds for _, seconds in where.parts) == pytest.approx(where.mean_s, rel=1e-12)
    assert found.output_tokens == sum(row.output_tokens for row in found.rows)
    assert found.prompt_tokens == sum(row.prompt_tokens for row in found.rows)
    # Little: the number in the system, followed event by event, is the sum of the stays
    times = ordered(found.rows)
    events = sorted([*((came, 1) for came, _ in times), *((end, -1) for _, end in times)])
    held = list(accumulate(change for _, change in events))
    area = sum(there * (after - now) for there, ((now, _), (after, _)) in zip(held, pairwise(events), strict=False))
    assert area == sum(end - came for came, end in times)
    assert found.in_flight_mean == pytest.approx(area / FEMTO / found.span_s, rel=1e-9)
    # the copies' time: iterations and idle time, no more
    assert found.duration_s == found.span_s
    assert sum(seconds for _, seconds in found.time_by_use) <= found.replicas * found.duration_s * (1 + 1e-9)
    # reading of prompts is charged once: what each read of its own is what the copies read
    reading = sum(row.parts_fs[PARTS.index("prefill")] for row in found.rows)
    assert reading <= dict(found.time_by_use)["prefill"] * FEMTO * (1 + 1e-9)
    assert found.cached_tokens < found.prompt_tokens
    assert (found.cached_tokens > 0) == bool({"shared", "sessions"} & set(keys))


@pytest.mark.parametrize("start", ["10 s", "4 h"])  # the second is beyond 64 bits of fs
def test_a_job_alone_that_starts_later_ends_as_much_later(start: str) -> None:
    infer = {"model": "llama-3-8b", "arrivals": {"poisson": "20 1/s"}, "requests": 60, "prompt": 64, "output": 8}

    def run(start: str) -> Run:
        return simulate("dgx-h100", {"hwsim": "workload/1", "jobs": {"chat": {"start": start, "infer": infer}}})

    first, late = run("0 s"), run(start)
    later = {"10 s": 10, "4 h": 4 * 3600}[start] * 10**15
    assert late.timeline.makespan_fs == first.timeline.makespan_fs + later
    assert [row.parts_fs for row in late.serving[0].rows] == [row.parts_fs for row in first.serving[0].rows]


def test_copies_do_no_more_than_all_the_time_whatever_counts() -> None:
    """A warm-up is left out of the requests, and not of the time in which copies work."""
    keys: dict[str, Any] = {"arrivals": "all at once", "requests": 300, "batch": 8}
    every, late = served(**keys), served(**keys, warm_up="until steady", seed=4)
    closed: dict[str, Any] = {"arrivals": {"clients": 32, "think": "1 ms"}, "requests": 300}
    some = served(**closed, warm_up="200 ms")
    for found in (every, late, some):
        assert sum(seconds for _, seconds in found.time_by_use) <= found.replicas * found.duration_s * (1 + 1e-9)
    assert some.warm_up
    assert some.duration_s > some.span_s
    assert served(**closed).duration_s == pytest.approx(some.duration_s)


def test_clients_ask_one_after_another() -> None:
    found = served(arrivals={"clients": 12, "think": "5 ms"}, requests=100)
    assert found.in_flight_mean <= 12
    first = [row for row in found.rows if row.arrival_s < 0.0051]
    assert len(first) == 12
    alone = served(arrivals={"clients": 1}, requests=20)
    rows = sorted(alone.rows, key=lambda row: row.arrival_s)
    assert [after.arrival_s for after in rows[1:]] == pytest.approx([row.end_s for row in rows[:-1]])
    assert alone.in_flight_mean == pytest.approx(1.0)


def test_the_context_of_a_conversation_grows_and_is_read_once() -> None:
    keys: dict[str, Any] = {"arrivals": {"clients": 1}, "sessions": {"turns": 5}, "prompt": 160, "output": 32, "requests": 10}
    found = served(**keys)
    rows = sorted(found.rows, key=lambda row: row.arrival_s)
    assert [row.prompt_tokens for row in rows] == 2 * [160 + 192 * turn for turn in range(5)]
    # all that was said, but for the last token, which was never read, in whole blocks
    assert found.cached_tokens == 2 * sum((160 + 192 * (turn - 1) + 31) // 16 * 16 for turn in range(1, 5))
    without = served(**keys, server={"prefixes": False})
    assert without.cached_tokens == 0
    assert without.latency.mean > found.latency.mean


def test_a_trace_with_blocks_finds_what_came_before(tmp_path: Path) -> None:
    lines = [
        f'{{"timestamp": {500 * number}, "input_length": 1024, "output_length": 4, "hash_ids": [7, {20 + number % 2}]}}'
        for number in range(4)
    ]
    (tmp_path / "blocks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = served(arrivals={"trace": str(tmp_path / "blocks.jsonl")}, requests=4)
    assert found.cached_tokens == 512 + 2 * 1008  # the last block of a prompt that is there whole is read again


def test_a_run_of_which_nothing_counts_is_refused() -> None:
    """Its percentiles would be those of no request."""
    with pytest.raises(SpecError, match="so none is counted"):
        served(arrivals={"every": "100 ms"}, requests=10, warm_up="5 s")


@pytest.mark.parametrize("warm_up", ["0 s", "300 ms", "1 s"])
def test_each_of_many_requests_counts_or_is_of_the_warm_up(warm_up: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows are a sample, and the warm-up ends after those that are kept at first."""
    monkeypatch.setattr(log, "ROWS", 100)
    monkeypatch.setattr(log, "BLOCK", 32)
    found = served(arrivals={"every": "2 ms"}, requests=800, output=2, prompt=16, warm_up=warm_up)
    assert found.sampled
    assert found.warm_up == {"0 s": 0, "300 ms": 150, "1 s": 500}[warm_up]
    assert found.requests == 800 - found.warm_up


def test_the_warm_up_does_not_count() -> None:
    keys: dict[str, Any] = {"arrivals": {"poisson": "500 1/s"}, "requests": 400}
    everything, late = served(**keys), served(**keys, warm_up="200 ms")
    assert late.warm_up == sum(row.arrival_s < everything.rows[0].arrival_s + 0.2 for row in everything.rows)
    assert late.requests == everything.requests - late.warm_up
    counted = [row.end_s - row.arrival_s for row in sorted(late.rows, key=lambda row: row.arrival_s)[late.warm_up :]]
    assert late.latency.mean == pytest.approx(sum(counted) / len(counted))
    assert served(**keys, warm_up="until steady").warm_up < 400


def test_goodput_counts_requests_that_keep_all_of_the_service_level() -> None:
    keys: dict[str, Any] = {"arrivals": {"poisson": "900 1/s"}, "requests": 200}
    free = served(**keys)
    assert free.goodput_per_s is None
    limits = free.first_token.p50, free.each_token.p50
    found = served(**keys, slo={"ttft": f"{limits[0]} s", "tpot": f"{limits[1]} s"})
    kept = [
        row
        for row in found.rows
        if row.first_token_s - row.arrival_s <= limits[0] * (1 + 1e-12)
        and (row.output_tokens < 2 or (row.end_s - row.first_token_s) / (row.output_tokens - 1) <= limits[1] * (1 + 1e-12))
    ]
    assert found.good == len(kept)
    assert found.goodput_per_s == pytest.approx(len(kept) / found.span_s)
