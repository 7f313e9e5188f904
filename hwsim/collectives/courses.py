"""A collective step by step whose steps repeat: what one step sends, and how often, instead of every send.

A ring among a thousand ranks is two million sends and two courses: a thousand legs that are gone over a thousand times each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from hwsim.collectives.algorithms import Algorithm
from hwsim.collectives.placing import handling, place
from hwsim.collectives.plan import Operation
from hwsim.collectives.repeating import steps_of
from hwsim.collectives.steady import check
from hwsim.collectives.stepwise import cost_of_send
from hwsim.demand import Cost
from hwsim.machine import Machine
from hwsim.machine.libraries.overheads import PLAIN, Overheads
from hwsim.records import dataclass


class Leg(NamedTuple):
    """From device to device.  first: what its first send costs, where that waits for no other and costs something else."""

    source: str
    target: str
    cost: Cost
    first: Cost | None


@dataclass(frozen=True, slots=True)
class Course:
    """What is sent in a step, and how many equal steps follow one another."""

    legs: tuple[Leg, ...]
    times: int


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
    """What `sends` says send by send; None if the algorithm's steps do not repeat so.

    Arguments and errors as of `sends`.
    """
    check(algorithm, operation)
    placed = place(machine, algorithm, devices)
    rounds = steps_of(placed.algorithm, operation, placed.group)
    if rounds is None:
        return None
    names = placed.parties
    begun: set[int] = set()
    found = []
    for each in rounds:
        legs = []
        for source, target, share in each.pairs:
            a, b, sent = names[source], names[target], share * size / pieces
            moved = machine.transfer(a, b, sent, handling(machine, placed.algorithm, a, b))
            starts = overheads.start > 0 and source not in begun and target not in begun
            price = partial(cost_of_send, machine, a, b, moved, sent, size, overheads, each.reduce)
            legs.append(Leg(a, b, price(first=False), price(first=True) if starts else None))
        begun |= {party for source, target, _ in each.pairs for party in (source, target)}
        found.append(Course(tuple(legs), each.times))
    return tuple(found)
