"""How `calibrate` times: estimator, stopping, what disturbed it, going on; all on a clock that is set by hand."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, count, repeat

import pytest

from hwsim_calibrate import harness
from hwsim_calibrate.case import CannotMeasure, Case
from hwsim_calibrate.clocks import Sample, Usage
from hwsim_calibrate.flags import flags_of
from hwsim_calibrate.store import Amounts, Row

NANO = 1_000_000_000


class World:
    """A clock by hand: every call of the case takes what `takes` says next: (wall, CPU, switches, faults)."""

    def __init__(self) -> None:
        self.wall_ns = self.cpu_ns = self.switches = self.faults = 0

    def wall(self) -> int:
        return self.wall_ns

    def cpu(self) -> int:
        return self.cpu_ns

    def usage(self) -> Usage:
        return Usage(self.switches, self.faults)

    def now(self) -> float:
        return self.wall_ns / NANO

    def case(self, name: str, takes: Iterator[tuple[float, float, int, int]] | float, **more: object) -> Case:
        steps = repeat((takes, takes, 0, 0)) if isinstance(takes, float) else takes

        def call() -> None:
            wall, cpu, switches, faults = next(steps)
            self.wall_ns += round(wall * NANO)
            self.cpu_ns += round(cpu * NANO)
            self.switches += switches
            self.faults += faults

        settings: dict[str, object] = {"samples": 3, "seconds": 0.0} | more
        return Case("s", name, {}, Amounts(), lambda _: call, **settings)  # type: ignore[arg-type]

    def run(self, *cases: Case, budget: float = 1e9, **more: object) -> tuple[dict[str, Row], dict[tuple[str, str], str]]:
        rows, failed = harness.run(cases, budget=budget, clocks=self, now=self.now, **more)  # type: ignore[arg-type]
        return {row.case: row for row in rows}, failed


@pytest.fixture
def world() -> World:
    return World()


def test_the_cpu_s_time_counts_however_long_others_hold_the_core(world: World) -> None:
    rows, _ = world.run(world.case("a", repeat((0.9, 0.1, 1, 0))))
    assert rows["a"].quiet == pytest.approx(0.1)
    assert {"shared", "switched"} <= set(rows["a"].flags)


def test_the_lowest_sample_of_a_round_and_the_lowest_round_count(world: World) -> None:
    times = chain([0.005], [0.003, 0.002, 0.004], [0.005], [0.009, 0.008, 0.007], repeat(0.0025))
    rows, _ = world.run(world.case("a", ((time_, time_, 0, 0) for time_ in times)), max_rounds=3)
    assert rows["a"].seconds[:3] == pytest.approx((0.002, 0.007, 0.0025))
    assert rows["a"].quiet == pytest.approx(0.002)
    assert rows["a"].samples[1] == pytest.approx((0.009, 0.008, 0.007))


def test_from_ten_rounds_on_the_lowest_tenth_counts() -> None:
    seconds = tuple(float(index) for index in range(20, 0, -1))
    assert Row("s", "a", "a", {}, Amounts(), seconds).quiet == 3.0


def test_a_case_is_left_alone_once_two_rounds_agree_on_the_lowest(world: World) -> None:
    rows, _ = world.run(world.case("steady", 0.1), world.case("sinking", ((0.9**turn,) * 2 + (0, 0) for turn in count())))
    assert len(rows["steady"].seconds) == harness.MIN_ROUNDS
    assert len(rows["sinking"].seconds) == harness.MAX_ROUNDS


def test_a_low_round_is_believed_when_another_has_seen_it_too(world: World) -> None:
    lucky = chain([0.001] * 4, [0.002] * 400)
    rows, _ = world.run(world.case("a", ((seconds, seconds, 0, 0) for seconds in lucky)))
    assert len(rows["a"].seconds) == harness.MAX_ROUNDS
    assert "unsteady" in rows["a"].flags


def test_the_budget_ends_a_run_but_for_the_case_under_way(world: World) -> None:
    cases = [world.case(str(number), 1.0) for number in range(10)]
    rows, _ = world.run(*cases, budget=10.0)
    assert world.now() <= 10.0 + 3.0
    assert len(rows) == 4  # three calls each: one to warm up and two samples, for they are long


def test_cases_never_seen_come_before_those_of_an_earlier_run(world: World) -> None:
    known = [Row("s", str(number), str(number), {}, Amounts(), (1.0, 0.5)) for number in range(9)]
    cases = [world.case(str(number), 1.0) for number in range(10)]
    rows, _ = world.run(*cases, budget=1.0, known=known)
    assert len(rows) == 10


def test_rounds_are_in_another_order_each_time_and_the_same_for_a_seed() -> None:
    def order(seed: int) -> list[str]:
        world, seen = World(), []

        def make(name: str) -> Case:
            def prepare(_: ExitStack) -> Callable[[], None]:
                seen.append(name)
                return lambda: None

            return Case("s", name, {}, Amounts(), prepare, samples=2, seconds=0.0)

        world.run(*[make(str(number)) for number in range(8)], seed=seed)
        return seen

    one = order(1)
    assert one == order(1)
    assert one != order(2)
    assert sorted(one[:8]) == sorted(one[8:16])
    assert one[:8] != one[8:16]


def test_a_sample_lasts_as_long_as_it_should(world: World) -> None:
    calls = [0]

    def counted() -> Iterator[tuple[float, float, int, int]]:
        while True:
            calls[0] += 1
            yield 1e-6, 1e-6, 0, 0

    rows, _ = world.run(world.case("a", counted(), seconds=1e-3, samples=2), max_rounds=1)
    assert 2 * 900 <= calls[0] <= 2 * 1000 + 300  # two samples of a millisecond, and the search for how many that is
    assert rows["a"].quiet == pytest.approx(1e-6)


def test_a_call_that_is_interrupted_while_its_length_is_looked_for_is_not_taken_for_a_long_one(world: World) -> None:
    calls = [0]

    def counted() -> Iterator[tuple[float, float, int, int]]:
        while True:
            calls[0] += 1
            yield (0.01 if calls[0] <= 2 else 1e-6), 1e-6, int(calls[0] <= 2), 0

    world.run(world.case("a", counted(), seconds=1e-3, samples=2), max_rounds=1)
    assert calls[0] > 1800


def test_turns_inside_of_a_call_are_counted(world: World) -> None:
    rows, _ = world.run(world.case("a", 1.0, loop=100), max_rounds=1)
    assert rows["a"].quiet == pytest.approx(0.01)


def test_what_a_machine_cannot_do_is_named_and_the_rest_goes_on(world: World) -> None:
    def fails(_: ExitStack) -> Callable[[], None]:
        raise CannotMeasure("no such call")

    rows, failed = world.run(Case("s", "bad", {}, Amounts(), fails), world.case("good", 0.1))
    assert failed == {("s", "bad"): "no such call"}
    assert set(rows) == {"good"}


def test_an_interruption_keeps_what_is_known(world: World) -> None:
    kept: list[list[Row]] = []

    def interrupted() -> Iterator[tuple[float, float, int, int]]:
        yield from [(0.01, 0.01, 0, 0)] * 9
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.run(world.case("a", interrupted()), keep=kept.append)
    assert [len(row.seconds) for row in kept[-1]] == [2]


def test_going_on_adds_rounds_to_those_of_the_earlier_run(world: World) -> None:
    before = Row("s", "a", "a", {}, Amounts(), (0.2, 0.3), "cpu", ("few", "noisy"), ((0.2,), (0.3,)), (0.0, 0.0))
    rows, _ = world.run(world.case("a", 0.2), known=[before])
    assert rows["a"].seconds[:2] == (0.2, 0.3)
    assert len(rows["a"].seconds) == len(rows["a"].samples) == len(rows["a"].faults) == 3
    assert "few" not in rows["a"].flags
    assert "noisy" in rows["a"].flags


def test_nothing_is_collected_in_the_middle_and_the_collector_comes_back(world: World) -> None:
    seen: list[bool] = []
    was = gc.isenabled()

    def looks(_: ExitStack) -> Callable[[], None]:
        return lambda: seen.append(gc.isenabled())

    world.run(Case("s", "a", {}, Amounts(), looks, seconds=0.0))
    assert not any(seen)
    assert gc.isenabled() == was


def flags(times: list[list[float]]) -> set[str]:
    rounds = [[Sample(seconds, seconds) for seconds in taken] for taken in times]
    return set(flags_of("cpu", [min(taken) for taken in times], rounds, []))


@pytest.mark.parametrize(
    ("times", "flag"),
    [
        ([[1.0, 1.0, 1.0]], "few"),
        ([[1.0, 1.0, 1.0], [1.2, 1.2, 1.2], [1.3, 1.3, 1.3]], "unsteady"),
        ([[1.0, 1.4, 1.2]] * 3, "noisy"),
        ([[1.0, 1.0, 1.0, 9.0]] * 3, "outliers"),
        ([[1.0, 1.0, 3.0, 3.0]] * 3, "bimodal"),
    ],
)
def test_what_the_times_show_is_flagged(times: list[list[float]], flag: str) -> None:
    assert flag in flags(times)
    assert flags([[1.0, 1.01, 1.02]] * 3) == set()


def test_stolen_time_and_mixed_faults_are_flagged() -> None:
    rounds = [[Sample(1.0, 1.0, faults=0.0), Sample(1.0, 1.0, faults=500.0)]] * 3
    assert set(flags_of("cpu", [1.0, 1.0, 1.0], rounds, [0.0, 0.05, 0.05])) == {"stolen", "faulting"}


def test_a_thread_that_waited_is_told_from_a_call_that_waits() -> None:
    rounds = [[Sample(1.0, 0.5)] * 2] * 3
    assert flags_of("wall", [1.0] * 3, rounds, []) == ()
    assert flags_of("cpu", [1.0] * 3, rounds, []) == ("shared",)
