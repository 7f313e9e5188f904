"""Formulas beside their values worked out by hand, where a small slip would still look plausible."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import pytest

from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.plan import Operation, RankGroup
from hwsim.devices.convolution import ConvolutionPass
from hwsim.devices.gpu_matmul import Chip, Tiling, fastest_tile_plan
from hwsim.devices.work import MatmulShape
from hwsim.models.cluster import HOP, KNEE, NETWORK, START, Cluster
from hwsim.models.exchanges import in_training

THREE = ConvolutionPass(8, 64, 64, 56, 56, (3, 3), 1, 56)


@pytest.mark.parametrize(
    ("convolution", "ways"),
    [
        (THREE, 2),
        (replace(THREE, kernel=(5, 5)), 2),
        (replace(THREE, stride=2, high=28, wide=28), 1),
        (replace(THREE, kernel=(5, 5), stride=2, high=28, wide=28), 1),
        (replace(THREE, kernel=(1, 1)), 1),
        (replace(THREE, kernel=(7, 7)), 1),
    ],
)
def test_only_kernels_of_three_and_five_with_stride_one_are_transformed(convolution: ConvolutionPass, ways: int) -> None:
    assert len(list(convolution.ways("fp32", matrix_units=False))) == ways
    assert len(list(convolution.ways("fp16", matrix_units=True))) == 1


@pytest.mark.parametrize("pixels", [0.01, 1.0, 100.0])
def test_a_message_between_nodes_loses_up_to_the_knee(pixels: float) -> None:
    cluster = Cluster(gpu=None, gpus=4, per_node=1, inside={}, across=1e9, pair=1e9)  # type: ignore[arg-type]
    crossing = pixels * KNEE
    size = crossing * 4 / (2 * 3)  # a ring of four sends 2 (n - 1)/n of it
    lost = KNEE * (1 - math.exp(-pixels))
    steps = START + 2 * 3 * HOP
    assert cluster.seconds("all-reduce", size, 4) == pytest.approx(steps + (crossing + lost) / (1e9 * NETWORK))
    assert KNEE == 8e6


@pytest.mark.parametrize(("m", "n"), [(16, 4096), (4096, 16), (16, 16), (4096, 4096)])
def test_a_tile_loads_no_more_rows_and_columns_than_the_product_has(m: int, n: int) -> None:
    chip, tiling = Chip(multiprocessors=4, peak=4e12, bandwidth=1e12), Tiling(largest=128 * 128, loads=4e10)
    product = MatmulShape(m, n, 1024)
    cut = fastest_tile_plan(product, (2, 1), tiling, chip, 0.0)
    loaded = (2 * min(cut.rows, m) + min(cut.columns, n)) * 1024 / cut.splits
    assert cut.loading == pytest.approx(loaded / (4e10 * tiling.alignment.keeps(n, 1024, 2)))


@pytest.mark.parametrize("by", ["nvls", "sharp"])
@pytest.mark.parametrize("operation", ["all-reduce", "reduce-scatter", "all-gather", "broadcast", "barrier"])
def test_nothing_takes_the_latency_of_its_longest_way_through_the_switch(by: str, operation: Operation) -> None:
    algorithm, group = InNetwork(by=by), RankGroup(8)  # type: ignore[arg-type]
    (one,) = algorithm.rounds(operation, group)
    assert one.steps + one.hops == (4 if (by, operation) == ("nvls", "all-reduce") else 2)


@pytest.mark.parametrize("part", [0.01, 1.0, 100.0])
def test_a_simulated_flow_between_nodes_loses_what_an_estimated_one_does(part: float) -> None:
    size = part * KNEE
    alone = size / 1e9
    lost = KNEE * (1 - math.exp(-part)) / 1e9
    assert in_training(alone, size, "all-reduce", 0.5) == pytest.approx((alone + lost) / (NETWORK * 0.5))
    assert in_training(alone, size, "send", 0.5) == pytest.approx(alone / (NETWORK * 0.5))


@pytest.mark.parametrize(("what", "read", "written", "m_n_k"), [
    ("forward", {64, "kernels"}, {128}, (1568, 128, 64)), ("input", {128, "kernels"}, {64}, (1568, 64, 128)),
    ("weights", {64, 128}, {"kernels"}, (64, 128, 1568)),
])  # fmt: skip
def test_a_transformed_convolution_moves_tiles_of_36_points(
    what: Literal["forward", "input", "weights"], read: set[Any], written: set[Any], m_n_k: tuple[int, int, int]
) -> None:
    """Lavin and Gray, F(4x4, 3x3): 8 images of 56 x 56 are 1,568 tiles, whose 36 points each go through memory once."""
    shape = ConvolutionPass(8, 64, 128, 56, 56, (3, 3), 1, 56 * 56, what=what)
    numbers: dict[Any, int] = {64: 1568 * 36 * 64, 128: 1568 * 36 * 128, "kernels": 36 * 64 * 128}
    for dtype, width in (("fp32", 4), ("fp16", 2)):
        _, (scatter, product, gather) = shape.ways(dtype, matrix_units=False)
        assert scatter.writes == product.reads == sum(numbers[operand] for operand in read) * width
        assert product.writes == gather.reads == sum(numbers[operand] for operand in written) * width
        assert (product.product, product.flop) == (MatmulShape(*m_n_k, 36), 2 * 36 * 1568 * 64 * 128)
        assert (scatter.reads, gather.writes) == shape.traffic(width)
