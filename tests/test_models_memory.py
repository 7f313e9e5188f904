"""Memory of models that train: what the papers count, what frameworks keep, and the verdict."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.devices import Gpu
from hwsim.devices.roofline import LocalMemory
from hwsim.families.training.workload.schedule import passes
from hwsim.models import (
    Cluster,
    Framework,
    ParallelPlan,
    activations,
    derive_plan,
    load_framework,
    load_transformer,
    stage_of,
    training_memory,
)
from hwsim.models.layer import Exchange
from hwsim.models.layer import kernels as kernels_of
from hwsim.models.memory import Footprint, cache_room, in_flight, state_bytes
from hwsim.models.server import PLAIN
from hwsim.models.step import collective
from tests.model_cases import run, small


@pytest.mark.parametrize("tensor", [1, 8])
def test_activations_are_those_of_korthikanti(tensor: int) -> None:
    gpt, s, h, a = load_transformer("megatron-175b"), 2048, 12288, 96
    plan = ParallelPlan(tp=tensor, global_batch=8)
    assert activations(gpt, plan, s, "plain") == s * h * (10 + 24 / tensor + 5 * a * s / (h * tensor))
    assert activations(gpt, replace(plan, recompute="selective"), s, "plain") == s * h * (10 + 24 / tensor)
    assert activations(gpt, replace(plan, recompute="full"), s, "plain") == 2 * s * h
    if tensor > 1:
        sharded = replace(plan, sequence_parallel=True)
        assert activations(gpt, sharded, s, "plain") == pytest.approx(s * h / tensor * (34 + 5 * a * s / h))
        assert activations(gpt, replace(sharded, recompute="selective"), s, "plain") == pytest.approx(34 * s * h / tensor)


def test_zero_divides_what_the_paper_says() -> None:
    """Rajbhandari et al., figure 1: 7.5 G parameters on 64 GPUs: 120, 31.4, 16.6 and 1.9 GB."""
    model = replace(load_transformer("megatron-7.5b"), vocab=1, sequence=1)
    scale = 7.5e9 / model.parameters
    found = []
    for level in ("zero-0", "zero-1", "zero-2", "zero-3"):
        laid = derive_plan(model, ParallelPlan(global_batch=64, sequence=1, sharding=level), 64)
        held = training_memory(laid)
        found.append(scale * (held.weights + held.gradients + held.optimizer) / 1e9)
    assert found == pytest.approx([120, 31.4, 16.6, 1.9], abs=0.06)


@pytest.mark.parametrize(("level", "kept"), [
    ("none", (4, 4, 8)), ("zero-1", (4, 4, 8 / 8)), ("zero-2", (4, 4 / 8, 8 / 8)), ("zero-3", (4 / 8, 4 / 8, 8 / 8)),
    ("fsdp", (0, 4 / 8, 12 / 8)),
])  # fmt: skip
def test_weights_of_32_bits_are_kept_once_and_their_gradients_are_as_wide(level: Any, kept: tuple[float, ...]) -> None:
    """Bytes a parameter of weights, gradients and optimizer; a framework that sends 2 B of 16-bit weights sends 4 B of these."""
    plan, model = ParallelPlan(global_batch=8, sequence=1, sharding=level, dtype="fp32"), load_transformer("gpt2")
    laid, narrow, wide = derive_plan(model, plan, 8), Framework(gradient=2.0), Framework(gradient=4.0)
    held = training_memory(laid, narrow)
    assert state_bytes(plan) == 12.0
    assert [size / model.parameters for size in (held.weights, held.gradients, held.optimizer)] == pytest.approx(kept, rel=1e-6)
    assert (held, stage_of(laid, narrow)) == (training_memory(laid, wide), stage_of(laid, wide))


def test_a_schedule_keeps_as_many_microbatches_as_stages_follow() -> None:
    plan = ParallelPlan(pp=4, global_batch=32)
    assert [in_flight(plan, stage, 32) for stage in range(4)] == [4, 3, 2, 1]
    assert in_flight(replace(plan, schedule="gpipe"), 0, 32) == 32
    interleaved = replace(plan, schedule="interleaved", chunks=2)
    assert in_flight(interleaved, 0, 32) == 4 * (1 + 3 / 8)  # p (1 + (p - 1) / (p v)), Narayanan et al.


def test_what_does_not_fit_is_said_with_its_amount() -> None:
    step = run(load_transformer("llama-3-70b"), ParallelPlan(global_batch=8, recompute="full"), 8)
    over = (step.memory.total - 80e9) / 1e12
    assert step.verdict == f"does not fit by {over:.2f} TB on gpu0"
    assert over > 0.5


@pytest.mark.parametrize(("pp", "chunks", "layers"), [(16, 8, 126), (12, 1, 126), (8, 3, 126), (4, 5, 62), (4, 3, 10), (3, 2, 4)])
def test_layers_that_do_not_divide_are_spread(pp: int, chunks: int, layers: int) -> None:
    model = replace(load_transformer("llama-3-8b"), layers=layers)
    plan = ParallelPlan(pp=pp, chunks=chunks, schedule="interleaved" if chunks > 1 else "1f1b", uneven=True, global_batch=pp)
    laid = derive_plan(model, plan, pp)
    parts = [laid.parts_of(stage) for stage in range(pp)]
    assert sum(map(sum, parts)) == layers
    order = [parts[number % pp][number // pp] for number in range(pp * chunks)]
    ends = [order[0] + 1, *order[1:-1], order[-1] + 1]
    assert max(ends) - min(ends) <= 1
    assert laid.layers == max(map(sum, parts))


def test_stages_gather_sharded_weights_once_a_step() -> None:
    model, framework = load_transformer("llama-3-8b"), load_framework("torchtitan-compile")
    shared, plain = (
        derive_plan(model, ParallelPlan(pp=2, dp=4, global_batch=32, sharding=sharding), 8) for sharding in ("fsdp", "zero-1")
    )
    stages = [stage_of(laid, framework, 1) for laid in (shared, plain)]
    assert not stages[0].gathered
    assert stages[0].ending == stages[1].ending


def test_a_memory_that_may_suffice_is_tight() -> None:
    held = Footprint(0, 80e9, 0.0, 0.0, 0.0, 0.0, spread=0.15)
    verdicts = [held.verdict(size).partition(" ")[0] for size in (93e9, 91e9, 69e9, 67e9)]
    assert verdicts == ["fits", "tight:", "tight:", "does"]


def test_products_in_8_bits_have_kernels_that_convert() -> None:
    model = load_transformer("llama-3-8b")
    layers = [
        stage_of(derive_plan(model, ParallelPlan(global_batch=1, dtype=dtype), 1), Framework()).blocks[0]
        for dtype in ("bf16", "fp8")
    ]
    casts = [[kernel for kernel in kernels_of((*layer.forward, *layer.backward)) if kernel.kind == "cast"] for layer in layers]
    assert not casts[0]
    assert len(casts[1]) == 4 + 2 * 4  # of each product: both factors; backward its gradient, and all three transposed
    assert all(kernel.work.writes < kernel.work.reads or kernel.work.dtype == "fp8" for kernel in casts[1])


def test_recompute_that_stops_leaves_out_the_last_product() -> None:
    model, laid = load_transformer("llama-3-8b"), ParallelPlan(global_batch=1, recompute="full")
    names = [
        [kernel.name for kernel in kernels_of(stage_of(derive_plan(model, laid, 1), Framework(stops=stops)).blocks[0].recompute)]
        for stops in (False, True)
    ]
    assert names[0][: len(names[1])] == names[1]
    assert names[0][len(names[1])] == "down"


def test_weights_in_buckets_cost_a_round_each() -> None:
    cluster = Cluster(Gpu(flop={"fp32": 1e12}, memory=LocalMemory(1e12)), 64, 8, {8: 1e11}, 1e11, 1e11, knee=0.0)
    laid, weights = derive_plan(small(), ParallelPlan(global_batch=64), 64), Exchange("weights", "all-gather", "dp", 1e9)
    whole, cut = (collective(weights, laid, replace(cluster, bucket=bucket)) for bucket in (None, 1e8))
    assert cut - whole == pytest.approx(9 * cluster.seconds("all-gather", 1e-9, 64), rel=1e-6)


def test_a_cache_holds_what_the_weights_leave() -> None:
    model = load_transformer("llama-2-7b")
    plain, none, split = (cache_room(model, tp, size, "bf16", PLAIN)[1] for tp, size in ((1, 80e9), (1, 10e9), (2, 80e9)))
    assert plain == int((0.9 * 80e9 - 2 * model.parameters - 1.5e9) // model.kv_bytes())
    assert none == 0
    assert split is not None
    assert split > 2 * plain


@given(st.sampled_from([("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("interleaved", 3)]), st.integers(1, 40), st.data())
def test_a_stage_keeps_what_the_passes_of_its_schedule_leave(ways: tuple[Any, int], batches: int, data: st.DataObject) -> None:
    (schedule, chunks), pp = ways, data.draw(st.integers(2, 9))
    stage, plan = data.draw(st.integers(0, pp - 1)), ParallelPlan(pp=pp, global_batch=batches, schedule=schedule, chunks=chunks)
    left = accumulate(1 if pass_.forward else -1 for pass_ in passes(schedule, stage, pp, batches, chunks))
    assert in_flight(plan, stage, batches) == max(left) / chunks
