"""A collective as single sends, each with what it costs: the explicit level, played op by op.

A send takes the overhead of a step and the latency of its way, then draws its bytes from the links on it; a receiver
that adds also reads what it has.  Nothing waits for a round to end: a send starts when what it carries is there and
the send before it on the same way has ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from hwsim.collectives.algorithms import Algorithm
from hwsim.collectives.placing import handling, place
from hwsim.collectives.plan import Operation
from hwsim.collectives.repeating import steps_of, unrolled
from hwsim.collectives.steady import check
from hwsim.collectives.steps import ExplicitSend, explicit
from hwsim.demand import Cost, Demand, Term
from hwsim.devices import Cpu, Gpu, Memory
from hwsim.devices.roofline import source_of
from hwsim.machine import Machine
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.units import precise


class CostedSend(NamedTuple):
    """From device to device, after the sends of these places."""

    step: int
    source: str
    target: str
    cost: Cost
    after: tuple[int, ...]


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
    rounds = None if weights else steps_of(placed.algorithm, operation, placed.group)
    every: Iterable[ExplicitSend]
    if rounds is None:
        every = explicit(placed.algorithm.plan(operation, placed.group), size, pieces=pieces, weights=weights)
    else:
        every = unrolled(rounds, size, pieces)
    known: dict[tuple[int, int, float, bool, bool], Cost] = {}
    for send in every:
        source, target = placed.parties[send.source], placed.parties[send.target]
        key = (send.source, send.target, send.size, send.reduce, not send.after)
        if key not in known:
            found = machine.transfer(source, target, send.size, handling(machine, placed.algorithm, source, target))
            known[key] = cost_of_send(
                machine, source, target, found, send.size, size, overheads, send.reduce, first=not send.after
            )
        yield CostedSend(send.step, source, target, known[key], send.after)


def cost_of_send(
    machine: Machine,
    source: str,
    target: str,
    found: Cost,
    size: float,
    whole: float,
    overheads: Overheads,
    reduce: bool,
    *,
    first: bool,
) -> Cost:
    """What a send of `size` bytes of a `whole` costs that a transfer of its bytes costs `found`."""
    across = machine.device(source).node != machine.device(target).node
    spent = [("start", overheads.start if first else 0.0), ("hop" if across else "step", overheads.of_step(across))]
    terms = [
        Term("latency", name, ((name, precise(seconds, "s"), source_of(overheads.sources, name)),), seconds, kind="latency")
        for name, seconds in spent
        if seconds > 0
    ]
    amounts = {
        name: amount / overheads.efficiency if machine.capacities[name].unit == "B" else amount
        for name, amount in found.demand.amounts
    }
    moved = {name: (amount, unit) for name, amount, unit in found.moved}
    model = machine.device(target).model
    if reduce and size > 0 and isinstance(model, Cpu | Gpu | Memory):
        capacity, seconds = model.copy_bytes(target, size)
        amounts[capacity] = amounts.get(capacity, 0.0) + seconds
        moved[capacity] = moved.get(capacity, (0.0, "B"))[0] + size, "B"
    longest = max([found.demand.floor, *(amount / machine.capacities[name].rate for name, amount in amounts.items())])
    slowed = longest * overheads.slowdown(whole)
    demand = Demand(
        latency=found.demand.latency + math.fsum(seconds for _, seconds in spent),
        amounts=tuple(sorted(amounts.items())),
        floor=slowed if slowed > longest * (1 + 1e-12) else found.demand.floor,
        holds=found.demand.holds,
        share=found.demand.share,
    )
    return replace(
        found,
        demand=demand,
        moved=tuple((name, amount, unit) for name, (amount, unit) in sorted(moved.items())),
        why=(*terms, *found.why),
    )
