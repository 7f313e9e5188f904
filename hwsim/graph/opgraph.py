"""The op graph: everything a run does, as blocks of columns, ready to be replayed.

A block is a body of ops and how often it runs. Edges inside a block may reach back over iterations (`lag`), so that a million
repetitions are one body and a number. Ops are numbered block by block, iteration by iteration, position by position; the number
decides ties.

A queue (a stream, a host thread) is program order: its ops run one after another, in number order. It exists only here;
flattening turns it, and its depth, into edges. A pool is arbitration: `servers` of them, given by readiness, then op number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Capacity, Cost
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.failures import Job, Saves

Ints = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]

LAST, EVERY, PAIRED = 0, 1, 2  # how a tie connects two blocks


@dataclass(frozen=True, slots=True)
class Label:
    """Name of an op for readers: several ops (one per iteration) share one."""

    name: str
    kind: str
    device: str  # "" for a join
    program: str = "main"


@dataclass(frozen=True, slots=True)
class Queue:
    """In-order list of ops. At most `depth` of them (None: any number) are inserted but not yet ended.

    kind: of a training, what its ops do: compute, or exchange among replicas (dp, scatter, comm).
    """

    name: str
    device: str
    depth: int | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """Servers, first come first served by readiness, ties by op number."""

    name: str
    servers: int


@dataclass(frozen=True, slots=True)
class Block:
    """A body of n ops, run `times` times. Every column has one entry per op of the body.

    label: index into `OpGraph.labels`. cost: index into `OpGraph.costs`, -1 for none.
    size: the op draws `size` times what the cost says (amounts, floor and share; not latency).
    time: own fixed time in fs before the cost's latency (host time, a recorded duration).
    queue, take, give: indices of queue and pools, -1 for none. A pool is taken at an op's
    start and given back at an op's end, not necessarily the same op's.
    insert: position of the op of the same iteration that inserts this one into its queue, -1
    if nothing does; a queue's depth bounds the inserted ops.
    edges: rows (from, to, lag): `to` starts after `from` of `lag` iterations before has ended.
    turns: iterations of a program's loop that the body is; turn: number of the iteration of each op when the body runs for the
    first time, None: 0 for every op.
    An op with no queue, pool, cost and time is a join: it ends when its last predecessor ends.
    """

    label: Ints
    cost: Ints
    size: Floats
    time: Ints
    queue: Ints
    insert: Ints
    take: Ints
    give: Ints
    edges: Ints
    times: int = 1
    turns: int = 1
    turn: Ints | None = None

    def __len__(self) -> int:
        return len(self.label)

    @property
    def iteration(self) -> Ints:
        """Per op of all runs of the body, the number of its iteration."""
        if self.times == 1 and self.turn is None:
            return np.broadcast_to(np.int32(0), self.label.shape)
        first = np.zeros(len(self), np.int64) if self.turn is None else self.turn
        return (np.arange(self.times, dtype=np.int64)[:, None] * self.turns + first).ravel().astype(np.int32)

    def turns_in(self, times: int) -> int:
        """Iterations of its loop until the body has run `times` times, earlier ones included."""
        before = 0 if self.turn is None else int(self.turn.min())
        return before + times * self.turns

    @property
    def total(self) -> int:
        return len(self.label) * self.times


class Change(NamedTuple):
    """From `at` (fs) on, only this fraction of a capacity's rate is there."""

    at: int
    capacity: str
    fraction: float


class LazyChanges(Sequence[Change]):
    """Changes in order of time that are drawn as they are asked for.  capacities: all that change."""

    capacities: frozenset[str]


def capacities_of(changes: Sequence[Change]) -> frozenset[str]:
    """The capacities that change."""
    return changes.capacities if isinstance(changes, LazyChanges) else frozenset(change.capacity for change in changes)


class Speaks(NamedTuple):
    """`teams` stage groups of GPUs, which exchange on the queues of `leader`."""

    leader: str
    teams: int


@dataclass(frozen=True, slots=True)
class Trained:
    """A training among the ops of a graph: the work of its steps.

    Args:
        program: program of its ops; ops of kind "step" end its steps.
        count, unit: tokens, images, ... of a step; flop: FLOP of the model for them; peak: FLOP/s of all its devices.
        gpus: number of GPUs; devices: one for each pipeline stage, whose queues are read.
        speaks: stage groups that each of `devices` represents if the GPUs are of several kinds; kinds: the GPUs of each kind.
        inside: (cost, part of its time) of ops that wait for collectives inside.
        whole: `count` of the entire training; 0 if not given.
        replicas: data-parallel replicas that others represent, or themselves; 1 if each has its own ops.
        classes: those that have ops, each with the number that it represents; () if each has its own.
        saves: its checkpoints; job: what fails of it, and how often.
        errors: what such steps miss by, a regime of `errors.yaml`; "" if no such steps were measured.
    """

    program: str
    plan: str
    steps: int
    count: float
    unit: str
    flop: float
    peak: float
    gpus: int
    devices: tuple[str, ...]
    inside: tuple[tuple[int, float], ...] = ()
    whole: float = 0.0
    start: int = 0  # fs
    replicas: int = 1
    classes: tuple[tuple[int, int], ...] = ()
    speaks: tuple[Speaks, ...] = ()
    kinds: tuple[tuple[str, ...], ...] = ()
    errors: str = ""
    saves: Saves | None = None
    job: Job | None = None

    def renumbered(self, first: int) -> Trained:
        """The same among costs that are `first` behind."""
        return replace(self, inside=tuple((cost + first, part) for cost, part in self.inside))


Freeing = Literal["scope", "last-use", "stream"]


class Mark(NamedTuple):
    """An op as a buffer sees it: of `lag` iterations before the buffer's own, or of the last iteration of another block."""

    block: int
    op: int
    lag: int = 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of `bytes` in a device's memory: one per iteration `first` ... `first + times - 1` of its block.

    It is taken when `made` starts. It is given back (see `results.memory`) at the latest end of `users`, or when
    `renamed` starts, as the program's name then means another buffer; without `renamed` the name keeps it to the end.
    block -1: it belongs to no loop, and all marks are of other blocks. op: what the op that makes it is called.
    spread: by how much the device may then hold more or less, where the bytes are a model's estimate.
    """

    value: str
    op: str
    device: str
    bytes: int
    free: Freeing
    made: Mark
    users: tuple[Mark, ...]
    renamed: Mark | None = None
    block: int = -1
    first: int = 0
    times: int = 1
    spread: float = 0.0

    def renumbered(self, numbers: Sequence[int]) -> Buffer:
        """The same with other numbers for the blocks."""
        made, *users = (mark._replace(block=numbers[mark.block]) for mark in (self.made, *self.users))
        renamed = self.renamed and self.renamed._replace(block=numbers[self.renamed.block])
        block = -1 if self.block < 0 else numbers[self.block]
        return replace(self, made=made, users=tuple(users), renamed=renamed, block=block)


@dataclass(frozen=True, slots=True)
class Held:
    """Memory that a service, which is no op of the graph, holds on a device from `since` (fs) to `until` (None: the end)."""

    device: str
    value: str
    by: str
    bytes: int
    since: int = 0
    until: int | None = None


@dataclass(frozen=True, slots=True)
class LineStage:
    """A stage of a line: a batch enters it as `first` begins and leaves it as `last` ends; `ops` keep `device` busy.

    at_once: batches in it at the same time. ahead: batches it may have ready for the next stage.
    """

    name: str
    device: str
    first: Label
    last: Label
    ops: tuple[Label, ...]
    at_once: int = 1
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """Stages that batches go through one after another, as a program's pipeline; no effect on time.

    batch: samples in one, 0 if not given. epochs: batches in each. samples: of the data that all programs read, 0 if not given.
    """

    program: str
    stages: tuple[LineStage, ...]
    batch: int
    epochs: tuple[int, ...]
    samples: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Ranks that the ops of a folded graph represent (see `hwsim.graph.fold`).

    Args:
        programs: the names of all of them, by rank.
        of: class of each rank.
        first: rank of each class whose ops are in the graph.
        labels: number of ops that each op of a label represents.
        met: labels of ops that are an entire collective, which every rank shows as its own.
        queues: number of ops that each op of a queue represents; () for one each.
        capacities: number of capacities that each capacity of the graph represents.
        members: the names of those, of devices where they are several: the first is the one of the graph.
        unseen: views of the run show the ops of all ranks, from the graph that is not folded.
    """

    programs: tuple[str, ...]
    of: Ints
    first: Ints
    labels: Ints
    met: frozenset[int]
    capacities: Mapping[str, int]
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    queues: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    unseen: bool = False

    def classes(self) -> tuple[tuple[str, int], ...]:
        """(program, how many are alike) of each class."""
        sizes = np.bincount(self.of, minlength=len(self.first)).tolist()
        return tuple((self.programs[rank], size) for rank, size in zip(self.first.tolist(), sizes, strict=True))


class Names(NamedTuple):
    """Names that differ at another rank."""

    labels: Mapping[Label, Label]
    queues: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OpGraph:
    """Blocks in program order, the tables they index, and the edges between blocks.

    ties: rows (block, op, block, op, mode): the first op ends before the second starts. LAST:
    its last iteration before the other's first. EVERY: each of its iterations before the other's
    first. PAIRED: iteration i before iteration i (both blocks run equally often).
    buffers: what the values of known size take of the devices' memories; no effect on time.
    alike: ranks that the ops represent, if one rank of each class is in the graph. unfolded: why it has all of its many ranks.
    trainings: what the steps of `train:` are worth; no effect on time.
    unlisted: capacities of a large machine that nothing draws from and that are not among `capacities`.
    lines: pipelines among the ops, for those who ask what their last stages wait for; no effect on time.
    """

    blocks: tuple[Block, ...]
    labels: Sequence[Label]
    costs: tuple[Cost, ...] = ()
    capacities: tuple[Capacity, ...] = ()
    queues: tuple[Queue, ...] = ()
    pools: tuple[Pool, ...] = ()
    ties: Ints = field(default_factory=lambda: np.empty((0, 5), np.int64))
    buffers: tuple[Buffer, ...] = ()
    trainings: tuple[Trained, ...] = ()
    lines: tuple[Line, ...] = ()
    alike: Alike | None = None
    unfolded: str = ""
    unlisted: int = 0

    @property
    def total(self) -> int:
        return sum(block.total for block in self.blocks)

    @property
    def shown(self) -> int:
        """Number of ops that its run shows."""
        if self.alike is None or not self.alike.unseen:
            return self.total
        many = np.append(self.alike.queues, 1)
        return sum(block.times * int(many[block.queue].sum()) for block in self.blocks)  # integers
