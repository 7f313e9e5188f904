"""Prompts read on some GPUs and answers written on others: nothing is lost, and the hand-over takes the links' time."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.families.serving.actors.kv_transfers import transfer_cost
from hwsim.families.serving.results.accounting import COMMUNICATION
from hwsim.spec import SpecError
from hwsim.ticks import FEMTO
from tests.served import served

APART: dict[str, Any] = {"device": None, "split": {"prefill": {"device": "gpu0"}, "decode": {"device": "gpu1"}}}
UNEVEN: dict[str, Any] = {
    "prefill": {"device": "gpu0..2", "parallel": {"tp": 1}},
    "decode": {"device": "gpu4..7", "parallel": {"tp": 2}},
}

GUESSES = {"tokens": 2, "acceptance": "60 %"}


def apart(**keys: Any) -> Any:
    return served(**{key: value for key, value in {**APART, **keys}.items() if value is not None})


@pytest.mark.parametrize("keys", [
    {"arrivals": {"poisson": "700 1/s"}},
    {"arrivals": {"clients": 12}, "split": UNEVEN},
    {"arrivals": "all at once", "memory": "2.6 %"},
    {"arrivals": {"poisson": "900 1/s"}, "split": UNEVEN, "speculate": GUESSES, "router": "round robin"},
    {"arrivals": {"poisson": "300 1/s"}, "shared": {"tokens": 700, "groups": 3}, "framework": "sglang"},
    {"arrivals": "all at once", "memory": "2.6 %", "server": {"first": "prompts"}},
    {"arrivals": {"poisson": "900 1/s"}, "memory": "2.5 %", "server": {"first": "prompts"}},
    {"arrivals": {"clients": 30}, "split": {**UNEVEN, "decode": {**UNEVEN["decode"], "server": {"sequences": 3}}}},
])  # fmt: skip
def test_every_request_is_answered_and_its_time_adds_up(keys: dict[str, Any]) -> None:
    found = apart(**keys)
    assert found.requests == len(found.rows) == 120
    assert found.output_tokens == sum(row.output_tokens for row in found.rows)
    for row in found.rows:
        assert min(row.parts_fs) >= 0
        assert sum(row.parts_fs) == pytest.approx((row.end_s - row.arrival_s) * FEMTO, abs=5)
        assert row.arrival_s <= row.begin_s < row.first_token_s <= row.end_s
        assert row.parts_fs[COMMUNICATION] > 0
        assert row.replica >= found.prefill_replicas or row.output_tokens == 1


def test_one_request_takes_its_prompt_the_links_and_its_answer() -> None:
    keys: dict[str, Any] = {"model": "llama-3-8b", "requests": 1, "prompt": 4096, "output": 64, "arrivals": {"every": "1 s"}}
    [one], [two] = served(**keys).rows, apart(**keys, server={"first": "prompts"}).rows
    machine = load_machine("dgx-h100")
    demand = transfer_cost(machine, ("gpu0",), ("gpu1",), 4096 * 131_072).demand
    link = demand.latency + demand.body(machine.rates())
    assert two.first_token_s - one.first_token_s == pytest.approx(link, rel=1e-6)
    assert two.end_s - two.first_token_s == pytest.approx(one.end_s - one.first_token_s, rel=1e-6)


def test_who_writes_the_answer_gives_the_first_token_after_an_iteration_of_its_own() -> None:
    keys: dict[str, Any] = {"model": "llama-3-8b", "requests": 1, "prompt": 4096, "arrivals": {"every": "1 s"}}
    for tokens in (1, 2, 64):
        [early], [late] = (apart(**keys, output=tokens, server={"first": who}).rows for who in ("prompts", "answers"))
        assert early.output_tokens == late.output_tokens == tokens
        assert late.first_token_s > early.first_token_s
        assert late.end_s - late.first_token_s == pytest.approx(early.end_s - early.first_token_s, rel=1e-4)
    [long] = apart(**keys, output=64, server={"first": "answers"}).rows
    token = (long.end_s - long.first_token_s) / 63
    assert late.first_token_s - early.first_token_s == pytest.approx(token, rel=0.02)


def test_first_tokens_wait_for_a_place_where_answers_are_written() -> None:
    keys: dict[str, Any] = {"prompt": 50, "output": 100, "arrivals": {"clients": 8}, "requests": 40}
    few = {**APART["split"], "decode": {"device": "gpu1", "server": {"sequences": 4}}}
    early, late = (apart(**keys, split=few, server={"first": who}) for who in ("prompts", "answers"))
    assert late.first_token.p50 > 0.7 * late.latency.p50 / 2
    assert early.first_token.p50 < 0.2 * late.first_token.p50


def test_a_part_has_a_server_of_its_own() -> None:
    keys: dict[str, Any] = {"prompt": 50, "output": 20, "arrivals": {"every": "1 s"}, "requests": 3}
    split = {**APART["split"], "prefill": {"device": "gpu0", "server": {"host": {"step": "50 ms"}}}}
    plain, slow = apart(**keys), apart(**keys, split=split)
    more = 50e-3 - 200e-6  # of vLLM's file
    assert slow.first_token.mean - plain.first_token.mean == pytest.approx(more, rel=1e-3)
    assert slow.each_token.mean == pytest.approx(plain.each_token.mean, rel=1e-6)


def test_prompts_of_others_no_longer_slow_answers() -> None:
    keys: dict[str, Any] = {"model": "llama-3-8b", "prompt": 4000, "output": 60, "arrivals": {"poisson": "8 1/s"}, "requests": 60}
    together: Any = served(**keys, device="gpu0..1")
    split = apart(**keys)
    assert split.each_token.p99 < 0.7 * together.each_token.p99
    assert split.gpus == together.gpus == 2


def test_slow_links_are_felt() -> None:
    keys: dict[str, Any] = {"requests": 10, "prompt": 2000, "output": 20, "arrivals": {"every": "50 ms"}}
    near, far = apart(**keys), apart(**keys, machine="d2l-4gpu-pcie")
    share = [row.parts_fs[COMMUNICATION] / (row.end_s - row.arrival_s) / FEMTO for found in (near, far) for row in found.rows]
    assert min(share[10:]) > 3 * max(share[:10])


@pytest.mark.parametrize(("split", "message"), [
    ({"prefill": {"device": "gpu0..1"}, "decode": {"device": "gpu1..2"}}, "gpu1 is used for prefill and for decode"),
    ({"prefill": {"device": "gpu0"}, "decode": {"device": "gpu9"}}, "gpu9"),
])  # fmt: skip
def test_what_cannot_be_is_refused(split: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        apart(split=split)


def test_beside_another_job_on_the_links_the_hand_over_takes_longer() -> None:
    infer = {
        "model": "llama-3-8b",
        "split": APART["split"],
        "requests": 8,
        "prompt": 6000,
        "output": 4,
        "arrivals": {"every": "1 s"},
    }
    busy = {"device": "gpu0", "program": [{"copy": {"from": "gpu0", "to": "gpu1", "bytes": "4 TB"}}]}
    jobs: dict[str, Any] = {"chat": {"infer": infer}}
    [alone] = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": jobs}).serving
    [beside] = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "jobs": {**jobs, "load": busy}}).serving
    for quiet, loud in zip(alone.rows, beside.rows, strict=True):
        assert loud.parts_fs[COMMUNICATION] > 1.5 * quiet.parts_fs[COMMUNICATION]
