"""Sampling from a filtered vocabulary: what it adds to an iteration, by version of vLLM, and where it adds nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim import api
from hwsim.models.framework import load_framework
from hwsim.results.requests import TimeStatistics
from hwsim.spec import SpecError

DGX = api.load_machine("dgx-h100")
VOCABULARY = 128_256
START, SORT = 0.35e-3, 0.2e-6  # workloads/frameworks/vllm-0.15.yaml


def served(batch: int, **keys: Any) -> TimeStatistics:
    """Time between tokens of a full batch of equal requests: one prefill, then decode."""
    infer = {"model": "llama-3-8b", "device": "gpu0", "requests": batch, "batch": batch, "prompt": 64, "output": 40, **keys}
    found = hwsim.simulate(DGX, {"hwsim": "workload/1", "infer": infer}, interval=False).serving[0].itl
    assert found is not None
    return found


@settings(max_examples=8, deadline=None)
@given(batch=st.integers(1, 256))
def test_a_sort_adds_what_its_numbers_take(batch: int) -> None:
    filtered, greedy = (served(batch, framework="vllm-0.15", top_p=top_p).p50 for top_p in (True, False))
    assert filtered - greedy == pytest.approx(START + SORT * batch * VOCABULARY / 1024, rel=0.02)


def test_more_clients_never_make_tokens_come_faster() -> None:
    times = [served(batch, framework="vllm-0.15").p50 for batch in (1, 8, 32, 128, 256)]
    assert times == sorted(times)


def test_versions_after_the_sort_and_greedy_requests_do_not_pay_for_it() -> None:
    assert served(64, framework="vllm").p50 == served(64, framework="vllm", top_p=False).p50
    assert served(64, framework="vllm-0.15", top_p=False).p50 == served(64, framework="vllm").p50


def test_the_first_engine_waits_for_its_host() -> None:
    waits = [served(batch, framework="vllm-0.5").p50 - served(batch, framework="vllm-0.15").p50 for batch in (8, 64)]
    host, newer = (load_framework(name).server.host for name in ("vllm-0.5", "vllm-0.15"))
    assert host is not None
    assert newer is not None
    for batch, wait in zip((8, 64), waits, strict=True):
        more = (host.step or 0.0) - (newer.step or 0.0) + batch * ((host.each or 0.0) - (newer.each or 0.0))
        assert wait == pytest.approx(more, rel=0.1)


@pytest.mark.parametrize("model", ["gpt-oss-20b", "gpt-oss-120b"])
def test_checkpoints_without_a_filter_are_not_sorted(model: str) -> None:
    alike = [served(16, model=model, framework="vllm-0.15", **keys).p50 for keys in ({}, {"top_p": False})]
    assert alike[0] == alike[1] < served(16, model=model, framework="vllm-0.15", top_p=True).p50


def test_a_model_that_writes_no_tokens_has_no_top_p() -> None:
    with pytest.raises(SpecError, match="`top_p` needs a model that writes tokens"):
        hwsim.simulate(DGX, {"hwsim": "workload/1", "infer": {"model": "resnet-50", "device": "gpu0", "top_p": True}})
