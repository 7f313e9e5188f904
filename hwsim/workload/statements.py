"""Statements of programs with resolved names and costs, the input of the emitter.

All programs of an `each` share one tree of statements: an `Issue` has one op per rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from hwsim.graph.builder import GraphBuilder
from hwsim.ops import Pointwise
from hwsim.records import dataclass
from hwsim.spec import NOWHERE, Place


@dataclass(frozen=True, slots=True)
class PlacedOp:
    """An op of one program; labels, queue and cost are indices into the tables of the graph.

    Args:
        label: label of the op.
        dispatch: label of issuing the op.
        insert: label of its insertion into the queue.
        back: label of the return from a wait for the op.
        time: duration besides the cost (fs).
        memory: device in whose memory the op allocates buffers.
        sizes: size of each allocated buffer (bytes), by value.
        also: names of the ops that were fused into the op.
        call: number of the compiled body that contains the op; -1: none.
        layer: whether the op is in the body of a `call` that is not compiled.
        inner: values that the compiled body both writes and reads.
        pointwise: element count, inputs and FLOP of an elementwise op, for fusion; None for other ops.
        sent: device that can receive the op with `recv`; "" unless the op is a `send`.
        pool: index of the pool of workers that runs the op when its inputs are ready; -1: the op is in its queue.
        join: with a pool, label of a join of the op with earlier ones.
    """

    name: str
    label: int
    dispatch: int
    insert: int
    back: int
    queue: int
    cost: int = -1
    time: int = 0
    pieces: int = 1
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    block: bool = False
    device: str = ""
    memory: str = ""
    sizes: tuple[tuple[str, int], ...] = ()
    also: tuple[str, ...] = ()
    call: int = -1
    layer: bool = False
    inner: frozenset[str] = frozenset()
    pointwise: Pointwise | None = None
    sent: str = ""
    pool: int = -1
    join: int = -1

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which a program can wait for the op."""
        return (*self.also, self.name)


@dataclass(frozen=True, slots=True)
class Issue:
    """An op that each rank issues."""

    ops: tuple[PlacedOp, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """A value that each rank copies to its thread and waits for; an op without a queue copies nothing."""

    ops: tuple[PlacedOp, ...]


@dataclass(frozen=True, slots=True)
class CallStatement:
    """A call of a compiled body, whose ops are the following statements; the first call compiles the body.

    Args:
        labels: labels of compiling, of calling, and of the nodes of a graph, per rank.
        nodes: number of ops of a body that is started as a graph, whose launch takes `issue` for each; 0: no graph.
    """

    number: int
    labels: tuple[tuple[int, int, int], ...]
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class WaitStatement:
    """A wait of each rank for the latest op or value of these names, or, without names, for all ops that it issued.

    Args:
        back: wait for the op of this many iterations ago, in the innermost repeat around the op.
        labels: one label per rank.
    """

    names: tuple[str, ...]
    back: int
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier at which each program waits for the earlier ops of all programs that name it.

    Args:
        labels: labels of the arrival and the release, then one label per rank.
    """

    name: str
    labels: tuple[int, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Receive:
    """A wait of each rank for the earliest send to its device that it has not yet received.

    Args:
        senders: sending rank, per receiving rank.
        devices: device that receives, per rank.
        labels: one label per rank.
    """

    senders: tuple[int, ...]
    devices: tuple[str, ...]
    labels: tuple[int, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class CollectiveStep:
    """A step of a collective: one op; label and cost are indices into the tables of the graph.

    Args:
        after: positions of earlier steps of the same gathering.
        begins: ranks that must have arrived before the step starts.
        ends: ranks that leave the collective no earlier than the end of the step.
    """

    label: int
    cost: int
    after: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MemberSend:
    """A send from one member to another in every step of a course.

    Args:
        source, target: positions of the members.
        device: name of the sending device.
        cost: index of the cost of the send.
        first: index of the cost of a send that waits for nothing; -1: the same cost.
    """

    source: int
    target: int
    device: str
    cost: int
    first: int


@dataclass(frozen=True, slots=True)
class StepSequence:
    """A number of equal successive steps."""

    legs: tuple[MemberSend, ...]
    times: int


@dataclass(frozen=True, slots=True)
class RepeatedSends:
    """The repeated steps of a collective before they are unrolled.

    Args:
        name, kind, program: parts of the labels.
        members: ranks whose arrival each member represents.
        pieces: number of pieces per send.
    """

    name: str
    kind: str
    program: str
    members: tuple[tuple[int, ...], ...]
    courses: tuple[StepSequence, ...]
    pieces: int

    @property
    def count(self) -> int:
        """Number of sends."""
        return self.pieces * sum(len(course.legs) * course.times for course in self.courses)

    def labelled(self, builder: GraphBuilder, device: str, program: str) -> Callable[[int], int]:
        """Return a function from the number of a step to the label of a device's send."""
        return lambda number: builder.label(f"{self.name}: step {number}", self.kind, device, program)


@dataclass(frozen=True, slots=True)
class RankMeeting:
    """Ranks that meet in a collective, with its steps, or with sends that are not yet unrolled."""

    ranks: tuple[int, ...]
    steps: tuple[CollectiveStep, ...]
    sends: RepeatedSends | None = None

    @property
    def size(self) -> int:
        """Number of ops."""
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class CollectiveStatement:
    """A collective: each rank arrives in its queue, the steps of its gathering run, and a rank leaves when its steps have ended.

    Args:
        ops: op that each rank issues; its label denotes the end of the rank's part.
        arrivals: label of each rank's arrival.
        gatherings: groups of ranks that meet.
        overlaps: name of an earlier op in pieces; bucket i starts after piece i.
        buckets: number of parts into which the bytes are divided; each part passes through all steps.
    """

    ops: tuple[PlacedOp, ...]
    arrivals: tuple[int, ...]
    gatherings: tuple[RankMeeting, ...]
    overlaps: str = ""
    buckets: int = 1
    place: Place = NOWHERE


@dataclass(frozen=True)
class Repeat:
    """A loop: a body and its number of iterations."""

    times: int
    body: tuple[Statement, ...]
    place: Place = NOWHERE

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all ops in the body."""
        issues = (statement for statement in walk(self.body) if isinstance(statement, Issue | Fetch | CollectiveStatement))
        return frozenset(name for issue in issues for op in issue.ops for name in op.names)

    @cached_property
    def reach(self) -> int:
        """Largest `back` (iterations) of a wait for an op of this repeat."""
        return _reach(self.body, self.names)

    @cached_property
    def size(self) -> int:
        """Number of ops of one iteration, with inner repeats unrolled."""
        return size_of(self.body)

    @cached_property
    def barriers(self) -> frozenset[str]:
        """Names of all barriers in the body."""
        return frozenset(statement.name for statement in walk(self.body) if isinstance(statement, Barrier))


Statement = Issue | Fetch | CollectiveStatement | CallStatement | WaitStatement | Barrier | Receive | Repeat


def walk(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield all statements in depth-first order: the statements of a repeat follow the repeat."""
    for statement in body:
        yield statement
        if isinstance(statement, Repeat):
            yield from walk(statement.body)


def size_of(body: Sequence[Statement]) -> int:
    """Return the number of ops of the statements, with repeats unrolled; a wait counts as one op per rank."""
    total = 0
    for statement in body:
        match statement:
            case Repeat():
                total += statement.times * statement.size
            case Issue(ops=ops) | Fetch(ops=ops):
                total += sum(op.pieces for op in ops)
            case CollectiveStatement(ops=ops, gatherings=gatherings, buckets=buckets):
                total += buckets * (2 * len(ops) + sum(gathering.size for gathering in gatherings))  # integers
            case CallStatement(labels=labels, nodes=nodes):
                total += len(labels) * (2 if nodes else 1)  # integers
            case WaitStatement(labels=labels) | Barrier(labels=labels) | Receive(labels=labels):
                total += len(labels)
    return total


def _reach(body: Sequence[Statement], names: frozenset[str]) -> int:
    """The largest `back` of a wait whose op is in this repeat but in no inner repeat."""
    reach = 0
    for statement in body:
        if isinstance(statement, WaitStatement) and any(name in names for name in statement.names):
            reach = max(reach, statement.back)
        elif isinstance(statement, Repeat):
            reach = max(reach, _reach(statement.body, names - statement.names))
    return reach
