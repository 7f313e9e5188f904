"""Transformers as numbers: published parameters, FLOP and bytes; plans and their mistakes; laws of the estimate."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.models import (
    Framework,
    ParallelPlan,
    UnequalCluster,
    WrongPlan,
    cluster_of,
    derive_plan,
    estimate,
    load_framework,
    load_transformer,
    one_pass,
)
from hwsim.spec import SpecError, find, names, read
from tests.each import each
from tests.model_cases import NODES, decode, gpus, prefill, run, small

# As the authors publish them, or as the published weights count.
PARAMETERS = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "mpt-7b": 6_649_286_656,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "mistral-7b": 7_241_732_096,
    "llama-3-70b": 70_553_706_496,
    "llama-3-405b": 405_853_388_800,
    "bloom-176b": 176_247_271_424,
    "bloom-7b1": 7_069_016_064,
    "opt-125m": 125_239_296,
    "opt-1.3b": 1_315_758_080,
    "opt-6.7b": 6_658_473_984,
    "opt-13b": 12_853_473_280,
    "opt-30b": 29_974_540_288,
    "opt-66b": 65_719_701_504,
    "mixtral-8x7b": 46_702_792_704,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
}
# In billions, as printed: Brown et al. 2020; Narayanan et al. 2021, table 1; Korthikanti et al. 2022, table 3.
BILLIONS = {
    "gpt-3-175b": 174.6,
    "megatron-1.7b": 1.7,
    "megatron-3.6b": 3.6,
    "megatron-7.5b": 7.5,
    "megatron-18b": 18.4,
    "megatron-39b": 39.1,
    "megatron-76b": 76.1,
    "megatron-145b": 145.6,
    "megatron-310b": 310.1,
    "megatron-530b": 529.6,
    "megatron-1008b": 1008.0,
}


def test_a_machine_of_equal_nodes_is_a_cluster() -> None:
    found = cluster_of(api.load_machine(NODES))
    assert (found.gpus, found.per_node, found.gpu.sms) == (16, 8, 108)
    assert found.inside[8] == pytest.approx(225e9, rel=0.1)
    assert found.across == pytest.approx(8 * found.pair)
    assert 20e9 < found.pair < 25e9


def test_unequal_machines_are_no_cluster() -> None:
    with pytest.raises(UnequalCluster, match="no GPU"):
        cluster_of(api.load_machine("hwsim: machine/1\nclass: ideal\nparts: {cpu: {kind: cpu, use: d2l-server-cpu}}\n"))
    parts = "hwsim: machine/1\nclass: ideal\nparts: {a: {kind: gpu, use: t4}, b: {kind: gpu, use: a10}}\n"
    two = parts + "links: [{between: [a, b], kind: pcie, gen: 3, lanes: 16}]\n"
    with pytest.raises(UnequalCluster, match="identical GPUs"):
        cluster_of(api.load_machine(two))


# ---- parameters, FLOP, bytes ----


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_the_published_ones(name: str) -> None:
    assert load_transformer(name).parameters == PARAMETERS[name]


@pytest.mark.parametrize("name", BILLIONS)
def test_parameters_round_to_the_printed_ones(name: str) -> None:
    assert load_transformer(name).parameters / 1e9 == pytest.approx(BILLIONS[name], abs=0.051)


TRANSFORMERS = [name for name in names("model") if read(find("model", name)).text("kind") == "transformer"]


@each("name", TRANSFORMERS)
def test_every_model_of_the_library_can_be_read(name: str) -> None:
    model = load_transformer(name)
    assert model.parameters >= model.active_parameters > 1e8
    assert model.forward_flop(512) > 2 * model.layers * model.hidden**2


def test_flop_are_those_of_narayanan() -> None:
    model = load_transformer("megatron-145b")
    batch, s, layers, h, v = 2304, 2048, 80, 12288, 51200
    formula = 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))
    again = batch * s * (model.forward_flop(s) - 2 * v * h)  # full recompute: the layers, not the logits
    assert batch * s * model.training_flop(s) + again == pytest.approx(formula, rel=1e-12)


def test_mixtral_meets_thirteen_billion_parameters() -> None:
    assert load_transformer("mixtral-8x7b").active_parameters / 1e9 == pytest.approx(12.9, abs=0.05)


def test_grouped_heads_shrink_the_cache() -> None:
    model = load_transformer("llama-2-70b")
    assert replace(model, kv_heads=None).kv_bytes() == 8 * model.kv_bytes() == 8 * 2 * 80 * 1024 * 2


def test_a_model_that_cannot_be_is_refused() -> None:
    assert [key for key, _, _ in small(heads=7).problems()] == ["heads"]
    assert [key for key, _, _ in small(kv_heads=3).problems()] == ["kv_heads"]
    with pytest.raises(SpecError, match="llama-3-70b"):
        load_transformer("llama-3-70")


# ---- plans ----


@pytest.mark.parametrize(
    ("plan", "count", "key", "message"),
    [
        ({"tp": 3}, 24, "tp", "tp 3 does not divide 16 heads"),
        ({"tp": 2, "dp": 3}, 8, "dp", "tp 2 x pp 1 x dp 3 = 6 GPUs, but there are 8"),
        ({"tp": 4, "pp": 4}, 24, "dp", "tp 4 x pp 4 = 16 does not divide 24 GPUs"),
        ({"pp": 3}, 24, "pp", "pp 3 does not divide 8 layers"),
        ({"pp": 16}, 16, "pp", "pp 16 stages, but only 8 layers"),
        ({"microbatch": 3}, 8, "global_batch", "a global batch of 64 is not a multiple of dp 8 x microbatch 3 = 24"),
        ({"pp": 2, "chunks": 2}, 8, "schedule", "2 chunks per stage require `schedule: interleaved`, got 1f1b"),
        ({"sequence_parallel": True}, 8, "sequence_parallel", "requires tensor parallelism (tp > 1)"),
        ({"ep": 2}, 8, "ep", "ep 2, but the model has no experts"),
        ({"shards": 3, "sharding": "zero-1"}, 8, "shards", "3 shards do not divide dp 8"),
        ({"cp": 3}, 24, "cp", "cp 3 does not divide sequences of 1024 tokens"),
        ({"tp": 2, "order": ("pp", "dp")}, 8, "order", "`order` lacks tp"),
    ],
)
def test_a_plan_that_does_not_fit_gets_one_line(plan: dict[str, object], count: int, key: str, message: str) -> None:
    with pytest.raises(WrongPlan) as caught:
        derive_plan(small(), ParallelPlan(global_batch=64, **plan), count)  # type: ignore[arg-type]
    lines = [line for found, line in caught.value.mistakes if found == key]
    assert len(lines) == 1
    assert message in lines[0]


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(WrongPlan) as caught:
        derive_plan(small(), ParallelPlan(tp=3, pp=5, dp=2, global_batch=7), 16)
    assert {key for key, _ in caught.value.mistakes} == {"tp", "pp", "dp", "global_batch"}


def test_the_order_says_who_are_neighbours() -> None:
    plan = ParallelPlan(tp=4, pp=2, global_batch=64)
    laid = derive_plan(small(), plan, 32)
    assert [laid.stride(axis) for axis in ("tp", "pp", "dp")] == [1, 4, 8]
    turned = derive_plan(small(), replace(plan, order=("dp", "tp", "pp")), 32)
    assert [turned.stride(axis) for axis in ("tp", "pp", "dp")] == [4, 16, 1]


# ---- the estimate ----


def test_shares_add_up_and_are_finite() -> None:
    plan = ParallelPlan(tp=8, pp=2, global_batch=32, sharding="zero-1", recompute="full")
    step = run(load_transformer("megatron-7.5b"), plan, 64, load_framework("megatron"))
    assert math.fsum(step.shares.values()) == pytest.approx(step.seconds)
    assert all(0 <= share < math.inf for share in step.shares.values())
    assert 0 < step.mfu < step.hfu < 1
    assert step.tokens_per_second == pytest.approx(32 * 2048 / step.seconds)


@pytest.mark.parametrize(("stages", "microbatches", "chunks"), [(2, 4, 1), (4, 16, 1), (4, 16, 2), (8, 8, 1)])
def test_the_bubble_is_that_of_the_schedule(stages: int, microbatches: int, chunks: int) -> None:
    """(p - 1) / (v m + p - 1) where stages are equal: without embedding and output to speak of, and with free links."""
    plan = ParallelPlan(pp=stages, global_batch=microbatches, chunks=chunks, schedule="interleaved" if chunks > 1 else "1f1b")
    model = small(vocab=1, layers=16)
    free = replace(gpus(stages), pair=math.inf, across=math.inf)
    shares = estimate(model, plan, free, Framework()).shares
    layers = sum(shares[kind] for kind in ("matmul", "attention", "elementwise"))
    whole = layers + shares["bubble"]
    ends = shares["output"] / microbatches  # what the embedding and the output take of a micro-batch
    assert shares["bubble"] / whole == pytest.approx((stages - 1) / (chunks * microbatches + stages - 1), abs=2 * ends / whole)


def test_full_recompute_costs_a_forward_pass() -> None:
    model, plan = load_transformer("megatron-7.5b"), ParallelPlan(global_batch=8)
    kept, again = run(model, plan, 8), run(model, replace(plan, recompute="full"), 8)
    assert again.shares["matmul"] / kept.shares["matmul"] == pytest.approx(4 / 3, rel=0.03)
    assert again.memory.activations < kept.memory.activations / 5
    assert again.hfu / again.mfu == pytest.approx(4 / 3)


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from(["none", "full"]), st.booleans())
def test_more_work_never_takes_less_time(tensor: int, micro: int, recompute: str, plain: bool) -> None:
    framework = Framework(attention="plain" if plain else "flash")
    plan = ParallelPlan(tp=tensor, microbatch=micro, global_batch=32, recompute=recompute)  # type: ignore[arg-type]
    base = run(small(), plan, 8, framework).seconds
    assert run(small(layers=16), plan, 8, framework).seconds > base
    assert run(small(hidden=2048), plan, 8, framework).seconds > base
    assert run(small(), replace(plan, global_batch=64), 8, framework).seconds > base
    assert run(small(sequence=2048), plan, 8, framework).seconds > base


@given(st.floats(1.0, 4.0), st.floats(1.0, 4.0))
def test_a_better_network_is_never_slower(inside: float, across: float) -> None:
    model, plan = load_transformer("megatron-7.5b"), ParallelPlan(tp=8, pp=2, global_batch=64)
    base = gpus(32)
    better = replace(
        base,
        inside={key: rate * inside for key, rate in base.inside.items()},
        across=base.across * across,
        pair=base.pair * across,
    )
    framework = Framework()
    assert estimate(model, plan, better, framework).seconds <= estimate(model, plan, base, framework).seconds


# ---- inference ----


def test_decoding_reads_the_weights_once() -> None:
    model, cluster = load_transformer("llama-3-8b"), gpus(1)
    found = one_pass(model, decode(1, 1), cluster, Framework(steady=False))
    least = 2 * (model.parameters - model.embedding_parameters) / cluster.gpu.memory.bandwidth
    assert least < found.seconds < 1.6 * least


def test_a_prefill_is_bound_by_its_products() -> None:
    model, cluster = load_transformer("llama-3-8b"), gpus(1)
    found = one_pass(model, prefill(1, 4096), cluster, Framework(steady=False))
    bound = 4096 * model.forward_flop(4096, causal=True) / cluster.gpu.flop["bf16"]
    assert bound * 0.9 < found.seconds < 2 * bound
    assert found.shares["matmul"] > 0.6 * found.seconds
