"""Collectives whose ranks have unequal parts: amounts by number of the capacity are those by name, to the last bit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from hwsim.communication import ALGORITHMS, drawing, drawn
from hwsim.communication.addends import step_of
from hwsim.communication.algorithms import Algorithm
from hwsim.communication.algorithms.direct import Direct
from hwsim.communication.algorithms.double_tree import DoubleTree
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.algorithms.ring import Ring
from hwsim.communication.flows import Flows, Task
from hwsim.communication.pairs import columns
from hwsim.communication.placing import place
from hwsim.communication.plan import CannotCollect, Group, Operation
from hwsim.communication.rounds import rounds_of
from hwsim.machine import Machine
from hwsim.machine.handling import Handling
from hwsim.machine.libraries.overheads import Overheads
from hwsim.prepare import load_machine

RANKS = 24
SOME = Overheads(start=3e-6, step=1e-6, hop=2e-6, efficiency=0.8)


@pytest.fixture(scope="module", params=["scale/star", "scale/rail-fat-tree"])
def machine(request: pytest.FixtureRequest) -> Machine:
    let = {"scale/star": {"ranks": RANKS}, "scale/rail-fat-tree": {"nodes": RANKS // 8}}[request.param]
    return load_machine({"hwsim": "machine/1", "use": request.param, "let": let})


def drawn_parts(count: int, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [draw.choice([0.0, 1.0, 3.0, draw.random()]) for _ in range(count)]


CASES: tuple[tuple[str, Operation, Sequence[float]], ...] = (
    ("pairwise", "all-to-all", drawn_parts(RANKS, 1)),
    ("pairwise", "all-to-all", drawn_parts(RANKS * RANKS, 2)),
    ("direct", "all-to-all", drawn_parts(RANKS, 3)),
    ("pairwise", "reduce-scatter", drawn_parts(RANKS, 4)),
    ("ring", "all-reduce", drawn_parts(RANKS, 5)),
    ("pairwise", "all-to-all", ()),
)


@pytest.mark.parametrize(("name", "operation", "weights"), CASES)
def test_unequal_parts_draw_by_number_what_they_draw_by_name(
    machine: Machine, name: str, operation: Operation, weights: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(machine, operation, machine.devices_of("gpu"), 7e6, weights)

    def found() -> tuple[Flows, Any]:
        return task.flows(ALGORITHMS[name], SOME), task.together(ALGORITHMS[name], SOME)

    monkeypatch.setattr(drawn, "SEVERAL", RANKS + 1)
    by_name = found()
    monkeypatch.setattr(drawn, "SEVERAL", RANKS)
    by_number = found()
    monkeypatch.setattr(drawing, "_AT_ONCE", 50)  # a step in parts, and steps in several batches
    in_parts = found()
    assert by_number == by_name == in_parts
    assert any(phase.cost.demand.amounts for phase in by_name[0].phases)


@pytest.mark.parametrize("ranks", [1, 2, 3, 9])
@pytest.mark.parametrize("name", ["pairwise", "direct"])
def test_rounds_in_columns_are_those_of_the_plan(name: str, ranks: int) -> None:
    algorithm: Algorithm = ALGORITHMS[name]
    for operation in ("all-to-all", "reduce-scatter", "all-gather"):
        plan, weights = algorithm.plan(operation, Group(ranks)), [0.5 + rank for rank in range(ranks)]
        assert algorithm.rounds(operation, Group(ranks)) == rounds_of(plan, name=operation)
        assert algorithm.weighted(operation, Group(ranks), weights) == rounds_of(plan, weights)


def test_pairs_of_many_sizes_cost_what_each_of_them_costs(machine: Machine) -> None:
    gpus, draw = machine.devices_of("gpu"), random.Random(6)
    pairs = columns([(draw.randrange(RANKS), draw.randrange(RANKS), draw.choice([0.0, 1.0, 4096.0, draw.random() * 1e6]))
                     for _ in range(60)])  # fmt: skip
    how = Handling(by="sm")
    found = machine.draws_among(gpus, pairs.sources, pairs.targets, pairs.shares, how)
    amounts = found.amounts()
    for at, (source, target, size) in enumerate(pairs):
        demand = machine.transfer(gpus[source], gpus[target], size, how).demand
        rows = slice(int(found.first[at]), int(found.first[at + 1]))
        mine = {machine.capacity_name(number): amount for number, amount in zip(found.capacity[rows], amounts[rows], strict=True)}
        assert mine == dict(demand.amounts)
        assert found.costs[found.shape[at]].demand.latency == demand.latency


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "d2l-4gpu-pcie", "d2l-ps-cluster", "d2l-two-nodes"])
def test_sums_of_known_addends_are_those_of_single_transfers(name: str) -> None:
    machine, sums = load_machine(name), 0
    for ranks in (machine.devices_of("gpu")[:4], machine.devices_of("gpu")[1:3], machine.devices_of("cpu")[:2]):
        for algorithm in (Direct(), Ring(both=True), InNetwork(), DoubleTree()):
            try:
                placed = place(machine, algorithm, ranks)
                rounds = placed.algorithm.rounds("all-reduce", placed.group)
            except CannotCollect:
                continue
            for size in (0.0, 1.0, 4097.0, 3.3e7):
                names = drawn.Names(drawn.Exchange(machine, placed, size, SOME))
                assert [names.step(stage) for stage in rounds] == [names._one_by_one(stage) for stage in rounds]
            sums += sum(step_of(machine, placed, stage) is not None for stage in rounds)
    assert sums or not name.startswith("dgx")
