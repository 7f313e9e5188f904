"""Served models on a machine, and in a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from hwsim.doors import Open, Planned, Told
from hwsim.engine import Actor
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine
from hwsim.results.unsteady import refuse_empty
from hwsim.spec import Warning

if TYPE_CHECKING:
    from hwsim.families.serving.actors import Service
    from hwsim.families.serving.told import Served


@dataclass(frozen=True)
class Models(Planned):
    """Served models on a machine."""

    plans: tuple[ServicePlan, ...]
    issues = True
    clocks = False

    def __str__(self) -> str:
        return "\n".join(map(str, self.plans))

    @property
    def suspicions(self) -> Iterator[Warning]:
        """Warnings of each plan."""
        return chain.from_iterable(plan.warnings for plan in self.plans)

    def open(self, machine: Machine, slower: float, engine: str) -> Serving:
        """The services of one run."""
        from hwsim.families.serving.actors import Service

        fast: Literal["never"] | None = "never" if engine == "simpy" else None
        return Serving(tuple(Service(plan, machine, slower, fast) for plan in self.plans))

    def holds(self, told: Told | None) -> Iterator[Any]:
        """Weights and caches, as long as their copies are on."""
        spans = {} if told is None else told.spans
        return (value for plan in self.plans for value in plan.holds(*spans.get(plan.name, ())))


@dataclass(frozen=True)
class Serving(Open):
    """Served models in a run."""

    services: tuple[Service, ...]

    def enter(self, graph: OpGraph, *, clocked: bool) -> tuple[OpGraph, Sequence[Actor]]:
        """The graph with the ops of models that are alone on their devices, and actors of the others."""
        from hwsim.families.serving.actors import played

        return played(self.services, graph, clocked=clocked)

    def told(self) -> Served:
        """Statistics of each.

        Raises:
            SpecError: all requests come within the warm-up.
        """
        from hwsim.families.serving.told import Served

        found = tuple(service.statistics() for service in self.services)
        refuse_empty(each.name for each in found if not each.requests)
        return Served(found)
