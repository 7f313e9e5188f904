"""The time of one iteration of a served model: lines between knots, graphs, exchanges."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.api import load_machine
from hwsim.models import cluster_of, load_framework, load_transformer
from hwsim.models.architectures import transformer_layers as blocks
from hwsim.models.architectures.layer_parts import QuantizedWeights
from hwsim.models.architectures.slices import MicrobatchSlice, product
from hwsim.models.inference import one_pass, served_slice
from hwsim.models.iteration import Iterations, sends
from hwsim.models.kernel_times import KernelTimes
from tests.served import dgx

GRAPHS = (1, 2, 4, *range(8, 257, 8))


@cache
def iterations(model: str = "llama-3-8b", tp: int = 1, graphs: tuple[int, ...] = ()) -> Iterations:
    framework = load_framework("vllm")
    times = KernelTimes(cluster_of(dgx()).gpu, framework)
    return Iterations(load_transformer(model), times, tp, "bf16", graphs)


@given(st.integers(1, 256))
def test_a_graph_takes_as_long_as_it_is_large(answers: int) -> None:
    padded, exact = iterations(graphs=GRAPHS), iterations()
    size = padded.padded(answers)
    assert size == min(graph for graph in GRAPHS if graph >= answers)
    assert padded.linear(answers) == exact.linear(size)
    assert padded.answers(answers, 1000.0) == exact.answers(answers, 1000.0)


def test_beyond_the_largest_graph_nothing_is_padded() -> None:
    served = iterations(graphs=GRAPHS)
    assert served.padded(256) == 256
    assert served.padded(257) == 257
    assert served.padded(0) == 0


def test_exchanges_are_two_sums_of_each_layer() -> None:
    [found] = sends(load_transformer("llama-3-70b"), 16, tp=8)
    assert found == ("all-reduce", 16 * 8192 * 2.0, 8, 2 * 80)


# ---- tables ----


def apart(model: str, batch: int, tokens: int, context: int, tp: int = 1, machine: str = "dgx-h100") -> float:
    """Seconds of a pass, kernel by kernel."""
    cluster, framework, network = cluster_of(load_machine(machine)), load_framework("vllm"), load_transformer(model)
    part = served_slice(batch, tokens, context, tp, "bf16", framework.attention, cluster.gpu, network.quantised)
    one = one_pass(network, part, replace(cluster, reducing=lambda *_: 0.0), framework)
    return one.seconds


@pytest.mark.parametrize("model", ["llama-3-8b", "gemma-3-1b", "gpt-oss-20b", "mixtral-8x7b", "deepseek-v3"])
@pytest.mark.parametrize(("batch", "context"), [(1, 700), (3, 33), (24, 3000), (200, 1000)])
def test_tables_have_what_the_kernels_take_in_a_step(model: str, batch: int, context: int) -> None:
    tp = 8 if model == "deepseek-v3" else 1
    exact = apart(model, batch, 1, context, tp)
    assert iterations(model, tp).of((), batch, context, batch).seconds == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("model", ["llama-3-8b", "gemma-3-1b", "gpt-oss-20b", "deepseek-v3"])
@pytest.mark.parametrize(("batch", "tokens", "cached"), [(1, 1, 0), (1, 500, 0), (4, 777, 0), (2, 300, 2000), (1, 5001, 3)])
def test_tables_have_what_the_kernels_take_of_prompts(model: str, batch: int, tokens: int, cached: int) -> None:
    tp = 8 if model == "deepseek-v3" else 1
    exact = apart(model, batch, tokens, tokens + cached, tp)
    found = iterations(model, tp).of(((tokens, cached),) * batch, 0, 0.0, batch).seconds
    assert found == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("machine", ["dgx-b200", "rtx-pro-6000-8", "p3.16xlarge"])
def test_tables_are_of_the_gpu(machine: str) -> None:
    gpu, framework = cluster_of(load_machine(machine)).gpu, load_framework("tensorrt-llm")
    times = KernelTimes(gpu, framework)
    for dtype in ("bf16" if "bf16" in gpu.flop else "fp16", "fp8"):
        part = MicrobatchSlice(
            1, 130, 130, dtype=dtype if dtype != "fp8" else "bf16", products="fp8" if dtype == "fp8" else "", cache=True
        )
        rows = np.array([1.0, 16.0, 17.0, 130.0, 4096.0])
        found = times.by_rows(product("up", 130, 2048, 4096, part), rows)
        if found is not None:
            exact = [times.seconds(product("up", int(row), 2048, 4096, part)) for row in rows]
            assert found[0] == pytest.approx(exact, rel=1e-12)


# ---- groups, stages, verification ----


@cache
def sparse(**layout: int) -> Iterations:
    framework = load_framework("vllm")
    return Iterations(
        load_transformer("qwen3-30b-a3b"),
        KernelTimes(cluster_of(dgx()).gpu, framework),
        layout["tp"],
        "bf16",
        (),
        tokens=layout.get("tokens", 1),
        groups=layout.get("groups", 1),
        ep=layout.get("ep", 1),
    )


def test_groups_share_sequences_and_all_see_the_tokens_of_all() -> None:
    alone, groups = sparse(tp=1), sparse(tp=1, groups=4, ep=4)
    assert groups.answers(64, 2000.0) == alone.answers(16, 2000.0)
    assert groups.rows_of((), 64) == 16
    assert groups.output(64) == alone.output(16)
    one, all_of_them = groups.linear(16, 16), groups.linear(16, 64)
    assert one.seconds < all_of_them.seconds  # experts of one group's tokens, and of all groups'
    assert one.seconds > alone.linear(16).seconds / 4


def test_a_prompt_of_one_group_is_no_prompt_of_all() -> None:
    groups = sparse(tp=1, groups=4, ep=4)
    one, four = groups.of([(2000, 0)], 0, 0.0, 1), groups.of([(2000, 0)] * 4, 0, 0.0, 4)
    assert one.seconds < 0.8 * four.seconds
    assert groups.read([(2000, 0)]) == groups.read([(2000, 0)] * 4)


def test_exchanges_of_groups_gather_and_scatter_around_experts() -> None:
    model = load_transformer("deepseek-v3")
    found = {send.operation: send for send in sends(model, 10, tp=2, groups=4, pp=3)}
    assert {name: (send.ranks, send.times) for name, send in found.items()} == {
        "all-reduce": (2, 2 * 61 - 58), "all-gather": (8, 58), "reduce-scatter": (8, 58), "send": (2, 2),
    }  # fmt: skip
    assert found["all-gather"].size == 4 * found["all-reduce"].size == 4 * 10 * 7168 * 2
    assert sends(model, 10, tp=1) == ()


def test_few_tokens_leave_experts_idle_and_many_do_not() -> None:
    [kernel] = [row_kernel for row_kernel, _ in sparse(tp=1)._row_kernels(4, experts=True)]
    assert kernel.work.experts is not None
    assert kernel.work.experts.active == pytest.approx(128 * (1 - (1 - 8 / 128) ** 4))
    [busiest] = [row_kernel for row_kernel, _ in sparse(tp=1, groups=8, ep=8)._row_kernels(4, experts=True)]
    assert busiest.work.experts is not None
    assert 32 < busiest.work.experts.pairs < 2 * 32  # of 256 pairs of all, the GPU with most has more than an eighth


def test_verified_tokens_pass_together_and_read_the_cache_once() -> None:
    one, four = sparse(tp=1), sparse(tp=1, tokens=4)
    assert four.of((), 16, 4000.0, 16).seconds < 2.5 * one.of((), 16, 4000.0, 16).seconds
    assert four.answers(16, 4000.0).memory == pytest.approx(one.answers(16, 4000.0).memory, rel=0.05)
    assert four.rows_of((), 16) == 64


def test_a_cache_in_eight_bits_is_read_in_half_the_time() -> None:
    framework, gpu = load_framework("tensorrt-llm"), cluster_of(dgx()).gpu
    of = {
        kept: Iterations(load_transformer("llama-3-8b"), KernelTimes(gpu, framework), 1, "bf16", cache=kept).answers(128, 8000.0)
        for kept in ("bf16", "fp8")
    }
    assert 0.4 < of["fp8"].seconds / of["bf16"].seconds < 0.7


@given(st.integers(2, 16), st.integers(1, 500), st.integers(1, 8192), st.integers(1, 16))
def test_unequal_groups_exchange_as_long_as_what_most_of_them_pass(groups: int, answers: int, read: int, prompts: int) -> None:
    served = copy(iterations())
    served.groups = groups
    tokens = ((read, 0),) * prompts
    rows, total = served.rows_of(tokens, answers), served.total_of(tokens, answers)
    alike = served.passing(rows, total)
    assert -(-total // groups) <= alike <= rows
    if groups == 2 or (prompts >= groups and not (prompts % groups or answers % groups)):
        assert alike == rows
    assert served.passing(rows, rows * groups) == rows


@pytest.mark.parametrize(("group", "kernel"), [(16384, "flash fp8-block"), (None, "flash fp8")])
def test_experts_in_eight_bits_have_the_kernel_of_their_scales(group: int | None, kernel: str) -> None:
    model = replace(load_transformer("qwen3-30b-a3b"), quantised=QuantizedWeights(format="fp8", group=group))
    gpu = cluster_of(dgx()).gpu
    part = served_slice(1, 16, 16, 1, "bf16", "flash", gpu, model.quantised)
    calls = [op.work.experts for kind in model.kinds for op in blocks.forward(kind, part) if op.work.experts is not None]
    assert {call.kernel for call in calls} == {kernel}
