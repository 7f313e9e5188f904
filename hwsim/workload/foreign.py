"""Whether an op graph that was made elsewhere fits the machine that it is to run on."""

from __future__ import annotations

from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine
from hwsim.spec import Mistakes


def refuse_foreign(graph: OpGraph, machine: Machine, mistakes: Mistakes) -> None:
    """An op graph says what its ops take of one machine; on another its numbers would mean something else."""
    for capacity in graph.capacities:
        on_machine = machine.capacities.get(capacity.name)
        if on_machine is None:
            mistakes.add(None, f"the op graph draws on '{capacity.name}', which the machine {machine.name} does not have")
        elif on_machine.rate != capacity.rate:
            message = f"in the op graph '{capacity.name}' has rate {capacity.rate:g}, on the machine {on_machine.rate:g}"
            mistakes.add(None, message, "it was made for another machine: lower the workload again")
