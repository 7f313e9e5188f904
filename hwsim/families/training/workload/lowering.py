"""Lowering of a training plan: the simulated replicas, the ops of the steps, memory, and the description for results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim import ticks
from hwsim.communication import CannotCollect
from hwsim.communication.timing import over_pcie
from hwsim.demand import Cost
from hwsim.devices import CannotCompute, Gpu
from hwsim.families.training.workload.buckets import bucket_all_reduces
from hwsim.families.training.workload.by_kernel import ByKernel
from hwsim.families.training.workload.by_segment import BySegment
from hwsim.families.training.workload.identical import Marks, stage_replica_classes
from hwsim.families.training.workload.loader import Loader, LoaderWriter
from hwsim.families.training.workload.plan import BucketExchange, PieceExchange, PlacedPlan, StageMemory, TrainingPlan
from hwsim.families.training.workload.replica_classes import ReplicaClasses, unfolded_replicas
from hwsim.families.training.workload.request import TrainingRequest
from hwsim.families.training.workload.segments import replica_exchanges, used_capacities
from hwsim.families.training.workload.step_writer import StepWriter
from hwsim.families.training.workload.workers import OpWriter
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.graph.fold import CannotFold
from hwsim.graph.opgraph import Buffer, Freeing, Mark, RepresentedRanks, TrainingRecord
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.models.exchanges import CollectiveCosts
from hwsim.models.layer import exchanges
from hwsim.models.memory import SPREAD
from hwsim.spec.limits import refuse_beyond

if TYPE_CHECKING:  # few trainings write checkpoints
    from hwsim.failures import FailingJob
    from hwsim.families.training.workload.checkpoints import TrainingCheckpoints

GROUPS: Final = 32  # number of stage groups above which one replica represents identical ones
GPUS: Final = 64  # the same for GPUs with one op per kernel
OPS: Final = 10_000  # maximum number of ops of a step with `detail: auto` as `layer`


def lower(
    plan: TrainingPlan,
    asked: TrainingRequest,
    saved: TrainingCheckpoints | None = None,
    job: FailingJob | None = None,
    loader: Loader | None = None,
) -> None:
    """Append the ops of a plan to the graph; with a loader, every replica has its own, because loaders share hosts and disks."""
    machine, builder, layout = asked.machine, asked.builder, plan.layout
    fold = asked.fold if loader is None else "never"
    node = machine.node_of(layout.devices[0])
    together = [device for device in layout.devices if machine.node_of(device) == node]
    exchanging = CollectiveCosts(machine, plan.network, by_library=over_pcie(machine, together))
    kernels = isinstance(plan.exchange, BucketExchange)
    many = len(layout.devices) > GPUS if kernels else layout.dp * layout.pp > GROUPS
    unseen = fold == "unseen" and kernels and not many
    try:
        hosts = _hosts(plan, machine)
        written = unfolded_replicas(layout.dp)
        search = partial(_represented, plan, machine, hosts, exchanging, saved)
        if layout.dp > 1 and (many or unseen or fold == "always") and fold != "never":
            try:
                written = search(asked.marks)
            except CannotFold as reason:
                builder.unfolded = "" if unseen else str(reason)
        begin = builder.op("start", kind="start", program=asked.name, time=asked.start) if asked.start else None
        by_layer = isinstance(plan.exchange, PieceExchange) and _by_layer(plan, plan.exchange, layout.dp)
        if many and _detail_depends(plan):
            by_layer = written.folds or _folds(partial(search, {}))
        passes = 2 * plan.microbatches * layout.pp * (layout.dp if unseen else len(written.replicas))  # minimum of ops
        refuse_beyond("ops", passes, asked.tree.place)
        placed, ops = PlacedPlan(plan, machine, exchanging, written), OpWriter(builder, asked.name)
        batches = None if loader is None else LoaderWriter(loader, ops)
        steps_of = partial(StepWriter, hosts=hosts, by_layer=by_layer, batches=batches)
        if saved is not None:
            from hwsim.families.training.workload.checkpoints import write

            saved = saved.restricted(written.restricted)
            steps = write(placed, saved, begin, ops, steps_of)
        else:
            steps = steps_of(placed, ops)
            steps.write(begin)
        if batches is not None:
            batches.describe([layout.group(0, replica)[0] for replica in batches.loader.first_replicas])
        _hold(steps, machine, builder, shared=asked.shared)
    except (CannotCollect, CannotCompute, NoRoute, UnknownName) as error:
        asked.mistakes.add(asked.tree.place, getattr(error, "message", str(error)), getattr(error, "hint", None))
        return
    saves = None if saved is None else saved.saves
    workers = 0 if loader is None else loader.workers
    worth = replace(_worth(plan, steps, asked, written), saves=saves, job=job, workers=workers)
    builder.training(replace(worth, replicas=1, classes=()) if unseen else worth)
    if written.folds:
        many_of_queues = np.ones(builder.queue_count(), np.int64)
        for number, count in steps.grain.ops.many.items():
            many_of_queues[number] = count
        builder.stands_for(
            RepresentedRanks(
                programs=(asked.name,),
                of=np.zeros(1, np.int64),
                first=np.zeros(1, np.int64),
                labels=np.ones(builder.label_count(), np.int64),
                met=frozenset(),
                capacities=written.alike,
                members=written.members,
                queues=many_of_queues,
                unseen=unseen,
            ),
            written.hidden or (),
        )


def _hosts(plan: TrainingPlan, machine: Machine) -> list[str]:
    """Return the CPU that launches the kernels of each GPU; with one thread per node, it is the same for all its GPUs."""
    if not isinstance(plan.exchange, BucketExchange):
        return []
    is_one = plan.exchange.one_thread
    return [machine.host_of(machine.home_of(device) if is_one else device) for device in plan.layout.devices]


def _by_layer(plan: TrainingPlan, pieces: PieceExchange, replicas: int) -> bool:
    """Whether the kernels between two exchanges are one op: by `detail`, or with `auto` if a step has few ops."""
    ops = replicas * plan.layout.pp * plan.microbatches * 2 * pieces.layers * (9 if plan.layout.tp > 1 else 1)
    return pieces.detail == "layer" or (pieces.detail == "auto" and ops <= OPS)


def _detail_depends(plan: TrainingPlan) -> bool:
    """Whether the number of simulated replicas decides `detail: auto`."""
    pieces, dp = plan.exchange, plan.layout.dp
    return isinstance(pieces, PieceExchange) and _by_layer(plan, pieces, 1) != _by_layer(plan, pieces, dp)


def _folds(search: Callable[[], ReplicaClasses]) -> bool:
    """Whether replicas represent others on the machine without events.

    Plan and machine alone determine the granularity of ops; the request to fold and events do not.
    """
    try:
        return search().folds
    except CannotFold:
        return False


def _represented(
    plan: TrainingPlan,
    machine: Machine,
    hosts: Sequence[str],
    exchanging: CollectiveCosts,
    saved: TrainingCheckpoints | None,
    marks: Marks,
) -> ReplicaClasses:
    """Return the classes of identical replicas.

    Raises:
        CannotFold: most replicas differ; the message has the reason.
    """
    layout = plan.layout
    written: list[Cost] = [] if saved is None else [saved.ops.write, *([saved.ops.copy] if saved.ops.copy is not None else [])]
    if isinstance(plan.exchange, BucketExchange):
        from hwsim.families.training.workload.identical_gpus import gpu_replica_classes as of_gpus

        summed = bucket_all_reduces(exchanging, plan.exchange, tuple(layout.devices), plan.stages[0].layers)
        demands = [cost.demand for cost in (*(phase.cost for flows in summed for phase in flows.phases), *written)]
        return of_gpus(machine, plan, plan.exchange, hosts, demands, marks)

    exchanged = replica_exchanges(layout, plan.stages, plan.exchange.shards, exchanging)
    exchanged += map(exchanging.known.numbered, written)
    items = (item for layer in plan.stages[0].blocks for item in exchanges(layer.forward))
    uneven = any(item.received > 1.0 for item in items)
    return stage_replica_classes(
        exchanging.known, layout, plan.kinds, exchanged, partial(used_capacities, plan, exchanging), marks, uneven=uneven
    )


def _hold(steps: StepWriter, machine: Machine, builder: GraphBuilder, *, shared: bool) -> None:
    """Add the memory of every GPU with its own ops, or of the first of each kind in a stage; of all GPUs if `shared`.

    **Range**: without workspaces of libraries and the context of the driver (0.3 to 1 GB).
    """
    plan, grain, first = steps.plan, steps.grain, steps.replicas[0]
    if isinstance(grain, ByKernel):
        layout, classes = plan.layout, steps.represented.classes
        for replica, leader in enumerate(classes.first[classes.of].tolist()):
            for stage in range(layout.pp):
                for worker, device in zip(grain.workers[stage, leader], layout.group(stage, replica), strict=True):
                    model = machine.device(device).model
                    if worker.first is not None and isinstance(model, Gpu) and model.memory.size is not None:
                        _buffers(builder, plan.held[stage], [device], worker.first)
        return
    for stage in range(plan.layout.pp):
        leader = grain.workers[stage, first][0]
        several = shared or plan.kinds.of
        devices = [
            device for replica in steps.replicas if several or replica == first for device in plan.layout.group(stage, replica)
        ]
        if leader.first is not None:
            lives = [ops for (place, _, _), ops in grain.lives.items() if place == stage]
            devices = devices if shared else plan.kinds.first_of_each(devices)
            _buffers(builder, plan.held[stage], devices, leader.first, lives, plan.steps)


def _buffers(
    builder: GraphBuilder, held: StageMemory, devices: list[str], first: OpRef, lives: Sequence[list[OpRef]] = (), steps: int = 1
) -> None:
    """Add the memory of devices of one stage.

    Args:
        builder: builder of the graph.
        held: memory of the stage.
        devices: devices.
        first: op that allocates the memory.
        lives: ops that use the activations, for each pass through a virtual stage.
        steps: number of steps of the block.
    """

    def add(device: str, value: str, kind: str, size: float, uses: Sequence[OpRef] = ()) -> None:
        made = Mark(*(uses or [first])[0])
        users = tuple(Mark(*use) for use in uses)
        free: Freeing = "last-use" if uses else "scope"
        if size > 0:
            builder.buffer(
                Buffer(
                    value, kind, device, math.ceil(size), free, made, users, None, first.block, 0, steps if uses else 1, SPREAD
                )
            )

    for device in devices:
        for value, size in held.always.items():
            add(device, value, "training", size)
    for device in devices:
        for ops in lives:
            add(device, "activations", "forward", held.kept, (ops[0], ops[-1]))
    for device in devices:
        add(device, "recomputed layer", "backward", held.recomputed)


def _worth(plan: TrainingPlan, steps: StepWriter, asked: TrainingRequest, written: ReplicaClasses) -> TrainingRecord:
    """Return the description of the training for the results."""
    layout, grain = plan.layout, steps.grain
    workers = [
        [(worker.devices, worker.many) for replica in steps.replicas for worker in grain.workers[stage, replica]]
        for stage in range(layout.pp)
    ]
    devices, speaks = plan.kinds.observed(workers)
    return TrainingRecord(
        program=asked.name,
        plan=plan.text,
        steps=plan.steps,
        count=plan.count,
        unit=plan.unit,
        flop=plan.flop,
        peak=plan.kinds.peak(layout.devices, plan.dtype),
        gpus=len(layout.devices),
        devices=devices,
        speaks=speaks,
        kinds=plan.kinds.groups(layout.devices),
        inside=tuple(sorted(grain.segments.inside.items())) if isinstance(grain, BySegment) else (),
        whole=plan.total,
        start=ticks.femtoseconds(asked.start),
        replicas=layout.dp if written.folds else 1,
        classes=tuple([(first, written.stands_for(first)) for first in written.replicas]) if written.folds else (),
        errors=_errors(plan),
    )


def _errors(plan: TrainingPlan) -> str:
    """Return the kind of training whose measured errors apply to its steps."""
    if isinstance(plan.exchange, PieceExchange):
        return plan.exchange.errors
    return "step/eager" if plan.exchange.software.eager else "step/cnn"
