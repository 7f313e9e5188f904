"""Kernels of a layer: the operations of the formulas, what decoding reads, experts, windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.devices import Gpu
from hwsim.models import (
    KernelTimes,
    MicrobatchSlice,
    backward,
    forward,
    load_framework,
)
from hwsim.models.architectures.layer_parts import LayerRun
from hwsim.models.inference import served_slice
from hwsim.ops.matmul import Matmul
from hwsim.ops.moe import Moe
from hwsim.ops.op import Scope
from tests.model_cases import products, small


@given(st.sampled_from(["plain", "flash"]), st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_kernels_of_a_layer_do_the_flop_of_the_formula(attention: str, tensor: int, batch: int) -> None:
    model, s = small(causal=False), 256
    part = MicrobatchSlice(batch, s, s, tensor, attention=attention)  # type: ignore[arg-type]
    formula = batch * s * (model.forward_flop(s) - 2 * model.vocab * model.hidden) / model.layers
    assert tensor * products(forward(model, part)) == pytest.approx(formula)
    more = 2.5 if attention == "flash" else 2.0
    scores = batch * s * 4 * model.queries * s
    assert tensor * products(backward(model, part)) == pytest.approx(2 * formula + (more - 2) * scores)


def test_causal_flash_attention_leaves_out_half() -> None:
    part = MicrobatchSlice(1, 512, 512)
    whole = next(kernel for kernel in forward(small(causal=False), part) if kernel.flash)
    assert next(kernel for kernel in forward(small(), part) if kernel.flash).work.flop == whole.work.flop / 2


def test_a_token_that_is_decoded_reads_the_cache_of_all_before_it() -> None:
    model = small(kv_heads=4)
    kernel = next(call for call in forward(model, MicrobatchSlice(3, 1, 5000)) if call.flash)
    assert kernel.work.reads == pytest.approx(3 * 5000 * model.kv_bytes() / model.layers, rel=1e-3)


def test_experts_compute_what_the_tokens_ask_for() -> None:
    dense, sparse = small(ffn=4096), small(ffn=4096, experts=8, top_k=2)
    part = MicrobatchSlice(4, 512, 512)
    usual = sum(call.work.flop for call in forward(dense, part) if call.name in ("up", "down"))
    kernels = [call for call in forward(sparse, part) if call.name.startswith("experts-")]
    assert sum(call.times * call.work.flop for call in kernels) == 2 * usual
    assert products(backward(sparse, part)) == pytest.approx(
        2 * products(forward(sparse, part)), rel=0.05
    )  # attention: 2.5 times
    for split, whole in zip(forward(sparse, replace(part, expert=4)), forward(sparse, part), strict=True):
        assert split.times * split.work.flop == whole.times * whole.work.flop  # a quarter of the experts, tokens of four GPUs


def test_experts_of_a_server_take_what_the_op_takes() -> None:
    machine, model = api.load_machine("dgx-h100"), small(hidden=2048, ffn=1024, gated=True, experts=16, top_k=4)
    gpu = machine.device("gpu0").model
    assert isinstance(gpu, Gpu)
    cases: tuple[tuple[int, str, Literal["bf16", "fp8-block"]], ...] = (
        (7, "bf16", "bf16"), (600, "bf16", "bf16"), (600, "fp8", "fp8-block"),
    )  # fmt: skip
    for tokens, dtype, weights in cases:
        part = served_slice(1, tokens, tokens, 1, dtype, "flash", gpu)
        [drawn] = [call for call in forward(model, part) if call.name == "experts"]
        op = Moe(device="gpu0", tokens=tokens, hidden=2048, inner=1024, experts=16, top_k=4, weights=weights)
        cost = op.lower(Scope(machine)).cost
        times = KernelTimes(gpu, load_framework("vllm"))
        assert 1 - drawn.work.experts.active / 16 == pytest.approx((1 - 4 / 16) ** tokens)  # experts without a token are idle
        assert times.seconds(drawn) == pytest.approx(cost.demand.alone(machine.rates()), rel=0.1)


def test_a_framework_serves_by_its_own_products_and_casts_before_them() -> None:
    machine, model = api.load_machine("dgx-h100"), small(hidden=4096)
    gpu = machine.device("gpu0").model
    assert isinstance(gpu, Gpu)
    [up] = [kernel for kernel in forward(model, served_slice(1, 64, 64, 1, "fp8", "flash", gpu)) if kernel.name == "up"]
    seconds = {}
    for software in ("", "vllm"):
        op = Matmul(device="gpu0", m=64, n=16384, k=4096, dtype="fp8", cast=True, software=software)
        cost = op.lower(Scope(machine)).cost
        seconds[software] = cost.demand.alone(machine.rates())
        framework = replace(load_framework("vllm"), software=software)
        assert KernelTimes(gpu, framework).seconds(up) == pytest.approx(seconds[software])
    assert load_framework("vllm").software == "vllm"
    assert seconds[""] != seconds["vllm"]


# ---- windows ----


def test_a_window_bounds_what_a_token_sees_and_reads() -> None:
    whole, near = small(), small(window=512)
    for part in (MicrobatchSlice(3, 1, 5000), MicrobatchSlice(1, 4096, 4096), MicrobatchSlice(2, 1024, 30000)):
        [a], [b] = ([kernel for kernel in forward(model, part) if kernel.flash] for model in (whole, near))
        assert b.work.flop < 0.3 * a.work.flop
        assert b.work.reads <= a.work.reads
    [step] = [kernel for kernel in forward(near, MicrobatchSlice(3, 1, 5000)) if kernel.flash]
    assert step.work.reads == pytest.approx(3 * 512 * near.kv_bytes() / near.layers, rel=0.02)
    [a], [b] = ([call for call in forward(model, MicrobatchSlice(3, 1, 300)) if call.flash] for model in (whole, near))
    assert (a.work.flop, a.work.reads) == (b.work.flop, b.work.reads)  # no window is full yet


def test_layers_with_a_window_and_without_take_their_parts() -> None:
    gpu = api.load_machine("dgx-h100").device("gpu0").model
    assert isinstance(gpu, Gpu)
    times = KernelTimes(gpu, load_framework("vllm"))

    def seconds(part: MicrobatchSlice, **keys: Any) -> float:
        return sum(times.seconds(call) for call in (*forward(small(**keys), part), *backward(small(**keys), part)) if call.flash)

    part = MicrobatchSlice(1, 8192, 8192)
    assert seconds(part, window=1024) < 0.4 * seconds(part)
    full = small(window=1024, runs=(LayerRun(layers=3), LayerRun(layers=1, window=0))).forward_flop(8192)
    assert small(window=1024).forward_flop(8192) < full < small().forward_flop(8192)


def test_a_window_looks_backward() -> None:
    assert "requires causal attention" in next(small(window=64, causal=False).problems())[1]
