"""Folding, part by part: what a demand of a multiplicity is to the engine, and how ranks are told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hwsim import engine
from hwsim.api import load_machine, load_workload, prepare
from hwsim.demand import Capacity, Cost, Demand
from hwsim.engine.core import is_there
from hwsim.graph.fold import CannotFold, TemplateOp, fold, quotient, refine
from hwsim.graph.fold.refine import Ties, is_equitable
from hwsim.workload import GraphBuilder
from hwsim.workload.lower import FEWEST, WIDEST

# ---- in the engine


@st.composite
def demands(draw: st.DrawFn) -> list[tuple[int, Demand]]:
    """(how many of it, what each asks of capacities that all of them share and of one that is its own)."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        shared = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True))
        amounts = {name: draw(st.sampled_from([1e3, 2.5e3, 7e3])) for name in shared} | {"own": draw(st.sampled_from([1e3, 9e3]))}
        holds = (("held", draw(st.sampled_from([0.001, 0.004]))),) if draw(st.booleans()) else ()
        share = max(amounts.values())
        found.append((draw(st.integers(1, 9)), Demand(amounts=tuple(sorted(amounts.items())), holds=holds, share=share)))
    return found


@given(demands())
@settings(max_examples=60, deadline=None, derandomize=True)
@pytest.mark.parametrize("fast", ["never", "always"])
def test_a_demand_of_a_multiplicity_is_so_many_equal_demands(
    fast: Literal["never", "always"], case: list[tuple[int, Demand]]
) -> None:
    if fast == "always" and not is_there():
        pytest.skip("the compiled core is not installed")
    rates = [*(Capacity(name, 1e6) for name in "abc"), Capacity("held", 1.0)]

    def own(demand: Demand, kind: int, number: int) -> Demand:
        amounts = sorted((f"own{kind}.{number}" if name == "own" else name, amount) for name, amount in demand.amounts)
        return replace(demand, amounts=tuple(amounts))

    many = GraphBuilder(
        [*rates, *(Capacity(f"own{kind}.{n}", 1e6) for kind, (count, _) in enumerate(case) for n in range(count))]
    )
    few = GraphBuilder([*rates, *(Capacity(f"own{kind}.0", 1e6) for kind in range(len(case)))])
    for kind, (count, demand) in enumerate(case):
        for number in range(count):
            many.op(str(kind), cost=Cost(own(demand, kind, number)), time=kind * 1e-4)
        one = own(demand, kind, 0)
        times = tuple(1 if name.startswith("own") else count for name, _ in (*one.amounts, *one.holds))
        few.op(str(kind), cost=Cost(replace(one, times=times)), time=kind * 1e-4)
    whole, folded = (engine.simulate(graph.build(), fast=fast) for graph in (many, few))
    ends = folded.end.tolist()
    assert whole.end.tolist() == [ends[kind] for kind, (count, _) in enumerate(case) for _ in range(count)]


# ---- the refinement


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2, st.integers(0, 2)), max_size=60))
    )
)
@example((5, [(0, 4, 0), (2, 1, 0)]))  # a neighbour of class 0 by label 1, and one of class 1 by label 0
def test_refinement_is_equitable_and_the_coarsest(case: tuple[int, list[tuple[int, int, int]]]) -> None:
    things, rows = case
    one, other, label = np.array(rows, np.int64).reshape(-1, 3).T
    ties, colours = Ties.of(things, one, other, label), np.arange(things) % 2
    found = refine.refine(colours, ties)
    assert found is not None
    assert is_equitable(colours, ties, found)
    assert found.tolist() == slowly(colours.tolist(), rows)


def slowly(colours: list[int], rows: list[tuple[int, int, int]]) -> list[int]:
    """The same by its definition, without numbers that stand for others."""
    while True:
        looks: list[Any] = []
        for thing, colour in enumerate(colours):
            beside = [(label, 0, colours[other]) for one, other, label in rows if one == thing]
            beside += [(label, 1, colours[one]) for one, other, label in rows if other == thing]
            looks.append((colour, tuple(sorted(beside))))
        known: dict[Any, int] = {}
        finer = [known.setdefault(look, len(known)) for look in looks]
        if len(known) == len(set(colours)):
            return finer
        colours = finer


def test_a_capacity_that_never_binds_tells_nobody_apart() -> None:
    rates = {"a0": Capacity("a0", 1.0), "a1": Capacity("a1", 1.0), "wide": Capacity("wide", 100.0)}

    def op(rank: int, *more: tuple[str, float]) -> TemplateOp:
        cost = Cost(Demand(amounts=tuple(sorted([(f"a{rank}", 1.0), *more])), share=1.0))
        return TemplateOp("op", cost, (((), (rank,)),), line=rank)

    found = fold(["rank"] * 2, [op(0, ("wide", 1.0)), op(1)], rates)
    assert found.ranks.size.tolist() == [2]
    narrow = {**rates, "wide": Capacity("wide", 0.5)}
    assert fold(["rank"] * 2, [op(0, ("wide", 1.0)), op(1)], narrow).ranks.size.tolist() == [1, 1]


def test_neighbours_that_all_differ_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotient, "MOST_WORK", 100)
    ops = [TemplateOp("next", None, (("from", (rank,)), ("to", (rank + 1,)))) for rank in range(40)]
    with pytest.raises(CannotFold, match="hardly any"):
        fold(["rank"] * 41, ops, {})


def test_a_wide_op_needs_one_capacity_of_each_kind() -> None:
    star = load_machine("scale/star")
    workload = load_workload("scale/allreduce")
    graph = prepare(star, workload).graph
    assert graph.alike is not None
    assert [len(graph.capacities), sum(graph.alike.capacities.values())] == [3, 3 * 1024]
    assert FEWEST <= WIDEST
