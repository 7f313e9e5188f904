"""Every plan of a training, in columns: the same answers as plan by plan."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

import hwsim
from hwsim.formats import format_quantity
from hwsim.functions.nodes import cluster_with
from hwsim.models import Cluster, ParallelPlan, Transformer, WrongPlan, derive_plan, load_framework, load_transformer, step
from hwsim.models.exhaustive_search import fastest_legal_plans
from hwsim.models.search import search
from hwsim.models.space import RECOMPUTED, space
from hwsim.models.stages import largest_stage_memory
from hwsim.models.step import times_of

CASES = {  # model, framework, servers, the plan at hand, GPUs' memory in bytes
    "dense": ("llama-3-8b", "megatron-core", 2, ParallelPlan(global_batch=16), None),
    "experts, by expert": ("mixtral-8x7b", "torchtitan-compile", 2, ParallelPlan(global_batch=8, sequence=4096), None),
    "tied, plain attention": ("gpt2-large", "megatron-deepspeed", 1, ParallelPlan(global_batch=32), 10e9),
    "uneven, adds gradients": (
        "opt-1.3b", "deepspeed-zero3", 2,
        ParallelPlan(global_batch=16, pp=5, cp=2, tp=1, uneven=True, chunks=2, schedule="interleaved"), None,
    ),
    "all at once": (
        "llama-3-8b", "megatron", 1, ParallelPlan(global_batch=16, schedule="gpipe", optimizer="sgd", dtype="fp8"), None,
    ),
}  # fmt: skip
FIXED = {"uneven, adds gradients": {"pp", "chunks", "schedule"}, "all at once": {"schedule"}}


def case(name: str) -> tuple[Transformer, ParallelPlan, Cluster, str, frozenset[str]]:
    model, framework, servers, plan, memory = CASES[name]
    cluster = cluster_with("dgx-h100", {}, servers)[0]
    if name.startswith("uneven"):
        cluster = replace(cluster, gpus=10, per_node=5)
    if memory is not None:
        cluster = replace(cluster, gpu=replace(cluster.gpu, memory=replace(cluster.gpu.memory, size=memory)))
    return load_transformer(model), plan, cluster, framework, frozenset(FIXED.get(name, ()))


@pytest.mark.parametrize("name", CASES)
def test_the_fastest_of_all_are_those_found_one_by_one(name: str) -> None:
    model, plan, cluster, called, fixed = case(name)
    framework = load_framework(called)
    plans = space(model, plan, cluster.gpus, cluster.per_node, framework, fixed)
    numbers = range(len(plans)) if len(plans) <= 1500 else random.Random(5).sample(range(len(plans)), 300)
    times, room = times_of(cluster, framework), cluster.gpu.memory.size or 0.0
    found = fastest_legal_plans(model, plan, cluster, framework, fixed, few=25)
    assert found.tried == len(plans)
    bound = found.steps[-1].seconds
    best = {(candidate.laid.plan, candidate.seconds) for candidate in found.steps}
    for number in numbers:
        laid = plans.laid(number)
        alone = step(laid, cluster, framework, times)
        if alone.memory.total <= room:
            assert alone.seconds >= bound * (1 - 1e-12) or (laid.plan, alone.seconds) in best, laid.plan
    for candidate in found.steps:
        assert candidate == step(candidate.laid, cluster, framework, times)
        assert candidate.memory == largest_stage_memory(candidate.laid, framework)
    assert [candidate.seconds for candidate in found.steps] == sorted(candidate.seconds for candidate in found.steps)
    if len(plans) <= 1500:
        fitting = [number for number in numbers if largest_stage_memory(plans.laid(number), framework).total <= room]
        assert found.fitting == len(fitting)


@pytest.mark.parametrize("name", ["dense", "experts, by expert"])
def test_columns_hold_the_plans_that_are_legal(name: str) -> None:
    model, plan, cluster, called, fixed = case(name)
    framework = load_framework(called)
    plans = space(model, plan, cluster.gpus, cluster.per_node, framework, fixed)
    in_columns = {plans.plan(number) for number in range(len(plans))}
    assert len(in_columns) == len(plans)
    chance = random.Random(7)
    legal = 0
    for tp, pp, cp, ep, sharding in product((1, 2, 3, 4, 8), (1, 2, 4, 5, 8), (1, 2, 4, 16), (1, 2, 8, 16), plans.shardings):
        chunks, microbatch = chance.choice((1, 2, 3)), chance.choice((1, 2, 4, 16))
        asked = replace(
            plan, tp=tp, pp=pp, cp=cp, ep=ep, chunks=chunks, schedule="interleaved" if chunks > 1 else plan.schedule,
            microbatch=microbatch, sharding=sharding, recompute=chance.choice(RECOMPUTED[::2]),
            sequence_parallel=chance.choice((False, True)),
        )  # fmt: skip
        if (asked.level == 3 and pp > 1) or (asked.level > 0 and tp * pp == cluster.gpus) or (pp == 1 and chunks > 1):
            continue
        try:
            derive_plan(model, asked, cluster.gpus)
        except WrongPlan:
            assert asked not in in_columns
        else:
            legal += 1
            assert asked in in_columns
    assert legal > 20


def test_every_plan_is_no_slower_than_those_that_auto_tries_and_has_a_text() -> None:
    model, plan, cluster, called, _ = case("dense")
    framework = load_framework(called)
    some = search(model, plan, cluster, framework)
    best = fastest_legal_plans(model, plan, cluster, framework, few=1).steps[0]
    assert best.seconds <= some.steps[0].seconds
    shared, axes = replace(plan, sharding="zero-1"), {"sharding", "tp", "sequence_parallel"}
    held = fastest_legal_plans(model, shared, cluster, framework, frozenset({*axes, "cp", "ep", "chunks"}), few=5).steps
    assert held == search(model, shared, cluster, framework, axes).steps[:5]
    found = hwsim.estimate("dgx-h100", "llama-3-8b", nodes=2, global_batch=16, plan="every", top=3)
    assert found.seconds == best.seconds
    assert str(found).count("\n  ") >= 4
    document = found.to_json()
    after = fastest_legal_plans(model, plan, cluster, framework, few=3).steps[-1].seconds
    assert f"  {document['fitting'] - 3:,} more, {format_quantity(after, 's')} or slower" in str(found)
    whole = hwsim.estimate("dgx-h100", "gpt2", global_batch=16, sharding="zero-0", plan="every", top=3)
    assert {row["plan"]["sharding"] for row in whole.to_json()["plans"]} == {"none"}
    assert {row["plan"]["cp"] for row in document["plans"]} <= {1, 2, 4, 8, 16}
    with pytest.raises(hwsim.SpecError, match="requires identical layers"):
        hwsim.estimate("dgx-h100", "deepseek-v3", nodes=2, global_batch=16, plan="every")
    nothing = hwsim.estimate("dgx-h100", "llama-3-405b", global_batch=8, plan="every")
    assert not nothing.fits
    assert "closest" in str(nothing)
