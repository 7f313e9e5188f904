"""Served models on a machine, in a run, and what came of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from hwsim.doors import Open, Planned, Server, Told
from hwsim.engine import Actor, Host, Waits
from hwsim.families.serving.results.statistics import ServiceStatistics, expected_of
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.formats import format_count
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine
from hwsim.results.checks import ROUNDING
from hwsim.results.invariants import numbers
from hwsim.results.unsteady import overloaded, refuse_empty
from hwsim.spec import Warning

if TYPE_CHECKING:
    from hwsim.families.serving.actors.service import Service

FILLS: Final = "as while a service fills: too few requests to tell whether it keeps up; more would give longer latencies"
STARTS: Final = "as while replicas start: too few arrive after that to tell whether the service keeps up"


@dataclass(frozen=True)
class Models(Planned):
    """Served models on a machine."""

    plans: tuple[ServicePlan, ...]
    issues = True
    clocks = False

    @property
    def suspicions(self) -> Iterator[Warning]:
        """Warnings of each plan."""
        return chain.from_iterable(plan.warnings for plan in self.plans)

    def begin(self, machine: Machine, slower: float) -> Serving:
        """The services of one run."""
        from hwsim.families.serving.actors.service import Service

        return Serving(tuple(Service(plan, machine, slower) for plan in self.plans))

    def holds(self, told: Told | None) -> Iterator[Any]:
        """Weights and caches, as long as their copies are on."""
        spans = {} if told is None else told.spans
        return (value for plan in self.plans for value in plan.holds(*spans.get(plan.name, ())))


@dataclass(frozen=True)
class Serving(Open):
    """Served models in a run."""

    services: tuple[Service, ...]

    def enter(self, graph: OpGraph, *, clocked: bool) -> tuple[OpGraph, Sequence[Actor]]:
        """The graph with the ops of models that are alone on their devices, and actors of the others.

        clocked: all are actors, as something happens while they run.
        """
        actors: list[Actor] = []
        for service in self.services:
            drawn = {name for each in self.services if each is not service for name in each.demands()}
            if clocked or not service.is_alone(graph.costs, drawn):
                actors.append(service.actor)
            elif len(self.services) == 1 and not graph.total:
                made = service.graph(graph)
                graph = replace(graph, blocks=made.blocks, labels=made.labels, costs=made.costs, queues=made.queues)
            else:
                actors.append(_submitting(service.graph(graph)))
        return graph, actors

    def told(self) -> Served:
        """Statistics of each.

        Raises:
            SpecError: all requests come within the warm-up.
        """
        found = tuple(service.statistics() for service in self.services)
        refuse_empty(each.name for each in found if not each.requests)
        return Served(found)


def _submitting(made: OpGraph) -> Actor:
    def actor(driver: Host) -> Waits:
        yield driver.submit(made)

    return actor


@dataclass(frozen=True)
class Served(Told):
    """The served models of a run."""

    found: tuple[ServiceStatistics, ...]
    of_kernels = True
    server: Server = "model"

    @property
    def timed(self) -> Collection[str]:
        """All of them."""
        return {each.name for each in self.found}

    @property
    def spans(self) -> Mapping[str, Sequence[Any]]:
        """When the copies were on that the load starts and stops."""
        return {each.name: [part.spans_fs for part in reversed(each.scalings)] for each in self.found}

    def expected(self) -> Mapping[str, float]:
        """Quantities of each model."""
        return expected_of(self.found)

    def warnings(self) -> Iterator[Warning]:
        """Models that do not keep up, or whose run is too short to tell."""
        for service in self.found:
            of = f"{service.name}: " if service.name else ""
            yield from service.parts
            if service.overloaded:
                came, answered = format_count(service.offered_per_s, 4), format_count(service.answered_per_s, 4)
                yield overloaded(f"{of}{came} requests/s arrive, {answered}/s are completed", service.grows_per_s)
            elif service.unsettled:
                why = FILLS if service.scaling is None else STARTS
                yield Warning("still-filling", f"{of}the queue was still growing when arrivals stopped, {why}")

    def breaches(self) -> Iterator[str]:
        """Requests there in the mean that are not their rate times their time (Little), and numbers that are none."""
        for served in self.found:
            area, stayed = served.in_system_mean * served.span_s, served.latency.mean * served.requests
            if not math.isclose(area, stayed, rel_tol=ROUNDING):
                yield f"{served.name}: requests are there for {area} s together, and stay {stayed} s"
        yield from numbers(self.found, "serving")
