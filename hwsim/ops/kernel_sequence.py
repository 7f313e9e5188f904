"""Ops that consist of several consecutive kernels on one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hwsim.demand import rates_of
from hwsim.devices import Cpu, Gpu, Sockets, Work
from hwsim.devices.kernel_sequence import KernelRuns, sequence_cost
from hwsim.ops.op import CannotPlace, ComputeOp, LoweredOp, Scope
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A kernel of an op.

    Args:
        what: name of the kernel in the derivation.
        work: work of one execution.
        times: number of executions.
    """

    what: str
    work: Work
    times: float = 1.0


def check_isa(op: ComputeOp, device: str, model: Cpu | Sockets | Gpu) -> None:
    """Raise CannotPlace if the op states an instruction set (`isa`) and the device is a GPU."""
    if isinstance(model, Gpu) and op.isa:
        raise CannotPlace(f"'{device}' is a gpu: `isa` requires a cpu", "omit `isa`")


def compute_sequence(scope: Scope, op: ComputeOp, steps: Sequence[KernelStep], output: float) -> LoweredOp:
    """Place consecutive kernels on the queue `compute` of the op's device; a single kernel costs the same as a plain op."""
    device, model = scope.computing(op.device)
    check_isa(op, device, model)
    costs = []
    for step in steps:
        working_set = step.work.working_set if op.working_set is None else op.working_set
        work = replace(step.work, cores=op.cores, isa=op.isa, working_set=working_set, start=scope.starts)
        costs.append(KernelRuns(step.what, model.compute(device, work), step.times))
    if len(costs) == 1 and costs[0].times <= 1:
        return LoweredOp(device, op.queue or "compute", costs[0].cost, output=output)
    rates = rates_of(model.capacities(device))
    capacity = f"{device}.compute" if f"{device}.compute" in rates else f"{device}.cores"
    return LoweredOp(device, op.queue or "compute", sequence_cost(costs, rates, capacity), output=output)
