"""A training with every number known, whatever the architecture of its model: what the writer of its ops is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from hwsim.families.training.workload.kinds import Kinds
from hwsim.families.training.workload.layout import Layout
from hwsim.families.training.workload.represented import Represented
from hwsim.families.training.workload.schedule import Pass, passes
from hwsim.families.training.workload.schema import Detail
from hwsim.machine import Machine
from hwsim.models.exchanges import Exchanges
from hwsim.models.framework import Software
from hwsim.models.plan import Schedule
from hwsim.models.stages import Stage
from hwsim.records import dataclass
from hwsim.spec import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Kernels that a thread of the host issues, and gradients in buckets as the last backward pass completes them.

    Args:
        size: bytes of a bucket; bytes: size of the gradient of one parameter, as it is sent.
        overlap: buckets are sent while the backward pass goes on.
        by: the replicas themselves or servers; servers: the devices that keep the parameters.
        algorithm: the all-reduce's, as the file names it.
        updated: bytes of memory that the update of a parameter moves.
        software: the framework that issues the kernels; one_thread: by one thread for all GPUs of a host.
        numbers: numbers of an input example.
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
class Pieces:
    """Gradients, and sharded weights, that are exchanged in pieces of a pass, each with a hidden and an exposed part.

    Args:
        counts: pieces of a pass, by stage.
        shards: replicas that share a set of weights.
        waiting: seconds of the host after the optimizer.
        detail: an op for every stretch between two exchanges (layer) or for a pass (stage); auto: by their number.
        layers: blocks of the longest stage.
        bucket: bytes of weights that are gathered at once; None: all of a piece.
        disturbed: capacities beside its GPUs that events change, and GPUs that other jobs use too.
        routed: tokens go to experts.
    """

    counts: Sequence[int]
    shards: int
    waiting: float
    detail: Detail
    layers: int
    bucket: float | None = None
    disturbed: frozenset[str] = frozenset()
    routed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes that each GPU of a stage holds.

    Args:
        always: bytes by name, from the first op on.
        kept: activations, from the forward pass of a micro-batch through a virtual stage to its backward pass.
        recomputed: activations of a layer while backward recomputes it.
    """

    always: Mapping[str, float]
    kept: float
    recomputed: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A training with every number known.

    Args:
        stages, held: by stage, alike in every replica.
        batch: examples of a replica in a step; microbatches: parts of them that follow each other.
        exchange: the grain of the ops, and how gradients are exchanged.
        network: part of the NICs' rate that the framework's collectives reach.
        dtype: number format by which the peak of the GPUs counts.
        text: the plan in a line.
        count, unit: tokens or images of a step; flop: FLOP of the model for them; total: their count in all steps of the real
            training, 0 if not given.
        state: bytes of a checkpoint: what the weights and the optimizer need to go on.
    """

    layout: Layout
    kinds: Kinds
    stages: Sequence[Stage]
    held: Sequence[Held]
    batch: int
    microbatches: int
    schedule: Schedule
    steps: int
    exchange: Buckets | Pieces
    network: float
    dtype: str
    text: str
    count: float
    unit: str
    flop: float
    total: float
    state: float = 0.0

    @property
    def lines(self) -> list[tuple[Pass, ...]]:
        """The passes of each stage in their order."""
        layout, schedule = self.layout, self.schedule
        return [passes(schedule, stage, layout.pp, self.microbatches, layout.chunks) for stage in range(layout.pp)]


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    """A plan on a machine: the costs of its exchanges there, and the replicas that represent all."""

    plan: Plan
    machine: Machine
    exchanges: Exchanges
    represented: Represented
