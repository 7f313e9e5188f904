"""Products of served models: their tiles, casts and kernels, and constants of many GPUs at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hwsim import api
from hwsim.demand import rates_of
from hwsim.devices import Gpu, MatmulShape, Work
from hwsim.devices.gpu_matmul import Alignment, Cast, Tiling, tiles_of
from hwsim.devices.gpu_memory import Launch, Level2
from hwsim.devices.roofline import LocalMemory
from hwsim.ops.matmul import Matmul
from hwsim.ops.op import CannotPlace, Scope
from published.products_pooled import TYPICAL, Batch, Tiles, Timed, tiling

PLAIN = Tiling(efficiency=0.8, rows=128, loads=1e11, start=1e-6)
CASTING = replace(PLAIN, memory=0.8, cast=Cast(start=5e-6, row=13e-9, rate=1e10))
GPU = Gpu(
    flop={"bf16": 1e15, "fp8": 2e15},
    memory=LocalMemory(3e12),
    sms=130,
    clock=2e9,
    l2=Level2(size=50e6),
    launch=Launch(stream=2.5e-6, graph=1.3e-6),
    matmul={"bf16": PLAIN, "fp8": CASTING, "fp8-vllm": replace(CASTING, cast=Cast(start=2e-6)), "fp8-block": PLAIN,
            "int4-weights": replace(PLAIN, start=9e-6)},
)  # fmt: skip


def alone(gpu: Gpu, work: Work) -> float:
    return gpu.compute("it", work).demand.alone(rates_of(gpu.capacities("it")))


def op(**keys: object) -> tuple[float, dict[str, float]]:
    """Seconds of an op in a graph on an H100, and of each of its lines."""
    machine = api.load_machine("hwsim: machine/1\nparts: {it: {kind: gpu, use: h100-sxm}}\n")
    cost = Matmul(device="it", m=64, n=4096, k=4096, **keys).lower(Scope(machine, starts="graph")).cost  # type: ignore[arg-type]
    return cost.demand.alone(machine.rates()), {term.label: term.seconds for term in cost.why}


def test_a_tile_has_one_side_of_at_least_the_rows() -> None:
    for tile in tiles_of(16, 32768, 128):
        assert max(tile) >= 128
    assert (16, 128) in tiles_of(16, 32768, 128)
    assert (128, 16) in tiles_of(16, 32768, 128)


def test_an_op_in_8_bits_is_the_product_alone_unless_it_is_told_to_cast() -> None:
    plain, lines = op(dtype="fp8")
    casting, more = op(dtype="fp8", cast=True)
    assert "cast" not in lines
    assert casting > plain + 0.9 * more["cast"]


def test_software_and_narrow_weights_have_kernels_of_their_own() -> None:
    chained, direct = op(dtype="fp8", cast=True)[0], op(dtype="fp8", software="vllm")[0]
    assert chained > direct + 4e-6  # a chain of casts and scales
    assert op(dtype="bf16", weights="int4")[0] != op(dtype="bf16")[0]
    assert op(dtype="fp8", scales="block")[0] != chained


@pytest.mark.parametrize(("software", "hint"), [("vlm", "did you mean 'vllm'?"), ("nobody's", "known: sarathi-serve, vllm")])
def test_kernels_of_unknown_software_are_refused(software: str, hint: str) -> None:
    with pytest.raises(CannotPlace, match=f"'it' has no kernels '{software}' in its `matmul`") as refused:
        op(dtype="fp8", software=software)
    assert hint in (refused.value.hint or "")


def test_a_cast_has_a_start_a_cost_of_a_row_and_a_rate() -> None:
    product = MatmulShape(1300, 4096, 1000, cast=2.0)
    work = Work(flop=1.0, reads=1300 * 1000 + 4096 * 1000, writes=2 * 1300 * 4096, dtype="fp8", mix="matmul", product=product)
    lines = {term.label: term for term in GPU.compute("it", work).why}
    assert lines["cast"].seconds == pytest.approx(5e-6 + 1300 * 13e-9 / 130 + 1300 * 1000 * 3 / 1.3e12)
    narrow = replace(GPU, memory=LocalMemory(1e11))
    slower = {term.label: term for term in narrow.compute("it", work).why}
    assert slower["cast"].seconds == pytest.approx(lines["cast"].seconds)  # its rate is of a multiprocessor's own
    large = replace(narrow, l2=Level2(size=1e6))
    assert {t.label: t for t in large.compute("it", work).why}["cast"].seconds > 20e-6  # what no cache holds goes to memory


def test_the_first_factor_is_read_from_the_cache_that_holds_it() -> None:
    held = MatmulShape(100, 8192, 8192)
    work = Work(flop=1.0, reads=(100 + 8192) * 8192.0, writes=1.0, dtype="fp8", mix="matmul", product=held)
    memory = next(term for term in GPU.compute("it", work).why if term.label == "memory" and "traffic" in term.formula)
    assert memory.seconds == pytest.approx(8192 * 8192 / (3e12 * 0.8), rel=1e-3)


def test_in_a_stream_a_product_follows_as_in_a_graph_but_never_faster_than_the_host_starts_it() -> None:
    small = Work(flop=1.0, reads=64.0, writes=64.0, dtype="bf16", mix="matmul", product=MatmulShape(8, 8, 8))
    large = replace(small, product=MatmulShape(4096, 4096, 4096))
    bare = replace(GPU, matmul={"bf16": replace(PLAIN, start=0.0)})
    assert alone(bare, small) == pytest.approx(2.5e-6)
    assert alone(GPU, large) == pytest.approx(alone(GPU, replace(large, start="graph")))


@pytest.mark.parametrize(("shape", "regime"), [((8, 64, 64), "tiny"), ((64, 1 << 15, 1 << 15), "skinny"), ((9000,) * 3, "big")])
def test_lines_of_a_product_say_whose_error_they_share(shape: tuple[int, int, int], regime: str) -> None:
    machine = api.load_machine("hwsim: machine/1\nparts: {it: {kind: gpu, use: h100-sxm}}\n")
    m, n, k = shape
    cost = Matmul(device="it", m=m, n=n, k=k, dtype="bf16").lower(Scope(machine)).cost
    doubts = [doubt for term in cost.why for doubt in term.doubts]
    assert {(doubt.regime, doubt.case) for doubt in doubts} == {(f"product/{regime}", "known")}
    assert len({doubt.key for doubt in doubts}) == 1
    assert all(doubt.seconds == term.seconds for term in cost.why for doubt in term.doubts)


def test_constants_of_many_gpus_mean_what_a_file_says() -> None:
    tiles, constants = Tiles(16, 128, 32768, 64), {key: value for key, (value, _) in TYPICAL.items()}
    shapes = [(1, 4096, 4096), (300, 1024, 4096), (8192, 8192, 8192), (4096, 64, 65536), (17, 1000, 64)]
    rows = [Timed(GPU, "fp8", MatmulShape(m, n, k), (1.0, 1.0), 2.0, 2.0, 1.0) for m, n, k in shapes]
    gpu = replace(GPU, matmul={"fp8": replace(tiling(constants, GPU, tiles, casts=True), alignment=Alignment())})
    works = [
        Work(flop=2.0 * m * n * k, reads=1.0 * k * (m + n), writes=2.0 * m * n, dtype="fp8", mix="matmul", start="graph",
             product=MatmulShape(m, n, k, cast=2.0)) for m, n, k in shapes
    ]  # fmt: skip
    assert np.min(Batch(rows, tiles).seconds(constants), axis=1).tolist() == pytest.approx([alone(gpu, work) for work in works])
