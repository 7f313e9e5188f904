"""Op graph: all ops of a run in blocks of columns, the input of the simulation engine.

A block is a body of ops with its number of iterations. Edges inside a block may have a `lag` of several iterations, so that a
million iterations are one body and a number. Ops are numbered by block, iteration and position; simultaneous ops are processed in
order of their numbers.

A queue (a stream or a host thread) runs its ops one after another in number order. Flattening converts queues and their depths to
edges. A pool is a resource with several servers; waiting ops receive servers in order of readiness, then of op number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Capacity, Cost
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.failures import CheckpointSchedule, FailingJob

Ints = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]

LAST, EVERY, PAIRED = 0, 1, 2  # modes of a tie between two blocks


class Label(NamedTuple):
    """A label of ops in results; the iterations of an op share one label."""

    name: str
    kind: str
    device: str  # "" for a join
    program: str = "main"


@dataclass(frozen=True, slots=True)
class Queue:
    """An in-order queue of ops.

    Args:
        depth: maximum number of inserted ops that have not ended; None: unlimited.
        kind: in a training, type of its ops: compute, or communication among replicas (dp, scatter, comm).
    """

    name: str
    device: str
    depth: int | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of servers: first come, first served by readiness; simultaneous ops in order of number.

    Args:
        backend: whether the servers are workers of a runtime: an op that waits has the cause of the op on one, as in a queue.
    """

    name: str
    servers: int
    backend: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A body of n ops that runs `times` times; every column has one entry per op of the body.

    An op without queue, pool, cost and time is a join: it ends when its last predecessor ends.

    Args:
        label: index in `OpGraph.labels`.
        cost: index in `OpGraph.costs`; -1: none.
        size: factor on amounts, floor and share of the cost, but not on its latency.
        time: fixed duration before the latency of the cost (fs), such as host time or a recorded duration.
        queue: index of the queue; -1: none.
        insert: position of the op of the same iteration that inserts this op into its queue; -1: none. The depth of a queue
            limits the inserted ops.
        take, give: index of the pool from which the op takes a server at its start, and to which it returns one at its end;
            -1: none. Different ops may take and return a server.
        edges: rows (from, to, lag): `to` starts after the end of `from` of `lag` iterations before.
        times: number of runs of the body.
        turns: iterations of the program's loop per run of the body.
        turn: iteration of each op in the first run of the body; None: 0 for every op.
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
        """Iteration of each op, for all runs of the body."""
        if self.times == 1 and self.turn is None:
            return np.broadcast_to(np.int32(0), self.label.shape)
        first = np.zeros(len(self), np.int64) if self.turn is None else self.turn
        return (np.arange(self.times, dtype=np.int64)[:, None] * self.turns + first).ravel().astype(np.int32)

    def turns_in(self, times: int) -> int:
        """Return the number of iterations of the loop after `times` runs of the body, including earlier iterations."""
        before = 0 if self.turn is None else int(self.turn.min())
        return before + times * self.turns

    @property
    def total(self) -> int:
        return len(self.label) * self.times


class Change(NamedTuple):
    """A change of a capacity: from `at` (fs) on, its rate is this fraction of the full rate."""

    at: int
    capacity: str
    fraction: float


class LazyChanges(Sequence[Change]):
    """A lazy sequence of changes in order of time; `capacities`: names of all that change; `stops`: whether one is ever down."""

    capacities: tuple[str, ...]
    stops: bool

    def chunks(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Yield columns of the changes: time (fs), index in `capacities`, and fraction; longer ones each time."""
        raise NotImplementedError


def capacities_of(changes: Sequence[Change]) -> frozenset[str]:
    """Return the names of the capacities that change."""
    return frozenset(changes.capacities if isinstance(changes, LazyChanges) else [change.capacity for change in changes])


class StageGroupLeader(NamedTuple):
    """A representation of `teams` stage groups of GPUs, whose communication is on the queues of `leader`."""

    leader: str
    teams: int


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """A training whose steps are ops of the graph, for results; no effect on time.

    Args:
        program: program of the ops; an op of kind "step" ends each step.
        plan: parallel plan in words.
        steps: number of steps.
        count: samples or tokens per step.
        unit: unit of `count`: tokens, images, ...
        flop: FLOP of the model per step.
        peak: peak rate of all devices (FLOP/s).
        gpus: number of GPUs.
        devices: one device per pipeline stage, whose queues are read.
        inside: (cost, share of its time) of ops that contain collectives.
        whole: `count` of the entire training; 0: unknown.
        start: start time (fs).
        replicas: number of data-parallel replicas that the ops represent; 1: each has its own ops.
        classes: (replica, number of replicas that it represents) of replicas with ops; (): each has its own.
        speaks: stage groups that each of `devices` represents, if there are several kinds of GPUs.
        kinds: GPUs of each kind.
        errors: regime in `errors.yaml` of the error of such steps; "": not measured.
        saves: checkpoints.
        job: components that fail, with their failure rates.
        workers: workers of the largest stage of its data loader, which finish batches together; 0: no loader.
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
    start: int = 0
    replicas: int = 1
    classes: tuple[tuple[int, int], ...] = ()
    speaks: tuple[StageGroupLeader, ...] = ()
    kinds: tuple[tuple[str, ...], ...] = ()
    errors: str = ""
    saves: CheckpointSchedule | None = None
    job: FailingJob | None = None
    workers: int = 0

    def renumbered(self, first: int) -> TrainingRecord:
        """Return the training with cost indices increased by `first`."""
        return replace(self, inside=tuple((cost + first, part) for cost, part in self.inside))


Freeing = Literal["scope", "last-use", "stream"]


class Mark(NamedTuple):
    """A reference from a buffer to an op, of `lag` iterations before the buffer's own or of another block's last iteration."""

    block: int
    op: int
    lag: int = 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer in a device's memory, one per iteration `first` ... `first + times - 1` of its block; no effect on time.

    Args:
        value: name of the value in the program.
        op: name of the op that writes the buffer.
        device: device in whose memory the buffer is.
        bytes: size.
        free: rule by which the buffer is freed (see `results.memory`): at the latest end of `users` or at `renamed`.
        made: op at whose start the buffer is allocated.
        users: ops that use the buffer.
        renamed: op at whose start the name refers to another buffer; None: the name refers to the buffer until the end.
        block: block of the loop; -1: no loop, and all marks are in other blocks.
        spread: uncertainty of the size (bytes), if it is an estimate of a model.
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
        """Return the buffer with other block numbers."""
        made, *users = (mark._replace(block=numbers[mark.block]) for mark in (self.made, *self.users))
        renamed = self.renamed and self.renamed._replace(block=numbers[self.renamed.block])
        block = -1 if self.block < 0 else numbers[self.block]
        return replace(self, made=made, users=tuple(users), renamed=renamed, block=block)


@dataclass(frozen=True, slots=True)
class ServiceMemory:
    """A memory allocation of a service, which is not an op of the graph.

    Args:
        device: device.
        value: name of the content.
        by: name of the service.
        bytes: size.
        since, until: start and end (fs); None: to the end of the run.
    """

    device: str
    value: str
    by: str
    bytes: int
    since: int = 0
    until: int | None = None


@dataclass(frozen=True, slots=True)
class BatchStage:
    """A stage of a pipeline of batches.

    Args:
        first: op at whose start a batch enters the stage.
        last: op at whose end a batch leaves the stage.
        ops: ops of the stage on `device`.
        at_once: maximum batches in the stage.
        ahead: maximum completed batches that wait for the next stage.
    """

    name: str
    device: str
    first: Label
    last: Label
    ops: tuple[Label, ...]
    at_once: int = 1
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class BatchPipeline:
    """A pipeline of a program: stages through which batches pass; no effect on time.

    Args:
        batch: samples per batch; 0: unknown.
        epochs: batches of each epoch.
        samples: samples of the dataset of all programs; 0: unknown.
    """

    program: str
    stages: tuple[BatchStage, ...]
    batch: int
    epochs: tuple[int, ...]
    samples: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class RepresentedRanks:
    """A set of ranks that the ops of a folded graph represent (see `hwsim.graph.fold`).

    Args:
        programs: program of each rank.
        of: class of each rank.
        first: rank of each class whose ops are in the graph.
        labels: number of ops that each op of a label represents.
        met: labels of ops that are an entire collective, which every rank shows as its own op.
        capacities: number of capacities that each capacity of the graph represents.
        members: names of the represented capacities of devices, if there are several; the first is in the graph.
        queues: number of ops that each op of a queue represents; (): one each.
        unseen: whether views show the ops of all ranks, from the graph without folding.
    """

    programs: tuple[str, ...]
    of: Ints
    first: Ints
    labels: Ints
    met: frozenset[int]
    capacities: Mapping[str, int]
    members: Mapping[str, Sequence[str]] = field(default_factory=dict)
    queues: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    unseen: bool = False

    def classes(self) -> tuple[tuple[str, int], ...]:
        """Return (program of the first rank, number of ranks) of each class."""
        sizes = np.bincount(self.of, minlength=len(self.first)).tolist()
        return tuple((self.programs[rank], size) for rank, size in zip(self.first.tolist(), sizes, strict=True))


class RankNames(NamedTuple):
    """A map from the labels and queues of the rank in the graph to those of another rank."""

    labels: Mapping[Label, Label]
    queues: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OpGraph:
    """A graph of ops: blocks in program order, their tables, and the edges between blocks.

    Args:
        ties: rows (block, op, block, op, mode): the first op ends before the second starts. LAST: its last iteration before the
            first iteration of the other. EVERY: each of its iterations before the first iteration of the other. PAIRED: iteration
            i before iteration i (both blocks run equally often). -lag: if the other block follows the first, each of its
            iterations after the iteration that is `lag` iterations earlier.
        buffers: buffers of known size; no effect on time.
        trainings: trainings whose steps are ops; no effect on time.
        lines: pipelines of batches; no effect on time.
        alike: represented ranks, if the graph is folded.
        unfolded: reason why the graph contains all of its many ranks.
        unlisted: number of unused capacities of a large machine that are not in `capacities`.
    """

    blocks: tuple[Block, ...]
    labels: Sequence[Label]
    costs: tuple[Cost, ...] = ()
    capacities: tuple[Capacity, ...] = ()
    queues: tuple[Queue, ...] = ()
    pools: tuple[Pool, ...] = ()
    ties: Ints = field(default_factory=lambda: np.empty((0, 5), np.int64))
    buffers: tuple[Buffer, ...] = ()
    trainings: tuple[TrainingRecord, ...] = ()
    lines: tuple[BatchPipeline, ...] = ()
    alike: RepresentedRanks | None = None
    unfolded: str = ""
    unlisted: int = 0

    @property
    def total(self) -> int:
        return sum(block.total for block in self.blocks)

    @property
    def shown(self) -> int:
        """Number of ops in the results."""
        if self.alike is None or not self.alike.unseen:
            return self.total
        counts = np.append(self.alike.queues, 1)
        return sum(block.times * int(counts[block.queue].sum()) for block in self.blocks)  # integers
