"""Labels and queues of a rank that is represented by another rank of its class."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hwsim.graph.builder import GraphBuilder
from hwsim.graph.opgraph import RankNames, RepresentedRanks
from hwsim.machine import Machine
from hwsim.spec import Mistakes
from hwsim.workload.file import Workload
from hwsim.workload.lower import programs_of
from hwsim.workload.parser import ProgramGroup, read_group
from hwsim.workload.statements import (
    Barrier,
    CallStatement,
    CollectiveStatement,
    Fetch,
    Issue,
    Receive,
    Statement,
    WaitStatement,
    walk,
)


def names_of(workload: Workload, machine: Machine, alike: RepresentedRanks, rank: int) -> RankNames:
    """Map the labels and queues of the first rank of a class to those of another rank; both programs are parsed again."""
    first = int(alike.first[alike.of[rank]])
    start = 0
    for name, tree, runtime in programs_of(workload):
        builder = GraphBuilder()
        read = partial(
            read_group, name, tree, machine, None if runtime is None else runtime.rules, workload.groups, builder, Mistakes()
        )
        ranks = read(only=0).programs[0].ranks
        if first < start + ranks:
            return _paired(builder, read(only=first - start), read(only=rank - start))
        start += ranks
    return RankNames({}, {})


def _paired(builder: GraphBuilder, first: ProgramGroup, second: ProgramGroup) -> RankNames:
    labels = {}
    for label, other in zip(_labels(first), _labels(second), strict=True):
        if label >= 0:
            labels[builder.label_at(label)] = builder.label_at(other)
    queues = {}
    for queue, other in zip(_queues(first), _queues(second), strict=True):
        if queue >= 0:
            queues[builder.queue_at(queue).name] = builder.queue_at(other).name
    return RankNames(labels, queues)


def _labels(group: ProgramGroup) -> Iterator[int]:
    """Labels of the only program of a group, in order."""
    yield from group.starts
    for statement in walk(group.body):
        yield from _statement_labels(statement)


def _statement_labels(statement: Statement) -> Iterator[int]:
    match statement:
        case Issue(ops=ops) | Fetch(ops=ops) | CollectiveStatement(ops=ops):
            yield from (label for op in ops for label in (op.label, op.dispatch, op.insert, op.back))
            if isinstance(statement, CollectiveStatement):
                yield from statement.arrivals
        case CallStatement(labels=pairs):
            yield from (label for pair in pairs for label in pair)
        case WaitStatement(labels=labels) | Receive(labels=labels):
            yield from labels
        case Barrier(labels=(_, _, *labels)):
            yield from labels
        case _:
            pass


def _queues(group: ProgramGroup) -> Iterator[int]:
    yield from group.hosts
    for statement in walk(group.body):
        if isinstance(statement, Issue | Fetch | CollectiveStatement):
            yield from (op.queue for op in statement.ops)
