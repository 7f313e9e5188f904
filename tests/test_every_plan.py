"""The search for parallel plans: no plan that a hand can name beats its best, for random models and clusters."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from hwsim.functions.nodes import cluster_with
from hwsim.models import Cluster, ParallelPlan, Transformer, WrongPlan, derive_plan, load_framework, step
from hwsim.models.architectures.layer_parts import LayerRun
from hwsim.models.plan_columns import LayerSeconds, PlanColumns
from hwsim.models.search import Search
from hwsim.models.space import RECOMPUTED, SHARDINGS, space
from hwsim.models.step import TrainingStep, times_of

EXPERTS = {"experts": 8, "top_k": 2}
KINDS: dict[str, tuple[int, dict[str, Any]]] = {  # layers, further dimensions
    "dense": (6, {"kv_heads": 4}),
    "tied": (5, {"tied": True}),
    "experts": (4, EXPERTS),
    "dense, then experts": (7, {**EXPERTS, "runs": (LayerRun(layers=2, experts=1, ffn=4096), LayerRun(layers=5))}),
    "windows": (6, {**EXPERTS, "runs": (LayerRun(layers=1, window=512), LayerRun(layers=1))}),
}
FRAMEWORKS = ("megatron-core", "torchtitan-compile", "megatron-deepspeed", "deepspeed-zero3", "megatron")


def case(seed: int) -> tuple[Transformer, ParallelPlan, Cluster, str]:
    chance = random.Random(seed)
    layers, dimensions = KINDS[list(KINDS)[seed % len(KINDS)]]
    model = Transformer(
        layers=layers, hidden=1024 * chance.choice((1, 2)), heads=8, ffn=2048, vocab=chance.choice((1000, 50_000)), sequence=2048,
        **dimensions,
    )  # fmt: skip
    gpus, per_node = chance.choice(((4, 4), (8, 4), (8, 8), (12, 4), (6, 2)))
    cluster = replace(cluster_with("dgx-h100", {}, 2)[0], gpus=gpus, per_node=per_node)
    size = chance.choice((4e9, 6e9, 10e9, 85e9))
    cluster = replace(cluster, gpu=replace(cluster.gpu, memory=replace(cluster.gpu.memory, size=size)))
    plan = ParallelPlan(
        global_batch=chance.choice((8, 12, 24)), imbalance=chance.choice((1.0, 1.2)), schedule=chance.choice(("1f1b", "gpipe")),
        optimizer=chance.choice(("adam", "sgd")), dtype=chance.choice(("bf16", "fp8", "fp32")),
    )  # fmt: skip
    return model, plan, cluster, chance.choice(FRAMEWORKS)


def by_hand(model: Transformer, plan: ParallelPlan, cluster: Cluster, called: str, chance: random.Random) -> list[TrainingStep]:
    """Steps of plans that a hand names: all sizes of the axes, and any of the rest."""
    framework, steps = load_framework(called), []
    times, ways = times_of(cluster, framework), range(1, cluster.gpus + 1)
    for tp, pp, cp, ep, chunks, microbatch, sharding in product(
        ways, ways, ways, (1, 2, 4, 8), (1, 2, 3), (1, 2, 3, 4), SHARDINGS
    ):
        if cluster.gpus % (tp * pp * cp) or tp > cluster.per_node or (chunks > 1 and pp == 1) or chance.random() < 0.5:
            continue
        named = replace(
            plan, tp=tp, pp=pp, cp=cp, ep=ep, chunks=chunks, schedule="interleaved" if chunks > 1 else plan.schedule,
            microbatch=microbatch, sharding=sharding, recompute=chance.choice(RECOMPUTED), uneven=True,
            sequence_parallel=chance.choice((False, True)),
        )  # fmt: skip
        try:
            steps.append(step(derive_plan(model, named, cluster.gpus), cluster, framework, times))
        except WrongPlan:
            continue
    return steps


@pytest.mark.parametrize("seed", range(15))
def test_no_plan_named_by_hand_beats_the_best_by_more_than_a_percent(seed: int) -> None:
    model, plan, cluster, called = case(seed)
    found = Search(model, plan, load_framework(called)).on(cluster, few=3)
    room = cluster.gpu.memory.size or 0.0
    steps = by_hand(model, plan, cluster, called, random.Random(seed))
    fitting = [named for named in steps if named.memory.total <= room]
    if found.nearest is not None:
        assert not fitting
        assert found.nearest.memory.total <= min(named.memory.total for named in steps) * 1.0001
    elif fitting:
        assert found.steps[0].seconds <= 1.01 * min(named.seconds for named in fitting)
        assert found.steps[0] == step(
            found.steps[0].laid, cluster, load_framework(called), times_of(cluster, load_framework(called))
        )
    assert found.counts["estimated"] >= len(found.steps)


@pytest.mark.parametrize("seed", range(10))
def test_columns_bound_the_time_and_have_the_memory_of_a_plan(seed: int) -> None:
    model, plan, cluster, called = case(seed)
    framework = load_framework(called)
    plans = space(model, plan, cluster.gpus, cluster.per_node, framework)
    columns, times, chance = PlanColumns(plans, framework), times_of(cluster, framework), random.Random(seed)
    everything = np.arange(len(plans))
    seconds = LayerSeconds(framework, times).least(columns, everything, cluster)
    anything = columns.least_seconds(everything, seconds)
    for column in chance.sample(range(len(plans)), min(len(plans), 40)):
        staging = chance.choice(np.flatnonzero(plans.stagings.pp == plans.pp[column]).tolist())
        chosen, stagings = np.array([column]), np.array([staging])
        needs, bound = columns.needs(chosen, stagings)[0], columns.bounds(chosen, stagings, seconds)[0]
        for sharding in np.flatnonzero(np.isfinite(needs)).tolist():
            alone = step(plans.laid(column, staging, sharding), cluster, framework, times)
            assert needs[sharding] == pytest.approx(alone.memory.total, rel=1e-12)
            assert columns.least_need[column] <= needs[sharding] * (1 + 1e-12)
            assert anything[column] * (1 - 1e-9) <= bound <= alone.seconds * (1 + 1e-9)
