from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from os import environ

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwsim.demand import Demand
from hwsim.engine.compile import flow_class
from hwsim.engine.fair import FULL, LEVEL_BITS, UNBOUND, WEIGHT_BITS, fill

CASES = settings(max_examples=3000 if environ.get("HWSIM_THOROUGH") else 100, deadline=None)


@dataclass(frozen=True)
class Case:
    alone: list[int]
    members: list[int]
    weights: list[list[tuple[int, int]]]
    room: dict[int, int]

    def solve(self) -> tuple[list[int], list[int]]:
        return fill(self.alone, self.members, self.weights, self.room)

    def users(self, capacity: int) -> list[tuple[int, int]]:
        """(class, what all its members take of the capacity at pace 1)."""
        return [
            (one, count * weight)
            for one, (count, pairs) in enumerate(zip(self.members, self.weights, strict=True))
            for number, weight in pairs
            if number == capacity
        ]

    def left(self, capacity: int, pace: Sequence[int]) -> int:
        return self.room[capacity] - sum(pace[one] * weight for one, weight in self.users(capacity))


# small numbers, in which every rounding shows; and numbers of the size of real ones
SCALES = [(1000, 20, 200), (FULL, 1 << WEIGHT_BITS, 1 << LEVEL_BITS), (FULL, 3, 1 << 170)]


@st.composite
def cases(draw: st.DrawFn, most: int = 8) -> Case:
    room, weight, alone = draw(st.sampled_from(SCALES))
    numbers = range(draw(st.integers(1, 5)))
    count = draw(st.integers(1, most))
    weights = [
        [
            (capacity, draw(st.integers(1, weight)))
            for capacity in draw(st.lists(st.sampled_from(numbers), max_size=4, unique=True))
        ]
        for _ in range(count)
    ]
    return Case(
        alone=[draw(st.one_of(st.integers(1, alone), st.sampled_from([alone // 3 + 1, alone]))) for _ in range(count)],
        members=[draw(st.integers(1, 4)) for _ in range(count)],
        weights=weights,
        room={capacity: draw(st.one_of(st.just(room), st.integers(0, room))) for capacity in numbers},
    )


@CASES
@given(cases())
def test_every_demand_runs_at_its_own_limit_or_is_held_back_by_a_full_capacity_it_leads(case: Case) -> None:
    pace, bound = case.solve()
    assert all(case.left(capacity, pace) >= 0 for capacity in case.room)
    for one, capacity in enumerate(bound):
        if capacity == UNBOUND:
            assert pace[one] == case.alone[one]
            continue
        users = case.users(capacity)
        assert pace[one] <= case.alone[one]
        assert one in dict(users)
        assert max(pace[other] for other, _ in users) == pace[one]
        # full: a step more for those at the top, and it would overflow
        assert case.left(capacity, pace) < sum(weight for other, weight in users if pace[other] == pace[one])


@CASES
@given(cases())
def test_m_equal_demands_are_one_of_multiplicity_m(case: Case) -> None:
    apart = [one for one, count in enumerate(case.members) for _ in range(count)]
    split = Case([case.alone[one] for one in apart], [1] * len(apart), [case.weights[one] for one in apart], case.room)
    merged, bound = case.solve()
    assert split.solve() == ([merged[one] for one in apart], [bound[one] for one in apart])


BANDWIDTH = 1e9  # shares are bytes, or time x bandwidth: a unit of pace is then far below a fs

spans = st.one_of(st.integers(1, 8).map(lambda count: count / 8), st.floats(1e-6, 10.0))


@st.composite
def demands(draw: st.DrawFn, names: Sequence[str]) -> Demand:
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    amounts = tuple(sorted((name, draw(spans)) for name in chosen))
    return Demand(amounts=amounts, floor=draw(st.one_of(st.just(0.0), spans)), share=draw(spans) * BANDWIDTH)


def progress(asked: Sequence[Demand], rates: Mapping[str, float]) -> list[Fraction]:
    """Share of the whole that each demand gets done in a second, all running at once."""
    numbers = {name: number for number, name in enumerate(rates)}
    classes = [flow_class(demand, rates, numbers) for demand in asked]
    room = dict.fromkeys(range(len(rates)), FULL)
    pace, _ = fill([class_.alone for class_ in classes], [1] * len(classes), [one.weights for one in classes], room)
    return [Fraction(got) / (Fraction(demand.share) * 2**LEVEL_BITS) for got, demand in zip(pace, asked, strict=True)]


@CASES
@given(st.data(), st.booleans())
def test_more_work_never_makes_a_demand_faster(data: st.DataObject, by_size: bool) -> None:
    rates = {f"c{number}": data.draw(st.sampled_from([1.0, 2.0, 3.0])) for number in range(data.draw(st.integers(1, 4)))}
    asked = data.draw(st.lists(demands(sorted(rates)), min_size=1, max_size=6))
    at = data.draw(st.integers(0, len(asked[0].amounts) - 1))
    factor = data.draw(st.sampled_from([1.0001, 1.3, 2.0, 10.0]))
    name, amount = asked[0].amounts[at]
    raised = (*asked[0].amounts[:at], (name, amount * factor), *asked[0].amounts[at + 1 :])

    def with_share(amounts: tuple[tuple[str, float], ...]) -> Demand:
        largest = max(amount / rates[name] for name, amount in amounts)
        return replace(asked[0], amounts=amounts, share=largest * BANDWIDTH if by_size else asked[0].share)

    less, more = with_share(asked[0].amounts), with_share(raised)
    before, after = progress([less, *asked[1:]], rates)[0], progress([more, *asked[1:]], rates)[0]
    assert more.alone(rates) >= less.alone(rates)
    assume(before > 0)
    assert after > 0
    assert 1 / after >= 1 / before - Fraction(1, 10**15)


def naively(case: Case) -> list[int]:
    """Progressive filling as defined: all paces rise together, each until its own limit or a full capacity stops it."""
    weights = [dict(pairs) for pairs in case.weights]
    settled: dict[int, int] = {}
    while len(settled) < len(weights):
        rising = [one for one in range(len(weights)) if one not in settled]
        levels: dict[int, int] = {}
        for capacity in case.room:
            load = sum(case.members[one] * weights[one].get(capacity, 0) for one in rising)
            taken = sum(pace * case.members[one] * weights[one].get(capacity, 0) for one, pace in settled.items())
            if load:
                levels[capacity] = (case.room[capacity] - taken) // load
        slowest = min(rising, key=lambda one: case.alone[one])
        level = min(levels.values(), default=case.alone[slowest])
        if case.alone[slowest] <= level:
            settled[slowest] = case.alone[slowest]
            continue
        full = {capacity for capacity, reached in levels.items() if reached == level}
        settled.update({one: level for one in rising if full & weights[one].keys()})
    return [settled[index] for index in range(len(weights))]


@CASES
@given(cases())
def test_paces_are_those_of_filling_step_by_step(case: Case) -> None:
    assert case.solve()[0] == naively(case)
