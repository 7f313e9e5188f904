"""Training plan: all numbers of a training that the writer of its ops needs, for any architecture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from hwsim.families.training.workload.kinds import GpuKinds
from hwsim.families.training.workload.layout import DeviceLayout
from hwsim.families.training.workload.replica_classes import ReplicaClasses
from hwsim.families.training.workload.schedule import MicrobatchPass, passes
from hwsim.families.training.workload.schema import Detail
from hwsim.machine import Machine
from hwsim.models.exchanges import CollectiveCosts
from hwsim.models.framework import Software
from hwsim.models.plan import Schedule
from hwsim.models.stages import PipelineStage
from hwsim.origins import UncertaintySource
from hwsim.records import dataclass
from hwsim.spec import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketExchange:
    """The gradient exchange of a CNN or MLP: in buckets, with kernels launched by host threads.

    Args:
        size: size of a bucket (B).
        bytes: size of the gradient of one parameter in a message (B).
        updated: memory traffic of the update of one parameter (B).
        software: framework that launches the kernels.
        numbers: elements of an input example.
        one_thread: whether one thread launches the kernels of all GPUs of a host.
        overlap: whether buckets are sent during the backward pass.
        by: whether replicas or servers sum the gradients.
        servers: devices that hold the parameters.
        algorithm: algorithm of the all-reduce in the file; None: chosen by the library.
    """

    size: float
    bytes: float
    updated: float
    software: Software
    numbers: int
    one_thread: bool = False
    overlap: bool = True
    by: Literal["all-reduce", "parameter-server"] = "all-reduce"
    servers: tuple[str, ...] = ()
    algorithm: Tree | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceExchange:
    """The exchange of gradients and sharded weights of a transformer: in pieces of a pass, partly overlapped.

    Args:
        counts: number of pieces of a pass, by stage.
        shards: number of replicas that share one set of weights.
        waiting: host time after the optimizer (s).
        detail: layer: one op for the kernels between two exchanges; stage: one op per pass; auto: by their number.
        layers: blocks of the longest stage.
        bucket: weights gathered at once (B); None: those of a piece.
        disturbed: capacities other than its GPUs that events change, and GPUs that other jobs use.
        errors: error regime of a step.
        unlike: errors of a training that differs from all measured ones.
        issue: host time per kernel and exchange of a pass, which overlaps them (s).
        slowed: GPUs whose speed events change, or that other jobs use.
    """

    counts: Sequence[int]
    shards: int
    waiting: float
    detail: Detail
    layers: int
    bucket: float | None = None
    disturbed: frozenset[str] = frozenset()
    errors: str = ""
    unlike: tuple[UncertaintySource, ...] = ()
    issue: float = 0.0
    slowed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    """The memory of each GPU of a stage (B).

    Args:
        always: memory in use from the first op on, by name.
        kept: activations of a microbatch, from its forward to its backward pass through a virtual stage.
        recomputed: activations of a layer during its recomputation in the backward pass.
    """

    always: Mapping[str, float]
    kept: float
    recomputed: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A training with all numbers that its ops need.

    Args:
        layout: placement on devices.
        kinds: kinds of GPUs with their costs.
        stages: layers of each stage, identical in all replicas.
        held: memory of each stage.
        batch: examples per replica and step.
        microbatches: microbatches per replica and step.
        schedule: pipeline schedule.
        steps: number of simulated steps.
        exchange: granularity of the ops, and exchange of gradients.
        network: share of the NIC bandwidth that collectives of the framework reach.
        dtype: number format of the peak in the MFU.
        text: description of the parallel plan.
        count: tokens or images per step.
        unit: unit of `count`.
        flop: FLOP of the model per step.
        total: tokens or images of the entire training; 0 if unknown.
        state: size of a checkpoint: weights and optimizer states (B).
    """

    layout: DeviceLayout
    kinds: GpuKinds
    stages: Sequence[PipelineStage]
    held: Sequence[StageMemory]
    batch: int
    microbatches: int
    schedule: Schedule
    steps: int
    exchange: BucketExchange | PieceExchange
    network: float
    dtype: str
    text: str
    count: float
    unit: str
    flop: float
    total: float
    state: float = 0.0

    @property
    def lines(self) -> list[tuple[MicrobatchPass, ...]]:
        """Passes of each stage, in order."""
        layout, schedule = self.layout, self.schedule
        return [passes(schedule, stage, layout.pp, self.microbatches, layout.chunks) for stage in range(layout.pp)]


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    """A plan on a machine, with the costs of its exchanges and the simulated replicas."""

    plan: TrainingPlan
    machine: Machine
    exchanges: CollectiveCosts
    represented: ReplicaClasses
