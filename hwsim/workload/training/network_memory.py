"""What training a network takes of the memory of each GPU, as buffers that are there from the first kernel on.

Weights, gradients and what the optimizer keeps in 32 bit, the weights in the format of the products where that is another,
and what the forward pass leaves for the backward pass; a stage of a pipeline holds that of as many micro-batches as are
under way there.

**Range**: without what libraries allocate to work in, and the context of the driver (0.3 to 1 GB).
"""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.devices import Gpu
from hwsim.graph.builder import GraphBuilder
from hwsim.graph.opgraph import Buffer, Mark
from hwsim.machine import Machine
from hwsim.models.architectures.unit_layers import activation_bytes
from hwsim.models.memory import KEPT
from hwsim.units import BYTES
from hwsim.workload.training.network_issue import Worker
from hwsim.workload.training.network_plan import NetworkPlan
from hwsim.workload.training.network_steps import Steps
from hwsim.workload.training.schedule import Turn, turns


def add_memory(plan: NetworkPlan, machine: Machine, steps: Steps, builder: GraphBuilder) -> None:
    """The buffers of every GPU that says how much memory it has."""
    for worker in steps.workers:
        model = machine.device(worker.device).model
        if worker.first is None or not isinstance(model, Gpu) or model.memory.size is None:
            continue
        mark = Mark(worker.first.block, worker.first.op)
        for value, amount in held(plan, steps, worker):
            builder.buffer(
                Buffer(value=value, op="training", device=worker.device, bytes=round(amount), free="scope", made=mark,
                       users=(), block=worker.first.block)
            )  # fmt: skip


def held(plan: NetworkPlan, steps: Steps, worker: Worker) -> Iterator[tuple[str, float]]:
    """(what, bytes) of one GPU."""
    stage = steps.stages[worker.copy][worker.stage]
    parameters = stage.parameters
    yield "weights", 4.0 * parameters
    if BYTES[plan.dtype] < 4:
        yield "weights as computed with", BYTES[plan.dtype] * parameters
    yield "gradients", 4.0 * parameters
    if plan.by == "all-reduce":
        yield "optimizer", KEPT[plan.optimizer] * parameters
    order = turns(plan.schedule, worker.stage, plan.pp, plan.microbatches) if plan.pp > 1 else (Turn(0, 0, True),)
    under_way = most = 0
    for turn in order:
        under_way += 1 if turn.forward else -1
        most = max(most, under_way)
    yield "activations", most * activation_bytes(stage.layers)
