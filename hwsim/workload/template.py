"""Template of programs for folding: ops of each rank and steps of collectives, once per statement (see `hwsim.graph.fold`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from typing import Final

from hwsim.graph.builder import GraphBuilder
from hwsim.graph.fold import TemplateOp
from hwsim.records import dataclass
from hwsim.workload.host_runtime import HostRuntime, HostTime
from hwsim.workload.parser import ProgramGroup
from hwsim.workload.statements import CollectiveStatement, Fetch, Issue, PlacedOp, RepeatedSends, walk

HOST: Final = ("dispatch", "layer", "issue", "back", "call", "compile")  # times of a runtime's threads


@dataclass(slots=True)
class ProgramTemplate:
    """A template with the ranks of all groups in sequence and the statements numbered in order of the text."""

    builder: GraphBuilder
    colours: list[Hashable] = field(default_factory=list)
    ops: list[TemplateOp] = field(default_factory=list)
    at: dict[tuple[Hashable, ...], int] = field(default_factory=dict)  # (statement, rank) or (statement, gathering, step)
    starts: list[int] = field(default_factory=list)  # first rank of each group
    queues: dict[int, int] = field(default_factory=dict)  # queue -> its position among the queues of its rank
    used: list[int] = field(default_factory=list)  # number of queues of each rank

    def enter(self, group: ProgramGroup) -> None:
        """Add the programs of a group as ranks."""
        base = len(self.colours)
        self.starts.append(base)
        for rank in range(len(group.programs)):
            self.colours.append((group.name, group.start))
            self.used.append(0)
            self._place(base + rank, group.hosts[rank])

    def add(self, group: ProgramGroup, runtime: HostRuntime | None, base: int) -> None:
        """Add the ops that the programs of a group issue."""
        if runtime is not None:
            for name in HOST:
                spent: HostTime = getattr(runtime, name)
                for rank, cost in enumerate(spent.cost):
                    if cost >= 0:
                        line = ("queue", group.hosts[rank])
                        self._add(((group.name, name), rank), TemplateOp(
                            (group.name, name), self.builder.cost_at(cost), (((), (base + rank,)),), line=line))  # fmt: skip
        for number, statement in enumerate(walk(group.body)):
            place = (group.name, number)
            match statement:
                case Issue(ops=ops) | Fetch(ops=ops):
                    self._issue(place, base, ops)
                case CollectiveStatement(ops=ops):
                    self._issue(place, base, ops)
                    self._steps(place, base, statement)
                case _:
                    pass

    def _add(self, key: tuple[Hashable, ...], op: TemplateOp) -> None:
        self.at[key] = len(self.ops)
        self.ops.append(op)

    def _place(self, rank: int, queue: int) -> int:
        """Position of a queue among the queues of its rank; -1: no queue."""
        if queue < 0:
            return -1
        if queue not in self.queues:
            self.queues[queue] = self.used[rank]
            self.used[rank] += 1
        return self.queues[queue]

    def _issue(self, at: tuple[str, int], base: int, ops: Sequence[PlacedOp]) -> None:
        looks: dict[int, Hashable] = {}
        for rank, op in enumerate(ops):
            look = (at, self._place(base + rank, op.queue), *_look(op))
            cost = self.builder.cost_at(op.cost) if op.cost >= 0 else None
            touches = ((op.memory, op.sizes),) if op.sizes else ()
            line = ("queue", op.queue) if op.queue >= 0 else None
            self._add((at, rank), TemplateOp(looks.setdefault(rank, look), cost, (((), (base + rank,)),), touches, line))

    def _sends(self, at: tuple[str, int], base: int, number: int, sends: RepeatedSends) -> None:
        """Add one op per leg of a course. Members have their own colours, because one program may represent all of them."""
        first = self.at[at, number, "members"] = len(self.colours)
        for place, ranks in enumerate(sends.members):
            self.colours.append((at, "member"))
            represented = tuple(base + rank for rank in ranks)
            self.ops.append(TemplateOp((at, "member"), None, (("is", (first + place,)), ("of", represented))))
        last: dict[tuple[int, int], int] = {}
        for course, legs_of_course in enumerate(sends.courses):
            for place, leg in enumerate(legs_of_course.legs):
                way = leg.source, leg.target
                roles = (("source", (first + leg.source,)), ("target", (first + leg.target,)))
                after = (last[way],) if way in last else ()
                last[way] = len(self.ops)
                for role, cost in (("leg", leg.cost), ("first", leg.first)):
                    if cost >= 0:
                        look = (at, role, course, legs_of_course.times, sends.pieces, leg.first >= 0)
                        line = (at, number, course, place)
                        op = TemplateOp(look, self.builder.cost_at(cost), roles, line=line, after=after)
                        self._add((at, number, role, course, place), op)

    def _steps(self, at: tuple[str, int], base: int, collective: CollectiveStatement) -> None:
        for number, gathering in enumerate(collective.gatherings):
            meets = [base + rank for rank in gathering.ranks]
            if gathering.sends is not None:
                self._sends(at, base, number, gathering.sends)
            first = len(self.ops)
            in_turn = all(place - 1 in step.after for place, step in enumerate(gathering.steps) if place)
            for place, step in enumerate(gathering.steps):
                begins, ends = ([base + rank for rank in who] for who in (step.begins, step.ends))
                cost = self.builder.cost_at(step.cost) if step.cost >= 0 else None
                roles = (("meets", meets), ("begins", begins), ("ends", ends))
                line = (at, number) if in_turn else None
                self._add((at, number, place), TemplateOp(
                    (at, place, len(gathering.steps), step.after), cost, roles, line=line,
                    after=tuple(first + earlier for earlier in step.after)))  # fmt: skip


def _look(op: PlacedOp) -> tuple[Hashable, ...]:
    """Properties that distinguish an op, in addition to its demand and position."""
    return (
        op.name, op.time, op.pieces, op.reads, op.writes, op.updates, op.after, op.block, op.sizes, op.also, op.call,
        op.layer, op.inner,
        op.dispatch >= 0, op.insert >= 0, op.back >= 0, op.cost >= 0,
    )  # fmt: skip
