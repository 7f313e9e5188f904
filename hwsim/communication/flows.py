"""Collectives as steady flows: the amounts that their phases draw from every link and memory of a machine.

A ring in steady state is one demand: all its steps use the same links, so 2 (n - 1)/n of the bytes pass each link during the
collective. An algorithm whose steps use different links one after another (push, then pull; the levels of a tree) has several
phases, each with its own demand.

    without contention:  sum over the phases of  latency + max(floor, max(amount / capacity))
    latency = start + steps x (overhead of a step + latency of its longest route)

Error: none relative to the same sends step by step on an idle machine. Up to 15 % if other traffic moves along a ring while it
runs: its slowest link at each moment limits the ring, as if chunks could not overtake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final, NamedTuple

from hwsim.communication.algorithms import Algorithm
from hwsim.communication.ledger import Ledger, PlacedCollective, SlowestCapacity, Sums, Waits
from hwsim.communication.pairs import same_ends
from hwsim.communication.placement import PlacedAlgorithm, handling, place
from hwsim.communication.plan import CannotCollect, Operation
from hwsim.communication.rounds import Round
from hwsim.communication.step_draws import StepDraws
from hwsim.demand import Cost, Term
from hwsim.devices.roofline import WORKLOAD, source_of
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.machine.contents import BoundedCache
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.origins import Cited
from hwsim.records import dataclass

_LOOKED_AT: Final = 64  # maximum pairs of a step that are searched for the longest wait
_SEVERAL: Final = 32  # maximum ranks of cached plans


@dataclass(frozen=True, slots=True)
class CollectivePhase:
    """A part of a collective with one demand."""

    name: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Flows:
    """A collective as consecutive phases."""

    algorithm: Algorithm
    operation: Operation
    parties: tuple[str, ...]
    phases: tuple[CollectivePhase, ...]

    def alone(self, rates: Mapping[str, float]) -> float:
        """Return the seconds without contention."""
        return math.fsum(_solo_seconds(phase.cost, rates) for phase in self.phases)


def _solo_seconds(cost: Cost, rates: Mapping[str, float]) -> float:
    wires = cost.wide.kinds if cost.wide is not None else ()
    body = max([cost.demand.body(rates), *(wire.amount / wire.capacity.rate for wire in wires)])
    return cost.demand.latency + body


class PlannedCollective(NamedTuple):
    """A planned collective.

    Args:
        placed: algorithm on the devices.
        merged: rounds, grouped by demand.
        pieces: pieces of a pipeline.
        drawing: amounts that pairs draw.
    """

    placed: PlacedAlgorithm
    merged: list[list[Round]]
    pieces: int
    drawing: StepDraws


class Plans(BoundedCache[tuple[Algorithm, Operation, tuple[str, ...]], PlannedCollective]):
    """Cached plans of collectives among few devices, for any message size."""


def _plan_task(task: Task, algorithm: Algorithm) -> PlannedCollective:
    check(algorithm, task.operation)
    placed = place(task.machine, algorithm, task.devices)
    algorithm, group = placed.algorithm, placed.group
    if task.weights:
        rounds, pieces = algorithm.weighted(task.operation, group, task.weights), 1
    else:
        rounds, pieces = algorithm.rounds(task.operation, group), algorithm.in_flight(group)
    return PlannedCollective(placed, _merge_rounds(rounds, pieces), pieces, StepDraws(task.machine, placed, rounds))


@dataclass(frozen=True, slots=True)
class PhaseSum:
    """The sum of a collective's phases, if its time is known; the phases have no costs of their own.

    Args:
        total: cost of all amounts without a time.
        busy: seconds that the links are busy, phase after phase.
        even: the same with equal parts of the ranks.
    """

    flows: Flows
    total: Cost
    busy: float
    even: float


@dataclass(frozen=True, slots=True)
class Task:
    """A collective whose algorithm is not yet chosen.

    Args:
        devices: full names; the first is the root.
        size: bytes of one rank's array, as in nccl-tests.
        weights: relative parts of the ranks; empty: equal parts.
        columns: whether costs among very many devices may be `Cost.wide`.
    """

    machine: Machine
    operation: Operation
    devices: Sequence[str]
    size: float
    weights: Sequence[float] = ()
    columns: bool = False

    def flows(self, algorithm: Algorithm, overheads: Overheads = PLAIN) -> Flows:
        """Return the phases by an algorithm.

        Raises:
            CannotCollect: the algorithm does not support the operation, or not among these devices.
            NoRoute, UnknownName: the machine does not link the devices.
        """
        return self.fastest(algorithm, (overheads,))[0]

    def fastest(self, algorithm: Algorithm, choices: Sequence[Overheads]) -> tuple[Flows, Overheads]:
        """Return the phases with the overheads that take the shortest time without contention, and these overheads."""
        planned, ledgers = self._plan_task(algorithm, *choices, columns=self.columns)
        phases = list(enumerate(planned.merged))
        flows = [[_flow(ledger, rounds, planned.pieces, first=number == 0) for ledger in ledgers] for number, rounds in phases]
        taken = [
            math.fsum(of_phase[index].total.latency + ledger.seconds(of_phase[index].total) for of_phase in flows)
            for index, ledger in enumerate(ledgers)
        ]
        best = taken.index(min(taken))
        costs = [_cost(ledgers[best], of_phase[best], first=number == 0) for number, of_phase in enumerate(flows)]
        named = tuple([CollectivePhase(_name(rounds), cost) for rounds, cost in zip(planned.merged, costs, strict=True)])
        return Flows(planned.placed.algorithm, self.operation, planned.placed.parties, named), choices[best]

    def together(self, algorithm: Algorithm, overheads: Overheads = PLAIN) -> PhaseSum:
        """Return the sum of the phases by an algorithm."""
        planned, (ledger,) = self._plan_task(algorithm, overheads)
        all_phases, taken, evenly = Sums(), list[float](), list[float]()
        even = replace(self, weights=()).busy(algorithm, overheads) if self.weights else None
        for rounds in planned.merged:
            total = _total(ledger, rounds)
            all_phases.add(total, 1.0)
            taken.append(ledger.busy(total))
            evenly += islice(even or (), 1)  # one value per phase with the same pairs
        added = ledger.cost(all_phases, ledger.on_slowest_link(all_phases) or 1.0, ())
        if not planned.merged:
            added = replace(added, demand=replace(added.demand, holds=()))
        busy = math.fsum(taken)
        flows = Flows(planned.placed.algorithm, self.operation, planned.placed.parties, ())
        return PhaseSum(flows, added, busy, busy if even is None else math.fsum(chain(evenly, even)))

    def busy(self, algorithm: Algorithm, overheads: Overheads) -> Iterator[float]:
        """Return the seconds that the links are busy, by phase."""
        planned, (ledger,) = self._plan_task(algorithm, overheads)
        return (ledger.busy(_total(ledger, rounds)) for rounds in planned.merged)

    def longest_of_first(self, algorithm: Algorithm, word: Callable[[str], str]) -> tuple[float, str]:
        """Return (seconds, word for the kind of link) of the slowest capacity of the first phase.

        This is fast even among many devices, because hardly any capacity is named.
        """
        planned, (ledger,) = self._plan_task(algorithm, PLAIN)
        return ledger.longest(_total(ledger, planned.merged[0]), word)

    def _plan_task(
        self, algorithm: Algorithm, *choices: Overheads, columns: bool = False
    ) -> tuple[PlannedCollective, list[Ledger]]:
        """Return the plan, cached among few devices for any size, and the sums of its steps with each of the overheads."""
        key = algorithm, self.operation, tuple(self.devices)
        if self.weights or len(self.devices) > _SEVERAL:
            planned = _plan_task(self, algorithm)
        else:
            planned = self.machine.kept(Plans).known(key, _plan_task, self, algorithm)
        exchanges = [PlacedCollective(self.machine, planned.placed, self.size, overheads) for overheads in choices]
        return planned, [Ledger(exchange, planned.drawing, columns=columns) for exchange in exchanges]

    def among(self, devices: Sequence[str]) -> Task:
        """Return the same collective among other devices."""
        return replace(self, devices=devices)


def check(algorithm: Algorithm, operation: Operation) -> None:
    """Raise CannotCollect unless the algorithm supports the operation."""
    if operation not in algorithm.operations:
        raise CannotCollect(f"{algorithm.kind} does not support {operation}", f"supported: {', '.join(algorithm.operations)}")


def _merge_rounds(rounds: Sequence[Round], pieces: int) -> list[list[Round]]:
    """Return the rounds grouped by demand: rounds of a pipeline, or successive rounds over the same pairs."""
    if pieces > 1:
        return [list(rounds)] if rounds else []
    merged: list[list[Round]] = []
    for stage in rounds:
        if merged and same_ends(merged[-1][-1].pairs, stage.pairs):
            merged[-1].append(stage)
        else:
            merged.append([stage])
    return merged


def _total(ledger: Ledger, rounds: Sequence[Round]) -> Sums:
    total = Sums()
    for stage in rounds:
        total.add(ledger.step(stage)[0], stage.times)
    return total


def _name(rounds: Sequence[Round]) -> str:
    names = list(dict.fromkeys(stage.name for stage in rounds))
    return " + ".join(names) if len(names) < 4 else f"{names[0]} ... {names[-1]}"


class _RoundFlow(NamedTuple):
    """Rounds that flow as one.

    Args:
        total: amounts, latency and floor.
        body: seconds of the amounts.
        waits: (round, number of steps that wait, wait of each step).
    """

    total: Sums
    body: float
    waits: tuple[tuple[Round, int, Waits], ...]


def _flow(ledger: Ledger, rounds: Sequence[Round], pieces: int, *, first: bool) -> _RoundFlow:
    total, overheads = Sums(), ledger.exchange.overheads
    total.latency = overheads.start if first else 0.0
    filled = 0.0  # consecutive steps, including those that fill a pipeline
    stages: dict[tuple[tuple[int, int], ...], float] = {}  # pairs -> time of a piece in a pipeline
    waiting = []
    for stage in rounds:
        step, waits = ledger.step(stage)
        total.add(step, stage.times)
        count = stage.steps + stage.hops if pieces == 1 else stage.times // pieces
        taken = (stage.steps if pieces == 1 else count) * ledger.seconds(step)
        filled += taken
        if pieces > 1:
            pairs = tuple((source, target) for source, target, _ in stage.pairs)
            stages[pairs] = stages.get(pairs, 0.0) + taken + count * math.fsum(waits)
        total.latency += count * math.fsum(waits)
        waiting.append((stage, count, waits))
    body = ledger.seconds(total)
    floor = filled + (pieces - 1) * max(stages.values(), default=0.0)
    longest = max(body, floor) * overheads.slowdown(ledger.exchange.size)
    total.floor = longest if longest > body * (1 + 1e-12) else 0.0
    return _RoundFlow(total, body, tuple(waiting))


def _cost(ledger: Ledger, flow: _RoundFlow, *, first: bool) -> Cost:
    total, body, waiting = flow
    exchange, overheads = ledger.exchange, ledger.exchange.overheads
    terms: list[Term] = []
    if first and overheads.start > 0:
        inputs = (("start", precise(overheads.start, "s"), source_of(overheads.sources, "start")),)
        terms.append(Term("latency", "start", inputs, overheads.start, kind="latency"))
    for stage, count, waits in waiting:
        terms += _latency(exchange, stage, count, waits)
    terms += _capacity_terms(exchange, ledger.slowest(total))
    if total.floor > 0:
        terms.append(_floor_term(body, total.floor, exchange.size, overheads))
    return ledger.cost(total, ledger.on_slowest_link(total) or 1.0, tuple(terms))


def slowest_capacity(machine: Machine, cost: Cost) -> tuple[float, str]:
    """Return (seconds, capacity) of the slowest capacity."""
    taken = [(amount / machine.capacities[name].rate, name) for name, amount in cost.demand.amounts]
    return max(taken, key=lambda row: row[0], default=(0.0, ""))


def _latency(exchange: PlacedCollective, stage: Round, count: int, waits: Waits) -> list[Term]:
    overhead, route = waits
    if count == 0 or overhead + route <= 0:
        return []
    inputs = (
        ("steps", precise(count, "1"), stage.name),
        ("overhead", precise(overhead, "s"), source_of(exchange.overheads.sources, "step")),
        ("way", precise(route, "s"), "the longest of the step's links"),
    )
    slowest, holder = _slowest_link(exchange, stage, waits)
    return [Term("latency", "steps x (overhead + way)", inputs, count * (overhead + route), slowest, "latency", holder=holder)]


def _slowest_link(exchange: PlacedCollective, stage: Round, waits: Waits) -> tuple[str, str]:
    """Return (capacity, holder) that causes most of a step's link latency; "" for a full crossbar and for the library."""
    overhead, route = waits
    placed = exchange.placed
    for source, target, share in stage.pairs[:_LOOKED_AT] if route > overhead else ():
        a, b = placed.parties[source], placed.parties[target]
        moved = exchange.machine.transfer(a, b, share * exchange.size, handling(exchange.machine, placed.algorithm, a, b))
        if moved.demand.latency >= route * (1 - 1e-9):
            term = max((term for term in moved.why if term.kind == "latency"), key=lambda term: term.seconds)
            known = exchange.machine.capacities.get(term.capacity)
            return ("", term.holder) if known is None else (known.name, known.holder)
    return "", ""


def _capacity_terms(exchange: PlacedCollective, slowest: Sequence[SlowestCapacity]) -> list[Term]:
    """Return a derivation line for the slowest link, and for the slowest memory."""
    overheads, terms = exchange.overheads, []
    for unit, seconds, name, moved in slowest:
        inputs: tuple[tuple[str, str, Cited], ...] = (
            ("bytes", precise(moved, "B"), WORKLOAD if unit == "B" else "read and written on the way"),
            ("bandwidth", precise(moved / seconds * (1 if unit != "B" else 1 / overheads.efficiency), "B/s"), "of the machine"),
        )
        formula = "bytes / bandwidth"
        if unit == "B" and overheads.efficiency < 1:
            inputs = (*inputs, ("efficiency", precise(overheads.efficiency, "%"), source_of(overheads.sources, "efficiency")))
            formula = "bytes / (bandwidth x efficiency)"
        if moved <= 0 or unit not in ("B", "s"):
            inputs, formula = (("amount", precise(seconds, "s"), "what the transfers draw of it"),), "amount"
        terms.append(Term(f"link {name}" if unit == "B" else name, formula, inputs, seconds, name))
    return terms


def _floor_term(body: float, floor: float, size: float, overheads: Overheads) -> Term:
    slowdown = overheads.slowdown(size)
    slowest = "the steps one after another" if floor / slowdown > body else "the slowest line"
    inputs = (
        ("flow", precise(floor / slowdown, "s"), slowest),
        ("slowdown", precise(slowdown, "1"), "knee: " + source_of(overheads.sources, "knee")),
    )
    return Term("flow", "flow x slowdown", inputs, floor, kind="flow")
