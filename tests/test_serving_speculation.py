"""Guesses that are verified: skipped or not it is the same, no block is lost, and the chances say how much is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hwsim.families.serving.actors.router import LeastRequestsRouter
from hwsim.families.serving.actors.run import IterationRun
from hwsim.families.serving.actors.speculation import SpeculativeReplica
from hwsim.families.serving.actors.unclocked import UnclockedService
from hwsim.families.serving.results.log import Log
from hwsim.families.serving.workload.requests import Request
from hwsim.families.serving.workload.settings import Settings
from hwsim.families.serving.workload.source import RequestSource
from hwsim.families.serving.workload.speculation import Speculation
from tests.served import served
from tests.test_serving_copy import drawn, requests, servers


class Pieces:
    """Times that grow with the parts of tokens of the contexts, whole femtoseconds."""

    def __init__(self, guesses: Speculation, *, skip: bool) -> None:
        self.skip, self.mean = skip, guesses.mean

    def set(self, run: IterationRun) -> None:
        """Give a run its time."""
        run.kernels = 4_000_000 + 10_007 * run.rows + 13 * (run.context * self.mean.denominator + run.part)
        run.slope = 0 if run.parts else 13 * run.answers * self.mean.numerator
        run.first = run.kernels
        run.count = run.most = run.most if self.skip and not run.parts else 1


def play(rows: list[Request], keys: dict[str, Any], blocks: int, guesses: Speculation, *, skip: bool) -> tuple[Any, ...]:
    found = Settings(**keys, verified=1 + guesses.tokens)
    log = Log(1)
    copy = SpeculativeReplica(0, found, blocks, log, guesses=guesses)
    pace: Any = Pieces(guesses, skip=skip)
    end = UnclockedService([copy], [pace], found, RequestSource(rows), log, LeastRequestsRouter([copy])).play()
    assert copy.pool.free == blocks
    assert copy.requests == copy.context == copy.part == 0
    columns = log.finish()
    assert columns["number"].tolist() == list(range(len(rows)))
    return end, copy.iterations, copy.put_off, {name: columns[name].tolist() for name in ("begin", "first", "end")}


@settings(max_examples=30, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(requests, servers, st.integers(0, 30), st.lists(st.sampled_from([0.0, 0.3, 0.8, 1.0]), min_size=1, max_size=4))
def test_runs_that_are_skipped_are_the_iterations_one_by_one(
    rows: list[tuple[int, int, int, int]], keys: dict[str, Any], more: int, chances: list[float]
) -> None:
    blocks = -(-450 // keys["block"]) + more
    made, guesses = drawn(rows), Speculation(len(chances), tuple(chances), None)
    assert play(made, keys, blocks, guesses, skip=True) == play(made, keys, blocks, guesses, skip=False)


def test_as_many_tokens_are_written_as_the_chances_say() -> None:
    guesses = Speculation(3, (0.8, 0.65, 0.5), None, seed=4)
    assert float(guesses.mean) == pytest.approx(1 + 0.8 + 0.8 * 0.65 + 0.8 * 0.65 * 0.5, abs=1e-3)
    steps = [guesses.steps(request, 0, 500) for request in range(200)]
    assert sum(steps) == pytest.approx(200 * 500 / float(guesses.mean), rel=0.01)
    assert len(set(steps)) > 20
    assert guesses.steps(3, 0, 400) <= guesses.steps(3, 0, 500)  # more of the same draws


def test_guesses_that_are_never_accepted_cost_and_those_that_always_are_save() -> None:
    keys: dict[str, Any] = {"model": "llama-3-8b", "prompt": 100, "output": 61, "requests": 3, "arrivals": {"every": "2 s"}}
    plain = served(**keys)
    never = served(**keys, speculate={"tokens": 3, "acceptance": "0 %"})
    always = served(**keys, speculate={"tokens": 3, "acceptance": "100 %"})
    free = served(**keys, speculate={"tokens": 3, "acceptance": "100 %", "draft": "none"})
    assert never.iterations == plain.iterations == 3 * 61
    assert always.iterations == free.iterations == 3 * (1 + 15)
    assert never.each_token.mean > 1.05 * plain.each_token.mean
    assert free.each_token.mean < always.each_token.mean < 0.5 * plain.each_token.mean
    assert free.each_token.mean > 0.25 * plain.each_token.mean  # verifying four tokens is no less than writing one
