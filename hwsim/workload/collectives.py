"""Collectives of programs: the devices that meet in each collective, and its steps.

Under `each`, a collective that every program issues is one collective: its members are the devices of the programs, matched by
statement and iteration. In a program per node, the collective is local to the node if it names devices inside the node; nodes
that name the same devices meet. A single program represents all members.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from hwsim.machine import NoRoute, UnknownName
from hwsim.ops import CannotPlace, ExchangeOp
from hwsim.ops.exchange import CollectiveCourses
from hwsim.records import dataclass
from hwsim.workload.groups import CannotGroup, RankGroups
from hwsim.workload.placement import OpPlacer
from hwsim.workload.programs import Program
from hwsim.workload.statements import (
    CollectiveStatement,
    CollectiveStep,
    MemberSend,
    PlacedOp,
    RankMeeting,
    RepeatedSends,
    StepSequence,
)

if TYPE_CHECKING:  # imported when the first collective is lowered
    from hwsim.communication.flows import Flows

Members = tuple[str, ...]  # full names of devices, in rank order


@dataclass(frozen=True, slots=True)
class _GroupsOfName:
    """The groups of a name in one node.

    Args:
        of: number of the group, by device.
        only: number of the group if there is only one.
    """

    of: Mapping[str, int]
    only: int | None


@dataclass(frozen=True, slots=True)
class CollectiveBuilder:
    """A builder of the collectives of one group of programs."""

    programs: Sequence[Program]
    placing: OpPlacer
    groups: Mapping[str, RankGroups]
    known: dict[Hashable, Flows] = field(default_factory=dict)  # flows of earlier statements, for reuse

    def collective(
        self, ops: Sequence[ExchangeOp], placed: Sequence[PlacedOp], kind: str, pieces: int
    ) -> CollectiveStatement | None:
        """Return the collective of one statement that every rank issues; None if a mistake was added.

        Args:
            ops: op of each rank, as in the file.
            placed: op of each rank, with its label and queue.
            kind: key of the op in the file.
            pieces: number of pieces of the op that the collective overlaps; 1: no overlap.
        """
        all_ranks = len(self.programs) == self.programs[0].ranks
        try:
            gatherings = tuple(self._gatherings(ops, kind, pieces)) if all_ranks else ()
        except (CannotGroup, CannotPlace, NoRoute, UnknownName) as error:
            self.placing.mistakes.add(ops[0].place, error.message, error.hint)
            return None
        label = self.placing.builder.label
        arrivals = tuple(
            label(op.name, "arrive", op.device, program.name) for op, program in zip(placed, self.programs, strict=True)
        )
        return CollectiveStatement(tuple(placed), arrivals, gatherings, ops[0].overlaps, pieces, ops[0].place)

    def _gatherings(self, ops: Sequence[ExchangeOp], kind: str, pieces: int) -> list[RankMeeting]:
        if not self.programs[0].own:  # one program alone
            return [self._gathering((0,), members, ops[0], kind, pieces) for members in self._parts(ops[0], 0)]
        meets: dict[int, list[int]] = {}
        by_name: dict[tuple[tuple[str, ...], str], _GroupsOfName] = {}  # cache: thousands of ranks use the same name
        groups: dict[Members, int] = {}
        for rank, op in enumerate(ops):
            device, key = self.programs[rank].own, (op.among, self.programs[rank].scope.node)
            named = by_name.get(key)
            if named is None:
                parts = self._parts(op, rank)
                numbers = [groups.setdefault(part, len(groups)) for part in parts]
                of = {name: number for number, part in zip(reversed(numbers), reversed(parts), strict=True) for name in part}
                named = by_name[key] = _GroupsOfName(of, numbers[0] if len(parts) == 1 else None)
            mine = named.of.get(device, named.only)
            if mine is None:
                raise CannotPlace(f"{device} is in none of the groups '{op.among[0]}'", "every rank must be in one of the groups")
            meets.setdefault(mine, []).append(rank)
        members = tuple(groups)
        owners = {program.own: rank for rank, program in enumerate(self.programs)}
        for number, ranks in meets.items():
            self._all_come(members[number], ranks, ops[ranks[0]], owners)
        return [self._gathering(tuple(ranks), members[number], ops[ranks[0]], kind, pieces) for number, ranks in meets.items()]

    def _parts(self, op: ExchangeOp, rank: int) -> tuple[Members, ...]:
        """The groups that `among` denotes for a rank; a single group if `among` lists devices."""
        scope = self.programs[rank].scope
        if len(op.among) == 1 and op.among[0] in self.groups:
            declared = self.groups[op.among[0]]
            return declared.parts(scope.machine.select(declared.of))
        return (scope.machine.select(op.among, scope.node),)

    def _all_come(self, members: Members, ranks: Sequence[int], op: ExchangeOp, owners: Mapping[str, int]) -> None:
        """Raise CannotPlace for members whose programs do not issue the collective, or that have no program."""
        owned = [member for member in members if member in owners]
        if not owned:
            return  # programs of nodes
        arriving = set(ranks)
        missing = [member for member in members if owners.get(member) not in arriving]
        if missing:
            names = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
            message = f"deadlock: {names} never arrives at '{op.name or op.kind}'"
            raise CannotPlace(message, "every member needs a program that issues the collective, see `each`")

    def _gathering(self, ranks: tuple[int, ...], members: Members, op: ExchangeOp, kind: str, pieces: int) -> RankMeeting:
        machine, builder = self.programs[0].scope.machine, self.placing.builder
        rank_of = self._ranks_of(ranks, members)

        def ranks_of(devices: Sequence[str]) -> tuple[int, ...]:
            if not self.programs[0].own:
                return ranks if devices else ()
            return tuple(dict.fromkeys(rank for device in devices for rank in rank_of[device]))

        program = self.programs[ranks[0]].name
        if (courses := op.courses(machine, members, pieces, self.placing.mistakes)) is not None:
            return RankMeeting(ranks, (), self._sends(op, courses, kind, program, rank_of))
        steps = tuple(
            CollectiveStep(
                label=builder.label(part.name, kind, part.device, program),
                cost=builder.cost(op.weighted(part.cost)),
                after=part.after,
                begins=ranks_of(part.begins),
                ends=ranks_of(part.ends),
            )
            for part in op.parts(machine, members, pieces, self.placing.mistakes, self.known)
        )
        return RankMeeting(ranks, steps)

    def _sends(
        self, op: ExchangeOp, plan: CollectiveCourses, kind: str, program: str, rank_of: Mapping[str, tuple[int, ...]]
    ) -> RepeatedSends:
        """The repeated steps of a collective, with indices of labels and costs."""
        cost = self.placing.builder.cost
        names = tuple(dict.fromkeys(end for course in plan.courses for leg in course.legs for end in (leg.source, leg.target)))
        place = {name: number for number, name in enumerate(names)}
        courses = []
        for course in plan.courses:
            legs = [
                MemberSend(
                    place[leg.source],
                    place[leg.target],
                    leg.source,
                    cost(op.weighted(leg.cost)),
                    -1 if leg.first is None else cost(op.weighted(leg.first)),
                )
                for leg in course.legs
            ]
            courses.append(StepSequence(tuple(legs), course.times))
        return RepeatedSends(
            plan.name, kind, program, tuple(rank_of.get(name, ()) for name in names), tuple(courses), plan.pieces
        )

    def _ranks_of(self, ranks: tuple[int, ...], members: Members) -> dict[str, tuple[int, ...]]:
        """Ranks whose arrival a member represents: its own program, its node's program, or all."""
        if not self.programs[0].own:  # one program alone
            return dict.fromkeys(members, ranks)
        machine = self.programs[0].scope.machine
        rank_of = {self.programs[rank].own: rank for rank in ranks}
        ranks_of: dict[str, tuple[int, ...]] = {}
        for member in members:
            if member in rank_of:
                ranks_of[member] = (rank_of[member],)
            elif (node := machine.device(member).node) in rank_of:
                ranks_of[member] = (rank_of[node],)
            else:
                ranks_of[member] = ranks
        return ranks_of
