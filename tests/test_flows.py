"""Many flows over small stars and fat-trees: Python's engine, the compiled one and max-min by its definition say the same."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.demand import Capacity, Demand
from hwsim.engine import Driver, core, native
from hwsim.engine.compile import compile_flat
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import OpGraph
from hwsim.results.timeline import Timeline
from tests.engine_graphs import graph_of
from tests.strategies import make_block

UNIT = 2**64
NEAR = 1e-9  # of a pace, what rounding down can take


@st.composite
def fabrics(draw: st.DrawFn) -> OpGraph:
    """Flows of several sizes between the hosts of a star or of a fat-tree, some only once others have ended.

    Rates are few, so that levels are often equal, or nearly: 1/3 and 2/3 of a link are rounded.
    """
    leaves, spines = draw(st.sampled_from([(1, 0), (2, 1), (2, 2), (3, 2)]))
    hosts = leaves * draw(st.integers(2, 4))
    number = st.integers(0, hosts - 1)
    many = draw(st.integers(2, 40))
    rates = {}
    costs = []
    for _ in range(many):
        source, target = draw(number), draw(number)
        crossed = [f"up{source}", f"down{target}"]
        here, there = source % leaves, target % leaves
        if here != there:
            spine = draw(st.integers(0, spines - 1))
            crossed += [f"leaf{here}-spine{spine}", f"spine{spine}-leaf{there}"]
        floor = draw(st.sampled_from([0.0, 0.0, 3e-9]))
        costs.append(Demand(1e-6, tuple((name, 1.0) for name in sorted(crossed)), floor=floor))
        rates.update(dict.fromkeys(crossed, 0.0))
    capacities = [Capacity(name, draw(st.sampled_from([1e9, 1e9, 1e9, 4e8, 3e9]))) for name in sorted(rates)]
    sizes = draw(st.lists(st.integers(1, 12), min_size=many, max_size=many))
    starts = draw(st.lists(st.tuples(number.map(lambda one: one % many), st.integers(0, many - 1)), max_size=6))
    edges = [(low, high, 0) for low, high in starts if low < high]
    return graph_of(make_block(range(many), size=[size * 1e6 for size in sizes], edges=edges), costs=costs, capacities=capacities)


def by_definition(graph: OpGraph, active: list[int]) -> list[Fraction]:
    """Rates of active flows, by progressive filling in fractions: nothing of the engine's."""
    left = {capacity.name: Fraction(capacity.rate) for capacity in graph.capacities}
    demands = [graph.costs[number].demand for number in active]
    limits = [min([left[name] for name, _ in demand.amounts]) for demand in demands]
    limits = [min(limit, 1 / Fraction(one.floor)) if one.floor else limit for limit, one in zip(limits, demands, strict=True)]
    rates: list[Fraction | None] = [None] * len(active)
    while None in rates:
        rising = [place for place, rate in enumerate(rates) if rate is None]
        users = {name: [place for place in rising if name in dict(demands[place].amounts)] for name in left}
        fills = {name: left[name] / len(those) for name, those in users.items() if those}
        level = min([*fills.values(), *(limits[place] for place in rising)])
        stopping = {place for place in rising if limits[place] == level}
        stopping |= {place for name, fill in fills.items() if fill == level for place in users[name]}
        for place in stopping:
            rates[place] = level
            for name, _ in demands[place].amounts:
                left[name] -= level
    return [rate for rate in rates if rate is not None]


def python(graph: OpGraph) -> Timeline:
    driver = Driver(graph.capacities, graph.pools, closed=True)
    driver.submit(graph)
    return driver.run()


@settings(max_examples=60, deadline=None)
@given(fabrics())
def test_compiled_code_says_what_python_says_of_fabrics(graph: OpGraph) -> None:
    if not core.is_there():
        pytest.skip(f"nothing to compare Python with: {core.found()}")
    flat = flatten(graph)
    found, expected = native.play(flat, compile_flat(flat)), python(graph)
    assert found is not None
    assert found.end.tolist() == expected.end.tolist()
    assert found.flow_class.tolist() == expected.flow_class.tolist()
    assert [list(course) for course in found.paces] == [list(course) for course in expected.paces]
    for number in range(len(expected.paces)):
        assert found.held(number) == expected.held(number)


@settings(max_examples=25, deadline=None)
@given(fabrics(), st.integers(0, 9))
def test_paces_are_max_min_fair_by_definition(graph: OpGraph, tenth: int) -> None:
    timeline = python(graph)
    flat = timeline.flat
    instant = timeline.makespan_fs * tenth // 10 + 1
    flowing = timeline.start + 10**9
    active = [op for op in range(len(timeline)) if flowing[op] <= instant < timeline.end[op]]
    for op, rate in zip(active, by_definition(graph, [int(flat.cost[op]) for op in active]), strict=True):
        number = int(timeline.flow_class[op])
        if number < 0:
            continue  # it can share nothing
        pace = [change.pace for change in timeline.paces[number] if change.start <= instant][-1]
        assert pace / UNIT == pytest.approx(float(rate), rel=NEAR)
