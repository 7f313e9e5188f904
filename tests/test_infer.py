"""Services in closed form: one request, queues, saturation, the cache, and what a better machine does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from hwsim.api import Run, simulate
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.machine import Machine
from hwsim.models import Cluster, Framework, Transformer, cluster_of, load_framework, load_transformer
from hwsim.models.inference import serve
from hwsim.models.memory import cache_room
from hwsim.models.server import PLAIN, CacheMemory, ServerKeys
from tests.present import present
from tests.served import dgx

SMALL = {"layers": 4, "hidden": 1024, "heads": 8, "vocab": 32000, "sequence": 8192, "positions": "rotary", "bias": False}

FREE = {"host": {"step": "0 s", "api": "0 s"}}  # the host of a server takes no time


@cache
def cluster() -> Cluster:
    return cluster_of(dgx())


def run(machine: str | Machine = "", **infer: Any) -> Run:
    keys: Mapping[str, Any] = {"model": SMALL, "device": "gpu0", "server": FREE, **infer}
    return simulate(machine or dgx(), {"hwsim": "workload/1", "infer": keys})


def served(machine: str | Machine = "", **infer: Any) -> ServiceStatistics:
    [found] = run(machine, **infer).serving
    return found


def estimated(model: str, tp: int, batch: int, prompt: int, output: int) -> tuple[float, float]:
    """(first token, a token after it), as `hwsim estimate` has them: with the server's host."""
    software: Framework = load_framework("vllm")
    network: Transformer = load_transformer(model)
    found = serve(network, cluster(), software, phase="decode", tp=tp, batch=batch, prompt=prompt, output=output, dtype="bf16")
    return found.ttft, found.seconds


# ---- one request alone ----


@pytest.mark.parametrize(("model", "tp"), [("llama-3-8b", 1), ("llama-3-8b", 2), ("llama-2-13b", 1), ("llama-3-70b", 8)])
@pytest.mark.parametrize(("prompt", "output"), [(600, 250), (37, 1000), (3333, 2)])
def test_a_request_alone_takes_what_the_estimate_says(model: str, tp: int, prompt: int, output: int) -> None:
    infer: dict[str, Any] = {"device": "gpu*", "parallel": {"tp": tp, "dp": 1}, "prompt": prompt, "output": output, "requests": 1}
    found = served(model=model, server={}, **infer)
    first, token = estimated(model, tp, 1, prompt, output)
    assert present(found.first_token).mean == pytest.approx(first, rel=0.01)
    assert present(found.each_token).mean == pytest.approx(token, rel=0.01)
    assert found.latency.mean == pytest.approx(first + (output - 1) * token, rel=0.01)


def test_requests_alike_that_come_together_are_a_batch_of_the_estimate() -> None:
    found = served(model="llama-3-8b", device="gpu0", prompt=500, output=100, requests=16, server={})
    first, token = estimated("llama-3-8b", 1, 16, 500, 100)
    assert present(found.first_token).max == pytest.approx(first, rel=0.01)
    assert present(found.each_token).max == pytest.approx(token, rel=0.01)


def test_a_prompt_in_chunks_takes_longer_than_whole_and_reads_as_much() -> None:
    whole = served(model="llama-3-8b", prompt=4096, output=1, requests=1)
    cut = served(model="llama-3-8b", prompt=4096, output=1, requests=1, server={"budget": 512, **FREE})
    assert cut.iterations == 8
    assert whole.latency.mean < cut.latency.mean < 1.5 * whole.latency.mean


# ---- queues ----


def test_below_capacity_as_many_leave_as_come_and_above_it_as_many_as_can() -> None:
    alone = served(prompt=500, output=1, batch=1, requests=1).latency.mean
    for load in (0.2, 0.9):
        found = served(prompt=500, output=1, batch=1, requests=1000, arrivals={"every": f"{alone / load} s"})
        assert found.requests_per_s == pytest.approx(load / alone, rel=2e-3)
        assert found.queueing.max == pytest.approx(0, abs=1e-15)
    for load in (1.5, 4.0):
        found = served(prompt=500, output=1, batch=1, requests=1000, arrivals={"every": f"{alone / load} s"})
        assert found.requests_per_s == pytest.approx(1 / alone, rel=2e-3)


# ---- the cache ----


def test_the_cache_holds_what_is_left_of_the_memory_in_blocks() -> None:
    model = load_transformer("llama-3-8b")
    size = present(cluster().gpu.memory.size)
    found = served(model="llama-3-8b", requests=1, memory="80 %", server={"block": 32})
    keys = ServerKeys(memory=CacheMemory(part=0.8)).over(load_framework("vllm").server.over(PLAIN).on(size, "hopper"))
    memory, tokens = cache_room(model, 1, size, "bf16", keys)
    assert tokens is not None
    assert found.kv_cache_tokens == tokens // 32 * 32
    assert tokens == int((0.8 * size - 2 * model.parameters - memory.buffers) // model.kv_bytes())
    assert found.kv_cache_bytes == found.kv_cache_tokens * model.kv_bytes()


def test_a_full_cache_puts_requests_off_and_every_token_is_written_all_the_same() -> None:
    keys: dict[str, Any] = {"model": "llama-3-8b", "prompt": 200, "output": 400, "requests": 60, "memory": "26.6 %"}
    tight, roomy = served(**keys), served(**{**keys, "memory": "90 %"})
    assert present(tight.kv_cache_tokens) < 60 * 600
    assert tight.preemptions > 0
    assert tight.recomputed_tokens > 0
    assert roomy.preemptions == 0
    assert tight.kv_cache_peak <= 1.0
    assert tight.output_tokens == roomy.output_tokens == 60 * 400
    assert tight.latency.mean > roomy.latency.mean


# ---- more, and better ----


def test_more_copies_are_never_worse_on_the_same_requests() -> None:
    means = []
    for copies in (1, 2, 4, 8):
        found = served(device="gpu*", parallel={"dp": copies}, prompt={"uniform": [390, 400]}, output={"uniform": [1, 40]},
                       requests=250, batch=8, arrivals={"poisson": "3000 1/s"},
                       server={"prompts": "before", "chunked": False, "budget": 1, **FREE})  # fmt: skip
        means.append(found.latency.mean)
    assert means == sorted(means, reverse=True)
    assert means[0] > 1.5 * means[-1]


@pytest.mark.parametrize("rate", ["all at once", "300 1/s", "2000 1/s"])
def test_continuous_batching_writes_at_least_as_many_tokens_a_second(rate: str) -> None:
    arrivals = rate if rate == "all at once" else {"poisson": rate}
    keys: dict[str, Any] = {"prompt": 200, "output": {"uniform": [1, 120]}, "requests": 300, "batch": 16, "arrivals": arrivals}
    continuous, static = served(**keys), served(**keys, batching="static")
    assert static.tokens_per_s <= continuous.tokens_per_s * (1 + 1e-9)
    assert static.latency.mean >= continuous.latency.mean


# ---- the same again ----


def test_more_requests_begin_with_the_same_ones() -> None:
    keys: dict[str, Any] = {"arrivals": {"poisson": "50 1/s"}, "prompt": {"lognormal": {"median": 200}}, "output": 3}
    few, many = served(**keys, requests=10), served(**keys, requests=20)
    assert [row[:1] + row[4:6] for row in few.rows] == [row[:1] + row[4:6] for row in many.rows[:10]]
