"""Latent attention and layers that differ: parameters, operations, caches, plans and stages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.devices import Gpu
from hwsim.models import (
    Framework,
    KernelTimes,
    MicrobatchSlice,
    ParallelPlan,
    Transformer,
    WrongPlan,
    backward,
    cluster_of,
    derive_plan,
    estimate,
    forward,
    load_framework,
    load_transformer,
    one_pass,
    training_memory,
)
from hwsim.models.architectures.layer_parts import Indexer, Latent, LayerRun, QuantizedWeights
from hwsim.models.inference import pass_layers, serve, served_slice
from hwsim.models.library import read_model
from hwsim.models.memory import cache_room, serving_memory, stage_parameters
from hwsim.models.plan import runs_of
from hwsim.models.server import PLAIN
from hwsim.models.stages import stage_of
from hwsim.spec import tree_of
from tests.model_cases import gpus, products, small

LATENT = Latent(rank=128, query_rank=256, plain=64, rotary=32, values=64)
RUNS = (LayerRun(layers=2, experts=1, ffn=4096), LayerRun(layers=6))
KINDS: dict[str, Any] = {"experts": 8, "top_k": 2, "ffn": 512, "shared": 512, "gated": True, "runs": RUNS}


def latent(**more: Any) -> Transformer:
    return small(**{"latent": LATENT, "positions": "rotary", "bias": False, **more})


# ---- latent attention ----


def test_parameters_of_latent_attention_are_those_of_the_formula() -> None:
    h, a, c, q, n, r, v = 1024, 16, 128, 256, 64, 32, 64
    assert latent().attention_parameters == h * q + q + q * a * (n + r) + h * (c + r) + c + c * a * (n + v) + a * v * h
    straight = latent(latent=replace(LATENT, query_rank=None))
    assert straight.attention_parameters == h * a * (n + r) + h * (c + r) + c + c * a * (n + v) + a * v * h


@given(st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_kernels_do_the_flop_of_the_formula(tensor: int, batch: int) -> None:
    model, s = latent(causal=False), 256
    part = MicrobatchSlice(batch, s, s, tensor)
    formula = batch * s * 2 * model.layer_flop(s)
    once = next(call.work.flop for call in forward(model, part) if call.name == "latent-down")  # whole on every GPU
    norms = 2 * batch * s * (LATENT.rank + LATENT.query_rank)  # type: ignore[operator]
    assert tensor * products(forward(model, part)) == pytest.approx(formula + (tensor - 1) * once - norms, rel=1e-3)
    assert products(backward(model, part)) > 2 * products(forward(model, part))


def test_a_step_of_decoding_reads_one_vector_of_each_token() -> None:
    model = latent()
    [step] = [kernel for kernel in forward(model, MicrobatchSlice(3, 1, 5000, cache=True)) if kernel.flash]
    assert step.work.reads == pytest.approx(3 * 5000 * (128 + 32) * 2, rel=0.02)
    assert step.work.flop == 3 * 5000 * 16 * 2 * (2 * 128 + 32)
    assert model.kv_bytes() == model.layers * (128 + 32) * 2


def test_deepseek_keeps_576_numbers_of_a_token_in_each_layer_on_every_gpu() -> None:
    model = load_transformer("deepseek-v3")
    assert model.kv_bytes() == 61 * 576 * 2
    one, eight = (serving_memory(model, tensor, 1000).cache for tensor in (1, 8))
    assert one == eight == 1000 * 61 * 576 * 2
    assert serving_memory(model, 8, 0, "fp8").weights > model.weight_bytes(1.0) / 8  # maps to the vectors are whole


def test_cached_tokens_of_a_prompt_are_taken_to_heads_anew() -> None:
    kernels = {kernel.name: kernel for kernel in forward(latent(), MicrobatchSlice(2, 64, 1024, cache=True))}
    assert kernels["cached-up"].work.flop == 2 * 2 * 960 * 128 * 16 * 128
    assert "cached-up" not in {kernel.name for kernel in forward(latent(), MicrobatchSlice(2, 64, 64, cache=True))}


def test_an_indexer_bounds_what_is_looked_at_but_looks_at_all_itself() -> None:
    chosen = latent(latent=replace(LATENT, indexer=Indexer(heads=4, width=32, chosen=256)))
    assert chosen.attention_parameters - latent().attention_parameters == 256 * 128 + 1024 * 32 + 64 + 1024 * 4
    flop = {}
    for context in (200, 4000, 8000):
        kernels = {call.name: call.work.flop for call in forward(chosen, MicrobatchSlice(1, 1, context, cache=True))}
        flop[context] = kernels["attention"], kernels["indexer"]
    assert flop[4000][0] == flop[8000][0] > flop[200][0]
    assert flop[8000][1] == 2 * flop[4000][1] == 2 * 8000 * 4 * 32
    assert chosen.kv_bytes() == latent().kv_bytes() + 8 * (32 + 4)


@pytest.mark.parametrize(
    ("keys", "said"),
    [({"head": 64}, "`head` is not allowed"), ({"kv_heads": 4}, "`kv_heads` is not allowed"),
     ({"window": 64}, "cannot be combined"),
     ({"latent": replace(LATENT, query_rank=None, indexer=Indexer(heads=1, width=8, chosen=9))}, "requires latent queries"),
     ({"shared": 64}, "requires `experts` above 1"), ({"cache": "window"}, "requires a layer with a window"),
     ({"runs": (LayerRun(layers=9),)}, "have 9 layers"), ({"runs": RUNS, "experts": 8, "top_k": 9}, "`top_k` 9 exceeds"),
     ({"vocab": 0}, "expected either `vocab`")],
)  # fmt: skip
def test_what_cannot_be_is_refused(keys: dict[str, Any], said: str) -> None:
    assert any(said in message for _, message, _ in latent(**keys).problems())


# ---- kinds of layers ----


def test_one_kind_of_layer_written_as_runs_is_the_same_model() -> None:
    model = small(experts=4, top_k=2)
    same = replace(model, runs=(LayerRun(layers=1),))
    assert (same.parameters, same.forward_flop(512), same.kv_bytes()) == (
        model.parameters,
        model.forward_flop(512),
        model.kv_bytes(),
    )
    plan = ParallelPlan(tp=2, pp=2, global_batch=16)
    before, after = (estimate(variant, plan, gpus(8), Framework()) for variant in (model, same))
    assert after.seconds == pytest.approx(before.seconds, rel=1e-3)
    assert after.memory == before.memory


def test_layers_of_two_kinds_are_the_sum_of_both() -> None:
    model = small(**KINDS)
    sparse = replace(model, runs=())
    dense = replace(sparse, experts=1, top_k=1, ffn=4096, shared=0)
    assert model.all_layers == 2 * dense.layer_parameters + 6 * sparse.layer_parameters
    assert model.active_parameters == model.parameters - 6 * 6 * sparse.expert_parameters
    part = MicrobatchSlice(1, 1, 600, cache=True)
    layers = {layer.name: layer for layer in pass_layers(model, part)}
    assert (layers["block"].times, layers["block 2"].times) == (2, 6)
    seconds = [one_pass(variant, part, gpus(1), Framework(steady=False)).seconds for variant in (dense, model, sparse)]
    assert seconds[1] == pytest.approx((2 * seconds[0] + 6 * seconds[2]) / 8, rel=0.01)


def test_stages_have_the_layers_of_their_places() -> None:
    model, plan = small(**KINDS), ParallelPlan(pp=4, ep=2, global_batch=8)
    assert [runs_of(model, plan, stage) for stage in range(4)] == [(((0, 2),),), (((1, 2),),), (((1, 2),),), (((1, 2),),)]
    laid = derive_plan(model, plan, 8)
    assert [[(block.name, block.times) for block in stage_of(laid, Framework(), stage).blocks] for stage in (0, 3)] == [
        [("block", 2)],
        [("block 2", 2)],
    ]
    everything = sum(stage_parameters(model, replace(plan, ep=1), stage) for stage in range(4))
    assert everything == model.parameters + model.vocab * model.hidden  # the last stage has a copy of the table
    need = [training_memory(laid, Framework(), stage).total for stage in range(4)]
    assert len(set(need)) == 4


def test_copies_share_only_the_experts_that_they_have_alike() -> None:
    model, plan = small(**KINDS), ParallelPlan(ep=8, dp=8, global_batch=8, sharding="zero-1")
    some = training_memory(derive_plan(model, plan, 8), Framework())
    experts = 6 * model.kinds[1].expert_parameters  # one of eight in each layer, on one GPU alone
    others = model.parameters - 8 * experts
    assert some.optimizer == pytest.approx(12 * (others / 8 + experts))
    alike = training_memory(derive_plan(model, replace(plan, ep=1), 8), Framework())
    assert alike.optimizer == 12 * model.parameters / 8


def test_virtual_stages_have_the_layers_of_their_places() -> None:
    model = small(**{**KINDS, "runs": (LayerRun(layers=1, experts=1), LayerRun(layers=7))})
    plan = ParallelPlan(pp=2, chunks=2, schedule="interleaved", global_batch=8)
    assert [runs_of(model, plan, stage) for stage in (0, 1)] == [(((0, 1), (1, 1)), ((1, 2),)), (((1, 2),), ((1, 2),))]
    assert estimate(model, plan, gpus(2), Framework()).seconds > 0


@pytest.mark.parametrize(
    ("plan", "said"),
    [({"ep": 3, "dp": 3, "global_batch": 3}, "ep 3 does not divide 8 experts"),
     ({"tp": 16}, "tp 16 does not divide a shared-expert width of 520"), ({"pp": 3}, "does not divide 8 layers")],
)  # fmt: skip
def test_plans_that_do_not_fit_are_refused(plan: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongPlan, match=said):
        derive_plan(small(**{**KINDS, "shared": 520}), ParallelPlan(**{"global_batch": 48, **plan}), 48)


def test_a_group_that_divides_no_width_serves_nothing() -> None:
    with pytest.raises(WrongPlan, match="tp 16 does not divide a shared-expert width of 520"):
        one_pass(small(**{**KINDS, "shared": 520}), MicrobatchSlice(1, 1, 64, 16, cache=True), gpus(16), Framework(steady=False))


def test_a_simulated_step_takes_as_long_as_the_closed_form() -> None:
    """Two ways to one answer: stages of unequal layers, with experts over replicas."""
    model = {
        "kind": "transformer", "layers": 6, "hidden": 1024, "heads": 8, "ffn": 512, "gated": True, "experts": 16, "top_k": 2,
        "latent": {"rank": 128, "query_rank": 256, "plain": 64, "rotary": 32, "values": 64}, "shared": 512, "vocab": 32000,
        "runs": [{"layers": 1, "experts": 1, "ffn": 4096}, {"layers": 5}], "sequence": 1024, "positions": "rotary", "bias": False,
    }  # fmt: skip
    train = {"model": model, "global_batch": 64, "parallel": {"tp": 2, "pp": 2, "ep": 2}}
    found = api.simulate("dgx-h100", {"hwsim": "workload/1", "train": train})
    plan = ParallelPlan(tp=2, pp=2, ep=2, global_batch=64, sequence_parallel=True)
    step = estimate(
        read_model(tree_of({"hwsim": "model/1", **model})), plan, cluster_of(api.load_machine("dgx-h100")),
        load_framework("megatron-core"),
    )  # fmt: skip
    assert found.trainings[0].step_s == pytest.approx(step.seconds, rel=0.03)


# ---- caches and weights of servers ----


def test_windows_bound_the_cache_where_the_model_says_so() -> None:
    every = small(runs=(LayerRun(layers=3, window=128), LayerRun(layers=1)))
    bounded = replace(every, cache="window")
    assert every.kv_bytes() == bounded.kv_bytes()
    assert (every.cached(4096), bounded.cached(4096), bounded.cached(100)) == (4096, 0.75 * 128 + 0.25 * 4096, 100)
    pair = [
        serve(case, gpus(1), Framework(steady=False), phase="decode", tp=1, batch=4, prompt=2000, output=100, dtype="bf16")
        for case in (every, bounded)
    ]
    assert pair[1].memory.cache == pytest.approx(pair[0].memory.cache * bounded.cached(2100) / 2100)
    assert pair[0].capacity == pair[1].capacity
    assert (pair[1].held or 0) > 2 * (pair[0].held or 0)


def test_heads_that_differ_by_layer_share_the_cache_by_their_bytes() -> None:
    model = small(kv_heads=8, cache="window", runs=(LayerRun(layers=1, window=64), LayerRun(layers=1, kv_heads=2, head=128)))
    assert model.kv_bytes() == 4 * 2 * 2 * (8 * 64 + 2 * 128)
    assert model.caching == ((8 * 64 / (8 * 64 + 256), 64), (256 / (8 * 64 + 256), 0))


def test_narrow_weights_take_less_memory_and_are_read_faster() -> None:
    """With scales for blocks; vLLM's experts in eight bits with one scale for a matrix were measured slower on Hopper."""
    gpu = api.load_machine("dgx-h100").device("gpu0").model
    assert isinstance(gpu, Gpu)
    times = KernelTimes(gpu, load_framework("vllm"))
    plain = small(hidden=4096, heads=32, experts=8, top_k=2)
    seconds = []
    formats = (
        QuantizedWeights(format="fp8", group=128),
        QuantizedWeights(format="int4", group=128),
        QuantizedWeights(format="mxfp4", of="experts", group=32),
    )
    for quantised in (None, *formats):
        model = replace(plain, quantised=quantised)
        part = served_slice(1, 1, 512, 1, "bf16", "flash", gpu, quantised)
        seconds.append(sum(map(times.seconds, forward(model, part))))
        assert part.stored == "bf16"  # the cache has the format that is computed in
        narrow = 0 if quantised is None else model.layers * model.narrow
        width = 2.0 if quantised is None else quantised.width
        assert serving_memory(model, 1, 0).weights == pytest.approx(2 * (model.parameters - narrow) + narrow * width)
    assert all(second < seconds[0] for second in seconds[1:])
    narrow_room, room = (
        cache_room(model, 1, 80e9, "bf16", PLAIN)[1]
        for model in (replace(plain, quantised=QuantizedWeights(format="int4")), plain)
    )
    assert narrow_room is not None
    assert room is not None
    assert narrow_room > room
