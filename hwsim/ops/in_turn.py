"""Ops that are several kernels in a row on one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hwsim.demand import rates_of
from hwsim.devices import Work
from hwsim.devices.in_turn import Turn, in_turn
from hwsim.ops.op import ComputeOp, Placed, Scope
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel of an op, `times` times. what: it is called so in the derivation."""

    what: str
    work: Work
    times: float = 1.0


def compute_in_turn(scope: Scope, op: ComputeOp, steps: Sequence[Step], output: float) -> Placed:
    """Kernels one after another on a computing device's queue `compute`; a single one is as any other op."""
    device, model = scope.computing(op.device)
    costs = [
        Turn(
            step.what,
            model.compute(device, replace(step.work, cores=op.cores, isa=op.isa, start=scope.starts)),
            step.times,
        )
        for step in steps
    ]
    if len(costs) == 1 and costs[0].times <= 1:
        return Placed(device, op.queue or "compute", costs[0].cost, output=output)
    rates = rates_of(model.capacities(device))
    capacity = f"{device}.compute" if f"{device}.compute" in rates else f"{device}.cores"
    return Placed(device, op.queue or "compute", in_turn(costs, rates, capacity), output=output)
