"""Adapters of a served model: their bytes, their time, and all ways to play them alike."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim
from hwsim.families.serving.workload.adapters import Adapters
from hwsim.spec import SpecError
from hwsim.workload.load.draws import RandomDraws, Uniform
from hwsim.workload.load.numbers import stream
from tests.served import served

MANY = {"count": 40, "rank": 16}
SOME = {**MANY, "skew": 1.0, "slots": 3}
LLAMA: dict[str, Any] = {"model": "llama-3-8b", "requests": 24, "prompt": 200, "output": 40}


def test_no_requests_have_no_adapter_and_many_have_all() -> None:
    for skew in (0.0, 1.5):
        found = Adapters(30, 8, skew, (), 2.0)
        counts = [found.distinct(requests) for requests in (0, 1, 5, 50, 100_000)]
        assert counts[0] == 0
        assert counts[1] == pytest.approx(1)
        assert counts == sorted(counts)
        assert counts[2] < 5
        assert counts[-1] == pytest.approx(30)


def test_adapters_take_the_bytes_of_their_matrices() -> None:
    # llama-3-8b, rank 16: per layer 16 x (4096 + 4096, twice 4096 + 1024, 4096 + 4096, three times 4096 + 14336) numbers
    size = 16 * (2 * 8192 + 2 * 5120 + 3 * 18432) * 32 * 2
    assert size == 83_886_080
    plain, many = served(**LLAMA), served(**LLAMA, adapters=MANY)
    lost = (plain.kv_cache_tokens or 0) - (many.kv_cache_tokens or 0)
    assert lost == pytest.approx(40 * size / 131_072, abs=16)


def test_a_single_request_waits_for_one_adapter_and_different_ones_cost_more() -> None:
    keys: dict[str, Any] = {**LLAMA, "requests": 1}
    plain, one, all_of_40 = served(**keys), served(**keys, adapters={"count": 1, "rank": 16}), served(**keys, adapters=MANY)
    assert plain.rows[0].end_s < one.rows[0].end_s
    assert one.rows[0].end_s == pytest.approx(all_of_40.rows[0].end_s, rel=1e-9)
    ends = [served(**LLAMA, adapters={**MANY, "count": count}).latency.mean for count in (1, 4, 40)]
    assert ends == sorted(ends)
    assert ends[2] > 1.002 * ends[0]
    assert served(**LLAMA, adapters={**MANY, "skew": 3}).latency.mean < ends[2]


def test_no_more_adapters_are_in_use_than_there_are_places_for() -> None:
    found = served(arrivals="all at once", adapters=SOME, requests=60, server={"host": {"out": "0 s"}})
    use = found.adapters
    assert use.acquisitions == 60
    assert 3 < use.loads < 60
    assert 20 < use.waits < 60
    assert found.breakdowns[0].parts[0][0] == "adapter_wait"
    drawn = Adapters(40, 16, 1.0, (), 2.0, 3, 0, RandomDraws(stream(0, "adapters"), Uniform(0.0, 1.0)))
    for row in found.rows:
        at_once = {drawn.of(index) for index, other in enumerate(found.rows) if other.begin_s <= row.begin_s < other.end_s}
        assert len(at_once) <= 3


def test_an_adapter_is_loaded_once_for_those_who_follow_and_takes_its_bytes_over_the_link() -> None:
    keys: dict[str, Any] = {**LLAMA, "requests": 2, "arrivals": {"every": "5 s"}}
    alike = {"count": 2, "rank": 16, "skew": 60.0}  # all requests have the first
    there, absent = served(**keys, adapters=alike), served(**keys, adapters={**alike, "slots": 1})
    late = [after.first_token_s - before.first_token_s for before, after in zip(there.rows, absent.rows, strict=True)]
    assert absent.adapters.loads == 1
    assert late == pytest.approx([absent.adapters.load_s, 0.0], abs=1e-12)
    assert absent.adapters.load_s == pytest.approx(83_886_080 / 55.6e9, rel=0.02)  # PCIe 5 x16
    assert (absent.kv_cache_tokens or 0) > (there.kv_cache_tokens or 0)


def test_prompts_read_apart_have_adapters_too() -> None:
    apart: dict[str, Any] = {"prefill": {"device": "gpu0"}, "decode": {"device": "gpu1"}}
    plain, many = served(**LLAMA, split=apart), served(**LLAMA, split=apart, adapters=MANY)
    for before, after in zip(plain.rows, many.rows, strict=True):
        assert after.first_token_s > before.first_token_s
        assert after.end_s - after.first_token_s > before.end_s - before.first_token_s


def test_more_than_fit_are_refused() -> None:
    with pytest.raises(SpecError, match="does not fit"):
        served(**LLAMA, adapters={"count": 1000, "rank": 64})
    apart = {"prefill": {"device": "gpu0"}, "decode": {"device": "gpu1"}}
    with pytest.raises(SpecError, match="not modelled with `split`"):
        served(**LLAMA, split=apart, adapters=SOME)
    with pytest.raises(SpecError, match="latent"):
        served(**{**LLAMA, "model": "deepseek-v3", "device": "gpu*", "parallel": {"tp": 8}, "dtype": "fp8"}, adapters=MANY)
    with pytest.raises(SpecError, match="GB of them adapters") as refused:
        served(**LLAMA, adapters={"count": 8, "rank": 4096, "slots": 4})
    assert "`slots`" in (refused.value.mistakes[0].hint or "")
    infer = {**LLAMA, "device": "gpu0", "arrivals": {"every": "1 s"}, "adapters": {"count": 12_000, "rank": 16, "slots": 8}}
    many = {"hwsim": "workload/1", "infer": infer}
    with pytest.raises(SpecError, match=r"the adapters take 1\.01 TB of host memory, but cpu0 has 1 TB"):
        hwsim.simulate("dgx-h100", many, set={"machine.cpu.memory.size": "1 TB"})
    assert hwsim.simulate("dgx-h100", many, set={"machine.cpu.memory.size": "1.01 TB"}).serving
