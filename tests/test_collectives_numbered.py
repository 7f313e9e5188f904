"""Collectives whose ranks have unequal parts: in columns they draw what single transfers draw, to the last bit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from hwsim.communication import ALGORITHMS
from hwsim.communication import step_draws as drawing
from hwsim.communication.algorithms import Algorithm
from hwsim.communication.algorithms.direct import DirectExchange
from hwsim.communication.algorithms.double_tree import DoubleTree
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.algorithms.ring import RingAlgorithm
from hwsim.communication.flows import Flows, Task
from hwsim.communication.ledger import Ledger, PlacedCollective
from hwsim.communication.pairs import pairs_in_columns
from hwsim.communication.placement import handling, place
from hwsim.communication.plan import CannotCollect, Operation, RankGroup
from hwsim.communication.rounds import Round, rounds_of
from hwsim.communication.step_draws import StepDraws
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.machine.libraries.overheads import Overheads
from hwsim.machine.transfer_options import TransferOptions
from hwsim.prepare import load_machine
from tests.eager_net import drawn_of

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
def test_steps_in_parts_and_batches_draw_what_they_draw_at_once(
    machine: Machine, name: str, operation: Operation, weights: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(machine, operation, machine.devices_of("gpu"), 7e6, weights)

    def found() -> tuple[Flows, Any]:
        return task.flows(ALGORITHMS[name], SOME), task.together(ALGORITHMS[name], SOME)

    at_once = found()
    monkeypatch.setattr(drawing, "_AT_ONCE", 50)
    assert found() == at_once
    assert any(phase.cost.demand.amounts for phase in at_once[0].phases)


@pytest.mark.parametrize("ranks", [1, 2, 3, 9])
@pytest.mark.parametrize("name", ["pairwise", "direct"])
def test_rounds_in_columns_are_those_of_the_plan(name: str, ranks: int) -> None:
    algorithm: Algorithm = ALGORITHMS[name]
    for operation in ("all-to-all", "reduce-scatter", "all-gather"):
        plan, weights = algorithm.plan(operation, RankGroup(ranks)), [0.5 + rank for rank in range(ranks)]
        assert algorithm.rounds(operation, RankGroup(ranks)) == rounds_of(plan, name=operation)
        assert algorithm.weighted(operation, RankGroup(ranks), weights) == rounds_of(plan, weights)


def test_pairs_of_many_sizes_cost_what_each_of_them_costs(machine: Machine) -> None:
    gpus, draw = machine.devices_of("gpu"), random.Random(6)
    pairs = pairs_in_columns([(draw.randrange(RANKS), draw.randrange(RANKS), draw.choice([0.0, 1.0, 4096.0, draw.random() * 1e6]))
                     for _ in range(60)])  # fmt: skip
    how = TransferOptions(by="sm")
    found = machine.draws_among(gpus, pairs.sources, pairs.targets, pairs.shares, how)
    for index, (source, target, size) in enumerate(pairs):
        assert drawn_of(machine, found, index) == dict(machine.transfer(gpus[source], gpus[target], size, how).demand.amounts)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "d2l-4gpu-pcie", "d2l-ps-cluster", "d2l-two-nodes"])
def test_a_step_draws_the_sums_of_its_transfers(name: str) -> None:
    machine = load_machine(name)
    gpus, cpus = machine.devices_of("gpu"), machine.devices_of("cpu")
    for ranks in (gpus[:4], gpus[1:3], cpus[:2], (*gpus[:2], *cpus[:1]), (*list(machine.groups)[:1], *gpus[:2])):
        for algorithm in (DirectExchange(), RingAlgorithm(both=True), InNetwork(), DoubleTree(), ALGORITHMS["ps-cpu"]):
            try:
                placed = place(machine, algorithm, ranks)
                rounds = placed.algorithm.rounds("all-reduce", placed.group)
            except (CannotCollect, NoRoute, UnknownName):
                continue
            known = StepDraws(machine, placed, rounds)
            for size in (0.0, 1.0, 4097.0, 3.3e7):
                ledger = Ledger(PlacedCollective(machine, placed, size, SOME), known)
                assert [drawn(ledger, known, stage) for stage in rounds] == [
                    one_by_one(ledger.exchange, stage) for stage in rounds
                ]


def drawn(ledger: Ledger, drawing: StepDraws, stage: Round) -> tuple[dict[str, float], tuple[float, float]]:
    sums, waits = ledger.step(stage)
    return {drawing.name(place): amount for place, amount in enumerate(sums.amounts.tolist()) if amount}, waits


def one_by_one(exchange: PlacedCollective, stage: Round) -> tuple[dict[str, float], tuple[float, float]]:
    """Amounts by capacity, and the wait, of single transfers."""
    machine, placed, amounts, waits = exchange.machine, exchange.placed, dict[str, float](), (0.0, 0.0)
    for source, target, share in stage.pairs:
        a, b, size = placed.parties[source], placed.parties[target], share * exchange.size
        demand = machine.transfer(a, b, size, handling(machine, placed.algorithm, a, b)).demand
        waits = max(waits, (SOME.of_step(placed.across(a, b)), demand.latency), key=sum)
        for name, amount in demand.amounts:
            if exchange.is_wire(name) and isinstance(placed.algorithm, InNetwork):
                amounts[name] = max(amounts.get(name, 0.0), amount / SOME.efficiency)
            else:
                amounts[name] = amounts.get(name, 0.0) + (amount / SOME.efficiency if exchange.is_wire(name) else amount)
        if stage.reduce and (read := exchange.read_again(b, size)) is not None:
            amounts[read[0]] = amounts.get(read[0], 0.0) + read[1]
    return amounts, waits
