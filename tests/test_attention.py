"""Fused attention: kernels of a GPU, the op, and what a class says of a bare part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwsim import api
from hwsim.devices import AttentionCall, Gpu
from hwsim.devices.gpu_attention import AttentionKernels, DecodeKernel, KernelRates, PrefillKernel, names_of
from hwsim.devices.gpu_experts import ExpertKernels, blocks_of, experts_call, tokens_of
from hwsim.devices.gpu_memory import Level2
from hwsim.devices.roofline import LocalMemory
from hwsim.devices.work import ExpertsCall, Work
from hwsim.spec import SpecError

RATES = KernelRates(peak=1e15, exponentials=4e12, bandwidth=3e12, read=2.5e12, multiprocessors=132.0, cache=50e6)
CALL = AttentionCall(4, 2048, 0, 32, 8, 128)
STEP = AttentionCall(64, 1, 4096, 32, 8, 128)
GPU = Gpu(flop={"bf16": 1e15, "fp8": 2e15}, memory=LocalMemory(3e12), sms=132, clock=1.9e9)


def prefill(call: AttentionCall, kernel: PrefillKernel | None = None) -> float:
    kernel = kernel or PrefillKernel()
    return kernel.parts(call, RATES, kernel.reached(call.head, RATES)).seconds


def decode(call: AttentionCall, kernel: DecodeKernel | None = None) -> float:
    return (kernel or DecodeKernel()).parts(call, RATES).seconds


def changed(call: AttentionCall, **keys: float) -> AttentionCall:
    return AttentionCall(**{name: keys.get(name, getattr(call, name)) for name in AttentionCall.__dataclass_fields__})


@pytest.mark.parametrize("key", ["sequences", "queries", "cached", "heads"])
def test_more_work_takes_longer(key: str) -> None:
    last = 0.0
    for factor in (1, 2, 5, 16):
        seconds = prefill(changed(CALL, **{key: factor * (getattr(CALL, key) or 512)}))
        assert seconds >= last
        last = seconds


def test_a_window_and_a_mask_save_work() -> None:
    assert prefill(changed(CALL, window=128)) < prefill(CALL) < prefill(changed(CALL, causal=0))
    assert decode(changed(STEP, window=128)) < decode(STEP)


def test_one_block_more_than_multiprocessors_costs_a_part_of_a_wave() -> None:
    full = AttentionCall(1, 128, 0, 132, 132, 128)
    more = AttentionCall(1, 128, 0, 133, 133, 128)
    kernel = PrefillKernel(lost=1.0, alone=1.0, queries=0.0, keys=0.0)
    one, two = (kernel.parts(call, RATES, 0.5).computing for call in (full, more))
    assert two > 1.9 * one


def test_long_sequences_reach_the_share_of_the_table() -> None:
    kernel = PrefillKernel(share={"128": 0.6})
    call = AttentionCall(8, 32768, 0, 32, 8, 128)
    reached = call.flop / (prefill(call, kernel) * RATES.peak)
    assert 0.55 < reached <= 0.6


def test_between_head_sizes_the_inverse_of_the_share_is_linear_in_the_inverse_of_the_size() -> None:
    kernel = PrefillKernel(share={"64": 0.4, "256": 0.7})
    middle = 1 / kernel.reached(128, RATES)
    assert middle == pytest.approx(1 / 0.7 + (1 / 0.4 - 1 / 0.7) * (1 / 128 - 1 / 256) / (1 / 64 - 1 / 256))


@pytest.mark.parametrize(("kernel", "alone"), [(None, 5e-6), (7e-6, 7e-6)])
def test_a_call_that_writes_no_cache_starts_in_half_the_time_or_in_its_own(kernel: float | None, alone: float) -> None:
    blocks = PrefillKernel(start=10e-6, kernel=kernel)
    starts = [blocks.parts(changed(CALL, written=written), RATES, 0.5).start for written in (1.0, 0.0)]
    assert starts == [10e-6, alone]


def test_decoding_reads_the_cache_no_faster_than_memory_does() -> None:
    assert decode(STEP) > STEP.keys / RATES.bandwidth
    assert decode(changed(STEP, kv_width=1.0)) < decode(STEP)
    small = AttentionCall(2, 1, 4096, 32, 8, 128)  # fits the last cache, which only a repeated call finds there
    assert decode(changed(small, warm=1.0)) < decode(small)


def test_a_block_costs_its_time_however_short_its_strip() -> None:
    many = AttentionCall(2048, 1, 3, 64, 1, 64)
    assert decode(many, DecodeKernel(widest=32)) > 3 * decode(many, DecodeKernel(heads=64))
    assert decode(AttentionCall(1, 1, 65535, 8, 8, 128), DecodeKernel(lone=False)) > 2 * decode(
        AttentionCall(1, 1, 65535, 8, 8, 128)
    )


def test_arrays_give_what_numbers_give() -> None:
    tokens = np.array([1.0, 100.0, 4096.0])
    kernel = PrefillKernel(packed=True)
    many = kernel.parts(AttentionCall(2, tokens, 0.0 * tokens, 32, 8, 128), RATES, 0.5).seconds  # type: ignore[arg-type]
    one = [kernel.parts(AttentionCall(2, float(token), 0, 32, 8, 128), RATES, 0.5).seconds for token in tokens]
    assert np.allclose(many, one)


def test_the_kernel_that_fits_best_is_taken() -> None:
    kernels = AttentionKernels(
        prefill={"flash": PrefillKernel(), "tensorrt fp8": PrefillKernel(), "flash window": PrefillKernel()}
    )
    assert kernels.blocks(CALL, "fp8")[0] == "flash"
    assert kernels.blocks(changed(CALL, window=128), "bf16")[0] == "flash window"
    tensorrt = AttentionCall(1, 64, 0, 8, 8, 128, library="tensorrt")
    assert kernels.blocks(tensorrt, "fp8")[0] == "tensorrt fp8"
    assert names_of(changed(CALL, causal=0), "bf16")[0] == "flash encoder"
    assert kernels.strips(STEP, "bf16")[0] == ""


def test_a_gpu_knows_its_kernels_by_name_or_by_one_share() -> None:
    work = Work(flop=CALL.flop, dtype="bf16", mix="matmul", attention=CALL)
    named = Gpu(
        flop=GPU.flop,
        memory=GPU.memory,
        sms=132,
        clock=1.9e9,
        attention=AttentionKernels(prefill={"flash": PrefillKernel(share={"128": 0.3})}),
    )
    alike = Gpu(flop=GPU.flop, memory=GPU.memory, sms=132, clock=1.9e9, attention=0.3)
    fast = Gpu(flop=GPU.flop, memory=GPU.memory, sms=132, clock=1.9e9, attention=0.6)
    seconds = [gpu.compute("gpu0", work).demand.alone({"gpu0.compute": 1, "gpu0.memory": 1}) for gpu in (named, alike, fast)]
    assert seconds[0] == seconds[1] > 1.8 * seconds[2]


MACHINE = "hwsim: machine/1\nparts:\n  gpu0: {kind: gpu, %s}\n  cpu: {kind: cpu, use: d2l-laptop-cpu}\n"
PROGRAM = "hwsim: workload/1\nname: attention\nprogram:\n  - attention: {device: gpu0, heads: 32, kv_heads: 8, head: 128, %s}\n"


def makespan(machine: str, program: str) -> float:
    return api.simulate(api.load_machine(MACHINE % machine), PROGRAM % program).makespan_s


def test_a_bare_part_has_the_kernels_of_its_class() -> None:
    bare = (
        "vendor: nvidia, generation: hopper, flop: {bf16: 989 TFLOP/s}, memory: {bandwidth: 3.35 TB/s}, sms: 132, clock: 1.98 GHz"
    )
    for program in ("batch: 4, tokens: 4096", "batch: 64, cached: 4096"):
        assert makespan(bare, program) == pytest.approx(makespan("use: h100-sxm", program), rel=0.2)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("tokens: 64, kv_heads: 5", "`kv_heads: 5` does not divide"),
        ("kernel: flahs", ":4:16: 'gpu0' has no kernels 'flahs' in its `attention`(?s:.*)did you mean 'flash'"),
        ("kernel: mine", "known: flash, sdpa, sglang, tensorrt"),
        ("phase: decode", "phase"),
    ],
)
def test_calls_that_cannot_be_are_refused(keys: str, said: str, tmp_path: Path) -> None:
    text = PROGRAM.replace("kv_heads: 8, ", "") if "kv_heads" in keys else PROGRAM
    with pytest.raises(SpecError, match=said):
        api.simulate(api.load_machine(MACHINE % "use: h100-sxm"), text % keys)


def experts(tokens: int, top_k: int = 2, count: int = 32, skew: float = 0.0) -> float:
    each = tokens_of(tokens, top_k, count, skew)
    call = ExpertsCall(tokens, float(sum(each)), float(sum(one > 0 for one in each)), blocks_of(each), 4096, 2048)
    return ExpertKernels().seconds(call, RATES)


def test_experts_take_longer_with_more_tokens_and_read_the_weights_of_those_in_use() -> None:
    seconds = [experts(tokens) for tokens in (1, 4, 16, 256, 4096, 65536)]
    assert seconds == sorted(seconds)
    assert seconds[2] > 3 * 32 * 4096 * 2048 * 2 / RATES.bandwidth
    assert experts(1, top_k=1) < experts(1, top_k=8)


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.2])
def test_every_token_goes_to_its_experts(skew: float) -> None:
    each = tokens_of(1000, 8, 64, skew)
    assert sum(each) == 8000
    assert len(each) == 64
    assert blocks_of(each)[0] >= 8000 / 8


@pytest.mark.parametrize(
    ("device", "keys", "said"),
    [
        ("gpu0", "top_k: 9", "`top_k: 9` exceeds `experts: 8`"),
        ("gpu0", "kernel: tensorflow", "'gpu0' has no kernels 'tensorflow' in its `experts`"),
        ("cpu", "kernel: flash", "'cpu' is a cpu: `kernel` requires a gpu"),
    ],
)
def test_experts_that_cannot_be_are_refused(device: str, keys: str, said: str) -> None:
    program = (
        "hwsim: workload/1\nname: experts\nprogram:\n  - moe: {device: %s, tokens: 8, hidden: 64, inner: 64, experts: 8, %s}\n"
    )
    with pytest.raises(SpecError, match=said):
        api.simulate(api.load_machine(MACHINE % "use: h100-sxm"), program % (device, keys))


def test_another_library_stands_for_one_that_was_not_measured() -> None:
    gpu = Gpu(flop=GPU.flop, memory=GPU.memory, sms=132, clock=1.9e9, experts={"tensorrt bf16": ExpertKernels(efficiency=0.3)})
    times = []
    for kernel in ("tensorrt bf16", "vllm bf16", "flash fp8"):
        call = experts_call(4096, 2, 8, 4096, 4096, 2, kernel, weight=2.0)
        cost = gpu.compute("gpu0", Work(flop=call.flop, dtype="bf16", mix="matmul", experts=call))
        times.append(
            (cost.demand.alone({"gpu0.compute": 1, "gpu0.memory": 1}), {doubt.case for term in cost.why for doubt in term.doubts})
        )
    assert times[0] == times[1]
    assert times[2][0] < 0.7 * times[0][0]
    assert times[2][1] == {"outside"}


def test_experts_of_a_bare_part_take_about_what_those_of_its_class_take() -> None:
    bare = (
        "vendor: nvidia, generation: hopper, flop: {bf16: 989 TFLOP/s}, memory: {bandwidth: 3.35 TB/s}, sms: 132, clock: 1.98 GHz"
    )
    keys = "device: gpu0, tokens: 512, hidden: 4096, inner: 1536, experts: 64, top_k: 4"
    program = f"hwsim: workload/1\nname: experts\nprogram:\n  - moe: {{{keys}}}\n"
    times = [api.simulate(api.load_machine(MACHINE % part), program).makespan_s for part in (bare, "use: h100-sxm")]
    assert times[0] == pytest.approx(times[1], rel=0.3)


def test_experts_that_are_all_padded_take_as_long_for_few_tokens_as_for_some() -> None:
    """DeepGEMM's published rates of grouped products on an H800, and rows of 128 experts that a graph has room for."""
    kernel = ExpertKernels(efficiency=0.705, edge=0.0, prologue=558.0, rate=4e11, padded=128)
    rates = KernelRates(peak=1.979e15, exponentials=4e12, bandwidth=3.35e12, read=3e12, multiprocessors=132.0, cache=50e6)

    def seconds(tokens: int, kernel: ExpertKernels) -> float:
        return kernel.seconds(experts_call(tokens, 8, 128, 4096, 768, 2, "", weight=1.0), rates)

    assert seconds(1, kernel) < seconds(4, kernel) < 1.05 * seconds(1, kernel)
    assert seconds(4, ExpertKernels(efficiency=0.705, edge=0.0, prologue=558.0, rate=4e11)) < 0.4 * seconds(4, kernel)
    for deep, reached in ((7168, 1297e12), (2048, 1099e12)):  # four experts of 8192 rows, without padding
        call = ExpertsCall(8192, 32768, 4, tuple(32768 / tile for tile in (8, 16, 32, 64, 128, 256)), deep, 4096, weight=1.0)
        assert 2 * 32768 * 4096 * deep / kernel.product(call, rates, 4096, deep) == pytest.approx(reached, rel=0.04)


def test_experts_few_tokens_go_to_draw_the_bytes_of_their_weights() -> None:
    call = experts_call(8, 2, 8, 4096, 4096, 2, "tensorrt bf16", weight=2.0)
    gpu = Gpu(flop=GPU.flop, memory=GPU.memory, sms=132, clock=1.9e9, experts={"tensorrt bf16": ExpertKernels(efficiency=0.9)})
    cost = gpu.compute("gpu0", Work(flop=call.flop, dtype="bf16", mix="matmul", experts=call))
    weights = call.active * 3 * 4096 * 4096 * 2.0
    assert dict(cost.demand.amounts)["gpu0.memory"] == pytest.approx(weights / GPU.memory.bandwidth)
    assert cost.demand.share == pytest.approx(weights)
    assert {(name, unit): amount for name, amount, unit in cost.moved}["gpu0.memory", "B"] == pytest.approx(weights)


@pytest.mark.parametrize(("warm", "part"), [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)])
def test_what_the_last_cache_still_holds_of_before_is_not_read_from_memory(warm: float, part: float) -> None:
    """A question of 64 tokens after 2048, whose keys and values (8.4 MB) are a sixth of the cache."""
    gpu = replace(GPU, l2=Level2(size=50e6))
    call = AttentionCall(1, 64, 2048, 32, 8, 128, warm=warm)
    work = Work(dtype="bf16", attention=call)
    assert call.old == 2048 * 8 * 128 * 2 * 2
    assert gpu.attend(work, call)[2] == pytest.approx(part * call.old / GPU.memory.bandwidth, abs=5e-8)
