"""Who meets whom in a collective, and the steps they then do together.

Under `each`, a collective that every program issues is one collective: its members are the programs' own devices,
matched by statement and iteration.  A program per node that names devices inside its node has one of its own, unless
several nodes name the same devices: then those nodes meet.  A program that stands alone speaks for all members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hwsim.machine import NoRoute, UnknownName
from hwsim.ops import CannotPlace, ExchangeOp
from hwsim.workload.groups import CannotGroup, RankGroups
from hwsim.workload.placing import Placing
from hwsim.workload.programs import Program
from hwsim.workload.statements import Collective, Gathering, PlacedOp, Step

Members = tuple[str, ...]  # full names of devices, in rank order


@dataclass(frozen=True, slots=True)
class Gatherings:
    """Builds the collectives of one group of programs."""

    programs: Sequence[Program]
    placing: Placing
    groups: Mapping[str, RankGroups]

    def collective(self, ops: Sequence[ExchangeOp], placed: Sequence[PlacedOp], kind: str, pieces: int) -> Collective | None:
        """One statement, issued by every rank; None once what is wrong is noted.

        pieces: of the op it overlaps, 1 if it overlaps none.
        """
        try:
            gatherings = tuple(self._gatherings(ops, kind, pieces))
        except (CannotGroup, CannotPlace, NoRoute, UnknownName) as error:
            self.placing.mistakes.add(ops[0].place, error.message, error.hint)
            return None
        label = self.placing.builder.label
        arrivals = tuple(
            label(each.name, "arrive", each.device, program.name) for each, program in zip(placed, self.programs, strict=True)
        )
        return Collective(tuple(placed), arrivals, gatherings, ops[0].overlaps, pieces)

    def _gatherings(self, ops: Sequence[ExchangeOp], kind: str, pieces: int) -> list[Gathering]:
        if not self.programs[0].own:  # one program alone
            return [self._gathering((0,), members, ops[0], kind, pieces) for members in self._parts(ops[0], 0)]
        meets: dict[Members, list[int]] = {}
        for rank, op in enumerate(ops):
            parts = self._parts(op, rank)
            own = self.programs[rank].own
            mine = next((each for each in parts if own in each), parts[0] if len(parts) == 1 else None)
            if mine is None:
                raise CannotPlace(f"{own} is in none of the groups '{op.among[0]}'", "name groups that hold every rank")
            meets.setdefault(mine, []).append(rank)
        for members, ranks in meets.items():
            self._all_come(members, ranks, ops[ranks[0]])
        return [self._gathering(tuple(ranks), members, ops[ranks[0]], kind, pieces) for members, ranks in meets.items()]

    def _parts(self, op: ExchangeOp, rank: int) -> tuple[Members, ...]:
        """The groups that the names of `among` mean to a rank; a single one where they name devices."""
        scope = self.programs[rank].scope
        if len(op.among) == 1 and op.among[0] in self.groups:
            declared = self.groups[op.among[0]]
            return declared.parts(scope.machine.select(declared.of))
        return (scope.machine.select(op.among, scope.node),)

    def _all_come(self, members: Members, ranks: Sequence[int], op: ExchangeOp) -> None:
        """Raise CannotPlace for members that are some program's own device and do not come, or belong to no program."""
        owners = {program.own: rank for rank, program in enumerate(self.programs)}
        owned = [each for each in members if each in owners]
        if not owned:
            return  # programs of nodes
        missing = [each for each in members if owners.get(each) not in ranks]
        if missing:
            said = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
            message = f"{said} never arrives at '{op.name or op.kind}': the others would wait for ever"
            raise CannotPlace(message, "every member needs a program that issues it; see `each`")

    def _gathering(self, ranks: tuple[int, ...], members: Members, op: ExchangeOp, kind: str, pieces: int) -> Gathering:
        machine, builder = self.programs[0].scope.machine, self.placing.builder
        rank_of = self._ranks_of(ranks, members)

        def ranks_of(devices: Sequence[str]) -> tuple[int, ...]:
            return tuple(dict.fromkeys(rank for each in devices for rank in rank_of[each]))

        program = self.programs[ranks[0]].name
        steps = tuple(
            Step(
                label=builder.label(part.name, kind, part.device, program),
                cost=builder.cost(op.weighted(part.cost)),
                after=part.after,
                begins=ranks_of(part.begins),
                ends=ranks_of(part.ends),
            )
            for part in op.parts(machine, members, pieces, self.placing.mistakes)
        )
        return Gathering(ranks, steps)

    def _ranks_of(self, ranks: tuple[int, ...], members: Members) -> dict[str, tuple[int, ...]]:
        """Whose arrival a member stands for: its own program's, its node's, or everybody's."""
        machine = self.programs[0].scope.machine
        own = {self.programs[rank].own: rank for rank in ranks}
        found: dict[str, tuple[int, ...]] = {}
        for each in members:
            if each in own:
                found[each] = (own[each],)
            elif (node := machine.device(each).node) in own:
                found[each] = (own[node],)
            else:
                found[each] = ranks
        return found
