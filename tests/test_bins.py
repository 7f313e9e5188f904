"""Histograms that merge exactly, and intervals that hold as often as they say."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hwsim.results.batches import BatchedSamples, SteadyStatistics, requests_needed
from hwsim.results.bins import FEW, Bins

NUMBERS = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e6)), max_size=60)
SHARES = (0.01, 0.25, 0.5, 0.9, 0.99, 1.0)


def binned(numbers: list[float], few: int) -> Bins:
    made = Bins(few=few)
    made.extend(numbers)
    return made


def answers(bins: Bins) -> list[float]:
    return [len(bins), bins.total, bins.smallest, bins.largest, *map(bins.percentile, SHARES), *map(bins.below, (0.0, 1e-3, 5.0))]


@given(NUMBERS, NUMBERS, NUMBERS)
def test_histograms_merge_exactly_in_any_order(one: list[float], other: list[float], third: list[float]) -> None:
    whole = answers(binned(one + other + third, 0))
    for parts in ((one, other, third), (third, one, other), (other + third, [], one)):
        merged = Bins(few=0)
        for part in parts:
            merged.merge(binned(part, 0))
        assert answers(merged) == whole


@given(NUMBERS, st.integers(0, 60))
def test_one_by_one_is_as_all_at_once(numbers: list[float], few: int) -> None:
    single = Bins(few=few)
    for number in numbers:
        single.add(number)
    assert answers(single) == answers(binned(numbers, few))


@given(st.lists(st.floats(1e-12, 1e9), min_size=1, max_size=200), st.floats(0.001, 1.0))
def test_a_percentile_is_off_by_at_most_four_thousandths(numbers: list[float], share: float) -> None:
    ranked = sorted(numbers)[max(math.ceil(share * len(numbers)), 1) - 1]
    bins = binned(numbers, 0)
    assert bins.percentile(share) == pytest.approx(ranked, rel=0.004)
    low, high = bins.around(share)
    assert low <= ranked <= high
    assert bins.mean == pytest.approx(math.fsum(numbers) / len(numbers), rel=1e-9, abs=1e-15)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200), st.floats(1e-7, 1e4))
def test_a_share_below_is_off_by_its_bin_alone(numbers: list[float], limit: float) -> None:
    bins = binned(numbers, 0)
    low, high = (sum(number <= limit * factor for number in numbers) / len(numbers) for factor in (0.992, 1.008))
    assert low - 1e-12 <= bins.below(limit) <= high + 1e-12


def test_few_are_exact_and_many_take_little_memory() -> None:
    numbers = np.random.default_rng(0).exponential(1.0, FEW)
    bins = Bins()
    bins.extend(numbers)
    assert bins.percentile(0.99) == np.percentile(numbers, 99)
    bins.extend(np.full(10**6, 3e-7))
    assert len(bins.counts) < 128 * 40
    assert bins.percentile(0.5) == pytest.approx(3e-7, rel=0.004)
    constant = Bins(few=0)
    constant.extend([0.0123] * 10)
    assert constant.percentile(0.99) == 0.0123


@pytest.mark.parametrize("wrong", [-1e-300, math.nan, math.inf])
def test_what_is_no_time_is_not_counted(wrong: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        binned([1.0, wrong], 0)


def test_nothing_is_said_of_nothing() -> None:
    assert answers(Bins()) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert answers(Bins(few=0)) == answers(Bins())
    assert BatchedSamples().estimate().short == (0.0, 0.5, 0.95, 0.99)


# ---- batches ----


def queue(rho: float, count: int, seed: int, first: float = 0.0) -> NDArray[np.float64]:
    """Times in a queue with one server (M/M/1), service time 1; by Lindley's equation."""
    draws = np.random.default_rng(seed)
    gaps, work = draws.exponential(1 / rho, count), draws.exponential(1.0, count)
    ahead = np.concatenate(([first], first + np.cumsum(work[:-1] - gaps[1:])))
    return ahead - np.minimum(np.minimum.accumulate(ahead), 0.0) + work


def settled(numbers: NDArray[np.float64], utilization: float | None = None) -> SteadyStatistics:
    batched = BatchedSamples()
    batched.extend(numbers)
    return batched.estimate(utilization=utilization)


@pytest.mark.parametrize(("rho", "count"), [(0.5, 10_000), (0.8, 100_000), (0.95, 1_000_000)])
def test_intervals_hold_as_often_as_they_say(rho: float, count: int) -> None:
    """A right 95 % interval holds in 33 or more of 40 runs, but for 1 of 600."""
    runs = [settled(queue(rho, count, seed), rho) for seed in range(40 if count < 10**6 else 12)]
    least = 33 if len(runs) == 40 else 9
    known = {0.0: (1 / (1 - rho), [run.mean for run in runs])}
    known |= {share: (math.log(1 / (1 - share)) / (1 - rho), [sim.at(share) for sim in runs]) for share in (0.5, 0.95, 0.99)}
    for share, (exact, intervals) in known.items():
        assert sum(band.low <= exact <= band.high for band in intervals) >= least, share
        errors = [abs(interval.value / exact - 1) for interval in intervals]
        assert (
            0.3 * np.median([band.half for band in intervals])
            < 2 * np.mean(errors)
            < 2 * np.median([band.half for band in intervals])
        )
    assert sum(0.0 in sim.short for sim in runs) <= 1


def test_a_run_that_is_too_short_says_so() -> None:
    """At a load of 0.95 ten thousand requests know the p99 to +-60 %; batches alone would say +-6 %."""
    runs = [settled(queue(0.95, 10_000, seed)) for seed in range(20)]
    assert sum(0.99 in run.short for run in runs) >= 19
    assert np.median([sim.at(0.99).half for sim in runs]) > 0.6
    exact = math.log(100) / 0.05
    assert sum(sim.at(0.99).low <= exact <= sim.at(0.99).high for sim in runs) >= 16
    told = [settled(queue(0.95, 10_000, seed), 0.95) for seed in range(20)]
    assert all(sim.short == (0.0, 0.5, 0.95, 0.99) and sim.needed == 467_924 for sim in told)
    assert [requests_needed(load) for load in (0.0, 0.5, 0.8, 0.95, 1.0, 1.3)] == [300, 3498, 26_917, 467_924, None, None]
    assert settled(queue(0.5, 3000, 0)).short == (0.99,)  # 30 requests above it


def test_a_warm_up_is_cut_and_half_of_the_run_at_most() -> None:
    late = settled(queue(0.5, 50_000, 3, first=400.0))  # begins with a line of 400 seconds of work
    assert 800 <= late.dropped <= 6000
    assert late.settled
    assert late.mean.low < 2 < late.mean.high
    growing = settled(np.linspace(1, 100, 20_000))
    assert not growing.settled
    assert growing.dropped <= 10_400
    assert settled(queue(0.5, 50_000, 3)).dropped < 5000


@pytest.mark.parametrize("count", [0, 1, 31, 33, FEW, FEW + 1, 2 * FEW, 100_003])
def test_no_request_is_lost(count: int) -> None:
    numbers = queue(0.5, max(count, 1), 1)[:count]
    one, several = BatchedSamples(), BatchedSamples()
    for number in numbers.tolist():
        one.add(number)
    for first, last in pairwise([0, *sorted(np.random.default_rng(0).integers(0, count + 1, 5).tolist()), count]):
        several.extend(numbers[first:last])
    assert one.estimate() == several.estimate() == settled(numbers)
    found = one.estimate(warm_up=0)
    assert (found.count, found.dropped) == (count, 0)
    assert found.mean.value == pytest.approx(float(numbers.mean()) if count else 0.0, rel=1e-9)


def test_equal_numbers_are_known_exactly() -> None:
    found = settled(np.full(20_000, 0.25))
    assert (found.mean.low, found.mean.value, found.mean.high) == (0.25, 0.25, 0.25)
    assert found.at(0.99).half < 0.01
