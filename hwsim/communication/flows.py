"""A collective as steady flows: the amounts that its phases draw from every link and memory of a machine.

A ring in steady state is one demand: all its steps use the same links, so that 2 (n - 1)/n of the bytes
pass each of them while the collective runs. An algorithm whose steps use links one after another (push, then
pull; the levels of a tree) is as many phases, each a demand of its own.

    alone:  sum over the phases of  latency + max(floor, max(amount / capacity))
    latency = start + steps x (overhead of a step + latency of its longest route)

Error: none against the same sends step by step on an idle machine. Up to 15 % if other traffic moves along a ring while it
runs: the ring is held back by its slowest link at that moment, as if the chunks could not overtake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final, NamedTuple

from hwsim.communication.algorithms import Algorithm
from hwsim.communication.drawing import Drawing
from hwsim.communication.ledger import Exchange, Ledger, Line, Sums, Waits
from hwsim.communication.pairs import same_ends
from hwsim.communication.placing import Placed, handling, place
from hwsim.communication.plan import CannotCollect, Operation
from hwsim.communication.rounds import Round
from hwsim.demand import Cost, Term
from hwsim.devices.roofline import WORKLOAD, source_of
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.machine.placed import Few
from hwsim.origins import Cited
from hwsim.records import dataclass

_LOOKED_AT: Final = 64  # pairs of a step, for the one that waits longest
_SEVERAL: Final = 32  # ranks, up to which a plan is kept for other sizes


@dataclass(frozen=True, slots=True)
class Phase:
    """Part of a collective that is one demand."""

    name: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Flows:
    """A collective as phases, one after another."""

    algorithm: Algorithm
    operation: Operation
    parties: tuple[str, ...]
    phases: tuple[Phase, ...]

    def alone(self, rates: Mapping[str, float]) -> float:
        """Seconds when nothing else runs."""
        return math.fsum(_alone(phase.cost, rates) for phase in self.phases)


def _alone(cost: Cost, rates: Mapping[str, float]) -> float:
    wires = cost.wide.kinds if cost.wide is not None else ()
    body = max([cost.demand.body(rates), *(wire.amount / wire.capacity.rate for wire in wires)])
    return cost.demand.latency + body


class Planned(NamedTuple):
    """The algorithm among the devices, the rounds that make one demand each, the pieces of a pipeline, and what pairs draw."""

    placed: Placed
    merged: list[list[Round]]
    pieces: int
    drawing: Drawing


class Plans(Few[tuple[Algorithm, Operation, tuple[str, ...]], Planned]):
    """The plans of collectives among few devices, whatever their bytes."""


def _planned(task: Task, algorithm: Algorithm) -> Planned:
    check(algorithm, task.operation)
    placed = place(task.machine, algorithm, task.devices)
    algorithm, group = placed.algorithm, placed.group
    if task.weights:
        rounds, pieces = algorithm.weighted(task.operation, group, task.weights), 1
    else:
        rounds, pieces = algorithm.rounds(task.operation, group), algorithm.in_flight(group)
    return Planned(placed, _merged(rounds, pieces), pieces, Drawing(task.machine, placed, rounds))


@dataclass(frozen=True, slots=True)
class Together:
    """The phases of a collective added up, for one whose time is known: none of them has a cost of its own.

    total: a cost of all amounts without a time; busy: seconds that the links are busy, phase after phase; even: the same if
    the ranks' parts were equal.
    """

    flows: Flows
    total: Cost
    busy: float
    even: float


@dataclass(frozen=True, slots=True)
class Task:
    """A collective to be done by whatever algorithm.

    Args:
        devices: full names; the first is the root.
        size: bytes of one rank's array, as nccl-tests count.
        weights: the ranks' parts in proportion; equal ones if empty.
        columns: whether costs among very many devices may be `Cost.wide`.
    """

    machine: Machine
    operation: Operation
    devices: Sequence[str]
    size: float
    weights: Sequence[float] = ()
    columns: bool = False

    def flows(self, algorithm: Algorithm, overheads: Overheads = PLAIN) -> Flows:
        """The phases by an algorithm.

        Raises:
            CannotCollect: the algorithm does not do that operation, or not among these devices.
            NoRoute, UnknownName: as the machine says.
        """
        planned, ledger = self._planned(algorithm, overheads, columns=self.columns)
        phases = [
            Phase(_name(rounds), _cost(ledger, rounds, planned.pieces, first=number == 0))
            for number, rounds in enumerate(planned.merged)
        ]
        return Flows(planned.placed.algorithm, self.operation, planned.placed.parties, tuple(phases))

    def seconds(self, algorithm: Algorithm, overheads: Overheads = PLAIN) -> float:
        """Seconds of the phases by an algorithm when nothing else runs: `Flows.alone`, without their costs."""
        planned, ledger = self._planned(algorithm, overheads, columns=self.columns)
        flows = [_flow(ledger, rounds, planned.pieces, first=number == 0).total for number, rounds in enumerate(planned.merged)]
        return math.fsum(total.latency + ledger.seconds(total) for total in flows)

    def together(self, algorithm: Algorithm, overheads: Overheads = PLAIN) -> Together:
        """The phases by an algorithm, added up, each as it would be by itself."""
        planned, ledger = self._planned(algorithm, overheads)
        all_phases, taken, evenly = Sums(), list[float](), list[float]()
        even = replace(self, weights=()).busy(algorithm, overheads) if self.weights else None
        for rounds in planned.merged:
            total = _total(ledger, rounds)
            all_phases.add(total, 1.0)
            taken.append(ledger.busy(total))
            evenly += islice(even or (), 1)  # in turn with the phases, of the same pairs
        added = ledger.cost(all_phases, ledger.on_slowest_link(all_phases) or 1.0, ())
        if not planned.merged:
            added = replace(added, demand=replace(added.demand, holds=()))
        busy = math.fsum(taken)
        flows = Flows(planned.placed.algorithm, self.operation, planned.placed.parties, ())
        return Together(flows, added, busy, busy if even is None else math.fsum(chain(evenly, even)))

    def busy(self, algorithm: Algorithm, overheads: Overheads) -> Iterator[float]:
        """By phase the seconds that the links are busy."""
        planned, ledger = self._planned(algorithm, overheads)
        return (ledger.busy(_total(ledger, rounds)) for rounds in planned.merged)

    def longest_of_first(self, algorithm: Algorithm, word: Callable[[str], str]) -> tuple[float, str]:
        """(seconds, word for the kind of link) of the capacity that takes longest in the first phase.

        Cheap among very many devices: hardly anything is named.
        """
        planned, ledger = self._planned(algorithm, PLAIN)
        return ledger.longest(_total(ledger, planned.merged[0]), word)

    def _planned(self, algorithm: Algorithm, overheads: Overheads, *, columns: bool = False) -> tuple[Planned, Ledger]:
        """The plan, one that is kept among few devices whatever the bytes, and the sums of its steps."""
        key = algorithm, self.operation, tuple(self.devices)
        if self.weights or len(self.devices) > _SEVERAL:
            planned = _planned(self, algorithm)
        else:
            planned = self.machine.kept(Plans).known(key, _planned, self, algorithm)
        exchange = Exchange(self.machine, planned.placed, self.size, overheads)
        return planned, Ledger(exchange, planned.drawing, columns=columns)

    def among(self, devices: Sequence[str]) -> Task:
        """The same collective among these devices."""
        return replace(self, devices=devices)


def check(algorithm: Algorithm, operation: Operation) -> None:
    """Raise CannotCollect unless the algorithm does the operation."""
    if operation not in algorithm.operations:
        raise CannotCollect(f"{algorithm.kind} does not support {operation}", f"supported: {', '.join(algorithm.operations)}")


def _merged(rounds: Sequence[Round], pieces: int) -> list[list[Round]]:
    """Lists of rounds that make one demand: rounds of a pipeline, or successive ones that load the same pairs."""
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


class _Flow(NamedTuple):
    """Rounds that flow as one: their amounts with latency and floor, the seconds of the amounts, and each round's share of it.

    waits: by round the number of steps that wait, and how long each does.
    """

    total: Sums
    body: float
    waits: tuple[tuple[Round, int, Waits], ...]


def _flow(ledger: Ledger, rounds: Sequence[Round], pieces: int, *, first: bool) -> _Flow:
    total, overheads = Sums(), ledger.exchange.overheads
    total.latency = overheads.start if first else 0.0
    filled = 0.0  # the steps one after another, those that fill a pipeline included
    stages: dict[tuple[tuple[int, int], ...], float] = {}  # a piece's time in a pipeline, by the pairs that it uses
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
    return _Flow(total, body, tuple(waiting))


def _cost(ledger: Ledger, rounds: Sequence[Round], pieces: int, *, first: bool) -> Cost:
    """One demand for rounds that flow as one."""
    total, body, waiting = _flow(ledger, rounds, pieces, first=first)
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


def longest(machine: Machine, cost: Cost) -> tuple[float, str]:
    """(seconds, capacity) of the capacity that takes longest."""
    taken = [(amount / machine.capacities[name].rate, name) for name, amount in cost.demand.amounts]
    return max(taken, key=lambda row: row[0], default=(0.0, ""))


def _latency(exchange: Exchange, stage: Round, count: int, waits: Waits) -> list[Term]:
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


def _slowest_link(exchange: Exchange, stage: Round, waits: Waits) -> tuple[str, str]:
    """(capacity, holder) of what most of a step's wait for links is due to; "" of a full crossbar and of the library."""
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


def _capacity_terms(exchange: Exchange, slowest: Sequence[Line]) -> list[Term]:
    """A line for the link that takes longest, and for the memory that does."""
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
