"""Services on a machine, and in a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hwsim.doors import Open, Planned
from hwsim.engine import Actor
from hwsim.families.services.workload.program import Program
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine
from hwsim.results.unsteady import refuse_empty

if TYPE_CHECKING:
    from hwsim.families.services.actors import Running
    from hwsim.families.services.told import Answered


@dataclass(frozen=True)
class Programs(Planned):
    """Services on a machine."""

    program: Program
    issues = False
    clocks = True

    def __str__(self) -> str:
        return ""

    @property
    def drawn(self) -> Collection[str]:
        """What their statements draw from."""
        costs = [each.cost for each in self.program.served if each.cost is not None]
        return {name for each in costs for name, _ in (*each.demand.amounts, *each.demand.holds, *each.demand.clocks)}

    def open(self, machine: Machine, slower: float, engine: str) -> Answering:  # noqa: ARG002
        """The services of one run."""
        from hwsim.families.services.actors import Running

        return Answering(Running(self.program, machine.capacities, slower))


@dataclass(frozen=True)
class Answering(Open):
    """Services in a run."""

    running: Running

    def enter(self, graph: OpGraph, *, clocked: bool) -> tuple[OpGraph, Sequence[Actor]]:  # noqa: ARG002
        """The graph as it is, and one actor for all of them."""
        return graph, [self.running.actor]

    def told(self) -> Answered:
        """Answers and limits."""
        from hwsim.families.services.told import Answered

        found = self.running.services()
        refuse_empty(each.name for each in found.answers if each.is_warm_up)
        return Answered(found, self.running)
