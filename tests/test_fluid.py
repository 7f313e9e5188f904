"""Mending the last solution gives what solving everything anew gives, whatever comes, goes or changes."""

from __future__ import annotations

from dataclasses import dataclass
from os import environ

from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.engine.fair import FULL, LEVEL_BITS, UNBOUND, WEIGHT_BITS, fill
from hwsim.engine.fluid import FlowClass, Fluid

CASES = settings(max_examples=5000 if environ.get("HWSIM_THOROUGH") else 100, deadline=None)


@dataclass(frozen=True)
class Step:
    """Members that come and members that go, by class; and the room a capacity has from now on."""

    come: dict[int, int]
    go: dict[int, int]
    room: dict[int, int]


# alone x weight is at most FULL, as `flow_class` makes them; coarse ones show every rounding
SCALES = [(1 << LEVEL_BITS, 1 << WEIGHT_BITS), (FULL // 20, 20), (FULL // (1 << 60), 1 << 60)]


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[FlowClass], int]:
    capacities = draw(st.integers(2, 7))
    alone, weight = draw(st.sampled_from(SCALES))
    some = [alone, alone // 2, alone // 3 + 1, alone // 7 + 1]
    some = some if draw(st.booleans()) else some[:1]
    classes = []
    for _ in range(draw(st.integers(2, 12))):
        crossed = draw(st.lists(st.integers(0, capacities - 1), min_size=1, max_size=3, unique=True))
        held = [crossed.pop()] if crossed and draw(st.integers(0, 5)) == 0 else []
        classes.append(
            FlowClass(
                draw(st.sampled_from(some)),
                tuple(
                    sorted((capacity, draw(st.sampled_from([weight, weight // 2, weight // 3 + 1, 1]))) for capacity in crossed)
                ),
                tuple((capacity, FULL // draw(st.integers(3, 9))) for capacity in held),
            )
        )
    return classes, capacities


@st.composite
def steps(draw: st.DrawFn, classes: int, capacities: int) -> Step:
    some = st.dictionaries(st.integers(0, classes - 1), st.integers(1, 3), max_size=4)
    rooms = st.sampled_from([0, FULL // 7, FULL // 2, FULL])
    changes = st.dictionaries(st.integers(0, capacities - 1), rooms, max_size=1)
    return Step(draw(some), draw(some), draw(changes) if draw(st.integers(0, 3)) == 0 else {})


@CASES
@given(st.data())
def test_mended_paces_are_those_of_the_whole_filling(data: st.DataObject) -> None:
    classes, capacities = data.draw(networks())
    fluid = Fluid(classes, capacities)
    op = 0
    for now in range(data.draw(st.integers(1, 12))):
        step = data.draw(steps(len(classes), capacities))
        for number, count in step.go.items():
            for _ in range(min(count, len(fluid.members[number]))):
                fluid.due[number] = now  # as if the first had received all its service
                fluid.virtual[number], fluid.since[number] = fluid.members[number][0][0], now
                fluid.leave(number, now)
        for number, count in step.come.items():
            for _ in range(count):
                op += 1
                fluid.join(number, op, 10**30 + op, now)
        for capacity, room in step.room.items():
            fluid.set_room(capacity, room)
        fluid.settle(now)
        active = [number for number in range(len(classes)) if fluid.members[number]]
        held = [0] * capacities
        for number in active:
            for capacity, part in classes[number].holds:
                held[capacity] += part * len(fluid.members[number])
        pace, bound = fill(
            [classes[number].alone for number in active],
            [len(fluid.members[number]) for number in active],
            [classes[number].weights for number in active],
            {capacity: max(0, fluid.room[capacity] - held[capacity]) for capacity in range(capacities)},
        )
        assert [fluid.pace[number] for number in active] == pace
        assert [fluid.history[number][-1].bound for number in active] == bound
        assert all(fluid.pace[number] == 0 for number in range(len(classes)) if number not in active)
        assert UNBOUND not in [one for one, alone in zip(bound, active, strict=True) if fluid.pace[alone] < classes[alone].alone]
