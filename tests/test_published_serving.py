"""Rows of served runs become what `infer:` is asked, the same way for every model, GPU and framework."""

from __future__ import annotations

from pathlib import Path

import pytest

from published import serving_agg, serving_profiles, serving_scripts, serving_single
from published.score import group_median
from published.serving_rows import Shape, formats, machine_of, model_of, shape_of
from published.serving_runs import all_of

ROW = {
    "id": "a", "backend": "vllm", "model": "meta-llama/Llama-3.1-8B-Instruct", "system": "h200_sxm", "precision": "fp8",
    "isl": "1024", "osl": "512", "gemm_quant_mode": "fp8", "moe_quant_mode": "", "batch_size": "8", "tp_size": "2",
    "pp_size": "1", "attention_dp_size": "1", "moe_tp_size": "1", "moe_ep_size": "1", "ttft_ms": "50", "tpot_ms": "8",
    "concurrency": "8",
}  # fmt: skip


def test_names_of_models_and_gpus() -> None:
    names = {"nvidia/Qwen3-32B-NVFP4": "qwen3-32b", "deepseek-ai/DeepSeek-R1": "deepseek-v3", "Llama-3.3-70B": "llama-3-70b"}
    assert {name: model_of(name) for name in names} == names
    assert model_of("acme/unheard-of-9b") is None
    assert machine_of("NVIDIA H200-NVL-141GB") == ("dgx-h200", "")
    assert machine_of("gb300") == ("gb200-nvl72", "gb300")
    assert machine_of("tpu_v6") is None


def test_plans_name_as_many_gpus_as_they_have() -> None:
    said = {"tp_size": "4", "attention_dp_size": "1", "moe_tp_size": "1", "moe_ep_size": "4"}
    assert shape_of(said) == Shape(4, 1, 1, 4)
    twin = {"tp_size": "16", "attention_dp_size": "1", "moe_tp_size": "4", "moe_ep_size": "4"}
    assert shape_of(twin) == Shape(4, 1, 1, 4)
    assert shape_of({"tp_size": "1", "attention_dp_size": "64", "moe_tp_size": "8", "moe_ep_size": "8"}) == Shape(1, 8, 1, 8)
    assert shape_of({}) == Shape()


def test_formats_of_checkpoints() -> None:
    assert formats("llama-2-7b", "meta-llama/Llama-2-7b-hf", "") == {"model": "llama-2-7b"}
    narrow = formats("llama-3-70b", "Llama-3.1-70B", "fp8")["model"]
    assert narrow["quantised"]["format"] == "fp8"
    assert narrow["sequence"] == 131072
    assert formats("deepseek-v3", "DeepSeek-R1", "nvfp4", "nvfp4")["model"]["quantised"]["of"] == "experts"
    assert formats("gpt-oss-120b", "gpt-oss-120b", "nvfp4") == {"model": "gpt-oss-120b"}


def test_configurations_with_another_speed_are_apart() -> None:
    rows = [ROW, {**ROW, "tpot_ms": "4"}, {**ROW, "tpot_ms": "8", "concurrency": "16"}]
    assert len(serving_agg.speculating(rows)) == 1
    assert serving_agg.speculating([ROW, {**ROW, "tpot_ms": "9"}]) == set()


def test_rows_have_the_servers_of_their_day() -> None:
    first = serving_scripts.script_of("vllm", "b200_sxm", "minimax-m2", "fp8", "2026-03-28")
    later = serving_scripts.script_of("vllm", "b200_sxm", "minimax-m2", "fp8", "2026-04-03")
    assert first is not None
    assert later is not None
    assert (first.kv, serving_scripts.server(first, 8, 1024)["memory"]) == ("", {"part": "95 %"})
    assert (later.kv, serving_scripts.server(later, 8, 1024)["budget"]) == ("fp8", 2048)
    marlin = serving_scripts.script_of("vllm", "h100_sxm", "gpt-oss-120b", "fp4", "")
    assert marlin is not None
    assert marlin.marlin
    assert serving_scripts.server(marlin, 12, 1024)["sequences"] == 12
    groups = serving_scripts.script_of("trtllm", "h200_sxm", "deepseek-v3", "fp8", "2026-01-10")
    assert groups is not None
    assert serving_scripts.server(groups, 64, 8192, 8)["gather"] == 60
    assert serving_scripts.script_of("acme", "b200_sxm", "minimax-m2", "fp8", "") is None


def test_days_of_guessing_scripts_are_apart() -> None:
    assert serving_scripts.guesses("trtllm", "deepseek-v3", "2026-01-14")
    assert not serving_scripts.guesses("trtllm", "deepseek-v3", "2026-02-03")
    assert not serving_scripts.guesses("trtllm", "gpt-oss-120b", "2026-01-14")
    day = {
        **ROW,
        "model": "deepseek-ai/DeepSeek-R1",
        "backend": "sglang",
        "system": "b200_sxm",
        "precision": "fp8",
        "measured": "2026-03-25",
    }
    slower = {**day, "tpot_ms": str(1.2 * float(ROW["tpot_ms"]))}
    assert len(serving_agg.speculating([day, slower])) == 1
    assert serving_agg.speculating([day, {**slower, "measured": "2026-03-26"}]) == set()


def test_requests_that_wait_for_most_of_their_time_are_apart() -> None:
    assert not serving_agg.waits(ROW)
    assert serving_agg.waits({**ROW, "ttft_ms": "9000"})


@pytest.mark.slow
def test_served_runs_on_one_and_two_gpus_stay_near(reference_data: Path) -> None:
    rows = [row for row in serving_profiles.rows(reference_data) if not row.apart]
    found, refused = all_of(rows)
    assert not refused
    for quantity, bound in (("latency", 0.04), ("first_token", 0.10)):
        assert group_median([run.miss(quantity) for run in found])[0] <= bound
    dense = [served for served in serving_single.rows(reference_data) if served.kind == "dense"]
    assert max(run.miss("latency").relative for run in all_of(dense)[0]) <= 0.03
