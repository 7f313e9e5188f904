"""Stations of several capacities give their members what the engine gives them, to the femtosecond."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hwsim.actors.services.networks import Network, Tied
from hwsim.actors.services.stations import NEVER
from hwsim.demand import Capacity, Demand, rates_of
from hwsim.engine.compile import flow_class
from hwsim.engine.fluid import FlowClass

CAPACITIES = (Capacity("cores", 4.0), Capacity("link", 3e9, "B"), Capacity("disk", 1.0))
NUMBERS = {capacity.name: number for number, capacity in enumerate(CAPACITIES)}


@st.composite
def flows(draw: st.DrawFn) -> list[FlowClass]:
    """Kinds of work that draw from one or more of the capacities."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.sets(st.sampled_from(sorted(NUMBERS)), min_size=1))
        amounts = tuple(
            (name, CAPACITIES[NUMBERS[name]].rate * draw(st.sampled_from([1e-3, 2e-3, 3.3e-4, 1e-6]))) for name in sorted(names)
        )
        floor = draw(st.sampled_from([0.0, 1e-3, 7e-3]))
        demand = Demand(amounts=amounts, floor=floor, share=draw(st.sampled_from([1.0, 1e6, 3.0])))
        found.append(flow_class(demand, rates_of(CAPACITIES), NUMBERS))
    return found


@given(flows(), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**13), st.integers(0, 3 * 10**12)), max_size=40))
def test_paces_by_the_numbers_there_are_those_of_the_engine(kinds: list[FlowClass], comes: list[tuple[int, int, int]]) -> None:
    """(kind, time alone, fs after the one before) of those that come."""
    tied, fluid = Tied(kinds), Network(kinds, len(CAPACITIES))
    now = 0
    for member, (kind, time, wait) in enumerate([*comes, (0, 0, NEVER)]):
        while fluid.due <= now + wait and fluid.due < NEVER:
            assert tied.due == fluid.due
            assert tied.leave(fluid.due) == fluid.leave(fluid.due)
        if wait == NEVER:
            break
        now += wait
        for each in (tied, fluid):
            each.join(kind % len(kinds), time, member, now)
        assert (tied.due, tied.count(now), tied.area) == (fluid.due, fluid.count(now), fluid.area)
    assert tied.due == fluid.due == NEVER
    assert (tied.count(now), tied.area) == (fluid.count(now), fluid.area)
