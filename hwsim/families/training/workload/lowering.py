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
from hwsim.families.training.workload.asked import Asked
from hwsim.families.training.workload.buckets import all_reduced
from hwsim.families.training.workload.by_kernel import ByKernel
from hwsim.families.training.workload.by_segment import BySegment
from hwsim.families.training.workload.identical import Marks, represented
from hwsim.families.training.workload.plan import Buckets, Held, Pieces, PlacedPlan, Plan
from hwsim.families.training.workload.represented import Represented, everyone
from hwsim.families.training.workload.segments import between, used
from hwsim.families.training.workload.workers import Ops
from hwsim.families.training.workload.writing import Steps
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.graph.fold import CannotFold
from hwsim.graph.opgraph import Alike, Buffer, Freeing, Mark, Trained
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.models.doubts import of_steps
from hwsim.models.exchanges import Exchanges
from hwsim.models.layer import exchanges
from hwsim.models.memory import SPREAD
from hwsim.spec.limits import refuse_beyond

if TYPE_CHECKING:  # few trainings write checkpoints
    from hwsim.failures import Job
    from hwsim.families.training.workload.saving import Saved

GROUPS: Final = 32  # number of stage groups above which one replica represents identical ones
GPUS: Final = 64  # the same for GPUs with one op per kernel
OPS: Final = 10_000  # maximum number of ops of a step with `detail: auto` as `layer`


def lower(plan: Plan, asked: Asked, saved: Saved | None = None, job: Job | None = None) -> None:
    """Append the ops of a plan to the graph."""
    machine, builder, fold, layout = asked.machine, asked.builder, asked.fold, plan.layout
    node = machine.device(layout.devices[0]).node
    together = [device for device in layout.devices if machine.device(device).node == node]
    exchanging = Exchanges(machine, plan.network, by_library=over_pcie(machine, together))
    kernels = isinstance(plan.exchange, Buckets)
    many = len(layout.devices) > GPUS if kernels else layout.dp * layout.pp > GROUPS
    unseen = fold == "unseen" and kernels and not many
    try:
        hosts = _hosts(plan, machine)
        written = everyone(layout.dp)
        search = partial(_represented, plan, machine, hosts, exchanging, saved)
        if layout.dp > 1 and (many or unseen or fold == "always") and fold != "never":
            try:
                written = search(asked.marks)
            except CannotFold as reason:
                builder.unfolded = "" if unseen else str(reason)
        begin = builder.op("start", kind="start", program=asked.name, time=asked.start) if asked.start else None
        by_layer = isinstance(plan.exchange, Pieces) and _by_layer(plan, plan.exchange, layout.dp)
        if many and _detail_depends(plan):
            by_layer = written.folds or _folds(partial(search, {}))
        passes = 2 * plan.microbatches * layout.pp * (layout.dp if unseen else len(written.replicas))  # minimum of ops
        refuse_beyond("ops", passes, asked.tree.place)
        placed, ops = PlacedPlan(plan, machine, exchanging, written), Ops(builder, asked.name)
        steps_of = partial(Steps, hosts=hosts, by_layer=by_layer)
        if saved is not None:
            from hwsim.families.training.workload.saving import write

            saved = saved.restricted(written.restricted)
            steps = write(placed, saved, begin, ops, steps_of)
        else:
            steps = steps_of(placed, ops)
            steps.write(begin)
        _hold(steps, machine, builder, shared=asked.shared)
    except (CannotCollect, CannotCompute, NoRoute, UnknownName) as error:
        asked.mistakes.add(asked.tree.place, getattr(error, "message", str(error)), getattr(error, "hint", None))
        return
    saves = None if saved is None else saved.saves
    worth = replace(_worth(plan, steps, asked, written), saves=saves, job=job)
    builder.training(replace(worth, replicas=1, classes=()) if unseen else worth)
    if written.folds:
        many_of_queues = np.ones(builder.queue_count(), np.int64)
        for number, count in steps.grain.ops.many.items():
            many_of_queues[number] = count
        builder.stands_for(
            Alike(
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


def _hosts(plan: Plan, machine: Machine) -> list[str]:
    """Return the CPU that launches the kernels of each GPU; with one thread per node, it is the same for all its GPUs."""
    if not isinstance(plan.exchange, Buckets):
        return []
    is_one = plan.exchange.one_thread
    return [machine.host_of(machine.home_of(device) if is_one else device) for device in plan.layout.devices]


def _by_layer(plan: Plan, pieces: Pieces, replicas: int) -> bool:
    """Whether the kernels between two exchanges are one op: by `detail`, or with `auto` if a step has few ops."""
    ops = replicas * plan.layout.pp * plan.microbatches * 2 * pieces.layers * (9 if plan.layout.tp > 1 else 1)
    return pieces.detail == "layer" or (pieces.detail == "auto" and ops <= OPS)


def _detail_depends(plan: Plan) -> bool:
    """Whether the number of simulated replicas decides `detail: auto`."""
    pieces, dp = plan.exchange, plan.layout.dp
    return isinstance(pieces, Pieces) and _by_layer(plan, pieces, 1) != _by_layer(plan, pieces, dp)


def _folds(search: Callable[[], Represented]) -> bool:
    """Whether replicas represent others on the machine without events.

    Plan and machine alone determine the granularity of ops; the request to fold and events do not.
    """
    try:
        return search().folds
    except CannotFold:
        return False


def _represented(
    plan: Plan, machine: Machine, hosts: Sequence[str], exchanging: Exchanges, saved: Saved | None, marks: Marks
) -> Represented:
    """Return the classes of identical replicas.

    Raises:
        CannotFold: most replicas differ; the message has the reason.
    """
    layout = plan.layout
    written: list[Cost] = [] if saved is None else [saved.ops.write, *([saved.ops.copy] if saved.ops.copy is not None else [])]
    if isinstance(plan.exchange, Buckets):
        from hwsim.families.training.workload.identical_gpus import represented as of_gpus

        summed = all_reduced(exchanging, plan.exchange, tuple(layout.devices), plan.stages[0].layers)
        demands = [cost.demand for cost in (*(phase.cost for flows in summed for phase in flows.phases), *written)]
        return of_gpus(machine, plan, plan.exchange, hosts, demands, marks)

    exchanged = between(layout, plan.stages, plan.exchange.shards, exchanging)
    exchanged += map(exchanging.known.numbered, written)
    items = (item for layer in plan.stages[0].blocks for item in exchanges(layer.forward))
    uneven = any(item.received > 1.0 for item in items)
    return represented(exchanging.known, layout, plan.kinds, exchanged, partial(used, plan, exchanging), marks, uneven=uneven)


def _hold(steps: Steps, machine: Machine, builder: GraphBuilder, *, shared: bool) -> None:
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
    builder: GraphBuilder, held: Held, devices: list[str], first: OpRef, lives: Sequence[list[OpRef]] = (), steps: int = 1
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


def _worth(plan: Plan, steps: Steps, asked: Asked, written: Represented) -> Trained:
    """Return the description of the training for the results."""
    layout, grain = plan.layout, steps.grain
    workers = [
        [(worker.devices, worker.many) for replica in steps.replicas for worker in grain.workers[stage, replica]]
        for stage in range(layout.pp)
    ]
    devices, speaks = plan.kinds.observed(workers)
    return Trained(
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


def _errors(plan: Plan) -> str:
    """Return the kind of training whose measured errors apply to its steps."""
    exchange, split = plan.exchange, plan.layout.tp * plan.layout.pp
    if isinstance(exchange, Pieces):
        return of_steps(plan.dtype, split, transformer=True, experts=exchange.routed)
    return of_steps(plan.dtype, split, transformer=False, eager=exchange.software.eager)
