"""Ranges of trainings of models with experts: steps that were published of them lie in what is said of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

import hwsim
from hwsim.results.errors import table

GIVEN: dict[str, Any] = {"microbatch": 1, "global_batch": 64, "sequence": 4096, "dtype": "fp8"}


@pytest.mark.parametrize(("model", "ep"), [("mixtral-8x7b", 4), ("qwen3-30b-a3b", 8), ("gpt-oss-20b", 1), ("llama-3-8b", 1)])
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_a_training_with_experts_has_their_errors_in_every_command(model: str, ep: int, dtype: str) -> None:
    said = hwsim.estimate("dgx-h100", model, ep=ep, **{**GIVEN, "dtype": dtype}).to_json()["interval"]
    keys = {"model": model, "device": "gpu*", "global_batch": 64, "sequence": 4096, "microbatch": 1, "dtype": dtype}
    try:
        found = hwsim.simulate("dgx-h100", {"hwsim": "workload/1", "train": {**keys, "parallel": {"ep": ep, "dp": "rest"}}})
    except hwsim.OutOfMemory as error:
        found = error.run
    dense = model == "llama-3-8b"
    experts = table().errors("experts/step", "source")
    assert experts is not None
    assert (found.interval.rows == experts.rows) == (said["measurements"] == experts.rows) == (not dense)
    if dense:
        assert found.interval.half < 0.3
    else:
        assert min(found.interval.half, (said["high_s"] / said["low_s"]) ** 0.5 / 2) > 0.3
        assert any("no similar training measured" in part.key for part in found.interval.parts)


# tokens/s of a GPU: machine, nodes, model, plan, as NVIDIA published them; none of them was fitted
PUBLISHED = [
    ("dgx-h100", 2, "qwen3-30b-a3b", {"pp": 2, "ep": 8, "schedule": "interleaved", "chunks": 24, "microbatch": 2}, 512, 5275),
    ("dgx-b200", 1, "qwen3-30b-a3b", {"ep": 8}, 512, 9299),
    ("dgx-b200", 8, "qwen3-235b-a22b", {"pp": 8, "ep": 8, "schedule": "interleaved", "chunks": 2}, 1024, 3269),
    ("dgx-b200", 32, "deepseek-v3", {"pp": 16, "ep": 8}, 2048, 2139),
]


@pytest.mark.parametrize(("machine", "nodes", "model", "plan", "batch", "rate"), PUBLISHED)
def test_published_steps_lie_in_their_ranges(
    machine: str, nodes: int, model: str, plan: dict[str, Any], batch: int, rate: float
) -> None:
    keys: dict[str, Any] = {**GIVEN, "global_batch": batch, "nodes": nodes, "uneven": True, **plan}
    said = hwsim.estimate(machine, model, framework="megatron-bridge-alltoall", **keys).to_json()["interval"]
    assert said["low_s"] < batch * 4096 / rate / nodes / 8 < said["high_s"]


def test_a_training_names_the_kinds_in_which_it_is_unlike_all_that_were_measured() -> None:
    keys: dict[str, Any] = {**GIVEN, "ep": 8, "framework": "megatron-bridge"}
    known, new = (hwsim.estimate("dgx-b200", "qwen3-30b-a3b", **{**keys, "dtype": dtype}) for dtype in ("mxfp8", "nvfp4"))
    assert "no similar" not in known.text
    assert "no similar training measured: fp4" in " ".join(new.text.split())
    widths = [
        math.log(found.to_json()["interval"]["high_s"] / found.to_json()["interval"]["low_s"]) / 2 for found in (known, new)
    ]
    assert widths[1] == pytest.approx(math.hypot(widths[0], 1.645 * table().kinds.spread), rel=0.02)
