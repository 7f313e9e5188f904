"""Draws by hash: their bits, their distributions, and that no draw depends on another."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hwsim
from hwsim.workload.load.draws import (
    Constant,
    Distribution,
    Exponential,
    Lognormal,
    Pareto,
    RandomDraws,
    Uniform,
    UniformInteger,
    Values,
)
from hwsim.workload.load.numbers import exp, log, normal, sine, stream, uniform, uniforms

WORD = st.integers(0, 2**64 - 1)
SHARE = st.floats(2.0**-53, 1 - 2.0**-53, exclude_min=True, exclude_max=True)
ALL: tuple[Distribution, ...] = (
    Constant(3.0), Exponential(2.0), Lognormal(2.0, 0.5), Uniform(1.0, 3.0), UniformInteger(1, 6), Pareto(2.5, 1.0),
    Pareto(1.2, 1.0, 1000.0), Pareto(1.0, 2.0, 500.0), Values((1.0, 2.0, 5.0)),
)  # fmt: skip
SQUARED_VARIATION: Final = (  # variance over the square of the mean, from the moments of each
    0.0, 1.0, math.expm1(0.25), 1 / 12, 35 / 12 / 3.5**2, 5 / (5 / 3) ** 2 - 1, 17.587, 7.1349, 10 / (8 / 3) ** 2 - 1,
)  # fmt: skip


@given(WORD, WORD, WORD)
def test_a_number_and_a_column_of_it_have_the_same_bits(key: int, request: int, visit: int) -> None:
    one = uniform(key, request, visit)
    assert 0 < one < 1
    assert uniforms(key, np.array([request], np.uint64), np.array([visit], np.uint64)).tolist() == [one]


@given(st.lists(SHARE, min_size=1, max_size=50))
@pytest.mark.parametrize("distribution", ALL, ids=repr)
def test_a_draw_and_a_column_of_it_have_the_same_bits(distribution: Distribution, shares: list[float]) -> None:
    assert distribution.at(np.array(shares)).tolist() == [distribution.at(share) for share in shares]


@given(SHARE, SHARE)
@pytest.mark.parametrize("distribution", ALL, ids=repr)
def test_a_larger_share_is_a_larger_draw(distribution: Distribution, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert distribution.at(low) <= distribution.at(high) * (1 + 1e-14)


def test_functions_are_those_of_the_library() -> None:
    shares = np.concatenate((uniforms(stream(3), np.arange(5000, dtype=np.uint64)), [2.0**-53, 1 - 2.0**-53, 0.5, 1e-9]))
    assert np.abs(log(shares) - [math.log(share) for share in shares]).max() < 8e-15  # of numbers down to -37
    powers = (shares - 0.5) * 1000
    assert np.abs(exp(powers) / [math.exp(power) for power in powers] - 1).max() < 1e-15
    turns = (shares - 0.5) * 50
    assert np.abs(sine(turns) - [math.sin(2 * math.pi * (turn - round(turn))) for turn in turns]).max() < 1e-15
    assert np.abs(normal(shares) - [NormalDist().inv_cdf(probability) for probability in shares]).max() < 1e-14
    assert [log(1.0), exp(0.0), normal(0.5), sine(0.0)] == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(("distribution", "squared_variation"), list(zip(ALL, SQUARED_VARIATION, strict=True)), ids=repr)
def test_many_draws_have_the_mean_and_the_spread_of_their_moments(distribution: Distribution, squared_variation: float) -> None:
    drawn = RandomDraws(stream(0, repr(distribution)), distribution).many(0, 200_000)
    variance = float(np.var(drawn))
    assert abs(float(np.mean(drawn)) - distribution.mean) < 4 * math.sqrt(variance / len(drawn)) + 1e-12
    heavy = isinstance(distribution, Pareto)  # whose variance is that of a few
    assert variance / distribution.mean**2 == pytest.approx(squared_variation, rel=0.5 if heavy else 0.02)


BITS: Final[list[list[object]]] = [
    [11291479928274556185, 10045388578532759642],
    ["0x1.fba27108cfe95p-1", "0x1.19e076b06e8c3p-1", "0x1.4bfe9f6f53ec9p-1"],
    [
        "0x1.8000000000000p+1",
        "0x1.6d3c324e13f4fp-1",
        "0x1.89e9271d9e05cp+0",
        "0x1.999999999999ap+0",
        "0x1.0000000000000p+1",
        "0x1.2741e31acb390p+0",
        "0x1.5893a60a49fd2p+0",
        "0x1.6d16a2aef34b8p+1",
        "0x1.0000000000000p+0",
    ],
]


def test_bits_do_not_move() -> None:
    """What a seed draws is part of every answer."""
    assert [stream(0, "web"), stream(7, "web", 3)] == BITS[0]
    assert [uniform(stream(0, "web"), request, visit).hex() for request, visit in ((0, 0), (1, 0), (1, 1))] == BITS[1]
    assert [draw.at(0.3).hex() for draw in ALL] == BITS[2]


def test_visits_blocks_and_order_do_not_matter() -> None:
    key = stream(5, "render")
    ahead, back = RandomDraws(key, Exponential(1.0)), RandomDraws(key, Exponential(1.0))
    numbers = [0, 1, 1023, 1024, 5000, 2, 1025, 3000, 0]
    drawn = {number: ahead.at(number) for number in numbers}
    assert {number: back.at(number) for number in reversed(numbers)} == drawn
    assert drawn == {number: float(ahead.many(number, 1)[0]) for number in numbers}
    again = [ahead.at(number, 1) for number in numbers]
    assert not set(again) & set(drawn.values())
    assert [back.at(number, 1) for number in numbers] == again


def test_statements_do_not_meet_each_others_numbers() -> None:
    """Neighbouring seeds, names and requests are as far from each other as chance."""
    requests = np.arange(20_000, dtype=np.uint64)
    keys = [stream(seed, name, number) for seed in (0, 1) for name in ("web", "wec") for number in (0, 1, 2)]
    columns = [uniforms(key, requests) for key in keys] + [uniforms(keys[0], requests, 1)]
    columns += [np.roll(columns[0], -1)]  # the next request
    table = np.corrcoef(columns)
    assert np.abs(table - np.eye(len(columns))).max() < 5 / math.sqrt(len(requests))
    counts = np.histogram(columns[0], bins=100, range=(0, 1))[0]
    assert float(((counts - 200) ** 2 / 200).sum()) < 160  # chi squared of 99 degrees, 1 in 10,000


def test_a_large_seed_is_another_seed() -> None:
    assert len({stream(seed) for seed in (0, 1, 2**64, 2**64 + 1, 2**128)}) == 5


@given(st.floats(0.2, 5), st.floats(0.5, 10), st.floats(1.5, 100))
def test_a_bounded_pareto_stays_in_its_bounds(shape: float, least: float, times: float) -> None:
    distribution = Pareto(shape, least, least * times)
    drawn = distribution.at(np.array([2.0**-53, 0.3, 0.999, 1 - 2.0**-53]))
    assert drawn.min() >= least * (1 - 1e-12)
    assert drawn.max() <= least * times * (1 + 1e-12)
    middle = np.mean(distribution.at((np.arange(20_000) + 0.5) / 20_000))
    assert distribution.mean == pytest.approx(float(middle), rel=2e-3)


def test_a_wrong_line_of_a_file_of_draws_is_named(tmp_path: Path) -> None:
    (tmp_path / "sizes.txt").write_text("# tokens\n128\n\nmany\n")
    workload = tmp_path / "chat.yaml"
    draw = "{values: sizes.txt}"
    workload.write_text(
        f"hwsim: workload/1\ninfer: {{model: llama-3-8b, requests: 4, arrivals: all at once, prompt: {draw}, output: 2}}\n"
    )
    with pytest.raises(hwsim.SpecError, match=r"line 4 of 'sizes\.txt': expected a number, got 'many'"):
        hwsim.simulate("dgx-h100", str(workload))
