"""A collective as single sends, each with its cost: the explicit level, simulated op by op.

A send takes the overhead of a step and the latency of its route, then draws its bytes from the links on it; a receiver
that adds also reads its own data. Nothing waits for a round to end: a send starts when its data is there and
the send before it on the same route has ended.

If the steps of an algorithm repeat, `courses` gives one step and its repetitions instead of every send: a ring among a
thousand ranks is two million sends, or two courses of a thousand legs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from hwsim.communication.algorithms import Algorithm
from hwsim.communication.flows import check
from hwsim.communication.ledger import Exchange
from hwsim.communication.placing import handling, place
from hwsim.communication.plan import Operation
from hwsim.communication.steps import ExplicitSend, explicit, unrolled
from hwsim.demand import Cost, Demand, Later, Term
from hwsim.devices.roofline import source_of
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.records import dataclass


class CostedSend(NamedTuple):
    """From device to device, after the sends of these places."""

    step: int
    source: str
    target: str
    cost: Cost
    after: tuple[int, ...]


class Leg(NamedTuple):
    """From device to device. first: cost of its first send, if that waits for no other and costs something else."""

    source: str
    target: str
    cost: Cost
    first: Cost | None


@dataclass(frozen=True, slots=True)
class Course:
    """The sends of a step, and the number of equal steps that follow one another."""

    legs: tuple[Leg, ...]
    times: int


def sends(
    machine: Machine,
    algorithm: Algorithm,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    *,
    pieces: int = 1,
    overheads: Overheads = PLAIN,
    weights: Sequence[float] = (),
) -> Iterator[CostedSend]:
    """The sends of `operation` on `size` bytes among devices, in an order in which none waits for a later one.

    Arguments and errors as of `cost`; pieces: parts that each send is cut into.
    """
    check(algorithm, operation)
    placed = place(machine, algorithm, devices)
    exchange = Exchange(machine, placed, size, overheads)
    rounds = None if weights else placed.algorithm.repeated_steps(operation, placed.group)
    every: Iterable[ExplicitSend]
    if rounds is None:
        every = explicit(placed.algorithm.plan(operation, placed.group), size, pieces=pieces, weights=weights)
    else:
        every = unrolled(rounds, size, pieces)
    costs: dict[tuple[int, int, float, bool, bool], Cost] = {}
    for send in every:
        source, target = placed.parties[send.source], placed.parties[send.target]
        key = (send.source, send.target, send.size, send.reduce, not send.after)
        if key not in costs:
            moved = machine.transfer(source, target, send.size, handling(machine, placed.algorithm, source, target))
            costs[key] = _cost(exchange, source, target, moved, send.size, send.reduce, first=not send.after)
        yield CostedSend(send.step, source, target, costs[key], send.after)


def courses(
    machine: Machine,
    algorithm: Algorithm,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    *,
    pieces: int = 1,
    overheads: Overheads = PLAIN,
) -> tuple[Course, ...] | None:
    """The sends as steps that repeat; None if the algorithm's steps do not repeat.

    Arguments and errors as of `sends`.
    """
    check(algorithm, operation)
    placed = place(machine, algorithm, devices)
    exchange = Exchange(machine, placed, size, overheads)
    rounds = placed.algorithm.repeated_steps(operation, placed.group)
    if rounds is None:
        return None
    names = placed.parties
    begun: set[int] = set()
    stages = []
    for stage in rounds:
        legs = []
        for source, target, share in stage.pairs:
            a, b, sent = names[source], names[target], share * size / pieces
            moved = machine.transfer(a, b, sent, handling(machine, placed.algorithm, a, b))
            starts = overheads.start > 0 and source not in begun and target not in begun
            price = partial(_cost, exchange, a, b, moved, sent, stage.reduce)
            legs.append(Leg(a, b, price(first=False), price(first=True) if starts else None))
        begun |= {party for source, target, _ in stage.pairs for party in (source, target)}
        stages.append(Course(tuple(legs), stage.times))
    return tuple(stages)


def _cost(exchange: Exchange, source: str, target: str, moved: Cost, size: float, reduce: bool, *, first: bool) -> Cost:
    """Cost of a send of `size` bytes; moved: cost of the transfer of its bytes."""
    machine, overheads = exchange.machine, exchange.overheads
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
        why=Later(_joined, terms, moved.why) if terms else moved.why,
    )


def _joined(first: Sequence[Term], then: Sequence[Term]) -> tuple[Term, ...]:
    return (*first, *then)
