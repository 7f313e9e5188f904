"""Where the time of requests goes: parts add up, whatever holds them up."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hwsim.families.serving.actors.run import IterationRun, Sequence
from hwsim.families.serving.results.accounting import PARTS, Meters, Refusal, RequestAccount
from hwsim.families.serving.results.histograms import LatencyHistogram


@given(
    values=st.lists(st.integers(1, 10**15), min_size=1, max_size=60),
    late=st.lists(st.integers(10**16, 10**18), max_size=10),
    share=st.sampled_from([0.5, 0.95, 0.99]),
)
def test_the_requests_around_a_percentile_take_about_as_long_as_it(values: list[int], late: list[int], share: float) -> None:
    """Half a per cent of requests that wait a hundred times as long say nothing of those at p99."""
    times, pile = np.array([*values * 5, *late]), LatencyHistogram()
    pile.add_all(times.astype(np.float64), [times, *[np.zeros_like(times)] * (len(PARTS) - 1)])
    value = pile.at(share)
    requests, shared_by, sums = pile.around(share - 0.005, share + 0.005, value)
    assert requests == shared_by > 0
    assert 0.49 * value <= sum(sums) / shared_by <= 2.02 * value


@given(
    run=st.builds(
        lambda host, kernels, network, slope, count: IterationRun(
            0,
            1000,
            1000,
            [],
            3,
            90,
            count=count,
            first=host + kernels + network,
            host=host,
            kernels=kernels,
            network=network,
            slope=slope,
        ),
        st.integers(0, 9),
        st.integers(1, 50),
        st.integers(0, 9),
        st.integers(0, 7),
        st.integers(2, 12),
    ),
    seen=st.lists(st.floats(0, 1), max_size=5),
    refusal=st.sampled_from(["", "batch slots", "KV cache"]),
)
def test_a_request_that_comes_in_a_run_waits_as_if_its_iterations_were_counted_one_by_one(
    run: IterationRun, seen: list[float], refusal: Refusal
) -> None:
    at_once, one_by_one = (Meters(end=900, spent=(5, 6, 7, 8, 9), refusal=refusal) for _ in range(2))
    come = [900 + round(share * (run.end - 900)) for share in seen]
    stays = [[RequestAccount(number, time, 0, 10, 10, time) for number, time in enumerate(come)] for _ in range(2)]
    for meters, every in zip((at_once, one_by_one), stays, strict=True):
        for stay in every:
            meters.came(stay)
    at_once.iterated(run.begin, run.end, run.spent(0, run.count, run.begin, run.end), partial(run.until, 0, run.begin))
    for number, later in pairwise(range(run.count + 1)):
        begin, end = run.start(number), run.start(later)
        one_by_one.iterated(begin, end, run.spent(number, later, begin, end))
    for meters, every in zip((at_once, one_by_one), stays, strict=True):
        for stay in every:
            meters.begins(stay, run.end)
    told = [[(stay.parts, stay.read, stay.since) for stay in every] for every in stays]
    assert told[0] == told[1]
    assert all(sum(stay.parts) == run.end - stay.arrival for stay in stays[0])


@given(
    ids=st.lists(st.integers(0, 99), max_size=8),
    span=st.integers(1, 40),
    block=st.integers(1, 32),
    prompt=st.integers(1, 300),
    tokens=st.integers(0, 300),
)
def test_pieces_are_the_whole_blocks_that_each_adds(ids: list[int], span: int, block: int, prompt: int, tokens: int) -> None:
    ends = [min(number * span, tokens or prompt) // block for number in range(len(ids) + 1)]
    added = [
        ((piece, last - first), last - first) for piece, (first, last) in zip(ids, pairwise(ends), strict=True) if last > first
    ]
    assert Sequence(0, prompt, 1, 0, ids=tuple(ids), span=span).pieces(block, tokens) == added
