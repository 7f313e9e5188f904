"""Networks of convolutions: published counts, and laws of their kernels, steps and memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.demand import Cost, Demand
from hwsim.devices import Gpu
from hwsim.devices.convolution import ConvolutionPass
from hwsim.devices.convolution_speeds import CONVOLUTION_SPEEDS, units_of
from hwsim.devices.gpu_convolution import scale_kernel
from hwsim.models.architectures.cnn import Cnn
from hwsim.models.architectures.entries import Basic, Bottleneck, Branches, Conv, Entry, Pooling
from hwsim.models.architectures.unit_layers import activation_bytes, layers_of, optimizer
from hwsim.models.architectures.units import WrongNetwork
from hwsim.models.framework import Software
from hwsim.models.inference import batch_pass
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Item
from hwsim.models.layer import kernels as kernels_of
from hwsim.models.library import describe_model, load_network, read_model
from hwsim.models.memory import network_memory
from hwsim.models.plan import Dtype, ParallelPlan, problems
from hwsim.models.step import exposed_bucket_seconds
from hwsim.spec import SpecError, find, names, read, read_text
from published.cnn_training import data_parallel_step
from published.parts import part

# Parameters and 1e9 multiplications (forward, one image) as torchvision's and timm's documentation gives them.
PUBLISHED = {
    "lenet": (61_706, 0.0004),
    "alexnet": (61_100_840, 0.71),
    "vgg-11": (132_863_336, 7.61),
    "vgg-16": (138_357_544, 15.47),
    "vgg-19": (143_667_240, 19.63),
    "resnet-18": (11_689_512, 1.81),
    "resnet-34": (21_797_672, 3.66),
    "resnet-50": (25_557_032, 4.09),
    "resnet-50-v1": (25_557_032, 3.86),
    "resnet-101": (44_549_160, 7.80),
    "resnet-152": (60_192_808, 11.51),
    "resnext-50-32x4d": (25_028_904, 4.23),
    "resnext-101-32x4d": (44_177_704, 7.97),
    "se-resnext-101-32x4d": (48_955_416, 7.97),
    "inception-v3": (23_834_568, 5.71),
    "mlp-mnist": (203_530, 0.0002),
}
GPUS = ("k80", "p100-sxm2", "v100-sxm2-16gb", "t4", "a100-sxm-80gb", "h100-sxm")


def kernels(name: str = "v100-sxm2-16gb", software: Software | None = None) -> tuple[KernelTimes, Software]:
    software = software or Software()
    return KernelTimes(part(Gpu, name), software.kernels), software


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_counts_are_the_published_ones(name: str) -> None:
    parameters, multiplications = PUBLISHED[name]
    network = load_network(name)
    assert network.parameters == parameters
    assert network.forward_flop / 2e9 == pytest.approx(multiplications, abs=0.006)


def flop(items: Iterable[Item]) -> float:
    return sum(op.work.flop for op in kernels_of(items) if op.work.mix == "matmul")


@pytest.mark.parametrize("name", [stem for stem in names("model") if read(find("model", stem)).text("kind") in ("cnn", "mlp")])
def test_every_network_of_the_library_loads_and_adds_up(name: str) -> None:
    network = load_network(name)
    layers = layers_of(network, 2, "fp32")
    assert sum(layer.parameters for layer in layers) == network.parameters
    assert sum(flop(layer.forward) for layer in layers) == pytest.approx(2 * network.forward_flop)
    assert len(tuple(describe_model(network))) == 2
    for before, after in zip(network.chain(), network.chain()[1:], strict=False):
        assert min(before.out) >= 1
        assert min(after.into) >= 1


def test_the_backward_pass_has_twice_the_operations_but_for_the_images() -> None:
    network = load_network("resnet-50")
    layers = layers_of(network, 4, "fp16")
    back, ahead = (
        sum(flop(item) for item in items) for items in zip(*((layer.backward, layer.forward) for layer in layers), strict=True)
    )
    assert back == pytest.approx(2 * ahead - flop(layers[0].forward))


@given(
    st.integers(1, 64),
    st.integers(1, 8),
    st.integers(1, 8),
    st.sampled_from([1, 3, 5, 7]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 4]),
)
@settings(max_examples=30, deadline=None)
def test_the_three_passes_of_a_convolution_compute_the_same(
    images: int, a: int, b: int, side: int, stride: int, groups: int
) -> None:
    shape = ConvolutionPass(images, 4 * a * groups, 4 * b * groups, 14, 14, (side, side), stride, (14 * stride) ** 2, groups)
    for what in ("forward", "input", "weights"):
        product = replace(shape, what=what).product(2.0)
        padded = 2.0 * product.m * product.n * product.k * product.batch
        assert shape.flop <= padded <= shape.flop * (1 + 64 / shape.pixels)
        assert sum(replace(shape, what=what).traffic(2.0)) == sum(shape.traffic(2.0))


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_more_images_never_take_less_time(gpu: str, dtype: Dtype) -> None:
    if gpu == "k80" and dtype == "fp16":
        pytest.skip("computed in fp32, as the line before")
    asked = kernels(gpu)
    network = load_network("resnet-18")
    times = [data_parallel_step(network, batch, dtype, *asked).seconds for batch in (1, 2, 4, 7, 16, 33, 64, 128)]
    assert times == sorted(times)
    forward = [batch_pass(network, batch, dtype, *asked).seconds for batch in (1, 2, 4, 7, 16, 33, 64, 128)]
    assert forward == sorted(forward)
    assert all(one < whole for one, whole in zip(forward, times, strict=True))


def test_no_convolution_beats_the_peak_or_the_memory() -> None:
    for name in GPUS:
        gpu, (asked, _) = part(Gpu, name), kernels(name)
        for layer in layers_of(load_network("vgg-16"), 16, "fp32"):
            for op in kernels_of((*layer.forward, *layer.backward)):
                for launch in asked.choose(op):
                    assert launch.seconds >= 0.999 * launch.work.flop / max(gpu.flop.values())
                    assert launch.slower > 0


def test_the_host_binds_small_batches() -> None:
    slow = Software(dispatch=50e-6)
    one = batch_pass(load_network("resnet-50"), 1, "fp16", *kernels(software=slow))
    two = batch_pass(load_network("resnet-50"), 2, "fp16", *kernels(software=slow))
    assert one.seconds == pytest.approx(two.seconds)
    assert one.shares["host"] > one.seconds / 2


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1e8)), min_size=1, max_size=20), st.floats(1e6, 1e8))
@settings(max_examples=60, deadline=None)
def test_what_is_left_of_the_gradients_is_at_most_the_exchange_of_all(
    given_marks: list[tuple[float, float]], bucket: float
) -> None:
    marks = [(when, size) for (when, _), (_, size) in zip(sorted(given_marks), given_marks, strict=True)]
    total = sum(size for _, size in marks)
    assert exposed_bucket_seconds(marks, lambda size: size / 1e9, bucket) <= total / 1e9 + 1e-12
    assert exposed_bucket_seconds(marks, lambda size: 0.0, bucket) == pytest.approx(0.0)


def test_the_optimizer_moves_what_it_updates() -> None:
    layers = layers_of(load_network("resnet-50"), 2, "fp32")
    assert optimizer(layers).work.traffic == pytest.approx(20 * 25_557_032)


def test_memory_grows_with_the_batch_but_for_the_weights() -> None:
    plan = ParallelPlan(global_batch=8, dtype="fp32", optimizer="sgd")
    small, large = (network_memory(layers_of(load_network("resnet-50"), batch, "fp32"), plan, 0, 1) for batch in (8, 16))
    assert small.weights == large.weights == small.optimizer == 4 * 25_557_032
    assert large.activations == pytest.approx(2 * small.activations)
    half = layers_of(load_network("resnet-50"), 8, "fp16")
    assert activation_bytes(half) == pytest.approx(small.activations / 2)
    assert activation_bytes(layers_of(load_network("resnet-50"), 8, "fp16", training=False)) == 0


def test_parts_fall_into_the_generations_their_formats_tell() -> None:
    told = {(name, dtype): units_of(part(Gpu, name), dtype) for name, dtype in [
        ("k80", "fp32"), ("p100-sxm2", "fp32"), ("p100-sxm2", "fp16"), ("v100-sxm2-16gb", "fp16"), ("t4", "fp32"), ("t4", "fp16"),
        ("a100-sxm-80gb", "tf32"), ("a100-sxm-80gb", "fp16"), ("h100-sxm", "fp16")]}  # fmt: skip
    assert list(told.values()) == ["kepler", "vector", "vector", "volta", "vector-turing", "turing", "tf32", "ampere", "hopper"]
    assert set(told.values()) <= set(CONVOLUTION_SPEEDS)


def test_branches_are_put_together_and_blocks_widened_by_groups() -> None:
    conv = Entry(conv=Conv(channels=8, kernel=(1,)))
    network = Cnn(input=(4, 8, 8), layers=(Entry(branches=Branches(of=((conv,), (conv, conv), ()))),))
    assert network.chain()[-1].out == (20, 8, 8)
    wide = Cnn(input=(256, 8, 8), norm=True, layers=(Entry(bottleneck=Bottleneck(channels=64, groups=32, width=4)),))
    assert [unit.out[0] for unit in wide.chain() if unit.kind == "conv"] == [128, 128, 256]


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ((Entry(conv=Conv(channels=4, kernel=(9,), padding=(0,))),), "does not fit"),
        ((Entry(conv=Conv(channels=4, kernel=(3,), groups=3)),), "groups do not divide"),
        ((Entry(conv=Conv(channels=4, kernel=(3, 3, 3))),), "one number or two"),
        ((Entry(branches=Branches(of=((Entry(pool=Pooling(kernel=2)),), ()))),), "different output sizes"),
        ((Entry(basic=Basic(channels=4, times=10**18)),), "at most 100,000 layers"),
    ],
)
def test_layers_that_do_not_fit_together_are_told(layers: tuple[Entry, ...], words: str) -> None:
    network = Cnn(input=(4, 8, 8), layers=layers)
    with pytest.raises(WrongNetwork, match=words):
        network.chain()
    assert [key for key, _, _ in network.problems()] == ["layers"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: cnn\ninput: [3, 8, 8]\nlayers: [{conv: {channels: 4, kernel: 9, padding: 0}}]\n", "does not fit"),
        ("kind: cnn\ninput: [3, 8, 8]\nlayers: [{convolution: {channels: 4, kernel: 9}}]\n", "unknown key 'convolution'"),
        ("kind: cnn\ninput: [3, 8, 8]\nlayers: [{conv: {channels: 4, kernel: 3}, linear: {units: 2}}]\n", "one key"),
        ("kind: cnn\ninput: [3, 8, 8]\nlayers: [{}]\n", "one key"),
        ("kind: mlp\nunits: [4]\n", "`units`: expected at least an input and an output width"),
    ],
)
def test_mistakes_of_a_file_stand_at_their_place(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read_model(read_text("hwsim: model/1\n" + text))


@pytest.mark.parametrize("key", ["cp", "ep"])
def test_a_network_s_plan_says_which_key_it_cannot_have(key: str) -> None:
    plan = ParallelPlan(global_batch=8, cp=2) if key == "cp" else ParallelPlan(global_batch=8, ep=2)
    found = dict(problems(load_network("resnet-50"), plan, 8))
    assert found[key] == "a CNN or MLP has no sequences and no experts to split: use dp and pp"


@pytest.mark.parametrize(("slower", "compute", "memory"), [(2.0, 4e-3, 1e-3), (0.5, 1e-3, 0.5e-3), (0.25, 0.5e-3, 0.25e-3)])
def test_a_slower_kernel_holds_the_units_longer_and_moves_no_more(slower: float, compute: float, memory: float) -> None:
    cost = Cost(Demand(latency=0.0, amounts=(("gpu.compute", 2e-3), ("gpu.memory", 1e-3))))
    told = scale_kernel(cost, slower, {"gpu.compute": 1.0, "gpu.memory": 1.0}, "gpu.compute").demand
    assert dict(told.amounts) == {"gpu.compute": compute, "gpu.memory": memory}
    assert told.body({"gpu.compute": 1.0, "gpu.memory": 1.0}) == pytest.approx(2e-3 * slower)
