"""A copy of a served model, without a clock: skipped or not it does the same, and no token or block is lost or made."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hwsim.families.serving.actors.balanced_prefill import Groups
from hwsim.families.serving.actors.blocks import WindowedGrowth
from hwsim.families.serving.actors.continuous import ContinuousReplica
from hwsim.families.serving.actors.router import LeastRequestsRouter
from hwsim.families.serving.actors.run import IterationRun, Sequence
from hwsim.families.serving.actors.static import StaticReplica
from hwsim.families.serving.actors.unclocked import UnclockedService
from hwsim.families.serving.results.log import Log
from hwsim.families.serving.workload.requests import Request
from hwsim.families.serving.workload.settings import Settings
from hwsim.families.serving.workload.source import RequestSource
from hwsim.models.architectures.layer_parts import equivalent_cached_tokens


class Linear:
    """Times that grow with tokens and contexts, whole femtoseconds; knots at powers of two of the mean context."""

    def __init__(self, *, skip: bool) -> None:
        self.skip = skip
        self.iterations = 0

    def set(self, run: IterationRun) -> None:
        """Give a run its time."""
        context = run.context // max(1, run.answers)
        run.kernels = 4_000_000 + 10_007 * run.rows + 13 * run.answers * context
        run.slope = 0 if run.parts else 13 * run.answers
        run.host, run.network = 1000, 17
        run.first = run.kernels + run.host + run.network
        knot = 1 << max(4, context).bit_length()
        alike = -((run.context - run.answers * knot) // max(1, run.answers))
        run.count = run.most = min(run.most, alike) if self.skip and not run.parts else 1


class Watched(ContinuousReplica):
    """A copy whose books are checked at every decision."""

    __slots__ = ()

    def next(self, now: int) -> IterationRun | None:
        run = super().next(now)
        busy = {id(seq): seq for seq in (*self.partial, *(row[3] for row in self._ends if row[2] == row[3].put_off))}
        answering = [seq for seq in busy.values() if seq not in self.partial]
        assert len(answering) == self.answers
        assert len(busy) <= self.settings.sequences
        lengths = [seq.read + self.count - seq.joined for seq in answering]
        assert self.context == sum(lengths)
        grown = sum(self.growth.need(length) - self.growth.need(seq.read) for length, seq in zip(lengths, answering, strict=True))
        wanted = self.growth.wanted(1) if run is not None and run.parts and run.answers else 0
        holding = [*busy.values(), *self.loading, *self.loaded]
        pieces = {key for seq in holding for key in seq.keys}
        held = sum(self.pool.held(key) for key in pieces) + sum(seq.own for seq in holding) + grown + wanted
        assert self.pool.blocks - self.pool.free == held
        assert 0 <= self.pool.free <= self.pool.blocks
        if run is not None and self.settings.chunked and self.settings.prompts == "beside":
            assert run.rows <= max(self.settings.budget, run.answers)
        return run


def play(rows: list[Request], keys: dict[str, Any], blocks: int, copies: int, *, skip: bool) -> tuple[Any, ...]:
    found = Settings(**keys)
    log = Log(copies)
    made = [Watched(number, found, blocks, log) for number in range(copies)]
    pace: list[Any] = [Linear(skip=skip)] * copies
    end = UnclockedService(made, pace, found, RequestSource(rows), log, LeastRequestsRouter(made)).play()
    assert all(copy.pool.free == blocks and not copy.requests for copy in made)
    columns = log.finish()
    rows_of = {name: columns[name].tolist() for name in ("number", "copy", "begin", "first", "end", "cached")}
    assert rows_of["number"] == list(range(len(rows)))
    assert sum(log.gaps.count.values()) == sum(row.output - 1 for row in rows)  # integers
    assert log.gaps.total == sum(rows_of["end"]) - sum(rows_of["first"])  # integers
    return end, [copy.iterations for copy in made], [*(copy.put_off for copy in made), log.recomputed_tokens], rows_of


requests = st.lists(
    st.tuples(st.integers(0, 60_000_000), st.integers(1, 300), st.integers(1, 150), st.integers(0, 3)), min_size=1, max_size=40
)
servers = st.fixed_dictionaries(
    {
        "prompts": st.sampled_from(["beside", "before", "alone"]),
        "chunked": st.booleans(),
        "budget": st.sampled_from([64, 300, 8192]),
        "sequences": st.sampled_from([1, 4, 64]),
        "admit": st.sampled_from(["prompt", "answer", "ratio"]),
        "promise": st.sampled_from([(0.7, 0.1, 600, 4096), (1.0, 0.2, 40, 60)]),
        "spare": st.sampled_from([0.0, 0.01]),
        "ahead": st.integers(0, 1),
        "look": st.sampled_from([1, 1, 10]),
        "groups": st.sampled_from([1, 3]),
        "gather": st.sampled_from([0, 0, 7, 60]),
        "block": st.sampled_from([1, 16, 32]),
        "prefixes": st.booleans(),
        "api": st.sampled_from([0, 9_000_000]),
        "out": st.sampled_from([0, 100_000]),
    }
)


def drawn(rows: list[tuple[int, int, int, int]]) -> list[Request]:
    now, made = 0, []
    for gap, prompt, output, group in rows:
        now += gap
        made.append(
            Request(now, prompt, output, tuple(range(group * 1000, group * 1000 + -(-prompt // 40))) if group else (), 40)
        )
    return made


@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(requests, servers, st.integers(0, 30), st.integers(1, 3))
def test_runs_that_are_skipped_are_the_iterations_one_by_one(
    rows: list[tuple[int, int, int, int]], keys: dict[str, Any], more: int, copies: int
) -> None:
    blocks = -(-450 // keys["block"]) + more
    made = drawn(rows)
    assert play(made, keys, blocks, copies, skip=True) == play(made, keys, blocks, copies, skip=False)


@pytest.mark.parametrize("admit", ["prompt", "answer", "ratio"])
def test_a_tight_cache_puts_off_where_a_server_does_not_reserve(admit: str) -> None:
    rows = [Request(0, 10 + 37 * n % 90, 1 + 53 * n % 70) for n in range(40)]
    _, _, put_off, _ = play(rows, {"admit": admit, "promise": (0.1, 0.05, 10, 4096)}, 20, 1, skip=True)
    assert (put_off[0] == 0) == (admit == "answer")


def test_a_request_that_comes_in_an_iteration_joins_the_next_or_the_one_after() -> None:
    begins = []
    for ahead in (0, 1):
        rows = [Request(0, 100, 100), Request(20_000_000, 10, 5)]
        _, _, _, found = play(rows, {"ahead": ahead}, 100, 1, skip=True)
        begins.append(found["begin"][1])
    step = 4_000_000 + 10_007 + 13 * 117 + 1017
    assert begins[1] - begins[0] == pytest.approx(step, rel=0.01)


def test_a_prompt_that_is_wholly_cached_is_read_again_only_in_its_last_block() -> None:
    rows = [Request(0, 160, 2, (7,), 160), Request(10**9, 160, 2, (7,), 160), Request(2 * 10**9, 170, 2, (7, 8), 160)]
    _, _, _, found = play(rows, {"prefixes": True}, 100, 1, skip=True)
    assert found["cached"] == [0, 144, 160]
    _, _, _, found = play(rows, {"prefixes": False}, 100, 1, skip=True)
    assert found["cached"] == [0, 0, 0]


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    rows = [Request(number * 10**9, 160, 1, (key,), 160) for number, key in enumerate((1, 2, 3, 1, 2, 4, 1, 2, 3))]
    _, _, _, found = play(rows, {"prefixes": True}, 30, 1, skip=True)  # room for three such prompts
    assert [bool(count) for count in found["cached"]] == [False, False, False, True, True, False, True, True, False]


def decisions(lengths: tuple[int, ...], told: Callable[[IterationRun], Any], **keys: Any) -> list[Any]:
    """What is told of each run of requests that are there at once."""
    copy = ContinuousReplica(0, Settings(budget=64, **keys), 1000, Log(1))
    for number, prompt in enumerate(lengths):
        copy.log.came(0, number, 0, prompt, 5)
        copy.add(Sequence.of(number, Request(0, prompt, 5), 0))
    pace, now, seen = Linear(skip=False), 0, []
    while (run := copy.next(now)) is not None:
        seen.append(told(run))
        pace.set(run)
        now = run.end
        copy.done(run, now)
    return seen


def test_answers_come_first_and_one_prompt_at_a_time_is_read_in_part() -> None:
    seen = decisions((100, 100, 40), lambda run: (run.answers, [(seq.number, tokens) for seq, tokens in run.parts]))
    assert seen[:5] == [(0, [(0, 64)]), (0, [(0, 36), (1, 28)]), (1, [(1, 63)]), (1, [(1, 9), (2, 40)]), (3, [])]


def test_sglang_reads_all_prompts_before_answers_go_on() -> None:
    seen = decisions((100, 100), lambda run: (run.answers, run.tokens), prompts="before")
    assert seen == [(0, 64), (0, 64), (0, 64), (0, 8), (2, 0), (2, 0), (2, 0), (2, 0)]


# ---- static batches ----


def test_a_static_batch_keeps_its_places_to_the_end_of_its_longest() -> None:
    for skip in (False, True):
        log = Log(1)
        line = StaticReplica(0, Settings(prompts="alone", padded=True, sequences=2), None, log)
        for number, output in enumerate((1, 4, 2)):
            log.came(0, number, 0, 10 + number, output)
            line.add(Sequence.of(number, Request(0, 10 + number, output), 0))
        pace, now, seen = Linear(skip=skip), 0, []
        while (run := line.next(now)) is not None:
            pace.set(run)
            now = run.end
            context = run.context // max(1, run.answers)
            seen += [(len(run.parts), run.answers, context + index or run.parts[0][1]) for index in range(run.count)]
            line.done(run, now)
        assert seen == [(2, 0, 11), (0, 2, 12), (0, 2, 13), (0, 2, 14), (1, 0, 12), (0, 1, 13)]


def test_a_static_batch_answers_everybody_and_gives_every_block_back() -> None:
    rows = [Request(0, 10 + 37 * n % 90, 1 + 53 * n % 70) for n in range(40)]
    for blocks in (11, 17, 40, None):
        found, log = Settings(prompts="alone", padded=True, sequences=8), Log(1)
        line = StaticReplica(0, found, blocks, log)
        pace: Any = Linear(skip=True)
        UnclockedService([line], [pace], found, RequestSource(rows), log, LeastRequestsRouter([line])).play()
        assert Counter(log.finish()["number"].tolist()) == Counter(range(40))
        assert line.used == 0


def test_prompts_of_groups_wait_for_each_other() -> None:
    groups = Groups(2, 5)
    first, second, third = (Sequence(number, 10, 10, 0) for number in range(3))
    groups.add(first)
    assert groups.opens([first], 0, 0)  # nobody writes
    groups.add(second)
    groups.add(third)
    groups.writes(first, 1)
    groups.writes(second, 1)
    assert (first.group, second.group, third.group) == (0, 1, 0)
    assert [groups.opens([third], 0, index) for index in range(1, 6)] == [False] * 4 + [True]  # at the turn of the clock
    other = Sequence(3, 10, 10, 0, group=1)
    assert groups.opens([third, other], 0, 7)  # each has one
    assert not groups.opens([third, Sequence(4, 10, 10, 9, group=1)], 0, 8)  # not seen yet
    assert groups.turn(8) == 4


@pytest.mark.parametrize(
    "held", [((1.0, 0),), ((0.3, 128), (0.7, 0)), ((1 / 3, 4096), (2 / 3, 0)), ((0.1, 7), (0.2, 100), (0.7, 0))]
)
@pytest.mark.parametrize("block", [1, 16, 64])
def test_blocks_of_layers_with_windows_are_those_of_their_parts(held: tuple[tuple[float, int], ...], block: int) -> None:
    growth = WindowedGrowth(block, held)
    assert [growth.need(tokens) for tokens in range(9000)] == [
        math.ceil(equivalent_cached_tokens(tokens, held) / block) for tokens in range(9000)
    ]


def test_a_group_reads_a_prompt_within_its_own_budget() -> None:
    rows = [Request(0, 1000, 2)]
    chunks = [play(rows, {"groups": groups, "budget": 250 * groups, "chunked": True}, 100, 1, skip=True)[1] for groups in (1, 4)]
    assert chunks[0] == chunks[1]
