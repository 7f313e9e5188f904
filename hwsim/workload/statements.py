"""A program once every name is known: what its threads do, ready to be written out as ops.

One tree of statements serves all the programs of an `each`: an `Issue` has one op per rank.
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
    """An op of one program, with indices into the tables of the graph.

    time in fs.  label, dispatch, insert, back: labels of the op, of issuing it, of its insertion into the queue
    and of the return from waiting for it.
    sizes: bytes of the buffers it makes in `memory`, by value.  also: names of the ops that were fused into it.
    call: number of the compiled body it stands in, -1 outside.  layer: it stands in a body that is not compiled.
    inner: values that its compiled body makes and uses up.
    pointwise: what fusing needs to know.
    sent: device that a `recv` of it is of; "" for ops that are no `send`.
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

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which a program can ask for it."""
        return (*self.also, self.name)


@dataclass(frozen=True, slots=True)
class Issue:
    """Each rank issues its op."""

    ops: tuple[PlacedOp, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Each rank brings a value to its thread and waits for it. An op without a queue copies nothing."""

    ops: tuple[PlacedOp, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Each rank calls a compiled body, whose ops are the statements that follow; the first time, it is compiled.

    labels: per rank, of compiling and of calling.
    """

    number: int
    labels: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Each rank waits: for everything it issued (no names), or for the latest op or value of these names.

    back: iterations ago, of the innermost repeat that holds an op of that name.
    labels: one per rank.
    """

    names: tuple[str, ...]
    back: int
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Every program that names it waits for the earlier ops of all of them. labels: arrival, release, then one per rank."""

    name: str
    labels: tuple[int, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Receive:
    """Each rank waits for the earliest send to its device that it has not received yet.

    For each rank: the rank that sends, the device it sends to, and a label.
    """

    senders: tuple[int, ...]
    devices: tuple[str, ...]
    labels: tuple[int, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Step:
    """One op of a collective, with indices into the tables of the graph.

    after: positions of earlier steps of the same gathering.  begins: members (ranks of the programs) that must
    have arrived.  ends: members that leave no earlier than it ends.
    """

    label: int
    cost: int
    after: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Leg:
    """A send from one member to another in every step of a course; members by their place, costs by index (first: -1 if none)."""

    source: int
    target: int
    device: str
    cost: int
    first: int


@dataclass(frozen=True, slots=True)
class Course:
    """Equal steps, one after another."""

    legs: tuple[Leg, ...]
    times: int


@dataclass(frozen=True, slots=True)
class Sends:
    """Steps that repeat, not yet written out.

    members: for whose arrivals each member stands (ranks).  name, kind, program: of the labels.  pieces: of every send.
    """

    name: str
    kind: str
    program: str
    members: tuple[tuple[int, ...], ...]
    courses: tuple[Course, ...]
    pieces: int

    @property
    def count(self) -> int:
        """Number of sends."""
        return self.pieces * sum(len(course.legs) * course.times for course in self.courses)

    def labelled(self, builder: GraphBuilder, device: str, program: str) -> Callable[[int], int]:
        """The label of a send of a device, by the number of its step."""
        return lambda number: builder.label(f"{self.name}: step {number}", self.kind, device, program)


@dataclass(frozen=True, slots=True)
class Gathering:
    """Ranks that meet, and what they do together once they have come: steps, or sends that are not written out yet."""

    ranks: tuple[int, ...]
    steps: tuple[Step, ...]
    sends: Sends | None = None

    @property
    def size(self) -> int:
        """Number of ops."""
        return len(self.steps)


@dataclass(frozen=True, slots=True)
class Collective:
    """Each rank arrives in its queue, the steps of its gathering run, and a rank leaves when its part is done.

    Args:
        ops: the op that each rank issues, labelled as the rank's end.
        arrivals: label of each rank's arrival.
        overlaps: name of an earlier op in pieces; bucket i starts after piece i.
        buckets: number of parts of the bytes; every part does all the steps.
    """

    ops: tuple[PlacedOp, ...]
    arrivals: tuple[int, ...]
    gatherings: tuple[Gathering, ...]
    overlaps: str = ""
    buckets: int = 1
    place: Place = NOWHERE


@dataclass(frozen=True)
class Repeat:
    """A body and how often it runs."""

    times: int
    body: tuple[Statement, ...]
    place: Place = NOWHERE

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all ops inside."""
        issues = (each for each in walk(self.body) if isinstance(each, Issue | Fetch | Collective))
        return frozenset(name for issue in issues for op in issue.ops for name in op.names)

    @cached_property
    def reach(self) -> int:
        """Iterations of this repeat that a wait inside looks back."""
        return _reach(self.body, self.names)

    @cached_property
    def size(self) -> int:
        """Ops of one iteration, inner repeats written out."""
        return size_of(self.body)

    @cached_property
    def barriers(self) -> frozenset[str]:
        """Names of all barriers inside."""
        return frozenset(each.name for each in walk(self.body) if isinstance(each, Barrier))


Statement = Issue | Fetch | Collective | Call | Wait | Barrier | Receive | Repeat


def walk(body: Sequence[Statement]) -> Iterator[Statement]:
    """All statements, those inside repeats after the repeat."""
    for each in body:
        yield each
        if isinstance(each, Repeat):
            yield from walk(each.body)


def size_of(body: Sequence[Statement]) -> int:
    """Ops that the statements come to, repeats written out (waits count as one op a rank)."""
    total = 0
    for each in body:
        match each:
            case Repeat():
                total += each.times * each.size
            case Issue(ops=ops) | Fetch(ops=ops):
                total += sum(op.pieces for op in ops)
            case Collective(ops=ops, gatherings=gatherings, buckets=buckets):
                total += buckets * (2 * len(ops) + sum(gathering.size for gathering in gatherings))  # integers
            case Wait(labels=labels) | Barrier(labels=labels) | Receive(labels=labels) | Call(labels=labels):
                total += len(labels)
    return total


def _reach(body: Sequence[Statement], names: frozenset[str]) -> int:
    """The largest `back` of a wait whose op stands in this repeat and in none further in."""
    reach = 0
    for statement in body:
        if isinstance(statement, Wait) and any(name in names for name in statement.names):
            reach = max(reach, statement.back)
        elif isinstance(statement, Repeat):
            reach = max(reach, _reach(statement.body, names - statement.names))
    return reach
