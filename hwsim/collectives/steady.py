"""A collective as steady flows: what its phases draw of every link and memory of a machine.

A ring in steady state is one demand: all its steps use the same links, so that 2 (n - 1)/n of the bytes
pass each of them while the collective runs.  Algorithms whose steps use links one after another (push, then
pull; the levels of a tree) are as many phases, each a demand of its own.

    alone:  sum over the phases of  latency + max(floor, max(amount / capacity))
    latency = start + steps x (overhead of a step + latency of its longest way)

Error: against the same sends step by step on an idle machine none; where other traffic moves along a ring while it
runs, up to 15 % (the whole ring is held back by its slowest link at that moment, as if the chunks could not overtake).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from hwsim.collectives import wide
from hwsim.collectives.algorithms import Algorithm, Hierarchical, InNetwork
from hwsim.collectives.placing import Placed, handling, place
from hwsim.collectives.plan import CannotCollect, Operation
from hwsim.collectives.rounds import Pair, Round, rounds_of
from hwsim.demand import Cost, Demand, Term, Unit
from hwsim.devices import Cpu, Gpu, Memory
from hwsim.devices.roofline import WORKLOAD, source_of
from hwsim.machine import Machine
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.records import dataclass
from hwsim.units import precise

_LOOKED_AT: Final = 64  # pairs of a step, for the one that waits longest


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
    body = max([cost.demand.body(rates), *(each.amount / each.capacity.rate for each in wires)])
    return cost.demand.latency + body


@dataclass(slots=True)
class _Drawn:
    """What one step, or one phase, takes."""

    amounts: dict[str, float]
    moved: dict[str, float]
    latency: float = 0.0
    floor: float = 0.0

    def add(self, other: _Drawn, times: float) -> None:
        for name, amount in other.amounts.items():
            self.amounts[name] = self.amounts.get(name, 0.0) + times * amount
        for name, amount in other.moved.items():
            self.moved[name] = self.moved.get(name, 0.0) + times * amount


def cost(
    machine: Machine,
    algorithm: Algorithm,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    *,
    overheads: Overheads = PLAIN,
    weights: Sequence[float] = (),
    columns: bool = False,
) -> Flows:
    """The phases of `operation` on `size` bytes among devices (full names; the first is the root).

    Args:
        size: bytes of one rank's whole array, as nccl-tests count.
        weights: the ranks' parts in proportion where they are not equal.
        columns: whether costs among very many devices may be `Cost.wide`.

    Raises:
        CannotCollect: the algorithm does not do that operation, or not among these devices.
        NoRoute, UnknownName: as the machine says.
    """
    check(algorithm, operation)
    placed = place(machine, algorithm, devices)
    algorithm = placed.algorithm
    group = placed.group
    rounds = rounds_of(algorithm.plan(operation, group), weights) if weights else algorithm.rounds(operation, group)
    pieces = algorithm.overlapped(group) if isinstance(algorithm, Hierarchical) and not weights else 1
    phases = []
    kinds = wide.Kinds(machine) if columns and wide.fits(machine, placed, overheads) else None
    for at, together in enumerate(_merged(rounds, pieces)):
        phases.append(_phase(machine, placed, together, size, overheads, kinds, first=at == 0, pieces=pieces))
    return Flows(algorithm, operation, placed.parties, tuple(phases))


def check(algorithm: Algorithm, operation: Operation) -> None:
    """Nothing if the algorithm does the operation.

    Raises:
        CannotCollect: it does not.
    """
    if operation not in algorithm.operations:
        raise CannotCollect(f"{algorithm.kind} does no {operation}", f"it does {', '.join(algorithm.operations)}")


def _merged(rounds: Sequence[Round], pieces: int) -> list[list[Round]]:
    """Rounds that make one demand: those that load the same pairs, and those of a pipeline."""
    if pieces > 1:
        return [list(rounds)] if rounds else []
    found: list[list[Round]] = []
    for each in rounds:
        if found and _same_ways(found[-1][-1].pairs, each.pairs):
            found[-1].append(each)
        else:
            found.append([each])
    return found


def _same_ways(first: Sequence[Pair], second: Sequence[Pair]) -> bool:
    """Whether the same send to the same, as much or less."""
    if len(first) != len(second):
        return False
    return first == second or all(a[0] == b[0] and a[1] == b[1] for a, b in zip(first, second, strict=True))


def _ways(each: Round) -> tuple[tuple[int, int], ...]:
    """Who sends to whom."""
    return tuple((source, target) for source, target, _ in each.pairs)


def _phase(
    machine: Machine,
    placed: Placed,
    rounds: Sequence[Round],
    size: float,
    overheads: Overheads,
    kinds: wide.Kinds | None,
    *,
    first: bool,
    pieces: int,
) -> Phase:
    """One demand for rounds that flow as one."""
    total = _Drawn({}, {}) if kinds is None else kinds.nothing()
    terms: list[Term] = []
    if first and overheads.start > 0:
        inputs = (("start", precise(overheads.start, "s"), source_of(overheads.sources, "start")),)
        terms.append(Term("latency", "start", inputs, overheads.start, kind="latency"))
    total.latency = overheads.start if first else 0.0
    filled = 0.0  # the steps one after another, those that fill a pipeline included
    stages: dict[tuple[tuple[int, int], ...], float] = {}  # of a pipeline: a piece's time on links of its own
    for each in rounds:
        waits, seconds = _take(machine, placed, each, size, overheads, total, kinds)
        count = each.steps + each.hops if pieces == 1 else each.times // pieces
        taken = (each.steps if pieces == 1 else count) * seconds
        filled += taken
        if pieces > 1:
            stages[_ways(each)] = stages.get(_ways(each), 0.0) + taken + count * math.fsum(waits)
        total.latency += count * math.fsum(waits)
        terms += _latency(each.name, count, waits, overheads, _slowest_link(machine, placed, each, size, waits))
    body = _seconds(machine, total) if isinstance(total, _Drawn) else kinds.seconds(total) if kinds else 0.0
    floor = filled + (pieces - 1) * max(stages.values(), default=0.0)
    longest = max(body, floor) * overheads.slowdown(size)
    floor = longest if longest > body * (1 + 1e-12) else 0.0
    if isinstance(total, _Drawn):
        drawn = [(name, amount, total.moved.get(name, 0.0)) for name, amount in sorted(total.amounts.items())]
        terms += _capacity_terms(machine, drawn, overheads)
    elif kinds is not None:
        drawn = kinds.named(total)
        terms += _capacity_terms(machine, drawn, overheads)
    if floor > 0:
        terms.append(_floor_term(body, floor, size, overheads))
    if isinstance(total, _Drawn):
        return Phase(_name(rounds), _cost(machine, placed, total, floor, overheads, terms))
    demand = Demand(latency=total.latency, floor=floor, share=_share(machine, drawn))
    return Phase(_name(rounds), Cost(demand, why=tuple(terms), wide=kinds.wide(total) if kinds else None))


def _take(
    machine: Machine,
    placed: Placed,
    each: Round,
    size: float,
    overheads: Overheads,
    total: _Drawn | wide.Column,
    kinds: wide.Kinds | None,
) -> tuple[tuple[float, float], float]:
    """Add a round to a phase; (the library's, the links') seconds before a step's first byte, and a step's seconds after it."""
    if isinstance(total, _Drawn) or kinds is None:
        step, waits = _step(machine, placed, each, size, overheads)
        if isinstance(total, _Drawn):
            total.add(step, each.times)
        return waits, _seconds(machine, step)
    column, waits = wide.step(machine, placed, each, size, overheads, kinds)
    total.add(column, each.times)
    return waits, kinds.seconds(column)


def _name(rounds: Sequence[Round]) -> str:
    names = list(dict.fromkeys(each.name for each in rounds))
    return " + ".join(names) if len(names) < 4 else f"{names[0]} ... {names[-1]}"


def _step(machine: Machine, placed: Placed, each: Round, size: float, overheads: Overheads) -> tuple[_Drawn, tuple[float, float]]:
    """What one step draws, and (the library's, the links') seconds before its first byte arrives."""
    drawn = _Drawn({}, {})
    once = isinstance(placed.algorithm, InNetwork)  # a switch adds what comes up a link, and spreads what goes down one
    overhead = way = 0.0
    for a, b, share, found, names in _transfers(machine, placed, each, size):
        demand = found.demand
        here = overheads.of_step(machine.node_of(a) != machine.node_of(b))
        if here + demand.latency > overhead + way:
            overhead, way = here, demand.latency
        drawn.floor = max(drawn.floor, demand.floor)
        natural = {name: amount for name, amount, unit in found.moved if unit != "1"}
        moved = {name: natural.get(first, 0.0) for name, (first, _) in zip(names, demand.amounts, strict=True)}
        for name, (_, amount) in zip(names, demand.amounts, strict=True):
            wire = machine.capacities[name].unit == "B"
            amount = amount / overheads.efficiency if wire else amount
            merge = max if wire and once else float.__add__
            drawn.amounts[name] = merge(drawn.amounts.get(name, 0.0), float(amount))
            drawn.moved[name] = merge(drawn.moved.get(name, 0.0), float(moved.get(name, 0.0)))
        if each.reduce:
            _read_again(machine, b, share * size, drawn)
    return drawn, (overhead, way)


def _transfers(
    machine: Machine, placed: Placed, each: Round, size: float
) -> Iterator[tuple[str, str, float, Cost, Sequence[str]]]:
    """Of each pair its ends, share and cost, and what the capacities are called that its cost has under other names."""
    ends = [(placed.parties[source], placed.parties[target]) for source, target, _ in each.pairs]
    shares = {share for _, _, share in each.pairs}
    if len(shares) > 1 or not wide.alike(machine, placed):
        for (a, b), (_, _, share) in zip(ends, each.pairs, strict=True):
            found = machine.transfer(a, b, share * size, handling(machine, placed.algorithm, a, b))
            yield a, b, share, found, [name for name, _ in found.demand.amounts]
        return
    for share in shares:
        how = handling(machine, placed.algorithm, *ends[0])
        draws = machine.draws([a for a, _ in ends], [b for _, b in ends], share * size, how)
        names = {number: machine.capacity_name(number) for number in np.unique(draws.capacity).tolist()}
        rows, first, numbers = draws.shape.tolist(), draws.first.tolist(), draws.capacity.tolist()
        for at, (a, b) in enumerate(ends):
            yield a, b, share, draws.costs[rows[at]], [names[number] for number in numbers[first[at] : first[at + 1]]]


def _read_again(machine: Machine, name: str, size: float, drawn: _Drawn) -> None:
    """A receiver that adds reads what it has."""
    model = machine.device(name).model
    if isinstance(model, Cpu | Gpu | Memory) and size > 0:
        capacity, seconds = model.copy_bytes(name, size)
        drawn.amounts[capacity] = drawn.amounts.get(capacity, 0.0) + seconds
        drawn.moved[capacity] = drawn.moved.get(capacity, 0.0) + size


def _seconds(machine: Machine, drawn: _Drawn) -> float:
    return max([drawn.floor, *(amount / machine.capacities[name].rate for name, amount in drawn.amounts.items())])


def longest(machine: Machine, cost: Cost) -> tuple[float, str]:
    """(seconds, capacity) of the capacity that takes longest."""
    found = [(amount / machine.capacities[name].rate, name) for name, amount in cost.demand.amounts]
    return max(found, key=lambda each: each[0], default=(0.0, ""))


def _slowest_link(machine: Machine, placed: Placed, each: Round, size: float, waits: tuple[float, float]) -> str:
    """Capacity of the link that most of a step's wait for links is due to; "" if the library takes longer."""
    overhead, way = waits
    for source, target, share in each.pairs[:_LOOKED_AT] if way > overhead else ():
        a, b = placed.parties[source], placed.parties[target]
        found = machine.transfer(a, b, share * size, handling(machine, placed.algorithm, a, b))
        if found.demand.latency >= way * (1 - 1e-9):
            return max((term for term in found.why if term.kind == "latency"), key=lambda term: term.seconds).capacity
    return ""


def _latency(name: str, count: int, waits: tuple[float, float], overheads: Overheads, slowest: str) -> list[Term]:
    overhead, way = waits
    if count == 0 or overhead + way <= 0:
        return []
    inputs = (
        ("steps", precise(count, "1"), name),
        ("overhead", precise(overhead, "s"), source_of(overheads.sources, "step")),
        ("way", precise(way, "s"), "the longest of the step's links"),
    )
    return [Term("latency", "steps x (overhead + way)", inputs, count * (overhead + way), slowest, kind="latency")]


def _share(machine: Machine, drawn: Sequence[tuple[str, float, float]]) -> float:
    """The most that crosses a link."""
    return max((amount for name, amount, _ in drawn if machine.capacities[name].unit == "B"), default=0.0) or 1.0


def _capacity_terms(machine: Machine, drawn: Sequence[tuple[str, float, float]], overheads: Overheads) -> list[Term]:
    """The link that takes longest, and the memory that does, of (capacity, amount, bytes)."""
    longest: dict[Unit, tuple[float, str]] = {}
    bytes_of = {name: moved for name, _, moved in drawn}
    for name, amount, _ in drawn:
        kind = machine.capacities[name].unit
        seconds = amount / machine.capacities[name].rate
        if seconds > longest.get(kind, (0.0, ""))[0]:
            longest[kind] = seconds, name
    terms = []
    for kind, (seconds, name) in sorted(longest.items()):
        moved = bytes_of[name]
        inputs: tuple[tuple[str, str, str], ...] = (
            ("bytes", precise(moved, "B"), WORKLOAD if kind == "B" else "read and written on the way"),
            ("bandwidth", precise(moved / seconds * (1 if kind != "B" else 1 / overheads.efficiency), "B/s"), "of the machine"),
        )
        formula = "bytes / bandwidth"
        if kind == "B" and overheads.efficiency < 1:
            inputs = (*inputs, ("efficiency", precise(overheads.efficiency, "%"), source_of(overheads.sources, "efficiency")))
            formula = "bytes / (bandwidth x efficiency)"
        if moved <= 0 or kind not in ("B", "s"):
            inputs, formula = (("amount", precise(seconds, "s"), "what the transfers draw of it"),), "amount"
        terms.append(Term(f"link {name}" if kind == "B" else name, formula, inputs, seconds, name))
    return terms


def _floor_term(body: float, floor: float, size: float, overheads: Overheads) -> Term:
    slowdown = overheads.slowdown(size)
    inputs = (
        (
            "flow",
            precise(floor / slowdown, "s"),
            "the steps one after another" if floor / slowdown > body else "the slowest line",
        ),
        ("slowdown", precise(slowdown, "1"), f"knee: {source_of(overheads.sources, 'knee')}"),
    )
    return Term("flow", "flow x slowdown", inputs, floor, kind="flow")


def _cost(machine: Machine, placed: Placed, total: _Drawn, floor: float, overheads: Overheads, terms: Sequence[Term]) -> Cost:
    wires = [amount for name, amount in total.amounts.items() if machine.capacities[name].unit == "B"]
    holds: list[tuple[str, float]] = []
    if overheads.compute > 0:
        ranks = placed.parties[: placed.group.ranks]
        gpus = [name for name in ranks if machine.device(name).kind == "gpu"]
        holds = [(f"{name}.compute", overheads.compute) for name in sorted(gpus)]
    amounts = tuple(sorted((name, amount) for name, amount in total.amounts.items() if amount > 0))
    return Cost(
        Demand(
            latency=total.latency,
            amounts=amounts,
            floor=floor,
            holds=tuple(holds),
            share=max(wires, default=0.0) or 1.0,
        ),
        moved=tuple((name, total.moved[name], "B") for name, _ in amounts if total.moved.get(name, 0.0) > 0),
        why=tuple(terms),
    )
