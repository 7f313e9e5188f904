"""A collective as single sends, each with its cost: the explicit level, simulated op by op.

A send takes the step overhead and the latency of its route, then draws its bytes from the links of the route; in a reduction, the
receiver also reads its own data. No send waits for the end of a round: it starts when its data is available and the previous send
on the same route has ended.

If the steps of an algorithm repeat, `courses` returns one step and its repetitions instead of every send: a ring among a thousand
ranks has two million sends, but two courses of a thousand legs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from hwsim.communication.algorithms import Algorithm
from hwsim.communication.flows import Task, check
from hwsim.communication.ledger import PlacedCollective
from hwsim.communication.placement import handling, place
from hwsim.communication.steps import explicit_sends
from hwsim.demand import Cost, Demand, LazyTerms, Term
from hwsim.devices.roofline import source_of
from hwsim.formats import precise
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.records import dataclass


class CostedSend(NamedTuple):
    """A send between devices, after the sends at these indices."""

    step: int
    source: str
    target: str
    cost: Cost
    after: tuple[int, ...]


class RepeatedSend(NamedTuple):
    """The repeated send between two devices.

    Args:
        first: cost of the first send, if it depends on no other send and its cost differs.
    """

    source: str
    target: str
    cost: Cost
    first: Cost | None


@dataclass(frozen=True, slots=True)
class RepeatedStep:
    """The sends of a step, and the number of equal consecutive steps."""

    legs: tuple[RepeatedSend, ...]
    times: int


def sends(task: Task, algorithm: Algorithm, *, pieces: int = 1, overheads: Overheads = PLAIN) -> Iterator[CostedSend]:
    """Yield the sends of a collective, in an order in which none waits for a later one; errors as in `Task.flows`.

    Args:
        pieces: parts that each send is split into.
    """
    exchange = _exchange(task, algorithm, overheads)
    placed = exchange.placed
    costs: dict[tuple[int, int, float, bool, bool], Cost] = {}
    plan = placed.algorithm.plan(task.operation, placed.group)
    for send in explicit_sends(plan, task.size, pieces=pieces, weights=task.weights):
        source, target = placed.parties[send.source], placed.parties[send.target]
        key = (send.source, send.target, send.size, send.reduce, not send.after)
        if key not in costs:
            costs[key] = _cost(exchange, source, target, send.size, send.reduce, first=not send.after)
        yield CostedSend(send.step, source, target, costs[key], send.after)


def courses(
    task: Task, algorithm: Algorithm, *, pieces: int = 1, overheads: Overheads = PLAIN
) -> tuple[RepeatedStep, ...] | None:
    """Return the sends as repeated steps; None if the algorithm's steps do not repeat. Arguments and errors as in `sends`."""
    exchange = _exchange(task, algorithm, overheads)
    rounds = exchange.placed.algorithm.repeated_steps(task.operation, exchange.placed.group)
    if rounds is None:
        return None
    names = exchange.placed.parties
    begun: set[int] = set()
    stages = []
    for stage in rounds:
        legs = []
        for source, target, share in stage.pairs:
            a, b = names[source], names[target]
            starts = overheads.start > 0 and source not in begun and target not in begun
            price = partial(_cost, exchange, a, b, share * task.size / pieces, stage.reduce)
            legs.append(RepeatedSend(a, b, price(first=False), price(first=True) if starts else None))
        begun |= {party for source, target, _ in stage.pairs for party in (source, target)}
        stages.append(RepeatedStep(tuple(legs), stage.times))
    return tuple(stages)


def _exchange(task: Task, algorithm: Algorithm, overheads: Overheads) -> PlacedCollective:
    check(algorithm, task.operation)
    return PlacedCollective(task.machine, place(task.machine, algorithm, task.devices), task.size, overheads)


def _cost(exchange: PlacedCollective, source: str, target: str, size: float, reduce: bool, *, first: bool) -> Cost:
    """Return the cost of a send of `size` bytes."""
    machine, overheads = exchange.machine, exchange.overheads
    moved = machine.transfer(source, target, size, handling(machine, exchange.placed.algorithm, source, target))
    apart = exchange.placed.across(source, target)
    spent = [("start", overheads.start if first else 0.0), ("hop" if apart else "step", overheads.of_step(apart))]
    terms = [
        Term("latency", name, ((name, precise(seconds, "s"), source_of(overheads.sources, name)),), seconds, kind="latency")
        for name, seconds in spent
        if seconds > 0
    ]
    amounts = {name: amount / overheads.efficiency if exchange.is_wire(name) else amount for name, amount in moved.demand.amounts}
    natural = {name: (amount, unit) for name, amount, unit in moved.moved}
    if reduce and (read := exchange.read_again(target, size)) is not None:
        capacity, seconds = read
        amounts[capacity] = amounts.get(capacity, 0.0) + seconds
        natural[capacity] = natural.get(capacity, (0.0, "B"))[0] + size, "B"
    longest = max([moved.demand.floor, *(amount / machine.capacities[name].rate for name, amount in amounts.items())])
    slowed = longest * overheads.slowdown(exchange.size)
    demand = Demand(
        latency=moved.demand.latency + math.fsum(seconds for _, seconds in spent),
        amounts=tuple(sorted(amounts.items())),
        floor=slowed if slowed > longest * (1 + 1e-12) else moved.demand.floor,
        holds=moved.demand.holds,
        share=moved.demand.share,
    )
    return replace(
        moved,
        demand=demand,
        moved=tuple((name, amount, unit) for name, (amount, unit) in sorted(natural.items())),
        why=LazyTerms(_join_terms, terms, moved.why) if terms else moved.why,
    )


def _join_terms(first: Sequence[Term], then: Sequence[Term]) -> tuple[Term, ...]:
    return (*first, *then)
