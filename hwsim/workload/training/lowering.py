"""A plan of a training, lowered: which replicas have ops, the ops of the steps, the memory they hold, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hwsim import ticks
from hwsim.communication import CannotCollect
from hwsim.devices import CannotCompute, Gpu
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.graph.opgraph import Buffer, Freeing, Mark, Trained
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.models.doubts import of_steps
from hwsim.models.memory import SPREAD
from hwsim.spec import Mistakes, Tree
from hwsim.spec.limits import refuse_beyond
from hwsim.workload.programs import host_of
from hwsim.workload.training.by_kernel import ByKernel, all_reduced
from hwsim.workload.training.by_segment import BySegment
from hwsim.workload.training.exchanges import Exchanges
from hwsim.workload.training.identical import difference, unlike_exchanges, unlike_hosts
from hwsim.workload.training.plan import Buckets, Held, Pieces, Plan
from hwsim.workload.training.rewriting import Answers, Tape, frame_of, rewritten
from hwsim.workload.training.segments import between
from hwsim.workload.training.workers import Ops
from hwsim.workload.training.writing import Steps

if TYPE_CHECKING:  # few trainings write checkpoints
    from hwsim.failures import Job
    from hwsim.workload.training.saving import Saved

GROUPS: Final = 32  # stage groups whose ops are all written; of more, one replica represents all where they are identical
GPUS: Final = 64  # the same of GPUs whose kernels are ops of their own
OPS: Final = 10_000  # ops of a step with one for each stretch between exchanges, up to which that is the default


def lower(
    plan: Plan,
    tree: Tree,
    machine: Machine,
    builder: GraphBuilder,
    mistakes: Mistakes,
    *,
    name: str,
    start: float,
    fold: str,
    shared: bool,
    saved: Saved | None = None,
    job: Job | None = None,
) -> None:
    """Append the ops of a plan to the graph.  tree: where its keys stand; other arguments as of `add_training`."""
    exchanging = Exchanges(machine, plan.network)
    layout = plan.layout
    kernels = isinstance(plan.exchange, Buckets)
    many = len(layout.devices) > GPUS if kernels else layout.dp * layout.pp > GROUPS
    try:
        hosts = [_host(machine, device) for device in layout.devices] if kernels else []
        unlike = ""
        if layout.dp > 1 and (many or fold == "always") and (fold != "never" or _detail_depends(plan)):
            unlike = _difference(plan, machine, hosts, exchanging)
        folded = fold != "never" and layout.dp > 1 and (fold == "always" or many) and not unlike
        if unlike and fold != "never":
            builder.unfolded = unlike
        begin = builder.op("start", kind="start", program=name, time=start) if start else None
        # a matter of the plan and the machine alone: what is asked of folding must not decide what the ops are
        by_layer = isinstance(plan.exchange, Pieces) and _by_layer(plan, plan.exchange, 1 if many and not unlike else layout.dp)
        replicas = range(1) if folded else range(layout.dp)
        refuse_beyond("ops", 2 * plan.microbatches * layout.pp * len(replicas), tree.place)  # a pass back and forth at least
        ops = Ops(builder, name)
        watched = frozenset() if saved is None else saved.ops.drawn

        def steps_of(plan: Plan, graph: GraphBuilder = builder, tape: Tape | None = None) -> Steps:
            writes = ops if graph is builder else Ops(graph, name)
            return Steps(
                plan,
                machine,
                graph,
                exchanging,
                hosts,
                name=name,
                replicas=replicas,
                by_layer=by_layer,
                ops=writes,
                tape=tape,
                watched=watched,
            )

        if saved is None:
            frame = frame_of(plan, hosts, replicas, name) if begin is None else None
            again = rewritten(steps_of, Answers(plan, machine, exchanging), frame, builder)
            steps, ends = again or _plain(steps_of(plan), begin)
        else:
            from hwsim.workload.training.saving import write

            steps, ends = write(plan, saved, begin, builder, ops, steps_of)
        _hold(plan if saved is None else steps.plan, steps, machine, builder, shared=shared)
        if plan.evaluation is not None:
            devices = plan.evaluation.layout.devices
            hosts = [_host(machine, device) for device in devices]
            evaluation = Steps(plan.evaluation, machine, builder, exchanging, hosts, name=name, replicas=range(len(devices)))
            evaluation.evaluate(ends)
    except (CannotCollect, CannotCompute, NoRoute, UnknownName) as error:
        mistakes.add(tree.place, getattr(error, "message", str(error)), getattr(error, "hint", None))
        return
    saves = None if saved is None else saved.saves
    builder.training(replace(_worth(plan, steps, name, start, folded=folded), saves=saves, job=job))


def _plain(steps: Steps, begin: OpRef | None) -> tuple[Steps, list[OpRef]]:
    """All steps without checkpoints: their writer, and the last ops."""
    return steps, steps.write(begin)


def _host(machine: Machine, device: str) -> str:
    """The CPU whose thread issues the kernels of a GPU; "" if there is none."""
    return host_of(machine, machine.device(device).node)


def _by_layer(plan: Plan, pieces: Pieces, replicas: int) -> bool:
    """Whether every stretch between two exchanges is an op: as the file says, or if they are few."""
    ops = replicas * plan.layout.pp * plan.microbatches * 2 * pieces.layers * (9 if plan.layout.tp > 1 else 1)
    return pieces.detail == "layer" or (pieces.detail == "auto" and ops <= OPS)


def _detail_depends(plan: Plan) -> bool:
    """Whether the ops of a step depend on how many replicas are written: of many identical ones, one."""
    pieces, dp = plan.exchange, plan.layout.dp
    return isinstance(pieces, Pieces) and _by_layer(plan, pieces, 1) != _by_layer(plan, pieces, dp)


def _difference(plan: Plan, machine: Machine, hosts: Sequence[str], exchanging: Exchanges) -> str:
    """The first difference between replicas, in words; "" if one can represent them all."""
    layout = plan.layout
    if isinstance(plan.exchange, Pieces):
        if not plan.kinds.identical(layout):
            return "copies of the model have other kinds of GPUs"
        return difference(machine, layout, between(layout, plan.stages[0], plan.exchange.shards, exchanging))
    if plan.exchange.asynchronous:
        return "asynchronous copies go at a pace of their own"
    if len(set(plan.batches)) > 1 or plan.kinds.of:
        return "the copies have other batches or other GPUs than the first"
    if layout.pp > 1 or layout.tp > 1:
        return "a copy is split over several GPUs, which may share links with those of other copies"
    if plan.exchange.by == "parameter-server":
        return "servers of parameters work beside some of the copies"
    if plan.exchange.one_thread and len(set(hosts)) < len(hosts):
        return "one thread issues the kernels of several GPUs"
    threads = 2 if plan.exchange.software.number > 0 else 1  # one issues kernels, one makes inputs ready
    if unlike := unlike_hosts(machine, hosts, threads):
        return unlike
    demands = [
        phase.cost.demand
        for flows in all_reduced(exchanging, plan.exchange, tuple(layout.devices), plan.stages[0][0].layers)
        for phase in flows.phases
    ]
    return unlike_exchanges(layout.devices, demands)


def _hold(plan: Plan, steps: Steps, machine: Machine, builder: GraphBuilder, *, shared: bool) -> None:
    """Add the buffers of every GPU with ops of its own, or of the first of each kind in a stage; of all if shared.

    **Range**: without what libraries allocate to work in, and the context of the driver (0.3 to 1 GB).
    """
    grain, first = steps.grain, steps.replicas[0]
    if isinstance(grain, ByKernel):
        for worker in steps.workers():
            model = machine.device(worker.device).model
            if worker.first is not None and isinstance(model, Gpu) and model.memory.size is not None:
                _buffers(builder, plan.held[worker.replica][worker.stage], [worker.device], worker.first)
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
            _buffers(builder, plan.held[first][stage], devices, leader.first, lives, plan.steps)


def _buffers(
    builder: GraphBuilder, held: Held, devices: list[str], first: OpRef, lives: Sequence[list[OpRef]] = (), steps: int = 1
) -> None:
    """Add the buffers of devices of one stage.

    Args:
        first: the op from which on the memory is taken.
        lives: for each pass through a virtual stage, the ops that need its activations.
        steps: that run the block.
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


def _worth(plan: Plan, steps: Steps, name: str, start: float, *, folded: bool) -> Trained:
    """Describe the training for the results."""
    layout, grain = plan.layout, steps.grain
    workers = [
        [worker.devices for replica in steps.replicas for worker in grain.workers[stage, replica]] for stage in range(layout.pp)
    ]
    devices, speaks = plan.kinds.observed(workers)
    return Trained(
        program=name,
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
        start=ticks.femtoseconds(start),
        replicas=layout.dp if folded else 1,
        copies=_copies(plan) if folded else (),
        alone=folded and isinstance(plan.exchange, Buckets),
        errors=of_steps(plan.dtype, layout.tp * layout.pp, transformer=isinstance(plan.exchange, Pieces)),
    )


def _copies(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """By device of the first replica, it and those in its place in the others."""
    groups = [[plan.layout.group(stage, replica) for replica in range(plan.layout.dp)] for stage in range(plan.layout.pp)]
    return tuple(names for of_stage in groups for names in zip(*of_stage, strict=True))
