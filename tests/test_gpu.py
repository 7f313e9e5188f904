"""Matrix products on a GPU: laws, closed forms, limits, and the parts of the library."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.demand import Term
from hwsim.devices import Gpu, MatmulShape, Work
from hwsim.devices.gpu_matmul import (
    LIKE,
    MIN_SPLIT_STEPS,
    Alignment,
    Chip,
    Tiling,
    fastest_tile_plan,
    tile_plan,
    tiles_like,
    tiles_of,
    waves,
)
from hwsim.devices.roofline import Efficiency, LocalMemory
from hwsim.spec import names
from hwsim.units import BYTES, parse

NAME = "gpu0"
WIDTH = {"fp64": 8.0, "fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.5, "int8": 1.0, "int4": 0.5}

sides = st.integers(1, 20_000)
tilings = st.builds(
    Tiling,
    efficiency=st.floats(0.1, 1.0),
    smallest=st.sampled_from([16, 32, 64]),
    largest=st.sampled_from([4096, 16384, 32768]),
    edge=st.floats(0.0, 20.0),
    prologue=st.floats(0.0, 500.0),
    splits=st.sampled_from([1, 4, 64]),
    adding=st.sampled_from([0.0, 2e-6]),
    lost=st.floats(0.0, 1.0),
    loads=st.one_of(st.none(), st.floats(1e9, 1e12)),
    rows=st.sampled_from([None, 64]),
    memory=st.one_of(st.none(), st.floats(0.3, 1.0)),
    transposed=st.floats(0.2, 1.0),
    start=st.sampled_from([0.0, 3e-6]),
    alignment=st.sampled_from([Alignment(), Alignment(between=0.75, below=0.37)]),
)
products = st.builds(MatmulShape, sides, sides, sides, st.integers(1, 8), st.booleans())
gpus = st.builds(
    Gpu,
    flop=st.fixed_dictionaries({"fp32": st.floats(1e12, 1e14), "fp16": st.floats(1e13, 1e15)}),
    memory=st.builds(LocalMemory, st.floats(1e11, 1e13)),
    sms=st.integers(1, 200),
    matmul=st.fixed_dictionaries({"fp32": tilings, "fp16": tilings}),
    launch=st.sampled_from([0.0, 2e-6]),
)


def work(product: MatmulShape, dtype: str = "fp16") -> Work:
    m, n, k, batch = product.m, product.n, product.k, product.batch
    reads, writes = ((m * k + k * n) * batch * WIDTH[dtype], m * n * batch * WIDTH[dtype])
    return Work(flop=2.0 * m * n * k * batch, reads=reads, writes=writes, dtype=dtype, mix="matmul", product=product)


def alone(gpu: Gpu, product: MatmulShape, dtype: str = "fp16") -> float:
    return gpu.compute(NAME, work(product, dtype)).demand.alone(
        {capacity.name: capacity.rate for capacity in gpu.capacities(NAME)}
    )


def step(product: MatmulShape) -> int:
    return min(product.n & -product.n, product.k & -product.k)


def evaluated(term: Term) -> float:
    """What the formula of a line comes to with its inputs put in."""
    values = {name: parse(value).value for name, value, _ in term.inputs}
    text = term.formula.replace("^", "**").replace(" x ", " * ")
    for name in sorted(values, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", repr(values[name]), text)
    return float(eval(text, {"__builtins__": {}}))


# ---- laws ----


@given(gpus, products, st.sampled_from(["fp32", "fp16"]))
def test_a_product_costs_what_its_lines_say(gpu: Gpu, product: MatmulShape, dtype: str) -> None:
    cost = gpu.compute(NAME, work(product, dtype))
    demand, known = cost.demand, {capacity.name: capacity.rate for capacity in gpu.capacities(NAME)}
    assert all(amount > 0 and math.isfinite(amount) and name in known for name, amount in demand.amounts)
    assert math.isfinite(demand.share)
    assert demand.share > 0
    body = max(term.seconds for term in cost.why if term.kind != "latency")
    starts = sum(term.seconds for term in cost.why if term.kind == "latency")
    assert demand.alone(known) == pytest.approx(body + starts, rel=1e-12)
    for term in cost.why:
        if term.label == "compute" or "waves" in term.formula:
            assert evaluated(term) == pytest.approx(term.seconds, rel=1e-4)


@given(gpus, products, st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 3))
def test_a_larger_product_aligned_no_better_is_never_faster(
    gpu: Gpu, some: MatmulShape, m: int, n: int, k: int, batch: int
) -> None:
    larger = MatmulShape(some.m + m, some.n + n, some.k + k, some.batch + batch, some.transposed)
    if step(larger) <= step(some):
        assert alone(gpu, larger) >= alone(gpu, some) * (1 - 1e-12)


@given(gpus, products, st.floats(1, 10), st.floats(1, 10), st.integers(0, 100))
def test_a_better_gpu_is_never_slower(gpu: Gpu, product: MatmulShape, faster: float, wider: float, more: int) -> None:
    assert gpu.sms is not None
    peak = {dtype: value * faster * (gpu.sms + more) / gpu.sms for dtype, value in gpu.flop.items()}
    better = dataclasses.replace(gpu, flop=peak, memory=LocalMemory(gpu.memory.bandwidth * wider), sms=gpu.sms + more)
    assert alone(better, product) <= alone(gpu, product) * (1 + 1e-9)


@given(gpus, products)
def test_tiles_are_never_faster_than_the_roofline(gpu: Gpu, product: MatmulShape) -> None:
    ideal = dataclasses.replace(gpu, matmul={})
    assert alone(gpu, product) >= alone(ideal, product) * (1 - 1e-12)


@given(gpus, products)
def test_worse_aligned_and_transposed_are_never_faster(gpu: Gpu, product: MatmulShape) -> None:
    plain = dataclasses.replace(product, transposed=False)
    free = {dtype: dataclasses.replace(tiling, alignment=Alignment()) for dtype, tiling in gpu.matmul.items()}
    assert alone(gpu, product) >= alone(gpu, plain) * (1 - 1e-12)
    assert alone(gpu, product) >= alone(dataclasses.replace(gpu, matmul=free), product) * (1 - 1e-12)


@given(gpus, products)
def test_without_tiles_a_product_is_its_roofline(gpu: Gpu, product: MatmulShape) -> None:
    ideal = dataclasses.replace(gpu, matmul={}, efficiency=Efficiency(matmul=0.8))
    asked = work(product)
    expected = max(asked.flop / (0.8 * gpu.flop["fp16"]), asked.traffic / gpu.memory.bandwidth)
    free = dataclasses.replace(ideal, launch=0.0)
    assert alone(free, product) == pytest.approx(expected)


@given(gpus, st.floats(1, 1e15))
def test_work_without_a_shape_has_the_efficiency_of_a_large_product(gpu: Gpu, flop: float) -> None:
    cost = gpu.compute(NAME, Work(flop=flop, dtype="fp16", mix="matmul"))
    assert dict(cost.demand.amounts)[f"{NAME}.compute"] == pytest.approx(flop / gpu.flop["fp16"] / gpu.matmul["fp16"].efficiency)


# ---- closed forms ----


def test_tiles_are_computed_in_whole_waves() -> None:
    chip, tiling = Chip(108, 108e12, 1e15), Tiling(smallest=128, largest=128 * 128, lost=1.0)
    one = 2 * 128 * 128 * 1024 / 1e12
    for tiles, rounds in ((1, 1), (107, 1), (108, 1), (109, 2), (216, 2), (217, 3)):
        cut = fastest_tile_plan(MatmulShape(128 * tiles, 128, 1024), (2, 2), tiling, chip, 0.0)
        assert (cut.tiles, cut.waves) == (tiles, rounds)
        assert cut.time == pytest.approx(rounds * one)


def test_room_in_a_wave_is_lost_in_part() -> None:
    assert waves(150, 100, 0.0) == 1.5
    assert waves(150, 100, 1.0) == 2.0
    assert waves(150, 100, 0.4) == pytest.approx(1.7)


def test_a_row_more_than_a_tile_costs_a_tile_more() -> None:
    chip, tiling = Chip(1, 1e12, 1e15), Tiling(smallest=128, largest=128 * 128)
    full, over = (fastest_tile_plan(MatmulShape(m, 128, 512), (2, 2), tiling, chip, 0.0).time for m in (256, 257))
    assert over == pytest.approx(1.5 * full)


def test_the_prologue_counts_as_steps_of_k() -> None:
    chip, tiling = Chip(1, 1e12, 1e15), Tiling(smallest=128, largest=128 * 128, prologue=64)
    assert fastest_tile_plan(MatmulShape(128, 128, 1000), (2, 2), tiling, chip, 0.0).time == pytest.approx(
        2 * 128 * 128 * 1064 / 1e12
    )


def test_a_deep_product_of_few_tiles_is_split_and_pays_for_adding_up() -> None:
    chip, tiling = Chip(64, 64e12, 1e12), Tiling(smallest=64, largest=64 * 64, splits=64, adding=2e-6)
    deep, shallow = (fastest_tile_plan(MatmulShape(64, 64, k), (2, 2), tiling, chip, 0.0) for k in (500_000, 64))
    assert (deep.splits, shallow.splits) == (64, 1)
    assert deep.time == pytest.approx(2 * 64 * 64 * 500_000 / 64e12 + 2e-6 + 4 * 64 * 64 * 65 / 1e12)


def test_small_tiles_wait_for_their_operands() -> None:
    chip, tiling = Chip(1, 1e12, 1e15), Tiling(smallest=32, largest=32 * 32, loads=2e12 / 128)
    cut = fastest_tile_plan(MatmulShape(32, 32, 1000), (2, 2), tiling, chip, 0.0)
    assert cut.loading == pytest.approx(128 * 64 * 1000 / 1e12)
    assert cut.time == cut.loading == pytest.approx(4 * cut.computing)


def test_rows_are_counted_as_they_lie_in_memory() -> None:
    tensor = Alignment(between=0.8, below=0.4)
    assert [tensor.keeps(n, k, 2.0) for n, k in ((64, 64), (64, 72), (8, 64), (64, 4), (63, 64))] == [1, 0.8, 0.8, 0.4, 0.4]
    assert tensor.keeps(16, 16, 1.0) == 0.8  # int8: 16 elements are 16 bytes
    assert tensor.keeps(32, 32, 4.0) == 1.0


def test_every_format_knows_whose_tiles_it_takes() -> None:
    assert set(LIKE) == set(BYTES) - {"int16", "complex64", "complex128"}, "no GPU multiplies matrices of these"
    assert tiles_like("int4", ("fp32", "fp16")) == "fp16"
    assert tiles_like("fp64", ("fp32", "fp16")) == "fp32"
    assert tiles_like("fp32", ("fp16",)) is None


def test_tiles_are_no_larger_than_the_largest_and_not_too_slender() -> None:
    for rows, columns in tiles_of(16, 256 * 128):
        assert min(rows, columns) >= 16
        assert rows * columns <= 256 * 128
        assert max(rows, columns) <= 8 * min(rows, columns)


# ---- limits ----


@given(tilings, st.sampled_from([Alignment(), Alignment(between=0.75, below=0.37)]))
def test_a_huge_product_reaches_the_peak_times_the_efficiency(tiling: Tiling, alignment: Alignment) -> None:
    tiling = dataclasses.replace(tiling, alignment=alignment, loads=None)
    gpu = Gpu(flop={"fp16": 1e14}, memory=LocalMemory(1e15), sms=100, matmul={"fp16": tiling})
    product = MatmulShape(1 << 17, 1 << 17, 1 << 17)
    assert work(product).flop / alone(gpu, product) == pytest.approx(1e14 * tiling.efficiency, rel=0.02)


@given(tilings)
def test_a_product_with_a_vector_takes_what_its_bytes_take(tiling: Tiling) -> None:
    tiling = dataclasses.replace(tiling, alignment=Alignment(), splits=64, memory=None, loads=None)
    gpu = Gpu(flop={"fp16": 1e17}, memory=LocalMemory(1e10), sms=10, matmul={"fp16": tiling})
    product = MatmulShape(1, 8192, 8192)
    assert alone(gpu, product) == pytest.approx(work(product).traffic / 1e10, rel=0.01)


@given(products, tilings, st.integers(1, 200))
def test_the_best_cut_is_one_of_them_and_none_is_better(product: MatmulShape, tiling: Tiling, sms: int) -> None:
    chip = Chip(sms, 1e13, 1e12)
    chosen = fastest_tile_plan(product, (2, 2), tiling, chip, 1e-5)
    every = [
        tile_plan(product, (2, 2), tiling, chip, 1e-5, rows, columns, splits)
        for rows, columns in tiles_of(tiling.smallest, tiling.largest, tiling.rows)
        for splits in (1 << power for power in range(tiling.splits.bit_length()))
        if splits == 1 or product.k >= MIN_SPLIT_STEPS * splits
    ]
    assert chosen in every
    assert chosen.time == min(cut.time for cut in every)


# ---- the library ----


def library(name: str) -> Gpu:
    machine = api.load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{it: {{kind: gpu, use: {name}}}}}\n")
    found = machine.device("it").model
    assert isinstance(found, Gpu)
    return found


def test_a_part_multiplies_in_every_format_it_has() -> None:
    product, tiled = MatmulShape(8192, 8192, 8192), [gpu for gpu in map(library, names("gpu")) if gpu.matmul]
    assert len(tiled) > 10
    for gpu in tiled:
        assert not list(gpu.problems())
        for dtype, peak in gpu.flop.items():
            reached = work(product, dtype).flop / alone(gpu, product, dtype) / peak
            assert 0.3 < reached <= 1.0
