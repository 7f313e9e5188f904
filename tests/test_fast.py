"""Compiled code says what Python says, bit for bit, and is chosen when it pays."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.replay import random_graph
from hwsim import ticks
from hwsim.demand import Capacity, Demand
from hwsim.engine import Driver, core, fast, history, native, simulate
from hwsim.engine.compile import compile_flat
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import OpGraph, Pool
from hwsim.results.timeline import Timeline
from tests.engine_graphs import crossing_flows, graph_of, transfers
from tests.present import present
from tests.strategies import graphs, make_block, networks
from tests.stretching import stretched
from tests.test_inorder import columns

pytestmark = pytest.mark.skipif(not core.is_there(), reason=f"nothing to compare Python with: {core.found()}")

CASES = settings(max_examples=120, deadline=None)


PATIENCE = st.sampled_from([0, core.PATIENCE])  # instant by instant, or at once


def compiled(graph: OpGraph, patience: int = core.PATIENCE) -> Timeline | None:
    flat = flatten(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "PATIENCE", patience)
        return native.play(flat, compile_flat(flat))


def python(graph: OpGraph) -> Timeline:
    driver = Driver(graph.capacities, graph.pools, closed=True)
    driver.submit(graph)
    return driver.run()


def plain(timeline: Timeline) -> list[object]:
    *times, _, alone, solves = columns(timeline)
    return [*times, [[tuple(pace) for pace in course] for course in timeline.paces], alone, solves]


@CASES
@given(graphs(), PATIENCE)
def test_replay_with_queues_pools_and_contention(graph: OpGraph, patience: int) -> None:
    found = compiled(graph, patience)
    assume(found is not None)  # one in thousands has paces too fine for the words
    assert found is not None
    assert plain(found) == plain(python(graph))


@pytest.mark.parametrize("times", ["equal", "rarely long", "of all magnitudes", "ever longer", "ever shorter"])
def test_times_that_no_span_of_a_calendar_suits(times: str) -> None:
    ops, rng = 1500, np.random.default_rng(0)  # spans are measured after 64 instants, and after 1024 more
    drawn = {
        "equal": np.full(ops, 7),
        "rarely long": np.where(rng.random(ops) < 0.01, 10**15, rng.integers(0, 5, ops)),
        "of all magnitudes": 10 ** rng.uniform(0, 15, ops),
        "ever longer": 2 ** np.linspace(0, 50, ops),
        "ever shorter": 2 ** np.linspace(50, 0, ops),
    }[times]
    graph = random_graph(ops)
    graph = replace(graph, blocks=(replace(graph.blocks[0], time=drawn.astype(np.int64)),))
    found = present(compiled(graph))
    assert plain(found) == plain(python(graph))


def test_an_interrupt_is_heard_while_compiled_code_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, pieces = core.kernel, list[int]()

    def watched(name: str, *types: Any) -> Callable[..., int]:
        def interrupted(*given: Any) -> int:
            pieces.append(kernel(name, *types)(*given))
            if len(pieces) == 3:
                signal.raise_signal(signal.SIGINT)
            return pieces[-1]

        return interrupted if name == "hwsim_replay" else kernel(name, *types)

    monkeypatch.setattr(core, "kernel", watched)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            compiled(random_graph(100, 1), 0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert pieces == [core.MORE] * 3


@CASES
@given(networks(), PATIENCE)
def test_what_happens_on_one_link_is_felt_on_all_that_depend_on_it(graph: OpGraph, patience: int) -> None:
    found = present(compiled(graph, patience))
    assert plain(found) == plain(python(graph))


@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_flows_between_a_few_hosts(seed: int) -> None:
    graph = crossing_flows(np.random.default_rng(seed), seed)
    found = present(compiled(graph))
    assert found.solves > len(found) / 2
    assert plain(found) == plain(python(graph))


@CASES
@given(networks())
def test_what_ops_received_while_they_ran_is_what_their_paces_say(graph: OpGraph) -> None:
    found, expected = present(compiled(graph)), python(graph)
    for op, received in found.received.items():
        of_paces = expected.service(int(expected.flow_class[op]), received.begun, int(expected.end[op]))
        assert (received.service, received.pace) == of_paces


@pytest.mark.parametrize("servers", [1, 3])
def test_thousands_of_ops_on_pools_that_all_end_at_once(servers: int) -> None:
    graph = random_graph(3000, seed=servers)
    (block,) = graph.blocks
    tied = OpGraph(
        (type(block)(**{**{name: getattr(block, name) for name in block.__slots__}, "time": block.time // 10**6 + 1}),),
        graph.labels,
        pools=tuple(type(pool)(pool.name, servers) for pool in graph.pools),
    )
    found = present(compiled(tied))
    assert found.granted.max() > 0
    assert plain(found) == plain(python(tied))


# ---------------------------------------------------------------- words


def arithmetic(*numbers: int) -> list[int]:
    """What the library makes of one, two and three: see `hwsim_words`."""
    given = [np.array([number >> 64 * place & (2**64 - 1) for place in range(3)], np.uint64) for number in numbers]
    found = np.zeros((4, 3), np.uint64)
    core.kernel("hwsim_words", core.WORDS, core.WORDS, core.WORDS, core.WORDS)(*given, found)
    return [sum(int(word) << 64 * place for place, word in enumerate(row)) for row in found]


def numbers(bits: int) -> st.SearchStrategy[int]:
    """Of every length, and next to powers of two."""
    near = st.builds(lambda power, by: max(0, (1 << power) + by), st.integers(0, bits - 1), st.integers(-3, 3))
    return st.one_of(st.integers(0, bits).flatmap(lambda length: st.integers(0, (1 << length) - 1)), near)


@settings(max_examples=500, deadline=None)
@given(one=numbers(190), two=numbers(126))
def test_division_is_exact(one: int, two: int) -> None:
    divisor = max(1, two)
    found = arithmetic(one, divisor, 0)[0]
    expected = one // divisor
    assert found == (expected if expected < 2**126 else 2**128 - 1) or (expected >= 2**126 and found == expected)


@settings(max_examples=300, deadline=None)
@given(one=numbers(192), two=numbers(192), three=numbers(128))
def test_sums_products_and_comparisons_are_exact(one: int, two: int, three: int) -> None:
    _, plus, minus, is_less = arithmetic(one, two, three)
    assert plus == (one + two * three) % 2**192
    assert minus == (one - two % 2**128 * (three % 2**64)) % 2**192
    assert is_less == (one < two)


# ---------------------------------------------------------------- when numbers do not fit


def test_demands_too_fine_for_the_words_are_left_to_python() -> None:
    graph = graph_of(make_block([0, 0, 0]), costs=[Demand(amounts=(("c", 1e6),), share=1e-6)], capacities=[Capacity("c", 1e4)])
    assert compiled(graph) is None
    assert simulate(graph, fast="always").end.tolist() == python(graph).end.tolist()


def test_times_too_far_for_the_words_are_left_to_python() -> None:
    graph = graph_of(make_block([-1] * 9, time=[2**60] * 9, take=[0] * 9, give=[0] * 9), pools=[Pool("server", 1)])
    assert compiled(graph) is None
    assert simulate(graph, fast="always").end.tolist() == python(graph).end.tolist()


def test_a_flow_that_crawls_is_left_to_python() -> None:
    kinds = [Demand(amounts=(("c", 1.0),), share=1e-12), Demand(amounts=(("c", 1.0),), share=1e12)]
    graph = graph_of(make_block([0, 1], size=[1000.0, 1.0]), costs=kinds, capacities=[Capacity("c", 1.0)])
    assert simulate(graph, fast="always").end.tolist() == python(graph).end.tolist()


@settings(max_examples=100, deadline=None)
@given(graph=graphs(), power=st.integers(15, 39))
def test_compiled_code_is_exact_or_silent_at_any_length(graph: OpGraph, power: int) -> None:
    longer = stretched(graph, power)
    try:
        found = compiled(longer)
    except ticks.TooLong:
        return  # for any engine
    if found is not None:
        assert plain(found) == plain(python(longer))


@pytest.mark.parametrize("hours", [0.7, 1.2, 2.5, 2.57])
def test_flows_are_compiled_up_to_the_longest_int64(hours: float) -> None:
    graph = transfers(*(hours * 3600e9 / 16 for _ in range(16)))
    found = compiled(graph)
    assert (found is not None) == (hours < 2.56)
    if found is not None:
        assert plain(found) == plain(python(graph))


# ---------------------------------------------------------------- when it is chosen


def test_small_graphs_are_python_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HWSIM_FAST", raising=False)
    assert not fast.uses_compiled_code(fast.LARGE - 1)
    assert fast.uses_compiled_code(fast.LARGE)
    assert fast.uses_compiled_code(0, fast.LARGE // fast.CLASS)
    assert not fast.uses_compiled_code(10**9, choice="never")


def test_the_environment_decides_and_an_argument_decides_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HWSIM_FAST", "always")
    assert fast.uses_compiled_code(0)
    assert not fast.uses_compiled_code(0, choice="never")
    monkeypatch.setenv("HWSIM_FAST", "never")
    assert not fast.uses_compiled_code(10**9)
    monkeypatch.setenv("HWSIM_FAST", "perhaps")
    with pytest.raises(ValueError, match="auto, always, never, got 'perhaps'"):
        fast.uses_compiled_code(0)


def test_simulate_takes_the_choice_and_the_result_does_not_depend_on_it() -> None:
    graph = transfers(10, 20, 30)
    one, two = simulate(graph, fast="always"), simulate(graph, fast="never")
    assert isinstance(one.paces, history.History)
    assert isinstance(two.paces, tuple)
    assert plain(one) == plain(two)
    assert one.paces[-1][-1] == two.paces[-1][-1]
    assert [tuple(course) for course in one.paces[0:2]] == list(two.paces[0:2])
