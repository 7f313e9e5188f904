"""The common part of all collectives: several devices exchange what each of them has.

Under `each`, one that every program issues is a single collective: each rank arrives in the queue `comm` of its device,
all go on together once the last has come, and each leaves when its part is done.

`steps: steady` (the default) makes it one op per phase, which draws from every link at once what the algorithm sends
over it; `steps: explicit` makes every send an op of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from hwsim.demand import Cost
from hwsim.machine import Machine, UnknownName
from hwsim.machine.libraries.operations import CannotCollect, Operation
from hwsim.ops.op import CannotPlace, Op, Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import NOWHERE, Mistakes, Tree, decode, did_you_mean, field
from hwsim.spec.numbers import Doubts
from hwsim.units import Bytes

if TYPE_CHECKING:  # imported when the first collective is lowered: most runs have none
    from hwsim.communication import Algorithm
    from hwsim.communication.flows import Flows
    from hwsim.communication.sends import Course

AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class Part:
    """One op of a collective: what it costs, which earlier parts it follows, which members start and leave with it.

    device: whose it is shown as.  after: places of earlier parts.  begins: members that must have arrived.
    ends: members that leave no earlier than it ends.
    """

    name: str
    device: str
    cost: Cost
    after: tuple[int, ...]
    begins: tuple[str, ...]
    ends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Courses:
    """A collective step by step: what its steps send, one course after another, each send in `pieces` pieces."""

    name: str
    courses: tuple[Course, ...]
    pieces: int

    @property
    def sends(self) -> int:
        """Number of sends."""
        return self.pieces * sum(len(course.legs) * course.times for course in self.courses)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeOp(Op):
    """Keys of every collective."""

    kind: ClassVar[str]
    doubts_of: ClassVar[Doubts] = ""
    does: ClassVar[Operation]

    among: tuple[str, ...] = field(
        "the devices that take part, or one of the workload's `groups`", one_or_many=True, example="gpu*"
    )
    bytes: Bytes = field("the whole array of one rank, as nccl-tests count it", example="160 MB")
    algorithm: Tree | None = field(
        "auto, a name of the table, or a mapping with `kind:` and its keys (default: auto where the machine says what its "
        "library takes, see `collectives`; else the rings that the links between GPUs allow, a ring among others, of an "
        "alltoall pairwise, of gather and scatter direct)",
        default=None,
        example="{kind: ring, both: true}",
    )
    overlaps: str = field(
        "an earlier op in pieces: the bytes are cut into as many, and each goes off after its piece", default=""
    )
    steps: Literal["steady", "explicit"] = field(
        "one op for each phase of the algorithm, or one for every send", default="steady"
    )
    chunks: int = field("with `steps: explicit`, pieces that each send is cut into", default=1, minimum=1)
    skew: tuple[float, ...] = field("the ranks' parts in proportion where they are not equal", default=(), minimum=0)

    @property
    def operation(self) -> Operation:
        """The operation it does."""
        return self.does

    @property
    def weights(self) -> tuple[float, ...]:
        """The ranks' parts in proportion, or of each pair of ranks; none where they are equal."""
        return self.skew

    def lower(self, scope: Scope) -> Placed:
        """The op that the program itself issues: an entry in the queue `comm` of its device, which waits for the others."""
        return Placed(scope.own or self._stands_at(scope), self.queue or "comm", None)

    def _stands_at(self, scope: Scope) -> str:
        """The device at which a program without one issues it: the first that takes part; its host if `among` names a group."""
        if not self.among:
            raise CannotPlace("a collective needs at least one rank", "such as among: gpu*")
        try:
            return scope.machine.select(self.among, scope.node)[0]
        except UnknownName:
            return scope.host

    def ordered(self, members: Sequence[str]) -> Sequence[str]:
        """The members in the order in which they count."""
        return members

    def parts(
        self,
        machine: Machine,
        members: Sequence[str],
        pieces: int,
        mistakes: Mistakes,
        flows_by_key: dict[Hashable, Flows] | None = None,
    ) -> tuple[Part, ...]:
        """The ops of the members together for one of `pieces` equal parts of the bytes.

        flows_by_key: flows on this machine so far; equal ones among equal members are looked up there.

        Raises:
            CannotPlace: the algorithm does not do that, or not among these devices.
            NoRoute, UnknownName: as the machine says.
        """
        from hwsim.communication import timing

        members = self.ordered(members)
        tree = self.algorithm or Tree(timing.usual(machine, self.operation, members))
        algorithm = None if tree.value == AUTO else chosen(tree, mistakes)
        if algorithm is None and tree.value != AUTO:
            return ()
        name, size = self.name or self.kind, self.bytes / pieces
        try:
            if self.steps == "steady":
                return self._steady(machine, algorithm, members, name, size, {} if flows_by_key is None else flows_by_key)
            return self._explicit(machine, algorithm, members, name, size)
        except CannotCollect as error:
            if self.algorithm is None or tree.place == NOWHERE:
                raise CannotPlace(error.message, error.hint) from error
            mistakes.add(tree.place, error.message, error.hint)
            return ()

    def courses(self, machine: Machine, members: Sequence[str], pieces: int, mistakes: Mistakes) -> Courses | None:
        """The sends of `steps: explicit` if the steps repeat; None if they do not (see `parts`).

        Errors as of `parts`.
        """
        from hwsim.communication import Task, timing

        if self.steps != "explicit" or self.weights or isinstance(self, RootedOp):  # those fill and empty a pipeline
            return None
        tree = self.algorithm or Tree(timing.usual(machine, self.operation, members))
        algorithm = None if tree.value == AUTO else chosen(tree, mistakes)
        if algorithm is None and tree.value != AUTO:
            return None
        try:
            steps = timing.courses_of(Task(machine, self.operation, members, self.bytes / pieces), algorithm, self.chunks)
        except CannotCollect:
            return None  # said by `parts`
        return None if steps is None else Courses(self.name or self.kind, steps, self.chunks)

    def _steady(
        self,
        machine: Machine,
        algorithm: Algorithm | None,
        members: Sequence[str],
        name: str,
        size: float,
        flows_by_key: dict[Hashable, Flows],
    ) -> tuple[Part, ...]:
        from hwsim.communication import apart, timing

        everybody = tuple(members)
        key = algorithm, self.operation, everybody, size, self.weights
        flows = flows_by_key.get(key)
        if flows is None:
            flows = timing.timed(machine, algorithm, self.operation, members, size, weights=self.weights, columns=True)
            flows_by_key[key] = flows
        parts: list[Part] = []
        after: tuple[int, ...] = ()
        for number, phase in enumerate(flows.phases, 1):
            called = name if len(flows.phases) == 1 else f"{name}: {phase.name}"
            begins, ends = () if after else everybody, everybody if number == len(flows.phases) else ()
            together = apart.flows_of(machine, phase.cost)
            for flow in together:
                over = f" over {flow.over}" if flow.over else ""
                parts.append(Part(f"{called}{over}", members[0], flow.cost, after, begins, ends))
            after = tuple(range(len(parts) - len(together), len(parts)))
        return tuple(parts)

    def _explicit(
        self, machine: Machine, algorithm: Algorithm | None, members: Sequence[str], name: str, size: float
    ) -> tuple[Part, ...]:
        from hwsim.communication import Task, timing

        ranks, task = frozenset(members), Task(machine, self.operation, members, size, self.weights)
        parts = []
        for send in timing.sent(task, algorithm, self.chunks):
            ends = tuple(each for each in (send.source, send.target) if each in ranks)
            parts.append(Part(f"{name}: step {send.step}", send.source, send.cost, send.after, ends, ends))
        return tuple(parts)


def chosen(tree: Tree, mistakes: Mistakes) -> Algorithm | None:
    """The algorithm that a name or a mapping with `kind` means; None once what is wrong is noted."""
    from hwsim import communication

    if isinstance(tree.value, str):
        algorithm = communication.ALGORITHMS.get(tree.value)
        if algorithm is None:
            mistakes.add(
                tree.place, f"there is no algorithm '{tree.value}'", did_you_mean(tree.value, (AUTO, *communication.ALGORITHMS))
            )
        return algorithm
    kind = tree.text("kind") if tree.is_mapping else None
    if kind is None:
        mistakes.add(tree.place, "an algorithm is a name, or a mapping with `kind`", "such as ring, or {kind: ring, both: true}")
        return None
    if kind not in communication.KINDS:
        mistakes.add(tree.place, f"there is no kind of algorithm '{kind}'", did_you_mean(kind, communication.KINDS))
        return None
    cls: type[Algorithm] = communication.KINDS[kind]
    algorithm = decode(tree, cls, mistakes, ignore=("kind",))
    problems = [] if algorithm is None else list(algorithm.problems())
    for key, message, hint in problems:
        mistakes.add(tree.key_place(key), message, hint)
    return None if problems else algorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class RootedOp(ExchangeOp):
    """A collective that one device begins, or ends with the result."""

    root: str = field("that device (default: the first)", default="")

    def ordered(self, members: Sequence[str]) -> Sequence[str]:
        return rooted(members, self.root)


def rooted(members: Sequence[str], root: str) -> tuple[str, ...]:
    """The members, the root first.

    >>> rooted(("gpu0", "gpu1", "gpu2"), "gpu1")
    ('gpu1', 'gpu0', 'gpu2')
    >>> rooted(("node1.gpu0", "node1.gpu1"), "gpu1")
    ('node1.gpu1', 'node1.gpu0')

    Raises:
        CannotPlace: it is none of them.
    """
    if not root:
        return tuple(members)
    named = [member for member in members if member == root or member.endswith(f".{root}")]
    if len(named) != 1:
        problem = "does not take part" if not named else "is the end of several members' names"
        raise CannotPlace(f"the root '{root}' {problem}", f"one of {', '.join(members[:8])}")
    return (named[0], *(each for each in members if each != named[0]))
