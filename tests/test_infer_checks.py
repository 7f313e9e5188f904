"""Services: their memory beside other jobs, requests that are too long, and more of them than can be answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.families.serving.service_run import PlannedModels
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.prepare import prepare
from hwsim.spec import SpecError
from hwsim.views.summary.say import summary
from tests import command

MODEL = {"layers": 4, "hidden": 1024, "heads": 8, "vocab": 32000, "sequence": 8192, "positions": "rotary", "bias": False}


def simulated(**keys: Any) -> hwsim.Run:
    return hwsim.simulate("dgx-h100", {"hwsim": "workload/1", **keys})


def service(**keys: Any) -> dict[str, Any]:
    return {"model": MODEL, "requests": 5, "output": 3, **keys}


def mistake_of(source: Any) -> Any:
    with pytest.raises(SpecError) as caught:
        hwsim.simulate("dgx-h100", source)
    [found] = caught.value.mistakes
    return found


# ---- memory beside others ----

SIZE = 81559 * 2**20  # bytes of an H100


WEIGHTS, BUFFERS, TOKEN = 8_030_261_248 * 2, 5_032_652_544, 32 * 2 * 8 * 128 * 2  # of Llama-3 8B in bf16; of a GPU of its server


def planned(**keys: Any) -> ServicePlan:
    infer = {"model": "llama-3-8b", "device": "gpu0", "requests": 2, "prompt": 20, "output": 3, **keys}
    models = prepare("dgx-h100", {"hwsim": "workload/1", "infer": infer}).doors["infer"]
    assert isinstance(models, PlannedModels)
    [plan] = models.plans
    return plan


def refused(**keys: Any) -> str:
    with pytest.raises(SpecError) as caught:
        planned(**keys)
    [found] = caught.value.mistakes
    return f"{found.message}; {found.hint}"


def test_weights_and_buffers_have_a_part_of_the_memory_and_the_cache_the_rest_of_it() -> None:
    part = (WEIGHTS + BUFFERS + 1000.5 * TOKEN) / SIZE
    plan = planned(memory=part, server={"block": 1})
    assert (plan.memory.weights, plan.memory.buffers, plan.token_bytes, plan.tokens) == (WEIGHTS, BUFFERS, TOKEN, 1000)
    said = refused(memory=(WEIGHTS + BUFFERS - 2e9) / SIZE)
    assert "does not fit by 2 GB on gpu0: 16.1 GB of weights, 5.03 GB of buffers, in 22." in said
    assert said.endswith("a larger tp, a smaller dtype, or GPUs with more memory")


def test_a_draft_has_its_weights_and_a_part_of_every_token_beside_the_model() -> None:
    """GPT-2 has 124,439,808 parameters; its 12 layers keep 768 keys and values of a token."""
    guesses = {"tokens": 2, "acceptance": "80 %", "draft": "gpt2"}
    draft, kept = 124_439_808 * 2, 12 * 2 * 768 * 2
    plan, plain = planned(speculate=guesses), planned()
    assert plain.tokens is not None
    assert plan.memory.weights == WEIGHTS + draft
    assert plan.tokens == (plain.tokens * TOKEN - draft) // (TOKEN + kept)
    itself = guesses | {"draft": "llama-3-8b"}  # all but a token has room: too little by a byte, or by what is lacking
    assert "does not fit by 1 B" in refused(speculate=itself, memory=(2 * WEIGHTS + BUFFERS + TOKEN) / SIZE, server={"block": 1})
    assert planned(speculate=itself, memory=(2 * WEIGHTS + BUFFERS + 61.5 * TOKEN) / SIZE, server={"block": 1}).tokens == 30
    assert "does not fit by 16.1 GB" in refused(speculate=itself, memory=(WEIGHTS + BUFFERS + TOKEN) / SIZE)


def test_where_a_server_gives_the_cache_a_part_of_what_is_free_weights_have_all_the_memory() -> None:
    few = planned(framework="tensorrt-llm", memory=0.03)
    assert few.memory.weights == WEIGHTS
    assert few.tokens is not None
    assert few.tokens * TOKEN == pytest.approx(0.03 * (SIZE - few.memory.total), rel=1e-3)
    assert "does not fit by 64.2 GB on gpu0: 141 GB of weights, 8.57 GB of buffers, in 100 % of 85.5 GB" in refused(
        framework="tensorrt-llm", model="llama-3-70b"
    )


def test_a_network_has_room_for_its_weights_in_its_part_of_the_memory() -> None:
    keys: dict[str, Any] = {"model": "resnet-50", "dtype": "fp16"}
    weights = planned(model="resnet-50").memory.weights
    assert weights == pytest.approx(25.557e6 * 2, rel=1e-4)
    assert planned(model="resnet-50", memory=weights / SIZE * 1.01).memory.total == weights
    assert "does not fit by 511 kB" in refused(**keys, memory=weights / SIZE * 0.99)


@pytest.mark.parametrize(
    ("count", "hint"), [(100, "fewer `slots` of `adapters`, or a larger tp"), (20, "a larger tp, a smaller")]
)
def test_most_of_what_does_not_fit_is_named(count: int, hint: str) -> None:
    assert hint in refused(memory="20 %", adapters={"count": count, "rank": 64})


def test_copies_are_the_gpus_in_order() -> None:
    pairs = tuple((f"gpu{gpu}", f"gpu{gpu + 1}") for gpu in (0, 2, 4, 6))
    assert planned(device="gpu*", parallel={"tp": 2}).copies == pairs
    assert planned(device="gpu*", parallel={"tp": 2, "dp": 4}).copies == pairs
    assert planned(device="gpu*", parallel={"tp": 2, "dp": 3}).copies == pairs[:3]
    assert "5 replicas of 2 GPUs need 10 GPUs, got 8" in refused(device="gpu*", parallel={"tp": 2, "dp": 5})
    assert "3 GPUs cannot be divided into replicas of 2" in refused(device="gpu0..2", parallel={"tp": 2})


def test_a_host_works_for_every_batch_of_a_pipeline() -> None:
    one, two = planned(), planned(device="gpu0..1", parallel={"pp": 2})
    assert (two.settings.step, two.settings.each) == (2 * one.settings.step, 2 * one.settings.each)
    assert two.settings.sequences == one.settings.sequences // 2


def test_two_caches_on_one_gpu_do_not_fit_and_their_amounts_are_named() -> None:
    jobs = {name: {"device": "gpu0", "infer": service()} for name in ("a", "b")}
    with pytest.raises(
        hwsim.OutOfMemory, match=r"gpu0 needs 154 GB .* has 85.5 GB, over by 68.4 GB: 'KV cache' .*\(made by 'a'\)"
    ):
        simulated(jobs=jobs)


def test_two_caches_that_share_the_memory_fit_and_take_it() -> None:
    jobs = {name: {"device": "gpu0", "infer": service(memory=0.4)} for name in ("a", "b")}
    [held] = simulated(jobs=jobs).memory
    assert held.size == SIZE
    assert held.peak == pytest.approx(0.8 * SIZE, rel=1e-4)
    assert {allocation.value for allocation in held.allocations} == {"KV cache", "weights", "buffers"}


def test_a_cache_beside_a_training_is_counted_on_every_gpu_they_share() -> None:
    train = {"model": MODEL, "global_batch": 8, "parallel": {"tp": 4}, "sequence": 1024}
    jobs = {"learn": {"device": "gpu0..3", "train": train}, "chat": {"device": "gpu2..5", "infer": service(parallel={"tp": 2})}}
    found = {memory.device: memory for memory in simulated(jobs=jobs).memory}
    assert list(found) == ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5"]
    assert found["gpu0"].peak == found["gpu1"].peak
    assert found["gpu2"].peak == found["gpu3"].peak == found["gpu0"].peak + found["gpu4"].peak
    assert found["gpu4"].peak == pytest.approx(0.9 * SIZE, rel=1e-4)


def test_a_large_training_beside_a_cache_ends_with_exit_code_three(tmp_path: Path) -> None:
    path = tmp_path / "both.yaml"
    path.write_text(
        "hwsim: workload/1\njobs:\n"
        "  learn: {device: gpu0..3, train: {model: llama-3-8b, global_batch: 2, steps: 1, parallel: {tp: 4}}}\n"
        "  chat: {device: gpu2..5, infer: {model: llama-3-8b, parallel: {tp: 2}, requests: 3, output: 3}}\n",
        encoding="utf-8",
    )
    found = command.hwsim("simulate", "dgx-h100", path, "--quiet", code=3)
    for device in ("gpu2", "gpu3"):
        assert f"out of memory: {device} needs 127 GB at 0 s and has 85.5 GB" in found.output
    assert "gpu0 needs" not in found.output


def test_a_cache_is_taken_when_its_job_starts() -> None:
    jobs = {
        "now": {"device": "gpu0", "infer": service(memory=0.4)},
        "later": {"device": "gpu0", "start": "5 s", "infer": service(memory=0.4)},
    }
    [held] = simulated(jobs=jobs).memory
    assert held.at_s == 5.0


# ---- requests that are too long ----


def test_a_distribution_beyond_the_model_is_refused_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(
        "hwsim: workload/1\ninfer:\n  model: llama-3-8b\n  device: gpu0\n  prompt: {uniform: [9000, 20000]}\n  output: 10\n",
        encoding="utf-8",
    )
    found = mistake_of(path)
    assert found.message == "at least 9,000 + 10 tokens exceed the model's `sequence`: expected at most 8,192"
    assert found.place.line == 5
    assert found.hint is not None
    command.hwsim("check", path, code=2)


def test_answers_beyond_the_model_are_refused() -> None:
    found = mistake_of({"hwsim": "workload/1", "infer": service(prompt=8000, output={"uniform": [300, 400]})})
    assert "8,000 + 300 tokens" in found.message


def test_what_is_drawn_too_long_only_now_and_then_is_cut_and_counted() -> None:
    run = simulated(infer=service(requests=40, prompt={"uniform": [4000, 12000]}))
    [said] = [warning for warning in run.warnings if "were truncated" in warning.text]
    assert said.text.endswith("of 40 requests were truncated to 8,192 tokens, the model's `sequence`")
    assert "were truncated to 8,192 tokens" in " ".join(summary(run).split())
    assert max(row.prompt_tokens + row.output_tokens for row in run.serving[0].rows) == 8192


def test_a_line_of_a_trace_beyond_the_model_is_a_mistake_with_its_number(tmp_path: Path) -> None:
    lines = ["arrival,prompt,output", "0,100,10", "1,8190,10", "2,50,10", "3,9000,1"]
    (tmp_path / "asked.csv").write_text("\n".join(lines), encoding="utf-8")
    path = tmp_path / "traced.yaml"
    path.write_text("hwsim: workload/1\ninfer: {model: llama-3-8b, arrivals: {trace: asked.csv}}\n", encoding="utf-8")
    found = mistake_of(path)
    assert found.message == (
        "line 3 of the trace 'asked.csv' has 8,190 + 10 tokens, but the model reads at most 8,192; 1 more lines are too long"
    )


def test_an_estimate_of_a_prompt_beyond_the_model_says_so() -> None:
    found = command.hwsim("estimate", "dgx-h100", "llama-3-8b", "--infer", "decode", "--prompt", 9000, code=2)
    assert found.output == "9,000 + 128 tokens are more than the 8,192 that llama-3-8b reads\n"
    command.hwsim("estimate", "dgx-h100", "llama-3-8b", "--infer", "prefill", "--prompt", 8192)


# ---- keys that would do nothing ----


def test_chunks_of_a_static_batch_are_a_mistake_where_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "static.yaml"
    path.write_text(
        "hwsim: workload/1\ninfer:\n  model: llama-3-8b\n  batching: static\n  speculate: {tokens: 2, acceptance: 70 %}\n",
        encoding="utf-8",
    )
    found = mistake_of(path)
    assert found.message == "`speculate` needs continuous batching: a static batch writes one token of each answer at a time"
    assert (found.place.line, found.place.column) == (5, 3)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("model: llama-3-9b", "there is no model 'llama-3-9b'"),
        ("model: llama-3-8b, framework: vlllm", "there is no framework 'vlllm'"),
        ("model: llama-3-8b, framework: torchtitan", "'torchtitan' trains models"),
        ("model: llama-3-8b, promt: 3", "unknown key 'promt'"),
    ],
)
def test_check_finds_what_is_wrong_in_a_service_of_a_job(tmp_path: Path, keys: str, said: str) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(f"hwsim: workload/1\njobs:\n  chat: {{infer: {{{keys}}}}}\n", encoding="utf-8")
    found = command.hwsim("check", path, code=2)
    assert said in found.output


# ---- more than can be answered ----


def test_more_requests_than_can_be_answered_are_said() -> None:
    asked = {"requests": 100, "prompt": 4000, "output": 100, "device": "gpu0", "batch": 4}
    run = simulated(infer=service(**asked, arrivals={"poisson": "5000 1/s"}))
    [found] = run.serving
    assert found.overloaded
    assert found.offered_per_s == pytest.approx(5000, rel=0.3)
    assert "warning[overloaded]: " in summary(run)


def test_a_gpu_without_a_number_that_a_service_needs_is_refused_in_words() -> None:
    gpu = {"kind": "gpu", "flop": {"fp16": "100 TFLOP/s"}, "memory": {"size": "80 GB", "bandwidth": "2 TB/s"}}
    keys = {"model": "gpt2", "dtype": "fp16", "requests": 4, "arrivals": {"poisson": "100 1/s"}, "prompt": 90, "output": 10}
    with pytest.raises(SpecError, match="gpu has no peak for fp32"):
        hwsim.simulate({"hwsim": "machine/1", "class": "ideal", "parts": {"gpu": gpu}}, {"hwsim": "workload/1", "infer": keys})
