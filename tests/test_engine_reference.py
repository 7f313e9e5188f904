from __future__ import annotations

from collections.abc import Sequence
from os import environ

from hypothesis import event, given, settings
from hypothesis import strategies as st

from hwsim.engine import Driver
from hwsim.engine.verdict import check
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import OpGraph
from hwsim.results.timeline import Timeline
from tests.reference_engine import Played, edges, limiting, play
from tests.strategies import Tables, graphs, networks, rewritten, tables

CASES = settings(max_examples=3000 if environ.get("HWSIM_THOROUGH") else 60, deadline=None)

Later = Sequence[tuple[int, OpGraph]]
Limits = Sequence[tuple[int, int, float]]


def engine(graph: OpGraph, *, closed: bool, later: Later = (), limits: Limits = ()) -> tuple[Played, Timeline]:
    limited = {graph.capacities[capacity].name for _, capacity, _ in limits}
    driver = Driver(graph.capacities, graph.pools, closed=closed, limited=limited)
    driver.submit(graph)
    for instant, other in later:
        driver.submit(other, instant)
    for instant, capacity, fraction in limits:
        driver.env.process(limiting(driver, instant, graph.capacities[capacity].name, fraction))
    timeline = driver.run()
    played = Played(timeline.start.tolist(), timeline.end.tolist(), timeline.granted.tolist())
    event("ended" if min(played.end, default=0) >= 0 else "stuck")
    event("contended" if timeline.solves else "free")
    event("waited for a server" if max(played.granted, default=-1) >= 0 else "no waiting")
    assert driver.unfinished() == [op for op, end in enumerate(played.end) if end < 0]
    if not driver.unfinished():
        check(timeline)
    return played, timeline


@CASES
@given(graphs())
def test_the_engine_is_the_naive_engine_bit_for_bit(graph: OpGraph) -> None:
    assert engine(graph, closed=True)[0] == play(graph)


@CASES
@given(graphs())
def test_blocks_ties_and_queues_are_lowered_to_the_edges_they_mean(graph: OpGraph) -> None:
    sources, targets = flatten(graph).edges()
    assert sorted(zip(sources.tolist(), targets.tolist(), strict=True)) == edges(graph)


@CASES
@given(networks())
def test_what_happens_on_one_link_is_felt_on_all_that_depend_on_it(graph: OpGraph) -> None:
    assert engine(graph, closed=False)[0] == engine(graph, closed=True)[0] == play(graph)


@CASES
@given(st.data())
def test_capacities_that_are_known_to_change_are_not_pruned(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    moments = st.one_of(st.integers(0, 40), st.integers(0, 10**9))
    places = st.integers(0, len(graph.capacities) - 1)
    limits = data.draw(st.lists(st.tuples(moments, places, st.sampled_from([0.0, 0.3, 1.0])), min_size=1, max_size=3))
    limits = sorted(limits, key=lambda row: row[0])
    assert engine(graph, closed=True, limits=limits)[0] == play(graph, limits=limits)


@CASES
@given(st.data())
def test_the_order_of_tables_changes_nothing(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    other = data.draw(rewritten(graph))
    assert engine(graph, closed=True)[0] == engine(other, closed=True)[0]


@CASES
@given(st.data())
def test_arrivals_and_changing_capacities_are_the_naive_engine_s(data: st.DataObject) -> None:
    common: Tables = data.draw(tables())
    graph = data.draw(graphs(common))
    moments = st.one_of(st.integers(0, 40), st.integers(0, 10**9))
    later = data.draw(st.lists(st.tuples(moments, graphs(common)), max_size=2))
    numbers = st.integers(0, len(common.capacities) - 1)
    limits = data.draw(st.lists(st.tuples(moments, numbers, st.sampled_from([0.0, 0.25, 0.5, 1 / 3, 1.0])), max_size=4))
    assert engine(graph, closed=False, later=later, limits=limits)[0] == play(graph, later=later, limits=limits)
