"""Folding of programs: identical ranks are reduced to the first rank of each class (see `hwsim.graph.fold`).

Folding takes place after all programs are read and before any op is written out. Its result contains the programs of the first
rank of each class, with ops that represent all ranks of the class, and one step per class of each collective.

**Range**: ranks of a collective with `steps: explicit` are not folded, because the positions of their sends differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from hwsim.demand import Capacity
from hwsim.graph.builder import GraphBuilder
from hwsim.graph.fold import CannotFold, Classes, Fold, NoEquals, fold
from hwsim.graph.opgraph import Label, RepresentedRanks
from hwsim.records import dataclass
from hwsim.workload.host_runtime import HostRuntime, HostTime
from hwsim.workload.parser import ProgramGroup
from hwsim.workload.send_steps import UnrolledCourse, UnrolledSend, refuse_more, steps
from hwsim.workload.statements import (
    Barrier,
    CallStatement,
    CollectiveStatement,
    CollectiveStep,
    Fetch,
    Issue,
    PlacedOp,
    RankMeeting,
    Repeat,
    RepeatedSends,
    Statement,
    WaitStatement,
)
from hwsim.workload.template import HOST, ProgramTemplate


@dataclass(frozen=True, slots=True)
class Quotient:
    """A folded workload; `alike` contains the ranks that it represents."""

    builder: GraphBuilder
    groups: tuple[ProgramGroup, ...]
    runtimes: tuple[HostRuntime | None, ...]
    alike: RepresentedRanks


def fold_programs(
    groups: Sequence[ProgramGroup],
    runtimes: Sequence[HostRuntime | None],
    builder: GraphBuilder,
    capacities: Mapping[str, Capacity],
    marks: Mapping[str, Hashable],
) -> Quotient:
    """Return the programs of one rank of each class.

    Args:
        builder: contains the labels, costs and queues of the programs.
        marks: changes of each capacity during the run.

    Raises:
        CannotFold: the workload is a single program.
        NoEquals: hardly any two ranks are identical.
    """
    template = ProgramTemplate(builder)
    for group in groups:
        template.enter(group)
    programs = len(template.colours)
    for group, runtime, base in zip(groups, runtimes, template.starts, strict=True):
        template.add(group, runtime, base)
    classes_of_all = fold(template.colours, template.ops, capacities, marks)
    ranks, is_wide = programs, int(classes_of_all.capacities.size.sum()) > 2 * len(classes_of_all.capacities)
    count = len(np.unique(classes_of_all.ranks.of[:ranks]))
    if 2 * count > ranks and not is_wide:
        if ranks == 1:
            raise CannotFold(
                "a single program issues all ops; folding (simulating one of several identical ranks) needs one program per rank"
            )
        raise NoEquals(f"hardly any two of the {ranks:,} ranks are identical: there are {count:,} classes")
    return _Restriction(template, classes_of_all, builder, capacities).restrict(groups, runtimes)


@dataclass(slots=True)
class _Restriction:
    """A map from the statements of all ranks to those of the first rank of each class, with the tables of another builder."""

    template: ProgramTemplate
    fold: Fold
    old: GraphBuilder
    capacities: Mapping[str, Capacity]
    new: GraphBuilder = field(init=False)
    counts: dict[int, int] = field(default_factory=dict)  # label -> ops that each op with the label represents
    labels: dict[int, int] = field(default_factory=dict)
    queues: dict[int, int] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)  # labels of complete collectives

    def __post_init__(self) -> None:
        leaders = {self.fold.names[first] for first in self.fold.capacities.first.tolist()}
        self.new = GraphBuilder([self.capacities[name] for name in sorted(leaders & self.capacities.keys())])

    def restrict(self, groups: Sequence[ProgramGroup], runtimes: Sequence[HostRuntime | None]) -> Quotient:
        first = set(self.fold.representatives)
        kept, times = [], []
        for group, runtime, base in zip(groups, runtimes, self.template.starts, strict=True):
            ranks = [rank for rank in range(len(group.programs)) if base + rank in first]
            restriction = _Group(self, group, base, ranks)
            kept.append(restriction.restricted())
            times.append(None if runtime is None else restriction.runtime(runtime))
        names = tuple(program.name for group in groups for program in group.programs)
        classes = Classes.by(self.fold.ranks.of[: len(names)])
        alike = RepresentedRanks(
            programs=names,
            of=classes.of,
            first=classes.first,
            labels=np.array([self.counts.get(label, 1) for label in range(self.new.label_count())], np.int64),
            met=frozenset(self.met),
            capacities={name: count for name, count in self.fold.alike().items() if name in self.capacities},
            members=self.fold.members(),
        )
        return Quotient(self.new, tuple(kept), tuple(times), alike)

    def label(self, index: int, times: int) -> int:
        if index < 0:
            return index
        if index not in self.labels:
            label = self.old.label_at(index)
            self.labels[index] = self.new.label(label.name, label.kind, label.device, label.program)
            self.counts[self.labels[index]] = times
        return self.labels[index]

    def queue(self, index: int) -> int:
        if index < 0:
            return index
        if index not in self.queues:
            queue = self.old.queue_at(index)
            self.queues[index] = self.new.queue(queue.name, queue.device, queue.depth, queue.kind)
        return self.queues[index]


@dataclass(slots=True)
class _Group:
    """A restriction of one group to the programs of `ranks`."""

    whole: _Restriction
    group: ProgramGroup
    base: int
    ranks: list[int]
    number: int = 0

    def restricted(self) -> ProgramGroup:
        group = self.group
        return replace(
            group,
            programs=tuple(group.programs[rank] for rank in self.ranks),
            hosts=tuple(self.whole.queue(group.hosts[rank]) for rank in self.ranks),
            body=self._body(group.body),
            starts=tuple(self._label(group.starts[rank], rank) for rank in self.ranks),
        )

    def runtime(self, runtime: HostRuntime) -> HostRuntime:
        times: dict[str, Any] = {name: self._host(name, getattr(runtime, name)) for name in HOST}
        return replace(runtime, **times)

    def _host(self, name: str, spent: HostTime) -> HostTime:
        return HostTime(tuple(self._cost(((self.group.name, name), rank)) for rank in self.ranks), spent.time)

    def _cost(self, key: tuple[Hashable, ...]) -> int:
        number = self.whole.template.at.get(key)
        return -1 if number is None else self.whole.new.cost(self.whole.fold.cost(number))

    def _label(self, index: int, rank: int) -> int:
        ranks = self.whole.fold.ranks
        return self.whole.label(index, int(ranks.size[ranks.of[self.base + rank]]))

    def _body(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(self._statement(statement) for statement in body)

    def _statement(self, statement: Statement) -> Statement:
        place = (self.group.name, self.number)
        self.number += 1
        match statement:
            case Repeat():
                return Repeat(statement.times, self._body(statement.body), statement.place)
            case Issue():
                return Issue(self._ops(place, statement.ops))
            case Fetch():
                return Fetch(self._ops(place, statement.ops))
            case CallStatement():
                ranked = [tuple(self._label(label, rank) for label in statement.labels[rank]) for rank in self.ranks]
                labels_of_rank = tuple((compiling, calling, nodes) for compiling, calling, nodes in ranked)
                return replace(statement, labels=labels_of_rank)
            case WaitStatement():
                return WaitStatement(
                    statement.names, statement.back, tuple(self._label(statement.labels[rank], rank) for rank in self.ranks)
                )
            case Barrier(labels=(arrival, release, *others)):
                labels = (self.whole.label(arrival, 1), self.whole.label(release, 1))
                return replace(statement, labels=(*labels, *(self._label(others[rank], rank) for rank in self.ranks)))
            case CollectiveStatement():
                return self._collective(place, statement)
        return statement

    def _ops(self, place: tuple[str, int], ops: Sequence[PlacedOp]) -> tuple[PlacedOp, ...]:
        return tuple(self._op(place, ops[rank], rank) for rank in self.ranks)

    def _op(self, place: tuple[str, int], op: PlacedOp, rank: int) -> PlacedOp:
        memory, sizes = op.memory, op.sizes
        if sizes:
            memory, times = self.whole.fold.touched(self.whole.template.at[place, rank])
            sizes = tuple((value, size * times) for value, size in sizes)
        return replace(
            op,
            label=self._label(op.label, rank),
            dispatch=self._label(op.dispatch, rank),
            insert=self._label(op.insert, rank),
            back=self._label(op.back, rank),
            queue=self.whole.queue(op.queue),
            cost=self._cost((place, rank)) if op.cost >= 0 else -1,
            memory=memory,
            sizes=sizes,
        )

    def _collective(self, key: tuple[str, int], collective: CollectiveStatement) -> CollectiveStatement:
        """Merge the gatherings of a collective into one with a step per class."""
        fold, at = self.whole.fold, self.whole.template.at
        place: dict[int, int] = {}  # step -> position in `steps`
        steps: list[CollectiveStep] = []
        if any(gathering.sends is not None for gathering in collective.gatherings):
            steps = self._legs(key, collective)
        for number, gathering in enumerate(collective.gatherings):
            for position, step in enumerate(gathering.steps):
                op = at[key, number, position]
                if fold.ops.leader(op) != op:
                    continue
                place[op] = len(steps)
                steps.append(CollectiveStep(
                    label=self._step_label(collective, gathering, step, fold.stands_for(op)),
                    cost=self._cost((key, number, position)) if step.cost >= 0 else -1,
                    after=tuple(dict.fromkeys(place[fold.ops.leader(at[key, number, earlier])] for earlier in step.after)),
                    begins=self._firsts(step.begins),
                    ends=self._firsts(step.ends),
                ))  # fmt: skip
        return replace(
            collective,
            ops=self._ops(key, collective.ops),
            arrivals=tuple(self._label(collective.arrivals[rank], rank) for rank in self.ranks),
            gatherings=(RankMeeting(tuple(range(len(self.ranks))), tuple(steps)),) if steps else (),
        )

    def _legs(self, key: tuple[str, int], collective: CollectiveStatement) -> list[CollectiveStep]:
        """The sends of one leg per class; gatherings with equal courses share classes."""
        alike: dict[tuple[int, ...], list[tuple[int, RepeatedSends]]] = {}
        for number, gathering in enumerate(collective.gatherings):
            if (sends := gathering.sends) is not None:
                alike.setdefault((sends.pieces, *(course.times for course in sends.courses)), []).append((number, sends))
        legs: list[CollectiveStep] = []
        for group in alike.values():
            turns = [self._turn(key, group, course) for course in range(len(group[0][1].courses))]
            refuse_more(group[0][1].pieces * sum(len(turn.ways) * turn.times for turn in turns), collective)
            legs += steps(turns, group[0][1].pieces, len(legs))
        return legs

    def _turn(self, key: tuple[str, int], group: Sequence[tuple[int, RepeatedSends]], course: int) -> UnrolledCourse:
        """One course with the first leg of each class; an end is identified by the first member of its class."""
        fold, at, ops = self.whole.fold, self.whole.template.at, self.whole.template.ops
        ways: list[UnrolledSend] = []
        place: dict[int, int] = {}
        legs_of_end: dict[int, list[int]] = {}  # member -> first leg of each class of its legs
        for number, sends in group:
            base = at[key, number, "members"]
            for leg_place, leg in enumerate(sends.courses[course].legs):
                op = at[key, number, "leg", course, leg_place]
                leader = fold.ops.leader(op)
                for end in dict.fromkeys((base + leg.source, base + leg.target)):
                    if fold.ranks.leader(end) == end:
                        legs_of_end.setdefault(end, []).append(leader)
                if leader != op:
                    continue
                place[op] = len(ways)
                times = fold.stands_for(op)
                both = self._firsts((*sends.members[leg.source], *sends.members[leg.target]))
                ways.append(UnrolledSend(
                    key=op,
                    follows=fold.ops.leader(ops[op].after[0]) if ops[op].after else None,
                    source=fold.ranks.leader(base + leg.source),
                    target=fold.ranks.leader(base + leg.target),
                    cost=self._cost((key, number, "leg", course, leg_place)),
                    first=self._cost((key, number, "first", course, leg_place)) if leg.first >= 0 else -1,
                    begins=both,
                    ends=both,
                    label=self._counted(sends, leg.device, times),
                ))  # fmt: skip
        return UnrolledCourse(
            tuple(ways),
            {end: tuple(dict.fromkeys(place[leader] for leader in leaders)) for end, leaders in legs_of_end.items()},
            group[0][1].courses[course].times,
        )

    def _counted(self, sends: RepeatedSends, device: str, times: int) -> Callable[[int], int]:
        """Return the labels of sends that represent `times` ops each, by number of the step."""
        labelled = sends.labelled(self.whole.new, device, f"{times:,} alike")

        def label(number: int) -> int:
            index = labelled(number)
            self.whole.counts[index] = times
            return index

        return label

    def _firsts(self, ranks: Sequence[int]) -> tuple[int, ...]:
        """Positions in `self.ranks` of the first ranks of these ranks' classes."""
        position = {rank: number for number, rank in enumerate(self.ranks)}
        return tuple(dict.fromkeys(position[self.whole.fold.ranks.leader(self.base + rank) - self.base] for rank in ranks))

    def _step_label(self, collective: CollectiveStatement, gathering: RankMeeting, step: CollectiveStep, times: int) -> int:
        """A new label with the number of ops that it represents."""
        label: Label = self.whole.old.label_at(step.label)
        index = self.whole.new.label(label.name, label.kind, label.device, f"{times:,} alike")
        self.whole.counts[index] = times
        if step.label == collective.ops[gathering.ranks[0]].label:
            self.whole.met.add(index)
        return index
