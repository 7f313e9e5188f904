"""Common base of all collectives.

Under `each`, the calls of all programs form one collective. Each rank enters it in the queue `comm` of its device, the transfers
start when the last rank has arrived, and each rank leaves when its own transfers have ended.

With `steps: steady` (the default), a collective is one op per phase of its algorithm, which uses every link at once for the bytes
that the algorithm sends over it. With `steps: explicit`, every send is an op of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from hwsim.demand import Cost
from hwsim.machine import Machine, UnknownName
from hwsim.machine.libraries.operations import CannotCollect, Operation
from hwsim.ops.op import CannotPlace, LoweredOp, Op, Scope
from hwsim.records import dataclass
from hwsim.spec import NOWHERE, Mistakes, Tree, decode, did_you_mean, field
from hwsim.spec.numbers import Doubts
from hwsim.units import Bytes

if TYPE_CHECKING:  # imported when the first collective is lowered: most runs have none
    from hwsim.communication import Algorithm
    from hwsim.communication.flows import Flows
    from hwsim.communication.sends import RepeatedStep

AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class CollectivePart:
    """An op of a collective.

    Args:
        name: name of the op in the results.
        device: device under which the results show the op.
        cost: demand of the op.
        after: indices of the parts that must end before it.
        begins: members that must have arrived before it starts.
        ends: members that leave no earlier than its end.
    """

    name: str
    device: str
    cost: Cost
    after: tuple[int, ...]
    begins: tuple[str, ...]
    ends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CollectiveCourses:
    """A collective as repeating steps.

    Args:
        name: name of the collective in the results.
        courses: sequences of equal steps, one after another.
        pieces: number of pieces of each send.
    """

    name: str
    courses: tuple[RepeatedStep, ...]
    pieces: int

    @property
    def sends(self) -> int:
        """Number of sends."""
        return self.pieces * sum(len(course.legs) * course.times for course in self.courses)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeOp(Op):
    """A base of all collectives, with their common keys."""

    kind: ClassVar[str]
    doubts_of: ClassVar[Doubts] = ""
    does: ClassVar[Operation]

    among: tuple[str, ...] = field("members: devices, or one of the workload's `groups`", one_or_many=True, example="gpu*")
    bytes: Bytes = field("message size as in nccl-tests: the whole array of one rank", example="160 MB")
    algorithm: Tree | None = field(
        "auto, the name of an algorithm, or a mapping with `kind:` and its keys (default: auto if the machine states its library "
        "in `collectives`; else pairwise for alltoall, direct for gather and scatter, the rings that the links allow among GPUs, "
        "and one ring among other devices)",
        default=None,
        example="{kind: ring, both: true}",
    )
    overlaps: str = field(
        "earlier op with `pieces`; as many parts of the message are sent, each once its piece has ended", default=""
    )
    steps: Literal["steady", "explicit"] = field(
        "simulation of the algorithm: one op per phase (steady), or one op per send (explicit)", default="steady"
    )
    chunks: int = field("number of pieces of each send, with `steps: explicit`", default=1, minimum=1)
    skew: tuple[float, ...] = field("relative sizes of the ranks' parts (default: equal)", default=(), minimum=0)

    @property
    def operation(self) -> Operation:
        """Collective operation."""
        return self.does

    @property
    def weights(self) -> tuple[float, ...]:
        """Relative sizes of the parts of the ranks or pairs of ranks; empty if they are equal."""
        return self.skew

    def lower(self, scope: Scope) -> LoweredOp:
        """Return the op that each program issues: an entry in the queue `comm` of its device, which waits for the other ranks."""
        return LoweredOp(scope.own or self._issuer(scope), self.queue or "comm", None)

    def _issuer(self, scope: Scope) -> str:
        """Return the issuing device of a program without $self: the first member, or the host if `among` names a group."""
        if not self.among:
            raise CannotPlace("`among` is empty: expected at least one device", "among: gpu*")
        try:
            return scope.machine.select(self.among, scope.node)[0]
        except UnknownName:
            return scope.host

    def ordered(self, members: Sequence[str]) -> Sequence[str]:
        """Return the members in rank order."""
        return members

    def parts(
        self,
        machine: Machine,
        members: Sequence[str],
        pieces: int,
        mistakes: Mistakes,
        flows_by_key: dict[Hashable, Flows] | None = None,
    ) -> tuple[CollectivePart, ...]:
        """Return the ops of one of `pieces` equal parts of the bytes.

        Args:
            flows_by_key: cache of the flows that were computed on this machine.

        Raises:
            CannotPlace: the algorithm does not support the operation, or not among these devices.
            NoRoute, UnknownName: the machine lacks a route or a device.
        """
        from hwsim.communication import timing

        members = self.ordered(members)
        tree = self.algorithm or Tree(timing.default_algorithm(machine, self.operation, members))
        algorithm = None if tree.value == AUTO else read_algorithm(tree, mistakes)
        if algorithm is None and tree.value != AUTO:
            return ()
        name, size = self.name or self.kind, self.bytes / pieces
        try:
            if self.steps == "steady":
                return self._steady(machine, algorithm, members, name, size, {} if flows_by_key is None else flows_by_key)
            return self._explicit(machine, algorithm, members, name, size)
        except (CannotCollect, UnknownName) as error:
            if self.algorithm is None or tree.place == NOWHERE:
                raise CannotPlace(error.message, error.hint) from error
            mistakes.add(tree.place, error.message, error.hint)
            return ()

    def courses(self, machine: Machine, members: Sequence[str], pieces: int, mistakes: Mistakes) -> CollectiveCourses | None:
        """Return the sends of `steps: explicit` if the steps repeat, else None (then see `parts`).

        Raises the errors of `parts`.
        """
        from hwsim.communication import Task, timing

        if self.steps != "explicit" or self.weights or isinstance(self, RootedOp):  # rooted collectives fill and drain a pipeline
            return None
        tree = self.algorithm or Tree(timing.default_algorithm(machine, self.operation, members))
        algorithm = None if tree.value == AUTO else read_algorithm(tree, mistakes)
        if algorithm is None and tree.value != AUTO:
            return None
        try:
            steps = timing.courses_of(Task(machine, self.operation, members, self.bytes / pieces), algorithm, self.chunks)
        except CannotCollect:
            return None  # reported by `parts`
        return None if steps is None else CollectiveCourses(self.name or self.kind, steps, self.chunks)

    def _steady(
        self,
        machine: Machine,
        algorithm: Algorithm | None,
        members: Sequence[str],
        name: str,
        size: float,
        flows_by_key: dict[Hashable, Flows],
    ) -> tuple[CollectivePart, ...]:
        from hwsim.communication import link_flows, timing

        ranks = tuple(members)
        key = algorithm, self.operation, ranks, size, self.weights
        flows = flows_by_key.get(key)
        if flows is None:
            flows = timing.timed(machine, algorithm, self.operation, members, size, weights=self.weights, columns=True)
            flows_by_key[key] = flows
        parts: list[CollectivePart] = []
        after: tuple[int, ...] = ()
        kind_of = link_flows.link_kinds(machine)
        for index, phase in enumerate(flows.phases, 1):
            called = name if len(flows.phases) == 1 else f"{name}: {phase.name}"
            begins, ends = () if after else ranks, ranks if index == len(flows.phases) else ()
            together = link_flows.flows_of(machine, phase.cost, kind_of)
            for flow in together:
                suffix = f" over {flow.over}" if flow.over else ""
                parts.append(CollectivePart(f"{called}{suffix}", members[0], flow.cost, after, begins, ends))
            after = tuple(range(len(parts) - len(together), len(parts)))
        return tuple(parts)

    def _explicit(
        self, machine: Machine, algorithm: Algorithm | None, members: Sequence[str], name: str, size: float
    ) -> tuple[CollectivePart, ...]:
        from hwsim.communication import Task, timing

        ranks, task = frozenset(members), Task(machine, self.operation, members, size, self.weights)
        parts = []
        for send in timing.collective_sends(task, algorithm, self.chunks):
            ends = tuple(rank for rank in (send.source, send.target) if rank in ranks)
            parts.append(CollectivePart(f"{name}: step {send.step}", send.source, send.cost, send.after, ends, ends))
        return tuple(parts)


def read_algorithm(tree: Tree, mistakes: Mistakes) -> Algorithm | None:
    """Return the algorithm of a name or of a mapping with `kind`; add mistakes and return None if there is none."""
    from hwsim import communication

    if isinstance(tree.value, str):
        algorithm = communication.ALGORITHMS.get(tree.value)
        if algorithm is None:
            presets = communication.KINDS[tree.value].presets if tree.value in communication.KINDS else None
            like = f"known: {', '.join(sorted(presets))}, {{kind: {tree.value}}}" if presets else None
            hint = like or did_you_mean(tree.value, (AUTO, *communication.ALGORITHMS))
            mistakes.add(tree.place, f"unknown algorithm '{tree.value}'", hint)
        return algorithm
    kind = tree.text("kind") if tree.is_mapping else None
    if kind is None:
        mistakes.add(tree.place, "expected an algorithm: a name, or a mapping with `kind`", "ring, or {kind: ring, both: true}")
        return None
    if kind not in communication.KINDS:
        mistakes.add(tree.place, f"unknown kind of algorithm '{kind}'", did_you_mean(kind, communication.KINDS))
        return None
    cls: type[Algorithm] = communication.KINDS[kind]
    algorithm = decode(tree, cls, mistakes, ignore=("kind",))
    problems = [] if algorithm is None else list(algorithm.problems())
    for key, message, hint in problems:
        mistakes.add(tree.key_place(key), message, hint)
    return None if problems else algorithm


@dataclass(frozen=True, slots=True, kw_only=True)
class RootedOp(ExchangeOp):
    """A base of collectives with a root: the device that sends the data or receives the result."""

    root: str = field("device that sends the data or receives the result (default: the first of `among`)", default="")

    def ordered(self, members: Sequence[str]) -> Sequence[str]:
        return rooted(members, self.root)


def rooted(members: Sequence[str], root: str) -> tuple[str, ...]:
    """Return the members with the root first.

    >>> rooted(("gpu0", "gpu1", "gpu2"), "gpu1")
    ('gpu1', 'gpu0', 'gpu2')
    >>> rooted(("node1.gpu0", "node1.gpu1"), "gpu1")
    ('node1.gpu1', 'node1.gpu0')

    Raises:
        CannotPlace: the root is not a member, or is ambiguous.
    """
    if not root:
        return tuple(members)
    named = [member for member in members if member == root or member.endswith(f".{root}")]
    if len(named) != 1:
        problem = "does not take part" if not named else f"is ambiguous: it matches {len(named)} members"
        raise CannotPlace(f"the root '{root}' {problem}", f"choose from {', '.join(members[:8])}")
    return (named[0], *(member for member in members if member != named[0]))
