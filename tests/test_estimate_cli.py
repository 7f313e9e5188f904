"""`hwsim estimate`: what it prints, its JSON, the search for a plan, and what it says of mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hwsim import SpecError, api
from hwsim import estimate as estimate_of
from hwsim.functions.nodes import cluster_with
from hwsim.models import (
    ParallelPlan,
    UnequalCluster,
    WrongPlan,
    cluster_of,
    estimate,
    load_framework,
    load_transformer,
    one_pass,
)
from hwsim.models.inference import serve
from hwsim.models.search import Search
from hwsim.models.server import HostTimes
from tests.command import hwsim
from tests.model_cases import prefill

NODE = "dgx-h100"
SIXTEEN = (NODE, "llama-3-70b", "--nodes", "16", "--global-batch", "1024")
FILE = """
hwsim: machine/1
name: pair
parts: {node: {kind: machine, use: dgx-h100, count: 2}, leaf: {kind: switch}}
links: [{between: ["node*.nic*", leaf], kind: infiniband, rate: 400 Gb/s}]
"""


def numbers(*arguments: str, code: int = 0) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(hwsim("estimate", *arguments, "--json", code=code).stdout)
    return said


# ---- training ----


def test_the_shares_of_a_step_add_up_and_so_does_its_memory() -> None:
    found = numbers(*SIXTEEN, "--tp", "8", "--pp", "4", "--tokens", "15e12")
    assert (found["hwsim"], found["gpus"], found["framework"]) == ("estimate/2", 128, "megatron-core")
    assert sum(found["shares_s"].values()) == pytest.approx(found["step_s"])
    kinds = ("weights", "gradients", "optimizer", "activations", "cache", "buffers")
    assert sum(found["memory"][kind] for kind in kinds) == pytest.approx(found["memory"]["total"])
    assert found["tokens_per_s"] == pytest.approx(1024 * 8192 / found["step_s"])
    assert found["training"]["seconds"] == pytest.approx(15e12 / found["tokens_per_s"])
    assert (found["plan"]["dp"], found["plan"]["microbatches"], found["plan"]["sequence_parallel"]) == (4, 256, True)


def test_the_command_says_what_the_function_does() -> None:
    found = numbers(*SIXTEEN, "--tp", "8", "--pp", "4", "--no-sequence-parallel", "--sharding", "none", "--recompute", "full")
    plan = ParallelPlan(tp=8, pp=4, global_batch=1024, sharding="none", recompute="full")
    step = estimate(load_transformer("llama-3-70b"), plan, cluster_with(NODE, {}, 16)[0], load_framework("megatron-core"))
    assert found["step_s"] == step.seconds
    assert found["mfu"] < found["hfu"] == step.hfu


def test_the_summary_has_the_time_its_shares_and_the_memory() -> None:
    found = hwsim("estimate", *SIXTEEN, "--tp", "8", "--pp", "4", "--tokens", "15e12")
    lines = found.stdout.splitlines()
    assert lines[0] == "llama-3-70b (128 GPUs), on 16 x NVIDIA DGX H100"
    for word in ("step time", "throughput", "parallel plan", "GPU memory", "training", "matmul", "bubble"):
        assert any(line.strip().startswith(word) for line in lines), word
    assert max(map(len, lines)) <= 100


def test_a_plan_that_shards_nothing_says_so() -> None:
    found = hwsim("estimate", "dgx-h100", "gpt2", "--sharding", "none", "--global-batch", "8").stdout
    assert "no sharding, no recompute" in " ".join(found.split())


def test_what_does_not_fit_ends_with_3_and_says_by_how_much() -> None:
    found = hwsim("estimate", NODE, "llama-3-70b", "--tp", "8", "--global-batch", "64", code=3)
    assert "does not fit by" in found.stdout
    assert numbers(NODE, "llama-3-70b", "--tp", "8", "--global-batch", "64", code=3)["fits"] is False


def test_a_larger_memory_is_set_and_fits() -> None:
    asked = (NODE, "llama-3-70b", "--tp", "8", "--global-batch", "64", "--set", "machine.gpu.memory.size=400GB")
    hwsim("estimate", *asked)
    hwsim("estimate", *asked, "--nodes", "2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tp", "7", "--dp", "18"), "tp 7 does not divide 64 heads"),
        (("--tp", "8", "--pp", "4", "--dp", "3"), "tp 8 x pp 4 x dp 3 = 96 GPUs, but there are 128"),
        (("--pp", "3"), "pp 3 does not divide 80 layers"),
        (("--microbatch", "3"), "a global batch of 1024 is not a multiple of dp 128 x microbatch 3 = 384"),
        (("--tp", "3", "--plan", "auto"), "tp 3 does not divide 64 heads"),
        (("--infer", "decode"), "--global-batch is an option of training, not of --infer decode"),
        (("--batch", "8"), "--batch is an inference option: add --infer prefill, decode or forward"),
        (("--dp", "few"), "expected a number of replicas or 'rest', got 'few'"),
        (("--dtype", "int8"), "int8 is not a training format; choose fp32"),
    ],
)
def test_a_wrong_plan_ends_with_2_and_a_line(arguments: tuple[str, ...], message: str) -> None:
    found = hwsim("estimate", *SIXTEEN, *arguments, code=2)
    assert message in found.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("laptop", "gpt2", "--global-batch", "8"), "the machine has no GPU"),
        (("nowhere", "gpt2", "--global-batch", "8"), "no machine 'nowhere'"),
        ((NODE, "gpt5", "--global-batch", "8"), "no model 'gpt5'"),
        ((NODE, "alexnet", "--global-batch", "8", "--framework", "vllm"), "unknown framework 'vllm' for a CNN or MLP"),
        ((NODE, "alexnet", "--global-batch", "9"), "a global batch of 9 is not a multiple of dp 8 x microbatch 1 = 8"),
        ((NODE, "alexnet", "--global-batch", "8", "--tp", "2"), "do not support tensor parallelism of a CNN or MLP"),
        ((NODE, "lenet", "--global-batch", "64", "--pp", "8", "--dp", "1"), "pp 8 stages, but the network has only"),
        (
            (NODE, "alexnet", "--global-batch", "8", "--tokens", "1e9"),
            "--tokens is an option of transformers; alexnet is not a transformer",
        ),
        ((NODE, "alexnet", "--infer", "decode"), "alexnet is not a language model; use `--infer forward`"),
        ((NODE, "alexnet", "--infer", "forward", "--prompt", "8"), "--prompt is an option of a prefill, not of --infer forward"),
        ((NODE, "gpt2", "--infer", "forward"), "gpt2 is a transformer; use `--infer prefill` or `--infer decode`"),
        ((NODE, "gpt2", "--global-batch", "8", "--framework", "none"), "no framework 'none'"),
        (("d2l-gpu-workstation", "gpt2", "--nodes", "2", "--global-batch", "8"), "has no NIC to another node"),
        (("-", "gpt2", "--nodes", "2", "--global-batch", "8"), "standard input"),
    ],
)
def test_what_there_is_not_ends_with_2(arguments: tuple[str, ...], message: str) -> None:
    found = hwsim("estimate", *arguments, stdin=FILE, code=2)
    assert message in found.output


# ---- nodes ----


def test_nodes_are_what_a_file_of_them_says(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(FILE)
    here, name, _ = cluster_with(NODE, {}, 2)
    there = cluster_of(api.load_machine(tmp_path / "pair.yaml"))
    assert name == "2 x NVIDIA DGX H100"
    assert (here.gpus, here.per_node, here.inside) == (there.gpus, there.per_node, there.inside)
    assert here.across == pytest.approx(there.across)
    with pytest.raises(UnequalCluster, match="has several"):
        cluster_with(str(tmp_path / "pair.yaml"), {}, 2)


def test_a_rack_of_several_nodes_is_repeated_as_one_domain_and_separate_nodes_are_not() -> None:
    assert numbers("gb200-nvl72", "llama-3-8b", "--nodes", "2", "--global-batch", "144", code=0)["gpus"] == 144
    refused = hwsim("estimate", "scale/planning-cluster", "llama-3-8b", "--nodes", "2", "--global-batch", "64", code=2)
    assert "repeats a single node or NVLink domain" in refused.stderr


# ---- the search ----


def test_a_search_finds_plans_that_fit_fastest_first() -> None:
    found = numbers(*SIXTEEN, "--plan", "auto", "--top", "40")
    times = [plan["step_s"] for plan in found["plans"]]
    assert times == sorted(times)
    searched = found["searched"]
    assert searched.pop("axes")[:4] == ["tp", "pp", "cp", "ep"]
    assert searched.pop("combinations") == sum(searched.values())
    assert all(plan["fits"] for plan in found["plans"])
    said = numbers(*SIXTEEN, "--tp", "8", "--pp", "4")
    assert times[0] <= said["step_s"]


def test_a_search_keeps_what_is_given() -> None:
    found = numbers(*SIXTEEN, "--plan", "auto", "--tp", "4", "--recompute", "full")
    assert {(plan["plan"]["tp"], plan["plan"]["recompute"]) for plan in found["plans"]} == {(4, "full")}


def test_a_search_without_a_plan_that_fits_names_the_nearest() -> None:
    found = hwsim("estimate", NODE, "llama-3-405b", "--global-batch", "8", "--plan", "auto", code=3)
    assert "0 estimated" in " ".join(found.stdout.split())
    gone = hwsim("estimate", NODE, "llama-3-405b", "--plan", "every", code=2)
    assert "`auto` now searches all axes" in " ".join(gone.stderr.split())
    said = numbers(NODE, "llama-3-405b", "--global-batch", "8", "--plan", "auto", code=3)
    assert said["plans"] == []
    assert said["closest"]["memory"]["total"] > 80e9


def test_a_search_among_no_plans_says_what_is_wrong() -> None:
    cluster = cluster_with(NODE, {})[0]
    plan = ParallelPlan(pp=7, global_batch=8)
    with pytest.raises(WrongPlan, match="pp 7 does not divide"):
        Search(load_transformer("gpt2"), plan, load_framework("megatron-core"), frozenset({"pp"})).on(cluster)


# ---- networks of convolutions, perceptrons ----


@pytest.mark.parametrize("model", ["resnet-50", "mlp-mnist"])
def test_a_step_of_a_network_is_estimated_as_that_of_a_transformer(model: str) -> None:
    found = numbers("p3.16xlarge", model, "--global-batch", "512", "--dtype", "fp16")
    assert sum(found["shares_s"].values()) == pytest.approx(found["step_s"])
    kinds = ("weights", "gradients", "optimizer", "activations", "cache", "buffers")
    assert sum(found["memory"][kind] for kind in kinds) == pytest.approx(found["memory"]["total"])
    assert (found["examples"], found["examples_per_s"]) == (512, pytest.approx(512 / found["step_s"]))
    assert 0 < found["mfu"] == found["hfu"] < 0.5
    assert (found["plan"]["dp"], found["plan"]["microbatch"], found["plan"]["optimizer"]) == (8, 64, "sgd")
    text = hwsim("estimate", "p3.16xlarge", model, "--global-batch", "512").stdout
    assert "for 512 examples" in text
    assert "tokens" not in text


def test_a_batch_of_images_that_does_not_fit_ends_with_3() -> None:
    hwsim("estimate", "p3.16xlarge", "resnet-50", "--global-batch", "4096", code=3)
    hwsim("estimate", "p3.16xlarge", "resnet-50", "--global-batch", "4096", "--pp", "2", "--microbatch", "64")


def test_a_search_finds_stages_and_micro_batches_of_a_network() -> None:
    found = numbers("p3.16xlarge", "vgg-16", "--global-batch", "64", "--plan", "auto", "--top", "100")
    times = [plan["step_s"] for plan in found["plans"]]
    assert times == sorted(times)
    assert {plan["plan"]["pp"] for plan in found["plans"]} == {1, 2, 4, 8}
    assert len(times) == found["searched"]["estimated"]
    only = numbers("p3.16xlarge", "vgg-16", "--global-batch", "64", "--plan", "auto", "--pp", "2")
    assert {plan["plan"]["pp"] for plan in only["plans"]} == {2}


def test_a_batch_of_images_is_one_forward_pass() -> None:
    found = numbers("dgx-a100", "resnet-50", "--infer", "forward", "--batch", "32")
    assert sum(found["shares_s"].values()) == pytest.approx(found["seconds"])
    assert found["examples_per_s"] == pytest.approx(32 / found["seconds"])
    assert (found["phase"], found["dtype"], found["fits"]) == ("forward", "fp16", True)
    assert "for 32 examples" in hwsim("estimate", "dgx-a100", "resnet-50", "--infer", "forward", "--batch", "32").stdout


# ---- inference ----


def _beside(host: HostTimes, batch: int) -> float:
    """Seconds of the host in a pass."""
    return (host.step or 0.0) + batch * (host.each or 0.0)


def test_a_prefill_is_one_pass() -> None:
    found = numbers(NODE, "llama-3-70b", "--infer", "prefill", "--tp", "4", "--batch", "2", "--prompt", "2000")
    cluster = cluster_with(NODE, {})[0]
    one = one_pass(load_transformer("llama-3-70b"), prefill(2, 2000, tp=4), cluster, load_framework("vllm"))
    host = load_framework("vllm").server.host
    assert host is not None
    assert found["seconds"] == found["ttft_s"] == found["total_s"] == pytest.approx(one.seconds + _beside(host, 2))
    assert found["tokens_per_s"] == pytest.approx(4000 / found["seconds"])
    assert (found["steps_s"], found["replicas"], found["output"]) == (None, 2, 0)


def test_tokens_take_longer_the_longer_the_context() -> None:
    found = numbers(NODE, "llama-3-70b", "--infer", "decode", "--tp", "4", "--batch", "32", "--output", "4096")
    first, last = found["steps_s"]
    assert first < found["seconds"] < last
    assert sum(found["shares_s"].values()) == pytest.approx(found["seconds"])
    assert found["total_s"] == pytest.approx(found["ttft_s"] + 4095 * found["seconds"])


def test_weights_that_do_not_fit_leave_no_room() -> None:
    found = hwsim("estimate", NODE, "llama-3-70b", "--infer", "decode", code=3)
    assert "the weights leave no memory" in found.stdout


def test_a_service_of_one_token_is_its_prefill() -> None:
    cluster = cluster_with(NODE, {})[0]
    found = serve(load_transformer("gpt2"), cluster, load_framework("vllm"), phase="decode", tp=1, batch=1, prompt=100, output=1,
                  dtype="bf16")  # fmt: skip
    assert found.total == found.ttft


def test_a_workload_is_estimated_as_its_flags_are() -> None:
    flags = ["--tp", "8", "--pp", "4", "--microbatch", "1", "--global-batch", "1024", "--sequence", "8192", "--dtype", "bf16",
             "--tokens", "15e12", "--nodes", "16", "--json"]  # fmt: skip
    written, flagged = (
        json.loads(hwsim("estimate", "dgx-h100", *given).output)
        for given in (["llama3-70b", "--nodes", "16", "--json"], ["llama-3-70b", *flags])
    )
    assert written["step_s"] == flagged["step_s"]
    assert written["plan"] == flagged["plan"]
    other = json.loads(
        hwsim("estimate", "dgx-h100", "llama3-70b", "--nodes", "16", "--set", "pp=8", "--tp", "4", "--json").output
    )
    assert (other["plan"]["tp"], other["plan"]["pp"]) == (4, 8)
    refused = hwsim("estimate", "dgx-h100", "llama3-8b-serving", code=2)
    assert "no `train:`" in refused.output


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("gpus: 2", "the estimate uses all 8 GPUs, but the training uses 2"),
        ("gpus: 16", "the estimate uses all 8 GPUs, but the training uses 16"),
        ("device: gpu0..1", "the estimate uses all 8 GPUs, but the training uses 2"),
        ("device: nothing", "there is no part 'nothing'"),
        ("threads: one", "the estimate does not model `threads`"),
        ("buckets: 1", "the estimate does not model `buckets`"),
        ("synchronise: {by: parameter-server}", "the estimate does not model `synchronise`"),
    ],
)
def test_what_only_a_simulation_models_is_refused(keys: str, message: str) -> None:
    train = f"train: {{model: resnet-50, global_batch: 64, {keys}}}"
    with pytest.raises(SpecError, match=re.escape(message)):
        estimate_of("dgx-h100", f"hwsim: workload/1\n{train}\n")


def test_keys_that_state_the_default_are_estimated() -> None:
    plain, same = (
        estimate_of("dgx-h100", {"hwsim": "workload/1", "train": {"model": "resnet-50", "global_batch": 64, **keys}}).seconds
        for keys in ({}, {"gpus": 8, "device": "gpu*", "threads": "each"})
    )
    assert plain == same
    events = [{"at": "0 s", "part": "gpu0", "speed": "50 %"}]
    with pytest.raises(SpecError, match="does not model `events`"):
        estimate_of("dgx-h100", {"hwsim": "workload/1", "train": {"model": "resnet-50", "global_batch": 64}, "events": events})
