"""Unrolling of the repeated steps of a collective into sends of all members, or of the first member of each class.

A send waits for the sends of both its ends in the previous step, and for the previous send on the same route (see
`hwsim.communication.algorithms.algorithm.Algorithm.repeated_steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from hwsim.formats import format_quantity
from hwsim.graph.builder import GraphBuilder
from hwsim.machine.libraries.operations import MAX_SENDS
from hwsim.records import dataclass
from hwsim.spec import SpecError
from hwsim.workload.statements import CollectiveStatement, CollectiveStep, RankMeeting, Repeat, Statement

_BYTES: Final = 1_500  # memory per simulated send
SEEN: Final = 2  # steps of a course after which all are equal


@dataclass(frozen=True, slots=True)
class UnrolledSend:
    """A send of one course.

    Args:
        key: identity of the send.
        follows: key of the send on the same route in the latest earlier course, or None.
        source, target: identities of the two ends.
        cost, first, begins, ends: as in `Leg` and `CollectiveStep`.
        label: function from the number of the step to the label.
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
class UnrolledCourse:
    """A course with its sends.

    Args:
        ways: sends of one step.
        places_of: positions of the sends of each end.
        times: number of steps.
    """

    ways: tuple[UnrolledSend, ...]
    places_of: dict[object, tuple[int, ...]]
    times: int


def steps(turns: Sequence[UnrolledCourse], pieces: int, before: int = 0) -> list[CollectiveStep]:
    """Return all sends in order; the first send has position `before`.

    From the third step of a course on, each step is the previous one, moved on. Waits that others imply are omitted: a send waits
    for arrivals only if one of its ends has not sent or received yet, and a rank leaves after its last sends.
    """
    last: dict[object, int] = {}
    done: dict[object, tuple[int, ...]] = {}  # end -> first pieces of its sends in the latest step
    sends: list[CollectiveStep] = []
    ways_of: list[UnrolledSend] = []
    number = 0
    for turn in turns:
        ways = [way for way in turn.ways for _ in range(pieces)]
        for step in range(turn.times):
            start = before + len(sends)
            ways_of += ways
            for way, send in zip(ways, sends[-len(ways) :], strict=True) if step >= SEEN else ():
                after = tuple([place + len(ways) for place in send.after])
                sends.append(CollectiveStep(way.label(number), send.cost, after, (), ()))
            for way in turn.ways if step < SEEN else ():
                needed = dict.fromkeys((*done.get(way.source, ()), *done.get(way.target, ())))
                begins = () if way.source in done and way.target in done else way.begins
                for piece in range(pieces):
                    earlier = {position + piece for position in needed}
                    if (route := last.get(way.key, last.get(way.follows))) is not None:
                        earlier.add(route)
                    last[way.key] = before + len(sends)
                    cost = way.first if way.first >= 0 and not earlier else way.cost
                    sends.append(CollectiveStep(way.label(number), cost, tuple(sorted(earlier)), begins, ()))
            last |= {way.key: start + place for place, way in enumerate(ways)}
            done |= {end: tuple([start + place * pieces for place in places]) for end, places in turn.places_of.items()}
            number += 1
    for place in {first + piece - before for places in done.values() for first in places for piece in range(pieces)}:
        sends[place] = replace(sends[place], ends=ways_of[place].ends)
    return sends


def places_of(ways: Sequence[UnrolledSend]) -> dict[object, tuple[int, ...]]:
    """Return the positions of the sends of each end."""
    places_of: dict[object, list[int]] = {}
    for place, way in enumerate(ways):
        for end in dict.fromkeys((way.source, way.target)):
            places_of.setdefault(end, []).append(place)
    return {end: tuple(places) for end, places in places_of.items()}


def refuse_more(count: int, collective: CollectiveStatement) -> None:
    """Raise SpecError if the number of sends exceeds the limit."""
    if count > MAX_SENDS:
        needed = format_quantity(count * _BYTES, "B")
        message = f"{count:,} explicit sends exceed the limit of {MAX_SENDS:,} (about {needed} of memory)"
        raise SpecError.of(collective.place, message, "steps: steady")


def in_full(body: Sequence[Statement], builder: GraphBuilder) -> tuple[Statement, ...]:
    """Return the statements with every send of every rank.

    Raises:
        SpecError: the number of sends exceeds the limit.
    """
    statements: list[Statement] = []
    for statement in body:
        match statement:
            case Repeat():
                statements.append(Repeat(statement.times, in_full(statement.body, builder), statement.place))
            case CollectiveStatement() if any(gathering.sends is not None for gathering in statement.gatherings):
                refuse_more(sum(meeting.sends.count for meeting in statement.gatherings if meeting.sends is not None), statement)
                gatherings = tuple(_in_full(meeting, builder) for meeting in statement.gatherings)
                statements.append(replace(statement, gatherings=gatherings))
            case _:
                statements.append(statement)
    return tuple(statements)


def _in_full(gathering: RankMeeting, builder: GraphBuilder) -> RankMeeting:
    sends = gathering.sends
    if sends is None:
        return gathering
    turns = []
    course_of: dict[tuple[int, int], int] = {}  # (source, target) -> latest course with a send between them
    for number, course in enumerate(sends.courses):
        ways = []
        for leg in course.legs:
            both = tuple(dict.fromkeys((*sends.members[leg.source], *sends.members[leg.target])))
            label = sends.labelled(builder, leg.device, sends.program)
            way = leg.source, leg.target
            follows = (course_of[way], way) if way in course_of else None
            ways.append(UnrolledSend((number, way), follows, leg.source, leg.target, leg.cost, leg.first, both, both, label))
        course_of |= {(leg.source, leg.target): number for leg in course.legs}
        turns.append(UnrolledCourse(tuple(ways), places_of(ways), course.times))
    return RankMeeting(gathering.ranks, (*gathering.steps, *steps(turns, sends.pieces, len(gathering.steps))))
