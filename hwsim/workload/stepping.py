"""A collective whose steps repeat, written out send by send: by all its members, or by the first of each class.

A send waits for what both its ends did in the step before, and for the one before it on the same way (see
`hwsim.communication.algorithms.algorithm.Algorithm.repeated_steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from hwsim.formats import format_quantity
from hwsim.graph.builder import GraphBuilder
from hwsim.machine.libraries.operations import MOST_SENDS
from hwsim.records import dataclass
from hwsim.spec import SpecError
from hwsim.workload.statements import Collective, Gathering, Repeat, Statement, Step

_BYTES: Final = 1_500  # of memory that a send takes while it is simulated


@dataclass(frozen=True, slots=True)
class Way:
    """A written-out send of one course.

    Args:
        key: identity of the send; follows: key of the latest earlier course with a send on the same route, or None.
        source, target: identities of the two ends.
        begins, ends: as in a step.
        label: from the number of the step.
    """

    key: object
    follows: object
    source: object
    target: object
    cost: int
    first: int
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    label: Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Turn:
    """The written-out part of a course.

    Args:
        places_of: identity of an end -> places of its sends."""

    ways: tuple[Way, ...]
    places_of: dict[object, tuple[int, ...]]
    times: int


def steps(turns: Sequence[Turn], pieces: int, before: int = 0) -> list[Step]:
    """All sends in order, the first of them at place `before`."""
    last: dict[object, int] = {}
    done: dict[object, tuple[int, ...]] = {}  # by end, first pieces of what it did in its latest step
    sends: list[Step] = []
    number = 0
    for turn in turns:
        for _ in range(turn.times):
            start = before + len(sends)
            for way in turn.ways:
                needed = dict.fromkeys((*done.get(way.source, ()), *done.get(way.target, ())))
                label = way.label(number)
                for piece in range(pieces):
                    after = [other + piece for other in needed]
                    if (earlier := last.get(way.key, last.get(way.follows))) is not None:
                        after.append(earlier)
                    last[way.key] = before + len(sends)
                    cost = way.first if way.first >= 0 and not after else way.cost
                    sends.append(Step(label, cost, tuple(sorted(set(after))), way.begins, way.ends))
            for end, places in turn.places_of.items():
                done[end] = tuple(start + place * pieces for place in places)
            number += 1
    return sends


def places_of(ways: Sequence[Way]) -> dict[object, tuple[int, ...]]:
    """By end, the places of the sends it takes part in."""
    places_of: dict[object, list[int]] = {}
    for place, way in enumerate(ways):
        for end in dict.fromkeys((way.source, way.target)):
            places_of.setdefault(end, []).append(place)
    return {end: tuple(places) for end, places in places_of.items()}


def refuse_more(count: int, collective: Collective) -> None:
    """Raise SpecError for more sends than are written out."""
    if count > MOST_SENDS:
        needed = format_quantity(count * _BYTES, "B")
        message = f"{count:,} sends one by one take about {needed} of memory; the limit is {MOST_SENDS:,}"
        raise SpecError.of(collective.place, message, "`steps: steady` makes one op of each phase")


def in_full(body: Sequence[Statement], builder: GraphBuilder) -> tuple[Statement, ...]:
    """Statements with every send of every rank.

    Raises:
        SpecError: they are too many.
    """
    statements: list[Statement] = []
    for statement in body:
        match statement:
            case Repeat():
                statements.append(Repeat(statement.times, in_full(statement.body, builder), statement.place))
            case Collective() if any(gathering.sends is not None for gathering in statement.gatherings):
                refuse_more(sum(one.sends.count for one in statement.gatherings if one.sends is not None), statement)
                gatherings = tuple(_in_full(one, builder) for one in statement.gatherings)
                statements.append(replace(statement, gatherings=gatherings))
            case _:
                statements.append(statement)
    return tuple(statements)


def _in_full(gathering: Gathering, builder: GraphBuilder) -> Gathering:
    sends = gathering.sends
    if sends is None:
        return gathering
    turns = []
    course_of: dict[tuple[int, int], int] = {}  # of a way, the latest course with a send on it
    for number, course in enumerate(sends.courses):
        ways = []
        for leg in course.legs:
            both = tuple(dict.fromkeys((*sends.members[leg.source], *sends.members[leg.target])))
            label = sends.labelled(builder, leg.device, sends.program)
            way = leg.source, leg.target
            follows = (course_of[way], way) if way in course_of else None
            ways.append(Way((number, way), follows, leg.source, leg.target, leg.cost, leg.first, both, both, label))
        course_of |= {(leg.source, leg.target): number for leg in course.legs}
        turns.append(Turn(tuple(ways), places_of(ways), course.times))
    return Gathering(gathering.ranks, (*gathering.steps, *steps(turns, sends.pieces, len(gathering.steps))))
